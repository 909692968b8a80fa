//! `plugbay import` from other gateways and from plugins.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Harness, sample};

fn write(harness: &Harness, file: &str, content: &Value) {
    let file = harness.path().join(file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content.to_string()).unwrap();
}

/// The configuration after an import from these sources.
#[track_caller]
fn imported(harness: &Harness, sources: &[&str]) -> Value {
    let run = harness.run(&[&["import", "--yes"], sources].concat());
    assert_eq!(run.code, Some(0), "{run:?}");
    let text = fs::read_to_string(harness.user_file()).unwrap();
    let text: String = text.lines().filter(|line| !line.starts_with("//")).collect();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn mcpflip_servers_are_imported_in_place_of_its_gateway() {
    let harness = Harness::empty();
    let servers =
        json!({ "chrome": { "command": "npx", "args": ["chrome-devtools-mcp"] }, "calc": sample("calc") });
    write(&harness, ".claude/mcpflip/servers.json", &servers);
    let gateway = json!({ "command": "node", "args": [harness.path().join(".claude/mcpflip/gateway.js")] });
    write(&harness, ".claude.json", &json!({ "mcpServers": { "mcpflip": gateway } }));
    let config = imported(&harness, &[]);
    assert_eq!(config["mode"], "activate");
    assert_eq!(config["mcpServers"], json!({ "chrome": servers["chrome"], "calc": servers["calc"] }));
}

#[test]
fn mcpzip_servers_come_with_the_settings_of_its_search() {
    let harness = Harness::empty();
    let file = json!({
        "gemini_api_key": "${GEMINI_KEY}",
        "search": { "default_limit": 7, "model": "gemini-x" },
        "idle_timeout_minutes": 9,
        "call_timeout_seconds": 33,
        "mcpServers": {
            "slack": { "command": "slack-mcp", "env": { "SLACK_TOKEN": "t" } },
            "todo": { "type": "http", "url": "https://todo.example/mcp", "headers": { "X-Key": "k" } },
        },
    });
    write(&harness, "config/compressed-mcp-proxy/config.json", &file);
    let config = imported(&harness, &["mcpzip"]);
    assert_eq!(config["mcpServers"], file["mcpServers"]);
    assert_eq!((&config["search"], &config["gemini_api_key"]), (&file["search"], &file["gemini_api_key"]));
    assert_eq!(config["defaults"], json!({ "idle": "9m", "timeout": "33s" }));
    assert_eq!(config["mode"], "search");
    let run = Harness::empty().run(&["list", "--config", harness.user_file().to_str().unwrap()]);
    assert!(!run.err.contains("unknown key"), "{}", run.err);
}

#[test]
fn settings_of_another_gateway_do_not_change_an_existing_configuration() {
    let harness = Harness::with(&json!({ "calc": sample("calc") }));
    write(
        &harness,
        "old.json",
        &json!({ "call_timeout_seconds": 5, "mcpServers": { "a": { "command": "a" } } }),
    );
    let config = imported(&harness, &["old.json"]);
    assert_eq!((config.get("mode"), config.get("defaults")), (None, None));
    assert_eq!(config["mcpServers"]["a"]["command"], "a");
}

#[test]
fn switchboard_servers_are_imported_with_their_folders() {
    let harness = Harness::empty();
    let suites = json!({ "suites": { "notes": { "expose": { "deny": ["delete_*"] } } } });
    write(&harness, "board/switchboard.config.json", &suites);
    let calc = json!({ "name": "calc", "command": { "cmd": "./run", "env": { "LEVEL": "${LEVEL}" } } });
    write(&harness, "board/.switchboard/mcps/calc/.mcp.json", &calc);
    let wrapper =
        json!({ "name": "notes", "command": { "cmd": "node", "args": ["notes-claude-wrapper.mjs"] } });
    write(&harness, "board/.switchboard/mcps/notes/.mcp.json", &wrapper);
    let original = json!({ "name": "notes", "command": { "cmd": "npx", "args": ["notes"] } });
    write(&harness, "board/.switchboard/mcps/notes/original/.mcp.json", &original);
    let config = imported(&harness, &["board/switchboard.config.json"]);
    let folder = |name: &str| harness.path().join("board/.switchboard/mcps").join(name);
    let expected = json!({
        "calc": { "command": "./run", "env": { "LEVEL": "${LEVEL}" }, "cwd": folder("calc") },
        "notes": {
            "command": "npx", "args": ["notes"], "cwd": folder("notes/original"),
            "plugbay": { "deny": ["delete_*"] },
        },
    });
    assert_eq!((&config["mcpServers"], &config["mode"]), (&expected, &json!("suite")));
}

#[test]
fn local_servers_of_a_client_side_proxy_start_in_the_project() {
    let harness = Harness::empty();
    let file = json!({
        "remoteTools": ["web_search"],
        "localServers": {
            "files": { "command": "npx", "args": ["fs-mcp"], "tools": ["read_file"], "workingDirectory": "project_root" },
            "git": { "command": "npx", "args": ["git-mcp"], "tools": ["git_status", "git_diff"] },
        },
    });
    write(&harness, "servers-config.json", &file);
    let run = harness.run(&["import", "--dry-run", "servers-config.json"]);
    assert!(run.out.contains("this file does not say the address of their remote"), "{}", run.out);
    let config = imported(&harness, &["servers-config.json"]);
    let expected = json!({
        "files": { "command": "npx", "args": ["fs-mcp"], "cwd": "${workspaceFolder}", "plugbay": { "allow": ["read_file"] } },
        "git": { "command": "npx", "args": ["git-mcp"], "plugbay": { "allow": ["git_status", "git_diff"] } },
    });
    assert_eq!((&config["mcpServers"], &config["mode"]), (&expected, &json!("all")));
    assert_eq!(config["remoteTools"], json!(["web_search"]));

    let yaml = "servers:\n  web:\n    command: /usr/bin/web\n    env:\n      KEY: \"${WEB_KEY}\"\n  db:\n    url: postgresql://db:5432/mcp\n";
    fs::write(harness.path().join("proxy.yaml"), yaml).unwrap();
    let run = harness.run(&["import", "--dry-run", "proxy.yaml"]);
    assert!(
        run.out.contains("`db` has an address that is not one of an MCP server over HTTP"),
        "{}",
        run.out
    );
    assert!(run.out.contains("WEB_KEY (not set)") && !run.out.contains("5432"), "{}", run.out);
}

#[test]
fn plugins_of_claude_code_are_named_and_imported_when_asked_for() {
    let harness = Harness::empty();
    let root = harness.path().join(".claude/plugins/cache/market/tools/1.0");
    let relative = ".claude/plugins/cache/market/tools/1.0";
    let servers = json!({ "mcpServers": { "db": {
        "command": "${CLAUDE_PLUGIN_ROOT}/bin/db", "args": ["--config", "${CLAUDE_PLUGIN_ROOT}/c.json"],
    } } });
    write(&harness, &format!("{relative}/.mcp.json"), &servers);
    write(&harness, &format!("{relative}/.claude-plugin/plugin.json"), &json!({ "name": "tools" }));
    let off = harness.path().join(".claude/plugins/cache/market/off/1.0");
    let inline = json!({ "name": "off", "mcpServers": { "quiet": { "command": "quiet" } } });
    write(&harness, ".claude/plugins/cache/market/off/1.0/.claude-plugin/plugin.json", &inline);
    let installed = json!({ "version": 2, "plugins": {
        "tools@market": [{ "scope": "user", "installPath": root, "version": "1.0" },
                         { "scope": "project", "projectPath": "/other", "installPath": "/other", "version": "1.0" }],
        "off@market": [{ "scope": "user", "installPath": off, "version": "1.0" }],
    } });
    write(&harness, ".claude/plugins/installed_plugins.json", &installed);
    write(&harness, ".claude/settings.json", &json!({ "enabledPlugins": { "off@market": false } }));
    write(&harness, ".cursor/mcp.json", &json!({ "mcpServers": { "calc": sample("calc") } }));

    let run = harness.run(&["import", "--dry-run"]);
    assert!(
        run.out.contains("plugbay import plugins") && run.out.contains("is created with 1 server\n"),
        "{}",
        run.out
    );
    let config = imported(&harness, &["plugins"]);
    let expected = json!({
        "db": {
            "command": root.join("bin/db"), "args": ["--config", root.join("c.json")],
            "env": { "CLAUDE_PLUGIN_ROOT": root },
        },
        "quiet": { "command": "quiet", "env": { "CLAUDE_PLUGIN_ROOT": off }, "disabled": true },
    });
    assert_eq!(config["mcpServers"], expected);
}

#[test]
fn servers_of_an_agent_plugin_run_in_its_folder() {
    let harness = Harness::empty();
    let schema = |kind: &str| format!("https://agent-plugins.org/schemas/1.0.0/{kind}.schema.json");
    let root = harness.path().join(".agents/plugins/devtools");
    write(
        &harness,
        ".agents/plugins/devtools/plugin.json",
        &json!({ "$schema": schema("plugin"), "name": "devtools" }),
    );
    let servers = json!({ "$schema": schema("mcp"), "mcpServers": {
        "lint": { "type": "stdio", "command": "./bin/lint", "args": ["--data", "${PLUGIN_DATA}/l"], "env": { "C": "${PLUGIN_ROOT}/c" } },
        "web": { "type": "streamable-http", "url": "https://web.example/mcp" },
        "out": { "type": "stdio", "command": "./../../evil" },
        "path": { "type": "stdio", "command": "bin/x" },
        "folder": { "type": "stdio", "command": "x", "cwd": "/tmp" },
        "untyped": { "command": "x" },
        "mixed": { "type": "stdio", "url": "https://x.example" },
        "reserved": { "type": "stdio", "command": "x", "env": { "PLUGIN_ROOT": "/" } },
    } });
    write(&harness, ".agents/plugins/devtools/mcp.json", &servers);
    let run = harness.run(&["import", "plugins", "--dry-run", "--json"]);
    let problems = run.json()["problems"].clone();
    let mut rejected: Vec<&str> =
        problems.as_array().unwrap().iter().map(|problem| problem["server"].as_str().unwrap()).collect();
    rejected.sort_unstable();
    assert_eq!(rejected, ["folder", "mixed", "out", "path", "reserved", "untyped"], "{problems}");
    let data = harness.path().join(".agents/plugins/data/devtools");
    let expected = json!({
        "lint": {
            "command": root.join("bin/lint"), "args": ["--data", data.join("l")], "cwd": root,
            "env": { "C": root.join("c"), "PLUGIN_DATA": data, "PLUGIN_ROOT": root },
        },
        "web": { "type": "http", "url": "https://web.example/mcp" },
    });
    assert_eq!(imported(&harness, &[".agents/plugins/devtools"])["mcpServers"], expected);
}

#[test]
fn an_agent_plugin_of_another_version_is_rejected() {
    let harness = Harness::empty();
    let schema = |kind: &str| format!("https://agent-plugins.org/schemas/9.0.0/{kind}.schema.json");
    write(&harness, "p/plugin.json", &json!({ "$schema": schema("plugin"), "name": "p" }));
    write(
        &harness,
        "p/mcp.json",
        &json!({ "$schema": schema("mcp"), "mcpServers": { "a": { "type": "stdio", "command": "a" } } }),
    );
    let run = harness.run(&["import", "p", "--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("plugbay knows Agent Plugins 1.0.0"), "{}", run.err);
    fs::create_dir(harness.path().join("empty")).unwrap();
    let run = harness.run(&["import", "empty"]);
    assert!(run.err.contains("not the folder of a plugin"), "{}", run.err);
}
