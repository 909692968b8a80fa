//! A remote gateway without MCP: found, listed, called, lost and found again.

use serde_json::json;

use super::{
    harness::{Harness, Setup, page},
    peer::{Request, Server},
};
use crate::server::Condition;

const JSON: (&str, &str) = ("content-type", "application/json");

/// The next `GET /tools`, with its session id.
async fn take_list(server: &mut Server) -> (Request, String) {
    let list = server.take("GET").await;
    assert_eq!(list.path, "/tools");
    let id = list.header("x-session-id").expect("a session id").to_owned();
    (list, id)
}

/// A remote that has one tool, and the session id that it gets.
async fn open() -> (Harness, Server, String) {
    let mut server = Server::start().await;
    let mut harness = Harness::new(Setup::remote(), &format!("http://{}", server.address));
    harness.handle.refresh();
    for method in ["server/discover", "initialize"] {
        let probe = server.take(method).await;
        assert!(probe.path == "/mcp" && probe.header("x-session-id").is_some());
        probe.json(404, json!({ "detail": "Not Found" }));
    }
    let (list, id) = take_list(&mut server).await;
    list.reply(200, &[JSON, ("etag", "\"1\"")], page(&["echo"]));
    let (list, same) = take_list(&mut server).await;
    assert_eq!((list.header("if-none-match"), &same), (Some("\"1\""), &id));
    list.status(304);
    let (list, _) = take_list(&mut server).await; // a poll, or the list itself
    list.status(304);
    let offer = harness.offer().await.expect("a list");
    assert!(offer.dialect.plain_api && offer.tools[0].name == "echo");
    (harness, server, id)
}

#[tokio::test]
async fn tools_of_a_plain_api_are_found_behind_a_404_and_called_with_the_session_id() {
    let (harness, mut server, id) = open().await;
    let ticket = harness.call_with("echo", r#"{"n":1.0}"#);
    let call = server.take("answer").await;
    assert_eq!((call.path.as_str(), call.header("x-session-id")), ("/tools/call", Some(id.as_str())));
    assert_eq!(call.message, json!({ "name": "echo", "arguments": { "n": 1.0 } }));
    call.json(200, r#"{"content":[],"z":1.0}"#);
    assert_eq!(harness.calls.end(ticket).await, r#"{"content":[],"z":1.0}"#);
    let ticket = harness.call("echo");
    server.take("answer").await.json(429, json!({ "error": { "message": "too fast" } }));
    let end = harness.calls.end(ticket).await;
    assert!(end.contains("too fast (HTTP 429)") && end.contains("\"isError\":true"), "{end}");
}

#[tokio::test]
async fn the_failure_of_a_plain_api_is_that_of_its_list_of_tools() {
    let mut server = Server::start().await;
    let harness = Harness::new(Setup::remote(), &format!("http://{}", server.address));
    let ticket = harness.call("echo");
    for method in ["server/discover", "initialize"] {
        server.take(method).await.json(404, json!({ "detail": "Not Found" }));
    }
    take_list(&mut server).await.0.reply(302, &[("location", "/elsewhere")], "");
    let end = harness.calls.end(ticket).await;
    assert!(end.contains("it redirects to") && end.contains("/elsewhere"), "{end}");
}

#[tokio::test]
async fn a_remote_that_wants_a_token_names_its_variable() {
    let mut server = Server::start().await;
    let harness = Harness::new(Setup::remote(), &format!("http://{}", server.address));
    let ticket = harness.call("echo");
    server.take("server/discover").await.json(401, json!({ "error": "no" }));
    let end = harness.calls.end(ticket).await;
    assert!(end.contains("PLUGBAY_REMOTE_TOKEN") && !end.contains("\"headers\""), "{end}");
}

#[tokio::test]
async fn a_changed_etag_of_a_plain_api_makes_a_new_list_of_tools() {
    let (mut harness, mut server, _) = open().await;
    let (poll, _) = take_list(&mut server).await;
    poll.reply(200, &[JSON, ("etag", "\"2\"")], page(&["echo", "more"]));
    tokio::spawn(async move {
        loop {
            take_list(&mut server).await.0.status(304);
        }
    });
    assert_eq!(harness.report().await, "echo more");
}

#[tokio::test]
async fn a_plain_api_call_that_was_sent_is_never_sent_again() {
    let (harness, mut server, _) = open().await;
    let ticket = harness.call("echo");
    drop(server.take("answer").await);
    let end = harness.calls.end(ticket).await;
    assert!(end.contains("broke"), "{end}");
    let other = harness.call("echo");
    server.take("answer").await.json(200, json!({ "content": [] }));
    harness.calls.end(other).await;
    assert!(!server.untaken().contains(&"answer".to_owned()));
}

#[tokio::test]
async fn a_plain_api_that_went_away_is_found_again_with_the_same_session_id() {
    let (harness, server, id) = open().await;
    let address = server.vanish().await;
    let end = harness.calls.end(harness.call("echo")).await;
    assert!(end.contains("cannot be reached"), "{end}");
    harness.condition(|condition| matches!(condition, Condition::Error(_))).await;
    let mut server = Server::start_at(address).await;
    for _ in 0..2 {
        let (list, same) = take_list(&mut server).await;
        assert_eq!(same, id);
        list.reply(200, &[JSON], page(&["echo"]));
    }
    harness.condition(|condition| *condition == Condition::Ready).await;
}
