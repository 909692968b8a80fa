//! Search with the host's own model.

use std::{sync::Arc, time::Duration};

use plugbay_core::{
    capabilities::ClientCapabilities,
    extension::Extensions,
    model::{Model as _, ModelError, Prompt, Stop, ToolCall, ToolResult, ToolSpec, Turn},
};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::mpsc;

use super::{
    builtin::searchable,
    harness::{Harness, INITIALIZED, cancel, modern, request},
};
use crate::{
    dispatch,
    message::Message,
    outbox::Outbox,
    ranking::{Choice, Chosen},
    sampling::HostModel,
    scripted::{self, soon},
    session::Session,
};

const DEADLINE: Duration = Duration::from_secs(30);

async fn host(capabilities: &str) -> Harness {
    let mut harness = Harness::with(searchable());
    harness.ranker.choose(Some(Choice { model: Chosen::Host, deadline: DEADLINE }));
    let params = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}"#);
    harness.ask(request("\"init\"", "initialize", &params)).await;
    harness.say(INITIALIZED).await;
    harness
}

fn search() -> String {
    let params = json!({ "name": "search_tools", "arguments": { "query": "paint a landscape" } });
    request(7, "tools/call", &params.to_string())
}

fn first_line(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// Searches; returns the server request that the host gets.
async fn asked(harness: &mut Harness) -> Value {
    harness.say(search()).await;
    let server_request = harness.hear().await;
    assert_eq!(server_request["method"], "sampling/createMessage", "{server_request}");
    server_request
}

fn sampled(server_request: &Value, text: &str) -> String {
    let content = json!({ "type": "text", "text": text });
    let result = json!({ "role": "assistant", "content": content, "model": "m", "stopReason": "endTurn" });
    json!({ "jsonrpc": "2.0", "id": server_request["id"], "result": result }).to_string()
}

#[tokio::test(start_paused = true)]
async fn a_host_with_sampling_ranks_search_hits() {
    let mut harness = host(r#"{"sampling":{}}"#).await;
    let server_request = asked(&mut harness).await;
    let params = &server_request["params"];
    assert_eq!(params["messages"][0]["role"], "user");
    let text = params["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("paint a landscape") && text.contains("\ns__echo(count: int)"), "{text}");
    assert!(params["systemPrompt"].as_str().unwrap().contains("JSON array"), "{params}");
    assert!(params["maxTokens"].as_u64().unwrap() > 0 && params.get("tools").is_none(), "{params}");
    let answer = harness.ask(sampled(&server_request, r#"["s__echo"]"#)).await;
    assert_eq!(answer["id"], 7);
    assert!(first_line(&answer).starts_with("s__echo"), "{answer}");
    // It is not asked the same question again.
    let answer = harness.ask(search()).await;
    assert!(first_line(&answer).starts_with("s__echo"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_host_without_sampling_gets_the_local_search_hits() {
    let mut harness = host("{}").await;
    assert!(first_line(&harness.ask(search()).await).starts_with("s__draw"));
    let mut harness = Harness::with(searchable());
    harness.ranker.choose(Some(Choice { model: Chosen::Host, deadline: DEADLINE }));
    let arguments = r#","name":"search_tools","arguments":{"query":"paint a landscape"}"#;
    let answer = harness.ask(modern(7, "tools/call", arguments)).await;
    assert!(first_line(&answer).starts_with("s__draw"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn declined_sampling_leaves_the_local_search_hits_and_backs_off() {
    let mut harness = host(r#"{"sampling":{}}"#).await;
    let server_request = asked(&mut harness).await;
    let error = json!({ "code": -1, "message": "User rejected sampling request" });
    let answer = harness.ask(json!({ "jsonrpc": "2.0", "id": server_request["id"], "error": error })).await;
    assert!(first_line(&answer).starts_with("s__draw"), "{answer}");
    assert_eq!(harness.ask(search()).await["id"], 7, "no server request");
}

#[tokio::test(start_paused = true)]
async fn sampling_is_cancelled_with_its_search() {
    let mut harness = host(r#"{"sampling":{}}"#).await;
    let server_request = asked(&mut harness).await;
    harness.say(cancel(7)).await;
    let withdrawn = |told: &Value| {
        assert_eq!(told["method"], "notifications/cancelled");
        assert_eq!(told["params"]["requestId"], server_request["id"]);
    };
    withdrawn(&harness.hear().await);
    harness.say(sampled(&server_request, r#"["s__echo"]"#)).await;
    harness.hear_nothing().await;
    // The same for a model that takes too long: the local answer is used.
    let server_request = asked(&mut harness).await;
    let (one, other) = (harness.hear().await, harness.hear().await);
    let (told, answer) = if one["id"] == 7 { (other, one) } else { (one, other) };
    assert_eq!(told["params"]["requestId"], server_request["id"]);
    assert!(first_line(&answer).starts_with("s__draw"), "{answer}");
}

/// Everything that a model can be sent, as a host with tools gets it.
#[tokio::test(start_paused = true)]
async fn sampling_with_tools_carries_the_whole_conversation() {
    let (gateway, _snapshots, _servers) = scripted::gateway(searchable());
    let session = Session::new(gateway, Outbox::default());
    let client_capabilities =
        ClientCapabilities { sampling: true, sampling_tools: true, ..ClientCapabilities::NONE };
    session.opened_legacy("2025-11-25", client_capabilities, &Extensions::default());
    let sink = Arc::new(Outbox::default());
    let model = Arc::new(HostModel { session: Arc::clone(&session), sink: Arc::clone(&sink) });
    let raw = |json: &str| RawValue::from_string(json.to_owned()).unwrap();
    let arguments = raw(r#"{"n":12345678901234567890123}"#);
    let call = ToolCall { id: "1".to_owned(), name: "t".to_owned(), arguments, signature: None };
    let result =
        ToolResult { call: "1".to_owned(), name: "t".to_owned(), text: "no".to_owned(), failed: true };
    let prompt = Prompt {
        system: None,
        turns: vec![
            Turn::User("Hi".to_owned()),
            Turn::Model { text: "Well".to_owned(), calls: vec![call] },
            Turn::Results(vec![result]),
        ],
        tools: vec![ToolSpec { name: "t".to_owned(), description: "T.".to_owned(), schema: raw("{}") }],
        limit: 9,
    };
    let asking = Arc::clone(&model);
    let (said, mut heard) = mpsc::unbounded_channel();
    let hear = Box::new(move |text: &str| _ = said.send(text.to_owned()));
    let reply = tokio::spawn(async move { asking.ask(prompt, Some(hear)).await });
    let frames = soon("a server request", sink.take()).await.unwrap();
    let server_request = frames.into_iter().next().unwrap().into_bytes();
    let text = String::from_utf8(server_request.to_vec()).unwrap();
    let expected = concat!(
        r#""params":{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"Well"},{"type":"tool_use","id":"1","name":"t","input":{"n":12345678901234567890123}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"text":"no","type":"text"}],"isError":true}]}],"#,
        r#""maxTokens":9,"tools":[{"name":"t","description":"T.","inputSchema":{}}]}"#,
    );
    assert!(text.contains(expected), "{text}");
    let id = &serde_json::from_str::<Value>(&text).unwrap()["id"];
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"role":"assistant","content":[{{"type":"text","text":"So"}},{{"type":"tool_use","id":"2","name":"t","input":{{"n":1.0}}}}],"model":"m","stopReason":"toolUse"}}}}"#
    );
    dispatch::receive(&session, &sink, Message::read(answer.into()));
    let reply = soon("the reply", reply).await.unwrap().unwrap();
    assert_eq!((reply.stop, reply.calls[0].arguments.get()), (Stop::Tools, r#"{"n":1.0}"#));
    assert_eq!((reply.text.as_str(), heard.try_recv().as_deref()), ("So", Ok("So")), "in one piece");
    // A host that does not support tools is not sent any.
    session.opened_legacy(
        "2025-11-25",
        ClientCapabilities { sampling: true, ..ClientCapabilities::NONE },
        &Extensions::default(),
    );
    let tool = ToolSpec { name: "t".to_owned(), description: String::new(), schema: raw("{}") };
    let trouble = model.ask(Prompt { tools: vec![tool], ..Prompt::default() }, None).await.unwrap_err();
    assert!(matches!(&trouble, ModelError::Unaskable(why) if why.contains("sampling.tools")), "{trouble:?}");
}
