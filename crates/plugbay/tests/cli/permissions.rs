//! `plugbay permissions`.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Harness, samples};

fn harness() -> Harness {
    let harness = Harness::with(&samples());
    harness.run(&["tools"]);
    harness
}

#[test]
fn read_only_tools_are_allowed_and_the_rest_asked_about() {
    let harness = harness();
    let run = harness.run(&["permissions", "--host", "claude-code", "--allow-reading"]);
    let settings = run.json();
    let allowed: Vec<&str> = settings["permissions"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule.as_str().unwrap())
        .collect();
    assert!(allowed.contains(&"mcp__plugbay__search_tools"), "{allowed:?}");
    assert!(allowed.contains(&"mcp__plugbay__notes__search"), "{allowed:?}");
    assert!(!allowed.contains(&"mcp__plugbay__notes__delete"), "{allowed:?}");
    let hook = &settings["hooks"]["PreToolUse"][0];
    assert_eq!(
        hook["matcher"],
        "mcp__plugbay__execute_tool|mcp__plugbay__execute_read_tool|mcp__plugbay__natural_language|mcp__plugbay__run_code"
    );
    let command = hook["hooks"][0]["command"].as_str().unwrap();
    assert!(command.ends_with("plugbay permissions --hook --name plugbay --allow-reading"), "{command}");
}

/// The hook's decision about a call of one of our tools.
fn decision(harness: &Harness, tool: &str, input: &Value) -> String {
    decision_in(harness, "", tool, input)
}

/// The same in a folder of the harness.
fn decision_in(harness: &Harness, folder: &str, tool: &str, input: &Value) -> String {
    let asked = json!({
        "hook_event_name": "PreToolUse", "cwd": harness.path().join(folder),
        "tool_name": format!("mcp__plugbay__{tool}"), "tool_input": input,
    });
    let run = harness.run_with_input(&["permissions", "--hook", "--allow-reading"], &asked.to_string());
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    if run.out.is_empty() {
        return "none".to_owned();
    }
    let answer: Value = run.json();
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], "PreToolUse");
    answer["hookSpecificOutput"]["permissionDecision"].as_str().unwrap().to_owned()
}

#[test]
fn reading_a_stored_result_is_allowed_unless_a_rule_denies_it() {
    let harness = harness();
    let read = json!({ "name": "read_result", "arguments": { "result": "r_AAECAwQFBgcICQoLDA0ODw" } });
    assert_eq!(decision(&harness, "execute_tool", &read), "allow");
    write_rules(&harness, &json!({ "permissions": { "deny": ["mcp__plugbay__read_result"] } }));
    assert_eq!(decision(&harness, "execute_tool", &read), "deny");
}

#[test]
fn the_hook_reads_the_tools_that_a_script_names() {
    let harness = harness();
    let decide = |code: &str| decision(&harness, "run_code", &json!({ "code": code }));
    assert_eq!(decide("await tools.notes.search({ query: 'x' })"), "allow", "it only reads");
    assert_eq!(decide("await tools.notes.search({}); await tools.notes.delete({ id: 1 })"), "none");
    assert_eq!(
        decide("const name = 'search'; await tools.notes[name]({})"),
        "ask",
        "who knows what it calls?"
    );
    assert_eq!(decide("const all = tools; await all.notes.search({})"), "ask");
    assert_eq!(decide("await tools.nobody.knows({})"), "ask");
    assert_eq!(decide("let let = 1"), "none", "it will not run");
    write_rules(
        &harness,
        &json!({ "permissions": { "deny": ["mcp__notes__delete"], "allow": ["mcp__calc"] } }),
    );
    assert_eq!(decide("await tools.calc.evaluate({}); await tools['notes']['delete']({ id: 1 })"), "deny");
    assert_eq!(decide("await tools.notes__delete({ id: 1 })"), "deny");
    assert_eq!(decide("await tools.calc.evaluate({ expression: '1' })"), "allow");
    let hidden = "let a = 1, b = 1;\nawait tools.calc.evaluate({});\na <!--b /*\nawait tools.notes.delete({ id: 1 })\n/* */;\n1";
    assert_eq!(decide(hidden), "none", "it will not run");
    let dry = json!({ "code": "await tools.notes.delete({ id: 1 })", "dry_run": true });
    assert_eq!(decision(&harness, "run_code", &dry), "none", "it calls nothing");
}

fn write_rules(harness: &Harness, rules: &Value) {
    fs::create_dir_all(harness.path().join(".claude")).unwrap();
    fs::write(harness.path().join(".claude/settings.local.json"), rules.to_string()).unwrap();
}

#[test]
fn the_hook_applies_the_rules_of_the_host_to_the_inner_tool() {
    let harness = harness();
    let decide = |tool: &str| decision(&harness, "execute_tool", &json!({ "name": tool, "arguments": {} }));
    let tools = ["notes__search", "notes__delete", "calc__evaluate", "nobody__knows"];
    assert_eq!(tools.map(decide), ["allow", "none", "allow", "ask"]);
    let rules = json!({ "permissions": { "allow": ["mcp__notes"], "deny": ["mcp__plugbay__calc__*"] } });
    write_rules(&harness, &rules);
    assert_eq!(tools.map(decide), ["allow", "allow", "deny", "ask"]);
}

#[test]
fn permission_rules_of_a_project_hold_in_its_folders() {
    let harness = harness();
    write_rules(&harness, &json!({ "permissions": { "deny": ["mcp__notes__search"] } }));
    fs::create_dir_all(harness.path().join("sub/folder")).unwrap();
    let call = json!({ "name": "notes__search", "arguments": {} });
    assert_eq!(decision_in(&harness, "sub/folder", "execute_tool", &call), "deny");
}

#[test]
fn no_spelling_of_a_tool_name_gets_around_a_permission_rule() {
    let harness = harness();
    write_rules(
        &harness,
        &json!({ "permissions": { "allow": ["mcp__plugbay"], "deny": ["mcp__notes__delete"] } }),
    );
    for input in [
        json!({ "tool": "notes__delete", "arguments": { "id": 1 } }),
        json!({ "toolName": "notes__delete", "id": 1 }),
        json!({ "name": " notes__delete " }),
        json!({ "arguments": { "name": "notes__delete", "arguments": {} } }),
        json!({ "server": "notes", "name": "delete", "arguments": { "id": 1 } }),
        json!({ "tool": "notes__delete", "name": "any", "id": 1 }),
    ] {
        assert_eq!(decision(&harness, "execute_tool", &input), "deny", "{input}");
    }
}

#[test]
fn unknown_tools_are_not_allowed_by_the_hook() {
    let harness = Harness::empty();
    let notes = json!({ "command": "none", "plugbay": { "rename": { "wipe": "tidy" } } });
    let servers = json!({ "github": { "command": "none" }, "notes": notes });
    harness.configure(&json!({ "mode": "search", "mcpServers": servers }).to_string());
    write_rules(
        &harness,
        &json!({ "permissions": { "allow": ["mcp__plugbay"], "deny": ["mcp__github__delete_repo"] } }),
    );
    let decide = |input: &Value| decision(&harness, "execute_tool", input);
    for (input, expected) in [
        (json!({ "name": "github__search" }), "allow"),
        (json!({ "name": "github__delete_repo" }), "deny"),
        (json!({ "name": "Github__delete_repo" }), "deny"),
        (json!({ "name": "mcp__GitHub__delete-repo" }), "deny"),
        (json!({ "name": "delete_repo", "server": "GitHub" }), "deny"),
        (json!({ "name": "github__delete_repo", "arguments": { "x": 1 }, "tool": "github__x" }), "deny"),
        (json!({ "name": "github__Delete-Repo" }), "ask"),
        (json!({ "name": "github__delete_0123abcd" }), "ask"),
        (json!({ "name": "notes__tidy" }), "ask"),
        (json!({ "name": "delete-repo" }), "ask"),
        (json!({ "name": "nobody__knows" }), "ask"),
        (json!({ "arguments": {} }), "none"),
    ] {
        assert_eq!(decide(&input), expected, "{input}");
    }
    assert_eq!(decision(&harness, "natural_language", &json!({ "query": "tidy up" })), "ask");
}

#[test]
fn a_call_that_would_be_refused_is_not_allowed_by_the_hook() {
    let harness = harness();
    let call = json!({ "name": "notes__delete", "arguments": { "id": 1 }, "zzz": 3 });
    write_rules(&harness, &json!({ "permissions": { "allow": ["mcp__plugbay"] } }));
    assert_eq!(decision(&harness, "execute_tool", &call), "ask");
    write_rules(
        &harness,
        &json!({ "permissions": { "allow": ["mcp__plugbay"], "deny": ["mcp__notes__delete"] } }),
    );
    assert_eq!(decision(&harness, "execute_tool", &call), "deny");
}

#[test]
fn permission_rules_hold_within_the_suite_of_a_server_that_never_connected() {
    let harness = Harness::empty();
    let servers = json!({ "github": { "command": "none" } });
    harness.configure(&json!({ "mode": "suite", "mcpServers": servers }).to_string());
    write_rules(
        &harness,
        &json!({ "permissions": { "allow": ["mcp__plugbay"], "deny": ["mcp__github__delete_repo"] } }),
    );
    let decide = |input: Value| decision(&harness, "github_suite", &input);
    assert_eq!(decide(json!({ "subtool": "delete_repo" })), "deny");
    assert_eq!(decide(json!({ "subtool": "Delete-Repo", "args": {} })), "deny");
    assert_eq!(decide(json!({ "subtool": "search" })), "ask");
    assert_eq!(decide(json!({ "action": "introspect" })), "none");
}

#[test]
fn permission_rules_hold_within_a_suite() {
    let harness = Harness::empty();
    harness.configure(&json!({ "mode": "suite", "mcpServers": samples() }).to_string());
    harness.run(&["tools"]);
    let hook = &harness.run(&["permissions"]).json()["hooks"]["PreToolUse"][0];
    assert!(hook["matcher"].as_str().unwrap().contains("|mcp__plugbay__notes_suite"), "{hook}");
    write_rules(&harness, &json!({ "permissions": { "deny": ["mcp__notes__delete"] } }));
    let decide = |input: Value| decision(&harness, "notes_suite", &input);
    assert_eq!(decide(json!({ "action": "call", "subtool": "Delete", "args": { "id": 1 } })), "deny");
    assert_eq!(decide(json!({ "action": "call", "subtool": "list" })), "allow");
    assert_eq!(decide(json!({ "action": "introspect" })), "none");
}
