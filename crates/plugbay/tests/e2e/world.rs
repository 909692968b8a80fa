//! The real servers, their data, and the calls to make.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use plugbay_testkit::{Config, Workspace};
use serde_json::{Value, json};

use crate::{clients::Era, installed::Installed};

/// Tools that a server lists only to clients that can do more than call tools. These tests do not check
/// whether the gateway is such a client.
pub(crate) const CONDITIONAL: [&str; 3] =
    ["get-roots-list", "trigger-sampling-request", "trigger-elicitation-request"];

/// One server: its entry as in a host, its era, and calls that show what it does.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) entry: Value,
    /// The era that the gateway will detect.
    pub(crate) era: Era,
    pub(crate) calls: Vec<Call>,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

/// Files, a repository and a memory, at the same paths and with the same content in every run, so that
/// results can be compared unchanged.
#[derive(Debug)]
pub(crate) struct World {
    root: PathBuf,
}

impl World {
    pub(crate) fn new(workspace: &Workspace) -> Self {
        Self { root: workspace.path().join("world") }
    }

    /// Creates everything again.
    pub(crate) fn reset(&self) {
        let _ = fs::remove_dir_all(&self.root);
        fs::create_dir_all(self.files()).expect("world");
        fs::create_dir_all(self.repository()).expect("world");
        fs::write(self.files().join("greeting.txt"), "hello\nworld é\n").expect("world");
        fs::write(self.repository().join("tracked.txt"), "one\n").expect("world");
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.git(&["add", "tracked.txt"]);
        self.git(&["commit", "--quiet", "--message", "First"]);
        fs::write(self.repository().join("tracked.txt"), "two\n").expect("world");
        fs::write(self.repository().join("untracked.txt"), "new\n").expect("world");
    }

    pub(crate) fn servers(&self, installed: &Installed) -> Vec<Server> {
        let node = |package: &str, args: &[&str]| {
            let program =
                installed.path(&format!("node_modules/@modelcontextprotocol/{package}/dist/index.js"));
            let args: Vec<&str> = [program.as_str()].iter().chain(args).copied().collect();
            json!({"command": "node", "args": args})
        };
        let python = |module: &str, args: &[&str]| {
            let args = [&["-m", module], args].concat();
            json!({"command": installed.path("py2/bin/python"), "args": args})
        };
        let (files, repository) = (text(&self.files()), text(&self.repository()));
        let mut memory = node("server-memory", &[]);
        memory["env"] = json!({"MEMORY_FILE_PATH": text(&self.root.join("memory.jsonl"))});
        vec![
            Server {
                name: "everything",
                entry: node("server-everything", &[]),
                era: Era::Legacy,
                calls: everything_calls(),
            },
            Server {
                name: "filesystem",
                entry: node("server-filesystem", &[&files]),
                era: Era::Legacy,
                calls: vec![
                    call("write_file", json!({"path": format!("{files}/new.txt"), "content": "written é\n"})),
                    call("read_text_file", json!({"path": format!("{files}/new.txt")})),
                    call("read_text_file", json!({"path": format!("{files}/greeting.txt"), "head": 1})),
                    call("list_directory", json!({"path": files})),
                    call("read_text_file", json!({"path": "/etc/hostname"})),
                ],
            },
            Server {
                name: "memory",
                entry: memory,
                era: Era::Legacy,
                calls: vec![
                    call(
                        "create_entities",
                        json!({"entities": [{"name": "Ada", "entityType": "person", "observations": ["wrote é"]}]}),
                    ),
                    call("read_graph", json!({})),
                    call("search_nodes", json!({"query": "ada"})),
                ],
            },
            Server {
                name: "git",
                entry: python("mcp_server_git", &["--repository", &repository]),
                era: Era::Modern,
                calls: vec![
                    call("git_status", json!({"repo_path": repository})),
                    call("git_diff_unstaged", json!({"repo_path": repository})),
                    call("git_log", json!({"repo_path": repository, "max_count": 3})),
                ],
            },
            Server {
                name: "time",
                entry: python("mcp_server_time", &["--local-timezone", "UTC"]),
                era: Era::Modern,
                calls: vec![
                    call(
                        "convert_time",
                        json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
                    ),
                    call(
                        "convert_time",
                        json!({"source_timezone": "Nowhere", "time": "12:00", "target_timezone": "UTC"}),
                    ),
                ],
            },
        ]
    }

    /// All of them behind one gateway.
    pub(crate) fn config(servers: &[Server]) -> Config {
        servers.iter().fold(Config::new(), |config, server| config.entry(server.name, server.entry.clone()))
    }

    /// A file that the filesystem server may use.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files().join(name)
    }

    fn files(&self) -> PathBuf {
        self.root.join("files")
    }

    fn repository(&self) -> PathBuf {
        self.root.join("repository")
    }

    fn git(&self, args: &[&str]) {
        let mut command = Command::new("git");
        command.args(args).current_dir(self.repository());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Ada").env(format!("GIT_{who}_EMAIL"), "ada@example.com");
            command.env(format!("GIT_{who}_DATE"), "2026-01-02T03:04:05Z");
        }
        let status = command.status().expect("git runs");
        assert!(status.success(), "git {args:?}: {status}");
    }
}

/// The same calls for every transport.
pub(crate) fn everything_calls() -> Vec<Call> {
    vec![
        call("echo", json!({"message": "héllo \"world\" 😀"})),
        call("get-sum", json!({"a": 2, "b": 40})),
        call("get-structured-content", json!({"location": "New York"})),
        call("get-tiny-image", json!({})),
        call("get-annotated-message", json!({"messageType": "error", "includeImage": true})),
        call("get-sum", json!({"a": "not a number"})),
        call("trigger-long-running-operation", json!({"duration": 0.3, "steps": 3})),
    ]
}

pub(crate) fn call(tool: &str, arguments: Value) -> Call {
    Call { tool: tool.to_owned(), arguments }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
