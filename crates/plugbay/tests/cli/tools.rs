//! `plugbay tools`.

use std::fs;

use serde_json::json;

use crate::harness::{Harness, program, sample, samples};

#[test]
fn the_tools_command_shows_what_the_host_sees() {
    let harness = Harness::with(&samples());
    let run = harness.run(&["tools", "--server", "notes"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines[0], "TOOL           TOKENS  WHAT IT DOES");
    assert!(lines[1].starts_with("notes__add "), "{}", run.out);
    assert!(lines[2].ends_with("Deletes a note for good."), "only the first sentence: {}", run.out);
    assert!(lines[7].starts_with("6 tools "), "{}", run.out);
}

#[test]
fn query_words_filter_tools_by_name_and_description() {
    let harness = Harness::with(&samples());
    let found = |words: &[&str]| {
        let run = harness.run(&[&["tools", "--json"], words].concat());
        let tools = run.json();
        let names = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        (run.code, names.collect::<Vec<_>>())
    };
    assert_eq!(found(&["PRIME"]), (Some(0), vec!["calc__factorize".to_owned()]));
    assert_eq!(found(&["offset", "meetings"]), (Some(0), vec!["clock__convert_time".to_owned()]));
    assert_eq!(found(&["offset meetings"]).1.len(), 1);
    assert_eq!(found(&["teleport"]), (Some(1), vec![]));
    harness.run(&["tools", "teleport"]).check(1, "", "error: no tool matches \"teleport\"\n");
}

#[test]
fn tool_definitions_are_those_of_the_host() {
    let servers = json!({ "calc": {
        "command": program(), "args": ["__sample", "calc"],
        "plugbay": { "allow": ["list_units"], "rename": { "list_units": "units" }, "describe": { "list_units": "All." } },
    } });
    let tools = Harness::with(&servers).run(&["tools", "--json"]).json();
    assert_eq!(tools.as_array().unwrap().len(), 1);
    assert_eq!((&tools[0]["name"], &tools[0]["description"]), (&json!("calc__units"), &json!("All.")));
    assert_eq!(tools[0]["inputSchema"]["type"], "object");
}

#[test]
fn the_tools_command_answers_from_the_cache() {
    let harness = Harness::with(&json!({ "clock": { "command": "sh", "args": ["server.sh"] } }));
    let script = harness.path().join("server.sh");
    fs::write(&script, format!("exec {} __sample clock\n", program())).unwrap();
    let first = harness.run(&["tools"]);
    assert_eq!(first.code, Some(0));
    fs::write(&script, "touch started\n").unwrap();
    let again = harness.run(&["tools"]);
    assert_eq!((again.code, &again.out), (Some(0), &first.out));
    assert!(!harness.path().join("started").exists());
}

#[test]
fn an_unknown_server_name_gets_the_nearest() {
    let harness = Harness::with(&samples());
    let expected =
        "error: there is no server \"clok\"\n  did you mean clock?\n  configured: calc, clock, notes\n";
    harness.run(&["tools", "--server", "clok"]).check(1, "", expected);
    let expected = "error: there is no server \"x\"\n  configured: calc, clock, notes\n";
    harness.run(&["tools", "--server", "x"]).check(1, "", expected);
}

#[test]
fn servers_without_tools_are_mentioned() {
    let harness = Harness::with(&json!({ "bad": sample("broken"), "calc": sample("calc") }));
    for _ in 0..2 {
        let run = harness.run(&["tools", "prime"]);
        assert_eq!(run.code, Some(0));
        assert_eq!(run.err, "note: plugbay knows no tools of bad; `plugbay list` shows why\n");
    }
}
