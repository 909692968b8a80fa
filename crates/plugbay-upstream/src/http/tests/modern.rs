//! A modern server: `server/discover`, the headers of each request, and its subscription.

use serde_json::{Value, json};

use super::{
    harness::{Harness, Setup, capabilities},
    peer::Server,
};

const VERSION: &str = "2026-07-28";

#[tokio::test]
async fn each_modern_request_is_repeated_in_its_headers() {
    let mut server = Server::start().await;
    let mut harness = Harness::new(Setup::unknown(), &server.url());
    harness.handle.refresh();
    let discover = server.next().await;
    assert_eq!(discover.kind(), "server/discover");
    assert_eq!(discover.header("mcp-method"), Some("server/discover"));
    assert_eq!(discover.header("mcp-protocol-version"), Some(VERSION));
    assert_eq!(discover.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(discover.header("mcp-session-id"), None);
    // A modern server has no session to give.
    let body = discover.response(capabilities());
    discover.reply(200, &[("content-type", "application/json"), ("mcp-session-id", "no")], body);

    let list = server.take("tools/list").await;
    assert_eq!(list.header("mcp-method"), Some("tools/list"));
    assert_eq!(list.header("mcp-protocol-version"), Some(VERSION));
    assert_eq!(list.header("mcp-name"), None);
    assert_eq!(list.header("mcp-session-id"), None);
    let schema = |kind: &str| json!({ "type": "object", "properties": { "where": { "type": kind, "x-mcp-header": "Region" } } });
    list.answer(json!({ "tools": [
        { "name": "a", "inputSchema": schema("string") },
        { "name": "unusable", "inputSchema": schema("number") },
    ] }));
    assert_eq!(harness.report().await, "a");

    let listen = server.take("subscriptions/listen").await;
    assert_eq!(listen.header("mcp-method"), Some("subscriptions/listen"));
    assert_eq!(listen.message["params"]["notifications"], json!({ "toolsListChanged": true }));

    let call = harness.call_with("a", r#"{"where":"Köln"}"#);
    let request = server.take_call("a").await;
    assert_eq!(request.header("mcp-method"), Some("tools/call"));
    assert_eq!(request.header("mcp-name"), Some("a"));
    assert_eq!(request.header("mcp-param-region"), Some("=?base64?S8O2bG4=?="));
    assert_eq!(request.header("mcp-protocol-version"), Some(VERSION));
    let meta = &request.message["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], VERSION);
    request.answer(json!({ "a": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);

    harness.handle.stop().await;
    assert_eq!(server.untaken(), [""; 0]); // no GET, no DELETE, no notification
}

/// A host may call a tool that it knows from the cache before the server has started.
#[tokio::test]
async fn a_call_waits_for_the_list_that_names_its_headers() {
    let mut server = Server::start().await;
    let harness = Harness::new(Setup::modern(), &server.url());
    let queued = harness.call_with("a", r#"{"where":"north"}"#);
    server.take("server/discover").await.answer(capabilities());
    let list = server.take("tools/list").await;
    let second = harness.call_with("a", r#"{"where":"south"}"#);
    let schema = json!({ "type": "object", "properties": { "where": { "type": "string", "x-mcp-header": "Region" } } });
    list.answer(json!({ "tools": [{ "name": "a", "inputSchema": schema }] }));
    for (call, region) in [(queued, "north"), (second, "south")] {
        let request = server.take_call("a").await;
        assert_eq!(request.header("mcp-param-region"), Some(region));
        request.answer(json!({}));
        assert_eq!(harness.calls.end(call).await, "{}");
    }
}

#[tokio::test]
async fn list_changed_comes_by_subscriptions_listen() {
    let (mut harness, mut server, subscription) = Harness::modern(Setup::modern()).await;
    let stream = subscription.stream();
    let id = stream.0.message["id"].clone();
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
    stream.notify("notifications/subscriptions/acknowledged", json!({ "_meta": meta }));
    stream.write(": keep-alive\n\n");
    stream.notify("notifications/tools/list_changed", json!({ "_meta": meta }));
    server.list(&["a", "b"]).await;
    assert_eq!(harness.report().await, "a b");
}

#[tokio::test]
async fn a_broken_subscriptions_listen_is_sent_again() {
    let (mut harness, mut server, subscription) = Harness::modern(Setup::modern()).await;
    drop(subscription.stream());
    let again = server.take("subscriptions/listen").await; // after a pause
    assert_eq!(again.header("last-event-id"), None);
    server.list(&["b"]).await;
    assert_eq!(harness.report().await, "b");
}

/// Streams of a modern server cannot be resumed.
#[tokio::test]
async fn a_broken_response_stream_of_a_modern_server_ends_its_call() {
    let (harness, mut server, _subscription) = Harness::modern(Setup::modern()).await;
    let call = harness.call("a");
    let stream = server.take_call("a").await.stream();
    stream.write("retry: 1\nid: 1\ndata:\n\n");
    drop(stream);
    let end = harness.calls.end(call).await;
    assert!(end.contains("the connection broke before the answer was whole"), "{end}");
    harness.works(&mut server).await;
    assert_eq!(server.untaken(), [""; 0]);
}

/// A modern server may not send requests on a stream, and a client may not send responses.
#[tokio::test]
async fn a_server_request_on_a_modern_stream_is_not_answered() {
    let (harness, mut server, _subscription) = Harness::modern(Setup::modern()).await;
    let call = harness.call("a");
    let stream = server.take_call("a").await.stream();
    stream.event(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
    stream.answer(json!({}));
    harness.calls.end(call).await;
    harness.works(&mut server).await;
    assert_eq!(server.untaken(), [""; 0]);
}

/// The error is the server's own: the protocol defines it, and plugbay does not change it.
#[tokio::test]
async fn the_error_for_an_unknown_method_is_the_servers_own() {
    let (harness, mut server, _subscription) = Harness::modern(Setup::modern()).await;
    let call = harness.call("a");
    let request = server.take_call("a").await;
    let id: Value = request.message["id"].clone();
    request.json(404, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#));
    assert_eq!(harness.calls.end(call).await, r#"{"code":-32601,"message":"no"}"#);
    harness.works(&mut server).await;
    assert_eq!(server.untaken(), [""; 0]);
}
