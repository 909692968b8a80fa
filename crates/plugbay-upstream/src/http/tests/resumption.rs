//! Response streams that break: resumed if possible; the call is never sent again.

use std::time::Instant;

use serde_json::json;

use super::{
    SECOND,
    harness::{Harness, Setup},
};

#[tokio::test]
async fn a_response_stream_with_event_ids_is_resumed() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let call = harness.call("a");
    let stream = server.take_call("a").await.stream();
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
        "params": { "progressToken": call.0, "progress": 1 } });
    let answer = stream.0.response(json!({ "a": 1 }));
    // A comment, an event that only carries an id, and one with a message.
    stream.write(": hello\n\nretry: 10\nid: e0\ndata:\n\n");
    stream.write(format!("id: e1\nevent: message\ndata: {progress}\n\nid: e2\ndata: {{\"cut\":"));
    harness.calls.progressed(call, 1).await;
    drop(stream);

    let resumed = server.take("GET").await;
    assert_eq!(resumed.header("last-event-id"), Some("e1"));
    assert_eq!(resumed.header("mcp-session-id"), Some("one"));
    assert_eq!(resumed.header("accept"), Some("text/event-stream"));
    let resumed = resumed.stream();
    resumed.write("id: e3\ndata:\n\n");
    resumed.end(); // in good order this time, and again without the answer

    let resumed = server.take("GET").await;
    assert_eq!(resumed.header("last-event-id"), Some("e3"));
    resumed.stream().event(answer);
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
    harness.works(&mut server).await;
    assert_eq!(server.untaken(), [""; 0]);
}

#[tokio::test]
async fn a_broken_stream_without_event_ids_ends_its_call() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    for in_order in [true, false] {
        let call = harness.call("a");
        let stream = server.take_call("a").await.stream();
        stream.write(": only a comment\n\n");
        if in_order {
            stream.end();
        } else {
            drop(stream);
        }
        let end = harness.calls.end(call).await;
        assert!(end.contains("the connection broke before the answer was whole"), "{end}");
        harness.works(&mut server).await;
        assert_eq!(server.untaken(), [""; 0]);
    }
}

#[tokio::test]
async fn the_retry_field_of_a_stream_sets_the_pause() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let call = harness.call("a");
    let stream = server.take_call("a").await.stream();
    let answer = stream.0.response(json!({}));
    stream.write("retry: 800\nid: e0\ndata:\n\n");
    stream.end();
    let start = Instant::now();
    let resumed = server.take("GET").await;
    assert!(start.elapsed() >= SECOND * 7 / 10, "{:?}", start.elapsed());
    resumed.stream().event(answer);
    assert_eq!(harness.calls.end(call).await, "{}");
}

/// However short a pause the server wants: streams that deliver nothing are requested less and less often.
#[tokio::test]
async fn a_stream_that_always_ends_is_resumed_with_pauses() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let call = harness.call("a");
    let stream = server.take_call("a").await.stream();
    let answer = stream.0.response(json!({}));
    stream.write("retry: 0\nid: e0\ndata:\n\n");
    stream.end();
    let start = Instant::now();
    for _ in 0..4 {
        server.take("GET").await.stream().end();
    }
    server.take("GET").await.stream().event(answer);
    assert!(start.elapsed() >= SECOND / 2, "{:?}", start.elapsed());
    assert_eq!(harness.calls.end(call).await, "{}");
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_ends_its_call() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let call = harness.call("a");
    let stream = server.take_call("a").await.stream();
    stream.write("retry: 1\nid: e0\ndata:\n\n");
    stream.end();
    server.take("GET").await.status(405);
    let end = harness.calls.end(call).await;
    assert!(end.contains("its stream ended"), "{end}");
    harness.works(&mut server).await;
}
