//! Anthropic's Messages API.

use plugbay_core::model::{ModelError, Stop, ToolResult, Turn, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    assembly::Assembly,
    failure,
    remote::{ModelRequest, WireFormat, parse, render},
};

pub(crate) struct Anthropic;

impl WireFormat for Anthropic {
    fn path(&self, _: &str, _: bool) -> String {
        "/v1/messages".to_owned()
    }

    fn key_header(&self, secret: &str) -> (&'static str, String) {
        ("x-api-key", secret.to_owned())
    }

    fn other_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn body(&self, request: &ModelRequest<'_>) -> Vec<u8> {
        let prompt = request.prompt;
        let tools = prompt.tools.iter().map(|tool| Tool {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.schema,
        });
        render(&Request {
            model: request.model,
            max_tokens: prompt.limit,
            system: prompt.system.as_deref(),
            messages: prompt.turns.iter().map(message).collect(),
            tools: tools.collect(),
            stream: request.streamed,
        })
    }

    fn read_body(&self, body: &[u8], reply: &mut Assembly) -> Result<(), ModelError> {
        let message: Message = parse(body)?;
        for (index, block) in (0..).zip(message.content) {
            begin(reply, index, block);
        }
        count(reply, &message.usage);
        stop(reply, message.stop_reason.as_deref());
        Ok(())
    }

    fn read_event(&self, data: &[u8], reply: &mut Assembly) -> Result<(), ModelError> {
        let event: Event = parse(data)?;
        match event.kind.as_str() {
            "message_start" => count(reply, &event.message.unwrap_or_default().usage),
            "content_block_start" => begin(reply, event.index, event.content_block.unwrap_or_default()),
            "content_block_delta" => {
                let delta = event.delta.unwrap_or_default();
                reply.text.push_str(&delta.text);
                if let Some(json) = delta.partial_json {
                    reply.call(event.index).arguments.push_str(&json);
                }
            }
            "message_delta" => {
                count(reply, &event.usage);
                stop(reply, event.delta.unwrap_or_default().stop_reason.as_deref());
            }
            "message_stop" => reply.done = true,
            "error" => return Err(failure::in_stream(&event.error)),
            _ => {} // a ping, the end of a block, or an event of a newer version
        }
        Ok(())
    }
}

/// Starts a block of the response: the whole block, or its first part.
fn begin(reply: &mut Assembly, index: u64, block: Block) {
    match block.kind.as_str() {
        "text" => reply.text.push_str(&block.text),
        "tool_use" => {
            let call = reply.call(index);
            (call.id, call.name) = (block.id, block.name);
            // In a stream the block has an empty object, and later events contain the arguments.
            let input = block.input.filter(|input| input.get() != "{}");
            call.arguments = input.map(|input| input.get().to_owned()).unwrap_or_default();
        }
        _ => {}
    }
}

/// Takes the usage. Each event has the totals so far.
fn count(reply: &mut Assembly, counts: &UsageCounts) {
    let cached = counts.cached.unwrap_or(0).saturating_add(counts.from_cache.unwrap_or(0));
    let input = counts.input.map_or(reply.usage.input, |input| input.saturating_add(cached));
    reply.usage = Usage { input, output: counts.output.unwrap_or(reply.usage.output) };
}

fn stop(reply: &mut Assembly, reason: Option<&str>) {
    reply.stop = match reason {
        None => return,
        Some("tool_use") => Some(Stop::Tools),
        Some("max_tokens" | "model_context_window_exceeded") => Some(Stop::Limit),
        Some("refusal") => return reply.refuse("its provider's safety rules forbid it"),
        Some(_) => Some(Stop::End),
    };
}

fn message(turn: &Turn) -> RequestMessage<'_> {
    match turn {
        Turn::User(text) => RequestMessage { role: "user", content: vec![Part::Text { text }] },
        Turn::Model { text, calls } => {
            let text = (!text.is_empty()).then_some(Part::Text { text });
            let calls = calls.iter().map(|call| Part::ToolUse {
                id: &call.id,
                name: &call.name,
                input: &call.arguments,
            });
            RequestMessage { role: "assistant", content: text.into_iter().chain(calls).collect() }
        }
        Turn::Results(results) => {
            RequestMessage { role: "user", content: results.iter().map(result).collect() }
        }
    }
}

fn result(result: &ToolResult) -> Part<'_> {
    Part::ToolResult { tool_use_id: &result.call, content: &result.text, is_error: result.failed }
}

// --- requests

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    messages: Vec<RequestMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a RawValue,
}

#[derive(Serialize)]
struct RequestMessage<'a> {
    role: &'a str,
    content: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: &'a RawValue },
    ToolResult { tool_use_id: &'a str, content: &'a str, is_error: bool },
}

// --- responses

#[derive(Deserialize, Default)]
struct Message {
    content: Vec<Block>,
    stop_reason: Option<String>,
    #[serde(default)]
    usage: UsageCounts,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: String,
    id: String,
    name: String,
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize, Default)]
struct UsageCounts {
    #[serde(rename = "input_tokens")]
    input: Option<u64>,
    #[serde(rename = "cache_creation_input_tokens")]
    cached: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    from_cache: Option<u64>,
    #[serde(rename = "output_tokens")]
    output: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    index: u64,
    message: Option<Message>,
    content_block: Option<Block>,
    delta: Option<Delta>,
    usage: UsageCounts,
    error: Value,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Delta {
    text: String,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}
