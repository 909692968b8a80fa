//! Tests of the test tools themselves: the scripted host against the scripted server.

use std::{path::Path, process::Command};

use plugbay_testkit::{Framing, Host, Process, Script, Signal, Workspace, wait_until_gone};

const SERVER: &str = env!("CARGO_BIN_EXE_scripted-server");

fn start(workspace: &Workspace, script: &Script) -> Host {
    Host::spawn(Command::new(Path::new(SERVER)).arg(workspace.write_script("s", script)))
}

#[test]
fn speaks_legacy_with_pages() {
    let workspace = Workspace::new();
    let host = start(&workspace, &Script::friendly().set("tools", 7).set("page_size", 3));
    assert_eq!(host.initialize_as("2025-03-26").result_value()["protocolVersion"], "2025-03-26");
    assert_eq!(host.tool_names(), ["tool_0", "tool_1", "tool_2", "tool_3", "tool_4", "tool_5", "tool_6"]);
    assert_eq!(host.call("echo", r#"{"a":1.0}"#).content_text(), r#"{"name":"echo","arguments":{"a":1.0}}"#);
    let id = host.request("server/discover", "{}");
    assert_eq!(host.expect_response(id).error_code(), -32601);
    host.finish();
}

#[test]
fn speaks_modern_with_subscriptions() {
    let workspace = Workspace::new();
    let script =
        Script::new().set("era", r#""modern""#).tool("change", r#"{"change_tools":["new"]}"#).set("tools", 1);
    let host = start(&workspace, &script);
    let id = host.request("initialize", "{}");
    assert_eq!(host.expect_response(id).error_code(), -32601);
    let id = host.request("tools/list", "{}");
    assert_eq!(host.expect_response(id).error_code(), -32602);
    assert_eq!(host.discover().result_value()["supportedVersions"][0], "2026-07-28");
    host.request_as(r#""sub""#, "subscriptions/listen", r#"{"notifications":{"toolsListChanged":true}}"#);
    host.expect_notification("notifications/subscriptions/acknowledged");
    assert_eq!(host.call("change", "{}").result_value()["resultType"], "complete");
    let changed = host.expect_notification("notifications/tools/list_changed");
    assert_eq!(changed.params_value()["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
    assert_eq!(host.tool_names(), ["new"]);
    host.finish();
}

#[test]
fn sends_what_it_is_given() {
    let workspace = Workspace::new();
    let odd = r#"{"b":1.0,"a":123456789012345678901234567890,"e":1e400,"u":"\u00e9é"}"#;
    let script = Script::new()
        .result("odd", odd)
        .tool("last", r#"{"id_last":true}"#)
        .tool("twice", r#"{"duplicate_id":99}"#)
        .tool("order", r#"{"key_order":["id","result","jsonrpc"],"error":{"code":1,"message":"m","x":1.0}}"#)
        .tool("big", r#"{"size":3000000}"#);
    let host = start(&workspace, &script);
    host.initialize();
    assert_eq!(host.call("odd", "{}").result(), odd);
    assert!(host.call("last", "{}").text().ends_with(r#","id":3}"#));
    let id = host.start_call("twice", "{}");
    host.expect("two ids", |m| {
        m.text().contains(&format!(r#""id":{id},"#)) && m.text().ends_with(r#","id":99}"#)
    });
    assert_eq!(
        host.call("order", "{}").text(),
        r#"{"id":5,"error":{"code":1,"message":"m","x":1.0},"jsonrpc":"2.0"}"#
    );
    assert_eq!(host.call("big", "{}").content_text().len(), 3_000_000);
    host.finish();
}

#[test]
fn progress_and_cancellation_are_seen() {
    let workspace = Workspace::new();
    let script = Script::new()
        .tool("work", r#"{"progress":2}"#)
        .tool("hang", r#"{"hang":true}"#)
        .tool("log", r#"{"cancelled_log":true}"#);
    let host = start(&workspace, &script);
    host.initialize();
    let id = host.start_call_with_progress("work", "{}", r#""tok""#);
    host.expect_response(id);
    assert_eq!(host.count_notifications("notifications/progress"), 2);
    let id = host.start_call("hang", "{}");
    host.cancel(id);
    let log = host.call("log", r#"{"wait":1}"#).content_text();
    assert!(log.contains(r#""cancelled":[3]"#) && log.contains(r#"["hang",3]"#), "{log}");
    host.finish();
}

#[test]
fn strict_content_length_ignores_lines() {
    let workspace = Workspace::new();
    let script = Script::friendly().set("framing", r#""content-length""#);
    let host = start(&workspace, &script).with_framing(Framing::ContentLength);
    host.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"ping\"}\n");
    assert_eq!(host.initialize().framing, Framing::ContentLength);
    assert_eq!(host.finish().messages.len(), 1);
}

#[test]
fn stubborn_trees_are_seen_and_ended() {
    let workspace = Workspace::new();
    let script = Script::friendly().set("children", 2).set("ignore_eof", true).set("ignore_term", true);
    let mut host = start(&workspace, &script);
    host.initialize();
    assert_eq!(host.descendants().len(), 2);
    let all = workspace.processes();
    assert_eq!(all.len(), 3);
    host.signal(Signal::TERM);
    host.call("echo", "{}");
    let server = Process::of(host.pid()).unwrap();
    server.stop();
    server.resume();
    for process in &all {
        process.signal(Signal::KILL);
    }
    host.wait_for_exit();
    wait_until_gone(&all);
}

#[test]
fn misbehaves_at_the_start() {
    let workspace = Workspace::new();
    let mut host = start(&workspace, &Script::new().set("exit", r#"{"code":7,"stderr":["no token"]}"#));
    let ended = host.wait_for_exit();
    assert_eq!((ended.status.code(), &*ended.stderr), (Some(7), "no token\n"));

    let noisy = Script::friendly().set("garbage", r#"["\u001b[1mhello"]"#).set("stderr", 2);
    let host = start(&workspace, &noisy);
    host.initialize();
    assert_eq!(host.messages()[0].text(), "\u{1b}[1mhello");
    assert!(host.stderr().len() > 1 << 20);

    let host = start(&workspace, &Script::new().tool("die", r#"{"crash":{"code":3,"stderr":["boom"]}}"#));
    host.initialize();
    host.start_call("die", "{}");
    let mut host = host;
    assert_eq!(host.wait_for_exit().status.code(), Some(3));
    assert_eq!(workspace.starts("s").len(), 3);
}
