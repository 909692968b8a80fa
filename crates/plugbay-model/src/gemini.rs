//! Gemini's `generateContent`, and its stream, whose events have the format of the whole response.

use plugbay_core::model::{ModelError, Stop, ToolCall, ToolResult, Turn, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::{
    assembly::{Assembly, Call, OWN_ID},
    failure,
    remote::{ModelRequest, WireFormat, parse, render},
};

pub(crate) struct Gemini;

impl WireFormat for Gemini {
    fn path(&self, model: &str, streamed: bool) -> String {
        let method = if streamed { "streamGenerateContent?alt=sse" } else { "generateContent" };
        // Users write the name with or without the prefix.
        let model = model.strip_prefix("models/").unwrap_or(model);
        format!("/v1beta/models/{model}:{method}")
    }

    fn key_header(&self, secret: &str) -> (&'static str, String) {
        ("x-goog-api-key", secret.to_owned())
    }

    fn body(&self, request: &ModelRequest<'_>) -> Vec<u8> {
        let prompt = request.prompt;
        let declarations = prompt.tools.iter().map(|tool| Declaration {
            name: &tool.name,
            description: &tool.description,
            parameters_json_schema: &tool.schema,
        });
        let tools = Tools { function_declarations: declarations.collect() };
        render(&Request {
            system_instruction: prompt
                .system
                .as_deref()
                .map(|text| Content { role: None, parts: vec![Part::text(text)] }),
            contents: prompt.turns.iter().map(content).collect(),
            tools: (!prompt.tools.is_empty()).then_some(tools).into_iter().collect(),
            generation_config: GenerationConfig { max_output_tokens: prompt.limit },
        })
    }

    fn read_body(&self, body: &[u8], reply: &mut Assembly) -> Result<(), ModelError> {
        take(parse(body)?, reply)?;
        match (&reply.stop, &reply.refusal) {
            (None, None) => Err(ModelError::Malformed("it has no finished candidate".to_owned())),
            _ => Ok(()),
        }
    }

    fn read_event(&self, data: &[u8], reply: &mut Assembly) -> Result<(), ModelError> {
        take(parse(data)?, reply)
    }
}

fn take(answer: Response, reply: &mut Assembly) -> Result<(), ModelError> {
    if !answer.error.is_null() {
        return Err(failure::in_stream(&answer.error));
    }
    if let Some(reason) = answer.prompt_feedback.and_then(|feedback| feedback.block_reason) {
        reply.refuse(&format!("the prompt was blocked ({reason})"));
    }
    if let Some(counts) = answer.usage_metadata {
        let output = counts.candidates.saturating_add(counts.thoughts);
        reply.usage = Usage { input: counts.prompt, output };
    }
    let Some(candidate) = answer.candidates.into_iter().next() else { return Ok(()) };
    for part in candidate.content.parts {
        match part.function_call {
            Some(called) => reply.calls.push(Call {
                index: 0,
                id: called.id,
                name: called.name,
                arguments: called.args.map(|args| args.get().to_owned()).unwrap_or_default(),
                signature: part.thought_signature,
            }),
            None if !part.thought => reply.text.push_str(&part.text),
            None => {}
        }
    }
    match candidate.finish_reason.as_deref() {
        None => {}
        Some("STOP") => reply.stop = Some(Stop::End),
        Some("MAX_TOKENS") => reply.stop = Some(Stop::Limit),
        Some(reason @ ("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS")) => {
            return Err(ModelError::Malformed(format!("its call of a tool is not right ({reason})")));
        }
        // Safety, recitation, block lists and similar reasons.
        Some(reason) => reply.refuse(&format!("its provider stopped it ({reason})")),
    }
    Ok(())
}

fn content(turn: &Turn) -> Content<'_> {
    match turn {
        Turn::User(text) => Content { role: Some("user"), parts: vec![Part::text(text)] },
        Turn::Model { text, calls } => {
            let text = (!text.is_empty()).then(|| Part::text(text));
            let parts = text.into_iter().chain(calls.iter().map(function_call)).collect();
            Content { role: Some("model"), parts }
        }
        Turn::Results(results) => Content { role: Some("user"), parts: results.iter().map(result).collect() },
    }
}

fn function_call(call: &ToolCall) -> Part<'_> {
    let function_call = RequestCall { id: provider_id(&call.id), name: &call.name, args: &call.arguments };
    Part {
        function_call: Some(function_call),
        thought_signature: call.signature.as_deref(),
        ..Part::default()
    }
}

fn result(result: &ToolResult) -> Part<'_> {
    let (output, error) =
        if result.failed { (None, Some(result.text.as_str())) } else { (Some(result.text.as_str()), None) };
    let response = Output { output, error };
    let function_response = FunctionResponse { id: provider_id(&result.call), name: &result.name, response };
    Part { function_response: Some(function_response), ..Part::default() }
}

/// The id of a call, if Gemini gave one.
fn provider_id(id: &str) -> Option<&str> {
    (!id.starts_with(OWN_ID)).then_some(id)
}

// --- requests

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content<'a>>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools<'a>>,
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    max_output_tokens: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a RawValue,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<RequestCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
}

impl<'a> Part<'a> {
    fn text(text: &'a str) -> Self {
        Self { text: Some(text), ..Self::default() }
    }
}

#[derive(Serialize)]
struct RequestCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: &'a RawValue,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Output<'a>,
}

#[derive(Serialize)]
struct Output<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

// --- responses

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Response {
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<UsageCounts>,
    error: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct UsageCounts {
    #[serde(rename = "promptTokenCount")]
    prompt: u64,
    #[serde(rename = "candidatesTokenCount")]
    candidates: u64,
    #[serde(rename = "thoughtsTokenCount")]
    thoughts: u64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Candidate {
    content: Parts,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Parts {
    parts: Vec<ResponsePart>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ResponsePart {
    text: String,
    thought: bool,
    thought_signature: Option<String>,
    function_call: Option<FunctionCall>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FunctionCall {
    id: String,
    name: String,
    args: Option<Box<RawValue>>,
}
