//! The state that all sessions share.

use std::{fmt, sync::Arc};

use plugbay_core::{
    exchange::{Servers, Tickets},
    host_registry::HostRegistry,
    search::EmbeddingTable,
    surface::{Learned, LiveSettings, Snapshot},
    usage_counts::UsageCounts,
};
use tokio::sync::{Notify, watch};

use crate::{
    agent_settings::Agents, connected_hosts::ConnectedHosts, ranking::Ranker, suspended::SuspendedCalls,
};

/// The way to the servers and the latest view of what they offer.
#[derive(Clone)]
pub struct Gateway {
    pub servers: Arc<dyn Servers>,
    pub snapshots: watch::Receiver<Snapshot>,
    pub tickets: Arc<Tickets>,
    /// All hosts that servers may send requests to.
    pub host_registry: Arc<HostRegistry>,
    /// The calls of all hosts.
    pub suspended: Arc<SuspendedCalls>,
    /// Notified when a host has declared its capabilities, which servers need when they start.
    pub opened: Arc<Notify>,
    /// Notified when a host has got its first tool list, so that work of low priority can begin.
    pub first_list: Arc<Notify>,
    /// Counts the tools that are used, if the settings want it.
    pub usage_counts: Arc<UsageCounts>,
    /// The tools used most so far, for a new conversation.
    pub learned: Arc<dyn Fn() -> Arc<Learned> + Send + Sync>,
    /// The hosts that are connected.
    pub connected_hosts: ConnectedHosts,
    /// Notified when a host has activated or deactivated tools.
    pub switched: Arc<Notify>,
    /// The embedding table for search.
    pub table: fn() -> Option<Arc<EmbeddingTable>>,
    /// Ranks search hits with a model.
    pub ranker: Arc<Ranker>,
    /// The model and the terms of agent runs.
    pub agents: Arc<Agents>,
}

impl Gateway {
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshots.borrow().clone()
    }

    /// The settings as they are now: a reload may change them at any time.
    pub(crate) fn settings(&self) -> LiveSettings {
        self.snapshots.borrow().layout.settings
    }

    /// Waits until every server has listed its tools or failed. The catalog guarantees that this happens.
    pub(crate) async fn settled(&self) {
        let _ = self.snapshots.clone().wait_for(|snapshot| snapshot.settled).await;
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("settings", &self.settings()).finish_non_exhaustive()
    }
}
