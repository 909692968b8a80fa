//! No process survives the gateway, however it ends.
#![cfg(target_os = "linux")]

use plugbay_testkit::{DEADLINE, Host, Process, Script, Signal, Workspace, wait_until, wait_until_gone};

use serde_json::json;

use crate::{gateway, open};

const SERVERS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Five servers, each with two grandchildren that hold the pipes and ignore the end of input.
fn start(workspace: &Workspace, server: &Script) -> (Host, Vec<Process>) {
    let servers: Vec<(&str, Script)> = SERVERS.iter().map(|name| (*name, server.clone())).collect();
    let tools: Vec<String> = SERVERS.iter().map(|name| format!("{name}__echo")).collect();
    let host = open(workspace, &servers, &tools.iter().map(String::as_str).collect::<Vec<_>>());
    for tool in &tools {
        host.call(tool, "{}");
    }
    let mut processes = wait_until("the whole tree", DEADLINE, || {
        let processes = workspace.processes();
        (processes.len() > 3 * SERVERS.len()).then_some(processes)
    });
    processes.extend(host.descendants());
    (host, processes)
}

fn polite() -> Script {
    Script::friendly().set("children", 2)
}

fn stubborn() -> Script {
    polite().set("ignore_eof", true).set("ignore_term", true)
}

#[test]
fn no_process_is_left_after_kill_9() {
    let workspace = Workspace::new();
    let (mut host, processes) = start(&workspace, &polite());
    host.signal(Signal::KILL);
    host.wait_for_exit();
    wait_until_gone(&processes);
    assert_eq!(workspace.processes(), []);
}

#[test]
fn no_process_is_left_of_stubborn_servers_after_kill_9() {
    let workspace = Workspace::new();
    let (mut host, processes) = start(&workspace, &stubborn());
    host.signal(Signal::KILL);
    host.wait_for_exit();
    wait_until_gone(&processes);
    assert_eq!(workspace.processes(), []);
}

#[test]
fn no_process_is_left_after_the_end_of_input() {
    for script in [polite(), stubborn()] {
        let workspace = Workspace::new();
        let (host, processes) = start(&workspace, &script);
        host.finish();
        wait_until_gone(&processes);
    }
}

#[test]
fn no_process_is_left_after_sigterm() {
    for script in [polite(), stubborn()] {
        let workspace = Workspace::new();
        let (mut host, processes) = start(&workspace, &script);
        host.signal(Signal::TERM);
        host.wait_for_exit();
        wait_until_gone(&processes);
    }
}

/// `drain` would allow the call to go on for an hour.
#[test]
fn no_process_is_left_after_a_second_sigterm_which_ends_a_gateway_at_once() {
    let workspace = Workspace::new();
    let script = polite().tool("hang", r#"{"hang":true}"#);
    let config = workspace.config(&[("s", script)]).top("drain", json!("1h"));
    workspace.write_config(&config);
    let mut host = workspace.serve(&gateway());
    host.initialize();
    host.call("s__echo", "{}");
    let server = workspace.server_process("s");
    let mut tree = plugbay_testkit::descendants(server.pid);
    tree.push(server);
    host.request("tools/call", r#"{"name":"s__hang","arguments":{}}"#);
    host.barrier();
    host.signal(Signal::TERM);
    wait_until("the drain", DEADLINE, || {
        let id = host.request("tools/call", r#"{"name":"s__echo","arguments":{}}"#);
        host.expect_response(id).text().contains("shutting down").then_some(())
    });
    host.signal(Signal::TERM);
    host.wait_for_exit();
    wait_until_gone(&tree);
}

#[test]
fn no_process_is_left_of_a_server_that_crashed() {
    let workspace = Workspace::new();
    let script = polite().tool("crash", r#"{"crash":{"code":1}}"#);
    let host = open(&workspace, &[("s", script)], &["s__crash"]);
    host.call("s__echo", "{}");
    let server = workspace.server_process("s");
    let mut tree = plugbay_testkit::descendants(server.pid);
    assert_eq!(tree.len(), 2);
    tree.push(server);
    host.call("s__crash", "{}").failure();
    wait_until_gone(&tree);
    host.call("s__echo", "{}");
    host.finish();
}
