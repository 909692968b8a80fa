//! A separate folder for each test: home, config, scripts and logs, and the processes that use it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
};

use serde_json::{Map, Value, json};

use crate::{
    deadline::{DEADLINE, wait_until},
    host::Host,
    process::{Process, Signal, mentioning},
    programs::scripted_server_path,
    script::Script,
};

/// The start timeout of servers, unless a test sets another.
const START: &str = "10m";

static KEPT: AtomicBool = AtomicBool::new(false);

/// Sets whether workspaces that end from now on are kept for inspection. Those of a test that panics always
/// are.
pub fn keep_workspaces(keep: bool) {
    KEPT.store(keep, Ordering::Relaxed);
}

/// A test's folder. It is removed at the end, unless the test failed: then it is kept for inspection.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    /// Whether `plugbay serve` uses a daemon.
    has_daemon: bool,
}

/// A config file under construction. Its initial mode is `all`.
#[derive(Debug, Clone)]
pub struct Config {
    top: Map<String, Value>,
    servers: Map<String, Value>,
}

impl Workspace {
    #[expect(clippy::new_without_default, reason = "making folders is no default value")]
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = env::temp_dir().join(format!("plugbay-test-{}-{number}", process::id()));
        for folder in ["home", "config", "cache", "data", "state", "run", "tmp", "scripts", "logs"] {
            fs::create_dir_all(root.join(folder)).expect("workspace");
        }
        Self { root, has_daemon: false }
    }

    /// Makes `plugbay serve` use a daemon, which ends with the workspace.
    #[must_use]
    pub fn with_daemon(mut self) -> Self {
        self.has_daemon = true;
        self
    }

    /// The daemons of this workspace. A just-forked child looks like its daemon until it runs another
    /// program, so it is left out.
    pub fn daemons(&self) -> Vec<Process> {
        let alike: Vec<Process> =
            self.processes().into_iter().filter(|process| process.command.contains("__daemon run")).collect();
        let is_child = |process: &Process| alike.iter().any(|other| other.pid == process.parent);
        alike.iter().filter(|process| !is_child(process)).cloned().collect()
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    // ---- scripts and config

    /// Writes a server's script and returns the argument that names it. Writing it again changes the server's
    /// behaviour at its next start, without changing its command line.
    pub fn write_script(&self, name: &str, script: &Script) -> String {
        let file = self.root.join(format!("scripts/{name}.json"));
        let log = Value::from(self.log_path(name).to_string_lossy());
        replace(&file, &script.clone().set("log", log).text());
        format!("@{}", file.display())
    }

    /// A config with one scripted server per entry.
    pub fn config(&self, servers: &[(&str, Script)]) -> Config {
        let mut config = Config::new();
        for (name, script) in servers {
            config = config.server(self, name, script);
        }
        config
    }

    pub fn config_path(&self) -> PathBuf {
        self.root.join("config.json")
    }

    /// Puts the config in place atomically.
    pub fn write_config(&self, config: &Config) {
        replace(&self.config_path(), &format!("{:#}", config.value()));
    }

    // ---- the gateway

    /// Starts `plugbay serve` on the config.
    #[track_caller]
    pub fn serve(&self, gateway: &Path) -> Host {
        Host::spawn(&mut self.command(gateway))
    }

    /// Writes a config for these servers and starts `plugbay serve` on it.
    #[track_caller]
    pub fn serve_with(&self, gateway: &Path, servers: &[(&str, Script)]) -> Host {
        self.write_config(&self.config(servers));
        self.serve(gateway)
    }

    /// `plugbay serve --config …` in this workspace's environment, not yet started.
    pub fn command(&self, gateway: &Path) -> Command {
        let mut command = Command::new(gateway);
        command.arg("serve").arg("--config").arg(self.config_path());
        command.current_dir(&self.root).env_clear().envs(self.environment());
        command
    }

    /// `HOME` and similar variables, with folders inside this workspace.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let inside = |folder: &str| self.root.join(folder);
        let mut all = vec![
            ("HOME", inside("home")),
            ("XDG_CONFIG_HOME", inside("config")),
            ("XDG_CACHE_HOME", inside("cache")),
            ("XDG_DATA_HOME", inside("data")),
            ("XDG_STATE_HOME", inside("state")),
            ("XDG_RUNTIME_DIR", inside("run")),
            ("TMPDIR", inside("tmp")),
            ("RUST_BACKTRACE", "1".into()),
        ];
        all.push(("PLUGBAY_DAEMON", if self.has_daemon { "on".into() } else { "off".into() }));
        all.extend(env::var_os("PATH").map(|path| ("PATH", path.into())));
        all
    }

    // ---- what the servers saw

    /// The lines of a scripted server's log: `start PID`, `in MESSAGE`, `said LINE`, `listed`, `eof`.
    pub fn log(&self, server: &str) -> Vec<String> {
        let text = fs::read_to_string(self.log_path(server)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub fn count_log(&self, server: &str, part: &str) -> usize {
        self.log(server).iter().filter(|line| line.contains(part)).count()
    }

    /// Waits until `count` lines of a server's log hold `part`.
    #[track_caller]
    pub fn await_log(&self, server: &str, part: &str, count: usize) {
        let what = format!("{count} × {part:?} in the log of {server}");
        wait_until(&what, DEADLINE, || (self.count_log(server, part) >= count).then_some(()));
    }

    /// The process ids of every start of a scripted server.
    pub fn starts(&self, server: &str) -> Vec<u32> {
        self.log(server).iter().filter_map(|line| line.strip_prefix("start ")?.parse().ok()).collect()
    }

    /// The running process of a scripted server.
    #[track_caller]
    pub fn server_process(&self, server: &str) -> Process {
        wait_until(&format!("a process of {server}"), DEADLINE, || {
            self.starts(server).into_iter().rev().find_map(Process::of)
        })
    }

    /// Every process whose command line names this workspace: gateways, servers, grandchildren.
    pub fn processes(&self) -> Vec<Process> {
        mentioning(&self.root)
    }

    /// All regular files below a folder of the workspace, sorted.
    pub fn files(&self, folder: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect_files(&self.root.join(folder), &mut found);
        found.sort();
        found
    }

    fn log_path(&self, server: &str) -> PathBuf {
        self.root.join(format!("logs/{server}.log"))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        for process in self.processes() {
            process.signal(Signal::CONT);
            process.signal(Signal::KILL);
        }
        if !thread::panicking() && !KEPT.load(Ordering::Relaxed) {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

impl Config {
    #[expect(clippy::new_without_default, reason = "a config is not empty: it has a mode")]
    pub fn new() -> Self {
        let mut top = Map::new();
        top.insert("mode".into(), "all".into());
        Self { top, servers: Map::new() }
    }

    /// Adds a scripted server.
    #[must_use]
    pub fn server(self, workspace: &Workspace, name: &str, script: &Script) -> Self {
        let argument = workspace.write_script(name, script);
        self.entry(name, json!({"command": scripted_server_path(), "args": [argument]}))
    }

    /// Adds or replaces a server's raw entry.
    #[must_use]
    pub fn entry(mut self, name: &str, entry: Value) -> Self {
        self.servers.insert(name.into(), entry);
        self
    }

    /// Sets the `plugbay` object of an existing server.
    #[must_use]
    pub fn options(mut self, server: &str, options: Value) -> Self {
        self.servers[server]["plugbay"] = options;
        self
    }

    #[must_use]
    pub fn without(mut self, server: &str) -> Self {
        self.servers.remove(server);
        self
    }

    /// Sets a key next to `mcpServers`.
    #[must_use]
    pub fn top(mut self, key: &str, value: Value) -> Self {
        self.top.insert(key.into(), value);
        self
    }

    pub fn value(&self) -> Value {
        let mut all = self.top.clone();
        // The tools that a host sees must not depend on how many tools a test happens to have.
        all.entry("mode").or_insert_with(|| "all".into());
        // No server must fail because the machine is busy. A test of the start timeout sets its own.
        let defaults = all.entry("defaults").or_insert_with(|| json!({}));
        if defaults["start"].is_null() {
            defaults["start"] = START.into();
        }
        all.insert("mcpServers".into(), self.servers.clone().into());
        all.into()
    }
}

/// Writes a file so that a reader sees either the old text or the new one.
fn replace(file: &Path, text: &str) {
    let beside = file.with_extension("new");
    fs::write(&beside, text).and_then(|()| fs::rename(&beside, file)).expect("workspace file");
}

fn collect_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect_files(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}
