//! A login in the middle of a call: which hosts can be asked for it, and how.

use plugbay_core::era::{CAPABILITIES_KEY, Era, MODERN_VERSION, VERSION_KEY};
use serde_json::{Value, json};

use super::harness::{Harness, INITIALIZED, call, request, snapshot_in};

const URL: &str = r#"{"elicitation":{"url":{}}}"#;
const FORM: &str = r#"{"elicitation":{"form":{}}}"#;
const LOGIN: &str = r#"{"mode":"url","url":"https://auth.example","elicitationId":"1","message":"Log in"}"#;

async fn legacy_host(capabilities: &str, server: Era) -> Harness {
    let mut harness = Harness::with(snapshot_in(server, &["echo"]));
    let params = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}"#);
    harness.ask(request("\"init\"", "initialize", &params)).await;
    harness.say(INITIALIZED).await;
    harness
}

fn modern_call(id: u64, capabilities: &str, members: &str) -> String {
    let capabilities: Value = serde_json::from_str(capabilities).unwrap();
    let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: capabilities });
    request(id, "tools/call", &format!(r#"{{"_meta":{meta},"name":"s__echo","arguments":{{}}{members}}}"#))
}

#[tokio::test(start_paused = true)]
async fn a_legacy_host_is_asked_for_a_login_by_url_elicitation() {
    for server in [Era::Legacy, Era::Modern] {
        let mut harness = legacy_host(URL, server).await;
        harness.say(call(1)).await;
        let forwarded = harness.forwarded().await;
        assert!(forwarded.can_log_in());
        forwarded.ask(900, "elicitation/create", LOGIN).unwrap();
        let asked = harness.hear().await;
        assert_eq!((&asked["id"], &asked["params"]["url"]), (&json!(900), &json!("https://auth.example")));
        harness.say(r#"{"jsonrpc":"2.0","id":900,"result":{"action":"accept"}}"#).await;
        assert_eq!(harness.replied().await.0, 900);
        forwarded.answer("{}");
        assert_eq!(harness.hear().await["id"], 1);
    }
}

/// This also works with a modern server, which itself sends requests only in its results.
#[tokio::test(start_paused = true)]
async fn a_modern_host_is_asked_for_a_login_by_input_required() {
    for server in [Era::Legacy, Era::Modern] {
        let mut harness = Harness::with(snapshot_in(server, &["echo"]));
        harness.say(modern_call(1, URL, "")).await;
        let forwarded = harness.forwarded().await;
        assert!(forwarded.can_log_in());
        forwarded.ask(900, "elicitation/create", LOGIN).unwrap();
        let answer = harness.hear().await;
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        let asked = &answer["result"]["inputRequests"]["900"];
        assert_eq!(
            (&asked["method"], &asked["params"]["mode"]),
            (&json!("elicitation/create"), &json!("url"))
        );
        let (state, responses) = (&answer["result"]["requestState"], r#"{"900":{"action":"accept"}}"#);
        let members = format!(r#","inputResponses":{responses},"requestState":{state}"#);
        harness.say(modern_call(2, URL, &members)).await;
        assert_eq!(harness.replied().await, (900, r#"{"action":"accept"}"#.to_owned()));
        forwarded.answer(r#"{"done":1}"#);
        let answer = harness.hear().await;
        assert_eq!((&answer["id"], &answer["result"]["done"]), (&json!(2), &json!(1)));
        harness.nothing_forwarded().await;
    }
}

/// The user logs in before the host is back.
#[tokio::test(start_paused = true)]
async fn a_modern_host_gets_its_answer_when_it_comes_back_after_the_login() {
    let mut harness = Harness::with(snapshot_in(Era::Modern, &["echo"]));
    harness.say(modern_call(1, URL, "")).await;
    let forwarded = harness.forwarded().await;
    forwarded.ask(900, "elicitation/create", LOGIN).unwrap();
    let answer = harness.hear().await;
    forwarded.withdraw(900);
    forwarded.answer(r#"{"done":1}"#);
    harness.hear_nothing().await;
    let state = &answer["result"]["requestState"];
    let members = format!(r#","inputResponses":{{"900":{{"action":"accept"}}}},"requestState":{state}"#);
    let answer = harness.ask(modern_call(2, URL, &members)).await;
    assert_eq!((&answer["id"], &answer["result"]["done"]), (&json!(2), &json!(1)));
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_without_url_elicitation_cannot_log_in() {
    for server in [Era::Legacy, Era::Modern] {
        let mut harness = legacy_host(FORM, server).await;
        harness.say(call(1)).await;
        assert!(!harness.forwarded().await.can_log_in());
        let mut harness = Harness::with(snapshot_in(server, &["echo"]));
        harness.say(modern_call(1, FORM, "")).await;
        assert!(!harness.forwarded().await.can_log_in());
    }
}
