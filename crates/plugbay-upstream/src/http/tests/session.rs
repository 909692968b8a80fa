//! Expired sessions: opened again once, and every call is carried out exactly once.

use serde_json::json;

use super::{
    harness::{Harness, Setup},
    peer::Server,
};

#[tokio::test]
async fn calls_in_an_expired_session_are_sent_again_after_one_initialize() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let answered = harness.call("old");
    let old = server.take_call("old").await.stream();
    let calls = ["a", "b", "c"].map(|tool| harness.call(tool));
    let mut requests = Vec::new();
    for _ in &calls {
        requests.push(server.take("tools/call").await);
    }
    for request in requests {
        request.status(404);
    }
    // A request that is being answered in the old session still gets its answer.
    tokio::time::sleep(super::SECOND / 20).await;
    old.answer(json!({ "old": 1 }));
    assert_eq!(harness.calls.end(answered).await, r#"{"old":1}"#);

    server.open_legacy("two").await;
    server.list(&["echo"]).await;
    let mut tools = Vec::new();
    for _ in &calls {
        let request = server.take("tools/call").await;
        assert_eq!(request.header("mcp-session-id"), Some("two"));
        let tool = request.message["params"]["name"].clone();
        request.answer(json!({ "tool": tool }));
        tools.push(tool);
    }
    tools.sort_by_key(ToString::to_string);
    assert_eq!(tools, ["a", "b", "c"]);
    for (call, tool) in calls.into_iter().zip(["a", "b", "c"]) {
        assert_eq!(harness.calls.end(call).await, json!({ "tool": tool }).to_string());
    }
    harness.works(&mut server).await;
    let untaken = server.untaken();
    assert!(!untaken.iter().any(|kind| kind == "initialize" || kind == "tools/call"), "{untaken:?}");
}

/// A call that is never answered in the old session must not keep the others from the new one.
#[tokio::test]
async fn a_pending_call_in_the_old_session_delays_no_other_call() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let silent = harness.call("silent");
    let silent_request = server.take_call("silent").await.stream();
    let call = harness.call("a");
    server.take_call("a").await.status(404);
    server.open_legacy("two").await;
    server.take_call("a").await.answer(json!({ "a": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
    // Its answer may still come.
    silent_request.answer(json!({ "late": 1 }));
    assert_eq!(harness.calls.end(silent).await, r#"{"late":1}"#);
}

#[tokio::test]
async fn a_call_in_the_old_session_can_still_be_cancelled() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let silent = harness.call("silent");
    let mut silent_request = server.take_call("silent").await.stream();
    let call = harness.call("a");
    server.take_call("a").await.status(404);
    server.open_legacy("two").await;
    server.take_call("a").await.answer(json!({}));
    harness.calls.end(call).await;
    harness.cancel(silent);
    silent_request.0.gone().await;
    harness.works(&mut server).await;
    assert_eq!(harness.calls.ends_of(silent), [""; 0]);
}

/// Not every server answers 404: one of the official examples answers this.
#[tokio::test]
async fn a_bad_request_about_the_session_means_an_expired_session() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let call = harness.call("a");
    let words = "Bad Request: No valid session ID provided";
    let body = json!({ "jsonrpc": "2.0", "error": { "code": -32000, "message": words }, "id": null });
    server.take_call("a").await.json(400, body);
    server.open_legacy("two").await;
    server.take_call("a").await.answer(json!({ "a": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
}

#[tokio::test]
async fn a_server_that_expires_every_session_is_given_up() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let call = harness.call("a");
    server.take_call("a").await.status(404);
    server.open_legacy("two").await;
    server.take_call("a").await.status(404);
    let end = harness.calls.end(call).await;
    assert!(end.contains("has forgotten its session"), "{end}");
}

#[tokio::test]
async fn an_expired_session_is_noticed_on_the_get_stream() {
    let mut server = Server::start().await;
    let mut harness = Harness::new(Setup::default(), &server.url());
    harness.handle.refresh();
    server.open_legacy("one").await;
    server.list(&["a"]).await;
    assert_eq!(harness.report().await, "a");
    let stream = server.take("GET").await.stream();
    stream.write("retry: 1\n\n");
    drop(stream);
    server.take("GET").await.status(404);
    assert!(harness.report().await.contains("has forgotten its session"));
    let call = harness.call("a");
    server.open_legacy("two").await;
    server.take_call("a").await.answer(json!({}));
    assert_eq!(harness.calls.end(call).await, "{}");
}

/// The new session cannot be opened, but the old one may still bring answers.
#[tokio::test]
async fn a_response_in_the_old_session_does_not_wait_for_the_new_one() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let old = harness.call("old");
    let old_request = server.take_call("old").await.stream();
    let call = harness.call("a");
    server.take_call("a").await.status(404);
    server.take("initialize").await.status(503);
    let end = harness.calls.end(call).await;
    assert!(end.contains("answered HTTP 503"), "{end}");
    old_request.answer(json!({ "old": 1 }));
    assert_eq!(harness.calls.end(old).await, r#"{"old":1}"#);
}

/// An error that comes long after the new session was opened.
#[tokio::test]
async fn a_late_refusal_in_the_old_session_needs_no_other_initialize() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let (call, late) = (harness.call("a"), harness.call("late"));
    let mut requests = [server.take("tools/call").await, server.take("tools/call").await];
    requests.sort_by_key(|request| request.message["id"].as_u64());
    let [request, late_request] = requests;
    request.status(404);
    server.open_legacy("two").await;
    server.take("GET").await.status(405);
    server.list(&["echo"]).await;
    server.take_call("a").await.answer(json!({ "a": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
    late_request.status(404);
    let again = server.take_call("late").await;
    assert_eq!(again.header("mcp-session-id"), Some("two"));
    again.answer(json!({ "late": 1 }));
    assert_eq!(harness.calls.end(late).await, r#"{"late":1}"#);
    harness.works(&mut server).await;
    let untaken = server.untaken();
    assert!(!untaken.iter().any(|kind| kind == "initialize" || kind == "tools/call"), "{untaken:?}");
}
