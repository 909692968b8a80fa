//! Activation over HTTP: a modern host names a host view in its URL. No other view sees its active tools.

use std::{sync::Arc, time::Duration};

use plugbay_core::{
    exposure::Mode,
    surface::{Layout, Snapshot},
};
use serde_json::{Value, json};

use tokio::time::Instant;

use super::harness::{Harness, fitting, get, http, post, within};
use crate::scripted::{INITIALIZED, list, listen, modern, request, snapshot, snapshot_of};

/// The server `s`, whose tools can be activated.
fn active_snapshot() -> Snapshot {
    let known = snapshot(&["echo"], true);
    let layout = Layout { mode: Some(Mode::Activate), ..(*known.layout).clone() };
    Snapshot::new(Arc::clone(&known.catalog), Arc::new(layout), true)
}

fn at(path: &str, token: &str, method: &str, name: &str, body: &str) -> String {
    let client = r#""_meta":{"io.modelcontextprotocol/clientInfo":{"name":"claude-code","version":"1"},"#;
    let body = body.replacen(r#""_meta":{"#, client, 1);
    let token = format!("Bearer {token}");
    let headers = [&fitting(method, name)[..], &[("authorization", &token)]].concat();
    http("POST", path, &headers, &body)
}

async fn tools(harness: &Harness, path: &str, token: &str) -> String {
    let reply = harness.ask(at(path, token, "tools/list", "", &modern(1, "tools/list", ""))).await.json();
    let tools = reply["result"]["tools"].as_array().unwrap_or_else(|| panic!("{reply}"));
    let names =
        tools.iter().map(|tool| tool["name"].as_str().unwrap()).filter(|name| !name.starts_with("gateway_"));
    names.collect::<Vec<_>>().join(" ")
}

async fn activate(harness: &Harness, path: &str, token: &str) -> String {
    let members = r#","name":"gateway_activate","arguments":{"name":"s"}"#;
    let call = at(path, token, "tools/call", "gateway_activate", &modern(2, "tools/call", members));
    let reply: Value = harness.ask(call).await.json();
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
}

#[tokio::test(start_paused = true)]
async fn activated_tools_of_a_named_host_view_belong_to_its_caller_alone() {
    let harness = Harness::with(active_snapshot(), &["one", "two"]);
    let told = activate(&harness, "/mcp?desk=a", "one").await;
    // Nobody listens there, so plugbay does not wait for a new list, and the reply names the tools.
    assert!(told.starts_with("s: 1 tool,") && told.ends_with("fetched again:\ns__echo()"), "{told}");
    assert_eq!(tools(&harness, "/mcp?desk=a", "one").await, "s__echo");
    for (path, token) in [("/mcp?desk=a", "two"), ("/mcp?desk=b", "one")] {
        assert_eq!(tools(&harness, path, token).await, "", "{path} {token}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_named_host_view_tools_are_called_through_execute_tool() {
    let mut harness = Harness::with(active_snapshot(), &["one"]);
    assert_eq!(tools(&harness, "/mcp", "one").await, "execute_tool");
    let told = activate(&harness, "/mcp", "one").await;
    assert!(told.contains("execute_tool:\ns__echo()"), "{told}");
    assert_eq!(tools(&harness, "/mcp", "one").await, "execute_tool", "nothing stays on");
    let members = r#","name":"execute_tool","arguments":{"name":"s__echo","arguments":{"a":1}}"#;
    let mut host = harness.connect();
    host.say(at("/mcp", "one", "tools/call", "execute_tool", &modern(3, "tools/call", members))).await;
    let forwarded = harness.servers.forwarded().await;
    assert!(forwarded.text().contains(r#""name":"echo","arguments":{"a":1}"#), "{}", forwarded.text());
    forwarded.answer(r#"{"content":[{"type":"text","text":"done"}]}"#);
    assert_eq!(host.reply().await.json()["result"]["content"][0]["text"], "done");
}

#[tokio::test(start_paused = true)]
async fn list_changed_reaches_every_subscription_of_a_named_host_view() {
    let harness = Harness::with(active_snapshot(), &["one"]);
    let mut here = harness.connect();
    let mut elsewhere = harness.connect();
    for (host, path) in [(&mut here, "/mcp?desk=a"), (&mut elsewhere, "/mcp?desk=b")] {
        host.open_stream(at(path, "one", "subscriptions/listen", "", &listen(9))).await;
        assert_eq!(host.hear().await["method"], "notifications/subscriptions/acknowledged");
    }
    activate(&harness, "/mcp?desk=a", "one").await;
    let told = here.hear().await;
    assert_eq!(told["method"], json!("notifications/tools/list_changed"));
    elsewhere.hear_nothing().await;
}

/// The session of a legacy host that lists again when it is notified.
async fn legacy(harness: &Harness) -> String {
    let hello = r#"{"protocolVersion":"2025-11-25","clientInfo":{"name":"opencode","version":"1"}}"#;
    let opened = harness.ask(post(&[], &request(1, "initialize", hello))).await;
    let session = opened.headers["mcp-session-id"].clone();
    harness.ask(within(&session, INITIALIZED)).await;
    session
}

#[tokio::test(start_paused = true)]
async fn a_legacy_host_without_a_notification_stream_calls_through_execute_tool() {
    let harness = Harness::with(active_snapshot(), &[]);
    let session = legacy(&harness).await;
    let listed = harness.ask(within(&session, &list(2))).await.body;
    assert!(listed.contains("execute_tool"), "{listed}");
    let start = Instant::now();
    let activate = request(3, "tools/call", r#"{"name":"gateway_activate","arguments":{"name":"s"}}"#);
    let told = harness.ask(within(&session, &activate)).await.body;
    assert!(told.contains(r"Call them with execute_tool:\ns__echo()"), "{told}");
    assert_eq!(start.elapsed(), Duration::ZERO, "nobody could have heard of it");
}

#[tokio::test(start_paused = true)]
async fn activation_waits_for_a_legacy_host_with_a_notification_stream() {
    let harness = Harness::with(active_snapshot(), &[]);
    let session = legacy(&harness).await;
    let mut listening = harness.connect();
    listening.open_stream(get(&session, None)).await;
    assert_eq!(listening.event().await.unwrap().data, "");
    let listed = harness.ask(within(&session, &list(2))).await.body;
    assert!(!listed.contains("execute_tool"), "{listed}");
    let mut host = harness.connect();
    let activate = request(3, "tools/call", r#"{"name":"gateway_activate","arguments":{"name":"s"}}"#);
    host.say(within(&session, &activate)).await;
    assert_eq!(listening.hear().await["method"], "notifications/tools/list_changed");
    assert!(harness.ask(within(&session, &list(4))).await.body.contains("s__echo"));
    let told = host.reply().await.body;
    assert!(told.contains("s: 1 tool,") && !told.contains("s__echo"), "{told}");
}

/// A snapshot in auto mode.
fn undecided(tools: &[Value]) -> Snapshot {
    let known = snapshot_of(tools, true);
    let layout = Layout { mode: None, ..(*known.layout).clone() };
    Snapshot::new(Arc::clone(&known.catalog), Arc::new(layout), true)
}

#[tokio::test(start_paused = true)]
async fn a_modern_host_keeps_its_mode_while_the_catalog_size_stays() {
    let harness = Harness::with(undecided(&[json!({ "name": "echo" })]), &["one", "two"]);
    let listed = async |token: &str| {
        let body = modern(1, "tools/list", "").replacen(
            r#""_meta":{"#,
            r#""_meta":{"io.modelcontextprotocol/clientInfo":{"name":"opencode","version":"1"},"#,
            1,
        );
        let token = format!("Bearer {token}");
        let headers = [&fitting("tools/list", "")[..], &[("authorization", &token)]].concat();
        let reply = harness.ask(http("POST", "/mcp", &headers, &body)).await.json();
        reply["result"]["tools"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(listed("one").await, 1);
    let tools =
        |count| (0..count).map(|number| json!({ "name": format!("tool_{number}") })).collect::<Vec<_>>();
    harness.snapshots.send_replace(undecided(&tools(9)));
    assert_eq!(listed("one").await, 9);
    let many = |number| json!({ "name": format!("tool_{number}"), "description": "word ".repeat(100) });
    let many: Vec<Value> = (0..300).map(many).collect();
    harness.snapshots.send_replace(undecided(&many));
    for token in ["one", "two"] {
        assert_eq!(listed(token).await, 3, "what fits so many tools");
    }
    harness.snapshots.send_replace(undecided(&many[..240]));
    assert_eq!(listed("one").await, 3, "about as many");
}
