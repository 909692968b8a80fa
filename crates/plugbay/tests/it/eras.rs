//! Hosts and servers of both eras: all pairings work, even with servers that cannot handle the probe.

use plugbay_testkit::{Host, Script, Workspace};
use serde_json::json;

use crate::{LIST_CHANGED, gateway};

fn servers() -> Vec<(&'static str, Script)> {
    let script = || {
        Script::friendly()
            .tool("work", r#"{"progress":2}"#)
            .tool("refuse", r#"{"error":{"code":-32602,"message":"refused","data":{"a":1.0}}}"#)
    };
    vec![
        ("legacy", script()),
        ("oldest", script().set("protocol", r#""2024-11-05""#)),
        ("modern", script().set("era", r#""modern""#)),
        ("dual", script().set("era", r#""dual""#)),
        ("silent", script().set("discover", r#""silent""#)),
        ("exits", script().set("discover", r#""exit""#)),
    ]
}

#[track_caller]
fn check_all(host: &Host) {
    let names: Vec<String> = servers().iter().map(|(name, _)| format!("{name}__echo")).collect();
    host.await_tools(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for (name, _) in servers() {
        let echo = host.call(&format!("{name}__echo"), r#"{"n":123456789012345678901234567890}"#);
        assert!(
            echo.content_text().contains(r#""arguments":{"n":123456789012345678901234567890}"#),
            "{name}"
        );
        let refused = host.call(&format!("{name}__refuse"), "{}");
        assert_eq!(refused.error(), r#"{"code":-32602,"message":"refused","data":{"a":1.0}}"#, "{name}");
        let id = host.start_call_with_progress(&format!("{name}__work"), "{}", &format!("\"{name}\""));
        assert_eq!(host.expect_response(id).content_text(), "work ok");
        for _ in 0..2 {
            let progress = host.expect_notification("notifications/progress");
            assert_eq!(progress.params_value()["progressToken"], name);
        }
    }
}

#[test]
fn a_legacy_host_reaches_servers_of_every_era() {
    let workspace = Workspace::new();
    let host = workspace.serve_with(&gateway(), &servers());
    host.initialize();
    check_all(&host);
    host.finish();
}

#[test]
fn a_modern_host_reaches_servers_of_every_era() {
    let workspace = Workspace::new();
    let host = workspace.serve_with(&gateway(), &servers());
    host.discover();
    check_all(&host);
    for (name, _) in servers() {
        let result = host.call(&format!("{name}__echo"), "{}").result_value();
        assert_eq!(result["resultType"], "complete", "{name}");
    }
    host.finish();
}

#[test]
fn each_server_is_called_in_its_own_era_by_hosts_of_either() {
    for open in [Host::initialize, Host::discover] {
        let workspace = Workspace::new();
        let host = workspace.serve_with(&gateway(), &servers());
        open(&host);
        check_all(&host);
        host.finish();
        for (name, modern) in [("legacy", false), ("silent", false), ("exits", false), ("modern", true)] {
            let calls: Vec<String> =
                workspace.log(name).into_iter().filter(|line| line.contains(r#""tools/call""#)).collect();
            assert!(!calls.is_empty(), "{name}");
            for call in calls {
                assert_eq!(call.contains("io.modelcontextprotocol/"), modern, "{name}: {call}");
            }
            assert_eq!(workspace.count_log(name, "notifications/initialized") > 0, !modern, "{name}");
        }
    }
}

/// A server that still accepts `initialize`, but now supports the modern era.
#[test]
fn a_server_that_is_upgraded_is_called_in_its_new_era() {
    let workspace = Workspace::new();
    for (era, modern) in [("legacy", false), ("dual", true)] {
        let script = Script::friendly().set("era", format!("\"{era}\""));
        let host = workspace.serve_with(&gateway(), &[("s", script)]);
        host.discover();
        host.await_tools(&["s__echo"]);
        host.call("s__echo", "{}").result();
        host.finish();
        let log = workspace.log("s");
        let call = log.iter().rfind(|line| line.contains(r#""tools/call""#)).expect("a call");
        assert_eq!(call.contains("io.modelcontextprotocol/protocolVersion"), modern, "{call}");
    }
}

/// On a busy machine, interpreters answer the probe very late.
#[test]
fn the_era_of_a_slow_server_is_detected() {
    let workspace = Workspace::new();
    let slow = |era: &str| Script::friendly().set("start_delay_ms", 4000).set("era", era);
    let servers = [
        ("legacy", slow(r#""legacy""#)),
        ("modern", slow(r#""modern""#)),
        ("dual", slow(r#""dual""#)),
        ("locked", slow(r#""dual""#).set("lock_era", true)),
    ];
    let host = workspace.serve_with(&gateway(), &servers);
    host.discover();
    host.await_tools(&["legacy__echo", "modern__echo", "dual__echo", "locked__echo"]);
    for (name, _) in &servers {
        host.call(&format!("{name}__echo"), "{}").result();
        assert_eq!(workspace.starts(name).len(), 1, "{name} was started more than once");
    }
    host.finish();
}

#[test]
fn a_resource_change_in_a_server_of_either_era_reaches_a_host_of_either_era() {
    for era in [r#""legacy""#, r#""modern""#] {
        let workspace = Workspace::new();
        let script = Script::friendly()
            .set("era", era)
            .tool("grow", r#"{"change_tools":["echo","pid","grow","new"]}"#);
        let config = workspace.config(&[("s", script)]);
        workspace.write_config(&config.options("s", json!({ "warm": "always" })));

        let host = workspace.serve(&gateway());
        host.initialize();
        host.await_tools(&["s__grow"]);
        host.call("s__grow", "{}");
        // Listing first could make the notification unnecessary.
        host.expect_notification(LIST_CHANGED);
        host.await_tools(&["s__new"]);
        host.finish();

        let host = workspace.serve(&gateway());
        host.discover();
        host.request_as(9000, "subscriptions/listen", r#"{"notifications":{"toolsListChanged":true}}"#);
        host.expect_notification("notifications/subscriptions/acknowledged");
        host.await_list("the list without the new tool", |tools| !tools.iter().any(|t| t.name == "s__new"));
        host.call("s__grow", "{}");
        let changed = host.expect_notification(LIST_CHANGED);
        host.await_tools(&["s__new"]);
        assert_eq!(changed.params_value()["_meta"]["io.modelcontextprotocol/subscriptionId"], 9000);
        host.finish();
    }
}

#[test]
fn a_modern_host_gets_no_notification_that_it_did_not_subscribe_to() {
    let workspace = Workspace::new();
    let script = Script::friendly().tool("grow", r#"{"change_tools":["echo","grow","new"]}"#);
    let host = workspace.serve_with(&gateway(), &[("s", script)]);
    host.discover();
    host.await_tools(&["s__grow"]);
    host.call("s__grow", "{}");
    host.await_tools(&["s__new"]);
    let ended = host.finish();
    assert!(!ended.messages.iter().any(|m| m.method().is_some()), "{:?}", ended.messages);
}
