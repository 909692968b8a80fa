//! Calls: their ids of every kind, cancellation, and the messages passed on during a call.

use plugbay_core::failure::{CallError, Failure};
use serde_json::json;
use tokio::time::sleep;

use super::{
    SECOND,
    harness::{Harness, call, cancel, modern, request, server, snapshot, unsettled},
};

#[tokio::test(start_paused = true)]
async fn a_tool_call_changes_in_id_name_and_progress_token_only() {
    let mut harness = Harness::legacy().await;
    harness
        .say(r#" { "x":1.0, "method":"tools/call","id" : "h" , "jsonrpc":"2.0","params":{ "arguments":{"é":12345678901234567890123,"b":{"id":"h"}}, "name":"s__echo" ,"_meta":{"progressToken":"h","k":[]}} } "#)
        .await;
    let forwarded = harness.forwarded().await;
    let id = forwarded.ticket().0;
    let expected = format!(
        r#"{{ "x":1.0, "method":"tools/call","id" : {id} , "jsonrpc":"2.0","params":{{ "arguments":{{"é":12345678901234567890123,"b":{{"id":"h"}}}}, "name":"echo" ,"_meta":{{"progressToken":{id},"k":[]}}}} }}"#
    );
    assert_eq!(forwarded.text().trim_end(), expected);

    let result = r#"{"b":1.0,"a":12345678901234567890123,"content":[ {"type":"text"} ]}"#;
    forwarded.answer(result);
    let answer = harness.hear_text().await;
    assert!(answer.contains(result) && answer.contains(r#""id":"h""#), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_request_id_comes_back_as_it_was_written() {
    let ids =
        ["1", "0", "-1", "\"1\"", "\"\"", "\"é\"", r#""\u00e9\"\\\n""#, "123456789012345678901234567890"];
    let mut harness = Harness::legacy().await;
    for id in ids {
        harness.say(call(id)).await; // all of them at once
    }
    for id in ids {
        harness.forwarded().await.answer(format!("{{\"for\":{id}}}"));
        let answer = harness.hear_text().await;
        assert!(answer.contains(&format!("\"id\":{id}")), "{answer}");
        assert!(answer.contains(&format!("\"for\":{id}")), "{answer}");
    }
    for id in ids {
        harness.say(request(id, "tools/call", r#"{"name":"nowhere"}"#)).await;
        let refusal = harness.hear_text().await;
        assert!(refusal.contains(&format!("\"id\":{id},\"error\"")), "{refusal}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_id_in_flight_is_refused() {
    let mut harness = Harness::legacy().await;
    harness.say(call(1)).await;
    let first = harness.forwarded().await;
    assert_eq!(harness.ask(call(1)).await["error"]["code"], -32600);
    harness.say(call("\"1\"")).await; // another id
    let other = harness.forwarded().await;
    first.answer(r#"{"first":1}"#);
    assert_eq!(harness.hear().await["result"]["first"], 1);
    harness.say(call(1)).await; // free again
    harness.forwarded().await.answer(r#"{"second":1}"#);
    assert_eq!(harness.hear().await["result"]["second"], 1);
    other.answer("{}");
    assert_eq!(harness.hear().await["id"], "1");
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_is_never_answered_after_its_cancellation() {
    let mut harness = Harness::legacy().await;
    harness.say(call(1)).await;
    let taken_back = harness.forwarded().await;
    harness
        .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"x","requestId":1}}"#)
        .await;
    let (ticket, text) = harness.cancelled().await;
    assert_eq!(ticket, taken_back.ticket());
    let expected = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"reason":"x","requestId":{}}}}}"#,
        ticket.0
    );
    assert_eq!(text, expected, "the host's own words, with the server's id");
    taken_back.progress();
    taken_back.answer("{}");
    harness.hear_nothing().await;

    harness.say(call(1)).await; // the id is free, and the late answer was not for it
    let next = harness.forwarded().await;
    taken_back.answer("{}");
    harness.hear_nothing().await;
    next.answer(r#"{"next":1}"#);
    assert_eq!(harness.hear().await["result"]["next"], 1);
    for id in ["1", "\"1\"", "99", "null", "{}"] {
        harness.say(cancel(id)).await; // answered, or never asked
    }
    harness.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#).await;
    harness.nothing_forwarded().await;
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_is_answered_once() {
    let mut harness = Harness::legacy().await;
    harness.say(call(1)).await;
    let forwarded = harness.forwarded().await;
    forwarded.answer(r#"{"first":1}"#);
    forwarded.answer(r#"{"second":1}"#);
    forwarded.fail(CallError::Gone(server()));
    forwarded.progress();
    assert_eq!(harness.hear().await["result"]["first"], 1);
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn progress_goes_to_the_host_that_sent_the_token() {
    let mut harness = Harness::legacy().await;
    for (token, passed) in [(r#","_meta":{"progressToken":"t\u00e9"}"#, true), ("", false)] {
        harness.say(request(1, "tools/call", &format!(r#"{{"name":"s__echo"{token}}}"#))).await;
        let forwarded = harness.forwarded().await;
        forwarded.progress();
        if passed {
            let progress = harness.hear_text().await;
            assert!(progress.contains(r#""progressToken":"t\u00e9""#), "{progress}");
        }
        forwarded.answer("{}");
        assert_eq!(harness.hear().await["id"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_modern_host_gets_modern_results_from_legacy_servers() {
    let cases = [
        (r#"{"a":1}"#, json!({ "resultType": "complete", "a": 1 })),
        ("{ }", json!({ "resultType": "complete" })),
        ("[1]", json!([1])),
        ("7", json!(7)),
    ];
    let mut harness = Harness::new();
    for (result, expected) in cases {
        harness.say(modern(1, "tools/call", r#","name":"s__echo""#)).await;
        harness.forwarded().await.answer(result);
        assert_eq!(harness.hear().await["result"], expected, "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_call_says_why() {
    let failure = Failure::new("exited with code 1", vec!["last words".to_owned()]).into();
    let mut harness = Harness::legacy().await;
    harness.say(call(1)).await;
    harness.forwarded().await.fail(CallError::Down { server: server(), failure });
    let error = harness.hear().await["error"].take();
    assert_eq!((&error["code"], &error["data"]["server"]), (&json!(-32000), &json!("s")));
    assert_eq!(error["data"]["reason"], "exited with code 1");
    assert_eq!(error["data"]["stderr"], json!(["last words"]));

    let error = harness.ask(request(2, "tools/call", r#"{"name":"s__ecko"}"#)).await["error"].take();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().contains("s__echo"), "{error}");
}

/// An unknown tool may belong to a server that has not listed yet.
#[tokio::test(start_paused = true)]
async fn a_call_of_an_unknown_tool_waits_for_the_catalog() {
    let mut harness = Harness::with(unsettled());
    for id in 1..=3 {
        harness.say(call(id)).await;
    }
    harness.say(request(4, "tools/call", r#"{"name":"s__nothing"}"#)).await;
    harness.nothing_forwarded().await;
    assert_eq!(harness.ask(call(1)).await["error"]["code"], -32600, "its id is in use");
    harness.say(cancel(2)).await;
    sleep(SECOND).await;
    harness.snapshots.send_replace(snapshot(&["echo"], true));
    for id in [1, 3] {
        harness.forwarded().await.answer(format!("{{\"n\":{id}}}"));
    }
    harness.nothing_forwarded().await;
    let mut answers = [harness.hear().await, harness.hear().await, harness.hear().await];
    answers.sort_by_key(|answer| answer["id"].as_i64());
    let ids = answers.each_ref().map(|answer| answer["id"].as_i64().unwrap());
    assert_eq!(ids, [1, 3, 4], "the second was cancelled");
    assert_eq!(answers[2]["error"]["code"], -32602);
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_used_again_after_its_cancellation_gets_one_answer() {
    for _ in 0..32 {
        let mut harness = Harness::with(unsettled());
        harness.open().await;
        harness.say(call(1)).await;
        sleep(SECOND).await;
        // The host cancels and repeats its call at the very moment in which the servers have listed their
        // tools.
        harness.say(format!("{}\n{}", cancel(1), call(1))).await;
        harness.snapshots.send_replace(snapshot(&["echo"], true));
        harness.forwarded().await.answer("{}");
        harness.nothing_forwarded().await;
        assert_eq!(harness.hear().await["id"], 1);
        harness.hear_nothing().await;
    }
}
