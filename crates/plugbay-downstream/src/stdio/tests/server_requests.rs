//! Server requests to a legacy host, and hosts that servers must not learn about.

use plugbay_core::{era::Era, exchange::ServerRequestError, exposure::Mode};
use serde_json::{Value, json};

use super::{
    SECOND,
    harness::{Harness, INITIALIZED, call, cancel, request, snapshot_in},
};
use crate::scripted::snapshot_with_tasks;

/// A legacy host with these capabilities, at a server of this era.
async fn host(capabilities: &str, server: Era) -> Harness {
    let mut harness = Harness::with(snapshot_in(server, &["echo"]));
    let params = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}"#);
    harness.ask(request("\"init\"", "initialize", &params)).await;
    harness.say(INITIALIZED).await;
    harness
}

const ALL: &str = r#"{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}"#;

#[tokio::test(start_paused = true)]
async fn a_server_request_and_its_answer_are_forwarded_byte_for_byte() {
    let mut harness = host(ALL, Era::Legacy).await;
    harness.say(call(1)).await;
    let forwarded = harness.forwarded().await;
    forwarded.ask(900, "sampling/createMessage", r#"{"n":12345678901234567890.0, "é":[]}"#).unwrap();
    let asked = harness.hear_text().await;
    let expected = r#"{"jsonrpc":"2.0","method":"sampling/createMessage","id":900, "params":{"n":12345678901234567890.0, "é":[]} }"#;
    assert_eq!(asked, expected);
    let answer = r#"{ "id":900,"result":{"b":1.0,"a":2}, "jsonrpc":"2.0"}"#;
    harness.say(answer).await;
    assert_eq!(harness.replied().await, (900, answer.to_owned()));
    harness.say(answer).await; // once more
    harness.say(r#"{"jsonrpc":"2.0","id":901,"result":{}}"#).await;
    harness.say(r#"{"jsonrpc":"2.0","id":"900","result":{}}"#).await;
    harness.nothing_forwarded().await;
    forwarded.answer("{}");
    assert_eq!(harness.hear().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn server_requests_follow_the_declared_capabilities() {
    for (declared, method, params, lacking) in [
        ("{}", "sampling/createMessage", "{}", "sampling"),
        (r#"{"sampling":{}}"#, "sampling/createMessage", r#"{"tools":[]}"#, "sampling.tools"),
        (r#"{"sampling":{}}"#, "elicitation/create", "{}", "elicitation.form"),
        (r#"{"elicitation":{}}"#, "elicitation/create", r#"{"mode":"url"}"#, "elicitation.url"),
        (r#"{"elicitation":{"url":{}}}"#, "elicitation/create", r#"{"mode":"form"}"#, "elicitation.form"),
        (r#"{"elicitation":{}}"#, "roots/list", "{}", "roots"),
    ] {
        let mut harness = host(declared, Era::Legacy).await;
        harness.say(call(1)).await;
        let forwarded = harness.forwarded().await;
        assert_eq!(
            forwarded.ask(900, method, params),
            Err(ServerRequestError::Undeclared(lacking)),
            "{declared}"
        );
        harness.hear_nothing().await;
        // Methods that it has declared, or that are unknown, are sent to it.
        assert_eq!(forwarded.ask(901, "x/unheard-of", "{}"), Ok(()));
        assert_eq!(harness.hear().await["method"], "x/unheard-of");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_request_without_a_call_needs_initialized() {
    let mut harness = Harness::new();
    let params = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{ALL}}}"#);
    harness.ask(request(1, "initialize", &params)).await;
    let only = harness.only_host().expect("one host");
    assert_eq!(
        only.server_request(None, crate::scripted::server_request(900, "roots/list", "{}")),
        Err(ServerRequestError::NoHost)
    );
    harness.say(INITIALIZED).await;
    harness.ask(request(2, "ping", "{}")).await;
    only.server_request(None, crate::scripted::server_request(901, "roots/list", "{}")).unwrap();
    assert_eq!(harness.hear().await["id"], 901);
    harness.say(r#"{"jsonrpc":"2.0","id":901,"result":{"roots":[]}}"#).await;
    assert_eq!(harness.replied().await.0, 901);
    harness.close();
    harness.heard().await; // the end
    assert!(harness.only_host().is_none(), "who has gone cannot be asked");
}

#[tokio::test(start_paused = true)]
async fn cancellation_by_the_server_withdraws_its_request() {
    let mut harness = host(ALL, Era::Legacy).await;
    harness.say(call(1)).await;
    let forwarded = harness.forwarded().await;
    forwarded.ask(900, "roots/list", "{}").unwrap();
    harness.hear().await;
    forwarded.withdraw(900);
    let told = harness.hear().await;
    assert_eq!(
        (&told["method"], &told["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(900))
    );
    forwarded.withdraw(900);
    harness.say(r#"{"jsonrpc":"2.0","id":900,"result":{}}"#).await;
    harness.nothing_forwarded().await;
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn cancellation_of_a_call_withdraws_its_server_requests() {
    let mut harness = host(ALL, Era::Legacy).await;
    harness.say(call(1)).await;
    let forwarded = harness.forwarded().await;
    forwarded.ask(900, "roots/list", "{}").unwrap();
    harness.hear().await;
    harness.say(cancel(1)).await;
    assert_eq!(harness.cancelled().await.0, forwarded.ticket());
    let told = harness.hear().await;
    assert_eq!(
        (&told["method"], &told["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(900))
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_request_outlives_a_call_if_others_may_carry_it() {
    let mut harness = host(ALL, Era::Legacy).await;
    harness.say(call(1)).await;
    let first = harness.forwarded().await;
    harness.say(call(2)).await;
    let latest = harness.forwarded().await;
    latest.ask_about(&[first.ticket(), latest.ticket()], 900, "roots/list", "{}").unwrap();
    assert_eq!(harness.hear().await["id"], 900);
    harness.say(cancel(2)).await;
    assert_eq!(harness.cancelled().await.0, latest.ticket());
    harness.hear_nothing().await;
    harness.say(r#"{"jsonrpc":"2.0","id":900,"result":{}}"#).await;
    assert_eq!(harness.replied().await.0, 900);
    latest.ask_about(&[first.ticket(), latest.ticket()], 901, "roots/list", "{}").unwrap_err();
    first.ask_about(&[first.ticket(), latest.ticket()], 902, "roots/list", "{}").unwrap();
    assert_eq!(harness.hear().await["id"], 902);
    harness.say(cancel(1)).await;
    assert_eq!(harness.hear().await["params"]["requestId"], 902, "nothing else is left that it may be about");
}

#[tokio::test(start_paused = true)]
async fn server_requests_to_a_host_that_does_not_read_are_limited() {
    let mut harness = host(ALL, Era::Legacy).await;
    harness.say(call(1)).await;
    let forwarded = harness.forwarded().await;
    let params = format!(r#"{{"x":"{}"}}"#, "x".repeat(1_000_000));
    let asked = (900..1000).take_while(|number| {
        let asked = forwarded.ask(*number, "roots/list", &params);
        forwarded.withdraw(*number);
        asked != Err(ServerRequestError::TooMany)
    });
    assert!((5..20).contains(&asked.count()));
}

#[tokio::test(start_paused = true)]
async fn pending_server_requests_are_refused_when_the_host_leaves() {
    let mut harness = host(ALL, Era::Legacy).await;
    harness.say(call(1)).await;
    let forwarded = harness.forwarded().await;
    forwarded.ask(900, "roots/list", "{}").unwrap();
    harness.hear().await;
    harness.close();
    assert_eq!(harness.replied().await, (900, ServerRequestError::HostGone.to_string()));
}

#[tokio::test(start_paused = true)]
async fn roots_list_changed_and_elicitation_complete_are_forwarded() {
    let mut harness = host(ALL, Era::Legacy).await;
    let changed = r#"{"jsonrpc":"2.0", "method":"notifications/roots/list_changed"}"#;
    harness.say(changed).await;
    assert_eq!(harness.roots_changed().await, changed);
    let complete =
        r#"{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e"}}"#;
    harness.only_host().unwrap().completed(complete.into());
    assert_eq!(harness.hear_text().await, complete);
    let mut rootless = host("{}", Era::Legacy).await;
    rootless.say(changed).await;
    rootless.nothing_forwarded().await;
}

// --- a modern server asks by its result

fn required(entries: &Value) -> String {
    json!({ "resultType": "input_required", "inputRequests": entries }).to_string()
}

#[tokio::test(start_paused = true)]
async fn input_requests_become_server_requests_and_their_answers_another_call() {
    let mut harness = host(ALL, Era::Modern).await;
    let params = r#"{"name":"s__echo", "arguments":{"n":1.0},"_meta":{"progressToken":"t"}}"#;
    harness.say(request("\"h\"", "tools/call", params)).await;
    let first = harness.forwarded().await;
    assert_eq!(first.client_capabilities(), ALL);
    first.answer_modern(r#"{"inputRequests":{"a \"b":{"params":{"n":1.0},"method":"sampling/createMessage"},"c":{"method":"roots/list"}},"requestState":"s\u00e9","resultType":"input_required"}"#);
    let (one, two) = (harness.hear_text().await, harness.hear().await);
    let one_id = serde_json::from_str::<Value>(&one).unwrap()["id"].clone();
    assert_eq!(
        one,
        format!(
            r#"{{"jsonrpc":"2.0","id":{one_id},"params":{{"n":1.0}},"method":"sampling/createMessage"}}"#
        )
    );
    assert_eq!(two["method"], "roots/list");
    harness.say(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"roots":[ ]}}}}"#, two["id"])).await;
    harness.nothing_forwarded().await;
    harness.say(format!(r#"{{"jsonrpc":"2.0","id":{one_id},"result":{{"model":"m", "n":1.0}}}}"#)).await;
    let second = harness.forwarded().await;
    assert_ne!(second.ticket(), first.ticket());
    let id = second.ticket().0;
    let expected = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"inputResponses":{{"c":{{"roots":[ ]}},"a \"b":{{"model":"m", "n":1.0}}}},"requestState":"s\u00e9","name":"echo", "arguments":{{"n":1.0}},"_meta":{{"progressToken":{id}}}}}}}"#
    );
    assert_eq!(second.text(), expected);
    second.progress();
    assert_eq!(harness.hear().await["params"]["progressToken"], "t");
    second.answer_modern(required(&json!({ "d": { "method": "roots/list" } })));
    let third_question = harness.hear().await;
    harness.say(json!({ "jsonrpc": "2.0", "id": third_question["id"], "result": {} })).await;
    let third = harness.forwarded().await;
    assert!(third.text().contains(r#""params":{"inputResponses":{"d":{}},"name""#), "{}", third.text());
    first.answer_modern(r#"{"late":1}"#);
    third.answer_modern(r#"{"resultType":"complete","done":1}"#);
    let answer = harness.hear().await;
    assert_eq!((&answer["id"], &answer["result"]["done"]), (&json!("h"), &json!(1)));
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_url_elicitation_gets_the_id_that_a_legacy_host_needs() {
    for (params, id) in [
        (json!({ "mode": "url", "url": "https://example.com" }), Some("given")),
        (json!({ "mode": "url", "url": "https://example.com", "elicitationId": "own" }), Some("own")),
        (json!({ "mode": "form", "requestedSchema": {} }), None),
    ] {
        let mut harness = host(ALL, Era::Modern).await;
        harness.say(call(1)).await;
        let entries = json!({ "a": { "method": "elicitation/create", "params": params } });
        harness.forwarded().await.answer_modern(required(&entries));
        let mut asked = harness.hear().await;
        let given = asked["params"].as_object_mut().unwrap().remove("elicitationId");
        match id {
            Some("given") => assert_eq!(given.unwrap(), asked["id"].to_string()),
            other => assert_eq!(given.as_ref().and_then(Value::as_str), other),
        }
        assert_eq!(asked["params"]["mode"], params["mode"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_declined_elicitation_is_an_answer_and_an_error_ends_the_call() {
    let mut harness = host(ALL, Era::Modern).await;
    harness.say(call(1)).await;
    let first = harness.forwarded().await;
    let entries = json!({ "a": { "method": "elicitation/create" }, "b": { "method": "roots/list" } });
    first.answer_modern(required(&entries));
    let (a, b) = (harness.hear().await, harness.hear().await);
    harness.say(json!({ "jsonrpc": "2.0", "id": a["id"], "result": { "action": "decline" } })).await;
    harness.say(json!({ "jsonrpc": "2.0", "id": b["id"], "result": {} })).await;
    let second = harness.forwarded().await;
    assert!(second.text().contains(r#""a":{"action":"decline"}"#));
    second.answer_modern(required(&entries));
    let (a, b) = (harness.hear().await, harness.hear().await);
    harness
        .say(json!({ "jsonrpc": "2.0", "id": a["id"], "error": { "code": -1, "message": "not now" } }))
        .await;
    let withdrawn = harness.hear().await;
    assert_eq!(withdrawn["params"]["requestId"], b["id"]);
    let answer = harness.hear().await;
    assert_eq!(answer["id"], 1);
    assert!(answer["error"]["message"].as_str().unwrap().contains("not now"), "{answer}");
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn an_input_request_that_cannot_be_sent_ends_the_call() {
    for (entry, reason) in [
        (json!({ "method": "roots/list" }), "has not declared the capability \"roots\""),
        (json!({ "method": "tools/call" }), "is no request to a host"),
        (json!({ "method": "sampling/createMessage", "id": 1 }), "twice"),
        (json!({ "params": {} }), "either"),
        (json!([]), "no request"),
    ] {
        let mut harness = host(r#"{"sampling":{}}"#, Era::Modern).await;
        harness.say(call(1)).await;
        // A request that could be sent precedes it.
        let entries = json!({ "0": { "method": "sampling/createMessage" }, "1": entry });
        harness.forwarded().await.answer_modern(required(&entries));
        let answer = harness.hear().await;
        let text = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(text.contains(reason) && answer["id"] == 1, "{answer}");
        harness.hear_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn input_required_round_trips_are_paused_and_limited() {
    let mut harness = host(ALL, Era::Modern).await;
    harness.say(call(1)).await;
    for round in 0..=16 {
        let forwarded = harness.forwarded().await;
        assert_eq!(forwarded.text().contains(r#""params":{"requestState":"s","name""#), round > 0);
        forwarded.answer_modern(r#"{"resultType":"input_required","requestState":"s"}"#);
        if round < 16 {
            harness.hear_nothing().await;
        }
    }
    let answer = harness.hear().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("16 times"), "{answer}");
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn every_input_required_round_trip_has_the_timeout_of_the_call() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Modern, &["s"], Mode::Search));
    harness.open().await;
    let arguments = json!({ "name": "s__echo", "arguments": {}, "timeout": 7 });
    let params = json!({ "name": "execute_tool", "arguments": arguments }).to_string();
    harness.say(request(1, "tools/call", &params)).await;
    for _ in 0..2 {
        let forwarded = harness.forwarded().await;
        assert_eq!(forwarded.timeout(), Some(7 * SECOND));
        forwarded.answer_modern(r#"{"resultType":"input_required","requestState":"s"}"#);
    }
}

#[tokio::test(start_paused = true)]
async fn cancellation_works_between_input_required_round_trips() {
    let mut harness = host(ALL, Era::Modern).await;
    harness.say(call(1)).await;
    harness.forwarded().await.answer_modern(required(&json!({ "a": { "method": "roots/list" } })));
    let server_request = harness.hear().await;
    harness.say(cancel(1)).await;
    harness.cancelled().await;
    assert_eq!(harness.hear().await["params"]["requestId"], server_request["id"]);
    harness.say(json!({ "jsonrpc": "2.0", "id": server_request["id"], "result": {} })).await;
    harness.nothing_forwarded().await;
    harness.say(call(1)).await; // its id is free again
    harness.forwarded().await.answer("{}");
    assert_eq!(harness.hear().await["id"], 1);
}
