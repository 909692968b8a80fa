//! A handful of calls through `plugbay serve`, good ones and bad ones.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{CommandError, host::Host};

#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Calls {
    pub calls: Vec<Call>,
}

#[derive(Debug, Serialize)]
pub struct Call {
    pub tool: &'static str,
    pub arguments: Map<String, Value>,
    pub answer: String,
    /// The tool, or plugbay itself, refused.
    pub failed: bool,
}

pub(super) fn make(host: &mut Host) -> Result<Calls, CommandError> {
    let script = [
        (
            "clock__convert_time",
            json!({ "time": "2026-03-01T09:30", "from": "+01:00", "to": "-05:00" }),
            false,
        ),
        ("notes__add", json!({ "title": "Try plugbay", "tags": ["todo"] }), false),
        ("notes__search", json!({ "query": "plugbay" }), false),
        ("calc__evaluate", json!({ "expression": "(17 + 4) * 2" }), false),
        ("calc__evaluate", json!({ "expression": "1 / 0" }), true),
        ("calc__evalute", json!({ "expression": "1" }), true),
    ];
    let mut calls = Vec::new();
    for (tool, arguments, should_fail) in script {
        let answer = host.exchange("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        let result = &answer["result"];
        let refusal = answer["error"]["message"].as_str();
        let failed = refusal.is_some() || result["isError"] == true;
        let text = refusal.or(result["content"][0]["text"].as_str()).unwrap_or_default();
        if failed != should_fail {
            return Err(CommandError::failed(format!("{tool} answered {text:?}")));
        }
        let Value::Object(arguments) = arguments else { continue };
        calls.push(Call { tool, arguments, answer: text.to_owned(), failed });
    }
    Ok(Calls { calls })
}
