//! Credentials of requests: every request has the current ones, and a rejection may be resolved at once.

use std::sync::Arc;

use serde_json::json;

use super::{
    harness::{Harness, Setup},
    peer::{Request, Server},
    script::{OnRejection, Script, Seen},
};

fn setup(script: &Arc<Script>) -> Setup {
    Setup { credentials: Some(script.clone()), ..Setup::default() }
}

fn authorization(request: &Request) -> Option<&str> {
    request.header("authorization")
}

#[tokio::test]
async fn every_request_has_the_current_credentials() {
    let script = Script::new(OnRejection::NeedsLogin, Some("one"));
    let mut server = Server::start().await;
    let mut harness = Harness::new(setup(&script), &server.url());
    harness.handle.refresh();
    let initialize = server.take("initialize").await;
    assert_eq!(authorization(&initialize), Some("Bearer one"));
    let body = initialize.response(super::harness::described());
    initialize.reply(200, &[("content-type", "application/json"), ("mcp-session-id", "7")], body);
    let initialized = server.take("notifications/initialized").await;
    assert_eq!(authorization(&initialized), Some("Bearer one"));
    initialized.status(202);
    let get = server.take("GET").await;
    assert_eq!(authorization(&get), Some("Bearer one"));
    let stream = get.stream();
    stream.write("retry: 1\nid: 5\ndata:\n\n");
    server.list(&["a"]).await;
    assert_eq!(harness.report().await, "a");

    script.set("two");
    drop(stream);
    let resumed = server.take("GET").await;
    assert_eq!((authorization(&resumed), resumed.header("last-event-id")), (Some("Bearer two"), Some("5")));
    resumed.status(405);
    let call = harness.call("a");
    let request = server.take_call("a").await;
    assert_eq!((authorization(&request), request.header("mcp-session-id")), (Some("Bearer two"), Some("7")));
    request.answer(json!({ "ok": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"ok":1}"#);

    let ((), delete) = tokio::join!(harness.handle.stop(), async {
        let delete = server.take("DELETE").await;
        let authorization = authorization(&delete).map(str::to_owned);
        delete.status(200);
        authorization
    });
    assert_eq!(delete.as_deref(), Some("Bearer two"));
}

#[tokio::test]
async fn a_call_rejected_with_401_is_sent_again_with_other_credentials_and_answered_once() {
    let script = Script::new(OnRejection::Refresh, Some("old"));
    let (harness, mut server) = Harness::legacy(setup(&script)).await;
    let call = harness.call("a");
    let rejected = server.take_call("a").await;
    assert_eq!(authorization(&rejected), Some("Bearer old"));
    let (id, challenge) = (rejected.message.clone(), r#"Bearer error="invalid_token""#);
    let body = json!({ "jsonrpc": "2.0", "id": id["id"], "error": { "code": -32001, "message": "no" } });
    let headers = [
        ("content-type", "application/json"),
        ("www-authenticate", challenge),
        ("www-authenticate", "DPoP algs=\"ES256\""),
        ("dpop-nonce", "n1"),
    ];
    rejected.reply(401, &headers, body);
    let again = server.take_call("a").await;
    assert_eq!((authorization(&again), &again.message), (Some("Bearer fresh-1"), &id));
    again.answer(json!({ "ok": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"ok":1}"#);
    let seen = Seen {
        status: 401,
        challenges: vec![challenge.to_owned(), "DPoP algs=\"ES256\"".to_owned()],
        nonce: Some("n1".to_owned()),
        target: format!("POST {}", server.url()),
        attempts: 1,
    };
    assert_eq!(script.rejections(), [seen]);
    assert_eq!(server.untaken(), [""; 0]);
}

#[tokio::test]
async fn a_call_rejected_for_ever_ends_after_a_few_attempts() {
    let script = Script::new(OnRejection::Refresh, None);
    let (harness, mut server) = Harness::legacy(setup(&script)).await;
    let call = harness.call("a");
    for _ in 0..5 {
        server.take_call("a").await.status(401);
    }
    let end = harness.calls.end(call).await;
    assert!(end.contains("answered HTTP 401 Unauthorized"), "{end}");
    let attempts: Vec<u32> = script.rejections().iter().map(|seen| seen.attempts).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5]);
    harness.works(&mut server).await;
    assert_eq!(server.untaken(), [""; 0]);
}

#[tokio::test]
async fn only_a_403_for_its_scope_is_a_rejection_of_credentials() {
    let script = Script::new(OnRejection::Refresh, None);
    let (harness, mut server) = Harness::legacy(setup(&script)).await;
    let call = harness.call("a");
    server.take_call("a").await.status(403);
    assert!(harness.calls.end(call).await.contains("answered HTTP 403 Forbidden"));
    assert!(script.rejections().is_empty());

    let call = harness.call("b");
    let challenge = r#"Bearer error="insufficient_scope", scope="write""#;
    server.take_call("b").await.reply(403, &[("www-authenticate", challenge)], "");
    server.take_call("b").await.answer(json!({ "ok": 1 }));
    assert_eq!(harness.calls.end(call).await, r#"{"ok":1}"#);
    assert_eq!(script.rejections()[0].challenges, [challenge]);
}

#[tokio::test]
async fn a_401_that_no_other_credentials_prevent_is_an_error_like_others() {
    let script = Script::new(OnRejection::NotOurs, None);
    let (harness, mut server) = Harness::legacy(setup(&script)).await;
    let call = harness.call("a");
    let request = server.take_call("a").await;
    let id = request.message["id"].clone();
    request.json(401, json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32001, "message": "no" } }));
    assert!(harness.calls.end(call).await.contains("no"));

    let script = Script::new(OnRejection::Final, None);
    let (harness, mut server) = Harness::legacy(setup(&script)).await;
    let call = harness.call("a");
    server.take_call("a").await.status(401);
    let end = harness.calls.end(call).await;
    assert_eq!(end, "server 's' failed: has no use for us");
    harness.works(&mut server).await;
}

/// A token that changes does not disturb the calls in flight.
#[tokio::test]
async fn twenty_calls_in_flight_survive_a_change_of_the_token() {
    let script = Script::new(OnRejection::NeedsLogin, Some("old"));
    let (harness, mut server) = Harness::legacy(setup(&script)).await;
    let calls: Vec<_> = (0..20).map(|_| harness.call("a")).collect();
    let mut requests = Vec::new();
    for _ in 0..20 {
        requests.push(server.take_call("a").await);
    }
    script.set("new");
    for (at, request) in requests.into_iter().enumerate() {
        assert_eq!(authorization(&request), Some("Bearer old"));
        if at % 2 == 0 { request.answer(json!({ "ok": 1 })) } else { request.status(401) }
    }
    for _ in 0..10 {
        let again = server.take_call("a").await;
        assert_eq!(authorization(&again), Some("Bearer new"));
        again.answer(json!({ "ok": 1 }));
    }
    for call in calls {
        assert_eq!(harness.calls.end(call).await, r#"{"ok":1}"#);
    }
    assert_eq!((script.logins(), server.untaken().len()), (0, 0));
}
