//! What models answer and read, in each provider's own wire format.

use plugbay_testkit::Play;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Anthropic,
    OpenAi,
    Gemini,
}

pub(super) const DIALECTS: [Dialect; 3] = [Dialect::Anthropic, Dialect::OpenAi, Dialect::Gemini];

/// Every answer costs this many tokens.
pub(super) const COST: u64 = 30;

impl Dialect {
    pub(super) fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
        }
    }

    pub(super) fn key_variable(self) -> &'static str {
        match self {
            Self::Anthropic => "ANTHROPIC_API_KEY",
            Self::OpenAi => "OPENAI_API_KEY",
            Self::Gemini => "GEMINI_API_KEY",
        }
    }

    pub(super) fn says(self, text: &str) -> Play {
        Play::json(
            200,
            &match self {
                Self::Anthropic => anthropic(&[json!({ "type": "text", "text": text })], "end_turn"),
                Self::OpenAi => {
                    openai(&json!({ "role": "assistant", "content": text, "refusal": null }), "stop")
                }
                Self::Gemini => gemini(&[json!({ "text": text })], "STOP"),
            },
        )
    }

    /// Wants these tools called, all at once.
    pub(super) fn calls(self, calls: &[(&str, Value)]) -> Play {
        let calls = calls.iter().enumerate();
        Play::json(
            200,
            &match self {
                Self::Anthropic => {
                    let block = |(n, (name, input)): (usize, &(&str, Value))| json!({ "type": "tool_use", "id": format!("toolu_{n}"), "name": name, "input": input });
                    anthropic(&calls.map(block).collect::<Vec<_>>(), "tool_use")
                }
                Self::OpenAi => {
                    let call = |(n, (name, arguments)): (usize, &(&str, Value))| {
                        let function = json!({ "name": name, "arguments": arguments.to_string() });
                        json!({ "id": format!("call_{n}"), "type": "function", "function": function })
                    };
                    let calls: Vec<Value> = calls.map(call).collect();
                    openai(
                        &json!({ "role": "assistant", "content": null, "tool_calls": calls }),
                        "tool_calls",
                    )
                }
                Self::Gemini => {
                    let part = |(_, (name, args)): (usize, &(&str, Value))| json!({ "functionCall": { "name": name, "args": args }, "thoughtSignature": "c2ln" });
                    gemini(&calls.map(part).collect::<Vec<_>>(), "STOP")
                }
            },
        )
    }

    pub(super) fn refuses(self) -> Play {
        Play::json(
            200,
            &match self {
                Self::Anthropic => anthropic(&[], "refusal"),
                Self::OpenAi => {
                    openai(&json!({ "role": "assistant", "content": null, "refusal": "I must not." }), "stop")
                }
                Self::Gemini => json!({ "promptFeedback": { "blockReason": "SAFETY" } }),
            },
        )
    }

    /// Is asked too often.
    pub(super) fn limited(self, headers: Vec<(&'static str, &'static str)>) -> Play {
        let body = match self {
            Self::Anthropic => {
                json!({ "type": "error", "error": { "type": "rate_limit_error", "message": "Slow down." } })
            }
            Self::OpenAi => {
                json!({ "error": { "message": "Slow down.", "type": "requests", "param": null, "code": "rate_limit_exceeded" } })
            }
            Self::Gemini => {
                json!({ "error": { "code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED" } })
            }
        };
        Play::Answer { status: 429, headers, body: body.to_string() }
    }

    /// A call that is none.
    pub(super) fn stammers(self) -> Play {
        match self {
            Self::Anthropic => {
                Play::json(200, &anthropic(&[json!({ "type": "tool_use", "input": 7 })], "tool_use"))
            }
            Self::OpenAi => {
                let function = json!({ "name": "s__read", "arguments": "{oops" });
                let call = json!({ "id": "call_0", "type": "function", "function": function });
                Play::json(200, &openai(&json!({ "content": null, "tool_calls": [call] }), "tool_calls"))
            }
            Self::Gemini => Play::json(200, &gemini(&[], "MALFORMED_FUNCTION_CALL")),
        }
    }

    /// The tools that a request offers, by name.
    pub(super) fn tools(self, body: &Value) -> Vec<String> {
        let tools = match self {
            Self::Anthropic | Self::OpenAi => &body["tools"],
            Self::Gemini => &body["tools"][0]["functionDeclarations"],
        };
        let name = |tool: &Value| {
            if self == Self::OpenAi { tool["function"]["name"].clone() } else { tool["name"].clone() }
        };
        tools.as_array().unwrap().iter().map(|tool| name(tool).as_str().unwrap().to_owned()).collect()
    }

    /// What a request tells of the calls that were wanted last.
    pub(super) fn results(self, body: &Value) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{body}")).to_owned();
        let last = |key: &str| body[key].as_array().unwrap().last().unwrap().clone();
        match self {
            Self::Anthropic => {
                let blocks = last("messages")["content"].as_array().unwrap().clone();
                blocks.iter().map(|block| text(&block["content"])).collect()
            }
            Self::OpenAi => {
                let messages = body["messages"].as_array().unwrap();
                let told = messages.iter().rev().take_while(|message| message["role"] == "tool");
                let mut told: Vec<String> = told.map(|message| text(&message["content"])).collect();
                told.reverse();
                told
            }
            Self::Gemini => {
                let parts = last("contents")["parts"].as_array().unwrap().clone();
                let response = |part: &Value| part["functionResponse"]["response"].clone();
                let told = |response: Value| text(response.get("output").unwrap_or(&response["error"]));
                parts.iter().map(|part| told(response(part))).collect()
            }
        }
    }
}

fn anthropic(content: &[Value], reason: &str) -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": reason, "stop_sequence": null, "usage": { "input_tokens": COST - 10, "output_tokens": 10 },
    })
}

fn openai(message: &Value, reason: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": { "prompt_tokens": COST - 10, "completion_tokens": 10, "total_tokens": COST },
    })
}

fn gemini(parts: &[Value], reason: &str) -> Value {
    json!({
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": parts }, "finishReason": reason }],
        "usageMetadata": { "promptTokenCount": COST - 10, "candidatesTokenCount": 10, "totalTokenCount": COST },
    })
}
