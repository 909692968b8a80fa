//! `plugbay setup`, `plugbay wire` and `plugbay unwire`, in homes with the files of several hosts.

mod cost;
mod home;
mod left_alone;
mod permissions;
mod printed;
mod undo;

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use self::home::{Home, SECRET, names, results};
use crate::harness::{Harness, program, sample};

#[test]
fn setup_moves_every_server_and_wires_every_host() {
    let home = Home::new();
    let report = home.ok(&["setup", "--yes", "--json"]).json();
    let moved = [("calc", "moves"), ("clock", "moves"), ("hello", "moves"), ("notes", "moves")];
    assert_eq!(results(&report), BTreeMap::from(moved));
    let states: Vec<(&str, i64)> = report["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| (host["state"].as_str().unwrap(), host["tools"].as_i64().unwrap()))
        .collect();
    assert_eq!(states, [("wired", 20); 4], "{report:#}");

    let config = home.json("config/plugbay/config.jsonc");
    assert_eq!(names(&config["mcpServers"]), ["calc", "clock", "hello", "notes"]);
    assert_eq!(config["mcpServers"]["clock"]["disabled"], Value::Null, "one of its hosts has it enabled");
    let claude = home.json(".claude.json");
    assert_eq!(names(&claude["mcpServers"]), ["plugbay"]);
    assert_eq!(claude["numStartups"], 3);
    assert_eq!(claude["projects"][home.path("work").to_str().unwrap()]["mcpServers"], json!({}));
    assert_eq!(names(&home.json(".gemini/settings.json")["mcpServers"]), ["plugbay"]);
    let codex = home.text(".codex/config.toml");
    assert!(
        codex.starts_with("# my model\nmodel = \"x\"\n\n[mcp_servers.plugbay]\n") && !codex.contains("notes"),
        "{codex}"
    );
    let opencode = home.text("config/opencode/opencode.jsonc");
    assert!(opencode.contains("// by hand") && opencode.contains("\"plugbay\""), "{opencode}");
    let rules = home.json(".claude/settings.json");
    assert_eq!(rules["permissions"]["deny"], json!(["mcp__calc__evaluate", "mcp__plugbay__calc__evaluate"]));
    let skill = home.path(".claude/skills/plugbay/SKILL.md");
    assert_eq!(fs::read_link(skill).unwrap(), home.path("config/plugbay/SKILL.md"));
    home.harness.wait_for_processes();
}

#[test]
fn setup_shows_diffs_and_tables_and_no_secret() {
    let home = Home::new();
    let run = home.ok(&["setup", "--yes"]);
    for part in [
        "\n-    \"calc\": {",
        "\n+[mcp_servers.plugbay]\n",
        "mcp__plugbay__calc__evaluate",
        "\"KEY\": \"•••\"",
        "\nhello   claude-code              moved\n",
        "\ncalc    claude-code, gemini-cli  moved\n",
        "answers, 20 tools",
        "To get back: plugbay setup --undo\n",
    ] {
        assert!(run.out.contains(part), "{part:?} in {}", run.out);
    }
    assert!(!run.out.contains(SECRET) && !run.err.contains(SECRET), "{run:?}");
    let shown = home.ok(&["setup", "--show"]).out;
    assert!(
        shown.contains("[mcp_servers.plugbay]") && shown.contains("--undo restores it byte for byte"),
        "{shown}"
    );
    assert!(!shown.contains(SECRET), "{shown}");
}

#[test]
fn a_dry_run_of_setup_changes_nothing() {
    let home = Home::new();
    let before = home.contents();
    let run = home.ok(&["setup", "--dry-run"]);
    assert!(
        run.out.contains("works, moves") && run.out.contains("Nothing has been changed yet."),
        "{}",
        run.out
    );
    assert_eq!(home.contents(), before);
    assert!(!home.path("state/plugbay/setup").exists());
}

#[test]
fn setup_without_a_terminal_needs_a_yes() {
    let home = Home::new();
    let before = home.contents();
    let run = home.run(&["setup"]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(
        run.err.contains("plugbay setup --dry-run") && run.err.contains("plugbay setup --yes"),
        "{}",
        run.err
    );
    assert_eq!(home.contents(), before);
}

#[test]
fn a_second_setup_has_nothing_to_do() {
    let home = Home::new();
    home.ok(&["setup", "--yes"]);
    let before = home.contents();
    let run = home.ok(&["setup", "--yes"]);
    assert!(run.out.contains("Nothing to do"), "{}", run.out);
    assert_eq!(home.contents(), before);
}

#[test]
fn a_server_that_does_not_work_stays_in_its_host() {
    let home = Home::new();
    let servers = json!({
        "bad": sample("broken"),
        "calc": sample("calc"),
        "hub": { "command": program(), "args": ["__sample", "notes"], "env": { "TOKEN": "${NO_SUCH_TOKEN}" } },
        "two": { "command": "x", "url": "https://x.example" },
    });
    home.put(".claude.json", &json!({ "mcpServers": servers }).to_string());
    let run = home.ok(&["setup", "--yes", "--hosts", "claude-code"]);
    for part in [
        "\nbad     claude-code  stays: exit code 3 before it answered\n",
        "\nhub     claude-code  stays: needs the variable NO_SUCH_TOKEN\n",
        "\ntwo     claude-code  stays: has both `command` and `url`; keep one of them\n",
        "  try     set NO_SUCH_TOKEN, then run `plugbay setup` again\n",
        "ECONNREFUSED",
    ] {
        assert!(run.out.contains(part), "{part:?} in {}", run.out);
    }
    assert_eq!(names(&home.json(".claude.json")["mcpServers"]), ["bad", "hub", "plugbay", "two"]);
    assert_eq!(names(&home.json("config/plugbay/config.jsonc")["mcpServers"]), ["calc"]);
}

#[test]
fn a_broken_file_and_a_read_only_file_of_hosts_are_left_alone() {
    let home = Home::new();
    home.put(".gemini/settings.json", "{ broken");
    fs::set_permissions(home.path(".codex/config.toml"), fs::Permissions::from_mode(0o444)).unwrap();
    let codex = home.text(".codex/config.toml");
    let run = home.run(&["setup", "--yes"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.out.contains("this is not JSON") && run.out.contains("plugbay has left it alone"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("the file is read-only") && run.out.contains("its files are as they were before"),
        "{}",
        run.out
    );
    assert_eq!(
        (home.text(".gemini/settings.json"), home.text(".codex/config.toml")),
        ("{ broken".to_owned(), codex)
    );
    assert_eq!(names(&home.json(".claude.json")["mcpServers"]), ["plugbay"], "the others are wired");
}

#[test]
fn the_servers_of_a_projects_own_file_stay() {
    let home = Home::new();
    let shared = json!({ "mcpServers": { "shared": sample("notes") } }).to_string();
    home.put("work/.mcp.json", &shared);
    let run = home.ok(&["setup", "--yes", "--hosts", "claude-code"]);
    assert!(run.out.contains("stays: it is in the project's file, which others use too"), "{}", run.out);
    assert_eq!(home.text("work/.mcp.json"), shared);
}

#[test]
fn wire_adds_an_entry_and_unwire_takes_it_out() {
    let home = Home::new();
    let before = home.contents();
    let run = home.ok(&["wire", "codex", "gemini-cli"]);
    assert!(
        run.out.contains("+[mcp_servers.plugbay]\n") && run.out.contains("Codex is wired; plugbay answers"),
        "{}",
        run.out
    );
    assert!(home.text(".codex/config.toml").contains("[mcp_servers.notes]"), "its servers stay");
    assert!(home.ok(&["wire", "codex"]).out.contains("Codex had plugbay's entry already"));
    assert_eq!(home.ok(&["unwire", "codex", "gemini-cli"]).out.matches("byte for byte").count(), 2);
    assert_eq!(home.contents(), before);
    assert!(home.ok(&["unwire", "codex"]).out.contains("Nothing to undo"));

    home.put(
        ".codex/config.toml",
        "[mcp_servers.plugbay]\ncommand = \"plugbay\"\nargs = [\"serve\"]\n\n[tui]\ntheme = \"x\"\n",
    );
    home.ok(&["unwire", "codex"]);
    assert!(!home.text(".codex/config.toml").contains("plugbay"), "an entry that the user wrote goes, too");
}

#[test]
fn a_host_that_nobody_knows_is_a_usage_error() {
    let home = Home::new();
    for arguments in [&["setup", "--yes", "--hosts", "emacs"][..], &["wire", "emacs"], &["unwire", "emacs"]] {
        let run = home.run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}");
        assert!(
            run.err.contains("plugbay knows no host \"emacs\"") && run.err.contains("claude-code, "),
            "{}",
            run.err
        );
    }
}

#[test]
fn setup_on_a_machine_without_hosts_names_the_remedy() {
    let harness = Harness::empty();
    let run = harness.run(&["setup", "--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("found no MCP host") && run.err.contains("--hosts claude-code"), "{}", run.err);
}

#[test]
fn a_host_whose_plugbay_does_not_answer_gets_its_files_back() {
    let home = Home::new();
    // A gateway with a program of this name that ends at once.
    home.put("bin/plugbay", "#!/bin/sh\nexit 7\n");
    fs::set_permissions(home.path("bin/plugbay"), fs::Permissions::from_mode(0o755)).unwrap();
    let own = format!(
        "[mcp_servers.plugbay]\ncommand = \"{}\"\nargs = [\"serve\"]\n\n",
        home.path("bin/plugbay").display()
    );
    let codex =
        format!("{own}{}", home.text(".codex/config.toml").replace("# my model\nmodel = \"x\"\n\n", ""));
    home.put(".codex/config.toml", &codex);
    let run = home.run(&["setup", "--yes", "--hosts", "codex"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("does not answer: exit code 7"), "{}", run.out);
    assert_eq!(home.text(".codex/config.toml"), codex);
}

#[test]
fn plugbay_joins_the_allowed_servers_of_gemini() {
    let home = Home::new();
    let settings = json!({ "mcp": { "allowed": ["sums"] }, "mcpServers": { "sums": sample("calc") } });
    home.put(".gemini/settings.json", &settings.to_string());
    let before = home.text(".gemini/settings.json");
    home.ok(&["setup", "--yes", "--hosts", "gemini-cli"]);
    assert_eq!(home.json(".gemini/settings.json")["mcp"]["allowed"], json!(["sums", "plugbay"]));
    home.ok(&["setup", "--undo"]);
    assert_eq!(home.text(".gemini/settings.json"), before);
}
