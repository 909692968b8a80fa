//! The client-side proxy's two sequences, initialisation and tool execution, with its own file unchanged.

use std::{collections::BTreeSet, fs, process::Command};

use plugbay_testkit::{Asked, Endpoint, Host, Script, Workspace, scripted_server_path, write_program};
use serde_json::json;

use super::plain_api;
use crate::gateway;

const CONFIG: &str = r#"{
  "remoteTools": [
    "web_search",
    "web_summarize", 
    "memory_store",
    "memory_retrieve",
    "db_query"
  ],
  "localServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem"],
      "tools": ["read_file", "write_file", "list_directory"],
      "workingDirectory": "project_root"
    },
    "git": {
      "command": "npx", 
      "args": ["-y", "@modelcontextprotocol/server-git"],
      "tools": ["git_status", "git_commit", "git_diff"],
      "workingDirectory": "project_root"
    }
  }
}
"#;

const TOOLS: [&str; 11] = [
    "db_query",
    "git_commit",
    "git_diff",
    "git_status",
    "list_directory",
    "memory_retrieve",
    "memory_store",
    "read_file",
    "web_search",
    "web_summarize",
    "write_file",
];

fn remote() -> Endpoint {
    plain_api(&["web_search", "web_summarize", "memory_store", "memory_retrieve", "db_query", "admin_reset"])
}

/// A project in a repository, with an `npx` that starts scripted servers instead of the packages.
fn prepare(workspace: &Workspace) {
    let root = workspace.path();
    fs::create_dir_all(root.join("project/.git")).unwrap();
    fs::create_dir_all(root.join("project/src")).unwrap();
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::write(root.join("project/servers-config.json"), CONFIG).unwrap();
    let files = Script::new()
        .set("tools", json!(["read_file", "write_file", "list_directory", "delete_file"]))
        .tool("read_file", r#"{"env":true}"#)
        .tool("*", r#"{"echo":true}"#);
    let git = Script::new()
        .set("tools", json!(["git_status", "git_commit", "git_diff", "git_push"]))
        .tool("*", r#"{"echo":true}"#);
    let [files, git] =
        [("filesystem", files), ("git", git)].map(|(name, script)| workspace.write_script(name, &script));
    let server = scripted_server_path();
    let server = server.display();
    let program = format!(
        "#!/bin/sh\nFOLDER=$(pwd); export FOLDER\ncase \"$2\" in\n*filesystem) exec {server} {files};;\n*git) exec {server} {git};;\nesac\nexit 9\n"
    );
    write_program(&root.join("bin/npx"), &program);
}

fn command(workspace: &Workspace) -> Command {
    let path =
        format!("{}:{}", workspace.path().join("bin").display(), std::env::var("PATH").expect("a PATH"));
    let mut command = Command::new(gateway());
    command.arg("serve").env_clear().envs(workspace.environment()).env("PATH", path);
    command.current_dir(workspace.path().join("project/src"));
    command
}

fn wrapper(workspace: &Workspace, remote: &Endpoint) -> Host {
    let mut command = command(workspace);
    command.args(["--config", "../servers-config.json", "--remote", &remote.url()]);
    let host = Host::spawn(&mut command);
    host.initialize();
    host.await_list("every tool", |tools| tools.len() == TOOLS.len());
    host
}

fn session_ids(asked: &[Asked]) -> BTreeSet<String> {
    asked.iter().map(|asked| asked.header("x-session-id").expect("a session id").to_owned()).collect()
}

fn is_client_uuid(id: &str) -> bool {
    let groups: Vec<usize> = id.split('-').map(str::len).collect();
    groups == [6, 8, 4, 4, 4, 12] && id.starts_with("client-") && id.as_bytes()[21] == b'4'
}

#[test]
fn initialization_lists_local_and_remote_tools_by_the_clients_filter() {
    let workspace = Workspace::new();
    prepare(&workspace);
    let remote = remote();
    let host = wrapper(&workspace, &remote);
    assert_eq!(host.tool_names(), TOOLS, "filtered by the client alone, under their own names");
    let asked = remote.untaken();
    assert!(asked.iter().any(|asked| asked.path == "/tools"), "{asked:?}");
    let ids = session_ids(&asked);
    assert!(ids.len() == 1 && ids.iter().all(|id| is_client_uuid(id)), "{ids:?}");
    let answer = host.call("read_file", "{}");
    let environment = answer.text();
    let project = workspace.path().join("project");
    assert!(environment.contains(&format!("{}\\\"", project.display())), "{environment}");
    host.finish();
}

#[test]
fn tool_execution_goes_to_the_local_server_or_with_the_session_to_the_remote() {
    let workspace = Workspace::new();
    prepare(&workspace);
    let remote = remote();
    let host = wrapper(&workspace, &remote);
    let ids = session_ids(&remote.untaken());
    let id = ids.first().expect("a session id");
    assert!(host.call("git_status", r#"{"canary":"local"}"#).text().contains("canary"));
    assert!(remote.untaken().iter().all(|asked| asked.path != "/tools/call"), "a local call stays local");
    let answer = host.call("web_search", r#"{"query":"é","n":1.0}"#);
    assert_eq!(answer.content_text(), format!("\"web_search\" in {id}"));
    let asked: Vec<Asked> =
        remote.untaken().into_iter().filter(|asked| asked.path == "/tools/call").collect();
    assert_eq!(asked.len(), 1, "sent once");
    assert_eq!(asked[0].text, r#"{"name":"web_search","arguments":{"query":"é","n":1.0}}"#);
    assert_eq!(asked[0].header("x-session-id"), Some(id.as_str()));
    let refused = host.call("db_query", "{}");
    assert!(
        refused.text().contains("no such table") && refused.text().contains("\"isError\":true"),
        "{}",
        refused.text()
    );
    host.call("admin_reset", "{}").failure();
    assert!(
        remote.untaken().iter().all(|asked| asked.body["name"] != "admin_reset"),
        "the filter holds for calls"
    );
    host.finish();
}

#[test]
fn two_windows_have_two_session_ids_and_keep_them() {
    let workspace = Workspace::new();
    prepare(&workspace);
    let (one, other) = (remote(), remote());
    let hosts = [wrapper(&workspace, &one), wrapper(&workspace, &other)];
    for host in &hosts {
        for tool in ["web_search", "memory_store", "web_search"] {
            host.call(tool, "{}");
        }
    }
    let ids = [session_ids(&one.untaken()), session_ids(&other.untaken())];
    assert!(ids.iter().all(|ids| ids.len() == 1) && ids[0] != ids[1], "{ids:?}");
    for host in hosts {
        host.finish();
    }
}

#[test]
fn a_servers_config_in_the_project_is_used_once_it_is_approved() {
    let workspace = Workspace::new();
    prepare(&workspace);
    let remote = remote();
    let start = || {
        let host = Host::spawn(command(&workspace).env("PLUGBAY_REMOTE", remote.url()));
        host.initialize();
        host
    };
    let host = start();
    host.await_list("the tools of the remote", |tools| {
        tools.iter().any(|tool| tool.name.contains("web_search"))
    });
    let names = host.tool_names();
    assert!(names.iter().all(|name| !name.starts_with("git_")), "not approved");
    assert!(
        names.iter().all(|name| name != "admin_reset"),
        "its remoteTools restrict all the same: {names:?}"
    );
    host.finish();
    let mut approve = Command::new(gateway());
    approve.args(["approve", "--yes"]).env_clear().envs(workspace.environment());
    let approved = approve.current_dir(workspace.path().join("project/src")).output().expect("plugbay runs");
    assert!(approved.status.success(), "{approved:?}");
    let host = start();
    host.await_list("every tool", |tools| tools.len() == TOOLS.len());
    host.finish();
}

#[test]
fn remote_tools_without_a_remote_are_a_problem_that_says_what_to_add() {
    let workspace = Workspace::new();
    prepare(&workspace);
    let host = Host::spawn(command(&workspace).args(["--config", "../servers-config.json"]));
    let opened = host.initialize();
    assert!(opened.text().contains("PLUGBAY_REMOTE"), "{}", opened.text());
    host.await_list("the local tools", |tools| tools.len() == 6);
    host.finish();
}
