//! Permission rules of hosts after `plugbay setup`.

use std::fs;

use serde_json::{Value, json};

use super::home::Home;
use crate::harness::sample;

#[test]
fn permission_rules_of_another_project_get_their_counterparts_there() {
    let home = Home::new();
    home.ok(&["setup", "--yes"]);
    fs::create_dir_all(home.path("other/.git")).unwrap();
    home.put("other/.claude/settings.local.json", r#"{"permissions":{"deny":["mcp__notes__add"]}}"#);
    let mut command = home.harness.command(&["setup", "--yes"]);
    let status = command
        .current_dir(home.path("other"))
        .env("PATH", home.path("no-programs"))
        .output()
        .unwrap()
        .status;
    assert!(status.success());
    let rules = home.json("other/.claude/settings.local.json");
    assert_eq!(rules["permissions"]["deny"], json!(["mcp__notes__add", "mcp__plugbay__notes__add"]));
}

/// A home in which Claude Code, opencode and Cursor have servers of the same name.
fn three_memories() -> Home {
    let home = Home::new();
    let servers = |server: Value| json!({ "mcpServers": { "memory": server } }).to_string();
    home.put(".claude.json", &servers(sample("calc")));
    home.put(".claude/settings.json", r#"{"permissions":{"deny":["mcp__memory"]}}"#);
    home.put(".cursor/mcp.json", &servers(sample("notes")));
    let clock = sample("clock");
    let line = json!([clock["command"], clock["args"][0], clock["args"][1]]);
    let opencode = json!({
        "mcp": { "memory": { "type": "local", "command": line } },
        "permission": { "memory_*": "deny" },
    });
    home.put("config/opencode/opencode.jsonc", &opencode.to_string());
    home
}

#[test]
fn a_permission_rule_follows_the_server_of_its_own_host() {
    let home = three_memories();
    home.ok(&["setup", "--yes", "--hosts", "claude-code,opencode,cursor"]);
    let claude = home.json(".claude/settings.json");
    assert_eq!(claude["permissions"]["deny"], json!(["mcp__memory", "mcp__plugbay__memory__*"]));
    let opencode = home.json("config/opencode/opencode.jsonc");
    assert_eq!(opencode["permission"], json!({ "memory_*": "deny", "plugbay_memory-opencode__*": "deny" }));
    let before = home.contents();
    let run = home.ok(&["setup", "--yes", "--hosts", "claude-code,opencode,cursor"]);
    assert!(run.out.contains("Nothing to do"), "{}", run.out);
    assert_eq!(home.contents(), before);
}

#[test]
fn a_permission_rule_for_a_name_of_the_user_and_of_a_project_follows_both_servers() {
    let home = Home::new();
    let projects =
        json!({ home.path("work").to_str().unwrap(): { "mcpServers": { "memory": sample("clock") } } });
    let claude = json!({ "mcpServers": { "memory": sample("calc") }, "projects": projects });
    home.put(".claude.json", &claude.to_string());
    home.put(".claude/settings.json", r#"{"permissions":{"deny":["mcp__memory__add"]}}"#);
    home.ok(&["setup", "--yes", "--hosts", "claude-code"]);
    let rules = home.json(".claude/settings.json");
    let deny: Vec<&str> =
        rules["permissions"]["deny"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for rule in ["mcp__plugbay__memory__add", "mcp__plugbay__memory-claude-code__add"] {
        assert!(deny.contains(&rule), "{rule} in {deny:?}");
    }
}
