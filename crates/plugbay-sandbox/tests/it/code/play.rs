//! Plays the gateway for a script: the answer to a call depends only on the call.

use bytes::Bytes;
use plugbay_sandbox::{Answer, Call, CallKind, CodeFailure, Event, Reading, Run, RunLimits, Sandbox, Script};
use serde_json::{Value, json};

use crate::corpus::{PLENTY, sandbox};

/// A finished run, as data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Played {
    /// Each call as `server.tool arguments`, `search arguments` and the like.
    pub(crate) calls: Vec<String>,
    pub(crate) text: String,
    /// The value as JSON text, empty for `undefined`.
    pub(crate) end: Result<String, CodeFailure>,
}

/// 2026-01-02T03:04:05.006Z
pub(crate) const NOW: i64 = 1_767_323_045_006;

pub(crate) fn script(code: &str) -> Script {
    Script { code: code.to_owned(), input: Bytes::new(), seed: 7, now: NOW }
}

pub(crate) fn plenty() -> RunLimits {
    RunLimits { compute: PLENTY, ..RunLimits::default() }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn play(script: Script, limits: RunLimits, is_dry: bool) -> Played {
    block_on(play_in(&sandbox(), script, limits, is_dry))
}

pub(crate) async fn play_in(sandbox: &Sandbox, script: Script, limits: RunLimits, is_dry: bool) -> Played {
    match sandbox.code(script, limits).await {
        Ok(run) => to_end(run, is_dry).await,
        Err(failure) => Played { calls: Vec::new(), text: String::new(), end: Err(failure) },
    }
}

async fn to_end(mut run: Run, is_dry: bool) -> Played {
    let mut played = Played { calls: Vec::new(), text: String::new(), end: Ok(String::new()) };
    let mut unanswered = Vec::new();
    loop {
        match run.next().await {
            Event::Call(call) => {
                assert_eq!(call.number as usize, played.calls.len());
                played.calls.push(told(&call));
                unanswered.push(call);
            }
            Event::Text(piece) => played.text.push_str(str::from_utf8(&piece).unwrap()),
            Event::Waiting => {
                let call = unanswered.remove(0);
                run.answer(call.number, if is_dry { Answer::Unknown } else { answer(&call) });
            }
            Event::Done(value) => {
                played.end = Ok(String::from_utf8(value.to_vec()).unwrap());
                return played;
            }
            Event::Failed(failure) => {
                played.end = Err(failure);
                return played;
            }
        }
    }
}

pub(crate) fn told(call: &Call) -> String {
    let name = match &call.kind {
        CallKind::Tool { server: Some(server), tool } => format!("{server}.{tool}"),
        CallKind::Tool { server: None, tool } => tool.clone(),
        CallKind::Search => "search".to_owned(),
        CallKind::Describe => "describe".to_owned(),
        CallKind::Help => "help".to_owned(),
        CallKind::Result => "results".to_owned(),
    };
    format!("{name} {}", str::from_utf8(&call.arguments).unwrap())
}

/// The answer of a server, which depends only on the call.
pub(crate) fn answer(call: &Call) -> Answer {
    let arguments: Value = serde_json::from_slice(&call.arguments).unwrap();
    let CallKind::Tool { tool, .. } = &call.kind else {
        return Answer::Value(bytes(&json!({ "of": told(call) })));
    };
    let text = |text: String| json!([{ "type": "text", "text": text }]);
    let (result, read) = match tool.as_str() {
        "text" => {
            (json!({ "content": text(arguments["text"].as_str().unwrap_or("").to_owned()) }), Reading::Text)
        }
        "json" => (json!({ "content": text(arguments.to_string()) }), Reading::Json),
        "each" => {
            let block = |text: &str| json!({ "type": "text", "text": text });
            (json!({ "content": [block("{\"id\":1}"), block("2")] }), Reading::JsonEach)
        }
        "embedded" => {
            let resource = json!({ "type": "resource", "resource": { "uri": "file:///a", "text": "[7]" } });
            (json!({ "content": [resource] }), Reading::Json)
        }
        "image" => {
            let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
            (json!({ "content": [image] }), Reading::Content)
        }
        "fail" => {
            let message = arguments["message"].as_str().unwrap_or("it failed").to_owned();
            let result = json!({ "content": text(message.clone()), "isError": true });
            return Answer::Error { message, code: "tool_error".to_owned(), result: Some(bytes(&result)) };
        }
        "missing" => {
            let message = "there is no such tool".to_owned();
            return Answer::Error { message, code: "unknown_tool".to_owned(), result: None };
        }
        "rows" => {
            let rows: Vec<Value> = (0..arguments["count"].as_u64().unwrap_or(3))
                .map(|id| json!({ "id": id, "open": id % 2 == 0 }))
                .collect();
            (json!({ "content": [], "structuredContent": { "rows": rows } }), Reading::Structured)
        }
        _ => (json!({ "content": [], "structuredContent": arguments }), Reading::Structured),
    };
    Answer::Result { raw: bytes(&result), read }
}

fn bytes(value: &Value) -> Bytes {
    value.to_string().into()
}
