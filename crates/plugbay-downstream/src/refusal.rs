//! The reasons why a request is refused. This is the only place that chooses an error code.

use std::borrow::Cow;

use plugbay_core::{
    arguments,
    era::{self, Era},
    failure::{CUT, CallError},
    size_limit,
    suspended::{Interruption, ResumeError},
    task, text,
    wire::{Fault, Malformed},
};
use serde_json::{Value, json};

use crate::rate::Limited;

/// The code of a call that exceeds a limit. Its `data` has `retryAfter`, in seconds.
pub(crate) const RATE_LIMITED: i32 = -32029;

/// A name that is too long is quoted up to this many bytes.
const BRIEF: usize = 100;

/// The reason why a request is refused.
#[derive(Debug, Clone)]
pub(crate) enum Refusal {
    Malformed(Malformed),
    UnknownMethod,
    InvalidParams(String),
    UnsupportedVersion(String),
    /// A tool or a prompt that no server has.
    Unknown {
        what: &'static str,
        name: String,
        nearest: Vec<String>,
    },
    /// A name that is no exposed name, and could mean tools of several servers.
    Ambiguous {
        name: String,
        candidates: Vec<String>,
    },
    /// The arguments do not fit the tool's schema.
    InvalidArguments(arguments::Refusal),
    UnknownResource {
        uri: String,
        era: Era,
    },
    /// A skill, or a file of one, that several servers have; with the URIs that tell them apart.
    Disputed {
        uris: Vec<String>,
    },
    IdInUse,
    /// plugbay shuts down before the answer has come.
    ShuttingDown,
    /// plugbay shuts down and takes no new requests.
    Draining,
    /// Hosts leave so much unread that there is no memory for this answer.
    TooMuchUnread,
    /// The headers of a request contradict its body.
    HeaderMismatch(String),
    /// The transport rejects the message.
    Unacceptable(Cow<'static, str>),
    /// A limit is reached; the request may succeed later.
    Busy(&'static str),
    /// The caller or the session has made too many calls.
    Limited(Limited),
    /// The token of the caller was revoked, or has expired.
    Revoked,
    /// The access token of the caller does not allow this. A token with these scopes would.
    MissingScope {
        scope: String,
    },
    /// The server sent a request that the host cannot be sent; with the reason.
    HostCannotAnswer(String),
    /// The host answered a server request of this call with this error.
    HostFailed(String),
    /// The request needs the tasks extension, which the host has not declared.
    MissingTasks,
    Call(CallError),
}

impl Refusal {
    /// The refusal of a name that does not exist.
    pub(crate) fn unknown(what: &'static str, name: &str) -> Self {
        Self::Unknown { what, name: name.to_owned(), nearest: Vec::new() }
    }

    pub(crate) fn code(&self) -> i32 {
        match self {
            Self::Malformed(Malformed { fault: Fault::Json(_) | Fault::Utf8, .. }) => -32700,
            Self::Malformed(_) | Self::IdInUse | Self::Unacceptable(_) => -32600,
            Self::UnknownMethod => -32601,
            Self::InvalidParams(_)
            | Self::Unknown { .. }
            | Self::Ambiguous { .. }
            | Self::InvalidArguments(_)
            | Self::Disputed { .. }
            | Self::UnknownResource { era: Era::Modern, .. } => -32602,
            Self::UnknownResource { era: Era::Legacy, .. } => -32002,
            Self::HeaderMismatch(_) => -32020,
            Self::MissingTasks => -32021,
            Self::UnsupportedVersion(_) => -32022,
            Self::Limited(_) => RATE_LIMITED,
            Self::Call(_)
            | Self::ShuttingDown
            | Self::Draining
            | Self::TooMuchUnread
            | Self::Busy(_)
            | Self::Revoked
            | Self::MissingScope { .. }
            | Self::HostCannotAnswer(_)
            | Self::HostFailed(_) => -32000,
        }
    }

    /// One line, whatever names and words of servers and hosts are in it; a line each for wrong arguments.
    pub(crate) fn message(&self) -> String {
        match (self, self.words()) {
            (Self::InvalidArguments(_), words) => words,
            (_, words) => text::visible(&words).into_owned(),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Malformed(malformed) => malformed.fault.to_string(),
            Self::UnknownMethod => "Method not found".to_owned(),
            Self::InvalidParams(what) => what.clone(),
            Self::UnsupportedVersion(_) => "Unsupported protocol version".to_owned(),
            Self::Unknown { what, name, nearest } if nearest.is_empty() => {
                format!("Unknown {what}: {}", brief(name))
            }
            Self::Unknown { what, name, nearest } => {
                let name = brief(name);
                format!("Unknown {what}: {name}. Did you mean {}?", nearest.join(", "))
            }
            Self::Ambiguous { name, candidates } => {
                format!("{name} could mean tools of several servers: write one of {}", candidates.join(", "))
            }
            Self::InvalidArguments(refusal) => refusal.to_string(),
            Self::UnknownResource { uri, .. } => format!("Resource not found: {}", brief(uri)),
            Self::Disputed { uris } => {
                format!("Several servers have this: ask for one of {}", uris.join(", "))
            }
            Self::IdInUse => "the id of this request is in use by another one".to_owned(),
            Self::ShuttingDown => CUT.to_owned(),
            Self::Draining => "plugbay is shutting down and did not send this request".to_owned(),
            Self::TooMuchUnread => {
                "the answer came, but this host leaves too many answers unread to keep it".to_owned()
            }
            Self::HeaderMismatch(what) => format!("Header mismatch: {what}"),
            Self::Unacceptable(what) => what.clone().into_owned(),
            Self::Busy(what) => (*what).to_owned(),
            Self::Limited(limited) => {
                let Limited { what, limit, .. } = limited;
                format!("{what} is reached: {limit}; try again in {} s", limited.seconds())
            }
            Self::Revoked => "the token of this caller was revoked or has expired".to_owned(),
            Self::MissingScope { scope } => {
                format!("the access token does not allow this; ask the authorization server for: {scope}")
            }
            Self::HostCannotAnswer(why) => why.clone(),
            Self::HostFailed(why) => {
                format!("the host answered a request of the server with an error: {why}")
            }
            Self::MissingTasks => "Missing required client capability".to_owned(),
            Self::Call(error) => error.to_string(),
        }
    }

    pub(crate) fn data(&self) -> Option<Value> {
        match self {
            Self::UnsupportedVersion(requested) => {
                let legacy = era::LEGACY_VERSIONS.into_iter().rev();
                let supported: Vec<_> = [era::MODERN_VERSION].into_iter().chain(legacy).collect();
                Some(json!({ "supported": supported, "requested": requested }))
            }
            Self::Limited(limited) => {
                Some(json!({ "retryAfter": limited.seconds(), "limit": limited.limit.to_string() }))
            }
            Self::UnknownResource { uri, .. } => Some(json!({ "uri": uri })),
            Self::Disputed { uris } => Some(json!({ "uris": uris })),
            Self::MissingScope { scope } => Some(json!({ "scope": scope })),
            Self::MissingTasks => {
                Some(json!({ "requiredCapabilities": { "extensions": { task::EXTENSION: {} } } }))
            }
            Self::Call(
                CallError::Down { server, failure }
                | CallError::NeedsLogin { server, failure }
                | CallError::Resting { server, failure, .. }
                | CallError::TaskLost { server, failure },
            ) => Some(json!({
                "server": server.as_str(), "reason": failure.what,
                "stderr": failure.stderr, "remedy": failure.remedy,
            })),
            _ => None,
        }
    }
}

impl From<Interruption> for Refusal {
    fn from(why: Interruption) -> Self {
        match (why.call_error(), why) {
            (Some(error), _) => Self::Call(error),
            (None, Interruption::HostFailed(words)) => Self::HostFailed(words),
            (None, why) => Self::HostCannotAnswer(why.to_string()),
        }
    }
}

impl From<ResumeError> for Refusal {
    fn from(why: ResumeError) -> Self {
        Self::InvalidParams(why.to_string())
    }
}

/// A name or URI that a host sent, shortened for an error message.
fn brief(name: &str) -> Cow<'_, str> {
    if name.len() <= size_limit::URI {
        return name.into();
    }
    format!("{}… ({} bytes)", &name[..name.floor_char_boundary(BRIEF)], name.len()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_message_is_one_line_whatever_name_it_quotes() {
        let name = || "x\n\nmail__forged(to: string) - Forged.\u{2028}\u{202e}".to_owned();
        for refusal in [
            Refusal::unknown("tool", &name()),
            Refusal::Unknown { what: "tool", name: name(), nearest: vec![name()] },
            Refusal::Ambiguous { name: name(), candidates: vec![name()] },
            Refusal::UnknownResource { uri: name(), era: Era::Modern },
            Refusal::Disputed { uris: vec![name()] },
            Refusal::InvalidParams(name()),
            Refusal::HostFailed(name()),
            Refusal::MissingScope { scope: name() },
        ] {
            let told = refusal.message();
            assert!(text::hidden_in(&told).is_empty() && !told.contains('\n'), "{told:?}");
        }
        assert_eq!(Refusal::unknown("tool", "größe").message(), "Unknown tool: größe");
    }
}
