//! The decisions of the table, which the driver carries out.

use std::time::{Duration, Instant};

use super::{call::Ended, repeat::HostRequest};
use crate::{
    exchange::{Answer, ServerRequest, Ticket},
    failure::{CallError, Limit},
    name::ServerName,
    task::TaskRole,
    wire::{Draft, Span},
};

/// An action for the driver; the table has already changed.
#[derive(Debug)]
pub enum Action<H> {
    /// The server's answer goes to the host.
    Deliver(Ended<H>, Answer),
    /// The call ends with an error of ours.
    Fail(Ended<H>, Interruption),
    /// Nobody came back for the call. `true`: the server still works on it.
    Expire(Ended<H>, bool),
    /// The server gets another request under a ticket of its own; another call may carry what is `left_open`.
    Send { call: Ticket, sent: Ticket, server: ServerName, next: NextRequest, left_open: Vec<Ticket> },
    /// A legacy host is asked what a modern server wants to know.
    AskHost { call: Ticket, sent: Ticket, requests: Vec<HostRequest> },
    /// A modern host is told what the server asks, and has to come back before `until`.
    Present { call: Ticket, host: H, requests: Vec<ServerRequest>, until: Instant },
}

/// A call whose modern host has come back.
#[derive(Debug)]
pub struct Resumed<H> {
    pub server: ServerName,
    /// The server requests whose answers are still wanted.
    pub wanted: Vec<Ticket>,
    pub action: Option<Action<H>>,
}

/// How a server request gets to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// The table keeps it for a modern host.
    Kept,
    /// A legacy host is asked at once.
    Directly,
}

/// Why a host that comes back finds no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    #[error("the call of this \"requestState\" has ended")]
    Ended,
    #[error("the call of this \"requestState\" is being waited for already")]
    WaitedFor,
}

/// The next request of a call that goes on.
#[derive(Debug)]
pub struct NextRequest {
    pub request: Draft,
    pub params: Span,
    pub task_role: TaskRole,
    pub timeout: Option<Duration>,
}

/// Why plugbay ends a call itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Interruption {
    /// The server needs an answer that the host cannot give.
    #[error("server {:?} sent a request that the host cannot answer: {why}", server.as_str())]
    CannotAsk { server: ServerName, why: String },
    /// The host was asked and answered with this error.
    #[error("{0}")]
    HostFailed(String),
    /// The call took longer than it may.
    #[error("the call took longer than {after:?}")]
    TimedOut { server: ServerName, after: Duration },
}

impl Interruption {
    /// The same as the error of a call, if it is one.
    pub fn call_error(&self) -> Option<CallError> {
        match self {
            Self::TimedOut { server, after } => {
                Some(CallError::TimedOut { server: server.clone(), after: *after, limit: Limit::Call })
            }
            Self::CannotAsk { .. } | Self::HostFailed(_) => None,
        }
    }
}
