//! `plugbay get`, `remove`, `enable` and `disable`.

use std::fs;

use serde_json::json;

use crate::harness::{Harness, program, sample, samples};

#[test]
fn get_shows_the_entry_that_counts_without_values_of_variables() {
    let mut calc = sample("calc");
    calc["env"] = json!({ "TOKEN": "hunter2" });
    calc["plugbay"] = json!({ "deny": ["list_*"] });
    let remote = json!({ "url": "https://me:hunter2@h.example/mcp?k=hunter2", "headers": { "X-Key": "hunter2" }, "disabled": true });
    let harness = Harness::with(&json!({ "calc": calc, "remote": remote }));
    let file = harness.user_file();
    let file = file.display();
    let unknown = harness.run(&["get", "CALC"]);
    let expected = format!(
        "calc\n  file     {file}:1\n  command  {} __sample calc\n  env      TOKEN\n  deny     list_*\n  tools    not known yet; `plugbay list` starts every server\n",
        program()
    );
    unknown.check(0, &expected, "");
    harness.run(&["list"]);
    let known = harness.run(&["get", "calc"]);
    assert!(known.out.contains("\n  tools    5 of 6 tools: calc__convert_base, "), "{}", known.out);
    let expected = format!(
        "remote\n  file     {file}:1\n  url      https://h.example/mcp?…\n  headers  X-Key\n  state    disabled; `plugbay enable remote` uses it again\n"
    );
    harness.run(&["get", "remote"]).check(0, &expected, "");
    let json = harness.run(&["get", "calc", "--json"]);
    assert!(!json.out.contains("hunter2"), "{}", json.out);
    let json = json.json();
    assert_eq!(
        (&json["env"], &json["deny"], &json["tools"]["all"]),
        (&json!(["TOKEN"]), &json!(["list_*"]), &json!(6))
    );
    harness.run(&["get", "clac"]).check(
        1,
        "",
        "error: there is no server \"clac\"\n  did you mean calc?\n  configured: calc, remote\n",
    );
}

#[test]
fn get_shows_the_project_entry_that_replaces_the_users() {
    let harness = Harness::with(&json!({ "s": sample("calc") }));
    let project = harness.path().join(".plugbay.jsonc");
    fs::write(&project, json!({ "mcpServers": { "S": sample("clock") } }).to_string()).unwrap();
    assert!(harness.run(&["get", "s"]).out.contains("__sample calc"), "the project's file is not approved");
    harness.run(&["approve", "--yes"]);
    let run = harness.run(&["get", "s"]);
    assert!(
        run.out.contains("__sample clock") && run.out.contains(&*project.to_string_lossy()),
        "{}",
        run.out
    );
    let run = harness.run(&["remove", "s"]);
    let expected = "error: your file and the project's both have a server s\n  choose one: --scope user or --scope project\n";
    run.check(2, "", expected);
    assert_eq!(harness.run(&["remove", "s", "--scope", "project"]).code, Some(0));
    assert!(harness.run(&["get", "s"]).out.contains("__sample calc"));
}

#[test]
fn a_removed_server_leaves_every_other_line_and_comment() {
    let harness = Harness::empty();
    let text = |entry: &str| {
        format!(
            "{{\n  // all\n  \"mcpServers\": {{\n    // about a\n{entry}    /* b */ \"b\": {{ \"command\": \"y\" }}, // last\n  }}\n}}\n"
        )
    };
    harness.configure(&text("    \"a\": { \"command\": \"x\" },\n"));
    let run = harness.run(&["remove", "a"]);
    run.check(0, &format!("removed a from {}\n", harness.user_file().display()), "");
    assert_eq!(fs::read_to_string(harness.user_file()).unwrap(), text(""));
    harness.run(&["remove", "bb"]).check(
        1,
        "",
        "error: there is no server \"bb\"\n  did you mean b?\n  configured: b\n",
    );
    let json = harness.run(&["remove", "b", "--json"]).json();
    assert_eq!((&json[0]["change"], &json[0]["servers"]), (&json!("removed"), &json!(["b"])));
    let run = harness.run(&["remove", "b"]);
    assert!(run.err.contains("no server is configured: `plugbay setup` moves"), "{}", run.err);
}

#[test]
fn several_servers_are_removed_at_once_or_none_of_them() {
    let harness = Harness::with(&samples());
    let before = fs::read_to_string(harness.user_file()).unwrap();
    assert_eq!(harness.run(&["remove", "calc", "clok"]).code, Some(1));
    assert_eq!(fs::read_to_string(harness.user_file()).unwrap(), before, "all or none");
    let expected = format!("removed calc, clock from {}\n", harness.user_file().display());
    harness.run(&["remove", "calc", "Clock", "calc"]).check(0, &expected, "");
    assert_eq!(
        harness.run(&["get", "clock"]).err,
        "error: there is no server \"clock\"\n  configured: notes\n"
    );
}

#[test]
fn an_unknown_server_has_one_message_and_one_exit_code_in_all_commands() {
    let harness = Harness::with(&samples());
    let expected =
        "error: there is no server \"clok\"\n  did you mean clock?\n  configured: calc, clock, notes\n";
    let commands: [&[&str]; 9] = [
        &["list", "clok"],
        &["get", "clok"],
        &["remove", "clok"],
        &["disable", "clok"],
        &["enable", "clok"],
        &["logs", "clok"],
        &["tools", "--server", "clok"],
        &["tokens", "--server", "clok"],
        &["call", "clok.now"],
    ];
    for command in commands {
        let run = harness.run(command);
        assert_eq!((run.code, run.err.as_str()), (Some(1), expected), "{command:?}");
    }
}

#[test]
fn an_entry_with_a_variable_that_is_not_set_is_shown_with_that_problem() {
    let harness = Harness::with(&json!({ "s": { "command": "x", "env": { "TOKEN": "${NOT_SET}" } } }));
    let run = harness.run(&["get", "s"]);
    assert_eq!(run.code, Some(0));
    assert!(run.out.contains("\n  problem  the variable `NOT_SET` is not set"), "{}", run.out);
}

#[test]
fn servers_are_disabled_and_enabled_again_without_a_trace() {
    let harness = Harness::empty();
    let text = format!(
        "{{ \"mcpServers\": {{\n  \"calc\": {{ \"command\": \"{0}\", \"args\": [\"__sample\", \"calc\"] }}, // one\n  \"clock\": {{ \"command\": \"{0}\", \"args\": [\"__sample\", \"clock\"], \"enabled\": false }}\n}} }}\n",
        program()
    );
    harness.configure(&text);
    let file = harness.user_file();
    let file = file.display();
    harness.run(&["disable", "calc", "Clock"]).check(0, &format!("disabled calc, clock in {file}\n"), "");
    assert_eq!(harness.run(&["list", "--json"]).json()["disabled"], json!(["calc", "clock"]));
    harness.run(&["disable", "calc"]).check(0, &format!("calc: already disabled in {file}\n"), "");
    harness.run(&["enable", "calc"]).check(0, &format!("enabled calc in {file}\n"), "");
    harness.run(&["enable", "clock"]).check(0, &format!("enabled clock in {file}\n"), "");
    let list = harness.run(&["list", "--json"]).json();
    assert_eq!((list["servers"].as_array().unwrap().len(), &list["disabled"]), (2, &json!([])));
    let run = harness.run(&["disable", "calc", "clok"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(harness.run(&["list", "--json"]).json()["disabled"], json!([]), "all or none");
}

#[test]
fn a_found_server_is_shown_and_not_changed() {
    let harness = Harness::empty();
    fs::create_dir_all(harness.path().join("found")).unwrap();
    let found = harness.path().join("found/.mcp.json");
    fs::write(&found, json!({ "mcpServers": { "calc": sample("calc") } }).to_string()).unwrap();
    harness.configure(&json!({ "discoverGlobs": [found] }).to_string());
    assert!(harness.run(&["get", "calc"]).out.contains("/found/.mcp.json:1\n"));
    let run = harness.run(&["disable", "calc"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.err.starts_with("error: the entry of calc is in ") && run.err.contains("/found/.mcp.json"),
        "{}",
        run.err
    );
}

#[test]
fn commands_name_the_servers_that_there_are() {
    let harness = Harness::with(&samples());
    for arguments in [&["forget", "--server", "clok"][..], &["auth", "login", "clok"]] {
        let run = harness.run(arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{}", run.err);
        for part in ["there is no server \"clok\"", "did you mean clock?", "configured: calc, clock, notes"] {
            assert!(run.err.contains(part), "{}", run.err);
        }
    }
    assert_eq!(harness.run(&["forget", "--server", "clock"]).code, Some(0));
}
