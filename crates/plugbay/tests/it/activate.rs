//! Activate mode with real processes: pre-warming, a crash, a recovery; and learning from use.

use plugbay_testkit::{Host, Script, Signal, Workspace};
use serde_json::json;

use crate::gateway;

/// The tools for an unknown host. It may not list again, so it can also call other tools through these.
const ACTIVATE_TOOLS: [&str; 4] =
    ["gateway_activate", "gateway_deactivate", "gateway_status", "execute_tool"];

fn started(workspace: &Workspace, servers: &[(&str, Script)]) -> Host {
    workspace.write_config(&workspace.config(servers).top("mode", json!("activate")));
    let host = workspace.serve(&gateway());
    host.initialize();
    host
}

fn with<'a>(tools: &[&'a str]) -> Vec<&'a str> {
    [&ACTIVATE_TOOLS[..], tools].concat()
}

#[test]
fn servers_start_before_they_are_activated_and_stay_ready() {
    for open in [|host: &Host| drop(host.initialize()), Host::speak_modern] {
        check_warmth(open);
    }
}

fn check_warmth(open: fn(&Host)) {
    let workspace = Workspace::new();
    let servers = [("a", Script::friendly()), ("b", Script::friendly())];
    workspace.write_config(&workspace.config(&servers).top("mode", json!("activate")));
    let host = workspace.serve(&gateway());
    open(&host);
    assert_eq!(host.tool_names(), ACTIVATE_TOOLS);
    workspace.await_log("a", "listed", 1);
    workspace.await_log("b", "listed", 1);
    let told = host.call("gateway_activate", r#"{"name":"a"}"#).content_text();
    assert!(told.starts_with("a: 2 tools"), "{told}");
    assert_eq!(host.tool_names(), with(&["a__echo", "a__pid"]));
    let pid = host.call("a__pid", "{}").content_text();
    host.call("gateway_deactivate", r#"{"name":"a"}"#);
    assert_eq!(host.tool_names(), ACTIVATE_TOOLS);
    host.call("gateway_activate", r#"{"name":"a.p*"}"#);
    assert_eq!(host.tool_names(), with(&["a__pid"]));
    assert_eq!(host.call("a__pid", "{}").content_text(), pid, "the same process as before");
    host.finish();
}

#[test]
fn a_server_crash_removes_its_tools_and_a_recovery_restores_them() {
    let workspace = Workspace::new();
    let host = started(&workspace, &[("a", Script::friendly()), ("b", Script::friendly())]);
    host.call("gateway_activate", r#"{"name":["a","b"]}"#);
    let all = with(&["a__echo", "a__pid", "b__echo", "b__pid"]);
    host.await_list("both servers", |tools| tools.len() == all.len());
    // It keeps failing, so that it does not come back before the test looks.
    workspace.write_script("a", &Script::new().set("exit", r#"{"code":1,"stderr":["gone for good"]}"#));
    workspace.server_process("a").signal(Signal::KILL);
    let left = with(&["b__echo", "b__pid"]);
    host.await_list("only b", |tools| tools.len() == left.len());
    let told = host.call("gateway_status", "{}").content_text();
    assert!(told.starts_with("a: error: ") && told.contains("b: active, 2 tools"), "{told}");
    workspace.write_script("a", &Script::friendly());
    host.await_list("both servers again", |tools| tools.len() == all.len());
    assert_eq!(host.tool_names(), all);
    host.finish();
}

#[test]
fn the_first_list_waits_for_no_server_whose_tools_are_not_in_it() {
    for (mode, listed) in
        [("activate", &ACTIVATE_TOOLS[..]), ("search", &["search_tools", "describe_tool", "execute_tool"])]
    {
        let workspace = Workspace::new();
        let silent = Script::new().set("start_delay_ms", "3600000");
        let config = workspace.config(&[("a", Script::friendly()), ("silent", silent)]);
        workspace.write_config(&config.top("mode", json!(mode)).top("listWait", json!("1h")));
        let host = workspace.serve(&gateway());
        host.initialize();
        assert_eq!(host.tool_names(), listed);
    }
}

#[test]
fn a_repaired_server_is_ready_as_soon_as_it_is_activated() {
    let workspace = Workspace::new();
    let broken = Script::new().set("exit", r#"{"code":1,"stderr":["no such thing"]}"#);
    let host = started(&workspace, &[("a", broken)]);
    for _ in 0..3 {
        let told = host.call("gateway_activate", r#"{"name":"a"}"#).content_text();
        assert!(told.contains("stderr: no such thing; try: run `plugbay list`"), "{told}");
    }
    // By now it would not be started again for seconds.
    workspace.write_script("a", &Script::friendly());
    let told = host.call("gateway_activate", r#"{"name":"a"}"#).content_text();
    assert!(told.starts_with("a: 2 tools"), "{told}");
    host.finish();
}

#[test]
fn an_idle_server_starts_when_activated_and_is_idle_again_after_deactivation() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly())]).top("mode", json!("activate"));
    workspace.write_config(&config.top("defaults", json!({ "idle": "100ms" })));
    let host = workspace.serve(&gateway());
    host.initialize();
    workspace.await_log("a", "eof", 1);
    let told = host.call("gateway_activate", r#"{"name":"a"}"#).content_text();
    assert!(told.starts_with("a: 2 tools"), "{told}");
    assert_eq!(workspace.starts("a").len(), 2);
    host.call("gateway_deactivate", r#"{"name":"a"}"#);
    workspace.await_log("a", "eof", 2);
    assert_eq!(workspace.starts("a").len(), 2);
    host.finish();
}

#[test]
fn learned_tools_are_listed_in_the_next_conversation() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly())]);
    workspace.write_config(&config.top("mode", json!("search")).top("learn", json!(1)));
    let three = ["search_tools", "describe_tool", "execute_tool"];
    let host = workspace.serve(&gateway());
    host.initialize();
    assert_eq!(host.tool_names(), three);
    for tool in ["a__echo", "a__pid", "a__pid"] {
        host.call("execute_tool", &json!({ "name": tool, "arguments": {} }).to_string());
    }
    assert_eq!(host.tool_names(), three, "not in the middle of a conversation");
    host.finish();
    let host = workspace.serve(&gateway());
    host.initialize();
    assert_eq!(host.tool_names(), [&three[..], &["a__pid"]].concat());
    host.finish();
}
