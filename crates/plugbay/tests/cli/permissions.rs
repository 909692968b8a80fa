//! `plugbay permissions`.

use std::fs;

use serde_json::{Value, json};

use crate::world::{World, samples};

fn world() -> World {
    let world = World::with(&samples());
    world.run(&["tools"]);
    world
}

#[test]
fn what_only_reads_is_allowed_and_the_rest_asked_about() {
    let world = world();
    let run = world.run(&["permissions", "--host", "claude-code"]);
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
    assert_eq!(hook["matcher"], "mcp__plugbay__execute_tool|mcp__plugbay__execute_read_tool");
    let command = hook["hooks"][0]["command"].as_str().unwrap();
    assert!(command.ends_with("plugbay permissions --hook --name plugbay"), "{command}");
}

#[test]
fn the_hook_applies_the_rules_of_the_host_to_the_inner_tool() {
    let world = world();
    let decide = |tool: &str| {
        let asked = json!({
            "hook_event_name": "PreToolUse", "cwd": world.path(), "tool_name": "mcp__plugbay__execute_tool",
            "tool_input": { "name": tool, "arguments": {} },
        });
        let run = world.run_with_input(&["permissions", "--hook"], &asked.to_string());
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
        if run.out.is_empty() {
            return "none".to_owned();
        }
        let answer: Value = run.json();
        assert_eq!(answer["hookSpecificOutput"]["hookEventName"], "PreToolUse");
        answer["hookSpecificOutput"]["permissionDecision"].as_str().unwrap().to_owned()
    };
    let tools = ["notes__search", "notes__delete", "calc__evaluate", "nobody__knows"];
    assert_eq!(tools.map(decide), ["allow", "none", "allow", "none"]);
    fs::create_dir_all(world.path().join(".claude")).unwrap();
    let rules = json!({ "permissions": { "allow": ["mcp__notes"], "deny": ["mcp__plugbay__calc__*"] } });
    fs::write(world.path().join(".claude/settings.local.json"), rules.to_string()).unwrap();
    assert_eq!(tools.map(decide), ["allow", "allow", "deny", "none"]);
}
