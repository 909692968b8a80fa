//! All kinds of failures, in each provider's own form.

use std::time::Duration;

use plugbay_core::model::{Model as _, ModelError};
use plugbay_testkit::{Endpoint, Play};
use serde_json::{Value, json};

use super::{PATIENCE, PROVIDERS, SECRET, events, model, question, spec, streamed, whole};
use crate::{Endpoint as Spec, Key, Provider, RemoteModel};

/// An error in the provider's form.
fn error(provider: Provider, kind: &str, message: &str) -> Value {
    match provider {
        Provider::Anthropic => {
            json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_1" })
        }
        Provider::OpenAi => {
            json!({ "error": { "message": message, "type": kind, "param": null, "code": kind } })
        }
        Provider::Gemini => json!({ "error": { "code": 400, "message": message, "status": kind } }),
    }
}

/// The error, which must be the same with and without a stream.
async fn both_ways(provider: Provider, play: Play) -> ModelError {
    let one = whole(provider, play.clone()).await.unwrap_err();
    let other = streamed(provider, play).await.0.unwrap_err();
    assert_eq!(one, other);
    one
}

#[tokio::test]
async fn refusals_are_told_as_such() {
    for (provider, answer) in [
        (
            Provider::Anthropic,
            json!({ "content": [], "stop_reason": "refusal", "usage": { "input_tokens": 1, "output_tokens": 1 } }),
        ),
        (
            Provider::OpenAi,
            json!({ "choices": [{ "message": { "content": null, "refusal": "I can't." }, "finish_reason": "stop" }] }),
        ),
        (
            Provider::OpenAi,
            json!({ "choices": [{ "message": { "content": "" }, "finish_reason": "content_filter" }] }),
        ),
        (
            Provider::Gemini,
            json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" }, "usageMetadata": { "promptTokenCount": 1 } }),
        ),
        (Provider::Gemini, json!({ "candidates": [{ "finishReason": "SAFETY", "index": 0 }] })),
    ] {
        let trouble = whole(provider, Play::json(200, &answer)).await.unwrap_err();
        assert!(matches!(trouble, ModelError::Refused(_)), "{provider:?}: {trouble:?}");
    }
    for (provider, stream) in [
        (
            Provider::Anthropic,
            json!({ "type": "message_delta", "delta": { "stop_reason": "refusal" }, "usage": { "output_tokens": 1 } }),
        ),
        (
            Provider::OpenAi,
            json!({ "choices": [{ "delta": { "refusal": "I can't." }, "finish_reason": "stop" }] }),
        ),
        (Provider::Gemini, json!({ "promptFeedback": { "blockReason": "SAFETY" } })),
    ] {
        let (reply, _) = streamed(provider, Play::Stream(events(&[stream]))).await;
        assert!(matches!(reply, Err(ModelError::Refused(_))), "{provider:?}: {reply:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_told_as_such() {
    for provider in PROVIDERS {
        for body in ["<html>", "[1]", "{}", ""] {
            let play = Play::Answer { status: 200, headers: Vec::new(), body: body.to_owned() };
            let trouble = whole(provider, play).await.unwrap_err();
            assert!(matches!(trouble, ModelError::Malformed(_)), "{provider:?} {body}: {trouble:?}");
        }
        let (reply, _) = streamed(provider, Play::Stream(vec!["data: {\n\n".to_owned()])).await;
        assert!(matches!(reply, Err(ModelError::Malformed(_))), "{provider:?}: {reply:?}");
        for stream in ["", "data: {}\n\n"] {
            let (reply, _) = streamed(provider, Play::Stream(vec![stream.to_owned()])).await;
            assert_eq!(reply.unwrap_err(), ModelError::BrokenOff, "{provider:?} {stream}");
        }
    }
    let call = json!({ "function": { "name": "x", "arguments": "{oops" } });
    let answer =
        json!({ "choices": [{ "message": { "tool_calls": [call] }, "finish_reason": "tool_calls" }] });
    let trouble = whole(Provider::OpenAi, Play::json(200, &answer)).await.unwrap_err();
    assert!(trouble.to_string().contains("arguments of its call of \"x\""), "{trouble}");
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    for provider in PROVIDERS {
        let body = error(provider, "rate_limit_error", "Slow\n down.").to_string();
        let limited = |headers| Play::Answer { status: 429, headers, body: body.clone() };
        let retry_after = Some(Duration::from_secs(17));
        let expected = ModelError::RateLimited { retry_after, message: "Slow down.".to_owned() };
        assert_eq!(both_ways(provider, limited(vec![("retry-after", "17")])).await, expected);
        let expected = ModelError::RateLimited { retry_after: None, message: "Slow down.".to_owned() };
        assert_eq!(
            both_ways(provider, limited(vec![("retry-after", "Tue, 1 Jan 2030 00:00:00 GMT")])).await,
            expected
        );
    }
    // Gemini reports it in the body, and in a list if a stream was requested.
    let mut body = error(Provider::Gemini, "RESOURCE_EXHAUSTED", "Quota.");
    body["error"]["details"] = json!([
        { "@type": "type.googleapis.com/google.rpc.Help" },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s" },
    ]);
    let expected =
        ModelError::RateLimited { retry_after: Some(Duration::from_secs(37)), message: "Quota.".to_owned() };
    assert_eq!(both_ways(Provider::Gemini, Play::json(429, &body)).await, expected);
    assert_eq!(both_ways(Provider::Gemini, Play::json(429, &json!([body]))).await, expected);
    // Anthropic has a separate status for an overloaded service.
    let overloaded = error(Provider::Anthropic, "overloaded_error", "Overloaded");
    let trouble = both_ways(Provider::Anthropic, Play::json(529, &overloaded)).await;
    assert!(matches!(trouble, ModelError::RateLimited { retry_after: None, .. }), "{trouble:?}");
    // Others have a status that only says that the service is unavailable.
    let unavailable = error(Provider::Gemini, "UNAVAILABLE", "Overloaded");
    let trouble = both_ways(Provider::Gemini, Play::json(503, &unavailable)).await;
    assert!(matches!(trouble, ModelError::RateLimited { retry_after: None, .. }), "{trouble:?}");
    // The error may also come in the middle of a stream.
    let amid = json!({ "error": { "code": 503, "message": "Overloaded", "status": "UNAVAILABLE" } });
    for (provider, error) in [(Provider::Anthropic, overloaded), (Provider::Gemini, amid)] {
        let (reply, _) = streamed(provider, Play::Stream(events(&[error]))).await;
        assert!(matches!(reply, Err(ModelError::RateLimited { .. })), "{reply:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_not_accepted_is_never_shown() {
    let message = format!("Incorrect API key provided: {SECRET}.");
    let mut plays: Vec<(Provider, u16, Value)> =
        PROVIDERS.map(|provider| (provider, 401, error(provider, "authentication_error", &message))).into();
    let mut wrong = error(Provider::Gemini, "INVALID_ARGUMENT", &message);
    wrong["error"]["details"] = json!([{ "reason": "API_KEY_INVALID", "domain": "googleapis.com" }]);
    plays.push((Provider::Gemini, 400, wrong));
    for (provider, status, body) in plays {
        let trouble = both_ways(provider, Play::json(status, &body)).await;
        let told = format!("{trouble} {trouble:?}");
        assert!(matches!(&trouble, ModelError::Unauthorised { key, .. } if key == "MY_KEY"), "{told}");
        assert!(told.contains("Incorrect API key") && !told.contains("hunter2"), "{told}");
    }
    // Nor if the provider repeats it in a response with status 200, or if its message is cut.
    let long = format!("{}{SECRET}", "x".repeat(295));
    for play in [
        Play::json(200, &json!({ "error": { "message": message } })),
        Play::json(200, &json!({ "choices": message })),
        Play::json(500, &json!({ "error": { "message": long } })),
    ] {
        let told = whole(Provider::OpenAi, play).await.unwrap_err().to_string();
        assert!(told.contains('…') && !told.contains("sk-"), "{told}");
    }
    let endpoint = Endpoint::start([]);
    let model = model(Provider::OpenAi, &endpoint);
    let told = format!("{model:?}");
    assert!(told.contains("Key(from MY_KEY)") && !told.contains("hunter2"), "{told}");
    let key = Some(Key::new("hunter2\u{1}", "MY_KEY"));
    let unsendable = RemoteModel::new(Spec { key, ..spec(Provider::OpenAi, &endpoint) });
    let trouble = unsendable.ask(question(), None).await.unwrap_err();
    assert!(
        matches!(&trouble, ModelError::Unauthorised { .. }) && !trouble.to_string().contains("hunter2"),
        "{trouble}"
    );
}

#[tokio::test]
async fn other_errors_come_with_the_providers_words() {
    for provider in PROVIDERS {
        let trouble =
            both_ways(provider, Play::json(500, &error(provider, "api_error", "Internal trouble"))).await;
        assert_eq!(trouble, ModelError::Failed { status: Some(500), message: "Internal trouble".to_owned() });
    }
    // Ollama's errors are plain texts, those of proxies are HTML pages.
    let trouble = both_ways(Provider::OpenAi, Play::json(404, &json!({ "error": "model not found" }))).await;
    assert_eq!(trouble, ModelError::Failed { status: Some(404), message: "model not found".to_owned() });
    let page = Play::Answer { status: 502, headers: Vec::new(), body: "<html>\n Bad gateway".to_owned() };
    let trouble = both_ways(Provider::OpenAi, page).await;
    assert_eq!(trouble.to_string(), "it failed (HTTP 502): <html> Bad gateway");
    // Some report an error in the middle of a stream, or in a response with status 200.
    let amid = json!({ "error": { "message": "Provider returned error", "code": 502 } });
    let expected = ModelError::Failed { status: None, message: "Provider returned error".to_owned() };
    for provider in [Provider::OpenAi, Provider::Gemini] {
        assert_eq!(
            streamed(provider, Play::Stream(events(std::slice::from_ref(&amid)))).await.0.unwrap_err(),
            expected
        );
        assert_eq!(whole(provider, Play::json(200, &amid)).await.unwrap_err(), expected);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Endpoint::start([Play::json(200, &json!({}))]);
    for provider in PROVIDERS {
        let to: &'static str = Box::leak(other.url().into_boxed_str());
        let play = Play::Answer { status: 307, headers: vec![("location", to)], body: String::new() };
        let trouble = whole(provider, play).await.unwrap_err();
        assert_eq!(
            trouble,
            ModelError::Failed { status: Some(307), message: "it does not say why".to_owned() }
        );
    }
    assert!(other.untaken().is_empty());
}

#[tokio::test(start_paused = true)]
async fn silence_has_an_end() {
    for provider in PROVIDERS {
        let endpoint = Endpoint::start([Play::Silence(Vec::new())]);
        let after = Duration::from_secs(5); // less than a connection may take
        let model = RemoteModel::new(Spec { patience: after, ..spec(provider, &endpoint) });
        assert_eq!(model.ask(question(), None).await.unwrap_err(), ModelError::Timeout { after });
    }
}

#[tokio::test]
async fn silence_in_the_middle_of_a_stream_has_an_end() {
    let first = json!({ "choices": [{ "delta": { "content": "a" }, "finish_reason": null }] });
    let endpoint = Endpoint::start([Play::Silence(events(&[first]))]);
    // From the first text on, the runtime controls the time.
    let hear = Box::new(|_: &str| tokio::time::pause());
    let trouble = model(Provider::OpenAi, &endpoint).ask(question(), Some(hear)).await.unwrap_err();
    assert_eq!(trouble, ModelError::Timeout { after: PATIENCE });
    aside(endpoint, Endpoint::left).await;
}

#[tokio::test]
async fn whoever_stops_waiting_ends_the_request() {
    let endpoint = Endpoint::start([Play::Silence(Vec::new())]);
    let model = model(Provider::Anthropic, &endpoint);
    let asking = tokio::spawn(async move { model.ask(question(), None).await });
    let endpoint = aside(endpoint, |endpoint| _ = endpoint.asked()).await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    aside(endpoint, Endpoint::left).await;
}

/// Waits in a separate thread, so that the client's connection is handled meanwhile.
async fn aside(endpoint: Endpoint, wait: impl FnOnce(&Endpoint) + Send + 'static) -> Endpoint {
    let waiting = tokio::task::spawn_blocking(move || {
        wait(&endpoint);
        endpoint
    });
    waiting.await.unwrap()
}

#[tokio::test]
async fn nobody_there_is_told_with_the_reason() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [format!("http://user:hunter2@{closed}"), "nonsense".to_owned()] {
        let spec = Spec { base_url: Some(url), key: None, ..spec(Provider::OpenAi, &Endpoint::start([])) };
        let trouble = RemoteModel::new(spec).ask(question(), None).await.unwrap_err();
        let told = trouble.to_string();
        assert!(matches!(trouble, ModelError::Unreachable(_)) && !told.contains("hunter2"), "{told}");
    }
}
