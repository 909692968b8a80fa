//! Parses the errors of providers: all send an object `error`, but with different members.

use std::time::Duration;

use plugbay_core::model::ModelError;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::key::Key;

/// Longest provider message that is shown, in characters.
const LONGEST: usize = 300;
/// Anthropic's status for an overloaded service.
const OVERLOADED: u16 = 529;

pub(crate) fn of_status(status: u16, headers: &HeaderMap, body: &[u8], key: Option<&Key>) -> ModelError {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    // Gemini wraps the errors of streams in a list.
    let error = json.get(0).unwrap_or(&json)["error"].clone();
    let message = message(&error, body);
    let details = error["details"].as_array().map(Vec::as_slice).unwrap_or_default();
    match status {
        401 | 403 => unauthorised(key, message),
        // Gemini has no separate status for a wrong key.
        400 if details.iter().any(|detail| detail["reason"] == "API_KEY_INVALID") => {
            unauthorised(key, message)
        }
        429 | 503 | OVERLOADED => {
            let retry_after = from_header(headers).or_else(|| details.iter().find_map(retry_delay));
            ModelError::RateLimited { retry_after, message }
        }
        _ => ModelError::Failed { status: Some(status), message },
    }
}

/// An error event in a stream.
pub(crate) fn in_stream(error: &Value) -> ModelError {
    let message = message(error, b"");
    match (error["type"].as_str(), error["code"].as_u64()) {
        (Some("overloaded_error" | "rate_limit_error"), _) | (_, Some(429 | 503)) => {
            ModelError::RateLimited { retry_after: None, message }
        }
        _ => ModelError::Failed { status: None, message },
    }
}

fn unauthorised(key: Option<&Key>, message: String) -> ModelError {
    let key = key.map_or("the configuration, which has none,", Key::from).to_owned();
    ModelError::Unauthorised { key, message }
}

/// The text of `{"message": …}`, or of a plain string.
fn message(error: &Value, body: &[u8]) -> String {
    let words = error["message"].as_str().or(error.as_str());
    let text = words.map_or_else(|| String::from_utf8_lossy(body), Into::into);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    if text.is_empty() { "it does not say why".to_owned() } else { text }
}

/// The error without the key, which some providers repeat, and cut to a readable length. The key is removed
/// first, because a cut could leave half of it.
pub(crate) fn redacted(mut trouble: ModelError, key: Option<&Key>) -> ModelError {
    let words = match &mut trouble {
        ModelError::Timeout { .. } | ModelError::BrokenOff => return trouble,
        ModelError::RateLimited { message, .. }
        | ModelError::Unauthorised { message, .. }
        | ModelError::Failed { message, .. } => message,
        ModelError::Refused(words)
        | ModelError::Malformed(words)
        | ModelError::Unreachable(words)
        | ModelError::Unaskable(words) => words,
        ModelError::NoKey { why, .. } => why,
    };
    if let Some(secret) = key.map(Key::secret).filter(|secret| !secret.is_empty()) {
        *words = words.replace(secret, "…");
    }
    if let Some((end, _)) = words.char_indices().nth(LONGEST) {
        words.truncate(end);
    }
    trouble
}

fn from_header(headers: &HeaderMap) -> Option<Duration> {
    seconds(headers.get(RETRY_AFTER)?.to_str().ok()?)
}

/// `google.rpc.RetryInfo`: `"37s"`.
fn retry_delay(detail: &Value) -> Option<Duration> {
    seconds(detail["retryDelay"].as_str()?.strip_suffix('s')?)
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}
