//! Activation over HTTP: a modern host names a desk in its URL, and nobody else sees what is on there.

use std::sync::Arc;

use plugbay_core::{
    exposure::Mode,
    surface::{Layout, Snapshot},
};
use serde_json::{Value, json};

use super::stage::{Stage, fitting, http};
use crate::scripted::{listen, modern, snapshot, snapshot_of};

/// The server `s`, to be switched on.
fn panel() -> Snapshot {
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

async fn tools(stage: &Stage, path: &str, token: &str) -> String {
    let reply = stage.ask(at(path, token, "tools/list", "", &modern(1, "tools/list", ""))).await.json();
    let tools = reply["result"]["tools"].as_array().unwrap_or_else(|| panic!("{reply}"));
    let names =
        tools.iter().map(|tool| tool["name"].as_str().unwrap()).filter(|name| !name.starts_with("gateway_"));
    names.collect::<Vec<_>>().join(" ")
}

async fn activate(stage: &Stage, path: &str, token: &str) -> String {
    let members = r#","name":"gateway_activate","arguments":{"name":"s"}"#;
    let call = at(path, token, "tools/call", "gateway_activate", &modern(2, "tools/call", members));
    let reply: Value = stage.ask(call).await.json();
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
}

#[tokio::test(start_paused = true)]
async fn what_is_on_at_a_desk_is_on_for_its_caller_alone() {
    let stage = Stage::with(panel(), &["one", "two"]);
    let told = activate(&stage, "/mcp?desk=a", "one").await;
    // Nobody listens there, so it is not waited for, and the reply says what there is.
    assert!(told.starts_with("s: 1 tools") && told.ends_with("fetched again:\ns__echo()"), "{told}");
    assert_eq!(tools(&stage, "/mcp?desk=a", "one").await, "s__echo");
    for (path, token) in [("/mcp?desk=a", "two"), ("/mcp?desk=b", "one")] {
        assert_eq!(tools(&stage, path, token).await, "", "{path} {token}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_desk_a_host_calls_through() {
    let stage = Stage::with(panel(), &["one"]);
    assert_eq!(tools(&stage, "/mcp", "one").await, "execute_tool");
    let told = activate(&stage, "/mcp", "one").await;
    assert!(told.contains("execute_tool:\ns__echo()"), "{told}");
    assert_eq!(tools(&stage, "/mcp", "one").await, "execute_tool", "nothing stays on");
}

#[tokio::test(start_paused = true)]
async fn whoever_listens_at_the_desk_is_told() {
    let stage = Stage::with(panel(), &["one"]);
    let mut here = stage.connect();
    let mut elsewhere = stage.connect();
    for (host, path) in [(&mut here, "/mcp?desk=a"), (&mut elsewhere, "/mcp?desk=b")] {
        host.open_stream(at(path, "one", "subscriptions/listen", "", &listen(9))).await;
        assert_eq!(host.hear().await["method"], "notifications/subscriptions/acknowledged");
    }
    activate(&stage, "/mcp?desk=a", "one").await;
    let told = here.hear().await;
    assert_eq!(told["method"], json!("notifications/tools/list_changed"));
    elsewhere.hear_nothing().await;
}

/// In auto mode.
fn undecided(tools: &[Value]) -> Snapshot {
    let known = snapshot_of(tools, true);
    let layout = Layout { mode: None, ..(*known.layout).clone() };
    Snapshot::new(Arc::clone(&known.catalog), Arc::new(layout), true)
}

#[tokio::test(start_paused = true)]
async fn a_host_keeps_its_mode_from_request_to_request() {
    let stage = Stage::with(undecided(&[json!({ "name": "echo" })]), &["one", "two"]);
    let listed = async |token: &str| {
        let body = modern(1, "tools/list", "").replacen(
            r#""_meta":{"#,
            r#""_meta":{"io.modelcontextprotocol/clientInfo":{"name":"opencode","version":"1"},"#,
            1,
        );
        let token = format!("Bearer {token}");
        let headers = [&fitting("tools/list", "")[..], &[("authorization", &token)]].concat();
        let reply = stage.ask(http("POST", "/mcp", &headers, &body)).await.json();
        reply["result"]["tools"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(listed("one").await, 1);
    let many = |number| json!({ "name": format!("tool_{number}"), "description": "word ".repeat(100) });
    let many: Vec<Value> = (0..300).map(many).collect();
    stage.snapshots.send_replace(undecided(&many));
    assert_eq!(listed("one").await, 300, "as it began");
    assert_eq!(listed("two").await, 3, "what fits so many tools");
}
