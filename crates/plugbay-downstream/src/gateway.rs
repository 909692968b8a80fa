//! The state that all sessions share.

use std::{fmt, sync::Arc, time::Duration};

use plugbay_core::{
    declaration::Declaration,
    exchange::{Servers, Tickets},
    host_registry::HostRegistry,
    learned_shapes::LearnedShapes,
    name::ServerName,
    scope::SessionKey,
    script::Scripts,
    search::EmbeddingTable,
    surface::{Learned, LiveSettings, Snapshot},
    usage_counts::UsageCounts,
};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use crate::{
    agent_settings::Agents, connected_hosts::ConnectedHosts, principal::Principal, ranking::Ranker,
    remembered_searches::RememberedSearches, results::Results, suspended::SuspendedCalls, workers::Workers,
};

/// How long a host that lists only once waits for the lists that servers have for its kind of host.
const FITTING: Duration = Duration::from_secs(3);

/// The servers and the latest view of what they offer, with all other shared state.
#[derive(Clone)]
pub struct Gateway {
    pub servers: Arc<dyn Servers>,
    pub snapshots: watch::Receiver<Snapshot>,
    pub tickets: Arc<Tickets>,
    /// All hosts that servers may send requests to.
    pub host_registry: Arc<HostRegistry>,
    /// The calls of all hosts.
    pub suspended: Arc<SuspendedCalls>,
    pub host_events: HostEvents,
    pub usage: ToolUsage,
    /// The hosts that are connected.
    pub connected_hosts: ConnectedHosts,
    /// The embedding table for search.
    pub table: fn() -> Option<Arc<EmbeddingTable>>,
    /// Ranks search hits with a model, and remembers what each search led to.
    pub ranker: Arc<Ranker>,
    /// The model and the terms of agent runs.
    pub agents: Arc<Agents>,
    /// The threads for answers that take long.
    pub workers: Arc<Workers>,
    /// Results that were too large for their hosts, and jq filters for them.
    pub results: Arc<Results>,
    /// Runs the scripts of models.
    pub scripts: Arc<dyn Scripts>,
    /// Gives each session its own servers; `None`: all sessions share them.
    pub session_views: Option<SessionViews>,
    /// The sender of the requests; over HTTP each session has its own.
    pub principal: Principal,
}

/// Which tools are used, and what is learned of them.
#[derive(Clone)]
pub struct ToolUsage {
    /// Counts the tools that are used, if the settings want it.
    pub counts: Arc<UsageCounts>,
    /// The tools used most so far, for a new conversation.
    pub learned: Arc<dyn Fn() -> Arc<Learned> + Send + Sync>,
    /// The shapes of results, learned from a few of each tool.
    pub shapes: Arc<LearnedShapes>,
}

/// Events about hosts.
#[derive(Clone)]
pub struct HostEvents {
    /// Notified when a host has declared its capabilities, which servers need at startup.
    pub opened: Arc<Notify>,
    /// Called with each host's declaration: servers may have other lists for it.
    pub declared: HostDeclared,
    /// Notified when a host has got its first tool list, so that work of low priority can begin.
    pub first_list: Arc<Notify>,
    /// Notified when a host has activated or deactivated tools.
    pub switched: Arc<Notify>,
}

/// Called with a host's declaration.
pub type HostDeclared = Arc<dyn Fn(Arc<Declaration>) + Send + Sync>;

/// Makes the view of a session. Two views with one key have the same servers, which stop some time after the
/// last of these views is dropped.
pub type SessionViews = Arc<dyn Fn(&SessionKey) -> SessionView + Send + Sync>;

/// One session's view of the gateway: its servers, what they offer, and the hosts that they may send requests
/// to.
pub struct SessionView {
    pub servers: Arc<dyn Servers>,
    pub snapshots: watch::Receiver<Snapshot>,
    pub host_registry: Arc<HostRegistry>,
    /// The calls of the session's hosts; they go to the servers of this session.
    pub suspended: Arc<SuspendedCalls>,
}

impl Gateway {
    /// The gateway as seen by this session.
    #[must_use]
    pub fn enter(&self, session: &SessionKey) -> Self {
        let principal = self.principal.clone().marked_by(session);
        let Some(views) = &self.session_views else { return Self { principal, ..self.clone() } };
        let SessionView { servers, snapshots, host_registry, suspended } = views(session);
        let principal = principal.within(session);
        Self { servers, snapshots, host_registry, suspended, principal, ..self.clone() }
    }

    /// The catalog as the sender of the requests may see it.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let now = self.snapshots.borrow();
        self.principal.narrowed(&now).unwrap_or_else(|| now.clone())
    }

    /// Whether the sender of the requests may know of this server.
    pub(crate) fn sees(&self, server: &ServerName) -> bool {
        !self.principal.is_restricted() || self.principal.sees(server, &self.snapshots.borrow())
    }

    /// The memory of searches, if the sender of the requests is the user. Callers with names, or with several
    /// tokens, have none.
    pub(crate) fn searches(&self) -> Option<&RememberedSearches> {
        self.principal.account.get().is_user().then_some(&*self.ranker.searches)
    }

    /// The current settings: a reload may change them at any time.
    pub(crate) fn settings(&self) -> LiveSettings {
        self.snapshots.borrow().layout.settings
    }

    /// Waits until every server has listed its tools or failed. The publisher ends the wait for the others.
    pub(crate) async fn settled(&self) {
        let _ = self.snapshots.clone().wait_for(|snapshot| snapshot.settled).await;
    }
}

impl Gateway {
    /// Waits until the servers' lists for hosts with this declaration are known, but only for a moment.
    pub(crate) async fn fitting(&self, host: &Declaration) {
        let at_most = self.settings().list_wait.min(FITTING);
        let mut snapshots = self.snapshots.clone();
        let _ = timeout(at_most, snapshots.wait_for(|now| now.settled && now.fits(host))).await;
        self.settled().await;
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("settings", &self.settings()).finish_non_exhaustive()
    }
}
