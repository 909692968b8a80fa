//! What goes into a server's task and what comes out of it.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    catalog::Offer,
    era::Era,
    exchange::{Call, Reply, SubscriptionTarget, Ticket, Warmed},
    failure::Failure,
    server_state::ServerState,
    wire::Draft,
};
use tokio::sync::oneshot;

use crate::spec::ServerSpec;

#[derive(Debug)]
pub(crate) enum Command {
    Forward(Call),
    Cancel {
        ticket: Ticket,
        notification: Draft,
    },
    /// A host answers what the server has asked.
    Reply {
        server_request: Ticket,
        reply: Reply,
    },
    /// A host's notification, as it goes out.
    Notify(Bytes),
    RootsChanged(Bytes),
    /// Tell when this changes.
    Watch(SubscriptionTarget),
    Unwatch(SubscriptionTarget),
    /// Hosts want another level of the log than they did.
    LogLevelChanged,
    /// Hosts can do more than they could.
    AudienceGrew,
    /// Start if need be, and list again.
    Refresh,
    /// Start if need be, and tell how that went.
    Warm(Warmed),
    /// Whether it must not be put to rest.
    Held(bool),
    /// End the server and the task; the sender hears when nothing is left.
    Stop(oneshot::Sender<()>),
}

/// What the catalog hears from a server. The spec tells which server it was: after a reload another
/// one may bear the same name.
#[derive(Debug, Clone)]
pub struct Report {
    pub spec: Arc<ServerSpec>,
    pub outcome: Result<Arc<Offer>, Arc<Failure>>,
}

/// How a server is doing, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub condition: Condition,
    pub pid: Option<i32>,
    pub era: Option<Era>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// No process; the next call starts one.
    Asleep,
    Warming,
    Ready,
    Failed(Arc<Failure>),
}

impl Condition {
    pub fn server_state(&self) -> ServerState {
        match self {
            Self::Asleep => ServerState::Idle,
            Self::Warming => ServerState::Warming,
            Self::Ready => ServerState::Ready,
            Self::Failed(_) => ServerState::Error,
        }
    }
}

impl Default for Status {
    fn default() -> Self {
        Self { condition: Condition::Asleep, pid: None, era: None }
    }
}
