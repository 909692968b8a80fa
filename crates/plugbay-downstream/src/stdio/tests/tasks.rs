//! Tasks between hosts and servers of the same era: everything but their ids stays unchanged.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    era::{CAPABILITIES_KEY, Era, MODERN_VERSION, SUBSCRIPTION_KEY, VERSION_KEY},
    exchange::{ServerNotification, Topic},
    exposure::Mode,
    failure::{CallError, Failure},
    name::ServerName,
    task::{EXTENSION, TaskRole},
    wire::{Head, Members},
};
use serde_json::{Value, json};

use super::harness::{Harness, INITIALIZE, modern, request, server};
use crate::scripted::snapshot_with_tasks;

async fn legacy(servers: &[&str]) -> Harness {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, servers, Mode::All));
    harness.open().await;
    harness
}

/// A request of a modern host that accepts tasks as answers.
fn with_tasks(id: u32, method: &str, members: &str) -> String {
    let capabilities = json!({ "extensions": { EXTENSION: {} } });
    let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: capabilities });
    request(id, method, &format!(r#"{{"_meta":{meta}{members}}}"#))
}

/// Sends a request and answers it; returns the messages that the server and the host got.
async fn round_trip(harness: &mut Harness, said: String, result: &str, era: Era) -> (String, String) {
    harness.say(said).await;
    let forwarded = harness.forwarded().await;
    match era {
        Era::Legacy => forwarded.answer(result),
        Era::Modern => forwarded.answer_modern(result),
    }
    let ticket = format!(r#""id":{},"#, forwarded.ticket().0);
    (forwarded.text().replacen(&ticket, r#""id":9,"#, 1), harness.hear_text().await)
}

fn answer(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":9,"result":{result}}}"#)
}

#[tokio::test(start_paused = true)]
async fn a_legacy_task_is_created_polled_and_finished() {
    let mut harness = legacy(&["s"]).await;
    let related = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"?"}}"#;
    for (method, params, result) in [
        (
            "tools/call",
            r#"{"name":"s__echo","task":{"ttl":6.0e4}}"#,
            r#"{"task":{"x":1.0,"taskId":"?" ,"ttl":null}}"#,
        ),
        ("tasks/get", r#"{"taskId":"?"}"#, r#"{"status":"working","taskId":"?"}"#),
        ("tasks/result", r#"{"taskId":"?"}"#, &format!(r#"{{"content":[{{"taskId":"1"}}],{related}}}"#)),
        ("tasks/cancel", r#"{"x":{},"taskId":"?"}"#, r#"{"taskId":"?","status":"cancelled"}"#),
    ] {
        let said = request(9, method, &params.replace('?', "s__j\\u006fb"));
        let (got, heard) =
            round_trip(&mut harness, said, &result.replace('?', "jo\\u0062"), Era::Legacy).await;
        let own = params.replace('?', "job").replace("s__echo", "echo");
        assert_eq!(got, request(9, method, &own));
        assert_eq!(heard, answer(&result.replace('?', "s__jo\\u0062")), "as the server wrote it");
    }
}

#[tokio::test(start_paused = true)]
async fn two_servers_may_have_the_same_task_id() {
    let mut harness = legacy(&["a", "b"]).await;
    for server in ["a", "b"] {
        let params = format!(r#"{{"name":"{server}__echo","task":{{}}}}"#);
        harness.say(request(9, "tools/call", &params)).await;
        harness.forwarded().await.answer(r#"{"task":{"taskId":"1"}}"#);
        let shown = harness.hear().await["result"]["task"]["taskId"].clone();
        harness.say(request(9, "tasks/get", &json!({ "taskId": shown }).to_string())).await;
        let forwarded = harness.forwarded().await;
        assert_eq!((forwarded.server(), forwarded.task_role()), (server, &TaskRole::About("1".into())));
        forwarded.answer("{}");
        harness.hear().await;
    }
    for strange in ["1", "c__1", "a_1", "__1"] {
        let refused = harness.ask(request(9, "tasks/get", &json!({ "taskId": strange }).to_string())).await;
        assert_eq!(refused["error"]["code"], -32602, "{strange}");
    }
    assert_eq!(harness.ask(request(9, "tasks/get", "{}")).await["error"]["code"], -32602);
    assert_eq!(
        harness.ask(request(9, "tasks/update", r#"{"taskId":"a__1"}"#)).await["error"]["code"],
        -32601
    );
}

#[tokio::test(start_paused = true)]
async fn tasks_are_listed_server_by_server() {
    let mut harness = legacy(&["a", "b", "c"]).await;
    let list = |cursor: &Value| {
        let mut params = json!({ "_meta": { "x": 1 } });
        if !cursor.is_null() {
            params["cursor"] = cursor.clone();
        }
        request(9, "tasks/list", &params.to_string())
    };
    let (mut cursor, mut seen) = (Value::Null, Vec::new());
    for (server, own, result) in [
        ("a", None, Ok(r#"{"tasks":[{"taskId":"1"},{"taskId":"2"}],"nextCursor":"p2"}"#)),
        ("a", Some("p2"), Ok(r#"{"tasks":[{"taskId":"3"}]}"#)),
        ("b", None, Err("gone")),
        ("c", None, Ok(r#"{"tasks":[{"taskId":"1"}]}"#)),
    ] {
        harness.say(list(&cursor)).await;
        let forwarded = harness.forwarded().await;
        let params = serde_json::from_str::<Value>(&forwarded.text()).unwrap()["params"].clone();
        assert_eq!((forwarded.server(), params.get("cursor").and_then(Value::as_str)), (server, own));
        assert_eq!(params["_meta"]["x"], 1);
        match result {
            Ok(result) => forwarded.answer(result),
            Err(what) => {
                let failure = Arc::new(Failure::new(what, Vec::new()));
                let server = ServerName::parse(forwarded.server()).expect("a name");
                forwarded.fail(CallError::Down { server, failure });
            }
        }
        let page = harness.hear().await["result"].clone();
        seen.extend(
            page["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap().to_owned()),
        );
        let unlisted = page["_meta"]["plugbay/unlisted"]["b"].as_str();
        assert_eq!(unlisted, result.is_err().then_some("server 'b' failed: gone"));
        cursor = page["nextCursor"].clone();
    }
    assert_eq!((seen, cursor), (["a__1", "a__2", "a__3", "c__1"].map(str::to_owned).to_vec(), Value::Null));
    assert_eq!(harness.ask(list(&json!("nonsense"))).await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn task_status_and_progress_notifications_reach_a_legacy_host() {
    let mut harness = legacy(&["s"]).await;
    let params = r#"{"name":"s__echo","task":{},"_meta":{"progressToken":"p"}}"#;
    harness.say(request(9, "tools/call", params)).await;
    let forwarded = harness.forwarded().await;
    assert_eq!(forwarded.task_role(), &TaskRole::Begin);
    forwarded.answer(r#"{"task":{"taskId":"1"}}"#);
    harness.hear().await;
    forwarded.progress();
    assert_eq!(harness.hear().await["params"]["progressToken"], "p", "the token outlives the call");
    forwarded
        .caller()
        .notified(None, &server_notification(Era::Legacy, r#"{"taskId":"1","status":"completed","n":1.0}"#));
    let told = r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"s__1","status":"completed","n":1.0}}"#;
    assert_eq!(harness.hear_text().await, told);
    harness.tell(&server_notification(Era::Modern, r#"{"taskId":"1"}"#));
    harness.hear_nothing().await;
}

fn server_notification(era: Era, params: &str) -> ServerNotification {
    let method = if era == Era::Legacy { "notifications/tasks/status" } else { "notifications/tasks" };
    let message = Bytes::from(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    let params = Head::read(&message).unwrap().payload.unwrap();
    let id = Members::find(&message, &params, "taskId").unwrap();
    ServerNotification { server: server(), message, topic: Topic::Task { era, id, params } }
}

#[tokio::test(start_paused = true)]
async fn an_elicitation_and_its_answer_carry_the_task_id_of_each_side() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], Mode::All));
    let capabilities = r#"{"elicitation":{}}"#;
    harness
        .ask(request(
            1,
            "initialize",
            &format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}"#),
        ))
        .await;
    harness.say(request(9, "tasks/result", r#"{"taskId":"s__1"}"#)).await;
    let forwarded = harness.forwarded().await;
    assert_eq!(forwarded.task_role(), &TaskRole::Await("1".into()));
    let related = |id: &str| {
        format!(r#"{{"n":1.0,"_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"{id}"}}}}}}"#)
    };
    forwarded.ask(900, "elicitation/create", &related("1")).unwrap();
    let asked = harness.hear_text().await;
    assert!(asked.contains(&related("s__1")), "{asked}");
    let result = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":900,"result":{}}}"#, related(id));
    harness.say(result("s__1")).await;
    assert_eq!(harness.replied().await, (900, result("1")));
}

#[tokio::test(start_paused = true)]
async fn a_modern_task_is_created_polled_updated_and_finished() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Modern, &["s"], Mode::All));
    for (method, members, result) in [
        ("tools/call", r#","name":"s__echo""#, r#"{"resultType":"task","taskId":"?","ttlMs":6.0e4}"#),
        ("tools/call", r#","name":"s__echo""#, r#"{"resultType":"complete","taskId":"1","content":[]}"#),
        (
            "tasks/get",
            r#","taskId":"?""#,
            r#"{"resultType":"complete","taskId":"?","result":{"taskId":"1"}}"#,
        ),
        ("tasks/update", r#","taskId":"?","inputResponses":{"a":{"n":1.0}}"#, r#"{"resultType":"complete"}"#),
        ("tasks/cancel", r#","taskId":"?""#, r#"{"resultType":"complete"}"#),
    ] {
        let said = with_tasks(9, method, &members.replace('?', "s__1"));
        let (got, heard) = round_trip(&mut harness, said, &result.replace('?', "1"), Era::Modern).await;
        assert_eq!(got, with_tasks(9, method, &members.replace('?', "1").replace("s__echo", "echo")));
        assert_eq!(heard, answer(&result.replace('?', "s__1")));
    }
    for method in ["tasks/result", "tasks/list"] {
        let refused = harness.ask(with_tasks(9, method, r#","taskId":"s__1""#)).await;
        assert_eq!(refused["error"]["code"], -32601, "{method} is a thing of the other era");
    }
}

#[tokio::test(start_paused = true)]
async fn task_notifications_reach_the_subscription_that_names_the_task() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Modern, &["s"], Mode::All));
    let wanted = r#","notifications":{"taskIds":["s__1","x__1","s__2"]}"#;
    let refused = harness.ask(modern(1, "subscriptions/listen", wanted)).await;
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], json!({ "extensions": { EXTENSION: {} } }));

    harness.say(with_tasks(2, "subscriptions/listen", wanted)).await;
    let granted = harness.hear().await["params"]["notifications"].clone();
    assert_eq!(granted, json!({ "taskIds": ["s__1", "s__2"] }), "of servers that are there");
    assert_eq!([harness.item_subscribed().await, harness.item_subscribed().await], ["\"1\"", "\"2\""]);
    harness.tell(&server_notification(Era::Modern, r#"{"taskId":"3","status":"working"}"#));
    harness
        .tell(&server_notification(Era::Modern, r#"{"taskId":"1","status":"completed","result":{"n":1.0}}"#));
    let told = harness.hear().await;
    let meta = json!({ SUBSCRIPTION_KEY: 2 });
    let expected = json!({ "_meta": meta, "taskId": "s__1", "status": "completed", "result": { "n": 1.0 } });
    assert_eq!((&told["method"], &told["params"]), (&json!("notifications/tasks"), &expected));
}

#[tokio::test(start_paused = true)]
async fn task_capabilities_follow_the_era_of_the_host() {
    let told = async |server, era| {
        let mut harness = Harness::with(snapshot_with_tasks(server, &["s"], Mode::All));
        let answer = match era {
            Era::Legacy => harness.ask(INITIALIZE).await,
            Era::Modern => harness.ask(modern(1, "server/discover", "")).await,
        };
        let capabilities = &answer["result"]["capabilities"];
        (capabilities["tasks"].clone(), capabilities["extensions"].clone())
    };
    let all = json!({ "requests": { "tools": { "call": {} } }, "list": {}, "cancel": {} });
    assert_eq!(told(Era::Legacy, Era::Legacy).await, (all, Value::Null));
    assert_eq!(told(Era::Modern, Era::Modern).await, (Value::Null, json!({ EXTENSION: {} })));
    assert_eq!(told(Era::Legacy, Era::Modern).await, (Value::Null, Value::Null));
    assert_eq!(told(Era::Modern, Era::Legacy).await, (Value::Null, Value::Null));
    let mut older = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], Mode::All));
    let opened = older.ask(request(1, "initialize", r#"{"protocolVersion":"2025-06-18"}"#)).await;
    assert_eq!(opened["result"]["capabilities"]["tasks"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_other_era_is_refused_with_the_reason() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], Mode::All));
    let refused = harness.ask(with_tasks(1, "tasks/get", r#","taskId":"s__1""#)).await;
    assert_eq!(refused["error"]["code"], -32602);
    assert!(refused["error"]["message"].as_str().unwrap().contains("speaks 2025-11-25"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_tool_called_through_execute_tool_may_answer_with_a_task() {
    let execute = r#""name":"execute_tool","arguments":{"name":"s__echo","arguments":{}}"#;
    let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], Mode::Search));
    harness.open().await;
    harness.say(request(9, "tools/call", &format!(r#"{{{execute},"task":{{"ttl":1}}}}"#))).await;
    let forwarded = harness.forwarded().await;
    assert!(forwarded.text().contains(r#""task":{"ttl":1}"#), "{}", forwarded.text());
    forwarded.answer(r#"{"task":{"taskId":"1"}}"#);
    assert_eq!(harness.hear().await["result"]["task"]["taskId"], "s__1");

    let mut harness = Harness::with(snapshot_with_tasks(Era::Modern, &["s"], Mode::Search));
    harness.say(with_tasks(9, "tools/call", &format!(",{execute}"))).await;
    harness.forwarded().await.answer_modern(r#"{"resultType":"task","taskId":"1"}"#);
    assert_eq!(harness.hear().await["result"]["taskId"], "s__1");
}
