//! Tasks where many hosts share the servers: an id is good for its caller alone.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac, digest::KeyInit};
use plugbay_core::{
    era::{CAPABILITIES_KEY, Era, MODERN_VERSION, VERSION_KEY},
    exposure::Mode,
    task::EXTENSION,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::harness::{Harness, Reply, fitting, post, within};
use crate::scripted::{INITIALIZE, INITIALIZED, request, snapshot_with_tasks};

fn bearing(token: &str, request: &str) -> String {
    request.replacen("\r\n", &format!("\r\nauthorization: Bearer {token}\r\n"), 1)
}

/// A task id of `s`, forged by somebody who knows one token and how ids are made.
fn forged(token: &str, id: &str) -> String {
    let owner = Sha256::digest(token);
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&owner).unwrap();
    mac.update(format!("task of s__{id}").as_bytes());
    format!("s__{}_{id}", URL_SAFE_NO_PAD.encode(&mac.finalize().into_bytes()[..12]))
}

/// A modern request of a host that accepts tasks; `name` is the subject in its headers.
fn modern(method: &str, name: &str, members: &Value) -> String {
    let capabilities = json!({ "extensions": { EXTENSION: {} } });
    let mut params = members.clone();
    params["_meta"] = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: capabilities });
    post(&fitting(method, name), &request(1, method, &params.to_string()))
}

/// Opens one more connection of the session that the caller names.
async fn legacy_session(harness: &Harness, token: &str, name: &str) -> (String, Value) {
    let opened = harness.ask(bearing(token, &post(&[("x-session-id", name)], INITIALIZE))).await;
    let id = opened.headers["mcp-session-id"].clone();
    assert_eq!(harness.ask(bearing(token, &within(&id, INITIALIZED))).await.status, 202);
    (id, opened.json()["result"]["capabilities"]["tasks"].clone())
}

#[tokio::test(start_paused = true)]
async fn a_legacy_task_belongs_to_its_caller_and_session() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], Mode::All), &["one", "two"]);
    let (mine, declared) = legacy_session(&harness, "one", "work").await;
    let (theirs, _) = legacy_session(&harness, "two", "work").await;
    assert_eq!(declared, json!({ "requests": { "tools": { "call": {} } }, "cancel": {} }), "and no list");

    let mut host = harness.connect();
    let begin = request(1, "tools/call", r#"{"name":"s__echo","task":{}}"#);
    host.say(bearing("one", &within(&mine, &begin))).await;
    harness.servers.forwarded().await.answer(r#"{"task":{"taskId":"1"}}"#);
    let id = host.reply().await.json()["result"]["task"]["taskId"].clone();
    assert!(id.as_str().unwrap().starts_with("s__") && id != "s__1", "{id}");

    let get = |id: &Value| request(2, "tasks/get", &json!({ "taskId": id }).to_string());
    for guess in [&id, &json!("s__1"), &json!("1"), &json!(forged("two", "1"))] {
        let refused = harness.ask(bearing("two", &within(&theirs, &get(guess)))).await;
        assert_eq!(refused.code(), -32602, "{guess}");
    }
    let (again, _) = legacy_session(&harness, "one", "work").await;
    host.say(bearing("one", &within(&again, &get(&id)))).await;
    let forwarded = harness.servers.forwarded().await;
    assert!(forwarded.text().contains(r#""taskId":"1""#), "{}", forwarded.text());
    forwarded.answer(r#"{"taskId":"1"}"#);
    assert_eq!(
        host.reply().await.json()["result"]["taskId"],
        id,
        "over another connection of the same session"
    );
    let (other, _) = legacy_session(&harness, "one", "play").await;
    let refused = harness.ask(bearing("one", &within(&other, &get(&id)))).await;
    assert_eq!(refused.code(), -32602, "in another session of the same caller");

    let list = request(3, "tasks/list", "{}");
    assert_eq!(harness.ask(bearing("one", &within(&mine, &list))).await.code(), -32601);
}

#[tokio::test(start_paused = true)]
async fn a_modern_task_belongs_to_its_caller() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Modern, &["s"], Mode::All), &["one", "two"]);
    let mut host = harness.connect();
    host.say(bearing("one", &modern("tools/call", "s__echo", &json!({ "name": "s__echo" })))).await;
    harness.servers.forwarded().await.answer_modern(r#"{"resultType":"task","taskId":"1"}"#);
    let id = host.reply().await.json()["result"]["taskId"].as_str().unwrap().to_owned();

    let get = |name: &str| modern("tasks/get", name, &json!({ "taskId": id }));
    let code = |reply: Reply| (reply.status, reply.code());
    assert_eq!(code(harness.ask(bearing("two", &get(&id))).await).1, -32602);
    let other = harness.ask(bearing("one", &get("another"))).await;
    assert_eq!(code(other), (400, json!(-32020)), "the headers name the task too");
    host.say(bearing("one", &get(&id))).await;
    harness
        .servers
        .forwarded()
        .await
        .answer_modern(r#"{"resultType":"complete","taskId":"1","status":"working"}"#);
    assert_eq!(host.reply().await.json()["result"]["taskId"], id);
}
