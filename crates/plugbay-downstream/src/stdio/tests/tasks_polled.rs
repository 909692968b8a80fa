//! Tools that require a task, called by hosts that cannot poll one.

use plugbay_core::{
    era::{CAPABILITIES_KEY, Era, MODERN_VERSION, VERSION_KEY},
    exposure::Mode,
    failure::{CallError, Limit},
    suspended::HOST_PATIENCE,
    task::{EXTENSION, TaskRole},
};
use serde_json::{Value, json};

use super::{
    SECOND,
    harness::{Forwarded, Harness, cancel, modern, request, server},
};
use crate::scripted::snapshot_with_tasks;

const SLOW: &str = r#"{"name":"s__slow","arguments":{}}"#;

/// The method that the server got, and its parameters.
fn parts(forwarded: &Forwarded) -> (String, Value) {
    let message: Value = serde_json::from_str(&forwarded.text()).unwrap();
    (message["method"].as_str().unwrap().to_owned(), message["params"].clone())
}

/// A call of a legacy server's tool, and the request that waits for its task.
async fn awaited(harness: &mut Harness, call: String) -> Forwarded {
    harness.say(call).await;
    let begun = harness.forwarded().await;
    assert_eq!((&parts(&begun).1["task"], begun.task_role()), (&json!({}), &TaskRole::Begin));
    begun.answer(r#"{"task":{"taskId":"1","status":"working"}}"#);
    let awaited = harness.forwarded().await;
    assert_eq!(parts(&awaited), ("tasks/result".to_owned(), json!({ "taskId": "1" })));
    assert_eq!(awaited.task_role(), &TaskRole::Await("1".into()));
    awaited
}

#[tokio::test(start_paused = true)]
async fn a_legacy_servers_task_is_one_long_call_to_any_host() {
    for mode in [Mode::All, Mode::Search] {
        let execute = r#""name":"execute_tool","arguments":{"name":"s__slow","arguments":{}}"#;
        let named = if mode == Mode::All { r#""name":"s__slow","arguments":{}"# } else { execute };
        let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], mode));
        awaited(&mut harness, modern(7, "tools/call", &format!(",{named}")))
            .await
            .answer(r#"{"content":[1.0]}"#);
        let result = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[1.0],"resultType":"complete"}}"#;
        assert_eq!(harness.hear_text().await, result);

        let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], mode));
        harness.open().await;
        awaited(&mut harness, request(7, "tools/call", &format!("{{{named}}}")))
            .await
            .answer(r#"{"content":[1.0]}"#);
        assert_eq!(harness.hear_text().await, r#"{"jsonrpc":"2.0","id":7,"result":{"content":[1.0]}}"#);
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_servers_task_ends_with_its_call() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], Mode::All));
    harness.open().await;
    let waiting = awaited(&mut harness, request(7, "tools/call", SLOW)).await;
    harness.say(cancel(7)).await;
    assert_eq!(harness.cancelled().await.0, waiting.ticket());
    let ended = harness.forwarded().await;
    assert_eq!(parts(&ended), ("tasks/cancel".to_owned(), json!({ "taskId": "1" })));
    // Otherwise the server would seem to work for two hosts, and could send requests to neither.
    assert!(ended.caller().is_same_host(waiting.caller()), "the cancellation is the host's own");
    ended.answer(r#"{"taskId":"1","status":"cancelled"}"#);
    harness.hear_nothing().await;

    let waiting = awaited(&mut harness, request(8, "tools/call", SLOW)).await;
    waiting.fail(CallError::TimedOut { server: server(), after: SECOND, limit: Limit::Settings });
    assert_eq!(parts(&harness.forwarded().await).0, "tasks/cancel");
    assert!(harness.hear().await["error"]["message"].as_str().unwrap().contains("did not answer"));
}

#[tokio::test(start_paused = true)]
async fn a_polled_task_with_an_elicitation_suspends_the_call_of_a_modern_host() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], Mode::All));
    let call = |id: u32, members: &str| {
        let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: { "elicitation": {} } });
        request(
            id,
            "tools/call",
            &format!(r#"{{"_meta":{meta},"name":"s__slow","arguments":{{}}{members}}}"#),
        )
    };
    let waiting = awaited(&mut harness, call(1, "")).await;
    waiting.ask(900, "elicitation/create", "{}").unwrap();
    let carried = harness.hear().await["result"]["requestState"].clone();
    harness.say(call(2, &format!(r#","inputResponses":{{"900":{{"x":1}}}},"requestState":{carried}"#))).await;
    assert_eq!(harness.replied().await, (900, r#"{"x":1}"#.to_owned()));
    waiting.answer(r#"{"content":[]}"#);
    assert_eq!(harness.hear().await["result"], json!({ "resultType": "complete", "content": [] }));
}

#[tokio::test(start_paused = true)]
async fn a_finished_task_is_not_cancelled_when_its_modern_host_stays_away() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], Mode::All));
    let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: { "elicitation": {} } });
    let params = format!(r#"{{"_meta":{meta},"name":"s__slow","arguments":{{}}}}"#);
    let waiting = awaited(&mut harness, request(1, "tools/call", &params)).await;
    waiting.ask(900, "elicitation/create", "{}").unwrap();
    harness.hear().await;
    waiting.answer(r#"{"content":[]}"#);
    tokio::time::sleep(2 * HOST_PATIENCE).await;
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_begins_while_its_modern_host_is_away_waits_for_the_host() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], Mode::All));
    let call = |id: u32, members: &str| {
        let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: { "elicitation": {} } });
        let params = format!(r#"{{"_meta":{meta},"name":"s__slow","arguments":{{}}{members}}}"#);
        request(id, "tools/call", &params)
    };
    harness.say(call(1, "")).await;
    let begun = harness.forwarded().await;
    begun.ask(900, "elicitation/create", "{}").unwrap();
    let state = harness.hear().await["result"]["requestState"].clone();
    begun.withdraw(900);
    begun.answer(r#"{"task":{"taskId":"1","status":"working"}}"#);
    harness.nothing_forwarded().await;
    harness.say(call(2, &format!(r#","inputResponses":{{}},"requestState":{state}"#))).await;
    let awaited = harness.forwarded().await;
    assert_eq!(parts(&awaited).0, "tasks/result");
    awaited.answer(r#"{"content":[]}"#);
    assert_eq!(harness.hear().await["id"], 2);
}

const DEMAND: &str = r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}"#;

/// A legacy host that can be asked, and its call to a modern server that requires a task.
async fn insisted() -> (Harness, Forwarded) {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Modern, &["s"], Mode::All));
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}"#;
    harness.ask(request(1, "initialize", params)).await;
    harness.say(request(7, "tools/call", r#"{"name":"s__echo","arguments":{"n":1.0}}"#)).await;
    let refused = harness.forwarded().await;
    assert_eq!(refused.task_role(), &TaskRole::None, "it need not know of tasks unless it must");
    refused.answer_modern_with("error", DEMAND);
    let again = harness.forwarded().await;
    assert_eq!(
        parts(&again),
        ("tools/call".to_owned(), json!({ "name": "echo", "arguments": { "n": 1.0 } }))
    );
    assert_eq!(again.task_role(), &TaskRole::Begin, "{EXTENSION} is declared for it");
    (harness, again)
}

async fn polled(harness: &mut Harness, method: &str) -> Forwarded {
    let next = harness.forwarded().await;
    let (said, params) = parts(&next);
    assert_eq!((&*said, &params["taskId"]), (method, &json!("1")));
    next
}

#[tokio::test(start_paused = true)]
async fn a_modern_servers_task_is_one_long_call_to_a_legacy_host() {
    let (mut harness, begun) = insisted().await;
    begun.answer_modern(r#"{"resultType":"task","taskId":"1","status":"working","pollIntervalMs":200}"#);
    polled(&mut harness, "tasks/get").await.answer_modern(r#"{"taskId":"1","status":"working"}"#);
    let asks = r#"{"taskId":"1","status":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"n":1.0}}}}"#;
    polled(&mut harness, "tasks/get").await.answer_modern(asks);
    let server_request = harness.hear().await;
    assert_eq!(
        (&server_request["method"], &server_request["params"]),
        (&json!("elicitation/create"), &json!({ "n": 1.0 }))
    );
    harness
        .say(json!({ "jsonrpc": "2.0", "id": server_request["id"], "result": { "action": "accept" } }))
        .await;
    let update = polled(&mut harness, "tasks/update").await;
    assert_eq!(parts(&update).1["inputResponses"], json!({ "q": { "action": "accept" } }));
    update.answer_modern(r#"{"resultType":"complete"}"#);
    // The server has not noticed the answer yet, and the host is not asked twice.
    polled(&mut harness, "tasks/get").await.answer_modern(asks);
    let done = r#"{"taskId":"1","status":"completed","result":{"content":[],"n":1.0}}"#;
    polled(&mut harness, "tasks/get").await.answer_modern(done);
    assert_eq!(harness.hear_text().await, r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"n":1.0}}"#);
}

#[tokio::test(start_paused = true)]
async fn a_modern_servers_task_may_fail_be_cancelled_or_be_left() {
    for (state, words) in [
        (r#"{"taskId":"1","status":"failed","error":{"code":-7,"message":"broken"}}"#, "broken"),
        (r#"{"taskId":"1","status":"cancelled"}"#, "the task has been cancelled by its server"),
        (r#"{"taskId":"1","status":"completed"}"#, "the task has ended, and its server does not say how"),
    ] {
        let (mut harness, begun) = insisted().await;
        begun.answer_modern(r#"{"resultType":"task","taskId":"1","status":"working"}"#);
        polled(&mut harness, "tasks/get").await.answer_modern(state);
        assert_eq!(harness.hear().await["error"]["message"], words);
    }
    let (mut harness, begun) = insisted().await;
    begun.answer_modern(r#"{"resultType":"task","taskId":"1","status":"working"}"#);
    let asking = polled(&mut harness, "tasks/get").await;
    harness.say(cancel(7)).await;
    assert_eq!(harness.cancelled().await.0, asking.ticket());
    let ended = polled(&mut harness, "tasks/cancel").await;
    assert_eq!(ended.client_capabilities(), asking.client_capabilities());
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_may_answer_a_task_call_at_once() {
    let (mut harness, again) = insisted().await;
    again.answer_modern(r#"{"resultType":"complete","content":[]}"#);
    assert_eq!(harness.hear().await["result"]["content"], json!([]));
    let (mut harness, again) = insisted().await;
    again.answer_modern_with("error", DEMAND);
    assert_eq!(harness.hear().await["error"]["code"], -32021, "once is enough");
}
