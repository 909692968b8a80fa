//! The SSE transport of 2024-11-05: one stream for all responses, one endpoint for all messages.

use serde_json::{Value, json};

use super::{
    harness::{Harness, Setup, described, page},
    peer::{Request, Server, Stream},
};

/// Opens a session of the SSE transport; messages are posted to `endpoint`.
pub(super) async fn open(server: &mut Server, endpoint: &str) -> Stream {
    let stream = server.take("GET").await.stream();
    open_on(server, &stream, endpoint).await;
    stream
}

pub(super) async fn open_on(server: &mut Server, stream: &Stream, endpoint: &str) {
    stream.write(format!("event: endpoint\ndata: {endpoint}\n\n"));
    let initialize = server.take("initialize").await;
    answer(stream, initialize, described());
    server.take("notifications/initialized").await.status(202);
}

pub(super) async fn list(server: &mut Server, stream: &Stream, tools: &[&str]) {
    let request = server.take("tools/list").await;
    answer(stream, request, page(tools));
}

/// Answers on the stream, as this transport always does.
fn answer(stream: &Stream, request: Request, result: Value) {
    let response = request.response(result);
    request.reply(202, &[], "Accepted");
    stream.write(format!("event: message\ndata: {response}\n\n"));
}

pub(super) async fn ready() -> (Harness, Server, Stream) {
    let mut server = Server::start().await;
    let mut harness = Harness::new(Setup::sse(), &server.url());
    harness.handle.refresh();
    let stream = open(&mut server, "/messages?session=1").await;
    list(&mut server, &stream, &["a"]).await;
    assert_eq!(harness.report().await, "a");
    (harness, server, stream)
}

#[tokio::test]
async fn sse_messages_go_to_the_endpoint() {
    let mut server = Server::start().await;
    for (endpoint, path) in [
        ("/messages?session=1".to_owned(), "/messages?session=1"),
        ("messages".to_owned(), "/messages"),
        ("?session=2".to_owned(), "/mcp?session=2"),
        (format!("http://{}/elsewhere", server.address), "/elsewhere"),
    ] {
        let mut harness = Harness::new(Setup::sse(), &server.url());
        harness.handle.refresh();
        let stream = open(&mut server, &endpoint).await;
        list(&mut server, &stream, &["a"]).await;
        assert_eq!(harness.report().await, "a");
        let call = harness.call("a");
        let request = server.take_call("a").await;
        assert_eq!(request.path, path);
        answer(&stream, request, json!({ "a": 1 }));
        assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
        harness.handle.stop().await;
    }
}

#[tokio::test]
async fn an_sse_endpoint_on_another_server_is_refused() {
    let mut other = Server::start().await;
    for endpoint in [other.url(), format!("//{}/mcp", other.address), "https://127.0.0.1/mcp".to_owned()] {
        let mut server = Server::start().await;
        let harness = Harness::new(Setup::sse(), &server.url());
        let call = harness.call("a");
        let stream = server.take("GET").await.stream();
        stream.write(format!("event: endpoint\ndata: {endpoint}\n\n"));
        let end = harness.calls.end(call).await;
        assert!(end.contains("not an address of the same server"), "{end}");
    }
    assert_eq!(other.untaken(), [""; 0]);
}

#[tokio::test]
async fn the_end_of_an_sse_stream_ends_its_calls() {
    let (harness, mut server, stream) = ready().await;
    harness
        .calls
        .end({
            let call = harness.call("first"); // so that the failure is the first after good service
            let request = server.take_call("first").await;
            answer(&stream, request, json!({}));
            call
        })
        .await;
    let (taken, sent) = (harness.call("a"), harness.call("b"));
    server.take_call("a").await.status(202);
    let _unanswered = server.take_call("b").await;
    stream.end();
    for call in [taken, sent] {
        let end = harness.calls.end(call).await;
        assert!(end.contains("its stream ended"), "{end}");
    }
    let next = harness.call("c");
    let stream = open(&mut server, "/new").await;
    list(&mut server, &stream, &["a"]).await;
    let request = server.take_call("c").await;
    assert_eq!(request.path, "/new");
    answer(&stream, request, json!({ "c": 1 }));
    assert_eq!(harness.calls.end(next).await, r#"{"c":1}"#);
    let untaken = server.untaken();
    assert!(!untaken.iter().any(|kind| kind == "tools/call"), "{untaken:?}");
}

#[tokio::test]
async fn a_refused_sse_message_ends_its_call() {
    let (harness, mut server, _stream) = ready().await;
    for (kind, body) in
        [("text/plain", "no such session"), ("application/json", r#"{"error":"no such session"}"#)]
    {
        let call = harness.call("a");
        server.take_call("a").await.reply(400, &[("content-type", kind)], body);
        let end = harness.calls.end(call).await;
        assert!(end.contains("answered HTTP 400 Bad Request") && end.contains("no such session"), "{end}");
    }
}

#[tokio::test]
async fn an_sse_server_gets_a_cancellation_notification() {
    let (harness, mut server, stream) = ready().await;
    let call = harness.call("a");
    server.take_call("a").await.status(202);
    // A later message has been handled, and so has the 202.
    let other = harness.call("b");
    let request = server.take_call("b").await;
    answer(&stream, request, json!({}));
    harness.calls.end(other).await;
    harness.cancel(call);
    let cancelled = server.take("notifications/cancelled").await;
    assert_eq!(cancelled.message["params"]["requestId"], call.0);
    assert_eq!(cancelled.path, "/messages?session=1");
    cancelled.status(202);
}

#[tokio::test]
async fn notifications_on_the_sse_stream_are_handled() {
    let (mut harness, mut server, stream) = ready().await;
    stream.write(": ping\n\n");
    stream.event(json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }));
    let posted = server.take("answer").await;
    assert_eq!(posted.message, json!({ "jsonrpc": "2.0", "id": "p", "result": {} }));
    posted.status(202);
    stream.notify("notifications/tools/list_changed", json!({}));
    list(&mut server, &stream, &["b"]).await;
    assert_eq!(harness.report().await, "b");
}
