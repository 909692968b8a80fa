//! A home with the files of several hosts.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use plugbay_testkit::{Script, scripted_server_path};
use serde_json::{Value, json};

use crate::harness::{Harness, Run, program, sample};

pub(super) const SECRET: &str = "sesame-4711";

/// A home with four hosts. All its servers work, unless a test says otherwise.
pub(super) struct Home {
    pub(super) harness: Harness,
}

impl Home {
    pub(super) fn new() -> Self {
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

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.harness.path().join(file)
    }

    pub(super) fn put(&self, file: &str, text: &str) {
        let file = self.path(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    pub(super) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap()
    }

    pub(super) fn json(&self, file: &str) -> Value {
        let text = self.text(file);
        let text: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// Runs plugbay in the project `work`, without any host's program on the search path.
    #[track_caller]
    pub(super) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with_path(arguments, &self.path("no-programs").to_string_lossy())
    }

    #[track_caller]
    pub(super) fn run_with_path(&self, arguments: &[&str], path: &str) -> Run {
        let mut command = self.harness.command(arguments);
        command.current_dir(self.path("work")).env("PATH", path).stdin(Stdio::null());
        Run::of(command.output().unwrap())
    }

    /// Runs plugbay and expects success.
    #[track_caller]
    pub(super) fn ok(&self, arguments: &[&str]) -> Run {
        let run = self.run(arguments);
        assert_eq!(run.code, Some(0), "{arguments:?}: {run:?}");
        run
    }

    /// The content of all files outside plugbay's own state and cache.
    pub(super) fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
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

pub(super) fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

pub(super) fn results(report: &Value) -> BTreeMap<&str, &str> {
    let servers = report["servers"].as_array().unwrap().iter();
    servers.map(|server| (server["name"].as_str().unwrap(), server["result"].as_str().unwrap())).collect()
}
