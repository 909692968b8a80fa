//! The link to a running server, over pipes or HTTP: it sends, receives, and ends the server.

pub(crate) mod connection;
mod pipe;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    exchange::Ticket,
    failure::Failure,
    wire::{Head, Incoming, Kind, Malformed, string_value},
};

use tokio::task::{JoinHandle, spawn_blocking};

pub(crate) use pipe::PipeLink;
pub use pipe::{Launched, Launcher, StderrSinks, launcher};

use crate::{
    http::{HttpLink, Mirrors, TransportError},
    process::StderrRing,
};

/// An event of a link.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    Incoming(Incoming),
    /// A message that was parsed.
    Read(ReadMessage),
    /// One request gets no response; others are not affected.
    Failed {
        ticket: Ticket,
        error: TransportError,
    },
    /// The server has rejected a request, and only a login can help. The request waits for it and is sent
    /// again.
    NeedsLogin {
        ticket: Ticket,
        failure: Arc<Failure>,
    },
}

/// A server's message, with its parsed envelope or the reason why it is unusable.
#[derive(Debug)]
pub(crate) struct ReadMessage {
    pub(crate) message: Bytes,
    pub(crate) head: Result<Head, Malformed>,
    /// The request on whose response stream the message came.
    pub(crate) during: Option<Ticket>,
}

/// A message longer than this is parsed in another thread, so that other servers are served meanwhile.
const LONG: usize = 1 << 20;

impl ReadMessage {
    /// Starts a thread to parse a long message. `Err` returns a short one.
    pub(crate) fn of_long(message: Bytes) -> Result<JoinHandle<Self>, Bytes> {
        if message.len() <= LONG {
            return Err(message);
        }
        Ok(spawn_blocking(move || Self::of(message, None)))
    }

    pub(crate) fn of(message: Bytes, during: Option<Ticket>) -> Self {
        let head = Head::read(&message);
        Self { message, head, during }
    }

    /// The raw id of the request that the message answers, with a result or an error.
    pub(crate) fn answered_id(&self) -> Option<&[u8]> {
        let message = &self.message;
        match &self.head {
            Ok(Head { kind: Kind::Result { id } | Kind::Error { id: Some(id) }, .. }) => {
                Some(&message[id.clone()])
            }
            Ok(_) => None,
            Err(Malformed { answers: Some(id), .. }) => Some(&message[id.clone()]),
            Err(_) => Head::id_of_truncated_response(message, message),
        }
    }
}

/// The ticket in an id that plugbay wrote.
pub(crate) fn ticket(id: &[u8]) -> Option<Ticket> {
    std::str::from_utf8(id).ok()?.parse().ok().map(Ticket)
}

/// The ticket that the id of a response stands for. An id of the wrong kind, such as `"5"` or `5.0` for 5,
/// means the same request: only plugbay makes ids, and each is a unique number.
pub(crate) fn answered_ticket(id: &[u8]) -> Option<Ticket> {
    /// Above this, floating-point numbers cannot represent every whole number.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Some(text) = string_value(id).filter(|_| id.starts_with(b"\"")) {
        let ticket = ticket(text.as_bytes())?;
        return (ticket.0.to_string() == *text).then_some(ticket);
    }
    ticket(id).or_else(|| {
        let number: f64 = std::str::from_utf8(id).ok()?.parse().ok()?;
        let is_whole = number.fract() == 0.0 && (0.0..EXACT).contains(&number);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and fits")]
        is_whole.then_some(Ticket(number as u64))
    })
}

/// A link of either kind; the actor need not know which one.
pub(crate) enum Link {
    Pipe(Box<PipeLink>),
    Http(Box<HttpLink>),
}

impl Link {
    /// Queues a notification or a response.
    pub(crate) fn send(&mut self, message: Bytes) {
        match self {
            Self::Pipe(pipe) => pipe.connection.send(message),
            Self::Http(http) => http.send(message),
        }
    }

    /// Queues a request.
    pub(crate) fn request(&mut self, ticket: Ticket, message: Bytes) {
        match self {
            Self::Pipe(pipe) => pipe.connection.request(ticket, message),
            Self::Http(http) => http.request(ticket, message),
        }
    }

    /// Tells the server that a response is no longer needed.
    pub(crate) fn cancel(&mut self, ticket: Ticket, notification: Bytes) {
        match self {
            Self::Pipe(pipe) => pipe.connection.send(notification),
            Self::Http(http) => http.cancel(ticket, notification),
        }
    }

    /// Ends a request that waits for a login: the server has not carried it out.
    pub(crate) fn abandon(&mut self, ticket: Ticket) {
        if let Self::Http(http) = self {
            http.abandon(ticket);
        }
    }

    /// The next event; `None` when the server is gone. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<LinkEvent> {
        match self {
            Self::Pipe(pipe) => pipe.next_read().await,
            Self::Http(http) => http.next().await,
        }
    }

    /// Goes on writing without reading, for the time when a caller cannot take more. Never ends by itself.
    pub(crate) async fn keep_writing(&mut self) {
        match self {
            Self::Pipe(pipe) => pipe.connection.keep_writing().await,
            Self::Http(_) => std::future::pending().await, // each request has its own tokio task
        }
    }

    /// Whether one response may overtake another.
    pub(crate) fn reorders_responses(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Notes that the server is open; `version` is the negotiated one, `None` for a modern server.
    pub(crate) fn opened(&mut self, version: Option<&str>) {
        if let Self::Http(http) = self {
            http.opened(version);
        }
    }

    /// Whether requests repeat arguments in headers.
    pub(crate) fn mirrors_arguments(&self) -> bool {
        match self {
            Self::Pipe(_) => false,
            Self::Http(http) => http.mirrors_arguments(),
        }
    }

    /// Sets the arguments that requests repeat in headers.
    pub(crate) fn set_mirrors(&mut self, mirrors: Mirrors) {
        if let Self::Http(http) = self {
            http.set_mirrors(mirrors);
        }
    }

    /// Takes the requests of which nothing was sent, so that another server can get them.
    pub(crate) fn take_unsent(&mut self) -> Vec<(Ticket, Bytes)> {
        match self {
            Self::Pipe(pipe) => pipe.connection.take_unsent(),
            Self::Http(http) => http.take_unsent(),
        }
    }

    /// Requests that may still be answered, though nothing more can be sent.
    pub(crate) fn in_flight(&self) -> Vec<Ticket> {
        match self {
            Self::Pipe(_) => Vec::new(),
            Self::Http(http) => http.in_flight(),
        }
    }

    /// Retires the link; returns why the server is gone. The link still waits for the responses to these
    /// requests: [`Link::next`] ends when [`Link::take_unsent`] has something, or nothing is in flight any
    /// more.
    pub(crate) fn retire(&mut self, kept: &[Ticket]) -> Failure {
        match self {
            Self::Pipe(pipe) => pipe.failure("went away"),
            Self::Http(http) => http.retire(kept),
        }
    }

    /// How many bytes of notifications and responses the server has not read yet.
    pub(crate) fn untaken(&self) -> usize {
        match self {
            Self::Pipe(pipe) => pipe.connection.backlog(),
            Self::Http(http) => http.untaken(),
        }
    }

    /// How many bytes the server has not read yet.
    pub(crate) fn backlog(&self) -> usize {
        match self {
            Self::Pipe(pipe) => pipe.connection.backlog(),
            Self::Http(http) => http.backlog(),
        }
    }

    /// Releases memory that is kept only for the next message.
    pub(crate) fn trim(&mut self) {
        if let Self::Pipe(pipe) = self {
            pipe.connection.trim();
        }
    }

    /// Whether the server has ever sent a message.
    pub(crate) fn has_sent(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.connection.has_sent(),
            Self::Http(_) => true,
        }
    }

    /// Keeps a line that was not a message: it may explain a failure.
    pub(crate) fn keep_line(&self, line: &[u8]) {
        match self {
            Self::Pipe(pipe) => pipe.keep_line(line),
            Self::Http(http) => http.keep_line(line),
        }
    }

    /// A failure of a server that is still running.
    pub(crate) fn failure(&self, what: impl Into<String>) -> Failure {
        match self {
            Self::Pipe(pipe) => pipe.failure(what),
            Self::Http(http) => http.failure(what),
        }
    }

    /// The evidence for a failure of this server; also usable while the link is in use.
    pub(crate) fn witness(&self) -> Witness {
        match self {
            Self::Pipe(pipe) => pipe.witness(),
            Self::Http(http) => http.witness(),
        }
    }

    /// Whether messages to the server have headers but the server answers with lines.
    pub(crate) fn answers_by_lines(&self) -> bool {
        matches!(self, Self::Pipe(pipe) if pipe.connection.answers_by_lines())
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        match self {
            Self::Pipe(pipe) => pipe.pid(),
            Self::Http(_) => None,
        }
    }

    /// The reason why the server is gone, once [`Link::next`] has returned `None`. Its processes are ended in
    /// the background.
    pub(crate) async fn post_mortem(self, during: &str, grace: Duration) -> Failure {
        match self {
            Self::Pipe(pipe) => pipe.post_mortem(during, grace).await,
            Self::Http(http) => http.post_mortem(during, grace),
        }
    }

    /// Ends the server; that may take `grace` twice.
    pub(crate) async fn end(self, grace: Duration) {
        match self {
            Self::Pipe(pipe) => pipe.end(grace).await,
            Self::Http(http) => http.end(grace).await,
        }
    }
}

/// The last lines that a server wrote. Clones show the same lines.
#[derive(Clone)]
pub(crate) struct Witness {
    pub(crate) stderr: StderrRing,
    /// Lines on stdout that were not messages.
    pub(crate) text: Option<StderrRing>,
}

impl Witness {
    /// A failure of a server that is still running.
    pub(crate) fn failure(&self, what: impl Into<String>) -> Failure {
        let what = self.stderr.secrets().hide(what.into());
        let failure = Failure::new(what, self.stderr.tail(TAIL_LINES));
        match &self.text {
            Some(text) => failure.with_stdout(text.tail(TEXT_LINES)),
            None => failure,
        }
    }
}

/// How many of the last lines of stderr a failure shows.
const TAIL_LINES: usize = 40;
/// How many stdout lines that were not messages a failure shows.
const TEXT_LINES: usize = 3;
