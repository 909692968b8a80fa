//! Hostile servers, and servers that break at the worst moment.

use serde_json::json;

use super::{
    SECOND,
    harness::{Harness, Setup, described, page},
    peer::Server,
};
use crate::spec::Timeouts;

/// The end of the opening is never accepted: messages that wait for it end by their own timeouts.
#[tokio::test]
async fn an_initialized_notification_that_is_not_taken_does_not_block() {
    let mut server = Server::start().await;
    let timeouts = Timeouts { start: 3 * SECOND, ..Timeouts::default() };
    let harness = Harness::new(Setup { timeouts, ..Setup::default() }, &server.url());
    let call = harness.call("a");
    server.take("initialize").await.answer(described());
    let _untaken = server.take("notifications/initialized").await;
    let end = harness.calls.end(call).await;
    assert!(end.contains("did not list its tools within"), "{end}");
}

/// Endless server requests whose responses the server does not accept: the responses do not pile up.
#[tokio::test]
async fn responses_that_a_server_does_not_read_are_limited() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let call = harness.call("a");
    let stream = server.take_call("a").await.stream();
    let id = "i".repeat(100_000);
    let server_request = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
    for _ in 0..50 {
        stream.event(&server_request);
    }
    stream.answer(json!({}));
    harness.calls.end(call).await;
    // One is being sent and never accepted; the others wait after it, or were not even written.
    let first = server.take("answer").await;
    assert_eq!(server.untaken(), [""; 0]);
    first.status(202);
    // The answer to a later request follows those that wait. A request whose answer found no room gets
    // another chance.
    let later = harness.call("later");
    let later_stream = server.take_call("later").await.stream();
    let mut taken = 1;
    loop {
        later_stream.event(json!({ "jsonrpc": "2.0", "id": "later", "method": "ping" }));
        let answer = server.take("answer").await;
        let waited = answer.message["id"] != "later";
        answer.status(202);
        if !waited {
            break;
        }
        taken += 1;
    }
    later_stream.answer(json!({}));
    harness.calls.end(later).await;
    assert!((2..20).contains(&taken), "{taken}");
    harness.works(&mut server).await;
}

/// A large call in flight is no reason to leave a server request without an answer.
#[tokio::test]
async fn a_large_call_does_not_delay_a_response() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let large = harness.call_with("large", &json!({ "x": "y".repeat(2_000_000) }).to_string());
    let large_request = server.take_call("large").await; // JSON: nothing comes before it is done
    let call = harness.call("a");
    let stream = server.take_call("a").await.stream();
    stream.event(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
    server.take("answer").await.status(202);
    stream.answer(json!({}));
    harness.calls.end(call).await;
    large_request.answer(json!({}));
    harness.calls.end(large).await;
}

#[tokio::test]
async fn a_stream_event_may_not_answer_another_call() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let call = harness.call("a");
    let stream = server.take_call("a").await.stream();
    stream.event(json!({ "jsonrpc": "2.0", "id": 999_999, "result": {} }));
    stream.event("no JSON at all");
    stream.answer(json!({ "a": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
}

/// If a new list cannot be fetched, the tools stay as they were.
#[tokio::test]
async fn a_failed_second_tools_list_over_http_keeps_the_tools() {
    let (mut harness, mut server) = Harness::legacy(Setup::default()).await;
    harness.handle.refresh();
    server.take("tools/list").await.status(500);
    harness.works(&mut server).await;
    harness.handle.refresh();
    server.take("tools/list").await.answer(page(&["b"]));
    assert_eq!(harness.report().await, "b");
}

#[tokio::test]
async fn no_http_connection_is_left_after_a_stop() {
    let (harness, mut server, subscription) = Harness::modern(Setup::modern()).await;
    let mut subscription = subscription.stream();
    let call = harness.call("a");
    let mut request = server.take_call("a").await;
    harness.handle.stop().await;
    request.gone().await;
    subscription.0.gone().await;
    let end = harness.calls.end(call).await;
    assert!(end.contains("is not configured any more"), "{end}");
}
