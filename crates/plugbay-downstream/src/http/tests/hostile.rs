//! Malformed requests of every kind: each gets the right status, and none reaches a server.

use serde_json::json;

use super::harness::{Harness, http, post, within};
use crate::scripted::{INITIALIZE, MESSAGE_LIMIT, call, request};

#[tokio::test(start_paused = true)]
async fn request_bodies_are_read_strictly() {
    let mut harness = Harness::new();
    let session = harness.open().await;
    let deep = request(
        1,
        "tools/call",
        &format!(r#"{{"name":"s__echo","a":{}1{}}}"#, "[".repeat(70), "]".repeat(70)),
    );
    for (body, code) in [
        ("", -32700),
        ("hello", -32700),
        ("{", -32700),
        (&*deep, -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\nng\"}", -32700),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#, -32600),
    ] {
        let reply = harness.ask(within(&session, body)).await;
        assert_eq!((reply.status, reply.code()), (400, json!(code)), "{body}");
    }
    let doubled = request(1, "tools/call", r#"{"name":"s__echo","name":"s__other"}"#);
    assert_eq!(harness.ask(within(&session, &doubled)).await.code(), -32602);
    harness.servers.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_body_that_is_not_utf8_is_refused() {
    let harness = Harness::new();
    let mut host = harness.connect();
    let body = INITIALIZE.replace("init", "in\u{0}\u{0}");
    let bytes = post(&[], &body).into_bytes().into_iter().map(|byte| if byte == 0 { 0xff } else { byte });
    host.say_bytes(&bytes.collect::<Vec<_>>()).await;
    let reply = host.reply().await;
    assert_eq!((reply.status, reply.code()), (400, json!(-32700)));
}

/// Towards a server a line break would end the message.
#[tokio::test(start_paused = true)]
async fn a_tool_call_on_many_lines_reaches_its_server_on_one() {
    let mut harness = Harness::new();
    let session = harness.open().await;
    let body = call(1).replace(',', ",\r\n\t").replace('{', "{\n");
    let mut host = harness.connect();
    host.say(within(&session, &body)).await;
    let forwarded = harness.servers.forwarded().await;
    assert!(!forwarded.text().contains(['\n', '\r']), "{:?}", forwarded.text());
    assert!(forwarded.text().contains("\"name\":\"echo\""));
}

#[tokio::test(start_paused = true)]
async fn a_request_body_over_the_limit_is_rejected() {
    let harness = Harness::new();
    let large = call(format!("\"{}\"", "x".repeat(MESSAGE_LIMIT)));
    let announced = post(&[("content-length", "100000000")], "");
    let chunk = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let chunked = post(&[("content-length", ""), ("transfer-encoding", "chunked")], &chunk);
    for request in [post(&[], &large), announced, chunked] {
        let mut host = harness.connect();
        host.say(&request).await;
        let reply = host.reply().await;
        assert_eq!((reply.status, reply.code()), (413, json!(-32600)));
        host.closed().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_writes_all_before_it_reads_is_told_that_it_is_too_much() {
    let harness = Harness::new();
    let mut host = harness.connect_through(1000);
    assert!(host.says_all(&post(&[], &"x".repeat(3 * MESSAGE_LIMIT))).await);
    assert_eq!(host.reply().await.status, 413);
}

#[tokio::test(start_paused = true)]
async fn every_other_path_and_method_is_rejected() {
    let harness = Harness::new();
    let check = async |request: String, status: u16, header: &str| {
        let reply = harness.ask(&request).await;
        assert_eq!(reply.status, status, "{request}");
        assert_eq!(reply.headers.get("allow").map_or("", |allow| allow), header, "{request}");
    };
    for method in ["PUT", "PATCH", "OPTIONS"] {
        check(http(method, "/mcp", &[], ""), 405, "GET, POST, DELETE").await;
    }
    check(http("POST", "/healthz", &[], ""), 405, "GET, HEAD").await;
    for path in ["/", "/mcp/", "/MCP", "/sse", "/.well-known/oauth-protected-resource", "/mcp/../healthz"] {
        check(http("GET", path, &[], ""), 404, "").await;
    }
    for content in ["", "text/plain", "application/jsonx", "application/x-www-form-urlencoded"] {
        check(post(&[("content-type", content)], INITIALIZE), 415, "").await;
    }
    for content in ["application/json; charset=utf-8", "Application/JSON"] {
        check(post(&[("content-type", content)], INITIALIZE), 200, "").await;
    }
}
