//! The commands that a server's actor takes, and what it reports.

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

/// A command of the host side to a server's actor.
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
    /// Hosts want another log level than before.
    LogLevelChanged,
    ClientCapabilitiesGrew,
    /// Start the server if it is not up, and list again.
    Refresh(Priority),
    /// Start the server if it is not up, and report the outcome.
    Warm(Warmed),
    /// Whether this user wants that the server is not stopped when it is idle.
    Hold {
        user: u64,
        held: bool,
    },
    /// Since when the server has been idle; `None`: it is in use, or does not run.
    IdleSince(oneshot::Sender<Option<Idle>>),
    /// Stop the server if it is idle, and say whether it was.
    Yield(oneshot::Sender<bool>),
    /// End the server and its actor; the sender fires when no process is left.
    Stop(oneshot::Sender<()>),
}

/// How dispensable an idle server is: the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Idle {
    /// A host has its tools in sight.
    pub(crate) held: bool,
    pub(crate) since: Instant,
}

/// What a server offers, or why it failed. The spec says which server it was: after a reload another one
/// may have the same name.
#[derive(Debug, Clone)]
pub struct Report {
    pub spec: Arc<ServerSpec>,
    pub outcome: Result<Arc<Offer>, Arc<Failure>>,
    /// How the next start speaks to the server.
    pub dialect: Dialect,
    pub terms: ListTerms,
    /// The change that this report brings to hosts: it is over when the last clone is dropped.
    pub change: Option<Arc<ListChange>>,
}

/// What the lists of a server may depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListTerms {
    /// What the server was told of hosts.
    pub told: Declaration,
    /// Hosts had sent no request to this process when it was asked for its lists: any other process would list the same.
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
    /// No process; the next call starts one.
    Idle,
    Warming,
    /// It is still starting after its start time-out.
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
