//! `plugbay setup`, `plugbay wire` and `plugbay unwire`, in homes with the files of several hosts.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Stdio,
};

use plugbay_testkit::{Script, scripted_server_path};
use serde_json::{Value, json};

use crate::harness::{Harness, Run, program, sample};

const SECRET: &str = "sesame-4711";

/// A home with four hosts. Every server in it works, except where a test says otherwise.
struct Home {
    harness: Harness,
}

impl Home {
    fn new() -> Self {
        let home = Self { harness: Harness::empty() };
        fs::create_dir_all(home.path("work/.git")).unwrap();
        let script = Script::new().result("greet", "{}").text();
        let greeter =
            json!({ "command": scripted_server_path(), "args": [script], "env": { "KEY": SECRET } });
        let projects =
            json!({ home.path("work").to_str().unwrap(): { "mcpServers": { "clock": sample("clock") } } });
        let claude = json!({ "numStartups": 3, "mcpServers": { "calc": sample("calc"), "hello": greeter }, "projects": projects });
        home.put(".claude.json", &format!("{claude:#}"));
        home.put(
            ".claude/settings.json",
            r#"{ "permissions": { "deny": ["mcp__calc__evaluate"] }, "model": "x" }"#,
        );
        let notes = format!(
            "[mcp_servers.notes]\ncommand = \"{}\"\nargs = [\"__sample\", \"notes\"] # mine\n",
            program()
        );
        home.put(".codex/config.toml", &format!("# my model\nmodel = \"x\"\n\n{notes}"));
        home.put(
            ".gemini/settings.json",
            &format!("{{\"theme\":\"x\",\"mcpServers\":{{\"sums\":{}}}}}", sample("calc")),
        );
        let line = json!([program(), "__sample", "clock"]);
        let opencode = format!(
            "{{\n  // by hand\n  \"mcp\": {{\n    \"clock\": {{ \"type\": \"local\", \"command\": {line}, \"enabled\": false }}, // off\n  }},\n}}\n"
        );
        home.put("config/opencode/opencode.jsonc", &opencode);
        home
    }

    fn path(&self, file: &str) -> PathBuf {
        self.harness.path().join(file)
    }

    fn put(&self, file: &str, text: &str) {
        let file = self.path(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    fn json(&self, file: &str) -> Value {
        let text = self.text(file);
        let text: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Runs plugbay in the project `work`, with no host's program on the search path.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> Run {
        self.run_with_path(arguments, "/usr/bin:/bin")
    }

    #[track_caller]
    fn run_with_path(&self, arguments: &[&str], path: &str) -> Run {
        let mut command = self.harness.command(arguments);
        command.current_dir(self.path("work")).env("PATH", path).stdin(Stdio::null());
        Run::of(command.output().unwrap())
    }

    /// Runs plugbay and expects success.
    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
        run
    }

    /// The content of all files outside plugbay's own state and cache.
    fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        collect(self.harness.path(), &mut all);
        all.retain(|path, _| !path.starts_with(self.path("state")) && !path.starts_with(self.path("cache")));
        all
    }
}

fn collect(folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, all);
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
}

fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

fn results(report: &Value) -> BTreeMap<&str, &str> {
    let servers = report["servers"].as_array().unwrap().iter();
    servers.map(|server| (server["name"].as_str().unwrap(), server["result"].as_str().unwrap())).collect()
}

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
fn undo_restores_every_file_byte_for_byte() {
    let home = Home::new();
    let before = home.contents();
    home.ok(&["setup", "--yes"]);
    assert_ne!(home.contents(), before);
    let run = home.ok(&["setup", "--undo"]);
    assert_eq!(run.out.matches("as it was before, byte for byte").count(), 5, "{}", run.out);
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
    assert_eq!(run.out.matches("plugbay's part is gone; later changes stay").count(), 4, "{}", run.out);
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
        run.out.contains("settings.json: this is not JSON") && run.out.contains("plugbay left it alone"),
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
fn an_interrupted_setup_can_be_undone() {
    let home = Home::new();
    let before = home.contents();
    home.ok(&["setup", "--yes"]);
    // As if plugbay had been killed after it recorded its last change, and before it made it.
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

/// A `claude` that writes down how it was called, and writes the whole file in its own form as the real one does.
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
    assert!(run.out.contains("(by `claude mcp`, which writes it in its own form)"), "{}", run.out);
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
    // A gateway that was configured with a program of this name that ends at once.
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
