//! Cancellation and timeouts of calls: each kind of server is notified in its own way.

use serde_json::json;

use super::{
    SECOND,
    harness::{Harness, Setup},
};
use crate::spec::Timeouts;

#[tokio::test]
async fn cancellation_closes_the_stream_of_a_modern_call() {
    let (harness, mut server, _subscription) = Harness::modern(Setup::modern()).await;
    for streaming in [true, false] {
        let (taken_back, other) = (harness.call("a"), harness.call("b"));
        let (mut request, other_request) = (server.take_call("a").await, server.take_call("b").await);
        if streaming {
            request = request.stream().0;
        }
        harness.cancel(taken_back);
        request.gone().await;
        other_request.answer(json!({ "b": 1 }));
        assert_eq!(harness.calls.end(other).await, r#"{"b":1}"#);
        harness.works(&mut server).await;
        assert_eq!(server.untaken(), [""; 0]);
        assert_eq!(harness.calls.ends_of(taken_back), [""; 0]);
    }
}

#[tokio::test]
async fn cancellation_notifies_a_legacy_server() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let call = harness.call("a");
    let _request = server.take_call("a").await.stream();
    harness.cancel(call);
    let cancelled = server.take("notifications/cancelled").await;
    assert_eq!(cancelled.message["params"]["requestId"], call.0);
    assert_eq!(cancelled.header("mcp-session-id"), Some("one"));
    cancelled.status(202);
    harness.works(&mut server).await;
    assert_eq!(harness.calls.ends_of(call), [""; 0]);
}

#[tokio::test]
async fn a_call_times_out_and_the_server_gets_a_cancellation() {
    let timeouts = Timeouts { call: 3 * SECOND, ..Timeouts::default() };
    let (harness, mut server) = Harness::legacy(Setup { timeouts, ..Setup::default() }).await;
    let call = harness.call("a");
    let _silent = server.take_call("a").await;
    let end = harness.calls.end(call).await;
    assert!(end.contains("did not answer within 3 s"), "{end}");
    let cancelled = server.take("notifications/cancelled").await;
    assert_eq!(cancelled.message["params"], json!({ "requestId": call.0, "reason": "timed out" }));
    cancelled.status(202);
    harness.works(&mut server).await;
}
