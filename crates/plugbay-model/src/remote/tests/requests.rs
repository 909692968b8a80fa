//! The requests to each provider.

use plugbay_core::model::Model as _;
use plugbay_testkit::{Asked, Endpoint, Play};
use serde_json::json;

use super::{ARGUMENTS, PROVIDERS, SECRET, conversation, model, question};
use crate::Provider;

async fn sent(provider: Provider, prompt: plugbay_core::model::Prompt, streamed: bool) -> Asked {
    let endpoint = Endpoint::start([Play::json(500, &json!({}))]);
    let heard = streamed.then(|| Box::new(|_: &str| {}) as plugbay_core::model::TextListener);
    model(provider, &endpoint).ask(prompt, heard).await.unwrap_err();
    endpoint.asked()
}

#[tokio::test]
async fn the_key_is_in_its_header_and_nowhere_else() {
    for (provider, header, value) in [
        (Provider::Anthropic, "x-api-key", SECRET.to_owned()),
        (Provider::OpenAi, "authorization", format!("Bearer {SECRET}")),
        (Provider::Gemini, "x-goog-api-key", SECRET.to_owned()),
    ] {
        let asked = sent(provider, question(), false).await;
        assert_eq!(asked.header(header), Some(value.as_str()));
        let others: Vec<_> = asked.headers.iter().filter(|(name, _)| name != header).collect();
        let elsewhere = format!("{others:?}{}{}", asked.path, asked.text);
        assert!(!elsewhere.contains("hunter2"), "{elsewhere}");
    }
}

#[tokio::test]
async fn anthropic_is_asked_in_messages() {
    let asked = sent(Provider::Anthropic, question(), false).await;
    assert_eq!(
        (asked.path.as_str(), asked.header("anthropic-version")),
        ("/v1/messages", Some("2023-06-01"))
    );
    let expected = json!({
        "model": "the-model", "max_tokens": 99, "system": "Be brief.", "stream": false,
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "What?" }] }],
    });
    assert_eq!(asked.body, expected);
    assert_eq!(sent(Provider::Anthropic, question(), true).await.body["stream"], true);
    let asked = sent(Provider::Anthropic, conversation("toolu_1"), false).await;
    let messages = &asked.body["messages"];
    assert_eq!(messages[1]["role"], "assistant");
    let call = &messages[1]["content"][0];
    assert_eq!(
        (&call["type"], &call["id"], &call["name"]),
        (&json!("tool_use"), &json!("toolu_1"), &json!("weather"))
    );
    let results = json!([
        { "type": "tool_result", "tool_use_id": "toolu_1", "content": "18", "is_error": false },
        { "type": "tool_result", "tool_use_id": "toolu_1", "content": "storm", "is_error": true },
    ]);
    assert_eq!((&messages[2]["role"], &messages[2]["content"]), (&json!("user"), &results));
    let tool = &asked.body["tools"][0];
    assert_eq!((&tool["name"], &tool["input_schema"]["type"]), (&json!("weather"), &json!("object")));
}

#[tokio::test]
async fn openai_is_asked_for_a_chat_completion() {
    let asked = sent(Provider::OpenAi, question(), false).await;
    assert_eq!(asked.path, "/chat/completions");
    // Services compatible with OpenAI know `max_tokens`.
    let expected = json!({
        "model": "the-model", "max_tokens": 99, "stream": false,
        "messages": [{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "What?" }],
    });
    assert_eq!(asked.body, expected);
    let streaming = sent(Provider::OpenAi, question(), true).await.body;
    assert_eq!(
        (&streaming["stream"], &streaming["stream_options"]["include_usage"]),
        (&json!(true), &json!(true))
    );
    let asked = sent(Provider::OpenAi, conversation("call_1"), false).await;
    let expected = json!([
        { "role": "user", "content": "Weather?" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "call_1", "type": "function", "function": { "name": "weather", "arguments": ARGUMENTS } },
        ] },
        { "role": "tool", "tool_call_id": "call_1", "content": "18" },
        { "role": "tool", "tool_call_id": "call_1", "content": "storm" },
    ]);
    assert_eq!(asked.body["messages"], expected);
    let tool = &asked.body["tools"][0];
    assert_eq!((&tool["type"], &tool["function"]["name"]), (&json!("function"), &json!("weather")));
    assert_eq!(tool["function"]["parameters"]["type"], "object");
}

#[tokio::test]
async fn gemini_is_asked_for_content() {
    let asked = sent(Provider::Gemini, question(), false).await;
    assert_eq!(asked.path, "/v1beta/models/the-model:generateContent");
    let expected = json!({
        "systemInstruction": { "parts": [{ "text": "Be brief." }] },
        "contents": [{ "role": "user", "parts": [{ "text": "What?" }] }],
        "generationConfig": { "maxOutputTokens": 99 },
    });
    assert_eq!(asked.body, expected);
    let streaming = sent(Provider::Gemini, question(), true).await;
    assert_eq!(streaming.path, "/v1beta/models/the-model:streamGenerateContent?alt=sse");
    let body = sent(Provider::Gemini, conversation("id-1"), false).await.body;
    let called = &body["contents"][1];
    assert_eq!(
        (&called["role"], &called["parts"][0]["thoughtSignature"]),
        (&json!("model"), &json!("signed"))
    );
    assert_eq!(called["parts"][0]["functionCall"]["id"], "id-1");
    let results = json!([
        { "functionResponse": { "id": "id-1", "name": "weather", "response": { "output": "18" } } },
        { "functionResponse": { "id": "id-1", "name": "weather", "response": { "error": "storm" } } },
    ]);
    assert_eq!((&body["contents"][2]["role"], &body["contents"][2]["parts"]), (&json!("user"), &results));
    let declaration = &body["tools"][0]["functionDeclarations"][0];
    assert_eq!(
        (&declaration["name"], &declaration["parametersJsonSchema"]["type"]),
        (&json!("weather"), &json!("object"))
    );
    // An id that plugbay has made up is not sent.
    let body = sent(Provider::Gemini, conversation("plugbay-call-0"), false).await.body;
    assert_eq!(body["contents"][1]["parts"][0]["functionCall"].get("id"), None);
    assert_eq!(body["contents"][2]["parts"][0]["functionResponse"].get("id"), None);
}

#[tokio::test]
async fn schemas_and_arguments_keep_their_digits() {
    for provider in PROVIDERS {
        let text = sent(provider, conversation("1"), false).await.text;
        assert_eq!(text.matches("12345678901234567890123").count(), 2, "{text}");
    }
}
