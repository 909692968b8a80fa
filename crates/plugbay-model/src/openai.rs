//! Chat completions of `OpenAI` and compatible services.

use plugbay_core::model::{ModelError, Stop, ToolCall, Turn, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    assembly::Assembly,
    failure,
    remote::{ModelRequest, WireFormat, parse, render},
};

pub(crate) struct OpenAi;

/// The event that ends a stream.
const DONE: &[u8] = b"[DONE]";

impl WireFormat for OpenAi {
    fn path(&self, _: &str, _: bool) -> String {
        "/chat/completions".to_owned()
    }

    fn key_header(&self, secret: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {secret}"))
    }

    fn body(&self, request: &ModelRequest<'_>) -> Vec<u8> {
        let prompt = request.prompt;
        let system = prompt.system.as_deref().map(|system| RequestMessage::text("system", system));
        let tools = prompt.tools.iter().map(|tool| Tool {
            kind: "function",
            function: Function { name: &tool.name, description: &tool.description, parameters: &tool.schema },
        });
        // OpenAI's newer models accept the first limit, most other services only the second.
        let (newer, older) =
            if request.original { (Some(prompt.limit), None) } else { (None, Some(prompt.limit)) };
        render(&Request {
            model: request.model,
            messages: system.into_iter().chain(prompt.turns.iter().flat_map(messages)).collect(),
            tools: tools.collect(),
            max_completion_tokens: newer,
            max_tokens: older,
            stream: request.streamed,
            stream_options: request.streamed.then_some(StreamOptions { include_usage: true }),
        })
    }

    fn read_body(&self, body: &[u8], reply: &mut Assembly) -> Result<(), ModelError> {
        let completion: Completion = parse(body)?;
        if completion.choices.as_ref().is_none_or(Vec::is_empty) && completion.error.is_null() {
            return Err(ModelError::Malformed("it has no \"choices\"".to_owned()));
        }
        take(completion, reply)
    }

    fn read_event(&self, data: &[u8], reply: &mut Assembly) -> Result<(), ModelError> {
        if data == DONE {
            reply.done = true;
            // Some services give no other stop reason.
            reply.stop.get_or_insert(Stop::End);
            return Ok(());
        }
        take(parse(data)?, reply)
    }
}

fn take(completion: Completion, reply: &mut Assembly) -> Result<(), ModelError> {
    // Some services send an error with status 200.
    if !completion.error.is_null() {
        return Err(failure::in_stream(&completion.error));
    }
    if let Some(UsageCounts { prompt_tokens, completion_tokens }) = completion.usage {
        reply.usage = Usage { input: prompt_tokens, output: completion_tokens };
    }
    // The chunk with the usage has no choice. plugbay never requests more than one.
    let Some(choice) = completion.choices.unwrap_or_default().into_iter().next() else { return Ok(()) };
    let message = choice.message.or(choice.delta).unwrap_or_default();
    match message.content {
        None => {}
        Some(Content::Text(text)) => reply.text.push_str(&text),
        Some(Content::Parts(parts)) => reply.text.extend(parts.into_iter().map(|part| part.text)),
    }
    if let Some(refusal) = message.refusal.filter(|refusal| !refusal.is_empty()) {
        reply.refuse(&refusal);
    }
    for (at, called) in (0..).zip(message.tool_calls.unwrap_or_default()) {
        let id = called.id.unwrap_or_default();
        let call = reply.call_named(called.index.unwrap_or(at), &id);
        // Some services repeat the name in every chunk.
        if call.name.is_empty() {
            call.name = called.function.name.unwrap_or_default();
        }
        let arguments = called.function.arguments.as_deref().map(text).transpose()?;
        call.arguments.push_str(&arguments.unwrap_or_default());
    }
    match choice.finish_reason.as_deref() {
        None => {}
        Some("length") => reply.stop = Some(Stop::Limit),
        Some("tool_calls" | "function_call") => reply.stop = Some(Stop::Tools),
        Some("content_filter") => reply.refuse("a content filter stopped it"),
        Some(_) => reply.stop = Some(Stop::End),
    }
    Ok(())
}

/// Arguments are JSON in a string; some services send an object.
fn text(arguments: &RawValue) -> Result<String, ModelError> {
    let json = arguments.get();
    if json.starts_with('"') { parse(json.as_bytes()) } else { Ok(json.to_owned()) }
}

fn messages(turn: &Turn) -> Vec<RequestMessage<'_>> {
    match turn {
        Turn::User(text) => vec![RequestMessage::text("user", text)],
        Turn::Model { text, calls } => {
            let content = (!text.is_empty()).then_some(text.as_str());
            let tool_calls = calls.iter().map(tool_call).collect();
            vec![RequestMessage { role: "assistant", content, tool_calls, tool_call_id: None }]
        }
        Turn::Results(results) => {
            let results = results.iter();
            // The format has no flag for failed calls, so the text must say it.
            results
                .map(|result| RequestMessage {
                    tool_call_id: Some(&result.call),
                    ..RequestMessage::text("tool", &result.text)
                })
                .collect()
        }
    }
}

fn tool_call(call: &ToolCall) -> RequestToolCall<'_> {
    let function = RequestFunction { name: &call.name, arguments: call.arguments.get() };
    RequestToolCall { id: &call.id, kind: "function", function }
}

// --- requests

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: Vec<RequestMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

#[derive(Serialize)]
struct RequestMessage<'a> {
    role: &'a str,
    /// `null` in a message that has only calls.
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<RequestToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> RequestMessage<'a> {
    fn text(role: &'a str, text: &'a str) -> Self {
        Self { role, content: Some(text), tool_calls: Vec::new(), tool_call_id: None }
    }
}

#[derive(Serialize)]
struct RequestToolCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    function: RequestFunction<'a>,
}

#[derive(Serialize)]
struct RequestFunction<'a> {
    name: &'a str,
    /// JSON in a string.
    arguments: &'a str,
}

// --- responses, whole or as a chunk

#[derive(Deserialize)]
struct Completion {
    choices: Option<Vec<Choice>>,
    usage: Option<UsageCounts>,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct Choice {
    message: Option<Message>,
    delta: Option<Message>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Message {
    content: Option<Content>,
    refusal: Option<String>,
    tool_calls: Option<Vec<ToolCallChunk>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
struct ContentPart {
    /// Empty for other kinds of parts.
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct ToolCallChunk {
    /// Present only in chunks.
    index: Option<u64>,
    id: Option<String>,
    #[serde(default)]
    function: FunctionCall,
}

#[derive(Deserialize, Default)]
struct FunctionCall {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct UsageCounts {
    prompt_tokens: u64,
    completion_tokens: u64,
}
