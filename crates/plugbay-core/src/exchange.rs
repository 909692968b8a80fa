//! The interface of host side and server side: calls go one way, answers and server requests the other.
//!
//! Both directions are plain function calls that never block, so neither side can stall the other.

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

/// The number of a call on its whole way: in the session, in the server's actor, and on the wire
/// to the server, as request id and as progress token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Mints tickets; shared by everything that may call a server.
#[derive(Debug, Default)]
pub struct Tickets(AtomicU64);

impl Tickets {
    /// Continues from this number: two processes that serve one host must not use the same numbers.
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
    /// Replaces the server's own call timeout.
    pub timeout: Option<Duration>,
    pub task_role: TaskRole,
}

/// The outcome of a call.
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

/// A server's request to a host. Its number names it on its whole way, as a ticket names a call, and is
/// the request id that a legacy host sees.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    pub number: Ticket,
    pub server: ServerName,
    /// The calls that it may belong to, oldest first: all calls of one host if the server does not say which.
    /// The request ends with the last of them.
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

    /// Whether it may belong to a call other than this one.
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
    /// The state of a task, in the format of this era; `id` is its span with quotes.
    Task {
        era: Era,
        id: Span,
        params: Span,
    },
}

/// Something of a server that a host subscribes to, by the server's own name for it: a JSON string.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubscriptionTarget {
    Resource(Bytes),
    /// A modern server sends notifications only of the tasks that were asked for.
    Task(Bytes),
}

/// The outcome of a server request.
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
    /// The call that carried it has ended without an answer to it: another call may carry it.
    LeftOpen,
}

/// Why a server request gets no answer.
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

/// A callback that hears the outcome of a server's start once; never if the server no longer exists.
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

/// A change of a server's lists on its way to hosts: the server has announced it, and nobody has the new
/// lists yet. Dropped when hosts can see them, or when there is nothing to see.
#[derive(Default)]
pub struct ListChange(Mutex<Vec<Box<dyn Send>>>);

impl ListChange {
    /// Keeps this guard until the change is over.
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

    /// Asks the server for its lists again.
    fn refresh(&self, server: &ServerName);

    /// Whether the server is not running and starts at its next use.
    fn is_idle(&self, server: &ServerName) -> bool;

    /// Whether no other session uses this instance of the server.
    fn is_own(&self, _: &ServerName) -> bool {
        true
    }

    /// Starts the server if it is not running, however recently it has failed.
    fn warm(&self, server: &ServerName, warmed: Warmed);

    /// A host has the server's tools listed: the server is not stopped when unused.
    fn hold(&self, server: &ServerName);

    /// A host that had them listed no longer has.
    fn release(&self, server: &ServerName);

    /// Ends a call without an answer. `notification` is the host's own cancellation.
    fn cancel(&self, server: &ServerName, ticket: Ticket, notification: Draft);

    /// Answers a server request. Does nothing if it is no longer open.
    fn reply(&self, server: &ServerName, server_request: Ticket, reply: Reply);

    /// Forwards a host's notification that only this server may know, or has asked for. A server that is not
    /// running misses it.
    fn notify(&self, server: &ServerName, notification: Bytes);

    /// A host's roots have changed: every server that was told of roots is notified.
    fn roots_changed(&self, notification: Bytes);

    /// A host subscribes to changes of this.
    fn watch(&self, server: &ServerName, what: SubscriptionTarget);

    /// A host that subscribed no longer wants to.
    fn unwatch(&self, server: &ServerName, what: SubscriptionTarget);

    /// The log level that the host registry wants has changed.
    fn log_level_changed(&self);

    /// The host registry has more client capabilities than before.
    fn client_capabilities_grew(&self);
}

/// The host side as the server side sees it: the sender of a call.
pub trait Caller: Send + Sync + std::fmt::Debug {
    fn answered(&self, ticket: Ticket, answer: Answer);

    /// The owner, if every request of a host is a caller of its own. `None`: the caller is a host itself.
    fn owner(&self) -> Option<[u8; 32]> {
        None
    }

    /// Whether the caller keeps up with its answers. Until it does, a reader that serves it alone should
    /// read no further ahead: unread data costs nothing. Never stops an answer.
    fn poll_ready(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    /// A `notifications/progress` of the server; `token` is the span of its progress token.
    fn progressed(&self, ticket: Ticket, notification: Bytes, token: Span);

    /// The client capabilities that servers of the modern era are told of.
    fn client_capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::NONE
    }

    /// The extensions that they are told of.
    fn extensions(&self) -> Extensions {
        Extensions::default()
    }

    /// The lowest level of log messages that are wanted; `None` leaves it to the server.
    fn log_level(&self) -> Option<Level> {
        None
    }

    /// The lists of the server have changed during this call: its host is notified before it gets the answer.
    fn lists_changing(&self, _call: Ticket, _change: &ListChange) {}

    /// A notification that nobody asked for; during this call, as far as one can tell.
    fn notified(&self, _during: Option<Ticket>, _notification: &ServerNotification) {}

    /// A server sends a request that this call can carry to the host. Unless it is refused at once,
    /// [`Servers::reply`] is called in time, or the server request is withdrawn.
    fn server_request(
        &self,
        _during: Option<Ticket>,
        _request: ServerRequest,
    ) -> Result<(), ServerRequestError> {
        Err(ServerRequestError::NoHost)
    }

    /// Whether the user of this call's host can log in at servers: the host opens URLs, and its user is the one who runs
    /// plugbay. The callers of a gateway that many share cannot: a login there belongs to its operator.
    fn can_log_in(&self, _call: Ticket) -> bool {
        false
    }

    /// The answer to a server request is no longer wanted. `notification` says so, with a hole for its number.
    fn withdrawn(&self, _during: Option<Ticket>, _question: Ticket, _notification: Draft) {}

    /// What a server request has led to is complete: `notifications/elicitation/complete`.
    fn completed(&self, _notification: Bytes) {}
}

impl dyn Caller + '_ {
    /// Whether a message for one of the two may be shown to the other.
    pub fn is_same_host(&self, other: &dyn Caller) -> bool {
        let owner = self.owner();
        std::ptr::addr_eq(self, other) || (owner.is_some() && owner == other.owner())
    }
}
