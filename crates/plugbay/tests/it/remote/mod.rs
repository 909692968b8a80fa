//! Local servers and remote gateways behind one `plugbay serve`.

mod features;
mod offline;
mod wrapper;

use plugbay_testkit::{Asked, Endpoint, Play};
use serde_json::{Value, json};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A remote that has only `GET /tools` and `POST /tools/call`. A call answers with the name of its tool and
/// its session.
pub(crate) fn plain_api(tools: &[&str]) -> Endpoint {
    let tools: Value =
        tools.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } })).collect();
    let list = json!({ "tools": tools });
    Endpoint::answering(move |asked| match asked.path.as_str() {
        "/tools" => answer(200, &list),
        "/tools/call" if asked.body["name"] == "db_query" => {
            answer(422, &json!({ "error": { "message": "no such table" } }))
        }
        "/tools/call" => answer(200, &called(asked)),
        _ => answer(404, &json!({ "detail": "Not Found" })),
    })
}

fn answer(status: u16, body: &Value) -> Play {
    Play::Answer { status, headers: vec![JSON], body: body.to_string() }
}

fn called(asked: &Asked) -> Value {
    let text = format!("{} in {}", asked.body["name"], asked.header("x-session-id").unwrap_or("no session"));
    json!({ "content": [{ "type": "text", "text": text }] })
}
