//! The files after undoing, and how files are changed so that undoing works.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use serde_json::json;

use super::home::{Home, SECRET, names};
use crate::harness::{program, sample};

#[test]
fn undo_restores_every_file_byte_for_byte() {
    let home = Home::new();
    let before = home.contents();
    home.ok(&["setup", "--yes"]);
    assert_ne!(home.contents(), before);
    let run = home.ok(&["setup", "--undo"]);
    assert_eq!(run.out.matches("as before, byte for byte").count(), 5, "{}", run.out);
    assert_eq!(home.contents(), before);
    assert!(
        !home.path(".claude/skills").exists() && !home.path("config/plugbay").exists(),
        "no folder is left"
    );
    assert!(home.ok(&["setup", "--undo"]).out.contains("Nothing to undo"));
    assert!(home.ok(&["setup", "--show"]).out.contains("changed no file"));
}

#[test]
fn undo_after_two_setups_restores_the_first_state() {
    let home = Home::new();
    let before = home.contents();
    home.ok(&["setup", "--yes", "--hosts", "codex"]);
    assert_eq!(home.text(".gemini/settings.json").as_bytes(), before[&home.path(".gemini/settings.json")]);
    home.ok(&["setup", "--yes"]);
    home.ok(&["setup", "--undo"]);
    assert_eq!(home.contents(), before);
}

#[test]
fn undo_keeps_what_the_user_changed_since() {
    let home = Home::new();
    home.ok(&["setup", "--yes"]);
    let mut claude = home.json(".claude.json");
    claude["numStartups"] = json!(4);
    claude["mcpServers"]["later"] = sample("notes");
    home.put(".claude.json", &format!("{claude:#}"));
    home.put(".codex/config.toml", &home.text(".codex/config.toml").replace("\"x\"", "\"y\""));
    let config = home.text("config/plugbay/config.jsonc").replacen('{', "{\n  \"mode\": \"all\",", 1);
    home.put("config/plugbay/config.jsonc", &config);
    let mut rules = home.json(".claude/settings.json");
    rules["permissions"]["deny"].as_array_mut().unwrap().push(json!("Bash(rm *)"));
    home.put(".claude/settings.json", &rules.to_string());

    let run = home.ok(&["setup", "--undo"]);
    assert_eq!(run.out.matches("without plugbay; later changes stay").count(), 4, "{}", run.out);
    let claude = home.json(".claude.json");
    assert_eq!(names(&claude["mcpServers"]), ["calc", "hello", "later"]);
    assert_eq!(
        (&claude["numStartups"], &claude["mcpServers"]["hello"]["env"]["KEY"]),
        (&json!(4), &json!(SECRET))
    );
    let codex = home.text(".codex/config.toml");
    assert!(
        codex.contains("model = \"y\"")
            && codex.contains("[mcp_servers.notes]")
            && !codex.contains("plugbay]"),
        "{codex}"
    );
    assert_eq!(home.json("config/plugbay/config.jsonc"), json!({ "mode": "all" }));
    assert_eq!(
        home.json(".claude/settings.json")["permissions"]["deny"],
        json!(["mcp__calc__evaluate", "Bash(rm *)"])
    );
}

#[test]
fn an_interrupted_setup_can_be_undone() {
    let home = Home::new();
    let before = home.contents();
    home.ok(&["setup", "--yes"]);
    // As if plugbay had been killed after recording its last change but before making it.
    let file = home.path("config/opencode/opencode.jsonc");
    fs::write(&file, &before[&file]).unwrap();
    home.ok(&["setup", "--undo"]);
    assert_eq!(home.contents(), before);
}

#[test]
fn two_setups_do_not_run_at_once() {
    let home = Home::new();
    let folder = home.path("state/plugbay/setup");
    fs::create_dir_all(&folder).unwrap();
    let lock = fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let run = home.run(&["setup", "--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("another plugbay is changing the files of hosts"), "{}", run.err);
}

#[test]
fn setup_follows_a_link_and_keeps_the_mode_of_a_file() {
    let home = Home::new();
    let (real, link) = (home.path("dotfiles/gemini.json"), home.path(".gemini/settings.json"));
    home.put("dotfiles/gemini.json", &home.text(".gemini/settings.json"));
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&real, &link).unwrap();
    let before = home.contents();
    home.ok(&["setup", "--yes"]);
    assert!(link.is_symlink() && home.text("dotfiles/gemini.json").contains("plugbay"));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    home.ok(&["setup", "--undo"]);
    assert!(link.is_symlink());
    assert_eq!(home.contents(), before);
}

/// A `claude` that records its calls, and rewrites the whole file in its own form, like the real one.
const CLAUDE: &str = r#"#!/bin/sh
echo "$PWD: $*" >> "$HOME/calls"
cp "$HOME/by-claude.json" "$HOME/.claude.json"
"#;

#[test]
fn claude_code_is_changed_by_its_own_command() {
    let home = Home::new();
    home.put("bin/claude", CLAUDE);
    fs::set_permissions(home.path("bin/claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let own = json!({ "command": program(), "args": ["serve"] });
    let written = json!({ "bookkeeping": 1, "mcpServers": { "plugbay": own } });
    home.put("by-claude.json", &written.to_string());
    let before = home.contents();
    let path = format!("{}:/usr/bin:/bin", home.path("bin").display());
    let run = home.run_with_path(&["setup", "--yes", "--hosts", "claude-code"], &path);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("changed by `claude mcp`, which writes it in its own form"), "{}", run.out);
    let calls = home.text("calls");
    assert!(calls.contains("mcp add-json --scope user plugbay {"), "{calls}");
    assert!(
        calls.contains("mcp remove --scope user hello")
            && calls.contains("/work: mcp remove --scope local clock"),
        "{calls}"
    );
    assert!(!calls.contains(SECRET), "a secret on a command line can be read by others: {calls}");
    let claude = home.json(".claude.json");
    assert_eq!(claude, written, "nobody but claude has written the file");

    fs::remove_file(home.path("calls")).unwrap();
    let run = home.run_with_path(&["setup", "--undo"], &path);
    assert!(run.out.contains("byte for byte"), "{}", run.out);
    assert_eq!(home.contents(), before);
}

#[test]
fn undo_after_claude_code_has_run_restores_its_servers_alone() {
    let home = Home::new();
    home.ok(&["setup", "--yes", "--hosts", "claude-code"]);
    let mut claude = home.json(".claude.json");
    claude["numStartups"] = json!(17);
    claude["tipsHistory"] = json!({ "a": 1 });
    home.put(".claude.json", &format!("{claude:#}"));
    home.ok(&["setup", "--undo"]);
    let claude = home.json(".claude.json");
    assert_eq!(names(&claude["mcpServers"]), ["calc", "hello"]);
    assert_eq!(names(&claude["projects"][home.path("work").to_str().unwrap()]["mcpServers"]), ["clock"]);
    assert_eq!((&claude["numStartups"], &claude["tipsHistory"]["a"]), (&json!(17), &json!(1)));
}

#[test]
fn undo_restores_a_host_file_that_was_deleted() {
    let home = Home::new();
    let before = home.contents();
    home.ok(&["setup", "--yes"]);
    fs::remove_file(home.path(".gemini/settings.json")).unwrap();
    home.ok(&["setup", "--undo"]);
    assert_eq!(home.contents(), before);
}

#[test]
fn undo_keeps_the_configuration_while_a_server_is_not_back() {
    let home = Home::new();
    let before = home.contents();
    home.ok(&["setup", "--yes"]);
    let (wired, own) = (home.text(".gemini/settings.json"), home.text("config/plugbay/config.jsonc"));
    let mut other = home.json(".gemini/settings.json");
    other["mcpServers"]["sums"] = json!({ "command": "other" });
    for (text, reason) in [
        ("{ broken".to_owned(), "this is not JSON"),
        (other.to_string(), "it has another sums since; rename or remove that one"),
    ] {
        home.put(".gemini/settings.json", &text);
        let run = home.run(&["setup", "--undo"]);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.out.contains(reason) && run.out.contains("its content before plugbay is in"), "{run:?}");
        assert!(run.out.contains("still needs it"), "{run:?}");
        assert_eq!(home.text(".gemini/settings.json"), text);
        assert_eq!(home.text("config/plugbay/config.jsonc"), own);
    }
    home.put(".gemini/settings.json", &wired);
    home.ok(&["setup", "--undo"]);
    assert_eq!(home.contents(), before);
}

#[test]
fn undo_without_the_backup_of_a_changed_file_leaves_its_host_wired() {
    let home = Home::new();
    home.ok(&["setup", "--yes", "--hosts", "gemini-cli"]);
    let changed = home.text(".gemini/settings.json").replace("\"x\"", "\"y\"");
    home.put(".gemini/settings.json", &changed);
    for file in fs::read_dir(home.path("state/plugbay/setup")).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "before") {
            fs::remove_file(file).unwrap();
        }
    }
    let run = home.run(&["setup", "--undo"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("its backup is gone"), "{run:?}");
    assert_eq!(home.text(".gemini/settings.json"), changed);
    assert_eq!(names(&home.json("config/plugbay/config.jsonc")["mcpServers"]), ["sums"]);
}

#[test]
fn undo_keeps_a_link_that_led_nowhere_and_removes_the_file_behind_it() {
    let home = Home::new();
    let link = home.path(".gemini/settings.json");
    fs::remove_file(&link).unwrap();
    symlink("../dotfiles/gemini.json", &link).unwrap();
    home.ok(&["setup", "--yes", "--hosts", "gemini-cli"]);
    assert!(home.text("dotfiles/gemini.json").contains("plugbay"));
    home.ok(&["setup", "--undo"]);
    assert!(link.is_symlink(), "the user's link stays");
    assert!(!home.path("dotfiles").exists());
}

#[test]
fn undo_removes_an_entry_of_the_configuration_with_later_additions() {
    let home = Home::new();
    let before = home.contents();
    home.ok(&["setup", "--yes"]);
    home.ok(&["disable", "calc"]);
    home.ok(&["setup", "--undo"]);
    assert_eq!(home.contents(), before);
}
