//! Where the two sides meet: what the host side asks of servers, and what comes back.
//!
//! Both directions are plain calls that never wait, so neither side can stall the other.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;

use crate::{
    capabilities::ClientCapabilities,
    era::Era,
    extension::Extensions,
    failure::{CallError, Failure},
    level::Level,
    name::ServerName,
    task::TaskRole,
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
    /// Goes on from this number: two processes that serve one host must not use the same numbers.
    pub fn start_at(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

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
    pub task_role: TaskRole,
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

/// A server's request to a host. One number names it on its whole way, as a ticket does a call: it is
/// the id by which a legacy host is asked.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    pub number: Ticket,
    pub server: ServerName,
    /// The calls that it may be about, oldest first: all of one host where its server does not tell. It
    /// ends with the last of them.
    pub calls: Vec<Ticket>,
    /// The request as it came, read whole; `head` tells where its parts are.
    pub message: Bytes,
    pub head: Head,
    pub method: Span,
}

impl ServerRequest {
    pub fn method(&self) -> &[u8] {
        &self.message[self.method.clone()]
    }

    pub fn params(&self) -> Option<&Span> {
        self.head.payload.as_ref()
    }

    /// Whether it may be about another call than this.
    pub fn outlives(&self, call: Ticket) -> bool {
        self.calls.iter().any(|other| *other != call)
    }
}

/// A notification of a server that may concern many hosts.
#[derive(Debug)]
pub struct ServerNotification {
    pub server: ServerName,
    pub message: Bytes,
    pub topic: Topic,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    Log(Option<Level>),
    /// A method that only hosts may know.
    Unknown,
    /// A resource has changed; `uri` is its span with quotes.
    Updated {
        uri: Span,
        params: Span,
    },
    /// How a task is, in the words of this era; `id` is its span with quotes.
    Task {
        era: Era,
        id: Span,
        params: Span,
    },
}

/// Something of a server that a host wants to hear of when it changes, by the server's own name for it: a
/// JSON string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubscriptionTarget {
    Resource(Bytes),
    /// A modern server tells of those tasks alone that are asked for.
    Task(Bytes),
}

/// What ends a server request.
#[derive(Debug)]
pub enum Reply {
    /// The host's response as it came.
    Response {
        message: Bytes,
        head: Head,
    },
    /// Its result alone, as raw JSON.
    Result(Bytes),
    Refused(ServerRequestError),
    /// The call by which it was asked has ended without an answer to it: another may do.
    LeftOpen,
}

/// Why nobody answers a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ServerRequestError {
    #[error("no host can be asked")]
    NoHost,
    #[error("several hosts are being served, and nothing tells which of them this is for")]
    Ambiguous,
    #[error("the host has not declared the capability {0:?}")]
    Undeclared(&'static str),
    #[error("the protocol of this host has no such request")]
    Unknown,
    #[error("too many server requests are open")]
    TooMany,
    #[error("the call that this was asked for has ended")]
    CallEnded,
    #[error("the host has gone without an answer")]
    HostGone,
}

impl ServerRequestError {
    /// The JSON-RPC code: either there is no such method, or it was there and failed.
    pub fn code(self) -> i32 {
        match self {
            Self::NoHost | Self::Undeclared(_) | Self::Unknown => -32601,
            Self::Ambiguous | Self::TooMany | Self::CallEnded | Self::HostGone => -32000,
        }
    }
}

/// Hears once how a server's start has gone; never, if there is no such server any more.
pub struct Warmed(Box<dyn FnOnce(Result<(), Arc<Failure>>) + Send>);

impl Warmed {
    pub fn new(hear: impl FnOnce(Result<(), Arc<Failure>>) + Send + 'static) -> Self {
        Self(Box::new(hear))
    }

    pub fn tell(self, outcome: Result<(), Arc<Failure>>) {
        (self.0)(outcome);
    }
}

impl fmt::Debug for Warmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Warmed")
    }
}

/// A change of a server's lists on its way to hosts: it has told of the change, and nobody has the new lists yet. Dropped
/// when hosts can see them, or when there is nothing to see.
#[derive(Default)]
pub struct ListChange(Mutex<Vec<Box<dyn Send>>>);

impl ListChange {
    /// Drops this when the change is over.
    pub fn keep(&self, guard: Box<dyn Send>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(guard);
    }
}

impl fmt::Debug for ListChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ListChange")
    }
}

/// The server side as the host side sees it.
pub trait Servers: Send + Sync {
    /// Sends the request, starting the server if need be. Exactly one answer reaches the caller,
    /// unless the call is cancelled.
    fn forward(&self, server: &ServerName, call: Call);

    /// Asks the server again what it has.
    fn refresh(&self, server: &ServerName);

    /// Whether the server does not run, and starts at its next use.
    fn is_idle(&self, server: &ServerName) -> bool;

    /// Whether no other session uses this instance of the server.
    fn is_own(&self, _: &ServerName) -> bool {
        true
    }

    /// Starts the server if it is not running, however lately it has failed.
    fn warm(&self, server: &ServerName, warmed: Warmed);

    /// Somebody has its tools in sight: it is not put to rest.
    fn hold(&self, server: &ServerName);

    /// One who had them has not any more.
    fn release(&self, server: &ServerName);

    /// Ends a call without an answer. `notification` is the host's own cancellation.
    fn cancel(&self, server: &ServerName, ticket: Ticket, notification: Draft);

    /// Answers a server request. One that is no longer open has been dealt with.
    fn reply(&self, server: &ServerName, server_request: Ticket, reply: Reply);

    /// A host's notification that only this server may know, or has asked for. One that does not run misses it.
    fn notify(&self, server: &ServerName, notification: Bytes);

    /// A host's roots have changed: every server hears of it that was told of roots.
    fn roots_changed(&self, notification: Bytes);

    /// Somebody wants to hear when this changes.
    fn watch(&self, server: &ServerName, what: SubscriptionTarget);

    /// One who did wants it no more.
    fn unwatch(&self, server: &ServerName, what: SubscriptionTarget);

    /// The host registry wants another level of the log than it did.
    fn log_level_changed(&self);

    /// The host registry can do more than it could.
    fn client_capabilities_grew(&self);
}

/// The host side as the server side sees it: whoever sent the call.
pub trait Caller: Send + Sync + std::fmt::Debug {
    fn answered(&self, ticket: Ticket, answer: Answer);

    /// Whose this is, where every request of a host is a caller of its own. Any other is a host itself.
    fn holder(&self) -> Option<[u8; 32]> {
        None
    }

    /// Whether the caller keeps up with its answers. Until it does, whoever works for it alone should
    /// read no further ahead: what is not read costs nothing. Never stops an answer.
    fn poll_ready(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// A `notifications/progress` of the server; `token` is the span of its progress token.
    fn progressed(&self, ticket: Ticket, notification: Bytes, token: Span);

    /// What servers of the modern era are told that they can ask in return.
    fn client_capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::NONE
    }

    /// What else they are told that it knows.
    fn extensions(&self) -> Extensions {
        Extensions::default()
    }

    /// From which level on log messages are wanted; `None` leaves it to the server.
    fn log_level(&self) -> Option<Level> {
        None
    }

    /// The lists of the server have changed during this call: its host is notified before it gets the answer.
    fn lists_changing(&self, _call: Ticket, _change: &ListChange) {}

    /// Something that nobody asked for; for this call, as far as one can tell.
    fn told(&self, _during: Option<Ticket>, _news: &ServerNotification) {}

    /// A server asks something, and this call can carry it to the host. Unless it is refused at once,
    /// [`Servers::reply`] is called in time, or the server request is withdrawn.
    fn asked(&self, _during: Option<Ticket>, _question: ServerRequest) -> Result<(), ServerRequestError> {
        Err(ServerRequestError::NoHost)
    }

    /// Whether the user of this call's host can log in at servers: the host opens URLs, and its user is the one who runs
    /// plugbay. The callers of a gateway that many share cannot: a login there belongs to its operator.
    fn can_log_in(&self, _call: Ticket) -> bool {
        false
    }

    /// The answer to a server request is no longer wanted. `notification` says so, with a hole for its number.
    fn withdrawn(&self, _during: Option<Ticket>, _question: Ticket, _notification: Draft) {}

    /// Something that a server request has led to is over: `notifications/elicitation/complete`.
    fn completed(&self, _notification: Bytes) {}
}

impl dyn Caller + '_ {
    /// Whether what is meant for one of them may be shown to the other.
    pub fn is_same_host(&self, other: &dyn Caller) -> bool {
        let holder = self.holder();
        std::ptr::addr_eq(self, other) || (holder.is_some() && holder == other.holder())
    }
}
