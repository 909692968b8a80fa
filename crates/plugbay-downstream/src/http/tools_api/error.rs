//! Errors of the plain API: one table of code words, each with its status.

use std::fmt::Write as _;

use hyper::{
    Response, StatusCode,
    header::{HeaderValue, RETRY_AFTER},
};
use plugbay_core::{
    arguments,
    failure::CallError,
    wire::{Fault, Frame, Malformed, Members, string_value},
};
use serde_json::{Map, Value, json};

use crate::{
    http::reply::{self, Body},
    refusal::Refusal,
};

/// The code word of an error, and its place in [`TABLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Code {
    InvalidJson,
    InvalidRequest,
    Unauthorized,
    Forbidden,
    InsufficientScope,
    NotFound,
    UnknownTool,
    AmbiguousTool,
    MethodNotAllowed,
    NotAcceptable,
    RequestTimeout,
    TooLarge,
    UnsupportedMediaType,
    InvalidArguments,
    RejectedArguments,
    InputRequired,
    TooManyRequests,
    ServerError,
    BadAnswer,
    ServerFailed,
    ServerResting,
    Busy,
    ShuttingDown,
    Timeout,
}

/// Every code word with its status and its meaning, in the order of [`Code`]. `docs/http.md` has the same rows.
pub(in crate::http) const TABLE: [(Code, &str, u16, &str); 24] = [
    (Code::InvalidJson, "invalid_json", 400, "The body is not JSON."),
    (Code::InvalidRequest, "invalid_request", 400, "The body or a header is not what the endpoint takes."),
    (Code::Unauthorized, "unauthorized", 401, "The token is missing or wrong."),
    (Code::Forbidden, "forbidden", 403, "The `Host` or `Origin` is not allowed."),
    (
        Code::InsufficientScope,
        "insufficient_scope",
        403,
        "The access token does not allow this; `scope` says what to ask for.",
    ),
    (Code::NotFound, "not_found", 404, "There is nothing at this path."),
    (Code::UnknownTool, "unknown_tool", 404, "No server has this tool, or the configuration denies it."),
    (Code::AmbiguousTool, "ambiguous_tool", 409, "Several servers have a tool of this name."),
    (Code::MethodNotAllowed, "method_not_allowed", 405, "`Allow` names the methods of this path."),
    (Code::NotAcceptable, "not_acceptable", 406, "The client does not accept `application/json`."),
    (Code::RequestTimeout, "request_timeout", 408, "The body of the request took too long."),
    (Code::TooLarge, "too_large", 413, "The body is longer than `limits.message`."),
    (
        Code::UnsupportedMediaType,
        "unsupported_media_type",
        415,
        "The body is not `application/json` in UTF-8, or has a `Content-Encoding`.",
    ),
    (
        Code::InvalidArguments,
        "invalid_arguments",
        422,
        "The arguments do not fit the schema; nothing was sent.",
    ),
    (Code::RejectedArguments, "rejected_arguments", 422, "The server rejects the arguments (`-32602`)."),
    (Code::InputRequired, "input_required", 422, "The tool asks its user something; call it over MCP."),
    (
        Code::TooManyRequests,
        "too_many_requests",
        429,
        "Too many calls are in flight, or a rate limit or quota is used up; `Retry-After` says how long to wait.",
    ),
    (Code::ServerError, "server_error", 502, "The server answered with a JSON-RPC error, which is in `rpc`."),
    (Code::BadAnswer, "bad_answer", 502, "The server's answer is too large or no valid message."),
    (Code::ServerFailed, "server_failed", 502, "The server does not work; `reason` and `remedy` say more."),
    (Code::ServerResting, "server_resting", 503, "The server failed and is started again soon."),
    (Code::Busy, "busy", 503, "plugbay has no room for more at the moment."),
    (Code::ShuttingDown, "shutting_down", 503, "plugbay is shutting down."),
    (Code::Timeout, "timeout", 504, "The server did not answer in time; the call may have had an effect."),
];

impl Code {
    fn row(self) -> (Self, &'static str, u16, &'static str) {
        TABLE[self as usize]
    }

    fn status(self) -> StatusCode {
        StatusCode::from_u16(self.row().2).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The code of a request that was rejected before it was read as a call.
    fn of_status(status: StatusCode) -> Self {
        match status.as_u16() {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            405 => Self::MethodNotAllowed,
            406 => Self::NotAcceptable,
            408 => Self::RequestTimeout,
            413 => Self::TooLarge,
            415 => Self::UnsupportedMediaType,
            429 => Self::TooManyRequests,
            500.. => Self::Busy,
            _ => Self::InvalidRequest,
        }
    }

    fn of(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Malformed(Malformed { fault: Fault::Json(_) | Fault::Utf8, .. }) => Self::InvalidJson,
            Refusal::Malformed(Malformed { fault: Fault::TooLong(_), .. }) => Self::TooLarge,
            Refusal::Unknown { .. } => Self::UnknownTool,
            Refusal::Ambiguous { .. } => Self::AmbiguousTool,
            Refusal::InvalidArguments(_) => Self::InvalidArguments,
            Refusal::HostCannotAnswer(_) | Refusal::HostFailed(_) => Self::InputRequired,
            Refusal::Busy(_) | Refusal::TooMuchUnread => Self::Busy,
            Refusal::Limited(_) => Self::TooManyRequests,
            Refusal::Revoked => Self::Unauthorized,
            Refusal::MissingScope { .. } => Self::InsufficientScope,
            Refusal::ShuttingDown | Refusal::Draining => Self::ShuttingDown,
            Refusal::Call(error) => Self::of_call(error),
            Refusal::Malformed(_)
            | Refusal::InvalidParams(_)
            | Refusal::UnknownMethod
            | Refusal::UnsupportedVersion(_)
            | Refusal::UnknownResource { .. }
            | Refusal::Disputed { .. }
            | Refusal::IdInUse
            | Refusal::HeaderMismatch(_)
            | Refusal::Unacceptable(_)
            | Refusal::MissingTasks => Self::InvalidRequest,
        }
    }

    fn of_call(error: &CallError) -> Self {
        match error {
            CallError::Gone(_)
            | CallError::Down { .. }
            | CallError::NeedsLogin { .. }
            | CallError::TaskLost { .. } => Self::ServerFailed,
            CallError::Resting { .. } => Self::ServerResting,
            CallError::Busy { .. } => Self::Busy,
            CallError::TimedOut { .. } => Self::Timeout,
            CallError::TooLarge { .. } | CallError::Malformed { .. } => Self::BadAnswer,
        }
    }
}

/// An error in the form of the plain API: `{"error": {"code": …, "message": …, …}}`.
#[derive(Debug)]
pub(in crate::http) struct ApiError {
    code: Code,
    message: String,
    /// Further members, such as similar names.
    members: Map<String, Value>,
    /// The JSON-RPC error of the server, as raw JSON.
    rpc: Option<String>,
    /// Seconds until the request may succeed.
    retry_after: Option<u64>,
}

impl ApiError {
    fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), members: Map::new(), rpc: None, retry_after: None }
    }

    pub(super) fn of(refusal: &Refusal) -> Self {
        let members = match refusal {
            Refusal::Unknown { nearest, .. } => json!({ "nearest": nearest }),
            Refusal::Ambiguous { candidates, .. } => json!({ "candidates": candidates }),
            Refusal::InvalidArguments(refusal) => json!({ "problems": problems(refusal) }),
            _ => refusal.data().unwrap_or_default(),
        };
        let Value::Object(members) = members else { return Self::refused(refusal, Map::new()) };
        Self::refused(refusal, members)
    }

    fn refused(refusal: &Refusal, members: Map<String, Value>) -> Self {
        let retry_after = match refusal {
            Refusal::Busy(_) | Refusal::TooMuchUnread | Refusal::Call(CallError::Busy { .. }) => Some(1),
            Refusal::Limited(limited) => Some(limited.seconds()),
            Refusal::Call(CallError::Resting { retry_in, .. }) => Some(retry_in.as_secs().max(1)),
            _ => None,
        };
        Self { members, retry_after, ..Self::new(Code::of(refusal), refusal.message()) }
    }

    /// A request that was rejected before it was read as a call.
    pub(in crate::http) fn of_status(status: StatusCode, refusal: &Refusal) -> Self {
        match Code::of(refusal) {
            Code::InvalidJson => Self::new(Code::InvalidJson, refusal.message()),
            Code::InsufficientScope => Self::of(refusal),
            _ => Self::new(Code::of_status(status), refusal.message()),
        }
    }

    /// The server's own error; `rpc` is raw JSON.
    pub(super) fn of_server(rpc: &[u8]) -> Self {
        let member = |key| Members::find(rpc, &(0..rpc.len()), key).map(|span| &rpc[span]);
        let code = match member("code") {
            Some(b"-32602") => Code::RejectedArguments,
            _ => Code::ServerError,
        };
        let words = member("message").and_then(string_value).unwrap_or_default();
        let message = format!("the server answered with an error: {words}");
        Self { rpc: Some(String::from_utf8_lossy(rpc).into_owned()), ..Self::new(code, message) }
    }

    pub(super) fn unreadable_answer() -> Self {
        Self::new(Code::BadAnswer, "the server sent an answer that cannot be forwarded")
    }

    /// Adds the failed servers that never listed their tools: one of them may have the tool.
    pub(super) fn with_failed_servers(mut self, servers: Vec<String>) -> Self {
        if !servers.is_empty() {
            let names = servers.join(", ");
            let _ = write!(self.message, " (these servers have failed and listed no tools: {names})");
            self.members.insert("failedServers".to_owned(), servers.into());
        }
        self
    }

    pub(in crate::http) fn into_response(self) -> Response<Body> {
        let (_, word, ..) = self.code.row();
        let mut error = format!(r#"{{"error":{{"code":"{word}","message":{}"#, json!(self.message));
        for (key, value) in &self.members {
            let _ = write!(error, ",{}:{value}", json!(key));
        }
        if let Some(rpc) = &self.rpc {
            let _ = write!(error, r#","rpc":{rpc}"#);
        }
        error += "}}";
        let mut response = reply::json(self.code.status(), &Frame::from(error));
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The problems of arguments, one for each place.
fn problems(refusal: &arguments::Refusal) -> Vec<Value> {
    let problem = |problem: &arguments::Problem| {
        let mut told = json!({ "at": problem.place, "message": problem.message });
        let parts = [("schema", &problem.fragment), ("example", &problem.example)];
        for (key, part) in parts.into_iter().filter_map(|(key, part)| Some((key, part.as_ref()?))) {
            told[key] = serde_json::from_str(part).unwrap_or_else(|_| part.clone().into());
        }
        told
    };
    refusal.problems.iter().map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_error_code_has_its_row_in_the_table_and_in_the_documentation() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http.md")).unwrap();
        for (number, (code, word, status, meaning)) in TABLE.into_iter().enumerate() {
            assert_eq!(code as usize, number, "{word}");
            let row = format!("| `{word}` | {status} | {meaning} |");
            assert!(page.contains(&row), "docs/http.md lacks the row\n{row}");
        }
        let rows = page.lines().filter(|line| line.starts_with("| `") && line.ends_with(". |"));
        let codes =
            rows.filter(|line| line.split('|').nth(2).is_some_and(|cell| cell.trim().parse::<u16>().is_ok()));
        assert_eq!(codes.count(), TABLE.len(), "docs/http.md has rows of other codes");
    }
}
