//! Large results of tasks: outlined if the call was made through plugbay's own tools.

use plugbay_core::{
    era::{CAPABILITIES_KEY, Era, MODERN_VERSION, VERSION_KEY},
    exposure::Mode,
    task::EXTENSION,
};
use serde_json::{Value, json};

use super::{handle, page, text_result, told, tool_call};
use crate::{
    scripted::snapshot_with_tasks,
    stdio::tests::harness::{Harness, modern, request},
};

async fn opened(mode: Mode) -> Harness {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], mode));
    harness.open().await;
    harness
}

/// Makes a legacy call that asks for a task; returns the answer to its `tasks/result`.
async fn by_task(harness: &mut Harness, call: Value, id: &str) -> Value {
    let mut params = call;
    params["task"] = json!({});
    harness.say(request(1, "tools/call", &params.to_string())).await;
    harness.forwarded().await.answer(json!({ "task": { "taskId": id, "status": "working" } }));
    let begun = harness.hear().await;
    assert_eq!(begun["result"]["task"]["taskId"], format!("s__{id}"), "{begun}");
    harness.say(request(2, "tasks/result", &json!({ "taskId": format!("s__{id}") }).to_string())).await;
    harness.forwarded().await.answer(text_result(&page()));
    harness.hear().await
}

fn execute() -> Value {
    json!({ "name": "execute_tool", "arguments": { "name": "s__echo", "arguments": {} } })
}

#[tokio::test(start_paused = true)]
async fn a_legacy_tasks_result_has_an_outline_if_execute_tool_began_it() {
    let mut harness = opened(Mode::Search).await;
    let answer = by_task(&mut harness, execute(), "1").await;
    let outline = super::text(&answer).to_owned();
    assert!(outline.contains(r#"execute_tool {"name":"read_result""#) && outline.len() < 6_000, "{outline}");
    let lines = json!({ "result": handle(&outline), "lines": "3" });
    let (part, failed) = told(&mut harness, "read_result", lines).await;
    assert!(part.contains("line 0002") && !failed, "{part}");

    let mut filtered = execute();
    filtered["arguments"]["jq"] = json!(".");
    let answer = by_task(&mut harness, filtered, "2").await;
    assert!(super::text(&answer).contains("r_"), "the filter is for the result, not for the task: {answer}");
}

#[tokio::test(start_paused = true)]
async fn results_of_other_tasks_stay_whole() {
    let mut harness = opened(Mode::All).await;
    let named = json!({ "name": "s__echo", "arguments": {} });
    assert_eq!(by_task(&mut harness, named, "1").await["result"], text_result(&page()));
    harness.say(request(2, "tasks/result", r#"{"taskId":"s__unknown"}"#)).await;
    harness.forwarded().await.answer(text_result(&page()));
    assert_eq!(harness.hear().await["result"], text_result(&page()));
}

#[tokio::test(start_paused = true)]
async fn a_modern_tasks_result_has_an_outline_within_the_task() {
    let capabilities = json!({ "extensions": { EXTENSION: {} } });
    let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: capabilities });
    let with_tasks = |method: &str, mut params: Value| {
        params["_meta"] = meta.clone();
        request(1, method, &params.to_string())
    };
    let mut harness = Harness::with(snapshot_with_tasks(Era::Modern, &["s"], Mode::Search));
    harness.say(with_tasks("tools/call", execute())).await;
    let begun = json!({ "resultType": "task", "taskId": "1", "status": "working" });
    harness.forwarded().await.answer_modern(begun.to_string());
    assert_eq!(harness.hear().await["result"]["taskId"], "s__1");
    for (status, result) in [("working", None), ("completed", Some(text_result(&page())))] {
        harness.say(with_tasks("tasks/get", json!({ "taskId": "s__1" }))).await;
        let mut task = json!({ "resultType": "complete", "taskId": "1", "status": status });
        task.as_object_mut().unwrap().extend(result.clone().map(|result| ("result".to_owned(), result)));
        harness.forwarded().await.answer_modern(task.to_string());
        let answer = harness.hear().await;
        assert_eq!(
            (&answer["result"]["taskId"], &answer["result"]["status"]),
            (&json!("s__1"), &json!(status))
        );
        let outline = answer["result"]["result"]["content"][0]["text"].as_str();
        assert_eq!(
            outline.is_some_and(|outline| outline.contains("r_") && outline.len() < 6_000),
            result.is_some()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_polled_tasks_result_has_an_outline() {
    for era in [Era::Legacy, Era::Modern] {
        let mut harness = opened(Mode::Search).await;
        let arguments = json!({ "name": "s__slow", "arguments": {} });
        let members = format!(r#","name":"execute_tool","arguments":{arguments}"#);
        harness
            .say(match era {
                Era::Legacy => tool_call(7, "execute_tool", &arguments),
                Era::Modern => modern(7, "tools/call", &members),
            })
            .await;
        harness.forwarded().await.answer(json!({ "task": { "taskId": "1", "status": "working" } }));
        harness.forwarded().await.answer(text_result(&page()));
        let answer = harness.hear().await;
        let outline = super::text(&answer);
        assert!(outline.contains("r_") && outline.len() < 6_000, "{outline}");
    }
}
