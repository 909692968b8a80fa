//! Many windows at one daemon: `plugbay serve` as hosts run it, with real bridges.

mod alone;
mod ends;
mod sessions;
mod sharing;
mod takes_over;

use std::{path::Path, process::Command, time::Duration};

use plugbay_testkit::{Config, DEADLINE, Host, Process, Workspace, wait_until};
use serde_json::{Value, json};

use crate::gateway;

/// A workspace with a daemon, and a configuration of one server in this scope.
fn workspace(script: &plugbay_testkit::Script, scope: &str) -> Workspace {
    let workspace = Workspace::new().with_daemon();
    workspace.write_config(&config(&workspace, script, scope));
    workspace
}

fn config(workspace: &Workspace, script: &plugbay_testkit::Script, scope: &str) -> Config {
    Config::new().server(workspace, "s", script).options("s", json!({ "scope": scope }))
}

/// A new window whose host has listed its tools.
#[track_caller]
fn window(workspace: &Workspace) -> Host {
    opened(Host::spawn(&mut workspace.command(&gateway())))
}

#[track_caller]
fn opened(host: Host) -> Host {
    host.initialize();
    host.await_tools(&["s__pid"]);
    host
}

/// A window with other variables or in another folder.
fn window_of(workspace: &Workspace, folder: &Path, variables: &[(&str, &str)]) -> Host {
    let mut command = workspace.command(&gateway());
    command.current_dir(folder).envs(variables.iter().copied());
    opened(Host::spawn(&mut command))
}

/// The text of a tool's result.
#[track_caller]
fn told(host: &Host, tool: &str) -> String {
    let response = host.call(tool, "{}");
    let result: Value = serde_json::from_str(response.result()).expect("a result");
    result["content"][0]["text"].as_str().expect("a text").to_owned()
}

/// The one daemon of the workspace.
#[track_caller]
fn daemon(workspace: &Workspace) -> Process {
    let daemons = workspace.daemons();
    assert_eq!(daemons.len(), 1, "{daemons:#?}");
    daemons.into_iter().next().expect("a daemon")
}

/// `plugbay daemon …` as JSON.
#[track_caller]
fn command(workspace: &Workspace, action: &str) -> Value {
    let mut command = Command::new(gateway());
    command.args(["daemon", action, "--json"]).current_dir(workspace.path());
    let output = command.env_clear().envs(workspace.environment()).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[track_caller]
fn until(what: &str, is_true: impl Fn() -> bool) {
    wait_until(what, DEADLINE, || {
        if is_true() {
            return Some(());
        }
        std::thread::sleep(Duration::from_millis(10));
        None
    });
}
