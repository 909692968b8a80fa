//! Redirects: followed on the same server, but never to another.

use std::collections::BTreeMap;

use serde_json::json;

use super::{
    harness::{Harness, Setup},
    peer::Server,
};

fn secret() -> Setup {
    let headers = BTreeMap::from([("X-Key".to_owned(), "canary-7f3a".to_owned())]);
    Setup { headers, ..Setup::default() }
}

#[tokio::test]
async fn a_redirect_on_the_same_server_is_followed_with_headers_and_body() {
    let (harness, mut server) = Harness::legacy(secret()).await;
    for code in [307, 308] {
        let call = harness.call("a");
        server.take_call("a").await.reply(code, &[("location", "/mcp/")], "");
        let request = server.take_call("a").await;
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/mcp/"));
        assert_eq!(request.header("x-key"), Some("canary-7f3a"));
        assert_eq!(request.header("mcp-session-id"), Some("one"));
        request.answer(json!({ "a": 1 }));
        assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
    }
}

/// These turn a POST into a GET: the message would be lost.
#[tokio::test]
async fn a_redirect_that_loses_the_message_is_not_followed() {
    let (harness, mut server) = Harness::legacy(secret()).await;
    for code in [301, 302, 303] {
        let call = harness.call("a");
        server.take_call("a").await.reply(code, &[("location", "/mcp/")], "");
        let end = harness.calls.end(call).await;
        assert!(end.contains(&format!("answered HTTP {code} ")) && end.contains("it redirects to"), "{end}");
        assert_eq!(server.untaken(), [""; 0]);
    }
}

#[tokio::test]
async fn a_redirect_to_another_server_is_never_followed() {
    let (harness, mut server) = Harness::legacy(secret()).await;
    let mut other = Server::start().await;
    let elsewhere = format!("{}?token=hidden", other.url());
    for code in [301, 302, 303, 307, 308] {
        let call = harness.call("a");
        server.take_call("a").await.reply(code, &[("location", &elsewhere)], "");
        let end = harness.calls.end(call).await;
        assert!(end.contains(&format!("it redirects to {}", other.url())), "{end}");
        assert!(end.contains("try: use the address it redirects to"), "{end}");
        assert!(!end.contains("canary") && !end.contains("hidden"), "{end}");
    }
    // Nor is it followed to another server by way of this one.
    let call = harness.call("a");
    server.take_call("a").await.reply(307, &[("location", "/detour")], "");
    server.take_call("a").await.reply(307, &[("location", &elsewhere)], "");
    assert!(harness.calls.end(call).await.contains("it redirects to"));
    harness.works(&mut server).await;
    assert_eq!(other.untaken(), [""; 0]);
}

#[tokio::test]
async fn a_redirect_loop_is_left() {
    let (harness, mut server) = Harness::legacy(secret()).await;
    let call = harness.call("a");
    for _ in 0..6 {
        server.take_call("a").await.reply(307, &[("location", "/mcp")], "");
    }
    let end = harness.calls.end(call).await;
    assert!(end.contains("redirects without end"), "{end}");
    assert_eq!(server.untaken(), [""; 0]);
}
