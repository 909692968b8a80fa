//! `plugbay search`.

use std::fs;

use plugbay_testkit::{Endpoint, Play};
use serde_json::json;

use crate::harness::{Harness, program, samples};

#[test]
fn tools_are_found_by_what_they_do() {
    let harness = Harness::with(&samples());
    harness.run(&["tools"]);
    for (query, tool) in [
        ("prime factors", "calc__factorize"),
        ("what time is it in another city", "clock__convert_time"),
        ("remove a note", "notes__delete"),
    ] {
        let run = harness.run(&["search", "--json", query]);
        let results = run.json();
        let found: Vec<&str> =
            results["hits"].as_array().unwrap().iter().map(|hit| hit["tool"].as_str().unwrap()).collect();
        assert!(found[..2.min(found.len())].contains(&tool), "{query}: {found:?}");
        assert!(found.len() <= 5);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    }
    let run = harness.run(&["search", "prime", "factors", "--limit", "1", "--server", "CALC"]);
    assert_eq!(run.out.lines().count(), 1, "{}", run.out);
    assert!(run.out.contains("  calc__factorize("), "{}", run.out);
}

#[test]
fn search_explain_shows_why_tools_match() {
    let harness = Harness::with(&samples());
    harness.run(&["tools"]);
    let run = harness.run(&["search", "delete note", "--explain", "--limit", "1"]);
    assert!(run.out.contains("% delet: name "), "{}", run.out);
    assert!(run.out.contains(" near in meaning"), "{}", run.out);
    let hit = harness.run(&["search", "delete note", "--explain", "--json"]).json()["hits"][0].clone();
    let explanation = &hit["explanation"];
    assert_eq!(explanation["matches"][0]["relation"], "said", "{hit}");
    assert!(explanation["meaning"].as_f64().is_some() && hit["score"].as_f64().is_some());
}

#[test]
fn commands_see_all_tools_in_search_mode() {
    let harness = Harness::empty();
    harness.configure(&json!({ "mode": "search", "mcpServers": samples() }).to_string());
    let listed = harness.run(&["list"]);
    assert!(listed.out.contains("calc"), "{}", listed.out);
    let tools = harness.run(&["tools", "--json"]).json();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"calc__factorize"), "{names:?}");
    let found = harness.run(&["search", "prime factors", "--json"]).json();
    assert_eq!(found["hits"][0]["tool"], "calc__factorize");
}

#[test]
fn the_hook_starts_no_server() {
    let harness = Harness::with(&json!({ "clock": { "command": "sh", "args": ["server.sh"] } }));
    let script = harness.path().join("server.sh");
    fs::write(&script, "touch started\n").unwrap();
    let expected =
        "error: no tools are known yet\n  `plugbay list` starts every server and caches its tools\n";
    harness.run(&["search", "time"]).check(1, "", expected);
    assert!(!harness.path().join("started").exists());
    fs::write(&script, format!("exec {} __sample clock\n", program())).unwrap();
    harness.run(&["tools"]);
    fs::write(&script, "touch started\n").unwrap();
    assert_eq!(harness.run(&["search", "time"]).code, Some(0));
    assert!(!harness.path().join("started").exists());
}

#[test]
fn a_search_without_hits_says_how_to_ask() {
    let harness = Harness::with(&samples());
    harness.run(&["tools"]);
    let run = harness.run(&["search", "@@@"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    assert!(
        run.err.starts_with("error: no tool fits \"@@@\"\n  describe what the tool should do"),
        "{}",
        run.err
    );
    let run = harness.run(&["search", "x", "--server", "clok"]);
    assert_eq!(
        run.err,
        "error: there is no server \"clok\"\n  did you mean clock?\n  configured: calc, clock, notes\n"
    );
}

#[test]
fn a_search_without_a_good_hit_names_further_tools() {
    let harness = Harness::with(&samples());
    harness.run(&["tools"]);
    let poor = ["search", "--limit", "1", "delete calculator quux"];
    let run = harness.run(&poor);
    let lines: Vec<&str> = run.out.lines().collect();
    assert!(lines.len() == 2 && lines[1].starts_with("or: ") && lines[1].contains("__"), "{}", run.out);
    assert_eq!(run.err, "note: no tool fits this well\n");
    let results = harness.run(&[&poor[..], &["--json"]].concat()).json();
    let further: Vec<&str> =
        results["further"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(lines[1], format!("or: {}", further.join(", ")));
    let fits = harness.run(&["search", "--limit", "1", "prime factors", "--json"]).json();
    assert_eq!(fits["further"], json!([]));
}

#[test]
fn tool_signatures_are_one_line_each() {
    let harness = Harness::with(&samples());
    let run = harness.run(&["tools", "--signature", "--server", "notes"]);
    assert_eq!((run.code, run.out.lines().count()), (Some(0), 6));
    let add = run.out.lines().next().unwrap();
    assert!(add.starts_with("notes__add(title: string, ") && add.contains(") - "), "{add}");
}

#[test]
fn a_model_ranks_the_search_command_too() {
    let harness = Harness::with(&samples());
    harness.run(&["tools"]);
    let says = |text: &str| {
        let message = json!({ "role": "assistant", "content": text });
        Play::json(200, &json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] }))
    };
    let trouble = Play::json(503, &json!({ "error": "loading model" }));
    let endpoint = Endpoint::start([says(r#"["notes__add", "no__such", "calc__factorize"]"#), trouble]);
    let model = json!({ "provider": "openai", "model": "m", "baseUrl": endpoint.url() + "/v1" });
    harness.configure(&json!({ "mcpServers": samples(), "search": { "model": model } }).to_string());
    let hits = harness.run(&["search", "prime factors", "--json"]).json()["hits"].clone();
    assert_eq!((&hits[0]["tool"], &hits[1]["tool"]), (&json!("notes__add"), &json!("calc__factorize")));
    let asked = endpoint.asked();
    assert_eq!((asked.path.as_str(), &asked.body["model"]), ("/v1/chat/completions", &json!("m")));
    assert_eq!(asked.header("authorization"), None);
    let run = harness.run(&["search", "prime factors", "--limit", "1"]);
    assert!(run.out.contains("  calc__factorize("), "{}", run.out);
    assert_eq!(
        run.err,
        "note: ranked without the model: it is asked too often, or overloaded: loading model\n"
    );
}
