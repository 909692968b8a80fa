//! Each provider in its real wire format, with a scripted loopback endpoint.

mod failures;
mod replies;
mod requests;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use plugbay_core::model::{Model as _, ModelError, Prompt, Reply, ToolCall, ToolResult, ToolSpec, Turn};
use plugbay_testkit::{Endpoint, Play};
use serde_json::{Value, value::RawValue};

use crate::{Endpoint as Spec, Key, Provider, RemoteModel};

const PROVIDERS: [Provider; 3] = [Provider::Anthropic, Provider::OpenAi, Provider::Gemini];
const SECRET: &str = "sk-hunter2";
/// Far longer than a loopback endpoint takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// Arguments with a number that survives only if it is not parsed.
const ARGUMENTS: &str = r#"{"city":"Köln","n":12345678901234567890123}"#;

fn model(provider: Provider, endpoint: &Endpoint) -> RemoteModel {
    RemoteModel::new(spec(provider, endpoint))
}

fn spec(provider: Provider, endpoint: &Endpoint) -> Spec {
    Spec {
        provider,
        model: "the-model".to_owned(),
        base_url: Some(endpoint.url() + "/"),
        key: Some(Key::new(SECRET, "MY_KEY")),
        patience: PATIENCE,
    }
}

fn question() -> Prompt {
    let turns = vec![Turn::User("What?".to_owned())];
    Prompt { system: Some("Be brief.".to_owned()), turns, limit: 99, ..Prompt::default() }
}

/// A conversation in which a tool was called.
fn conversation(id: &str) -> Prompt {
    let arguments = raw(ARGUMENTS);
    let signature = Some("signed".to_owned());
    let call = ToolCall { id: id.to_owned(), name: "weather".to_owned(), arguments, signature };
    let result = |text: &str, failed| ToolResult {
        call: id.to_owned(),
        name: "weather".to_owned(),
        text: text.to_owned(),
        failed,
    };
    let tool = ToolSpec {
        name: "weather".to_owned(),
        description: "Tells it.".to_owned(),
        schema: raw(r#"{"type":"object","maximum":12345678901234567890123}"#),
    };
    let turns = vec![
        Turn::User("Weather?".to_owned()),
        Turn::Model { text: String::new(), calls: vec![call] },
        Turn::Results(vec![result("18", false), result("storm", true)]),
    ];
    Prompt { turns, tools: vec![tool], limit: 99, ..Prompt::default() }
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or("message"))
}

fn events(data: &[Value]) -> Vec<String> {
    data.iter().map(event).collect()
}

/// The reply from the provider's whole response.
async fn whole(provider: Provider, play: Play) -> Result<Reply, ModelError> {
    model(provider, &Endpoint::start([play])).ask(question(), None).await
}

/// The reply from its stream, and the pieces of text that were reported.
async fn streamed(provider: Provider, play: Play) -> (Result<Reply, ModelError>, Vec<String>) {
    let pieces = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&pieces);
    let hear = Box::new(move |text: &str| heard.lock().unwrap().push(text.to_owned()));
    let reply = model(provider, &Endpoint::start([play])).ask(question(), Some(hear)).await;
    (reply, std::mem::take(&mut *pieces.lock().unwrap()))
}
