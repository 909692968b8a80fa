//! Real servers over HTTP: started on a free port, and reliably ended.

use std::{
    fs::{self, File},
    net::{TcpListener, TcpStream},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
};

use plugbay_testkit::{DEADLINE, Workspace, wait_until};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::{
    clients::Era,
    installed::{Installed, scripts},
    world::{Call, Server, call, everything_calls},
};

/// How often a start is tried: another process may take the free port before the server does.
const ATTEMPTS: usize = 3;

/// A running process group, ended when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// Its output, on both streams.
    pub(crate) words: String,
}

impl Running {
    /// Starts a process in its own group. Its output goes to a file, so that it can never block.
    pub(crate) fn spawn(command: &mut Command, words: String) -> Self {
        let file = File::create(&words).expect("a file for a server's words");
        let both = file.try_clone().expect("a second handle");
        command.stdin(Stdio::null()).stdout(file).stderr(both).process_group(0);
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Self { child, words }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("wait").is_some()
    }

    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.words).unwrap_or_default()).into_owned()
    }

    /// Asks the process to end; `Drop` makes sure that it does.
    pub(crate) fn terminate(&mut self) {
        self.signal(Signal::TERM);
        wait_until("the process to end when asked", DEADLINE, || self.has_ended().then_some(()));
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// All peers, which run until this is dropped.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) servers: Vec<Server>,
    _running: Vec<Running>,
}

/// How one peer is started, and the calls to make.
struct Recipe {
    name: &'static str,
    era: Era,
    kind: &'static str,
    path: &'static str,
    words: Vec<String>,
    calls: Vec<Call>,
}

impl Peers {
    pub(crate) fn start(workspace: &Workspace, installed: &Installed) -> Self {
        Self::of(recipes(installed), workspace, installed)
    }

    fn of(recipes: Vec<Recipe>, workspace: &Workspace, installed: &Installed) -> Self {
        let started = recipes.into_iter().map(|recipe| {
            let (running, url) = start(&recipe, workspace, installed);
            let entry = json!({"type": recipe.kind, "url": url});
            let Recipe { name, era, calls, .. } = recipe;
            (Server { name, entry, era, calls }, running)
        });
        let (servers, running) = started.unzip();
        Self { servers, _running: running }
    }
}

/// Two servers that work with tasks, and use the same task ids.
pub(crate) fn task_servers(workspace: &Workspace, installed: &Installed) -> Peers {
    let words = vec!["node".to_owned(), scripts().join("task-server.mjs").to_string_lossy().into_owned()];
    let recipe = |name| Recipe {
        name,
        era: Era::Modern,
        kind: "http",
        path: "/mcp",
        words: words.clone(),
        calls: Vec::new(),
    };
    Peers::of(["tasks1", "tasks2"].map(recipe).into(), workspace, installed)
}

fn recipes(installed: &Installed) -> Vec<Recipe> {
    let everything = |transport: &str| {
        let program = installed.path("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
        vec!["node".to_owned(), program, transport.to_owned()]
    };
    let script = |name: &str| scripts().join(name).to_string_lossy().into_owned();
    let fastmcp = |line: u8| {
        vec![installed.path(&format!("py{line}/bin/python")), script("fastmcp_server.py"), "http".to_owned()]
    };
    vec![
        Recipe {
            name: "everything-http",
            era: Era::Legacy,
            kind: "http",
            path: "/mcp",
            words: everything("streamableHttp"),
            calls: everything_calls(),
        },
        Recipe {
            name: "everything-sse",
            era: Era::Legacy,
            kind: "sse",
            path: "/sse",
            words: everything("sse"),
            calls: everything_calls(),
        },
        Recipe {
            name: "fastmcp3",
            era: Era::Legacy,
            kind: "http",
            path: "/mcp",
            words: fastmcp(1),
            calls: our_calls(),
        },
        Recipe {
            name: "fastmcp4",
            era: Era::Modern,
            kind: "http",
            path: "/mcp",
            words: fastmcp(2),
            calls: our_calls(),
        },
        Recipe {
            name: "modern",
            era: Era::Modern,
            kind: "http",
            path: "/mcp",
            words: vec!["node".to_owned(), script("modern-server.mjs")],
            calls: our_calls(),
        },
    ]
}

/// The calls that our own scripts share.
fn our_calls() -> Vec<Call> {
    vec![
        call("echo", json!({"message": "héllo \"world\" 😀"})),
        call("count", json!({"to": 3})),
        call("weather", json!({"place": "Zürich"})),
        call("picture", json!({})),
        call("fail", json!({})),
        call("echo", json!({"message": 7})),
    ]
}

/// Starts a peer and waits until it accepts connections. If it ends instead, another port is tried.
fn start(recipe: &Recipe, workspace: &Workspace, installed: &Installed) -> (Running, String) {
    let mut said = String::new();
    for attempt in 0..ATTEMPTS {
        let port = free_port();
        let words = workspace.path().join(format!("tmp/{}-{attempt}", recipe.name));
        let mut command = Command::new(&recipe.words[0]);
        command.args(&recipe.words[1..]).current_dir(workspace.path()).envs(workspace.environment());
        command.env("PORT", port.to_string()).env("PLUGBAY_E2E_DIR", &installed.folder);
        let mut running = Running::spawn(&mut command, words.to_string_lossy().into_owned());
        let what = format!("{} at port {port} (its words: {})", recipe.name, running.words);
        let accepts = wait_until(&what, DEADLINE, || {
            let ended = running.has_ended();
            (ended || TcpStream::connect(("127.0.0.1", port)).is_ok()).then_some(!ended)
        });
        if accepts {
            return (running, format!("http://127.0.0.1:{port}{}", recipe.path));
        }
        said = running.said();
    }
    panic!("{} does not stay: {said}", recipe.name);
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}

/// For a config: an entry as any host would write it.
pub(crate) fn is_http(entry: &Value) -> bool {
    entry.get("url").is_some()
}
