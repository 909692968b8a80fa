//! The only writer of the catalog: it takes reports of servers, publishes snapshots, and saves offers in the cache.

mod preparer;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use plugbay_core::{
    auto,
    catalog::{Catalog, Change, Dialect},
    failure::Failure,
    name::ServerName,
    surface::{Layout, Snapshot},
};
use plugbay_upstream::Report;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};

use self::preparer::Preparer;
use crate::{
    cache::{Cache, CachedOffer},
    config::identity,
};

/// The part of the configuration that the catalog depends on.
#[derive(Debug, Clone, Default)]
pub struct CatalogConfig {
    pub layout: Arc<Layout>,
    /// The launch identity of each server; `None` for a server that cannot be started.
    pub servers: BTreeMap<ServerName, Option<String>>,
    /// Why those cannot be started.
    pub broken: BTreeMap<ServerName, Arc<Failure>>,
    /// How long a first list may wait for servers that have never connected.
    pub list_wait: Duration,
}

/// A new configuration for the running publisher, and where the dialects of its servers go.
pub struct Reconfigure {
    pub config: CatalogConfig,
    pub dialects: oneshot::Sender<BTreeMap<ServerName, Dialect>>,
}

pub struct Publisher {
    catalog: Arc<Catalog>,
    config: CatalogConfig,
    cache: Cache,
    /// Servers that a first list does not wait for: cached, listed, or failed.
    known: BTreeSet<ServerName>,
    snapshots: watch::Sender<Snapshot>,
    /// Since when a first list waits for servers that have never connected.
    waiting_since: Instant,
    preparer: Preparer,
}

impl Publisher {
    pub fn new(cache: Cache) -> Self {
        let catalog = Arc::new(Catalog::default());
        let empty = Snapshot::new(Arc::clone(&catalog), Arc::default(), false);
        Self {
            catalog,
            config: CatalogConfig::default(),
            cache,
            known: BTreeSet::new(),
            snapshots: watch::Sender::new(empty),
            waiting_since: Instant::now(),
            preparer: Preparer::default(),
        }
    }

    pub fn snapshots(&self) -> watch::Receiver<Snapshot> {
        self.snapshots.subscribe()
    }

    /// Takes a new set of servers; the next snapshot holds what the cache has of them. Returns their dialects.
    pub fn configure(&mut self, next: CatalogConfig) -> BTreeMap<ServerName, Dialect> {
        let previous = std::mem::replace(&mut self.config, next);
        for (name, identity) in &previous.servers {
            if self.config.servers.get(name) != Some(identity) {
                self.known.remove(name);
                self.catalog = Arc::new(self.catalog.apply(Change::Forgotten(name.clone())));
            }
        }
        for (name, identity) in &self.config.servers {
            if previous.servers.get(name) == Some(identity) {
                continue;
            }
            match identity.as_ref().map_or(CachedOffer::NoAnswer, |identity| self.cache.load(identity)) {
                CachedOffer::Absent => self.waiting_since = Instant::now(),
                CachedOffer::NoAnswer => {
                    self.known.insert(name.clone());
                }
                CachedOffer::Offer(offer) => {
                    self.known.insert(name.clone());
                    self.catalog = Arc::new(self.catalog.apply(Change::Remembered(name.clone(), offer)));
                }
            }
        }
        for (name, failure) in self.config.broken.clone() {
            self.apply(Change::Failed(name, failure));
        }
        self.publish();
        self.catalog.iter().map(|(name, entry)| (name.clone(), entry.offer.dialect)).collect()
    }

    /// Runs as long as there are senders of both kinds.
    pub async fn run(
        mut self,
        mut reports: mpsc::UnboundedReceiver<Report>,
        mut configs: mpsc::UnboundedReceiver<Reconfigure>,
    ) {
        loop {
            let waiting = !self.snapshots.borrow().settled;
            let wait_until = self.waiting_since + self.config.list_wait;
            tokio::select! {
                report = reports.recv() => match report {
                    Some(report) => {
                        // Servers that start together often answer together: one snapshot serves them all.
                        let mut changed = self.take_report(report);
                        while let Ok(report) = reports.try_recv() {
                            changed |= self.take_report(report);
                        }
                        if changed { self.publish() } else { self.publish_unchanged() }
                    }
                    None => break,
                },
                config = configs.recv() => match config {
                    Some(Reconfigure { config, dialects }) => { let _ = dialects.send(self.configure(config)); }
                    None => break,
                },
                () = sleep_until(wait_until), if waiting => self.stop_waiting(),
            }
        }
        self.cache.finish();
    }

    /// Returns whether the offer of a server has changed.
    fn take_report(&mut self, Report { spec, outcome }: Report) -> bool {
        let name = spec.name.clone();
        // A server that was removed or replaced may still send a report.
        if self.config.servers.get(&name) != Some(&Some(identity(&spec))) {
            return false;
        }
        self.known.insert(name.clone());
        let known = self.catalog.get(&name).map(|entry| Arc::clone(&entry.offer));
        match (outcome, known) {
            // Nearly always the offer is the same: then nothing is saved and no list is made anew.
            (Ok(offer), Some(known)) if *known == *offer => {
                self.apply(Change::Listed(name, known));
                false
            }
            (Ok(offer), _) => {
                self.save(&name, &CachedOffer::Offer(Arc::clone(&offer)));
                self.apply(Change::Listed(name, offer));
                true
            }
            (Err(failure), known) => {
                if known.is_none() {
                    self.save(&name, &CachedOffer::NoAnswer);
                }
                self.apply(Change::Failed(name, failure));
                false
            }
        }
    }

    fn apply(&mut self, change: Change) {
        self.catalog = Arc::new(self.catalog.apply(change));
    }

    /// Servers that have not answered by now are not waited for, in this run or the next.
    fn stop_waiting(&mut self) {
        let silent: Vec<_> =
            self.config.servers.keys().filter(|name| !self.known.contains(*name)).cloned().collect();
        for name in silent {
            self.save(&name, &CachedOffer::NoAnswer);
            self.known.insert(name);
        }
        self.publish();
    }

    fn save(&mut self, name: &ServerName, offer: &CachedOffer) {
        if let Some(Some(identity)) = self.config.servers.get(name) {
            self.cache.save(name, identity, offer);
        }
    }

    /// Publishes new states of servers that offer the same as before.
    fn publish_unchanged(&self) {
        let (catalog, settled) = (Arc::clone(&self.catalog), self.settled());
        let before = self.snapshots.borrow().clone();
        let snapshot = before.with_states_of(catalog, settled);
        self.prepare(&snapshot);
        self.snapshots.send_replace(snapshot);
    }

    /// Builds the search index in advance, if a host may search.
    fn prepare(&self, snapshot: &Snapshot) {
        let searched = snapshot.listing.is_searchable() || auto::may_search(snapshot);
        if snapshot.settled && searched && !snapshot.tool_index.is_ready() {
            self.preparer.prepare(Arc::clone(&snapshot.tool_index));
        }
    }

    fn settled(&self) -> bool {
        self.config.servers.keys().all(|name| self.known.contains(name))
    }

    fn publish(&self) {
        let settled = self.settled();
        let snapshot = Snapshot::new(Arc::clone(&self.catalog), Arc::clone(&self.config.layout), settled);
        self.prepare(&snapshot);
        let before = Arc::clone(&self.snapshots.borrow().names);
        for name in snapshot.names.collisions.iter().filter(|name| !before.collisions.contains(name)) {
            tracing::warn!(
                "two tools want the name {name}: plugbay shows neither; rename one in the configuration"
            );
        }
        for name in snapshot.names.ambiguous.iter().filter(|name| !before.ambiguous.contains(name)) {
            tracing::warn!(
                "{name} is ambiguous without its server's name: plugbay shows it with that name in front"
            );
        }
        self.snapshots.send_replace(snapshot);
    }
}
