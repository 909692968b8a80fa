//! Errands over HTTP: everything that the host is asked for one travels on its stream.

use std::{sync::Arc, time::Duration};

use plugbay_core::surface::{Effect, Errands, Layout, Snapshot};
use serde_json::{Value, json};

use super::stage::{Host, Stage, within};
use crate::{
    errand::{Limits, Terms},
    ranking::Chosen,
    scripted::{cancel, request, snapshot, soon},
};

/// The host's own model runs errands with the tool `echo`.
fn stage() -> Stage {
    let known = snapshot(&["echo"], true);
    let layout = Layout { errands: Errands::Lenders, ..(*known.layout).clone() };
    let stage = Stage::with(Snapshot::new(known.catalog, Arc::new(layout), true), &[]);
    let limits = Limits { calls: 8, turns: 8, tokens: 10_000, time: Duration::from_secs(120) };
    let terms = Terms { model: Chosen::Host, limits, unasked: Effect::Reads, instructions: None };
    stage.errands.choose(Some(terms));
    stage
}

/// What the host is asked next, which must be this.
async fn asked(host: &mut Host, method: &str) -> Value {
    let mut question = host.hear_or_empty().await;
    if question.is_null() {
        question = host.hear().await;
    }
    assert_eq!(question["method"], method, "{question}");
    question
}

/// The errand of a host that has been asked by its server in the middle of a call.
async fn in_the_middle(stage: &mut Stage, session: &str) -> (Host, crate::scripted::Forwarded) {
    let mut host = stage.connect();
    let params = r#"{"name":"natural_language","arguments":{"query":"x"}}"#;
    host.open_stream(within(session, &request(7, "tools/call", params))).await;
    let question = asked(&mut host, "sampling/createMessage").await;
    let content = json!([{ "type": "tool_use", "id": "1", "name": "s__echo", "input": {} }]);
    let wants = json!({ "role": "assistant", "content": content, "model": "m" });
    stage.answer(session, &question["id"], &wants).await;
    let question = asked(&mut host, "elicitation/create").await;
    stage.answer(session, &question["id"], &json!({ "action": "accept" })).await;
    let call = stage.servers.forwarded().await;
    call.ask(900, "roots/list", "{}").unwrap();
    assert_eq!(asked(&mut host, "roots/list").await["id"], 900);
    (host, call)
}

const ABLE: &str = r#"{"sampling":{"tools":{}},"elicitation":{},"roots":{}}"#;

#[tokio::test(start_paused = true)]
async fn questions_and_the_answer_travel_on_the_stream_of_the_errand() {
    let mut stage = stage();
    let session = stage.open_with(ABLE).await;
    let (mut host, call) = in_the_middle(&mut stage, &session).await;
    stage.answer(&session, &json!(900), &json!({ "roots": [] })).await;
    assert_eq!(stage.servers.replied().await.0.0, 900);
    call.answer(r#"{"content":[]}"#);
    let question = asked(&mut host, "sampling/createMessage").await;
    let content = json!({ "type": "text", "text": "Done." });
    let said = json!({ "role": "assistant", "content": content, "model": "m" });
    stage.answer(&session, &question["id"], &said).await;
    assert_eq!(host.hear_answer().await["result"]["content"][0]["text"], "Done.");
}

#[tokio::test(start_paused = true)]
async fn to_take_it_back_takes_back_what_was_asked_and_ends_the_stream() {
    let mut stage = stage();
    let session = stage.open_with(ABLE).await;
    let (mut host, call) = in_the_middle(&mut stage, &session).await;
    assert_eq!(stage.ask(within(&session, &cancel(7))).await.status, 202);
    assert_eq!(stage.servers.cancelled().await.0, call.ticket());
    assert_eq!(asked(&mut host, "notifications/cancelled").await["params"]["requestId"], 900);
    assert_eq!(soon("the end of the stream", host.event()).await, None);
}
