//! Chat completions, as `OpenAI` has them and all who speak like it.

use plugbay_core::model::{Stop, ToolCall, Trouble, Turn, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    assembly::Assembly,
    failure,
    remote::{Asked, Dialect, parse, render},
};

pub(crate) struct OpenAi;

/// What ends a stream.
const DONE: &[u8] = b"[DONE]";

impl Dialect for OpenAi {
    fn path(&self, _: &str, _: bool) -> String {
        "/chat/completions".to_owned()
    }

    fn key_header(&self, secret: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {secret}"))
    }

    fn body(&self, asked: &Asked<'_>) -> Vec<u8> {
        let prompt = asked.prompt;
        let system = prompt.system.as_deref().map(|system| Sent::said("system", system));
        let tools = prompt.tools.iter().map(|tool| Tool {
            kind: "function",
            function: Function { name: &tool.name, description: &tool.description, parameters: &tool.schema },
        });
        // OpenAI's newer models know the one, and most others only the other.
        let (newer, older) =
            if asked.original { (Some(prompt.limit), None) } else { (None, Some(prompt.limit)) };
        render(&Request {
            model: asked.model,
            messages: system.into_iter().chain(prompt.turns.iter().flat_map(messages)).collect(),
            tools: tools.collect(),
            max_completion_tokens: newer,
            max_tokens: older,
            stream: asked.streamed,
            stream_options: asked.streamed.then_some(StreamOptions { include_usage: true }),
        })
    }

    fn whole(&self, body: &[u8], reply: &mut Assembly) -> Result<(), Trouble> {
        let completion: Completion = parse(body)?;
        if completion.choices.as_ref().is_none_or(Vec::is_empty) && completion.error.is_null() {
            return Err(Trouble::Malformed("it has no \"choices\"".to_owned()));
        }
        take(completion, reply)
    }

    fn piece(&self, data: &[u8], reply: &mut Assembly) -> Result<(), Trouble> {
        if data == DONE {
            reply.done = true;
            // Not everybody says more than that.
            reply.stop.get_or_insert(Stop::End);
            return Ok(());
        }
        take(parse(data)?, reply)
    }
}

fn take(completion: Completion, reply: &mut Assembly) -> Result<(), Trouble> {
    // Some answer with status 200 all the same.
    if !completion.error.is_null() {
        return Err(failure::amid(&completion.error));
    }
    if let Some(Counted { prompt_tokens, completion_tokens }) = completion.usage {
        reply.usage = Usage { input: prompt_tokens, output: completion_tokens };
    }
    // The chunk that tells the usage has no choice; we never want more than one.
    let Some(choice) = completion.choices.unwrap_or_default().into_iter().next() else { return Ok(()) };
    let said = choice.message.or(choice.delta).unwrap_or_default();
    match said.content {
        None => {}
        Some(Words::Text(text)) => reply.text.push_str(&text),
        Some(Words::Parts(parts)) => reply.text.extend(parts.into_iter().map(|part| part.text)),
    }
    if let Some(refusal) = said.refusal.filter(|refusal| !refusal.is_empty()) {
        reply.refuse(&refusal);
    }
    for (at, called) in (0..).zip(said.tool_calls.unwrap_or_default()) {
        let id = called.id.unwrap_or_default();
        let call = reply.call_named(called.index.unwrap_or(at), &id);
        // Some repeat in every chunk what it is about.
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

/// Arguments are JSON in a string; some leave the string out.
fn text(arguments: &RawValue) -> Result<String, Trouble> {
    let json = arguments.get();
    if json.starts_with('"') { parse(json.as_bytes()) } else { Ok(json.to_owned()) }
}

fn messages(turn: &Turn) -> Vec<Sent<'_>> {
    match turn {
        Turn::User(text) => vec![Sent::said("user", text)],
        Turn::Model { text, calls } => {
            let content = (!text.is_empty()).then_some(text.as_str());
            let tool_calls = calls.iter().map(called).collect();
            vec![Sent { role: "assistant", content, tool_calls, tool_call_id: None }]
        }
        Turn::Results(results) => {
            let results = results.iter();
            // There is no mark for one that failed: its text must say so.
            results
                .map(|result| Sent { tool_call_id: Some(&result.call), ..Sent::said("tool", &result.text) })
                .collect()
        }
    }
}

fn called(call: &ToolCall) -> SentCall<'_> {
    let function = SentFunction { name: &call.name, arguments: call.arguments.get() };
    SentCall { id: &call.id, kind: "function", function }
}

// --- what is sent

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: Vec<Sent<'a>>,
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
struct Sent<'a> {
    role: &'a str,
    /// `null` beside nothing but calls.
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<SentCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> Sent<'a> {
    fn said(role: &'a str, text: &'a str) -> Self {
        Self { role, content: Some(text), tool_calls: Vec::new(), tool_call_id: None }
    }
}

#[derive(Serialize)]
struct SentCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    function: SentFunction<'a>,
}

#[derive(Serialize)]
struct SentFunction<'a> {
    name: &'a str,
    /// JSON in a string.
    arguments: &'a str,
}

// --- what comes back, whole or as a chunk

#[derive(Deserialize)]
struct Completion {
    choices: Option<Vec<Choice>>,
    usage: Option<Counted>,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct Choice {
    message: Option<Said>,
    delta: Option<Said>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Said {
    content: Option<Words>,
    refusal: Option<String>,
    tool_calls: Option<Vec<Called>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Text(String),
    Parts(Vec<SaidPart>),
}

#[derive(Deserialize)]
struct SaidPart {
    /// Nothing else can be meant for us.
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct Called {
    /// Only in chunks.
    index: Option<u64>,
    id: Option<String>,
    #[serde(default)]
    function: CalledFunction,
}

#[derive(Deserialize, Default)]
struct CalledFunction {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counted {
    prompt_tokens: u64,
    completion_tokens: u64,
}
