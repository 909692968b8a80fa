//! Sessions: how they open, who owns them, and how they end.

use serde_json::json;
use tokio::time::sleep;

use super::harness::{Harness, get, http, post, within};
use crate::scripted::{INITIALIZE, SECOND, call, cancel, list, request, snapshot};

#[tokio::test(start_paused = true)]
async fn initialize_opens_a_session_with_an_unguessable_id() {
    let harness = Harness::new();
    let (one, other) = (harness.open().await, harness.open().await);
    assert!(one.len() >= 32 && one.bytes().all(|byte| byte.is_ascii_graphic()), "{one}");
    assert_ne!(one, other);
    let opened = harness.ask(post(&[], INITIALIZE)).await;
    assert_eq!(opened.json()["result"]["protocolVersion"], "2025-11-25");
    let refused = harness.ask(post(&[], &request(1, "initialize", "{}"))).await;
    assert_eq!((refused.status, refused.code()), (400, json!(-32602)));
    assert!(!refused.headers.contains_key("mcp-session-id"));
}

#[tokio::test(start_paused = true)]
async fn every_legacy_request_but_initialize_needs_its_session() {
    let harness = Harness::new();
    let session = harness.open().await;
    let unknown = "0".repeat(session.len());
    for (named, status) in [("", 400), (&*unknown, 404), (&*session, 200)] {
        let header = [("mcp-session-id", named)];
        assert_eq!(harness.ask(post(&header, &list(1))).await.status, status, "{named}");
        let notification = harness.ask(post(&header, &cancel(1))).await;
        assert_eq!(notification.status, if status == 200 { 202 } else { status });
        let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let response = harness.ask(post(&header, response)).await;
        assert_eq!(
            (response.status, &*response.body),
            if status == 200 { (202, "") } else { (status, &*response.body) }
        );
        let listening = harness.ask(http("GET", "/mcp", &header, "")).await;
        assert_eq!(listening.status, status);
    }
    let twice = format!("{session}\r\nmcp-session-id: {session}");
    assert_eq!(harness.ask(within(&twice, &list(1))).await.status, 400);
    for (version, status) in [("2024-11-05", 200), ("2025-11-25", 200), ("1999-01-01", 400), ("x", 400)] {
        let headers = [("mcp-session-id", &*session), ("mcp-protocol-version", version)];
        assert_eq!(harness.ask(post(&headers, &list(1))).await.status, status, "{version}");
    }
}

/// A proxy that tells its users apart by this header must not mix them up in one session.
#[tokio::test(start_paused = true)]
async fn a_request_with_another_x_session_id_than_initialize_is_rejected() {
    let harness = Harness::new();
    let opened = harness.ask(post(&[("x-session-id", "same")], INITIALIZE)).await;
    let named = opened.headers["mcp-session-id"].clone();
    let unnamed = harness.open().await;
    for (session, name, status) in
        [(&named, "same", 200), (&named, "other", 400), (&named, "Same", 400), (&unnamed, "same", 400)]
    {
        let headers = [("mcp-session-id", &**session), ("x-session-id", name)];
        assert_eq!(harness.ask(post(&headers, &list(1))).await.status, status, "{name}");
    }
    assert_eq!(harness.ask(within(&named, &list(1))).await.status, 200, "its id names the session");
}

#[tokio::test(start_paused = true)]
async fn errors_of_a_session_are_json_rpc_responses() {
    let harness = Harness::new();
    let session = harness.open().await;
    for (body, code) in [(request(1, "roots/list", "{}"), -32601), (request(1, "tools/call", "{}"), -32602)] {
        let reply = harness.ask(within(&session, &body)).await;
        assert_eq!((reply.status, reply.code()), (200, json!(code)), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_session_ends_its_calls_and_streams() {
    let mut harness = Harness::new();
    let session = harness.open().await;
    let mut listening = harness.connect();
    listening.open_stream(get(&session, None)).await;
    assert_eq!(listening.event().await.unwrap().data, "");
    let mut host = harness.connect();
    host.say(within(&session, &call(1))).await;
    let forwarded = harness.servers.forwarded().await;
    let delete = http("DELETE", "/mcp", &[("mcp-session-id", &session)], "");
    assert_eq!(harness.ask(&delete).await.status, 204);
    assert_eq!(harness.servers.cancelled().await.0, forwarded.ticket());
    assert_eq!(listening.event().await, None);
    assert_eq!(host.reply().await.headers["content-type"], "text/event-stream");
    assert_eq!(host.event().await, None, "no answer to a cancelled request");
    assert_eq!(harness.ask(&delete).await.status, 404);
    assert_eq!(harness.ask(within(&session, &list(1))).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn an_unused_session_expires_unless_its_stream_is_open() {
    let harness = Harness::new();
    let (unused, listens) = (harness.open().await, harness.open().await);
    let mut before = harness.connect();
    before.open_stream(get(&listens, None)).await;
    let mut listening = harness.connect();
    listening.open_stream(get(&listens, None)).await; // takes over, which is not to stop listening
    sleep(3500 * SECOND).await;
    let used = harness.open().await;
    sleep(200 * SECOND).await;
    assert_eq!(harness.ask(within(&unused, &list(1))).await.status, 404);
    assert_eq!(harness.ask(within(&used, &list(1))).await.status, 200);
    assert_eq!(harness.ask(within(&listens, &list(1))).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn cancellation_reaches_only_the_calls_of_its_own_session() {
    let mut harness = Harness::new();
    let (session, other) = (harness.open().await, harness.open().await);
    let mut host = harness.connect();
    host.say(within(&session, &call(1))).await;
    let forwarded = harness.servers.forwarded().await;
    assert_eq!(harness.ask(within(&other, &cancel(1))).await.status, 202);
    harness.servers.nothing_forwarded().await;
    assert_eq!(harness.ask(within(&session, &cancel(1))).await.status, 202);
    assert_eq!(harness.servers.cancelled().await.0, forwarded.ticket());
    forwarded.answer("{}");
    assert_eq!(host.reply().await.status, 200);
    assert_eq!(host.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn list_changed_comes_on_the_stream_that_get_opens() {
    let harness = Harness::new();
    let session = harness.open().await;
    harness.ask(within(&session, &list(1))).await;
    for tools in [&["a"][..], &["b"], &["c"]] {
        harness.snapshots.send_replace(snapshot(tools, true)); // nobody listens yet: this is told once
        sleep(SECOND).await;
    }
    let mut host = harness.connect();
    host.open_stream(get(&session, None)).await;
    assert_eq!(host.event().await.unwrap().data, "", "something to resume from");
    let told = host.event().await.unwrap();
    assert!(told.data.contains("list_changed") && told.id.is_some(), "{told:?}");
    host.hear_nothing().await;
    harness.snapshots.send_replace(snapshot(&["d"], true));
    assert_eq!(host.hear().await["method"], "notifications/tools/list_changed");

    // A second one takes over: the first is assumed to be broken.
    let mut second = harness.connect();
    second.open_stream(get(&session, None)).await;
    assert_eq!(second.event().await.unwrap().data, "");
    assert_eq!(host.event().await, None);
    harness.snapshots.send_replace(snapshot(&["e"], true));
    assert_eq!(second.hear().await["method"], "notifications/tools/list_changed");
    second.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_has_a_limited_number_of_calls_in_flight() {
    let mut harness = Harness::new();
    let session = harness.open().await;
    let mut calls = Vec::new();
    for n in 0..128 {
        let mut host = harness.connect();
        host.say(within(&session, &call(n))).await;
        calls.push(harness.servers.forwarded().await);
        drop(host); // the call goes on
    }
    let refused = harness.ask(within(&session, &call(1000))).await;
    assert_eq!((refused.status, refused.json()["id"].clone()), (429, json!(1000)));
    assert!(refused.headers.contains_key("retry-after"));
    let other = harness.open().await;
    assert_eq!(harness.ask(within(&other, &list(1))).await.status, 200);
    calls.remove(0).answer("{}");
    assert_eq!(harness.ask(within(&session, &list(1))).await.status, 200);
}
