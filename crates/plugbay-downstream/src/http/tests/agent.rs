//! Agent runs over HTTP: all server requests for a run are sent on its stream.

use std::{sync::Arc, time::Duration};

use plugbay_core::surface::{AgentAccess, Effect, Layout, Snapshot};
use serde_json::{Value, json};

use super::harness::{Harness, Host, within};
use crate::{
    agent::{Limits, Terms},
    ranking::Chosen,
    scripted::{cancel, request, snapshot, soon},
};

/// A gateway whose agent runs use the host's own model and the tool `echo`.
fn harness() -> Harness {
    let known = snapshot(&["echo"], true);
    let layout = Layout { agents: AgentAccess::Lenders, ..(*known.layout).clone() };
    let harness = Harness::with(Snapshot::new(known.catalog, Arc::new(layout), true), &[]);
    let limits = Limits { calls: 8, turns: 8, tokens: 10_000, time: Duration::from_secs(120) };
    let terms = Terms { model: Chosen::Host, limits, unasked: Effect::Reads, instructions: None };
    harness.agents.choose(Some(terms));
    harness
}

/// The next server request to the host, which must have this method.
async fn asked(host: &mut Host, method: &str) -> Value {
    let mut server_request = host.hear_or_empty().await;
    if server_request.is_null() {
        server_request = host.hear().await;
    }
    assert_eq!(server_request["method"], method, "{server_request}");
    server_request
}

/// An agent run whose server has sent the host a request in the middle of a call.
async fn in_the_middle(harness: &mut Harness, session: &str) -> (Host, crate::scripted::Forwarded) {
    let mut host = harness.connect();
    let params = r#"{"name":"natural_language","arguments":{"query":"x"}}"#;
    host.open_stream(within(session, &request(7, "tools/call", params))).await;
    let server_request = asked(&mut host, "sampling/createMessage").await;
    let content = json!([{ "type": "tool_use", "id": "1", "name": "s__echo", "input": {} }]);
    let wants = json!({ "role": "assistant", "content": content, "model": "m" });
    harness.answer(session, &server_request["id"], &wants).await;
    let server_request = asked(&mut host, "elicitation/create").await;
    harness.answer(session, &server_request["id"], &json!({ "action": "accept" })).await;
    let call = harness.servers.forwarded().await;
    call.ask(900, "roots/list", "{}").unwrap();
    assert_eq!(asked(&mut host, "roots/list").await["id"], 900);
    (host, call)
}

const ABLE: &str = r#"{"sampling":{"tools":{}},"elicitation":{},"roots":{}}"#;

#[tokio::test(start_paused = true)]
async fn an_agent_run_sends_its_elicitation_and_answer_on_one_stream() {
    let mut harness = harness();
    let session = harness.open_with(ABLE).await;
    let (mut host, call) = in_the_middle(&mut harness, &session).await;
    harness.answer(&session, &json!(900), &json!({ "roots": [] })).await;
    assert_eq!(harness.servers.replied().await.0.0, 900);
    call.answer(r#"{"content":[]}"#);
    let server_request = asked(&mut host, "sampling/createMessage").await;
    let content = json!({ "type": "text", "text": "Done." });
    let said = json!({ "role": "assistant", "content": content, "model": "m" });
    harness.answer(&session, &server_request["id"], &said).await;
    assert_eq!(host.hear_answer().await["result"]["content"][0]["text"], "Done.");
}

#[tokio::test(start_paused = true)]
async fn cancellation_of_an_agent_run_cancels_its_elicitation_and_ends_the_stream() {
    let mut harness = harness();
    let session = harness.open_with(ABLE).await;
    let (mut host, call) = in_the_middle(&mut harness, &session).await;
    assert_eq!(harness.ask(within(&session, &cancel(7))).await.status, 202);
    assert_eq!(harness.servers.cancelled().await.0, call.ticket());
    assert_eq!(asked(&mut host, "notifications/cancelled").await["params"]["requestId"], 900);
    assert_eq!(soon("the end of the stream", host.event()).await, None);
}
