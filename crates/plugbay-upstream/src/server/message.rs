//! The commands for a server's actor, and its reports.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Dialect, Offer},
    declaration::Declaration,
    era::Era,
    exchange::{Call, ListChange, Reply, SubscriptionTarget, Ticket, Warmed},
    failure::Failure,
    server_state::ServerState,
    start::Priority,
    wire::Draft,
};
use tokio::sync::oneshot;

use crate::spec::ServerSpec;

/// A command from the host side to a server's actor.
#[derive(Debug)]
pub(crate) enum Command {
    Forward(Call),
    Cancel {
        ticket: Ticket,
        notification: Draft,
    },
    /// A host's answer to a request of the server.
    Reply {
        server_request: Ticket,
        reply: Reply,
    },
    /// A host's notification, as it is sent.
    Notify(Bytes),
    RootsChanged(Bytes),
    Subscribe(SubscriptionTarget),
    Unsubscribe(SubscriptionTarget),
    /// The log level that hosts want has changed.
    LogLevelChanged,
    ClientCapabilitiesGrew,
    /// Start the server if it is not up, and list again.
    Refresh(Priority),
    /// Start the server if it is not up, and report the outcome.
    Warm(Warmed),
    /// Whether this user wants the server to keep running when it is idle.
    Hold {
        user: u64,
        held: bool,
    },
    /// Report since when the server has been idle; `None` if it is in use or not running.
    IdleSince(oneshot::Sender<Option<Idle>>),
    /// Stop the server if it is idle, and report whether it was.
    Yield(oneshot::Sender<bool>),
    /// End the server and its actor; the sender fires when no process is left.
    Stop(oneshot::Sender<()>),
}

/// Orders idle servers by how dispensable they are: the smallest stops first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Idle {
    /// Whether a host view shows its tools.
    pub(crate) held: bool,
    pub(crate) since: Instant,
}

/// A report of a server: its offer, or why it failed. The spec identifies the server: after a reload another
/// one may have the same name.
#[derive(Debug, Clone)]
pub struct Report {
    pub spec: Arc<ServerSpec>,
    pub outcome: Result<Arc<Offer>, Arc<Failure>>,
    /// The dialect of the next start.
    pub dialect: Dialect,
    pub terms: ListTerms,
    /// The change that this report brings to hosts. It is complete when the last clone is dropped.
    pub change: Option<Arc<ListChange>>,
}

/// What the lists of a server may depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListTerms {
    /// The declaration that the server got.
    pub told: Declaration,
    /// Whether hosts had sent no request to this process before it listed. If so, any other process would
    /// list the same.
    pub untouched: bool,
}

/// The state of a server, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub condition: Condition,
    pub pid: Option<i32>,
    pub era: Option<Era>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// There is no process; the next call starts one.
    Idle,
    Warming,
    /// It is still starting after its start timeout.
    Slow(Arc<Failure>),
    Ready,
    /// It has failed, or needs a login.
    Error(Arc<Failure>),
}

impl Condition {
    pub fn server_state(&self) -> ServerState {
        match self {
            Self::Idle => ServerState::Idle,
            Self::Warming | Self::Slow(_) => ServerState::Warming,
            Self::Ready => ServerState::Ready,
            Self::Error(failure) => ServerState::of_failure(failure),
        }
    }
}

impl Default for Status {
    fn default() -> Self {
        Self { condition: Condition::Idle, pid: None, era: None }
    }
}
