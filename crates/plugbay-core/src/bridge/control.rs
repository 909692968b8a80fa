//! Messages of a daemon to a bridge. Their method holds a random token, so that no server can forge one.

use bytes::Bytes;

use crate::wire::{Members, Span, string_value};

/// A control message of a daemon to a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// The state of the session, which a bridge hands back when it opens the session again.
    State(String),
    /// Another daemon takes new requests. This one still answers those in flight.
    HandOver,
    /// The user has stopped the daemon: the bridge opens its session again with the host's next message.
    Stopped,
}

/// The method of a control message.
pub fn control_method(token: &str, word: &str) -> String {
    format!("plugbay/{token}/{word}")
}

impl Control {
    pub fn word(&self) -> &'static str {
        match self {
            Self::State(_) => "state",
            Self::HandOver => "hand-over",
            Self::Stopped => "stopped",
        }
    }

    /// The control message for a connection with this token.
    pub fn message(&self, token: &str) -> Bytes {
        let params = match self {
            Self::State(state) => Some(format!(r#"{{"state":{}}}"#, serde_json::Value::from(state.as_str()))),
            Self::HandOver | Self::Stopped => None,
        };
        crate::wire::write::notification(
            &control_method(token, self.word()),
            params.as_deref().map(str::as_bytes),
        )
    }

    /// `None`: it is a message for the host.
    pub(super) fn read(method: &[u8], token: &str, message: &[u8], params: Option<&Span>) -> Option<Self> {
        let word = method.strip_prefix(b"plugbay/")?.strip_prefix(token.as_bytes())?.strip_prefix(b"/")?;
        match word {
            b"hand-over" => Some(Self::HandOver),
            b"stopped" => Some(Self::Stopped),
            _ => {
                let state = params.and_then(|params| Members::find(message, params, "state"));
                let state = state.and_then(|state| string_value(&message[state]));
                Some(Self::State(state.unwrap_or_default().into_owned()))
            }
        }
    }
}
