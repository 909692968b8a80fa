//! Hosts and servers that setup leaves alone, and its messages about them.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;

use super::home::{Home, names, results};
use crate::harness::sample;

#[test]
fn a_foreign_entry_named_plugbay_stays_and_its_host_is_not_wired() {
    let foreign = json!({ "command": "node", "args": ["/nonexistent"] });
    for entry in [foreign, json!({ "command": "x", "url": "https://x.example" })] {
        let home = Home::new();
        let text = json!({ "mcpServers": { "plugbay": entry, "sums": sample("calc") } }).to_string();
        home.put(".gemini/settings.json", &text);
        for arguments in [&["setup", "--yes"][..], &["wire", "gemini-cli"], &["unwire", "gemini-cli"]] {
            let run = home.run(arguments);
            assert_eq!(home.text(".gemini/settings.json"), text, "{arguments:?}");
            let is_told = run.out.contains("its entry `plugbay` does not start plugbay; rename that entry");
            assert_eq!((run.code == Some(1), is_told), (arguments[0] != "unwire", arguments[0] != "unwire"));
        }
    }
}

#[test]
fn a_server_whose_host_is_left_alone_does_not_move() {
    for text in ["{\"mcpServers\":{\"sums\":S,\"sums\":S}}", "null", "[]"] {
        let home = Home::new();
        let text = text.replace('S', &sample("calc").to_string());
        home.put(".gemini/settings.json", &text);
        let run = home.run(&["setup", "--yes", "--hosts", "gemini-cli"]);
        assert_eq!(run.code, Some(1), "{text}: {run:?}");
        assert!(!run.out.contains("moved") && !run.out.contains("So that your hosts"), "{text}: {run:?}");
        assert_eq!(home.text(".gemini/settings.json"), text);
        assert!(!home.path("config/plugbay").exists(), "{text}");
    }
}

#[test]
fn a_server_of_a_read_only_host_file_stays_and_is_not_configured() {
    let home = Home::new();
    fs::set_permissions(home.path(".codex/config.toml"), fs::Permissions::from_mode(0o444)).unwrap();
    let run = home.run(&["setup", "--yes", "--json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let report = run.json();
    assert_eq!((results(&report)["notes"], results(&report)["calc"]), ("stays", "moves"));
    assert_eq!(names(&home.json("config/plugbay/config.jsonc")["mcpServers"]), ["calc", "clock", "hello"]);

    let home = Home::new();
    let before = home.contents();
    fs::set_permissions(home.path(".codex/config.toml"), fs::Permissions::from_mode(0o444)).unwrap();
    let run = home.run(&["setup", "--yes", "--hosts", "codex"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("stays: its host could not be wired"), "{run:?}");
    assert!(run.out.ends_with("No host has been wired.\n"), "{run:?}");
    assert_eq!(home.contents(), before);
}

#[test]
fn setup_after_the_configuration_was_deleted_names_undo() {
    let home = Home::new();
    let before = home.contents();
    home.ok(&["setup", "--yes"]);
    fs::remove_file(home.path("config/plugbay/config.jsonc")).unwrap();
    let run = home.run(&["setup", "--yes"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.err.contains("has no server any more") && run.err.contains("setup --undo"), "{run:?}");
    home.ok(&["setup", "--undo"]);
    assert_eq!(home.contents(), before);
}
