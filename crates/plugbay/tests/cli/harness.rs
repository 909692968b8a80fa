//! A separate folder for each test, with `plugbay` in it.

use std::{
    env,
    ffi::OsString,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use plugbay_testkit::{DEADLINE, wait_until};
use serde_json::{Value, json};

pub struct Harness {
    folder: tempfile::TempDir,
}

/// The output of a command, and its exit code.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Harness {
    /// A harness without a configuration.
    pub fn empty() -> Self {
        // The path has the same length on every machine, so that messages wrap at the same word.
        Self { folder: tempfile::tempdir_in("/tmp").expect("a folder") }
    }

    /// A harness whose user configuration has these servers.
    pub fn with(servers: &Value) -> Self {
        let harness = Self::empty();
        harness.configure(&json!({ "mcpServers": servers }).to_string());
        harness
    }

    pub fn configure(&self, text: &str) {
        let file = self.user_file();
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }

    pub fn user_file(&self) -> PathBuf {
        self.path().join("config/plugbay/config.jsonc")
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.path()).env_clear();
        command.env("PATH", search_path()).env("TMPDIR", self.path());
        command.env("HOME", self.path()).env("PLUGBAY_DAEMON", "off");
        for folder in ["config", "cache", "state"] {
            command.env(format!("XDG_{}_HOME", folder.to_uppercase()), self.path().join(folder));
        }
        command
    }

    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(arguments).stdin(Stdio::null()).output().expect("plugbay runs"))
    }

    #[track_caller]
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Run {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("plugbay starts");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("input is taken");
        Run::of(child.wait_with_output().expect("plugbay ends"))
    }

    /// Waits until every process of this harness has ended. The guard is last: it ends just after the program
    /// it watched.
    pub fn wait_for_processes(&self) {
        wait_until("all processes to end", DEADLINE, || self.processes().is_empty().then_some(()));
    }

    /// The command lines of all processes started in this harness, with their descendants.
    fn processes(&self) -> Vec<String> {
        let mark = self.path().to_string_lossy().into_owned();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let lines = processes.filter_map(|entry| {
            let read = |name: &str| {
                let bytes = fs::read(entry.path().join(name)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            read("environ").contains(&mark).then(|| read("cmdline"))
        });
        lines.collect()
    }
}

impl Run {
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Expects this exit code, and exactly this output.
    #[track_caller]
    pub fn check(&self, code: i32, out: &str, err: &str) {
        assert_eq!((self.code, self.out.as_str(), self.err.as_str()), (Some(code), out, err));
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub fn program() -> &'static str {
    env!("CARGO_BIN_EXE_plugbay")
}

/// A search path on which `plugbay` itself comes first.
fn search_path() -> OsString {
    let own = Path::new(program()).parent().map(Path::to_owned);
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths(own.into_iter().chain(env::split_paths(&others))).expect("a search path")
}

/// A server's entry that runs a sample.
pub fn sample(name: &str) -> Value {
    json!({ "command": program(), "args": ["__sample", name] })
}

pub fn samples() -> Value {
    json!({ "calc": sample("calc"), "clock": sample("clock"), "notes": sample("notes") })
}
