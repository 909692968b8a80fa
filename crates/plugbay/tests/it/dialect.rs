//! The answers and requests of models, in each provider's own wire format.

use plugbay_testkit::{Asked, Play};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    provider: Provider,
    /// Whether answers come piece by piece.
    streamed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provider {
    Anthropic,
    OpenAi,
    Gemini,
}

pub(crate) const ANTHROPIC: Dialect = Dialect { provider: Provider::Anthropic, streamed: false };
pub(crate) const OPENAI: Dialect = Dialect { provider: Provider::OpenAi, streamed: false };
pub(crate) const GEMINI: Dialect = Dialect { provider: Provider::Gemini, streamed: false };
pub(crate) const STREAMED: [Dialect; 3] = [
    Dialect { streamed: true, ..ANTHROPIC },
    Dialect { streamed: true, ..OPENAI },
    Dialect { streamed: true, ..GEMINI },
];
/// Each provider with streaming, and one without.
pub(crate) const DIALECTS: [Dialect; 6] = [ANTHROPIC, OPENAI, GEMINI, STREAMED[0], STREAMED[1], STREAMED[2]];

/// The cost of every answer, in tokens.
pub(crate) const COST: u64 = 30;

impl Dialect {
    pub(crate) fn provider(self) -> &'static str {
        match self.provider {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::Gemini => "gemini",
        }
    }

    pub(crate) fn key_variable(self) -> &'static str {
        match self.provider {
            Provider::Anthropic => "ANTHROPIC_API_KEY",
            Provider::OpenAi => "OPENAI_API_KEY",
            Provider::Gemini => "GEMINI_API_KEY",
        }
    }

    pub(crate) fn says(self, text: &str) -> Play {
        self.play(&match self.provider {
            Provider::Anthropic => anthropic(&[json!({ "type": "text", "text": text })], "end_turn"),
            Provider::OpenAi => {
                openai(&json!({ "role": "assistant", "content": text, "refusal": null }), "stop")
            }
            Provider::Gemini => gemini(&[json!({ "text": text })], "STOP"),
        })
    }

    /// An answer that calls these tools, all at once.
    pub(crate) fn calls(self, calls: &[(&str, Value)]) -> Play {
        let calls = calls.iter().enumerate();
        self.play(
            &match self.provider {
                Provider::Anthropic => {
                    let block = |(n, (name, input)): (usize, &(&str, Value))| json!({ "type": "tool_use", "id": format!("toolu_{n}"), "name": name, "input": input });
                    anthropic(&calls.map(block).collect::<Vec<_>>(), "tool_use")
                }
                Provider::OpenAi => {
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
                Provider::Gemini => {
                    let part = |(_, (name, args)): (usize, &(&str, Value))| json!({ "functionCall": { "name": name, "args": args }, "thoughtSignature": "c2ln" });
                    gemini(&calls.map(part).collect::<Vec<_>>(), "STOP")
                }
            },
        )
    }

    pub(crate) fn refuses(self) -> Play {
        self.play(&match self.provider {
            Provider::Anthropic => anthropic(&[], "refusal"),
            Provider::OpenAi => {
                openai(&json!({ "role": "assistant", "content": null, "refusal": "I must not." }), "stop")
            }
            Provider::Gemini => json!({ "promptFeedback": { "blockReason": "SAFETY" } }),
        })
    }

    /// An answer that rejects the request because of a rate limit.
    pub(crate) fn limited(self, headers: Vec<(&'static str, &'static str)>) -> Play {
        let body = match self.provider {
            Provider::Anthropic => {
                json!({ "type": "error", "error": { "type": "rate_limit_error", "message": "Slow down." } })
            }
            Provider::OpenAi => {
                json!({ "error": { "message": "Slow down.", "type": "requests", "param": null, "code": "rate_limit_exceeded" } })
            }
            Provider::Gemini => {
                json!({ "error": { "code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED" } })
            }
        };
        Play::Answer { status: 429, headers, body: body.to_string() }
    }

    /// An answer with an invalid call.
    pub(crate) fn stammers(self) -> Play {
        match self.provider {
            Provider::Anthropic => {
                self.play(&anthropic(&[json!({ "type": "tool_use", "input": 7 })], "tool_use"))
            }
            Provider::OpenAi => {
                let function = json!({ "name": "s__read", "arguments": "{oops" });
                let call = json!({ "id": "call_0", "type": "function", "function": function });
                self.play(&openai(&json!({ "content": null, "tool_calls": [call] }), "tool_calls"))
            }
            Provider::Gemini => self.play(&gemini(&[], "MALFORMED_FUNCTION_CALL")),
        }
    }

    /// An answer that breaks off after this text.
    pub(crate) fn breaks_off(self, text: &str) -> Play {
        Play::Stream(self.beginning(text))
    }

    /// An answer that reports an error after this text.
    pub(crate) fn fails_amid(self, text: &str) -> Play {
        let error = json!({ "type": "error", "error": { "type": "api_error", "message": "Out of order." } });
        let mut events = self.beginning(text);
        events.push(event(&error));
        Play::Stream(events)
    }

    /// A stream with this text, without its end.
    fn beginning(self, text: &str) -> Vec<String> {
        let Play::Stream(mut events) = Self { streamed: true, ..self }.says(text) else { unreachable!() };
        // The text and everything before it; the stop reason comes later.
        let said = events.iter().position(|event| event.contains(text)).expect("the text");
        events.truncate(said + 1);
        events
    }

    /// Whether a request asks for a stream.
    pub(crate) fn wants_stream(self, asked: &Asked) -> bool {
        match self.provider {
            Provider::Anthropic | Provider::OpenAi => asked.body["stream"] == true,
            Provider::Gemini => asked.path.ends_with(":streamGenerateContent?alt=sse"),
        }
    }

    fn play(self, answer: &Value) -> Play {
        if !self.streamed {
            return Play::json(200, answer);
        }
        Play::Stream(match self.provider {
            Provider::Anthropic => anthropic_events(answer),
            Provider::OpenAi => openai_events(answer),
            Provider::Gemini => gemini_events(answer),
        })
    }

    /// The tools that a request offers, by name.
    pub(crate) fn tools(self, body: &Value) -> Vec<String> {
        let tools = match self.provider {
            Provider::Anthropic | Provider::OpenAi => &body["tools"],
            Provider::Gemini => &body["tools"][0]["functionDeclarations"],
        };
        let name = |tool: &Value| {
            if self.provider == Provider::OpenAi {
                tool["function"]["name"].clone()
            } else {
                tool["name"].clone()
            }
        };
        tools.as_array().unwrap().iter().map(|tool| name(tool).as_str().unwrap().to_owned()).collect()
    }

    /// The results that a request contains for the last calls.
    pub(crate) fn results(self, body: &Value) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{body}")).to_owned();
        let last = |key: &str| body[key].as_array().unwrap().last().unwrap().clone();
        match self.provider {
            Provider::Anthropic => {
                let blocks = last("messages")["content"].as_array().unwrap().clone();
                blocks.iter().map(|block| text(&block["content"])).collect()
            }
            Provider::OpenAi => {
                let messages = body["messages"].as_array().unwrap();
                let told = messages.iter().rev().take_while(|message| message["role"] == "tool");
                let mut told: Vec<String> = told.map(|message| text(&message["content"])).collect();
                told.reverse();
                told
            }
            Provider::Gemini => {
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

// --- the same piece by piece

fn event(data: &Value) -> String {
    let kind = data["type"].as_str().map(|kind| format!("event: {kind}\n")).unwrap_or_default();
    format!("{kind}data: {data}\n\n")
}

fn anthropic_events(message: &Value) -> Vec<String> {
    let (usage, reason) = (&message["usage"], &message["stop_reason"]);
    let mut start = message.clone();
    (start["content"], start["stop_reason"]) = (json!([]), Value::Null);
    start["usage"]["output_tokens"] = 1.into();
    let mut all = vec![json!({ "type": "message_start", "message": start })];
    for (index, block) in message["content"].as_array().unwrap().iter().enumerate() {
        let mut empty = block.clone();
        let delta = if block["type"] == "text" {
            empty["text"] = "".into();
            json!({ "type": "text_delta", "text": block["text"] })
        } else {
            empty["input"] = json!({});
            json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() })
        };
        all.push(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        all.push(json!({ "type": "ping" }));
        all.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        all.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let usage = json!({ "output_tokens": usage["output_tokens"] });
    all.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": usage }));
    all.push(json!({ "type": "message_stop" }));
    all.iter().map(event).collect()
}

fn openai_events(completion: &Value) -> Vec<String> {
    let (choice, usage) = (&completion["choices"][0], &completion["usage"]);
    let chunk = |delta: Value, reason: &Value| {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": reason }]);
        event(&json!({ "object": "chat.completion.chunk", "choices": choices, "usage": null }))
    };
    let mut delta = choice["message"].clone();
    let calls = delta.as_object_mut().unwrap().remove("tool_calls").unwrap_or_default();
    let mut all = vec![chunk(delta, &Value::Null)];
    for (index, call) in calls.as_array().into_iter().flatten().enumerate() {
        let mut begun = call.clone();
        (begun["index"], begun["function"]["arguments"]) = (index.into(), "".into());
        let arguments = json!({ "arguments": call["function"]["arguments"] });
        all.push(chunk(json!({ "tool_calls": [begun] }), &Value::Null));
        all.push(chunk(json!({ "tool_calls": [{ "index": index, "function": arguments }] }), &Value::Null));
    }
    all.push(chunk(json!({}), &choice["finish_reason"]));
    all.push(event(&json!({ "choices": [], "usage": usage })));
    all.push("data: [DONE]\n\n".to_owned());
    all
}

/// Each part as a separate event; the one with the stop reason has no part.
fn gemini_events(answer: &Value) -> Vec<String> {
    if answer["candidates"].is_null() {
        return vec![event(answer)];
    }
    let mut end = answer.clone();
    let candidate = &mut end["candidates"][0];
    let parts = candidate["content"]["parts"].take();
    candidate["content"]["parts"] = json!([]);
    let piece = |part: &Value| {
        let content = json!({ "role": "model", "parts": [part] });
        event(&json!({ "candidates": [{ "index": 0, "content": content }] }))
    };
    parts.as_array().unwrap().iter().map(piece).chain([event(&end)]).collect()
}
