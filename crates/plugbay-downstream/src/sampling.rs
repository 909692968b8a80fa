//! The model of a host, asked by `sampling/createMessage` while a request of the host is in flight.
//!
//! For a search only a legacy host is asked. A modern host would have to send its request again. It does not
//! when its user declines, and then the search would fail just for a better order.

use std::sync::Arc;

use plugbay_core::{
    exchange::ServerRequestError,
    model::{Model, ModelError, Prompt, Reply, ReplyFuture, Stop, TextListener, ToolCall, Turn},
};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};

use crate::{
    outbox::Outbox,
    session::{HostResult, Session},
};

pub(crate) const METHOD: &str = "sampling/createMessage";

/// The model of a legacy host, for as long as one request of the host is in flight.
#[derive(Debug)]
pub(crate) struct HostModel {
    pub(crate) session: Arc<Session>,
    /// Takes the answer to that request.
    pub(crate) sink: Arc<Outbox>,
}

impl Model for HostModel {
    /// Asks the host; it answers in one piece.
    fn ask(&self, prompt: Prompt, heard: Option<TextListener>) -> ReplyFuture<'_> {
        Box::pin(async move {
            let reply = self.sample(&prompt).await?;
            if let Some(mut heard) = heard {
                heard(&reply.text);
            }
            Ok(reply)
        })
    }
}

impl HostModel {
    async fn sample(&self, prompt: &Prompt) -> Result<Reply, ModelError> {
        read(self.session.request_host(&self.sink, METHOD, &params(prompt)?).await)
    }
}

/// The params of `sampling/createMessage`, raw JSON.
pub(crate) fn params(prompt: &Prompt) -> Result<String, ModelError> {
    serde_json::to_string(&Params::of(prompt)).map_err(|error| ModelError::Unaskable(error.to_string()))
}

pub(crate) fn read(answer: Result<HostResult, ServerRequestError>) -> Result<Reply, ModelError> {
    let answer = answer.map_err(|why| ModelError::Unaskable(why.to_string()))?;
    let payload = answer.map_err(ModelError::Unaskable)?;
    let malformed = |error: serde_json::Error| ModelError::Malformed(error.to_string());
    let sampled: Sampled = serde_json::from_slice(&payload).map_err(malformed)?;
    // One block, or a list of them.
    let blocks: Vec<Block> = match sampled.content.get().as_bytes().first() {
        Some(b'[') => serde_json::from_str(sampled.content.get()),
        _ => serde_json::from_str(sampled.content.get()).map(|block| vec![block]),
    }
    .map_err(malformed)?;
    let mut reply = Reply::default();
    for block in blocks {
        match (block.kind.as_str(), block.input) {
            ("text", _) => reply.text.push_str(&block.text),
            ("tool_use", Some(arguments)) => {
                reply.calls.push(ToolCall { id: block.id, name: block.name, arguments, signature: None });
            }
            _ => {}
        }
    }
    reply.stop = match sampled.stop_reason.as_deref() {
        Some("maxTokens") => Stop::Limit,
        _ if !reply.calls.is_empty() => Stop::Tools,
        _ => Stop::End,
    };
    Ok(reply)
}

// --- requests to the host

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<&'a str>,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: Content<'a>,
}

/// Only hosts with `sampling.tools` accept a list.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    One(Part<'a>),
    Many(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Part<'a> {
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: &'a RawValue },
    ToolResult { tool_use_id: &'a str, content: [serde_json::Value; 1], is_error: bool },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
}

impl<'a> Params<'a> {
    fn of(prompt: &'a Prompt) -> Self {
        let tools = prompt.tools.iter().map(|tool| Tool {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.schema,
        });
        Self {
            messages: prompt.turns.iter().map(message).collect(),
            system_prompt: prompt.system.as_deref(),
            max_tokens: prompt.limit,
            tools: tools.collect(),
        }
    }
}

fn message(turn: &Turn) -> Message<'_> {
    match turn {
        Turn::User(text) => Message { role: "user", content: Content::One(Part::Text { text }) },
        Turn::Model { text, calls } => {
            let said = (!text.is_empty()).then_some(Part::Text { text });
            let calls = calls.iter().map(|call| Part::ToolUse {
                id: &call.id,
                name: &call.name,
                input: &call.arguments,
            });
            Message { role: "assistant", content: Content::Many(said.into_iter().chain(calls).collect()) }
        }
        Turn::Results(results) => {
            let results = results.iter().map(|result| Part::ToolResult {
                tool_use_id: &result.call,
                content: [json!({ "type": "text", "text": result.text })],
                is_error: result.failed,
            });
            Message { role: "user", content: Content::Many(results.collect()) }
        }
    }
}

// --- the host's answer

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sampled {
    content: Box<RawValue>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    input: Option<Box<RawValue>>,
}
