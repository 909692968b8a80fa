//! What every session shares.

use std::{fmt, sync::Arc};

use plugbay_core::{
    arguments,
    exchange::{Servers, Tickets},
    host_registry::HostRegistry,
    search::EmbeddingTable,
    surface::{Learned, Snapshot},
    usage_counts::UsageCounts,
};
use tokio::sync::{Notify, watch};

use crate::{agent::Agents, connected_hosts::ConnectedHosts, parked::Parking, ranking::Ranker};

/// The way to the servers and the latest view of what they offer.
#[derive(Clone)]
pub struct Gateway {
    pub servers: Arc<dyn Servers>,
    pub snapshots: watch::Receiver<Snapshot>,
    pub tickets: Arc<Tickets>,
    /// Told of every host that servers may ask something.
    pub host_registry: Arc<HostRegistry>,
    /// Calls whose hosts are away to find an answer.
    pub parking: Arc<Parking>,
    /// Told when it is known what hosts can be asked, which servers want to know when they start.
    pub opened: Arc<Notify>,
    /// Told when a host has got its first list: what is not urgent can begin.
    pub first_list: Arc<Notify>,
    /// Counts the tools that are used, if anybody wants to know.
    pub usage_counts: Option<Arc<UsageCounts>>,
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
    /// How many tools a search shows, unless it asks for another number.
    pub hits: usize,
    /// Whether the arguments of found tools are put right.
    pub repair: arguments::Mode,
    /// The longest message accepted from a host, in bytes.
    pub message_limit: usize,
}

impl Gateway {
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshots.borrow().clone()
    }

    /// Waits until every server has been heard of; the catalog sees to it that this comes.
    pub(crate) async fn settled(&self) {
        let _ = self.snapshots.clone().wait_for(|snapshot| snapshot.settled).await;
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("message_limit", &self.message_limit).finish_non_exhaustive()
    }
}
