//! The way to a running server: messages go in, messages come out, and it can be ended.

pub(crate) mod connection;
mod pipe;

use std::time::Duration;

use bytes::Bytes;
use plugbay_core::{catalog::Tool, exchange::Ticket, failure::Failure, wire::Incoming};

pub(crate) use pipe::PipeLink;
pub use pipe::{Launched, Launcher, launcher};

use crate::http::{HttpLink, TransportError};

/// What the server's task hears.
#[derive(Debug)]
pub(crate) enum LinkEvent {
    Incoming(Incoming),
    /// A request or a notification of the server, on the stream of this request of ours.
    During {
        ticket: Ticket,
        message: Bytes,
    },
    /// One request gets no answer; the others are not concerned.
    Failed {
        ticket: Ticket,
        error: TransportError,
    },
}

/// Either kind has the same dialect, so that a server's task need not know which it is.
pub(crate) enum Link {
    Pipe(Box<PipeLink>),
    Http(Box<HttpLink>),
}

impl Link {
    /// Queues a notification or an answer.
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

    /// Tells the server that an answer is no longer wanted.
    pub(crate) fn cancel(&mut self, ticket: Ticket, notification: Bytes) {
        match self {
            Self::Pipe(pipe) => pipe.connection.send(notification),
            Self::Http(http) => http.cancel(ticket, notification),
        }
    }

    /// What comes next; `None` when the server is gone. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<LinkEvent> {
        match self {
            Self::Pipe(pipe) => pipe.next().await.map(LinkEvent::Incoming),
            Self::Http(http) => http.next().await,
        }
    }

    /// Goes on sending without listening, for whoever cannot take more now. Never ends by itself.
    pub(crate) async fn keep_writing(&mut self) {
        match self {
            Self::Pipe(pipe) => pipe.connection.keep_writing().await,
            Self::Http(_) => std::future::pending().await, // requests are on their way by themselves
        }
    }

    /// Whether each request is answered by itself, so that one answer may overtake another.
    pub(crate) fn answers_apart(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// The opening is over: `version` was agreed upon, if the era agrees upon one.
    pub(crate) fn opened(&mut self, version: Option<&str>) {
        if let Self::Http(http) = self {
            http.opened(version);
        }
    }

    /// The tools that can be called over this link, which learns what it must know of them.
    pub(crate) fn callable(&mut self, tools: Vec<Tool>) -> Vec<Tool> {
        match self {
            Self::Pipe(_) => tools,
            Self::Http(http) => http.callable(tools),
        }
    }

    /// Requests of which the server has got nothing, so that another may have them.
    pub(crate) fn take_unsent(&mut self) -> Vec<(Ticket, Bytes)> {
        match self {
            Self::Pipe(pipe) => pipe.connection.take_unsent(),
            Self::Http(http) => http.take_unsent(),
        }
    }

    /// Requests that may still be answered, though the server is gone for all others.
    pub(crate) fn in_flight(&self) -> Vec<Ticket> {
        match self {
            Self::Pipe(_) => Vec::new(),
            Self::Http(http) => http.in_flight(),
        }
    }

    /// Why the server is gone. The answers to these requests are still waited for: [`Link::next`] ends
    /// whenever there is something for [`Link::take_unsent`], or nothing is under way any more.
    pub(crate) fn retire(&mut self, kept: &[Ticket]) -> Failure {
        match self {
            Self::Pipe(pipe) => pipe.failure("went away"),
            Self::Http(http) => http.retire(kept),
        }
    }

    /// How many bytes of notifications and answers the server has not taken yet.
    pub(crate) fn untaken(&self) -> usize {
        match self {
            Self::Pipe(pipe) => pipe.connection.backlog(),
            Self::Http(http) => http.untaken(),
        }
    }

    /// How many bytes the server has not taken yet.
    pub(crate) fn backlog(&self) -> usize {
        match self {
            Self::Pipe(pipe) => pipe.connection.backlog(),
            Self::Http(http) => http.backlog(),
        }
    }

    /// Gives back memory that is only kept for the next message.
    pub(crate) fn trim(&mut self) {
        if let Self::Pipe(pipe) = self {
            pipe.connection.trim();
        }
    }

    /// Whether the server has ever said anything.
    pub(crate) fn has_sent(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.connection.has_sent(),
            Self::Http(_) => true,
        }
    }

    /// Keeps something that was no message, for whoever looks for the reason of a failure.
    pub(crate) fn keep_line(&self, line: &[u8]) {
        match self {
            Self::Pipe(pipe) => pipe.keep_line(line),
            Self::Http(http) => http.keep_line(line),
        }
    }

    /// A failure of a server that is still there.
    pub(crate) fn failure(&self, what: impl Into<String>) -> Failure {
        match self {
            Self::Pipe(pipe) => pipe.failure(what),
            Self::Http(http) => http.failure(what),
        }
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        match self {
            Self::Pipe(pipe) => pipe.pid(),
            Self::Http(_) => None,
        }
    }

    /// Why the server is gone, once [`Link::next`] has said so. What is left of it is ended behind.
    pub(crate) async fn post_mortem(self, during: &str, grace: Duration) -> Failure {
        match self {
            Self::Pipe(pipe) => pipe.post_mortem(during, grace).await,
            Self::Http(http) => http.post_mortem(during, grace),
        }
    }

    /// Ends what there is to end; it may take this long twice.
    pub(crate) async fn end(self, grace: Duration) {
        match self {
            Self::Pipe(pipe) => pipe.end(grace).await,
            Self::Http(http) => http.end(grace).await,
        }
    }
}

/// The lines that tell most about a failure are the last.
pub(crate) const TAIL_LINES: usize = 8;
