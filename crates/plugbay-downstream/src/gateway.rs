//! What every session shares.

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
    /// Told of every host that servers may ask something.
    pub host_registry: Arc<HostRegistry>,
    /// The calls of all hosts.
    pub suspended: Arc<SuspendedCalls>,
    /// Told when it is known what hosts can be asked, which servers want to know when they start.
    pub opened: Arc<Notify>,
    /// Told when a host has got its first list: what is not urgent can begin.
    pub first_list: Arc<Notify>,
    /// Counts the tools that are used, if the settings want it.
    pub usage_counts: Arc<UsageCounts>,
    /// Which have been used most so far, for a conversation that begins.
    pub learned: Arc<dyn Fn() -> Arc<Learned> + Send + Sync>,
    /// The hosts that are here.
    pub connected_hosts: ConnectedHosts,
    /// Told when somebody has switched something on or off.
    pub switched: Arc<Notify>,
    /// What words mean, for whoever searches by meaning.
    pub table: fn() -> Option<Arc<EmbeddingTable>>,
    /// Who helps with the ranking of what was found.
    pub ranker: Arc<Ranker>,
    /// Who runs agent runs, and on which terms.
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

    /// Waits until every server has been heard of; the catalog sees to it that this comes.
    pub(crate) async fn settled(&self) {
        let _ = self.snapshots.clone().wait_for(|snapshot| snapshot.settled).await;
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("settings", &self.settings()).finish_non_exhaustive()
    }
}
