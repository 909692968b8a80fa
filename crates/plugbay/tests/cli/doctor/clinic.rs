//! A home folder with one problem, and `plugbay doctor` in it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use plugbay_testkit::write_program;
use serde_json::{Value, json};

use crate::harness::{Harness, Run, sample};

/// A harness whose commands see only the test's programs and the usual Unix tools.
pub struct Clinic {
    pub harness: Harness,
    variables: Vec<(String, String)>,
}

impl Clinic {
    pub fn new(servers: &Value) -> Self {
        let clinic = Self { harness: Harness::with(servers), variables: Vec::new() };
        fs::create_dir(clinic.path("bin")).expect("a folder");
        clinic
    }

    /// A clinic with one server.
    pub fn of(entry: &Value) -> Self {
        Self::new(&json!({ "it": entry }))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.harness.path().join(name)
    }

    /// Sets a variable of plugbay's own environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts a program on PATH.
    #[must_use]
    pub fn program(self, name: &str, script: &str) -> Self {
        write_program(&self.path(&format!("bin/{name}")), &format!("#!/bin/sh\n{script}\n"));
        self
    }

    /// Writes a file below the home folder.
    #[must_use]
    pub fn file(self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
        self
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let mut command = self.harness.command(&[&["doctor"], arguments].concat());
        command.env("PATH", path).envs(self.variables.iter().cloned());
        Run::of(command.stdin(std::process::Stdio::null()).output().expect("plugbay runs"))
    }

    /// Expects that `doctor` finds exactly this code, about this server, file or host.
    #[track_caller]
    pub fn finds(&self, code: &str) -> Finding {
        let run = self.run(&["--json"]);
        let findings = run.json()["findings"].as_array().expect("findings").clone();
        let codes: Vec<&str> = findings.iter().filter_map(|finding| finding["code"].as_str()).collect();
        assert_eq!(codes, [code], "{run:?}");
        let finding = Finding(findings[0].clone());
        let fails = finding.0["severity"] == "error";
        assert_eq!(run.code, Some(i32::from(fails)), "{run:?}");
        finding
    }

    /// Expects that `doctor` finds this code, that `--fix` fixes it, and that no problem is left.
    #[track_caller]
    pub fn mends(&self, code: &str) -> Finding {
        self.mends_when_named(code, &[])
    }

    /// The same for a fix that is made only if the command names these servers.
    #[track_caller]
    pub fn mends_when_named(&self, code: &str, servers: &[&str]) -> Finding {
        let finding = self.finds(code);
        assert!(finding.0["fix"].is_string(), "{finding:?}");
        let run = self.run(&[servers, &["--fix", "--yes", "--json"]].concat());
        assert_eq!(run.json()["fixed"], json!([finding.0["fix"]]), "{run:?}");
        self.is_quiet();
        finding
    }

    #[track_caller]
    pub fn is_quiet(&self) {
        let run = self.run(&["--json"]);
        assert_eq!((run.json()["findings"].clone(), run.code), (json!([]), Some(0)), "{run:?}");
    }

    /// The current text of the user's configuration.
    pub fn text(&self) -> String {
        fs::read_to_string(self.harness.user_file()).expect("a file")
    }
}

/// A finding as JSON.
#[derive(Debug)]
pub struct Finding(pub Value);

impl Finding {
    /// Expects that the finding is about this server, file or host.
    #[track_caller]
    pub fn about(self, kind: &str, name: impl AsRef<Path>) -> Self {
        assert_eq!(self.0["about"], json!({ "kind": kind, "name": name.as_ref() }));
        self
    }

    #[track_caller]
    pub fn says(self, part: &str) -> Self {
        self.has("message", part)
    }

    #[track_caller]
    pub fn remedy(self, part: &str) -> Self {
        self.has("remedy", part)
    }

    /// Expects that its evidence contains this.
    #[track_caller]
    pub fn seen(self, part: &str) -> Self {
        let seen = self.0["evidence"].to_string();
        assert!(seen.contains(part), "{part:?} is not in {seen}");
        self
    }

    #[track_caller]
    fn has(self, key: &str, part: &str) -> Self {
        let text = self.0[key].as_str().expect("text");
        assert!(text.contains(part), "{part:?} is not in {text:?}");
        self
    }
}

/// A server's entry that runs this script in a shell.
pub fn shell(script: &str) -> Value {
    json!({ "command": "sh", "args": ["-c", script] })
}

/// A line of a shell script that turns it into a working server.
pub fn serve() -> String {
    let entry = sample("calc");
    let program = entry["command"].as_str().expect("a program");
    format!("exec {program} __sample calc")
}
