//! The one writer of the catalog: it hears what servers report, makes the next snapshot, and
//! remembers it on disk.

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
    cache::{Cache, Memory},
    config::identity,
};

/// What the catalog consists of: which servers there are, and how they appear.
#[derive(Debug, Clone, Default)]
pub struct Arrangement {
    pub layout: Arc<Layout>,
    /// By launch identity; `None` for a server that cannot be started at all.
    pub servers: BTreeMap<ServerName, Option<String>>,
    /// Why those cannot be.
    pub broken: BTreeMap<ServerName, Arc<Failure>>,
    /// How long a first list may wait for servers that have never connected.
    pub list_wait: Duration,
}

/// A new arrangement while the task runs, and where to tell how its servers spoke.
pub struct Order {
    pub arrangement: Arrangement,
    pub dialect: oneshot::Sender<BTreeMap<ServerName, Dialect>>,
}

pub struct Publisher {
    catalog: Arc<Catalog>,
    arrangement: Arrangement,
    cache: Cache,
    /// Servers that need not be waited for: known from the cache, listed, or failed.
    heard: BTreeSet<ServerName>,
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
            arrangement: Arrangement::default(),
            cache,
            heard: BTreeSet::new(),
            snapshots: watch::Sender::new(empty),
            waiting_since: Instant::now(),
            preparer: Preparer::default(),
        }
    }

    pub fn snapshots(&self) -> watch::Receiver<Snapshot> {
        self.snapshots.subscribe()
    }

    /// Takes a new set of servers: what is remembered of them stands in the next snapshot. Gives how
    /// they spoke.
    pub fn arrange(&mut self, next: Arrangement) -> BTreeMap<ServerName, Dialect> {
        let previous = std::mem::replace(&mut self.arrangement, next);
        for (name, identity) in &previous.servers {
            if self.arrangement.servers.get(name) != Some(identity) {
                self.heard.remove(name);
                self.catalog = Arc::new(self.catalog.apply(Change::Forgotten(name.clone())));
            }
        }
        for (name, identity) in &self.arrangement.servers {
            if previous.servers.get(name) == Some(identity) {
                continue;
            }
            match identity.as_ref().map_or(Memory::ServerRequestError, |identity| self.cache.load(identity)) {
                Memory::Nothing => self.waiting_since = Instant::now(),
                Memory::ServerRequestError => {
                    self.heard.insert(name.clone());
                }
                Memory::Offer(offer) => {
                    self.heard.insert(name.clone());
                    self.catalog = Arc::new(self.catalog.apply(Change::Remembered(name.clone(), offer)));
                }
            }
        }
        for (name, failure) in self.arrangement.broken.clone() {
            self.apply(Change::Failed(name, failure));
        }
        self.publish();
        self.catalog.iter().map(|(name, entry)| (name.clone(), entry.offer.dialect)).collect()
    }

    /// Lives as long as anybody reports or arranges.
    pub async fn run(
        mut self,
        mut reports: mpsc::UnboundedReceiver<Report>,
        mut orders: mpsc::UnboundedReceiver<Order>,
    ) {
        loop {
            let waiting = !self.snapshots.borrow().settled;
            let wait_until = self.waiting_since + self.arrangement.list_wait;
            tokio::select! {
                report = reports.recv() => match report {
                    Some(report) => {
                        // Servers that start together often answer together: one snapshot serves them all.
                        let mut changed = self.hear(report);
                        while let Ok(report) = reports.try_recv() {
                            changed |= self.hear(report);
                        }
                        if changed { self.publish() } else { self.publish_unchanged() }
                    }
                    None => break,
                },
                order = orders.recv() => match order {
                    Some(Order { arrangement, dialect }) => { let _ = dialect.send(self.arrange(arrangement)); }
                    None => break,
                },
                () = sleep_until(wait_until), if waiting => self.wait_no_longer(),
            }
        }
        self.cache.finish();
    }

    /// Whether somebody has something else than before.
    fn hear(&mut self, Report { spec, outcome }: Report) -> bool {
        let name = spec.name.clone();
        // A server that was removed or replaced may still have a word under way.
        if self.arrangement.servers.get(&name) != Some(&Some(identity(&spec))) {
            return false;
        }
        self.heard.insert(name.clone());
        let known = self.catalog.get(&name).map(|entry| Arc::clone(&entry.offer));
        match (outcome, known) {
            // Nearly always a server has what it had: then nothing is written and nothing listed anew.
            (Ok(offer), Some(known)) if *known == *offer => {
                self.apply(Change::Listed(name, known));
                false
            }
            (Ok(offer), _) => {
                self.remember(&name, &Memory::Offer(Arc::clone(&offer)));
                self.apply(Change::Listed(name, offer));
                true
            }
            (Err(failure), known) => {
                if known.is_none() {
                    self.remember(&name, &Memory::ServerRequestError);
                }
                self.apply(Change::Failed(name, failure));
                false
            }
        }
    }

    fn apply(&mut self, change: Change) {
        self.catalog = Arc::new(self.catalog.apply(change));
    }

    /// Whoever has not answered by now is not waited for, this time or the next.
    fn wait_no_longer(&mut self) {
        let silent: Vec<_> =
            self.arrangement.servers.keys().filter(|name| !self.heard.contains(*name)).cloned().collect();
        for name in silent {
            self.remember(&name, &Memory::ServerRequestError);
            self.heard.insert(name);
        }
        self.publish();
    }

    fn remember(&mut self, name: &ServerName, memory: &Memory) {
        if let Some(Some(identity)) = self.arrangement.servers.get(name) {
            self.cache.save(name, identity, memory);
        }
    }

    /// The same tools as before.
    fn publish_unchanged(&self) {
        let (catalog, settled) = (Arc::clone(&self.catalog), self.settled());
        let before = self.snapshots.borrow().clone();
        let snapshot = before.with_states_of(catalog, settled);
        self.prepare(&snapshot);
        self.snapshots.send_replace(snapshot);
    }

    /// Has the index made before the first search, if there may be one.
    fn prepare(&self, snapshot: &Snapshot) {
        let searched = snapshot.listing.is_searchable() || auto::may_search(snapshot);
        if snapshot.settled && searched && !snapshot.tool_index.is_ready() {
            self.preparer.prepare(Arc::clone(&snapshot.tool_index));
        }
    }

    fn settled(&self) -> bool {
        self.arrangement.servers.keys().all(|name| self.heard.contains(name))
    }

    fn publish(&self) {
        let settled = self.settled();
        let snapshot =
            Snapshot::new(Arc::clone(&self.catalog), Arc::clone(&self.arrangement.layout), settled);
        self.prepare(&snapshot);
        let before = Arc::clone(&self.snapshots.borrow().names);
        for name in snapshot.names.collisions.iter().filter(|name| !before.collisions.contains(name)) {
            tracing::warn!(
                "two tools want the name {name}: neither is shown; rename one in the configuration"
            );
        }
        for name in snapshot.names.ambiguous.iter().filter(|name| !before.ambiguous.contains(name)) {
            tracing::warn!("{name} does not say whose tool it is: shown with the server's name in front");
        }
        self.snapshots.send_replace(snapshot);
    }
}
