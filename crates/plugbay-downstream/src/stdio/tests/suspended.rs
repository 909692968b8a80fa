//! Server requests to a modern host: its request is answered with the server request, and its next request
//! continues the same call.

use plugbay_core::{
    era::{CAPABILITIES_KEY, Era, MODERN_VERSION, VERSION_KEY},
    exchange::ServerRequestError,
    failure::CallError,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    SECOND,
    harness::{Forwarded, Harness, cancel, request, server, snapshot_in},
};
use plugbay_core::suspended::HOST_PATIENCE as PATIENCE;

const ALL: &str = r#"{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}}"#;

fn call_with(id: impl std::fmt::Display, capabilities: &str, members: &str) -> String {
    let capabilities: Value = serde_json::from_str(capabilities).unwrap();
    let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: capabilities, "progressToken": "t" });
    request(id, "tools/call", &format!(r#"{{"_meta":{meta},"name":"s__echo","arguments":{{}}{members}}}"#))
}

fn retry(id: impl std::fmt::Display, state: &Value, responses: &Value) -> String {
    call_with(id, ALL, &format!(r#","inputResponses":{responses},"requestState":{state}"#))
}

/// A call, and the answer that asks the host for input.
async fn suspended_call(harness: &mut Harness) -> (Forwarded, Value) {
    harness.say(call_with(1, ALL, "")).await;
    let forwarded = harness.forwarded().await;
    forwarded.ask(900, "sampling/createMessage", r#"{"n":1.0}"#).unwrap();
    let answer = harness.hear().await;
    (forwarded, answer)
}

fn state(answer: &Value) -> &Value {
    &answer["result"]["requestState"]
}

fn refusal(answer: &Value) -> &str {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    answer["error"]["message"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_request_state_with_other_arguments_is_refused() {
    let mut harness = Harness::new();
    let (forwarded, answer) = suspended_call(&mut harness).await;
    let again = retry(2, state(&answer), &json!({ "900": {} }));
    let other = again.replace(r#""arguments":{}"#, r#""arguments":{"amount":1000000}"#);
    assert!(refusal(&harness.ask(other).await).contains("was not given"));
    harness.say(again.replace(r#""arguments":{}"#, r#""arguments": { }"#)).await;
    assert_eq!(harness.replied().await.0, 900);
    forwarded.answer("{}");
    assert_eq!(harness.hear().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_request_suspends_the_call_and_the_retry_resumes_it() {
    let mut harness = Harness::new();
    harness.say(call_with(1, ALL, "")).await;
    let forwarded = harness.forwarded().await;
    forwarded.ask(900, "sampling/createMessage", r#"{"n":12345678901234567890.0, "é":[]}"#).unwrap();
    forwarded.ask(901, "roots/list", "{}").unwrap();
    let text = harness.hear_text().await;
    let requests = r#""inputRequests":{"900":{"method":"sampling/createMessage","params":{"n":12345678901234567890.0, "é":[]}},"901":{"method":"roots/list","params":{}}}"#;
    assert!(text.contains(requests) && text.contains(r#""resultType":"input_required""#), "{text}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["id"], 1);
    harness.nothing_forwarded().await;
    let responses = r#"{"901":{"roots":[ ]},"900":{"model":"m", "n":1.0},"extra":7}"#;
    harness
        .say(call_with(
            2,
            ALL,
            &format!(r#","inputResponses":{responses},"requestState":{}"#, state(&answer)),
        ))
        .await;
    assert_eq!(harness.replied().await, (901, r#"{"roots":[ ]}"#.to_owned()));
    assert_eq!(harness.replied().await, (900, r#"{"model":"m", "n":1.0}"#.to_owned()));
    harness.nothing_forwarded().await; // nothing is done twice
    forwarded.progress();
    assert_eq!(harness.hear().await["params"]["progressToken"], "t");
    forwarded.answer(r#"{"done":1.0}"#);
    let answer = harness.hear_text().await;
    assert_eq!(
        answer,
        format!(r#"{{"jsonrpc":"2.0","id":2,"result":{{"done":1.0,"resultType":"complete"}}}}"#)
    );
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_declares_the_capabilities_that_count_from_then_on() {
    let mut harness = Harness::new();
    let (forwarded, answer) = suspended_call(&mut harness).await;
    let members = format!(r#","inputResponses":{{"900":{{}}}},"requestState":{}"#, state(&answer));
    harness.say(call_with(2, r#"{"roots":{}}"#, &members)).await;
    assert_eq!(harness.replied().await.0, 900);
    let refused = forwarded.ask(901, "sampling/createMessage", "{}");
    assert_eq!(refused, Err(ServerRequestError::Undeclared("sampling")));
    forwarded.ask(902, "roots/list", "{}").unwrap();
    assert_eq!(harness.hear().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_can_have_many_input_required_round_trips() {
    let mut harness = Harness::new();
    let (forwarded, mut answer) = suspended_call(&mut harness).await;
    for round in 2..10 {
        let server_request = 900 + round - 2;
        harness.say(retry(round, state(&answer), &json!({ server_request.to_string(): {} }))).await;
        assert_eq!(harness.replied().await.0, server_request);
        forwarded.ask(server_request + 1, "roots/list", "{}").unwrap();
        answer = harness.hear().await;
        assert_eq!(
            (&answer["id"], &answer["result"]["resultType"]),
            (&json!(round), &json!("input_required"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_server_request_is_sent_again() {
    let mut harness = Harness::new();
    let (_forwarded, answer) = suspended_call(&mut harness).await;
    for (id, responses) in [(2, json!({})), (3, json!({ "7": {} }))] {
        harness.say(retry(id, state(&answer), &responses)).await;
        let again = harness.hear().await;
        assert_eq!(again["id"], id);
        assert_eq!(again["result"]["inputRequests"], answer["result"]["inputRequests"]);
    }
    harness.say(retry(4, state(&answer), &json!({ "900": "no object" }))).await;
    assert!(refusal(&harness.hear().await).contains("must hold an object"));
    harness.say(retry(5, state(&answer), &json!({ "900": {} }))).await;
    assert_eq!(harness.replied().await.0, 900);
}

#[tokio::test(start_paused = true)]
async fn input_requests_follow_the_capabilities_of_the_request() {
    let mut harness = Harness::new();
    harness.say(call_with(1, r#"{"elicitation":{}}"#, "")).await;
    let forwarded = harness.forwarded().await;
    for (method, params, why) in [
        ("sampling/createMessage", "{}", ServerRequestError::Undeclared("sampling")),
        ("elicitation/create", r#"{"mode":"url"}"#, ServerRequestError::Undeclared("elicitation.url")),
        ("x/unheard-of", "{}", ServerRequestError::Unknown),
    ] {
        assert_eq!(forwarded.ask(900, method, params), Err(why));
    }
    harness.hear_nothing().await;
    forwarded.ask(901, "elicitation/create", "{}").unwrap();
    assert!(harness.hear().await["result"]["inputRequests"]["901"].is_object());
    // The same holds while the host is away.
    assert_eq!(forwarded.ask(902, "roots/list", "{}"), Err(ServerRequestError::Undeclared("roots")));
}

#[tokio::test(start_paused = true)]
async fn a_foreign_request_state_is_refused() {
    let mut harness = Harness::with(snapshot_in(Era::Legacy, &["echo", "other"]));
    let (_forwarded, answer) = suspended_call(&mut harness).await;
    let given = state(&answer).as_str().unwrap();
    let mut tampered = given.to_owned();
    let last = if tampered.pop() == Some('A') { 'E' } else { 'A' };
    tampered.push(last);
    for (id, wrong) in [tampered.as_str(), "", "something", &given[..given.len() - 8]].into_iter().enumerate()
    {
        harness.say(retry(10 + id, &json!(wrong), &json!({ "900": {} }))).await;
        refusal(&harness.hear().await);
    }
    // A retry for another tool.
    let other = retry(20, state(&answer), &json!({ "900": {} })).replace("s__echo", "s__other");
    assert!(refusal(&harness.ask(other).await).contains("not given to this caller for this request"));
    harness.nothing_forwarded().await;
    harness.say(retry(30, state(&answer), &json!({ "900": {} }))).await;
    assert_eq!(harness.replied().await.0, 900, "and the right one still works");
}

#[tokio::test(start_paused = true)]
async fn a_request_state_is_used_once_at_a_time_and_not_after_the_call() {
    let mut harness = Harness::new();
    let (forwarded, answer) = suspended_call(&mut harness).await;
    harness.say(retry(2, state(&answer), &json!({ "900": {} }))).await;
    assert_eq!(harness.replied().await.0, 900);
    harness.say(retry(3, state(&answer), &json!({ "900": { "again": 1 } }))).await;
    assert!(refusal(&harness.hear().await).contains("already"));
    harness.nothing_forwarded().await;
    forwarded.answer("{}");
    assert_eq!(harness.hear().await["id"], 2);
    harness.say(retry(4, state(&answer), &json!({ "900": {} }))).await;
    assert!(refusal(&harness.hear().await).contains("has ended"));
}

#[tokio::test(start_paused = true)]
async fn a_suspended_call_expires_if_the_host_does_not_return() {
    let mut harness = Harness::new();
    let (forwarded, answer) = suspended_call(&mut harness).await;
    sleep(PATIENCE.saturating_sub(2 * SECOND)).await;
    harness.nothing_forwarded().await;
    let (ticket, notification) = harness.cancelled().await;
    assert_eq!(ticket, forwarded.ticket());
    assert!(notification.contains("notifications/cancelled"), "{notification}");
    harness.say(retry(2, state(&answer), &json!({ "900": {} }))).await;
    assert!(refusal(&harness.hear().await).contains("expired"));
    assert_eq!(
        forwarded.ask(901, "roots/list", "{}"),
        Err(ServerRequestError::CallEnded),
        "nothing is left of it"
    );
}

#[tokio::test(start_paused = true)]
async fn resuming_a_suspended_call_restarts_its_deadline() {
    let mut harness = Harness::new();
    let (forwarded, answer) = suspended_call(&mut harness).await;
    sleep(PATIENCE / 2).await;
    harness.say(retry(2, state(&answer), &json!({ "900": {} }))).await;
    assert_eq!(harness.replied().await.0, 900);
    sleep(PATIENCE).await;
    harness.nothing_forwarded().await;
    forwarded.answer("{}");
    assert_eq!(harness.hear().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_suspended_call_is_kept_for_its_host() {
    for failed in [false, true] {
        let mut harness = Harness::new();
        let (forwarded, answer) = suspended_call(&mut harness).await;
        if failed {
            forwarded.fail(CallError::Gone(server()));
        } else {
            forwarded.answer(r#"{"gave up waiting":1}"#);
        }
        harness.hear_nothing().await;
        harness.say(retry(2, state(&answer), &json!({ "900": {} }))).await;
        let end = harness.hear().await;
        assert_eq!(end["id"], 2);
        assert_eq!(
            (end["result"]["gave up waiting"] == 1, end["error"].is_object()),
            (!failed, failed),
            "{end}"
        );
        harness.nothing_forwarded().await;
    }
}

/// Two calls; the second one carries a server request that may belong to either.
async fn asked_by_the_latest(harness: &mut Harness) -> (Forwarded, Forwarded) {
    harness.say(call_with(1, ALL, "")).await;
    let first = harness.forwarded().await;
    harness.say(call_with(2, ALL, "")).await;
    let latest = harness.forwarded().await;
    latest.ask_about(&[first.ticket(), latest.ticket()], 900, "roots/list", "{}").unwrap();
    (first, latest)
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_server_request_is_forwarded_after_its_call_has_ended() {
    for (responses, reply) in
        [(json!({ "900": { "roots": [] } }), r#"{"roots":[]}"#), (json!({}), "left open")]
    {
        let mut harness = Harness::new();
        let (first, latest) = asked_by_the_latest(&mut harness).await;
        let answer = harness.hear().await;
        assert_eq!(answer["id"], 2);
        latest.answer(r#"{"latest":1}"#);
        harness.hear_nothing().await;
        harness.say(retry(3, state(&answer), &responses)).await;
        assert_eq!(harness.replied().await, (900, reply.to_owned()));
        let ended = harness.hear().await;
        assert_eq!((&ended["id"], &ended["result"]["latest"]), (&json!(3), &json!(1)));
        first.answer(r#"{"first":1}"#);
        assert_eq!(harness.hear().await["result"]["first"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_request_left_open_by_a_call_is_given_back() {
    for taken_back in [false, true] {
        let mut harness = Harness::new();
        let (first, latest) = asked_by_the_latest(&mut harness).await;
        if taken_back {
            harness.say(cancel(2)).await;
        } else {
            latest.answer("{}");
            assert_eq!(harness.hear().await["id"], 2);
        }
        assert_eq!(harness.replied().await, (900, "left open".to_owned()));
        if taken_back {
            assert_eq!(harness.cancelled().await.0, latest.ticket());
        }
        first.ask_about(&[first.ticket()], 900, "roots/list", "{}").unwrap();
        let answer = harness.hear().await;
        assert_eq!(answer["id"], 1);
        harness.say(retry(3, state(&answer), &json!({ "900": {} }))).await;
        assert_eq!(harness.replied().await.0, 900);
    }
    let mut harness = Harness::new();
    let (_first, latest) = asked_by_the_latest(&mut harness).await;
    harness.hear().await; // and the host does not come back
    assert_eq!(harness.replied().await, (900, "left open".to_owned()));
    assert_eq!(harness.cancelled().await.0, latest.ticket());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_server_request_is_not_sent() {
    let mut harness = Harness::new();
    harness.say(call_with(1, ALL, "")).await;
    let forwarded = harness.forwarded().await;
    forwarded.ask(900, "roots/list", "{}").unwrap();
    forwarded.withdraw(900); // before the host was bothered
    harness.hear_nothing().await;
    forwarded.ask(901, "roots/list", "{}").unwrap();
    forwarded.ask(902, "roots/list", "{}").unwrap();
    let answer = harness.hear().await;
    forwarded.withdraw(901); // while the host is away
    harness.say(retry(2, state(&answer), &json!({ "901": {}, "902": {} }))).await;
    assert_eq!(harness.replied().await.0, 902);
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_before_its_server_request_is_sent_just_ends() {
    let mut harness = Harness::new();
    harness.say(call_with(1, ALL, "")).await;
    let forwarded = harness.forwarded().await;
    forwarded.ask(900, "roots/list", "{}").unwrap();
    forwarded.answer(r#"{"done":1}"#);
    assert_eq!(harness.hear().await["result"]["done"], 1);
    harness.hear_nothing().await;
    harness.say(call_with(2, ALL, "")).await;
    let forwarded = harness.forwarded().await;
    forwarded.ask(901, "roots/list", "{}").unwrap();
    harness.say(cancel(2)).await;
    harness.cancelled().await;
    harness.hear_nothing().await;
    assert_eq!(forwarded.ask(902, "roots/list", "{}"), Err(ServerRequestError::CallEnded));
}

/// Legacy servers demand a visit to a web page by an error that the modern protocol does not have.
#[tokio::test(start_paused = true)]
async fn a_url_elicitation_error_becomes_an_input_required_result() {
    let visit = r#"{"mode":"url","elicitationId":"e", "url":"https://x","message":"m"}"#;
    let error = format!(r#"{{"code":-32042,"message":"go","data":{{"elicitations":[{visit}]}}}}"#);
    for (declared, visits) in [(ALL, true), (r#"{"elicitation":{}}"#, false)] {
        let mut harness = Harness::new();
        harness.say(call_with(1, declared, "")).await;
        let forwarded = harness.forwarded().await;
        let id = forwarded.ticket().0;
        forwarded.answer_with(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
        let answer = harness.hear_text().await;
        let entry = format!(r#""inputRequests":{{"0":{{"method":"elicitation/create","params":{visit}}}}}"#);
        assert_eq!((answer.contains(&entry), answer.contains(&error)), (visits, !visits), "{answer}");
        assert!(!answer.contains("requestState"), "{answer}");
        harness.say(call_with(2, declared, r#","inputResponses":{"0":{"action":"accept"}}"#)).await;
        harness.forwarded().await; // the server is called anew, as it wanted
    }
}

/// Between a modern host and a modern server nothing is changed.
#[tokio::test(start_paused = true)]
async fn a_modern_server_sends_input_requests_to_a_modern_host_directly() {
    let mut harness = Harness::with(snapshot_in(Era::Modern, &["echo"]));
    harness.say(call_with(1, ALL, "")).await;
    let forwarded = harness.forwarded().await;
    let result = r#"{"requestState":"é\u00e9","inputRequests":{ "k":{"method":"roots/list"}},"resultType":"input_required"}"#;
    forwarded.answer_modern(result);
    assert_eq!(harness.hear_text().await, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
    let again = call_with(
        2,
        r#"{"roots":{},"x":{}}"#,
        r#", "requestState":"é\u00e9","inputResponses":{ "k":{"roots":[1.0]}}"#,
    );
    harness.say(&again).await;
    let forwarded = harness.forwarded().await;
    let id = forwarded.ticket().0;
    let expected = again
        .replace(r#""id":2"#, &format!(r#""id":{id}"#))
        .replace("s__echo", "echo")
        .replace(r#""progressToken":"t""#, &format!(r#""progressToken":{id}"#));
    assert_eq!(forwarded.text(), expected);
}
