//! Failures of single responses, with their texts; other calls are not affected.

use serde_json::json;

use super::{
    harness::{Harness, Setup},
    peer::{Request, Server},
};
use crate::server::Condition;

/// How the answer to a call is broken, and the parts of the error that its caller gets.
type Spoil = (&'static str, fn(Request), &'static [&'static str]);

const SPOILT: &[Spoil] = &[
    (
        "401",
        |request| request.reply(401, &[("www-authenticate", "Bearer realm=\"here\"")], ""),
        &["answered HTTP 401 Unauthorized: Bearer realm=\"here\"", "try: give it credentials"],
    ),
    (
        "401 in JSON",
        |request| {
            let headers =
                [("www-authenticate", "Bearer realm=\"here\""), ("content-type", "application/json")];
            request.reply(401, &headers, r#"{"error":"invalid_token"}"#);
        },
        &[
            "answered HTTP 401 Unauthorized",
            "invalid_token",
            "Bearer realm=\"here\"",
            "try: give it credentials",
        ],
    ),
    ("403", |request| request.status(403), &["answered HTTP 403 Forbidden; try: check that the credentials"]),
    ("429", |request| request.status(429), &["answered HTTP 429 Too Many Requests; try: wait"]),
    (
        "500",
        |request| request.reply(500, &[], "boom\nat line 7"),
        &["answered HTTP 500 Internal Server Error: boom"],
    ),
    (
        "500 in JSON",
        |request| {
            request.json(500, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"boom"}}"#);
        },
        &["answered HTTP 500 Internal Server Error: boom"],
    ),
    (
        "a page",
        |request| request.reply(502, &[("content-type", "text/html")], "<!doctype html><h1>secret page</h1>"),
        &["answered HTTP 502 Bad Gateway"],
    ),
    (
        "a page as answer",
        |request| request.reply(200, &[("content-type", "text/html")], "<html>"),
        &["neither JSON nor an event stream"],
    ),
    ("no type", |request| request.reply(200, &[], "{}"), &["neither JSON nor an event stream"]),
    ("nothing", |request| request.status(204), &["answered HTTP 204 No Content"]),
    ("accepted", |request| request.status(202), &["answered HTTP 202 Accepted"]),
    ("empty JSON", |request| request.json(200, ""), &["does not answer the request"]),
    ("no JSON", |request| request.json(200, "hello"), &["does not answer the request"]),
    (
        "an error to nobody",
        |request| request.json(200, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"boom"}}"#),
        &["boom"],
    ),
    (
        "the answer to something else",
        |request| request.json(200, r#"{"jsonrpc":"2.0","id":"other","result":{}}"#),
        &["does not answer the request"],
    ),
    (
        "malformed JSON",
        |request| {
            let id = request.message["id"].clone();
            request.json(200, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":}}}}"#));
        },
        &["sent an answer that cannot be forwarded"],
    ),
    (
        "a body cut short",
        |request| {
            let body = request.response(json!({ "a": 1 }));
            request.raw(format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{body}"
            ));
        },
        &["the connection broke before the answer was whole"],
    ),
    ("no answer at all", drop, &["the connection broke before the answer was whole"]),
    (
        "no HTTP",
        |request| request.raw("hello\r\n\r\n"),
        &["the connection broke before the answer was whole"],
    ),
];

#[tokio::test]
async fn one_unusable_response_ends_one_call() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let other = harness.call("other");
    let other_request = server.take_call("other").await;
    for (what, spoil, words) in SPOILT {
        let call = harness.call("a");
        spoil(server.take_call("a").await);
        let end = harness.calls.end(call).await;
        for words in *words {
            assert!(end.contains(words), "{what}: {end}");
        }
        assert!(!end.contains('<'), "{end}");
        harness.works(&mut server).await;
        assert_eq!(server.untaken(), [""; 0], "{what}");
    }
    other_request.answer(json!({ "other": 1 }));
    assert_eq!(harness.calls.end(other).await, r#"{"other":1}"#);
}

#[tokio::test]
async fn a_server_that_rejects_an_authorization_header_is_not_said_to_need_one() {
    let headers = [("authorization".to_owned(), "Bearer s3cr3t".to_owned())].into();
    let (harness, mut server) = Harness::legacy(Setup { headers, ..Setup::default() }).await;
    let call = harness.call("a");
    server.take_call("a").await.status(401);
    let end = harness.calls.end(call).await;
    assert!(end.contains("try: the server rejects the credentials in"), "{end}");
    assert!(!end.contains("s3cr3t") && !end.contains("give it credentials"), "{end}");
}

#[tokio::test]
async fn the_servers_own_error_response_is_forwarded() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    for code in [200, 400, 403, 500] {
        let call = harness.call("a");
        let request = server.take_call("a").await;
        let error = r#"{"code": -32602,"message":"so nicht","data":{"n":1.000000000000000000001}}"#;
        let id = request.message["id"].clone();
        request.json(code, format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
        assert_eq!(harness.calls.end(call).await, error);
    }
}

#[tokio::test]
async fn an_unreachable_server_is_retried() {
    let (harness, server) = Harness::legacy(Setup::default()).await;
    let mut server = server;
    harness.works(&mut server).await;
    let address = server.vanish().await;
    let call = harness.call("a");
    let end = harness.calls.end(call).await;
    assert!(end.contains(&format!("cannot be reached at http://{address}")), "{end}");
    assert!(end.contains("try: start it"), "{end}");

    let mut server = Server::start_at(address).await;
    harness.condition(|condition| *condition != Condition::Ready).await;
    let call = loop {
        // During the pause after its failure, calls are refused with the reason.
        let call = harness.call("a");
        tokio::select! {
            end = harness.calls.end(call) => {
                assert!(end.contains("it is started again in"), "{end}");
                tokio::time::sleep(super::SECOND / 10).await;
            }
            () = server.open_legacy("two") => break call,
        }
    };
    server.take_call("a").await.answer(json!({ "a": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
}

#[tokio::test]
async fn a_server_that_was_never_reachable_is_reported() {
    let server = Server::start().await;
    let url = server.url();
    server.vanish().await;
    let harness = Harness::new(Setup::unknown(), &url);
    let call = harness.call("a");
    let end = harness.calls.end(call).await;
    let origin = url.trim_end_matches("/mcp");
    assert!(end.contains(&format!("cannot be reached at {origin}: ")), "{end}");
}

/// The server was restarted without our knowledge: its connections and session are gone.
#[tokio::test]
async fn a_server_replaced_between_two_calls_is_opened_again() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    harness.works(&mut server).await;
    let address = server.vanish().await;
    let mut server = Server::start_at(address).await;
    let call = harness.call("a");
    server.take_call("a").await.status(404);
    server.open_legacy("two").await;
    server.take_call("a").await.answer(json!({ "a": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
}

/// The opening goes on, so that the remote is usable again once it answers.
#[tokio::test]
async fn a_call_to_a_remote_that_was_away_and_says_nothing_fails_within_two_seconds() {
    let server = Server::start().await;
    let url = server.url();
    let address = server.vanish().await;
    let harness = Harness::new(Setup::remote(), &url);
    let end = harness.calls.end(harness.call("a")).await;
    assert!(end.contains("cannot be reached"), "{end}");

    let mut server = Server::start_at(address).await;
    let _unanswered = server.next().await; // the next attempt is under way
    let begun = std::time::Instant::now();
    let end = harness.calls.end(harness.call("b")).await;
    assert!(end.contains("cannot be reached"), "{end}");
    assert!(begun.elapsed() < 2 * super::SECOND, "{:?}", begun.elapsed());
}
