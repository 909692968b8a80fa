//! The part of MCP that a server of tools needs, on lines of JSON: synchronous, one request at a time.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use super::arguments::Arguments;

/// The revisions that open with `initialize`; the newest is offered to a client that asks for another.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// What a server says of itself.
pub(super) struct About {
    pub(super) name: &'static str,
    pub(super) instructions: &'static str,
}

/// What a tool says of itself, and what it does to the server's state `S`.
pub(super) struct Tool<S> {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) read_only: bool,
    /// The properties of its `inputSchema`.
    pub(super) properties: Value,
    pub(super) required: &'static [&'static str],
    pub(super) run: fn(&mut S, &Arguments<'_>) -> Outcome,
}

/// A refusal is for the model to read: it says what would have been right.
pub(super) type Outcome = Result<Reply, String>;

pub(super) struct Reply {
    text: String,
    structured: Option<Value>,
}

impl Reply {
    pub(super) fn structured(text: impl Into<String>, value: Value) -> Self {
        Self { text: text.into(), structured: Some(value) }
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self { text, structured: None }
    }
}

pub(super) struct Server<S> {
    about: About,
    tools: Vec<Tool<S>>,
    state: S,
}

impl<S> Server<S> {
    pub(super) fn new(about: About, tools: Vec<Tool<S>>, state: S) -> Self {
        Self { about, tools, state }
    }

    pub(super) fn run(mut self, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
        for line in input.lines() {
            if let Some(answer) = self.answer(&line?) {
                writeln!(output, "{answer}")?;
                output.flush()?;
            }
        }
        Ok(())
    }

    /// The response to one message; notifications have none.
    fn answer(&mut self, line: &str) -> Option<Value> {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return Some(error(&Value::Null, -32700, "not valid JSON"));
        };
        let id = message.get("id")?;
        let params = &message["params"];
        let result = match message["method"].as_str() {
            Some("initialize") => self.initialize(params),
            Some("ping") => json!({}),
            Some("tools/list") => {
                json!({ "tools": self.tools.iter().map(Tool::definition).collect::<Vec<_>>() })
            }
            Some("tools/call") => match self.call(params) {
                Ok(result) => result,
                Err(message) => return Some(error(id, -32602, &message)),
            },
            _ => return Some(error(id, -32601, "Method not found")),
        };
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    fn initialize(&self, params: &Value) -> Value {
        let wanted = params["protocolVersion"].as_str();
        let version = VERSIONS.into_iter().find(|version| Some(*version) == wanted).unwrap_or(VERSIONS[0]);
        json!({
            "protocolVersion": version,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": self.about.name, "version": env!("CARGO_PKG_VERSION") },
            "instructions": self.about.instructions,
        })
    }

    fn call(&mut self, params: &Value) -> Result<Value, String> {
        let name = params["name"].as_str().unwrap_or_default();
        let tool = self.tools.iter().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| format!("Unknown tool: {name}"))?;
        let outcome = Arguments::check(&params["arguments"], &tool.properties, tool.required)
            .and_then(|arguments| (tool.run)(&mut self.state, &arguments));
        let content = |text: &str| json!([{ "type": "text", "text": text }]);
        Ok(match outcome {
            Ok(Reply { text, structured: None }) => json!({ "content": content(&text) }),
            Ok(Reply { text, structured }) => {
                json!({ "content": content(&text), "structuredContent": structured })
            }
            Err(refusal) => json!({ "content": content(&refusal), "isError": true }),
        })
    }
}

impl<S> Tool<S> {
    fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": self.properties,
                "required": self.required,
                "additionalProperties": false,
            },
            "annotations": { "readOnlyHint": self.read_only },
        })
    }
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// Calls a tool the way a client does: its text, or its refusal.
#[cfg(test)]
pub(super) fn try_tool<S>(
    tools: Vec<Tool<S>>,
    state: S,
    calls: &[(&str, Value)],
) -> Vec<Result<String, String>> {
    let mut server = Server::new(About { name: "test", instructions: "" }, tools, state);
    let mut outcomes = Vec::new();
    for (name, arguments) in calls {
        let request = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": name, "arguments": arguments },
        });
        let answer = server.answer(&request.to_string()).unwrap();
        let text = answer["result"]["content"][0]["text"].as_str();
        let text = text.map_or_else(|| answer.to_string(), str::to_owned);
        outcomes.push(if answer["result"]["isError"] == true { Err(text) } else { Ok(text) });
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::{super::calc, *};

    fn exchange(lines: &[&str]) -> Vec<Value> {
        let mut output = Vec::new();
        let server = Server::new(calc::ABOUT, calc::tools(), ());
        server.run(lines.join("\n").as_bytes(), &mut output).unwrap();
        String::from_utf8(output).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn speaks_the_legacy_protocol_and_says_so() {
        let answers = exchange(&[
            r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":"two","method":"initialize","params":{"protocolVersion":"2025-03-26"}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#,
            "nonsense",
        ]);
        assert_eq!(answers.len(), 4);
        assert_eq!(answers[0]["error"]["code"], -32601);
        assert_eq!(answers[1]["id"], "two");
        assert_eq!(answers[1]["result"]["protocolVersion"], "2025-03-26");
        assert_eq!(answers[2]["result"], json!({}));
        assert_eq!(answers[3]["error"]["code"], -32700);
    }

    #[test]
    fn wrong_arguments_are_an_error_that_a_model_can_read() {
        let answers = exchange(&[
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"evaluate","arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"evaluate","arguments":{"x":1}}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nothing"}}"#,
        ]);
        let text = |answer: &Value| answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(answers[..2].iter().all(|answer| answer["result"]["isError"] == true));
        assert_eq!(text(&answers[0]), "\"expression\" is missing");
        assert_eq!(text(&answers[1]), "\"x\" is not an argument; there is \"expression\"");
        assert_eq!(answers[2]["error"]["code"], -32602);
    }

    #[test]
    fn every_tool_is_described() {
        fn check<S>(tools: &[Tool<S>]) {
            assert!((5..=8).contains(&tools.len()));
            for tool in tools {
                assert!(tool.description.ends_with('.') && tool.description.len() > 60, "{}", tool.name);
                let properties = tool.properties.as_object().unwrap();
                assert!(tool.required.iter().all(|key| properties.contains_key(*key)), "{}", tool.name);
                let described =
                    |schema: &Value| schema["description"].is_string() && schema["type"].is_string();
                assert!(properties.values().all(described), "{}", tool.name);
            }
        }
        check(&calc::tools());
        check(&super::super::clock::tools());
        check(&super::super::notes::tools());
    }
}
