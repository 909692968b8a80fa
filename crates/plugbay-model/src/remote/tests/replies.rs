//! The successful responses of each provider.

use plugbay_core::model::{Reply, Stop, Usage};
use plugbay_testkit::Play;
use serde_json::{Value, json};

use super::{ARGUMENTS, PROVIDERS, events, streamed, whole};
use crate::Provider;

/// `Grüße`, with two of its 3 + 4 tokens cached or used for thinking.
fn text_answer(provider: Provider) -> Value {
    match provider {
        Provider::Anthropic => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": null,
            "content": [{ "type": "text", "text": "Grü" }, { "type": "text", "text": "ße" }],
            "stop_reason": "end_turn",
            "usage": { "input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 0, "output_tokens": 4 },
        }),
        Provider::OpenAi => json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{ "index": 0, "finish_reason": "stop", "logprobs": null,
                "message": { "role": "assistant", "content": "Grüße", "refusal": null } }],
            "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 },
        }),
        Provider::Gemini => json!({
            "candidates": [{ "index": 0, "finishReason": "STOP", "content": { "role": "model", "parts": [
                { "text": "Let me see.", "thought": true }, { "text": "Grü" }, { "text": "ße" },
            ] } }],
            "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 2, "thoughtsTokenCount": 2, "totalTokenCount": 7 },
            "modelVersion": "m",
        }),
    }
}

fn text_stream(provider: Provider) -> Vec<String> {
    match provider {
        Provider::Anthropic => events(&[
            json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant", "content": [],
                "stop_reason": null, "usage": { "input_tokens": 3, "output_tokens": 1 } } }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "ping" }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Grü" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "ße" } }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null }, "usage": { "output_tokens": 4 } }),
            json!({ "type": "message_stop" }),
        ]),
        Provider::OpenAi => {
            let chunk = |delta: Value, reason: Value| {
                json!({
                    "id": "chatcmpl-1", "object": "chat.completion.chunk", "usage": null,
                    "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
                })
            };
            let mut all = events(&[
                chunk(json!({ "role": "assistant", "content": "", "refusal": null }), Value::Null),
                chunk(json!({ "content": "Grü" }), Value::Null),
                chunk(json!({ "content": "ße" }), Value::Null),
                chunk(json!({}), json!("stop")),
                json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 } }),
            ]);
            all.push("data: [DONE]\n\n".to_owned());
            all
        }
        Provider::Gemini => {
            let part = |text: &str| json!([{ "index": 0, "content": { "role": "model", "parts": [{ "text": text }] } }]);
            events(&[
                json!({ "candidates": part("Grü"), "usageMetadata": { "promptTokenCount": 3 } }),
                json!({ "candidates": part("ße"), "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 4 } }),
                json!({ "candidates": [{ "index": 0, "finishReason": "STOP", "content": { "parts": [{ "text": "" }], "role": "model" } }] }),
            ])
        }
    }
}

#[tokio::test]
async fn text_comes_whole() {
    for provider in PROVIDERS {
        let reply = whole(provider, Play::json(200, &text_answer(provider))).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop), ("Grüße", Stop::End), "{provider:?}");
        assert_eq!(reply.usage, Usage { input: 3, output: 4 }, "{provider:?}");
    }
}

#[tokio::test]
async fn text_comes_piece_by_piece() {
    for provider in PROVIDERS {
        let (reply, pieces) = streamed(provider, Play::Stream(text_stream(provider))).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop), ("Grüße", Stop::End), "{provider:?}");
        assert_eq!(pieces, ["Grü", "ße"], "{provider:?}");
        assert_eq!(reply.usage, Usage { input: 3, output: 4 }, "{provider:?}");
    }
}

/// Two calls at once, the second without arguments.
fn check_calls(provider: Provider, reply: &Reply) {
    let [first, second] = &reply.calls[..] else { panic!("{provider:?}: {reply:?}") };
    assert_eq!((first.name.as_str(), first.arguments.get()), ("weather", ARGUMENTS), "{provider:?}");
    assert_eq!((second.name.as_str(), second.arguments.get()), ("now", "{}"), "{provider:?}");
    assert_eq!(reply.stop, Stop::Tools, "{provider:?}");
    let (ids, signature) = match provider {
        Provider::Gemini => (["id-1", "plugbay-call-1"], Some("signed")),
        _ => (["id-1", "id-2"], None),
    };
    assert_eq!(([first.id.as_str(), second.id.as_str()], first.signature.as_deref()), (ids, signature));
}

/// Written by hand, because a parsed number would lose its digits.
fn calls_answer(provider: Provider) -> String {
    match provider {
        Provider::Anthropic => format!(
            r#"{{"type":"message","content":[{{"type":"text","text":"Let me look."}},{{"type":"tool_use","id":"id-1","name":"weather","input":{ARGUMENTS}}},{{"type":"tool_use","id":"id-2","name":"now","input":{{}}}}],"stop_reason":"tool_use","usage":{{"input_tokens":1,"output_tokens":1}}}}"#
        ),
        Provider::OpenAi => format!(
            r#"{{"choices":[{{"index":0,"finish_reason":"tool_calls","message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"id-1","type":"function","function":{{"name":"weather","arguments":{}}}}},{{"id":"id-2","type":"function","function":{{"name":"now","arguments":""}}}}]}}}}]}}"#,
            json!(ARGUMENTS)
        ),
        Provider::Gemini => format!(
            r#"{{"candidates":[{{"finishReason":"STOP","content":{{"role":"model","parts":[{{"functionCall":{{"id":"id-1","name":"weather","args":{ARGUMENTS}}},"thoughtSignature":"signed"}},{{"functionCall":{{"name":"now"}}}}]}}}}]}}"#
        ),
    }
}

fn calls_stream(provider: Provider) -> Vec<String> {
    let (first, rest) = ARGUMENTS.split_at(12);
    match provider {
        Provider::Anthropic => {
            let begin = |index: u64, id: &str, name: &str| {
                json!({ "type": "content_block_start", "index": index,
                "content_block": { "type": "tool_use", "id": id, "name": name, "input": {} } })
            };
            let piece = |index: u64, json: &str| {
                json!({ "type": "content_block_delta", "index": index,
                "delta": { "type": "input_json_delta", "partial_json": json } })
            };
            events(&[
                begin(1, "id-1", "weather"),
                piece(1, ""),
                piece(1, first),
                piece(1, rest),
                begin(2, "id-2", "now"),
                piece(2, ""),
                json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 9 } }),
                json!({ "type": "message_stop" }),
            ])
        }
        Provider::OpenAi => {
            let chunk = |calls: Value, reason: Value| {
                json!({
                    "choices": [{ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": reason }],
                })
            };
            let begin = |index: u64, id: &str, name: &str| {
                chunk(
                    json!([{ "index": index, "id": id, "type": "function",
                "function": { "name": name, "arguments": "" } }]),
                    Value::Null,
                )
            };
            let piece = |index: u64, json: &str| {
                chunk(json!([{ "index": index, "function": { "arguments": json } }]), Value::Null)
            };
            events(&[
                begin(0, "id-1", "weather"),
                piece(0, first),
                begin(1, "id-2", "now"),
                piece(0, rest),
                chunk(Value::Null, json!("tool_calls")),
            ])
        }
        Provider::Gemini => vec![format!("data: {}\r\n\r\n", calls_answer(provider))],
    }
}

#[tokio::test]
async fn calls_come_whole_and_in_pieces() {
    for provider in PROVIDERS {
        let body = calls_answer(provider);
        let reply = whole(provider, Play::Answer { status: 200, headers: Vec::new(), body }).await.unwrap();
        check_calls(provider, &reply);
        let (reply, _) = streamed(provider, Play::Stream(calls_stream(provider))).await;
        check_calls(provider, &reply.unwrap());
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_says_so() {
    for (provider, answer) in [
        (
            Provider::Anthropic,
            json!({ "content": [{ "type": "text", "text": "a" }], "stop_reason": "max_tokens" }),
        ),
        (
            Provider::OpenAi,
            json!({ "choices": [{ "message": { "content": "a" }, "finish_reason": "length" }] }),
        ),
        (
            Provider::Gemini,
            json!({ "candidates": [{ "content": { "parts": [{ "text": "a" }] }, "finishReason": "MAX_TOKENS" }] }),
        ),
    ] {
        let reply = whole(provider, Play::json(200, &answer)).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop), ("a", Stop::Limit), "{provider:?}");
    }
}

#[tokio::test]
async fn whoever_streams_or_never_does_is_understood_whatever_was_asked() {
    for provider in PROVIDERS {
        let reply = whole(provider, Play::Stream(text_stream(provider))).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop), ("Grüße", Stop::End), "{provider:?}");
        let (reply, pieces) = streamed(provider, Play::json(200, &text_answer(provider))).await;
        assert_eq!(reply.unwrap().text, "Grüße", "{provider:?}");
        assert_eq!(pieces, ["Grüße"], "{provider:?}");
    }
}

/// Responses of services that are almost, but not fully, compatible with `OpenAI`.
#[tokio::test]
async fn the_ways_of_kindred_endpoints_are_understood() {
    let function = |name: &str| json!({ "name": name, "arguments": { "n": 1 } });
    let called =
        json!([{ "id": "a", "function": function("weather") }, { "id": "b", "function": function("now") }]);
    let content = json!([{ "type": "text", "text": "Let " }, { "type": "thinking" }, { "type": "text", "text": "me." }]);
    let choice = json!({ "message": { "content": content, "tool_calls": called }, "finish_reason": "stop" });
    let reply = whole(Provider::OpenAi, Play::json(200, &json!({ "choices": [choice] }))).await.unwrap();
    assert_eq!(reply.text, "Let me.");
    let calls = |reply: &Reply| -> Vec<String> {
        reply.calls.iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect()
    };
    assert_eq!(calls(&reply), [r#"a weather {"n":1}"#, r#"b now {"n":1}"#]);
    // All calls with one index or none; id and name in every chunk; no stop reason.
    for index in [json!(0), Value::Null] {
        let piece = |id: &str, name: &str, json: &str| {
            let function = json!({ "name": name, "arguments": json });
            let calls = json!([{ "index": index, "id": id, "function": function }]);
            json!({ "choices": [{ "delta": { "tool_calls": calls }, "finish_reason": null }] })
        };
        let mut stream = events(&[
            piece("a", "weather", "{\"n\":"),
            piece("a", "weather", "1}"),
            piece("b", "now", "{\"n\":1}"),
        ]);
        stream.push("data: [DONE]\n\n".to_owned());
        let (reply, _) = streamed(Provider::OpenAi, Play::Stream(stream)).await;
        let reply = reply.unwrap();
        assert_eq!(calls(&reply), [r#"a weather {"n":1}"#, r#"b now {"n":1}"#]);
        assert_eq!(reply.stop, Stop::Tools);
    }
}
