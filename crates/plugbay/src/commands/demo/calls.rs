//! A few calls through `plugbay serve`: successful ones, failing ones, and one that crashes its server.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{CommandError, host::Host, milliseconds};

#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Calls {
    pub calls: Vec<Call>,
    /// What the reader should notice.
    #[serde(skip)]
    pub remark: &'static str,
}

#[derive(Debug, Serialize)]
pub struct Call {
    pub tool: &'static str,
    pub arguments: Map<String, Value>,
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    pub duration: Duration,
    /// The number of progress notifications before the answer.
    pub progress: usize,
    pub answer: String,
    /// Whether the tool or plugbay answered with an error.
    pub failed: bool,
}

/// Calls of tools by the names that the host sees.
pub(super) fn by_name(host: &mut Host) -> Result<Calls, CommandError> {
    let meeting = json!({ "time": "2026-03-01T09:30", "from": "+01:00", "to": "-05:00" });
    let script = [
        ("clock__convert_time", meeting, true),
        ("issues__search_issues", json!({ "query": "two-factor" }), true),
        ("notes__search", json!({ "query": "plugbay" }), true),
        ("shop__export_orders", json!({ "format": "csv" }), true),
        ("shop__refund_order", json!({ "order": 1003 }), false),
        ("shop__get_oder", json!({ "order": 1001 }), false),
        ("shop__rebuild_index", json!({ "full": true }), false),
        ("shop__get_stock", json!({ "sku": "CUP-02" }), true),
    ];
    let calls = script.iter().map(|(tool, arguments, works)| call(host, tool, arguments, *works));
    let remark = "rebuild_index crashes shop on purpose; plugbay starts it again for the next call";
    Ok(Calls { calls: calls.collect::<Result<_, _>>()?, remark })
}

/// The same tools for a model that sees none of them: it searches, then calls what it has found.
pub(super) fn by_search(host: &mut Host) -> Result<Calls, CommandError> {
    let found = json!({ "name": "shop__track_shipment", "arguments": { "shipment": "S-88" } });
    let script = [("search_tools", json!({ "query": "where is my parcel" })), ("execute_tool", found)];
    let calls = script.iter().map(|(tool, arguments)| call(host, tool, arguments, true));
    let remark = "plugbay searches its catalog at once; only a call waits for its server";
    Ok(Calls { calls: calls.collect::<Result<_, _>>()?, remark })
}

/// Makes a call. `works`: whether a result is expected. An unexpected outcome ends the demo.
fn call(host: &mut Host, tool: &'static str, arguments: &Value, works: bool) -> Result<Call, CommandError> {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": tool } });
    let start = Instant::now();
    let (response, progress) = host.exchange("tools/call", &params)?;
    let duration = start.elapsed();
    let result = &response["result"];
    let error = response["error"]["message"].as_str();
    let failed = error.is_some() || result["isError"] == true;
    let answer = error.or(result["content"][0]["text"].as_str()).unwrap_or_default().to_owned();
    if failed == works {
        return Err(CommandError::failed(format!("{tool} answered {answer:?}")));
    }
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    Ok(Call { tool, arguments, duration, progress, answer, failed })
}
