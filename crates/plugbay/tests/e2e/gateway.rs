//! The gateway as a client reaches it: a program to start, or a URL.

use std::process::Command;

use plugbay_testkit::{Config, DEADLINE, Workspace, gateway_path, wait_until};
use serde_json::{Value, json};

use crate::{
    peers::Running,
    world::{Server, World},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

/// A gateway in front of some servers.
pub(crate) struct Gateway {
    /// The entry that a client would use to reach it.
    pub(crate) entry: Value,
    running: Option<Running>,
}

impl Gateway {
    pub(crate) fn new(transport: Transport, workspace: &Workspace, servers: &[Server]) -> Self {
        workspace.write_config(&World::config(servers));
        match transport {
            Transport::Stdio => Self { entry: entry(workspace), running: None },
            Transport::Http => serve(workspace),
        }
    }

    pub(crate) fn over_stdio(workspace: &Workspace, config: &Config) -> Self {
        workspace.write_config(config);
        Self { entry: entry(workspace), running: None }
    }

    /// Starts every server beforehand, for a client that lists once and leaves.
    pub(crate) fn meet(workspace: &Workspace) {
        let mut list = Command::new(gateway_path(env!("CARGO_BIN_EXE_plugbay")));
        list.args(["list", "--config"]).arg(workspace.config_path()).envs(workspace.environment());
        assert!(list.output().expect("plugbay list").status.success(), "plugbay list");
    }

    /// Ends it in the way of a service manager.
    pub(crate) fn close(self) {
        if let Some(mut running) = self.running {
            running.terminate();
        }
    }
}

fn entry(workspace: &Workspace) -> Value {
    let gateway = gateway_path(env!("CARGO_BIN_EXE_plugbay"));
    json!({"command": gateway, "args": ["serve", "--no-daemon", "--config", workspace.config_path()]})
}

/// Starts `plugbay serve --http` on a free port, which it reports on stderr.
fn serve(workspace: &Workspace) -> Gateway {
    let mut command = workspace.command(&gateway_path(env!("CARGO_BIN_EXE_plugbay")));
    command.args(["--http", "127.0.0.1:0"]);
    let words = workspace.path().join("tmp/gateway").to_string_lossy().into_owned();
    let mut running = Running::spawn(&mut command, words);
    let what = format!("the gateway's address (its words: {})", running.words);
    let address = wait_until(&what, DEADLINE, || {
        assert!(!running.has_ended(), "the gateway ended: {}", running.said());
        address(&running.said())
    });
    Gateway { entry: json!({"type": "http", "url": format!("http://{address}/mcp")}), running: Some(running) }
}

/// The first `127.0.0.1:PORT` that is followed by something: otherwise the port may be incomplete.
fn address(said: &str) -> Option<String> {
    said.match_indices("127.0.0.1:").find_map(|(start, host)| {
        let rest = &said[start + host.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let port: u16 = rest[..end].parse().ok().filter(|port| *port != 0)?;
        Some(format!("{host}{port}"))
    })
}

#[test]
fn the_address_is_found_once_it_is_whole() {
    assert_eq!(address("listening on http://127.0.0.1:43"), None);
    assert_eq!(
        address("binds 127.0.0.1:0\nlistening on http://127.0.0.1:4321/mcp"),
        Some("127.0.0.1:4321".into())
    );
}
