//! `plugbay import`, `plugbay migrate` and `plugbay init`, in homes with the files of several hosts.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use serde_json::{Value, json};

use crate::harness::{Harness, Run, sample};

const SECRET: &str = "sesame-4711";

/// A home with servers in Claude Code, Cursor, Codex, Zed and VS Code.
fn home() -> Harness {
    let harness = Harness::empty();
    let calc = sample("calc");
    let claude = json!({
        "numStartups": 3,
        "mcpServers": {
            "calc": calc,
            "github": { "type": "stdio", "command": "gh-mcp", "args": ["stdio"], "env": { "TOKEN": SECRET } },
            "plugbay": { "command": "/opt/plugbay", "args": ["serve"] },
        },
        "projects": {
            "/elsewhere/shop": { "mcpServers": { "shop-db": { "command": "db" } } },
        },
    });
    write(&harness, ".claude.json", &claude.to_string());
    let cursor = json!({ "mcpServers": {
        "calculator": calc,
        "github": { "command": "gh-mcp", "args": ["stdio"], "env": { "TOKEN": "${env:GITHUB_TOKEN}" } },
    } });
    write(&harness, ".cursor/mcp.json", &cursor.to_string());
    let codex = "[mcp_servers.clock]\ncommand = \"clock-mcp\"\nenabled = false\n\n\
                 [mcp_servers.\"team docs.v2\"]\nurl = \"https://docs.example/mcp\"\n";
    write(&harness, ".codex/config.toml", codex);
    let zed = "// mine\n{ \"context_servers\": { \"broken\": { \"command\": 7 } }, \"theme\": \"x\" }";
    write(&harness, "config/zed/settings.json", zed);
    harness
}

fn write(harness: &Harness, file: &str, text: &str) {
    let file = harness.path().join(file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn config(harness: &Harness) -> Value {
    json_in(&harness.user_file())
}

fn json_in(file: &Path) -> Value {
    let text = fs::read_to_string(file).unwrap();
    let text: String = text.lines().filter(|line| !line.starts_with("//")).collect();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn names(config: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = config["mcpServers"].as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Runs plugbay in a repository below the home folder.
fn run_in(harness: &Harness, folder: &str, arguments: &[&str]) -> Run {
    let folder = harness.path().join(folder);
    fs::create_dir_all(folder.join(".git")).unwrap();
    Run::of(harness.command(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap())
}

#[test]
fn servers_of_all_hosts_become_one_configuration() {
    let harness = home();
    let run = harness.run(&["import", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let config = config(&harness);
    assert_eq!(names(&config), ["calc", "clock", "github", "github-cursor", "team-docs-v2"]);
    let servers = &config["mcpServers"];
    assert_eq!(servers["github"]["env"]["TOKEN"], SECRET);
    assert_eq!(servers["github-cursor"]["env"]["TOKEN"], "${GITHUB_TOKEN}");
    assert_eq!(servers["clock"]["disabled"], true);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = harness.user_file();
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700), "it has keys in it");

    let calc = ["call", "calc.evaluate", "expression=6 * 7"];
    let run = Run::of(harness.command(&calc).env("GITHUB_TOKEN", "x").output().unwrap());
    run.check(0, "42\n", "");
}

#[test]
fn the_table_of_an_import_tells_origins_results_and_needs() {
    let harness = home();
    let run = harness.run(&["import", "--dry-run"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), "note: nothing was written\n"));
    let home = harness.path().display().to_string();
    let expected = "\
HOME/config/plugbay/config.jsonc is created with 5 servers

SERVER         FROM                 RESULT         NEEDS
calc           claude-code, cursor  new
github         claude-code          new
clock          codex                new, disabled
team-docs-v2   codex                new            perhaps a login
github-cursor  cursor               new            GITHUB_TOKEN (not set)
plugbay        claude-code          skipped

Notes
  calc: cursor calls it \"calculator\"
  team-docs-v2: was \"team docs.v2\"; names have letters, digits, `-` and single `_`, at most 32 characters
  github-cursor: was \"github\"; another server has that name
  plugbay: leads to plugbay itself, in claude-code

Not imported
  HOME/config/zed/settings.json: `broken` has a `command` that is not a list

Servers of other projects stay there
  shop-db: cd /elsewhere/shop && plugbay import claude-code

";
    assert_eq!(run.out.replace(&home, "HOME"), expected);
    assert!(!harness.user_file().exists());
    let run = Run::of(harness.command(&["import", "--dry-run"]).env("GITHUB_TOKEN", "x").output().unwrap());
    assert!(!run.out.contains("GITHUB_TOKEN"), "it is set: {}", run.out);
}

#[test]
fn a_second_import_changes_no_byte() {
    let harness = home();
    harness.run(&["import", "--yes"]);
    let first = fs::read(harness.user_file()).unwrap();
    let run = harness.run(&["import", "--yes"]);
    assert_eq!(run.code, Some(0));
    assert!(
        run.out.contains("config.jsonc stays as it is") && run.out.contains("already there"),
        "{}",
        run.out
    );
    assert_eq!(fs::read(harness.user_file()).unwrap(), first);
}

#[test]
fn an_import_prints_no_secret() {
    let harness = home();
    for arguments in
        [&["import", "--dry-run"][..], &["import", "--dry-run", "--json"], &["import", "--yes", "--json"]]
    {
        let run = harness.run(arguments);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(!run.out.contains(SECRET) && !run.err.contains(SECRET), "{run:?}");
    }
}

#[test]
fn an_existing_configuration_keeps_its_comments_and_servers() {
    let harness = home();
    let mine = "{\n  // my own\n  \"mode\": \"search\",\n  \"mcpServers\": {\n    \"calc\": { \"command\": \"mine\" }, // keep\n  }\n}\n";
    harness.configure(mine);
    let run = harness.run(&["import", "cursor", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let text = fs::read_to_string(harness.user_file()).unwrap();
    assert!(
        text.starts_with("{\n  // my own\n  \"mode\": \"search\",\n") && text.contains("// keep"),
        "{text}"
    );
    assert!(
        text.contains("\"calc\": { \"command\": \"mine\" }") && text.contains("\"calculator\""),
        "{text}"
    );
}

#[test]
fn an_import_asks_before_it_writes() {
    let harness = home();
    let run = harness.run(&["import"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.err.contains("plugbay can ask only in a terminal") && run.err.contains("--yes"),
        "{}",
        run.err
    );
    assert!(!harness.user_file().exists());
}

#[test]
fn a_broken_configuration_is_not_overwritten() {
    let harness = home();
    harness.configure("{ \"mcpServers\": ");
    let run = harness.run(&["import", "--yes"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("config.jsonc: this is not JSON"), "{}", run.err);
    assert_eq!(fs::read_to_string(harness.user_file()).unwrap(), "{ \"mcpServers\": ");
}

#[test]
fn an_import_from_an_unknown_source_names_the_known_ones() {
    let run = home().run(&["import", "emacs"]);
    assert_eq!(run.code, Some(2));
    assert!(
        run.err.contains("there is no file and no host \"emacs\"") && run.err.contains("cursor"),
        "{}",
        run.err
    );
    let run = Harness::empty().run(&["import"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("no host on this machine has servers"), "{}", run.err);
}

#[test]
fn servers_of_a_project_go_to_its_own_file() {
    let harness = home();
    let shop = harness.path().join("shop");
    let claude = json!({
        "mcpServers": { "calc": sample("calc") },
        "projects": {
            shop.to_str().unwrap(): { "mcpServers": { "notes": sample("notes"), "same": sample("calc") } },
            "/other": { "mcpServers": { "far": { "command": "far" } } },
        },
    });
    write(&harness, ".claude.json", &claude.to_string());
    let run = run_in(&harness, "shop", &["import", "claude-code", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(names(&config(&harness)), ["calc"]);
    assert_eq!(names(&json_in(&shop.join(".plugbay.jsonc"))), ["notes"], "the other is the user's");
    assert!(run.out.contains("far: cd /other && plugbay import claude-code"), "{}", run.out);
    let listed = run_in(&harness, "shop", &["list", "--json"]).json();
    assert_eq!(listed["servers"].as_array().unwrap().len(), 2, "its file is approved: {listed}");
}

#[test]
fn servers_that_came_with_a_repository_wait_for_an_approval() {
    let harness = Harness::empty();
    let entry = json!({ "mcpServers": { "evil": sample("calc") } });
    write(&harness, "cloned/.mcp.json", &entry.to_string());
    let run = run_in(&harness, "cloned", &["import", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("plugbay approve"), "{}", run.err);
    let run = run_in(&harness, "cloned", &["list"]);
    assert!(run.err.contains("this project file is not approved"), "{}", run.err);
    run_in(&harness, "cloned", &["approve", "--yes"]);
    assert_eq!(run_in(&harness, "cloned", &["list"]).code, Some(0));
}

#[test]
fn a_repository_cannot_have_an_import_write_the_users_file() {
    let harness = Harness::empty();
    write(&harness, "shop/.git/HEAD", "");
    write(&harness, "shop/.mcp.json", &json!({ "mcpServers": { "foreign": sample("calc") } }).to_string());
    let link = harness.path().join("shop/.plugbay.jsonc");
    std::os::unix::fs::symlink(harness.user_file(), link).unwrap();
    for text in [None, Some("{ \"mcpServers\": {} }\n")] {
        if let Some(text) = text {
            fs::create_dir_all(harness.user_file().parent().unwrap()).unwrap();
            fs::write(harness.user_file(), text).unwrap();
        }
        let run = run_in(&harness, "shop", &["import", "--yes"]);
        assert!(run.err.contains("which is not in the project; nothing was changed"), "{}", run.err);
        assert_eq!(fs::read_to_string(harness.user_file()).ok().as_deref(), text);
    }
}

#[test]
fn an_endless_or_blocking_file_of_a_host_is_a_problem_of_an_import() {
    let harness = home();
    write(&harness, "shop/.git/HEAD", "");
    std::os::unix::fs::symlink("/dev/zero", harness.path().join("shop/.mcp.json")).unwrap();
    fs::create_dir_all(harness.path().join(".qwen")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(harness.path().join(".qwen/settings.json")).status();
    assert!(made.unwrap().success());
    let run = run_in(&harness, "shop", &["import", "--yes"]);
    let problems = [&run.out, &run.err].map(|text| text.matches("this is not a regular file").count());
    assert_eq!(problems.iter().sum::<usize>(), 2, "{}{}", run.out, run.err);
    assert!(names(&config(&harness)).contains(&"calc"));
}

#[test]
fn a_server_that_the_user_rejected_in_a_repository_is_imported_disabled() {
    let harness = Harness::empty();
    let shop = harness.path().join("shop");
    let file = json!({ "mcpServers": { "wanted": { "command": "w" }, "unwanted": { "command": "u" } } });
    write(&harness, "shop/.mcp.json", &file.to_string());
    let claude =
        json!({ "projects": { shop.to_str().unwrap(): { "disabledMcpjsonServers": ["unwanted"] } } });
    write(&harness, ".claude.json", &claude.to_string());
    assert_eq!(run_in(&harness, "shop", &["import", "--yes"]).code, Some(0));
    let servers = json_in(&shop.join(".plugbay.jsonc"))["mcpServers"].clone();
    assert_eq!((&servers["unwanted"]["disabled"], servers["wanted"].get("disabled")), (&json!(true), None));
}

#[test]
fn an_import_can_be_undone() {
    let harness = home();
    let mine = "{ \"mcpServers\": { \"z\": { \"command\": \"z\" } } } // mine\n";
    harness.configure(mine);
    assert_eq!(harness.run(&["import", "--yes"]).code, Some(0));
    assert_ne!(fs::read_to_string(harness.user_file()).unwrap(), mine);
    let run = harness.run(&["setup", "--undo", "--yes"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(fs::read_to_string(harness.user_file()).unwrap(), mine);
}

#[test]
fn migrate_moves_the_servers_of_claude_code() {
    let harness = Harness::empty();
    write(
        &harness,
        ".claude.json",
        &json!({ "theme": "x", "mcpServers": { "calc": sample("calc") } }).to_string(),
    );
    let before = fs::read(harness.path().join(".claude.json")).unwrap();
    let run = harness.run(&["migrate", "--dry-run"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(fs::read(harness.path().join(".claude.json")).unwrap(), before);
    assert!(!harness.user_file().exists());

    let out = harness.path().join("out.jsonc");
    let run = harness.run(&["migrate", "--yes", "--config", out.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(names(&json_in(&out)), ["calc"]);
    assert_eq!(names(&json_in(&harness.path().join(".claude.json"))), ["plugbay"]);
}

#[test]
fn migrate_copies_the_servers_of_a_file_that_is_named() {
    let harness = Harness::empty();
    write(&harness, "old.json", &json!({ "mcpServers": { "one": { "command": "one" } } }).to_string());
    let run = harness.run(&["migrate", "--yes", "--claude-config", "old.json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.err.contains("plugbay wire claude-code"), "{}", run.err);
    assert_eq!(names(&config(&harness)), ["one"]);

    write(&harness, "none.json", "{}");
    let run = harness.run(&["migrate", "--claude-config", "none.json"]);
    assert!(run.code == Some(1) && run.err.contains("has no servers to migrate"), "{run:?}");
    let run = Harness::empty().run(&["migrate"]);
    assert!(run.code == Some(1) && run.err.contains("there is no file of Claude Code"), "{run:?}");
    assert!(run.err.contains(".claude/config.json"), "{}", run.err);
}

#[test]
fn init_without_a_terminal_writes_an_example_or_imports() {
    let harness = Harness::empty();
    let run = harness.run(&["init"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let example = fs::read_to_string(harness.user_file()).unwrap();
    assert!(example.contains("//     \"time\": {"), "{example}");
    let run = harness.run(&["init", "--yes"]);
    assert!(run.err.contains("exists, so nothing was changed"), "{}", run.err);
    assert_eq!(fs::read_to_string(harness.user_file()).unwrap(), example);

    let harness = home();
    assert_eq!(harness.run(&["init", "--yes"]).code, Some(0));
    assert_eq!(names(&config(&harness)).len(), 5);
}
