//! The stateless protocol: required headers, the form of answers, and cancellation by disconnecting.

use plugbay_core::era::SUBSCRIPTION_KEY;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::harness::{Harness, Host, fitting, http, post, stateless};
use crate::scripted::{Forwarded, SECOND, call, cancel, listen, modern, request, snapshot, snapshot_of};

fn calling(id: u32) -> String {
    stateless("tools/call", "s__echo", &modern(id, "tools/call", r#","name":"s__echo""#))
}

fn calling_with_progress(id: u32) -> String {
    let body = modern(id, "tools/call", r#","name":"s__echo""#)
        .replace("\"_meta\":{", "\"_meta\":{\"progressToken\":\"p\",");
    stateless("tools/call", "s__echo", &body)
}

/// A host whose call has reached its server.
async fn called(harness: &mut Harness, request: String) -> (Host, Forwarded) {
    let mut host = harness.connect();
    host.say(request).await;
    let forwarded = harness.servers.forwarded().await;
    (host, forwarded)
}

#[tokio::test(start_paused = true)]
async fn an_answer_within_three_seconds_is_one_json_body() {
    let mut harness = Harness::new();
    let (mut host, forwarded) = called(&mut harness, calling(7)).await;
    forwarded.answer(r#"{"n":12345678901234567890123}"#);
    let reply = host.reply().await;
    assert_eq!((reply.status, &*reply.headers["content-type"]), (200, "application/json"));
    assert!(reply.body.contains(r#""n":12345678901234567890123"#), "{reply:?}");
    assert_eq!((&reply.json()["id"], &reply.json()["result"]["resultType"]), (&json!(7), &json!("complete")));
    assert!(!reply.headers.contains_key("mcp-session-id"));

    host.say(stateless("server/discover", "", &modern(8, "server/discover", ""))).await; // the same connection
    assert_eq!(host.reply().await.json()["id"], 8);
}

#[tokio::test(start_paused = true)]
async fn progress_makes_a_stream_that_ends_with_the_answer() {
    let mut harness = Harness::new();
    let (mut host, forwarded) = called(&mut harness, calling_with_progress(1)).await;
    forwarded.progress();
    let head = host.reply().await;
    assert_eq!(
        (&*head.headers["content-type"], &*head.headers["x-accel-buffering"]),
        ("text/event-stream", "no")
    );
    assert_eq!(host.hear().await["params"]["progressToken"], "p");
    forwarded.progress();
    assert_eq!(host.hear().await["method"], "notifications/progress");
    forwarded.answer("{}");
    let answer = host.event().await.unwrap();
    assert_eq!(answer.id, None, "these streams cannot be resumed");
    assert!(answer.data.contains("\"id\":1"), "{answer:?}");
    assert_eq!(host.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_comes_as_a_stream_with_keep_alive_comments() {
    let mut harness = Harness::new();
    let (mut host, forwarded) = called(&mut harness, calling(1)).await;
    assert_eq!(host.reply().await.headers["content-type"], "text/event-stream");
    for _ in 0..3 {
        assert_eq!(host.keep_alive().await, ":\n\n");
    }
    forwarded.answer("{}");
    assert_eq!(host.hear().await["id"], 1);
    assert_eq!(host.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn an_answer_has_the_format_of_the_accept_header() {
    let mut harness = Harness::new();
    let only = |format: &str| {
        let request = calling_with_progress(1);
        request.replace("application/json, text/event-stream", format)
    };
    let (mut host, forwarded) = called(&mut harness, only("application/json")).await;
    forwarded.progress();
    tokio::time::sleep(10 * SECOND).await;
    forwarded.answer("{}");
    assert_eq!(host.reply().await.json()["id"], 1);

    let (mut host, forwarded) = called(&mut harness, only("text/event-stream")).await;
    forwarded.answer("{}");
    assert_eq!(host.reply().await.headers["content-type"], "text/event-stream");
    assert_eq!(host.hear().await["id"], 1);

    assert_eq!(harness.ask(only("text/html")).await.status, 406);
    let listening = stateless("subscriptions/listen", "", &listen(1));
    let deaf = listening.replace("application/json, text/event-stream", "application/json");
    assert_eq!(harness.ask(deaf).await.status, 406);
}

#[tokio::test(start_paused = true)]
async fn closing_the_connection_is_a_cancellation() {
    for streaming in [false, true] {
        let mut harness = Harness::new();
        let (mut host, forwarded) = called(&mut harness, calling_with_progress(1)).await;
        if streaming {
            forwarded.progress();
            host.hear_progress().await;
        }
        let start = Instant::now();
        drop(host);
        let (ticket, text) = harness.servers.cancelled().await;
        assert_eq!((ticket, start.elapsed().as_millis()), (forwarded.ticket(), 0), "at once");
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(told["method"], "notifications/cancelled");
        assert_eq!(told["params"]["requestId"], ticket.0);
    }
}

impl Host {
    async fn hear_progress(&mut self) {
        assert_eq!(self.reply().await.status, 200);
        assert_eq!(self.hear().await["method"], "notifications/progress");
    }
}

#[tokio::test(start_paused = true)]
async fn closing_the_connection_after_the_answer_is_no_cancellation() {
    let mut harness = Harness::new();
    for request in [calling(1), calling_with_progress(1)] {
        let (mut host, forwarded) = called(&mut harness, request).await;
        forwarded.progress();
        forwarded.answer("{}");
        host.reply().await;
        drop(host);
        harness.servers.nothing_forwarded().await;
    }
}

#[tokio::test(start_paused = true)]
async fn cancellation_reaches_no_call_of_another_host() {
    let mut harness = Harness::new();
    let (mut host, forwarded) = called(&mut harness, calling(1)).await;
    let (other, _) = called(&mut harness, calling(1)).await; // the same id
    let version = [("mcp-protocol-version", "2026-07-28")];
    assert_eq!(harness.ask(post(&version, &cancel(1))).await.status, 202);
    harness.servers.nothing_forwarded().await;
    drop(other);
    assert_ne!(harness.servers.cancelled().await.0, forwarded.ticket());
    forwarded.answer("{}");
    assert_eq!(host.reply().await.json()["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn mcp_headers_must_match_the_body() {
    let mut harness = Harness::new();
    let body = modern(1, "tools/call", r#","name":"s__echo""#);
    let right = fitting("tools/call", "s__echo");
    for (at, wrong) in [
        (0, ""),
        (0, "2025-11-25"),
        (1, ""),
        (1, "tools/list"),
        (1, "Tools/Call"),
        (1, "tools/call\r\nmcp-method: tools/call"),
        (2, ""),
        (2, "s__other"),
        (2, "=?base64?%?="),
        (2, "=?base64?b3RoZXI=?="),
        (2, "s__echo\r\nmcp-name: s__echo"),
        (2, "é"),
    ] {
        let mut headers = right;
        headers[at].1 = wrong;
        let reply = harness.ask(post(&headers, &body)).await;
        assert_eq!((reply.status, reply.code()), (400, json!(-32020)), "{headers:?} → {reply:?}");
        assert_eq!(reply.json()["id"], 1);
    }
    harness.servers.nothing_forwarded().await;

    let mut encoded = right;
    encoded[2].1 = "=?base64?c19fZWNobw==?=";
    called(&mut harness, post(&encoded, &body)).await;
}

#[tokio::test(start_paused = true)]
async fn x_mcp_header_arguments_must_be_in_their_headers() {
    let mut harness = Harness::new();
    let schema = json!({ "properties": { "region": { "x-mcp-header": "Region" } } });
    let tool = json!({ "name": "echo", "inputSchema": schema });
    harness.snapshots.send_replace(snapshot_of(&[tool], true));
    let call =
        |arguments: &str| modern(1, "tools/call", &format!(r#","name":"s__echo","arguments":{arguments}"#));
    for (arguments, header, passes) in [
        (r#"{"region":"north"}"#, "north", true),
        (r#"{"region":"north"}"#, "=?base64?bm9ydGg=?=", true),
        (r#"{"region":"north"}"#, "south", false),
        (r#"{"region":"north"}"#, "", false),
        (r#"{"region":null}"#, "", true),
        ("{}", "", true),
        ("{}", "north", false),
    ] {
        let headers = [&fitting("tools/call", "s__echo")[..], &[("mcp-param-region", header)]].concat();
        if passes {
            called(&mut harness, post(&headers, &call(arguments))).await;
            harness.servers.cancelled().await; // its host has left
        } else {
            let reply = harness.ask(post(&headers, &call(arguments))).await;
            assert_eq!((reply.status, reply.code()), (400, json!(-32020)), "{arguments} {header:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refused_requests_have_the_http_status_of_their_error() {
    let harness = Harness::new();
    let list = modern(1, "tools/list", "");
    let check = async |request: String, status: u16, code: i32| {
        let reply = harness.ask(&request).await;
        assert_eq!((reply.status, reply.code()), (status, json!(code)), "{request} → {reply:?}");
        reply.json()
    };
    check(stateless("roots/list", "", &modern(1, "roots/list", "")), 404, -32601).await;
    check(stateless("initialize", "", &modern(1, "initialize", "")), 404, -32601).await;
    check(stateless("ping", "", &modern(1, "ping", "")), 404, -32601).await;
    check(stateless("tools/list", "", &request(1, "tools/list", "{}")), 400, -32602).await;
    let bare = list.replace(r#","io.modelcontextprotocol/clientCapabilities":{}"#, "");
    let bare = bare.replace(r#""io.modelcontextprotocol/clientCapabilities":{},"#, "");
    check(stateless("tools/list", "", &bare), 400, -32602).await;
    let unknown = stateless("tools/list", "", &list).replace("2026-07-28", "1900-01-01");
    let answer = check(unknown, 400, -32022).await;
    assert_eq!(answer["error"]["data"]["requested"], "1900-01-01");
    assert_eq!(answer["error"]["data"]["supported"][0], "2026-07-28");
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    check(post(&[("mcp-protocol-version", "2026-07-28")], response), 400, -32600).await;
    // An error that the server itself would return is an answer like any other.
    let other = stateless("tools/call", "nowhere", &modern(1, "tools/call", r#","name":"nowhere""#));
    check(other, 200, -32602).await;
    for method in ["GET", "DELETE"] {
        let reply = harness.ask(http(method, "/mcp", &[("mcp-protocol-version", "2026-07-28")], "")).await;
        assert_eq!((reply.status, &*reply.headers["allow"]), (405, "POST"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_a_stream_of_notifications() {
    let mut harness = Harness::new();
    let mut host = harness.connect();
    host.open_stream(stateless("subscriptions/listen", "", &listen("\"l\""))).await;
    let acknowledged = host.hear().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    host.hear_nothing().await;
    for tools in [&["a"][..], &["b"]] {
        harness.snapshots.send_replace(snapshot(tools, true));
        let told = host.hear().await;
        assert_eq!(told["method"], "notifications/tools/list_changed");
        assert_eq!(told["params"]["_meta"][SUBSCRIPTION_KEY], "l");
    }
    host.hear_nothing().await;
    harness.stop();
    let end = host.hear().await;
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!("l"), &json!("complete")));
    assert_eq!(host.event().await, None);
    harness.ended().await;
}

#[tokio::test(start_paused = true)]
async fn hosts_with_the_same_request_ids_get_their_own_answers() {
    let mut harness = Harness::new();
    let mut calls = Vec::new();
    for n in 0..40 {
        calls.push((n, called(&mut harness, calling(1)).await));
    }
    for (n, (_, forwarded)) in calls.iter().rev() {
        forwarded.answer(format!("{{\"canary\":{n}}}"));
    }
    for (n, (host, _)) in &mut calls {
        assert_eq!(host.reply().await.json()["result"]["canary"], *n);
    }
}

/// `_meta` decides the era, not a session that the host may also have.
#[tokio::test(start_paused = true)]
async fn both_protocol_eras_share_the_endpoint() {
    let mut harness = Harness::new();
    let session = harness.open().await;
    let headers = [&fitting("tools/call", "s__echo")[..], &[("mcp-session-id", &session)]].concat();
    let body = modern(1, "tools/call", r#","name":"s__echo""#);
    let (host, forwarded) = called(&mut harness, post(&headers, &body)).await;
    drop(host);
    assert_eq!(harness.servers.cancelled().await.0, forwarded.ticket(), "a modern call");
    let (host, _) = called(&mut harness, post(&[("mcp-session-id", &session)], &call(1))).await;
    drop(host);
    harness.servers.nothing_forwarded().await;
}
