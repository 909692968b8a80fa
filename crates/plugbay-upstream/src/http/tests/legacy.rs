//! A legacy server over Streamable HTTP: session, version, order of the opening, and end.

use std::collections::BTreeSet;

use bytes::Bytes;
use plugbay_core::{era::Era, exchange::Reply};
use serde_json::json;

use super::{
    harness::{Harness, Setup, described, page},
    peer::Server,
};
use crate::server::Command;

#[tokio::test]
async fn session_id_and_version_headers_follow_initialize() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let call = harness.call("a");
    let request = server.take_call("a").await;
    assert_eq!(request.header("mcp-session-id"), Some("one"));
    assert_eq!(request.header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(request.header("mcp-method"), None);
    request.answer(json!({ "a": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);

    let stopping = tokio::spawn({
        let handle = harness.handle.clone();
        async move { handle.stop().await }
    });
    let delete = server.take("DELETE").await;
    assert_eq!(delete.header("mcp-session-id"), Some("one"));
    assert_eq!(delete.header("mcp-protocol-version"), Some("2025-06-18"));
    delete.status(200);
    super::soon("the end", stopping).await.unwrap();
}

#[tokio::test]
async fn a_slow_session_delete_delays_the_stop_for_a_while_only() {
    let timeouts = crate::spec::Timeouts { shutdown: 2 * super::SECOND, ..Default::default() };
    let (harness, mut server) = Harness::legacy(Setup { timeouts, ..Setup::default() }).await;
    let stopping = tokio::spawn(async move { harness.handle.stop().await });
    let _unanswered = server.take("DELETE").await;
    super::soon("the end", stopping).await.unwrap();
}

#[tokio::test]
async fn no_request_is_sent_before_the_initialized_notification_is_taken() {
    let mut server = Server::start().await;
    let mut harness = Harness::new(Setup::default(), &server.url());
    let call = harness.call("a");
    let initialize = server.take("initialize").await;
    let body = initialize.response(described());
    initialize.reply(200, &[("content-type", "application/json"), ("mcp-session-id", "one")], body);
    let initialized = server.take("notifications/initialized").await;
    // After this, everything that could be sent has been sent.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(super::SECOND / 10).await;
    assert_eq!(server.untaken(), [""; 0]);
    initialized.status(202);
    server.list(&["a"]).await;
    server.take_call("a").await.answer(json!({}));
    assert_eq!(harness.calls.end(call).await, "{}");
    assert_eq!(harness.report().await, "a");
}

#[tokio::test]
async fn a_server_without_sessions_gets_no_session_id_and_no_delete() {
    let mut server = Server::start().await;
    let mut harness = Harness::new(Setup::default(), &server.url());
    harness.handle.refresh();
    server.take("initialize").await.answer(described());
    server.take("notifications/initialized").await.status(202);
    server.take("GET").await.status(405);
    let list = server.take("tools/list").await;
    assert_eq!(list.header("mcp-session-id"), None);
    list.answer(page(&["a"]));
    assert_eq!(harness.report().await, "a");
    harness.handle.stop().await;
    assert_eq!(server.untaken(), [""; 0]);
}

/// The version in a modern host's request concerns only the headers for a modern server.
#[tokio::test]
async fn the_call_of_a_modern_host_has_the_negotiated_version_header() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let text = r#"{"jsonrpc":"2.0","id":"host","method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"a"}}"#;
    let params = text.find("{\"_meta").unwrap()..text.len() - 1;
    let call = harness.forward(
        crate::server::tests::harness::holes(text.to_owned(), &["\"host\""]),
        Era::Modern,
        Some(params),
    );
    let request = server.take_call("a").await;
    assert_eq!(request.header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(request.header("mcp-method"), None);
    request.answer(json!({}));
    assert_eq!(harness.calls.end(call).await, "{}");
}

#[tokio::test]
async fn progress_and_server_requests_on_a_response_stream_are_forwarded() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let call = harness.call("a");
    let stream = server.take_call("a").await.stream();
    let token = stream.0.message["params"]["_meta"]["progressToken"].clone();
    assert_eq!(token, call.0);
    for count in 1..=3 {
        stream.notify("notifications/progress", json!({ "progressToken": token, "progress": count }));
        harness.calls.progressed(call, count).await;
    }
    for (method, answer) in [
        ("ping", json!({ "jsonrpc": "2.0", "id": "p", "result": {} })),
        (
            "sampling/createMessage",
            json!({ "jsonrpc": "2.0", "id": "p", "error": { "code": -32601, "message": "no host can be asked" } }),
        ),
    ] {
        stream.event(json!({ "jsonrpc": "2.0", "id": "p", "method": method, "params": {} }));
        let posted = server.take("answer").await;
        assert_eq!(posted.message, answer);
        assert_eq!(posted.header("mcp-session-id"), Some("one"));
        posted.status(202);
    }
    stream.answer(json!({ "a": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
}

/// Unlike a pipe, a stream shows which call a server request belongs to.
#[tokio::test]
async fn a_server_request_belongs_to_the_call_of_its_stream() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    harness.calls.listen();
    let (first, second) = (harness.call("a"), harness.call("b"));
    let streams = [server.take_call("a").await.stream(), server.take_call("b").await.stream()];
    for (n, (stream, call)) in streams.iter().zip([first, second]).enumerate() {
        stream.event(json!({ "jsonrpc": "2.0", "id": n, "method": "roots/list" }));
        let (during, server_request) = harness.calls.server_request(n).await;
        assert_eq!(during, Some(call));
        let reply = Reply::Result(Bytes::from_static(b"{\"roots\":[]}"));
        harness.handle.send(Command::Reply { server_request, reply });
        let posted = server.take("answer").await;
        assert_eq!(posted.message, json!({ "jsonrpc": "2.0", "id": n, "result": { "roots": [] } }));
        posted.status(202);
    }
    for (stream, call) in streams.into_iter().zip([first, second]) {
        stream.answer(json!({}));
        assert_eq!(harness.calls.end(call).await, "{}");
    }
}

#[tokio::test]
async fn a_log_message_belongs_to_the_call_of_its_stream() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let calls = [harness.call("a"), harness.call("b")];
    let streams = [server.take_call("a").await.stream(), server.take_call("b").await.stream()];
    for (n, (stream, call)) in streams.iter().zip(calls).enumerate() {
        stream.notify("notifications/message", json!({ "level": "info", "data": n }));
        let (during, text) = harness.calls.notification(n).await;
        assert!(during == Some(call) && text.contains(&format!(r#""data":{n}"#)), "{during:?} {text}");
    }
}

/// A stream that ends just after its answer leaves a connection that the next call can use.
#[tokio::test]
async fn an_http_connection_outlives_its_response_stream() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let mut connections = BTreeSet::new();
    let used_again = async {
        loop {
            let call = harness.call("a");
            let stream = server.take_call("a").await.stream();
            if !connections.insert(stream.0.connection) {
                return;
            }
            stream.answer(json!({}));
            harness.calls.end(call).await;
            stream.end();
            // Nothing else shows that the end of the stream was noticed.
            tokio::time::sleep(super::SECOND / 20).await;
        }
    };
    super::soon("a call on a connection that was used before", used_again).await;
}

#[tokio::test]
async fn initialize_may_be_answered_by_a_stream() {
    let mut server = Server::start().await;
    let harness = Harness::new(Setup::default(), &server.url());
    let call = harness.call("a");
    let initialize = server.take("initialize").await;
    let response = initialize.response(described());
    let headers = [("content-type", "text/event-stream"), ("mcp-session-id", "one")];
    initialize.reply(200, &headers, format!("event: message\ndata: {response}\n\n"));
    let initialized = server.take("notifications/initialized").await;
    assert_eq!(initialized.header("mcp-session-id"), Some("one"));
    assert_eq!(initialized.header("mcp-protocol-version"), Some("2025-06-18"));
    initialized.status(204);
    server.take_call("a").await.answer(json!({}));
    assert_eq!(harness.calls.end(call).await, "{}");
}
