//! The first words with a server: which era it speaks, who it is, what it can do.

use std::time::Duration;

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    catalog::ServerCapabilities,
    era::{self, Era},
    exchange::{Ticket, Tickets},
    extension::Extensions,
    host_registry::HostRegistry,
    level::Level,
    wire::{Head, Incoming, Kind, Members, Span, elements, string_value},
};
use serde_json::json;
use tokio::time::timeout;

use crate::{
    http::Trouble,
    link::{Heard, Link},
    process::text::clean,
};

/// A server that asks without reading our answers gets none beyond this.
pub(crate) const ANSWERS_LIMIT: usize = 1024 * 1024;

/// How long a server may leave `server/discover` unanswered before it is taken for a legacy one.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);

/// How long its answer to that question is waited for when it has refused the other one.
const LATE_PATIENCE: Duration = Duration::from_secs(10);
/// Less, once there is something to go on with: hosts give a server ten seconds to start.
const OVERTAKEN_PATIENCE: Duration = Duration::from_secs(5);

/// The error that refuses a protocol version and tells which ones there are.
const UNSUPPORTED_VERSION: &[u8] = b"-32022";

/// What a server said of itself.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    pub(crate) era: Option<Era>,
    pub(crate) info: Option<Bytes>,
    pub(crate) instructions: Option<String>,
    pub(crate) features: ServerCapabilities,
    pub(crate) extensions: Extensions,
    /// What a legacy server was told that its host can do.
    pub(crate) claimed: ClientCapabilities,
    pub(crate) claimed_extensions: Extensions,
    /// It has not answered the modern question.
    pub(crate) asked_in_vain: bool,
}

#[derive(Debug)]
pub(crate) enum OpenError {
    /// The server went away while it was asked; `probing`: by the modern question, which some
    /// legacy servers do not survive.
    Closed {
        probing: bool,
    },
    Refused(String),
    /// The question did not get through, or was turned away before the server read it.
    Undelivered(Trouble),
}

impl OpenError {
    /// Asking in another way would not help.
    fn is_final(&self) -> bool {
        matches!(self, Self::Undelivered(trouble) if trouble.is_final())
    }
}

/// Asks a server `server/discover` first, unless it is known to take that badly. One that refuses, or does
/// not answer soon, is asked to `initialize`; a slow modern server is then known by its late answer to the
/// first question.
pub(crate) async fn open(
    link: &mut Link,
    first: Era,
    tickets: &Tickets,
    host_registry: &HostRegistry,
) -> Result<Opened, OpenError> {
    let mut opening = Opening::new(link, tickets, host_registry);
    let mut probing = false; // the modern question is asked and not answered
    if first == Era::Modern {
        opening.ask_discover();
        match timeout(PROBE_PATIENCE, opening.reply()).await {
            Ok(Some((_, Reply::Result(message, result)))) => {
                opening.link.opened(None);
                return Ok(modern(&message, &result));
            }
            Ok(None) => return Err(OpenError::Closed { probing: true }),
            Ok(Some((_, Reply::No(error)))) if error.is_final() => return Err(error),
            Ok(Some((_, Reply::No(_)))) => {}
            Err(_) => probing = true,
        }
    }
    opening.ask_initialize();
    let (mut discovered, mut refusal): (Option<Opened>, Option<OpenError>) = (None, None);
    let mut initialized: Option<(Bytes, Span)> = None; // and the first question may still be answered
    loop {
        let patience = match (&discovered, &refusal, &initialized) {
            (Some(_), ..) => PROBE_PATIENCE,
            (None, None, None) => Duration::MAX,
            (None, None, Some(_)) => OVERTAKEN_PATIENCE,
            (None, ..) => LATE_PATIENCE,
        };
        let Ok(reply) = timeout(patience, opening.reply()).await else {
            if let Some((message, result)) = initialized {
                return Ok(Opened { asked_in_vain: true, ..opening.legacy(&message, &result) });
            }
            // Modern, and it passed over a method it does not know; or there is only the refusal.
            return discovered.ok_or_else(|| refusal.unwrap_or(OpenError::Closed { probing: false }));
        };
        match reply.ok_or(OpenError::Closed { probing: false })? {
            // It may have overtaken the answer to the first question.
            (Question::Initialize, Reply::Result(message, result))
                if probing && opening.link.answers_apart() =>
            {
                initialized = Some((message, result));
            }
            (Question::Initialize, Reply::Result(message, result)) => {
                return Ok(Opened { asked_in_vain: probing, ..opening.legacy(&message, &result) });
            }
            (Question::Discover, Reply::Result(message, result)) => {
                opening.link.opened(None);
                let opened = modern(&message, &result);
                if refusal.is_some() || opening.link.answers_apart() {
                    return Ok(opened);
                }
                probing = false;
                discovered = Some(opened);
            }
            (Question::Initialize, Reply::No(error)) => {
                if let Some(opened) = discovered {
                    return Ok(opened);
                }
                if probing {
                    refusal = Some(error); // the first question may still be answered
                } else if first == Era::Legacy && !error.is_final() {
                    // It was legacy when we last met; perhaps it has been renewed since.
                    opening.ask_discover();
                    (probing, refusal) = (true, Some(error));
                } else {
                    return Err(error);
                }
            }
            (Question::Discover, Reply::No(_)) => {
                probing = false;
                if let Some((message, result)) = initialized {
                    return Ok(opening.legacy(&message, &result));
                }
                if let Some(error) = refusal.take() {
                    return Err(error);
                }
            }
        }
    }
}

/// The `_meta` members that each request to a modern server carries when its host sent none.
pub(crate) fn modern_fields() -> String {
    modern_fields_with(ClientCapabilities::NONE, Extensions::default(), None, false)
}

/// The same for a host that can be asked something, or wants to read the log; `tasks`: the answer may be one.
pub(crate) fn modern_fields_with(
    client_capabilities: ClientCapabilities,
    extensions: Extensions,
    level: Option<Level>,
    tasks: bool,
) -> String {
    // How a host tells of changed roots is a thing of the other era.
    let declared = ClientCapabilities { roots_changes: false, ..client_capabilities }.declaration();
    let extensions = if tasks { extensions.with_tasks() } else { extensions };
    let declared = extensions.added_to(declared);
    let (version, info) = (era::MODERN_VERSION, client_info());
    let (version_key, info_key, key) = (era::VERSION_KEY, era::CLIENT_INFO_KEY, era::CAPABILITIES_KEY);
    let level = level.map(|level| format!(r#","{}":"{}""#, era::LOG_LEVEL_KEY, level.word()));
    let level = level.unwrap_or_default();
    format!(r#""{version_key}":"{version}","{info_key}":{info},"{key}":{declared}{level}"#)
}

fn client_info() -> serde_json::Value {
    json!({ "name": "plugbay", "version": env!("CARGO_PKG_VERSION") })
}

struct Opening<'a> {
    link: &'a mut Link,
    tickets: &'a Tickets,
    discover: u64,
    initialize: u64,
    last: Question,
    /// The modern question was refused with the version in which it was asked, and asked once more.
    insisted: bool,
    host_registry: &'a HostRegistry,
    claimed: ClientCapabilities,
    claimed_extensions: Extensions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Discover,
    Initialize,
}

enum Reply {
    Result(Bytes, Span),
    No(OpenError),
}

impl<'a> Opening<'a> {
    fn new(link: &'a mut Link, tickets: &'a Tickets, host_registry: &'a HostRegistry) -> Self {
        Self {
            link,
            tickets,
            discover: tickets.next().0,
            initialize: tickets.next().0,
            last: Question::Discover,
            insisted: false,
            host_registry,
            claimed: ClientCapabilities::NONE,
            claimed_extensions: Extensions::default(),
        }
    }

    fn ask_discover(&mut self) {
        self.last = Question::Discover;
        let fields = modern_fields();
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"server/discover","params":{{"_meta":{{{fields}}}}}}}"#,
            self.discover
        );
        self.link.request(Ticket(self.discover), Bytes::from(request));
    }

    fn ask_initialize(&mut self) {
        self.last = Question::Initialize;
        // As late as this: the host may have told of itself while the server was starting.
        (self.claimed, self.claimed_extensions) =
            (self.host_registry.client_capabilities(), self.host_registry.extensions());
        let (version, info) = (era::negotiate(None), client_info());
        let capabilities = self.claimed_extensions.added_to(self.claimed.declaration());
        let id = self.initialize;
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{info}}}}}"#
        );
        self.link.request(Ticket(self.initialize), Bytes::from(request));
    }

    fn legacy(&mut self, message: &Bytes, result: &Span) -> Opened {
        let version = Members::find(message, result, "protocolVersion")
            .and_then(|span| Some(string_value(&message[span])?.into_owned()))
            .unwrap_or_else(|| era::negotiate(None).to_owned());
        self.link.opened(Some(&version));
        let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.link.send(Bytes::from_static(initialized));
        let info = Members::find(message, result, "serverInfo").map(|span| message.slice(span));
        Opened {
            era: Some(Era::Legacy),
            info,
            claimed: self.claimed,
            claimed_extensions: self.claimed_extensions.clone(),
            ..described(message, result, Era::Legacy)
        }
    }

    /// Reads until one of our questions is answered; `None` when the server has gone.
    async fn reply(&mut self) -> Option<(Question, Reply)> {
        loop {
            let message = match self.link.next().await? {
                Heard::Incoming(Incoming::Message(message)) | Heard::During { message, .. } => message,
                Heard::Incoming(
                    Incoming::Noise(line) | Incoming::NotText(line) | Incoming::TooLong { start: line, .. },
                ) => {
                    self.link.note(&line);
                    continue;
                }
                Heard::Failed { ticket, trouble } => match self.question_of(ticket.0) {
                    Some(question) => {
                        return Some((question, Reply::No(OpenError::Undelivered(trouble))));
                    }
                    None => continue,
                },
            };
            let Ok(head) = Head::read(&message) else {
                self.link.note(&message);
                continue;
            };
            match (head.kind, head.payload) {
                (Kind::Result { id }, Some(result)) => match self.question(&message[id]) {
                    Some(Question::Discover) if !speaks_modern(&message, &result) => {
                        let error = OpenError::Refused("names no version that we speak".to_owned());
                        return Some((Question::Discover, Reply::No(error)));
                    }
                    Some(question) => return Some((question, Reply::Result(message, result))),
                    None => {}
                },
                (Kind::Error { id }, Some(error)) => {
                    // An error without an id is about what was said last.
                    let question = id.map_or(Some(self.last), |id| self.question(&message[id]));
                    if question == Some(Question::Discover) && self.insists(&message, &error) {
                        continue;
                    }
                    if let Some(question) = question {
                        let error = OpenError::Refused(error_text(&message, &error));
                        return Some((question, Reply::No(error)));
                    }
                }
                (Kind::Request { id, method }, _) if self.link.untaken() < ANSWERS_LIMIT => {
                    self.link.send(answer(&message, &id, &method));
                }
                _ => {}
            }
        }
    }

    /// Asks once more where a server refuses our version and says in the same breath that it speaks it.
    fn insists(&mut self, message: &[u8], error: &Span) -> bool {
        let is_refusal = Members::find(message, error, "code")
            .is_some_and(|code| message[code] == *UNSUPPORTED_VERSION && !self.insisted);
        let supported = Members::find(message, error, "data")
            .and_then(|data| Members::find(message, &data, "supported"))
            .is_some_and(|versions| names_our_version(message, &versions));
        if is_refusal && supported {
            self.insisted = true;
            self.discover = self.tickets.next().0;
            self.ask_discover();
        }
        is_refusal && supported
    }

    fn question(&self, id: &[u8]) -> Option<Question> {
        self.question_of(std::str::from_utf8(id).ok()?.parse().ok()?)
    }

    fn question_of(&self, id: u64) -> Option<Question> {
        if id == self.discover {
            Some(Question::Discover)
        } else {
            (id == self.initialize).then_some(Question::Initialize)
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

/// The words of an error that a server sent, safe to show.
pub(crate) fn error_text(message: &[u8], error: &Span) -> String {
    let text = Members::find(message, error, "message").and_then(|span| string_value(&message[span]));
    clean(text.as_deref().map_or(&message[error.clone()], str::as_bytes))
}

/// Some legacy servers answer everything that they do not know, with nothing in it.
fn speaks_modern(message: &[u8], result: &Span) -> bool {
    match Members::find(message, result, "supportedVersions") {
        Some(versions) => names_our_version(message, &versions),
        None => Members::find(message, result, "capabilities").is_some(),
    }
}

fn names_our_version(message: &[u8], versions: &Span) -> bool {
    let mut versions = elements(message, versions).into_iter();
    versions.any(|version| string_value(&message[version]).as_deref() == Some(era::MODERN_VERSION))
}

fn modern(message: &Bytes, result: &Span) -> Opened {
    let info = Members::find(message, result, "_meta")
        .and_then(|meta| Members::find(message, &meta, era::SERVER_INFO_KEY))
        .map(|span| message.slice(span));
    Opened { era: Some(Era::Modern), info, ..described(message, result, Era::Modern) }
}

fn described(message: &Bytes, result: &Span, era: Era) -> Opened {
    let instructions = Members::find(message, result, "instructions")
        .and_then(|span| Some(string_value(&message[span])?.into_owned()));
    let capabilities = Members::find(message, result, "capabilities");
    let declared =
        |object: Span| (ServerCapabilities::read(message, &object, era), Extensions::read(message, &object));
    let (features, extensions) = capabilities.map(declared).unwrap_or_default();
    Opened { instructions, features, extensions, ..Opened::default() }
}
