//! Where the two sides meet: what the host side asks of servers, and what comes back.
//!
//! Both directions are plain calls that never wait, so neither side can stall the other.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;

use crate::{
    era::Era,
    failure::CallError,
    name::ServerName,
    wire::{Draft, Head, Span},
};

/// One number names a call on its whole way: in the session, in the server's task, and on the wire
/// to the server, as request id and as progress token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Mints tickets; shared by everything that may call a server.
#[derive(Debug, Default)]
pub struct Tickets(AtomicU64);

impl Tickets {
    pub fn next(&self) -> Ticket {
        Ticket(self.0.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// A host's request that goes to a server.
#[derive(Debug)]
pub struct Call {
    pub ticket: Ticket,
    pub caller: Arc<dyn Caller>,
    pub request: Draft,
    pub era: Era,
    /// Where the request's `params` are.
    pub params: Option<Span>,
    /// Instead of the server's own call timeout.
    pub timeout: Option<Duration>,
}

/// What ends a call.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The server's response as it came. `head` tells where its id and payload are.
    Response {
        message: Bytes,
        head: Head,
        era: Era,
    },
    Failed(CallError),
}

/// The server side as the host side sees it.
pub trait Servers: Send + Sync {
    /// Sends the request, starting the server if need be. Exactly one answer reaches the caller,
    /// unless the call is cancelled.
    fn forward(&self, server: &ServerName, call: Call);

    /// Asks every server again what it has.
    fn refresh(&self);

    /// Ends a call without an answer. `notification` is the host's own cancellation.
    fn cancel(&self, server: &ServerName, ticket: Ticket, notification: Draft);
}

/// The host side as the server side sees it: whoever sent the call.
pub trait Caller: Send + Sync + std::fmt::Debug {
    fn answered(&self, ticket: Ticket, answer: Answer);

    /// Whether the caller keeps up with its answers. Until it does, whoever works for it alone should
    /// read no further ahead: what is not read costs nothing. Never stops an answer.
    fn poll_ready(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// A `notifications/progress` of the server; `token` is the span of its progress token.
    fn progressed(&self, ticket: Ticket, notification: Bytes, token: Span);
}
