//! A Switchboard project, with a host that stays connected while servers are added, changed and removed.

use std::{fs, process::Command};

use plugbay_testkit::{Host, Script, Workspace, scripted_server_path};
use serde_json::json;

use crate::gateway;

/// Adds a server's folder as a person would: first the folder, then the file.
fn describe(workspace: &Workspace, name: &str, variable: &str) {
    let argument = workspace.write_script(name, &Script::friendly());
    let folder = workspace.path().join(".switchboard/mcps").join(name);
    fs::create_dir_all(&folder).unwrap();
    let command =
        json!({ "cmd": scripted_server_path(), "args": [argument], "env": { "VARIABLE": variable } });
    fs::write(folder.join(".mcp.json"), json!({ "name": name, "command": command }).to_string()).unwrap();
}

#[track_caller]
fn await_suites(host: &Host, names: &[&str]) {
    host.await_list("list of these suites", |tools| {
        tools.iter().map(|tool| tool.name.as_str()).eq(names.iter().copied())
    });
}

#[track_caller]
fn pid(host: &Host, suite: &str) -> String {
    host.call(suite, r#"{"action":"call","subtool":"pid","args":{}}"#).content_text()
}

#[test]
fn servers_come_change_and_go_with_their_folders() {
    let workspace = Workspace::new();
    let config = workspace.path().join("switchboard.config.json");
    fs::write(&config, r#"{"timeouts":{"childSpawnMs":600000}}"#).unwrap();
    let mut command = Command::new(gateway());
    command.arg("serve").arg("--config").arg(&config);
    command.current_dir(workspace.path()).env_clear().envs(workspace.environment());
    let host = Host::spawn(&mut command);
    host.initialize();
    await_suites(&host, &["gateway_status"]);

    // Not even the parent folder has existed.
    describe(&workspace, "memory", "1");
    await_suites(&host, &["memory_suite"]);
    let memory = pid(&host, "memory_suite");
    describe(&workspace, "files", "1");
    await_suites(&host, &["files_suite", "memory_suite"]);
    let files = pid(&host, "files_suite");
    assert_eq!(pid(&host, "memory_suite"), memory, "an unchanged server stays");

    describe(&workspace, "files", "2");
    workspace.await_log("files", "start ", 2);
    assert_ne!(pid(&host, "files_suite"), files);
    fs::remove_dir_all(workspace.path().join(".switchboard/mcps/files")).unwrap();
    await_suites(&host, &["memory_suite"]);
    assert_eq!(pid(&host, "memory_suite"), memory);
    host.finish();
}
