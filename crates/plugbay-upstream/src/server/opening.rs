//! The first words with a server: which era it speaks, who it is, what it can do.

use std::time::Duration;

use bytes::Bytes;
use plugbay_core::{
    era::{self, Era},
    exchange::Tickets,
    wire::{Head, Incoming, Kind, Members, Span, string_value},
};
use serde_json::json;
use tokio::time::timeout;

use crate::link::Link;

/// How long a server may leave `server/discover` unanswered before it is taken for a legacy one.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// What a server said of itself.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    pub(crate) era: Option<Era>,
    pub(crate) info: Option<Bytes>,
    pub(crate) instructions: Option<String>,
    pub(crate) has_tools: bool,
}

#[derive(Debug)]
pub(crate) enum OpenError {
    /// The server went away while it was asked; `probing`: by the modern question, which some
    /// legacy servers do not survive.
    Closed {
        probing: bool,
    },
    Refused(String),
}

/// Asks a server of unknown era `server/discover` first and falls back to `initialize`.
pub(crate) async fn open(
    link: &mut Link,
    known: Option<Era>,
    tickets: &Tickets,
) -> Result<Opened, OpenError> {
    let mut opening = Opening { link, tickets };
    if known == Some(Era::Legacy) {
        return match opening.initialize().await? {
            Reply::Result(message, result) => Ok(opening.legacy(&message, &result)),
            // It was legacy when we last met; perhaps it has been renewed since.
            Reply::Error(text) => match opening.discover().await? {
                Some(Reply::Result(message, result)) => Ok(modern(&message, &result)),
                _ => Err(OpenError::Refused(text)),
            },
        };
    }
    if let Some(Reply::Result(message, result)) = opening.discover().await? {
        return Ok(modern(&message, &result));
    }
    match opening.initialize().await? {
        Reply::Result(message, result) => Ok(opening.legacy(&message, &result)),
        Reply::Error(text) => Err(OpenError::Refused(text)),
    }
}

/// The `_meta` members that each request to a modern server carries when its host sent none.
pub(crate) fn modern_fields() -> String {
    let fields = json!({
        era::VERSION_KEY: era::MODERN_VERSION,
        era::CLIENT_INFO_KEY: client_info(),
        era::CAPABILITIES_KEY: {},
    });
    let text = fields.to_string();
    text[1..text.len() - 1].to_owned()
}

fn client_info() -> serde_json::Value {
    json!({ "name": "plugbay", "version": env!("CARGO_PKG_VERSION") })
}

struct Opening<'a> {
    link: &'a mut Link,
    tickets: &'a Tickets,
}

enum Reply {
    Result(Bytes, Span),
    Error(String),
}

impl Opening<'_> {
    /// `None`: no answer in time.
    async fn discover(&mut self) -> Result<Option<Reply>, OpenError> {
        let id = self.tickets.next().0;
        let fields = modern_fields();
        self.link.connection.send(Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"server/discover","params":{{"_meta":{{{fields}}}}}}}"#
        )));
        match timeout(PROBE_PATIENCE, self.reply(id)).await {
            Ok(Some(reply)) => Ok(Some(reply)),
            Ok(None) => Err(OpenError::Closed { probing: true }),
            Err(_) => Ok(None),
        }
    }

    async fn initialize(&mut self) -> Result<Reply, OpenError> {
        let id = self.tickets.next().0;
        let version = era::negotiate(None);
        let request = json!({
            "jsonrpc": "2.0", "id": id, "method": "initialize",
            "params": { "protocolVersion": version, "capabilities": {}, "clientInfo": client_info() },
        });
        self.link.connection.send(Bytes::from(request.to_string()));
        self.reply(id).await.ok_or(OpenError::Closed { probing: false })
    }

    fn legacy(&mut self, message: &Bytes, result: &Span) -> Opened {
        let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.link.connection.send(Bytes::from_static(initialized));
        let info = Members::find(message, result, "serverInfo").map(|span| message.slice(span));
        Opened { era: Some(Era::Legacy), info, ..described(message, result) }
    }

    /// Reads until `id` is answered; `None` when the server has gone.
    async fn reply(&mut self, id: u64) -> Option<Reply> {
        let id = id.to_string();
        loop {
            let message = match self.link.next().await? {
                Incoming::Message(message) => message,
                Incoming::Noise(line) | Incoming::TooLong { start: line } => {
                    self.link.note(&line);
                    continue;
                }
            };
            let Ok(head) = Head::read(&message) else {
                self.link.note(&message);
                continue;
            };
            match (head.kind, head.payload) {
                (Kind::Result { id: span }, Some(result)) if message[span.clone()] == *id.as_bytes() => {
                    return Some(Reply::Result(message, result));
                }
                (Kind::Error { id: span }, Some(error))
                    if span.as_ref().is_none_or(|span| message[span.clone()] == *id.as_bytes()) =>
                {
                    return Some(Reply::Error(error_text(&message, &error)));
                }
                (Kind::Request { id, method }, _) => {
                    self.link.connection.send(answer(&message, &id, &method));
                }
                _ => {}
            }
        }
    }
}

/// What a server that asks something of its client hears while no host can be asked.
pub(crate) fn answer(message: &[u8], id: &Span, method: &Span) -> Bytes {
    let mut answer = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    answer.extend_from_slice(&message[id.clone()]);
    answer.extend_from_slice(match &message[method.clone()] {
        b"ping" => br#","result":{}}"#,
        _ => br#","error":{"code":-32601,"message":"Method not found"}}"#,
    });
    answer.into()
}

/// The words of an error that a server sent.
pub(crate) fn error_text(message: &[u8], error: &Span) -> String {
    let text = Members::find(message, error, "message")
        .and_then(|span| string_value(&message[span]).map(std::borrow::Cow::into_owned));
    text.unwrap_or_else(|| String::from_utf8_lossy(&message[error.clone()]).into_owned())
}

fn modern(message: &Bytes, result: &Span) -> Opened {
    let info = Members::find(message, result, "_meta")
        .and_then(|meta| Members::find(message, &meta, era::SERVER_INFO_KEY))
        .map(|span| message.slice(span));
    Opened { era: Some(Era::Modern), info, ..described(message, result) }
}

fn described(message: &Bytes, result: &Span) -> Opened {
    let instructions = Members::find(message, result, "instructions")
        .and_then(|span| Some(string_value(&message[span])?.into_owned()));
    let capabilities = Members::find(message, result, "capabilities");
    let has_tools = capabilities.is_some_and(|object| Members::find(message, &object, "tools").is_some());
    Opened { instructions, has_tools, ..Opened::default() }
}
