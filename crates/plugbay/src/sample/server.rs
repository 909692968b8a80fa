//! An MCP server over lines of JSON, in either era: synchronous, one request at a time.

use std::{
    collections::HashMap,
    io::{self, BufRead, Write},
    thread,
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::{
    era::{self, Era},
    wire::write,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::tool::{Row, Tool};

/// The duration of one step of a tool that reports progress.
const STEP: Duration = Duration::from_millis(60);

/// A sample as the data file describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    /// A modern server also accepts `initialize`; a legacy one does not know `server/discover`.
    era: Era,
    instructions: String,
    #[serde(default)]
    tables: HashMap<String, Vec<Row>>,
    #[serde(default)]
    tools: Vec<Tool>,
    /// The server writes this to stderr and exits before it answers.
    crash: Option<String>,
}

/// A JSON-RPC error: its code and message.
type Fault = (i32, &'static str);

impl Server {
    /// Answers until the input ends. A crash is an error whose text is for stderr.
    pub(super) fn run(&self, name: &str, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
        crash(self.crash.as_ref())?;
        for line in input.lines() {
            for (index, message) in self.answer(name, &line?)?.iter().enumerate() {
                // All messages but the last are progress, one for each step.
                thread::sleep(if index > 0 { STEP } else { Duration::ZERO });
                output.write_all(&[message, &b"\n"[..]].concat())?;
                output.flush()?;
            }
        }
        Ok(())
    }

    /// The messages that answer a line: progress notifications, then the response.
    fn answer(&self, name: &str, line: &str) -> io::Result<Vec<Bytes>> {
        let Ok(request) = serde_json::from_str::<Value>(line) else {
            return Ok(vec![response(&Value::Null, Err((-32700, "Parse error")))]);
        };
        let Some(id) = request.get("id") else { return Ok(Vec::new()) };
        let (method, params) = (request["method"].as_str().unwrap_or_default(), &request["params"]);
        let tool = self.tools.iter().find(|tool| method == "tools/call" && params["name"] == tool.name);
        crash(tool.and_then(|tool| tool.crash.as_ref()))?;
        let result = match tool {
            Some(tool) => Ok(tool.call(&params["arguments"], &self.tables)),
            None => self.respond(name, method, params),
        };
        let is_modern = self.era == Era::Modern && params["_meta"][era::VERSION_KEY].is_string();
        let result = if is_modern { result.map(|result| completed(result, method)) } else { result };
        let mut messages = tool.map_or(Vec::new(), |tool| tool.progress(&params["_meta"]["progressToken"]));
        messages.push(response(id, result));
        Ok(messages)
    }

    fn respond(&self, name: &str, method: &str, params: &Value) -> Result<Value, Fault> {
        let info = json!({ "name": name, "version": env!("CARGO_PKG_VERSION") });
        let (capabilities, instructions) = (json!({ "tools": {} }), &self.instructions);
        match method {
            "initialize" => Ok(json!({
                "protocolVersion": era::negotiate(params["protocolVersion"].as_str()),
                "capabilities": capabilities, "serverInfo": info, "instructions": instructions,
            })),
            "server/discover" if self.era == Era::Modern => Ok(json!({
                "supportedVersions": [era::MODERN_VERSION], "_meta": { era::SERVER_INFO_KEY: info },
                "capabilities": capabilities, "instructions": instructions,
            })),
            "ping" => Ok(json!({})),
            "tools/list" => {
                Ok(json!({ "tools": self.tools.iter().map(Tool::definition).collect::<Vec<_>>() }))
            }
            "tools/call" => Err((-32602, "Unknown tool")),
            _ => Err((-32601, "Method not found")),
        }
    }
}

fn crash(words: Option<&String>) -> io::Result<()> {
    words.map_or(Ok(()), |words| Err(io::Error::other(words.clone())))
}

/// A result with the members that the modern era adds.
fn completed(mut result: Value, method: &str) -> Value {
    result["resultType"] = "complete".into();
    if method != "tools/call" {
        (result["ttlMs"], result["cacheScope"]) = (0.into(), "public".into());
    }
    result
}

fn response(id: &Value, result: Result<Value, Fault>) -> Bytes {
    let id = id.to_string();
    match result {
        Ok(result) => write::result(id.as_bytes(), result.to_string().as_bytes()),
        Err((code, message)) => {
            let error = json!({ "code": code, "message": message });
            write::error(id.as_bytes(), error.to_string().as_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::servers, *};

    /// Checks that the sample's first message for a request contains `expected`.
    fn check(server: &str, method: &str, params: &Value, expected: &str) {
        let request = json!({ "id": 1, "method": method, "params": params }).to_string();
        let answer = &servers()[server].answer(server, &request).unwrap()[0];
        assert!(str::from_utf8(answer).unwrap().contains(expected), "{server} {request}: {answer:?}");
    }

    #[test]
    fn samples_speak_both_eras() {
        let none = json!({});
        let modern = json!({ "_meta": { era::VERSION_KEY: era::MODERN_VERSION } });
        let stock =
            json!({ "name": "get_stock", "arguments": { "sku": "CUP-02" }, "_meta": modern["_meta"] });
        for (server, method, params, expected) in [
            ("calc", "initialize", &json!({ "protocolVersion": "2025-03-26" }), r#"Version":"2025-03-26""#),
            ("calc", "initialize", &none, r#"Version":"2025-11-25""#),
            ("calc", "server/discover", &modern, r#""code":-32601"#),
            ("calc", "ping", &none, r#""result":{}"#),
            ("calc", "tools/list", &none, r#""required":["expression"]"#),
            ("shop", "initialize", &none, r#"Version":"2025-11-25""#),
            (
                "shop",
                "server/discover",
                &modern,
                r#""resultType":"complete","supportedVersions":["2026-07-28"]"#,
            ),
            ("shop", "tools/list", &modern, r#""cacheScope":"public","resultType":"complete""#),
            ("shop", "tools/call", &stock, r#""resultType":"complete""#),
        ] {
            check(server, method, params, expected);
        }
        let calc = &servers()["calc"];
        assert!(calc.answer("calc", "nonsense").unwrap()[0].ends_with(br#""message":"Parse error"}}"#));
        assert!(calc.answer("calc", r#"{"method":"notifications/initialized"}"#).unwrap().is_empty());
    }

    #[test]
    fn tool_calls_are_answered_from_the_tables_or_with_an_error() {
        for (server, tool, arguments, expected) in [
            ("shop", "get_stock", json!({ "sku": "cup-02" }), r#""CUP-02: 140 in stock""#),
            ("shop", "export_orders", json!({ "format": "csv" }), r#""progress":1,"progressToken":5"#),
            ("notes", "search", json!({ "query": "GATEWAY todo" }), r#""2. Try plugbay (todo, mcp)""#),
            ("notes", "list", json!({ "tag": "home" }), r#""1. Shopping list (home)""#),
            ("notes", "list", json!({ "tag": "none" }), r#""no notes""#),
            (
                "issues",
                "list_issues",
                json!({ "limit": 1 }),
                "#7 Login fails with two-factor codes (open, dana)\"",
            ),
            ("issues", "list_milestones", Value::Null, r#""2.1: due 2026-04-01, 2 open\n2.2: "#),
            ("notes", "read", json!({ "id": 4 }), r#"there is no note 4","type":"text"}],"isError":true"#),
            ("calc", "evaluate", json!({ "expression": "1/0" }), "division by zero"),
            ("calc", "evaluate", json!({ "expression": "2" }), "a sample knows only a few answers"),
            ("calc", "evaluate", json!({}), r#"\"expression\" is missing"#),
            ("calc", "evaluate", json!({ "expression": 1 }), r#"\"expression\" must be of type string"#),
            ("calc", "evaluate", json!({ "expression": "1", "x": 1 }), r#"\"x\" is not an argument"#),
            ("calc", "evaluate", json!([]), r#"\"arguments\" must be an object"#),
            ("calc", "nothing", json!({}), r#""code":-32602"#),
        ] {
            let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": 5 } });
            check(server, "tools/call", &params, expected);
        }
    }

    #[test]
    fn a_sample_crashes_with_its_reason() {
        let call = r#"{"id":1,"method":"tools/call","params":{"name":"rebuild_index"}}"#;
        for (server, reason) in [("broken", "ECONNREFUSED"), ("shop", "out of memory")] {
            let error = servers()[server].run(server, call.as_bytes(), Vec::new()).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
