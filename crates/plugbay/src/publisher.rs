//! The only writer of the catalog: it takes servers' reports, publishes snapshots, and saves offers in the
//! cache.

mod kinds;
mod preparer;
mod retired;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use plugbay_core::{
    catalog::{Catalog, Change, Dialect, KnownList, Offer, Variants},
    declaration::Declaration,
    exchange::ListChange,
    failure::Failure,
    host_registry::HostRegistry,
    name::ServerName,
    surface::{Layout, Snapshot},
    wire::Framing,
};
use plugbay_upstream::{ListTerms, Report};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::spawn_blocking,
    time::{Instant, sleep_until},
};

pub use self::kinds::{ListJob, ListedFor};
pub(crate) use self::preparer::Preparer;
use self::{kinds::Kinds, retired::Retired};
use crate::{
    cache::{Cache, CachedLists, Saved},
    clock,
    config::identity,
    warmth::Confirmations,
};

/// Least time between two saved confirmations: the precision of a day is enough.
const CONFIRM_EVERY: Duration = Duration::from_secs(3600);

/// The part of the configuration that the catalog depends on.
#[derive(Debug, Clone, Default)]
pub struct CatalogConfig {
    pub layout: Arc<Layout>,
    /// The launch identity of each server; `None` for a server that cannot be started.
    pub servers: BTreeMap<ServerName, Option<String>>,
    /// Servers whose definitions keep hidden characters.
    pub unchanged: BTreeSet<ServerName>,
    /// Servers of which one instance serves hosts of several kinds.
    pub shared: BTreeSet<ServerName>,
    /// The reasons why servers cannot be started.
    pub broken: BTreeMap<ServerName, Arc<Failure>>,
    /// How long a first list may wait for servers that have never connected.
    pub list_wait: Duration,
}

/// A new configuration for the running publisher, with a sender for the dialects of its servers.
pub struct Reconfigure {
    pub config: CatalogConfig,
    pub dialects: oneshot::Sender<BTreeMap<ServerName, Dialect>>,
}

/// A message to the publisher other than reports and configurations.
pub enum Note {
    /// A host has made this declaration.
    Declared(Arc<Declaration>),
    /// A server was listed for hosts of another kind.
    ListedFor(ListedFor),
}

/// The parts of the gateway that a publisher works with.
pub struct Surroundings {
    pub cache: Cache,
    /// The declarations of this gateway's hosts, which servers get.
    pub host_registry: Arc<HostRegistry>,
    /// Takes jobs to list servers.
    pub jobs: mpsc::UnboundedSender<ListJob>,
    /// Takes list changes once they are in the catalog, if sessions have catalogs of their own. The receiver
    /// keeps them until those catalogs have them too.
    pub published: Option<mpsc::UnboundedSender<Vec<Arc<ListChange>>>>,
}

pub struct Publisher {
    catalog: Arc<Catalog>,
    config: CatalogConfig,
    cache: Cache,
    /// Servers that a first list need not wait for: cached, listed, failed, or awaited for long enough.
    known: BTreeSet<ServerName>,
    confirmations: Confirmations,
    /// The lists of servers for each kind of hosts.
    kinds: Kinds,
    published: Option<mpsc::UnboundedSender<Vec<Arc<ListChange>>>>,
    snapshots: watch::Sender<Snapshot>,
    /// Since when a first list has been waiting for servers that have never connected.
    waiting_since: Instant,
    preparer: Preparer,
    retired: Retired,
}

/// An event for the publisher.
enum Event {
    /// Reports that came together, as servers often start together. One snapshot serves them all.
    Reports(Vec<Report>),
    Reconfigure(Reconfigure),
    Note(Note),
    /// Servers that have never connected were awaited long enough.
    StopWaiting,
    /// Replaced snapshots may be unused by now.
    LookAtRetired,
}

impl Publisher {
    pub fn new(surroundings: Surroundings) -> Self {
        let Surroundings { cache, host_registry, jobs, published } = surroundings;
        let catalog = Arc::new(Catalog::default());
        let empty = Snapshot::new(Arc::clone(&catalog), Arc::default(), false);
        Self {
            catalog,
            config: CatalogConfig::default(),
            cache,
            known: BTreeSet::new(),
            confirmations: Confirmations::default(),
            kinds: Kinds::new(host_registry, jobs, published.is_some()),
            published,
            snapshots: watch::Sender::new(empty),
            waiting_since: Instant::now(),
            preparer: Preparer::default(),
            retired: Retired::default(),
        }
    }

    /// The times when servers last confirmed their lists, kept up to date.
    pub fn confirmations(&self) -> Confirmations {
        self.confirmations.clone()
    }

    /// Prepares snapshots, once it is told to begin.
    pub(crate) fn preparer(&self) -> Preparer {
        self.preparer.clone()
    }

    pub fn snapshots(&self) -> watch::Receiver<Snapshot> {
        self.snapshots.subscribe()
    }

    /// Applies a new set of servers. The next snapshot has their cached offers. Returns their dialects.
    pub fn configure(&mut self, next: CatalogConfig) -> BTreeMap<ServerName, Dialect> {
        let previous = std::mem::replace(&mut self.config, next);
        for (name, identity) in &previous.servers {
            if self.config.servers.get(name) != Some(identity) {
                self.known.remove(name);
                self.confirmations.forget(name);
                self.kinds.forget(name);
                self.catalog = Arc::new(self.catalog.apply(Change::Forgotten(name.clone())));
            }
        }
        for (name, identity) in &self.config.servers {
            if previous.servers.get(name) == Some(identity) {
                continue;
            }
            match identity.as_ref().map_or(CachedLists::NoAnswer, |identity| self.cache.load(name, identity))
            {
                CachedLists::Absent => self.waiting_since = Instant::now(),
                CachedLists::NoAnswer => {
                    self.known.insert(name.clone());
                }
                CachedLists::Lists(lists) => {
                    self.known.insert(name.clone());
                    // An earlier version saved them unchanged, as does a configuration that keeps hidden
                    // characters.
                    let lists =
                        if self.config.unchanged.contains(name) { lists } else { without_hidden(lists) };
                    let confirmed = lists.iter().map(|list| list.confirmed).max().unwrap_or_default();
                    self.confirmations.confirm(name, confirmed);
                    let variants = Variants::new(self.config.shared.contains(name), lists);
                    if let Some((offer, variants)) = self.kinds.remember(name, variants) {
                        let catalog = self.catalog.apply(Change::Remembered(name.clone(), offer));
                        self.catalog = Arc::new(catalog.apply(Change::Varied(name.clone(), variants)));
                    }
                }
            }
        }
        for (name, failure) in self.config.broken.clone() {
            self.apply(Change::Failed(name, failure));
        }
        self.publish();
        self.ask();
        self.catalog.iter().map(|(name, entry)| (name.clone(), entry.offer.dialect)).collect()
    }

    /// Runs as long as there are senders of reports and configurations. Each event is handled in another
    /// thread, because long lists take time, and the event loop must serve hosts meanwhile.
    pub async fn run(
        mut self,
        mut reports: mpsc::UnboundedReceiver<Report>,
        mut configs: mpsc::UnboundedReceiver<Reconfigure>,
        mut notes: mpsc::UnboundedReceiver<Note>,
    ) {
        loop {
            let waiting = !self.snapshots.borrow().settled;
            let wait_until = self.waiting_since + self.config.list_wait;
            let event = tokio::select! {
                report = reports.recv() => match report {
                    Some(first) => {
                        let others = std::iter::from_fn(|| reports.try_recv().ok());
                        Event::Reports(std::iter::once(first).chain(others).collect())
                    }
                    None => break,
                },
                config = configs.recv() => match config {
                    Some(config) => Event::Reconfigure(config),
                    None => break,
                },
                Some(note) = notes.recv() => Event::Note(note),
                () = sleep_until(wait_until), if waiting => Event::StopWaiting,
                () = self.retired.due() => Event::LookAtRetired,
            };
            let handling = spawn_blocking(move || {
                self.handle(event);
                self
            });
            self = match handling.await {
                Ok(publisher) => publisher,
                Err(_) => return, // it panicked, or the process ends
            };
        }
        self.cache.finish();
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Reports(reports) => self.take_reports(reports),
            Event::Reconfigure(Reconfigure { config, dialects }) => {
                let _ = dialects.send(self.configure(config));
            }
            Event::Note(note) => self.take_note(note),
            Event::StopWaiting => self.stop_waiting(),
            Event::LookAtRetired => self.retired.free_unused(),
        }
    }

    fn take_reports(&mut self, reports: Vec<Report>) {
        let list_changes: Vec<_> = reports.iter().filter_map(|report| report.change.clone()).collect();
        let mut is_new = false;
        for report in reports {
            is_new |= self.take_report(report);
        }
        if is_new {
            self.publish();
        } else {
            self.publish_unchanged();
        }
        if let Some(published) = self.published.as_ref().filter(|_| !list_changes.is_empty()) {
            let _ = published.send(list_changes);
        }
        self.ask();
    }

    fn take_note(&mut self, note: Note) {
        match note {
            Note::Declared(host) => self.kinds.want(host),
            Note::ListedFor(listed) => {
                let name = listed.server.clone();
                if self.config.servers.get(&name) == Some(&Some(listed.identity.clone())) {
                    if let Some(offer) = &listed.offer {
                        let (declared, offer) = (listed.host.clone(), Arc::clone(offer));
                        self.save(&name, Saved::List { declared, offer, confirmed: clock::now() });
                    }
                    let variants = self.kinds.listed_for(listed);
                    self.apply(Change::Varied(name, variants));
                    self.publish();
                }
            }
        }
        self.ask();
    }

    /// Requests listings of servers for the kinds of hosts that are connected.
    fn ask(&mut self) {
        let given_up = self.kinds.ask(&self.config.servers);
        if given_up.is_empty() {
            return;
        }
        for (name, variants) in given_up {
            self.apply(Change::Varied(name, variants));
        }
        self.publish_unchanged();
    }

    /// Handles a report. Returns whether hosts may now see other lists of the server.
    fn take_report(&mut self, Report { spec, outcome, dialect, terms, .. }: Report) -> bool {
        let name = spec.name.clone();
        // A server that was removed or replaced may still send a report.
        if self.config.servers.get(&name) != Some(&Some(identity(&spec))) {
            return false;
        }
        self.known.insert(name.clone());
        let known = self.catalog.get(&name).map(|entry| Arc::clone(&entry.offer));
        match (outcome, known) {
            (Ok(offer), known) => {
                // The offer is nearly always the same: then no list is made again.
                let (same, known) = match known {
                    Some(known) if *known == *offer => (true, known),
                    _ => (false, offer),
                };
                let shared = self.config.shared.contains(&name);
                let (variants, learnt) = self.kinds.listed(&name, &known, &terms, shared);
                self.confirm(&name, &known, &terms, learnt);
                self.apply(Change::Listed(name.clone(), known));
                self.apply(Change::Varied(name, variants));
                !same || learnt
            }
            (Err(failure), known) => {
                match known {
                    None => self.save(&name, Saved::NoAnswer),
                    Some(known) => self.correct_framing(&name, &known, dialect),
                }
                if let Some(variants) = self.kinds.failed(&name) {
                    self.apply(Change::Varied(name.clone(), variants));
                }
                self.apply(Change::Failed(name, failure));
                false
            }
        }
    }

    /// Notes that the server has confirmed its offer. A saved one is saved again only if its time matters. An
    /// offer that a call has changed is not saved, because another process would not list it.
    fn confirm(&mut self, name: &ServerName, offer: &Arc<Offer>, terms: &ListTerms, learnt: bool) {
        let now = clock::now();
        let is_recent = |at: u64| at <= now && now - at < CONFIRM_EVERY.as_secs();
        if !learnt && self.confirmations.of(name).is_some_and(is_recent) {
            return;
        }
        self.confirmations.confirm(name, now);
        if terms.untouched {
            let (declared, offer) = (terms.told.clone(), Arc::clone(offer));
            self.save(name, Saved::List { declared, offer, confirmed: now });
        }
    }

    /// Drops `Content-Length` framing that no longer works, so that the next run does not try it first.
    fn correct_framing(&mut self, name: &ServerName, known: &Offer, next: Dialect) {
        if (known.dialect.framing, next.framing) != (Framing::ContentLength, Framing::Newline) {
            return;
        }
        let dialect = Dialect { framing: Framing::Newline, ..known.dialect };
        let offer = Arc::new(Offer { dialect, ..known.clone() });
        let confirmed = self.confirmations.of(name).unwrap_or_default();
        let declared = self.kinds.told(name);
        self.save(name, Saved::List { declared, offer: Arc::clone(&offer), confirmed });
        self.apply(Change::Remembered(name.clone(), offer));
    }

    fn apply(&mut self, change: Change) {
        self.catalog = Arc::new(self.catalog.apply(change));
    }

    /// Ends the wait for servers that have not answered yet, in this run and the next.
    fn stop_waiting(&mut self) {
        let silent: Vec<_> =
            self.config.servers.keys().filter(|name| !self.known.contains(*name)).cloned().collect();
        for name in silent {
            self.save(&name, Saved::NoAnswer);
            self.known.insert(name);
        }
        self.publish();
    }

    fn save(&mut self, name: &ServerName, saved: Saved) {
        if let Some(Some(identity)) = self.config.servers.get(name) {
            self.cache.save(name, identity, saved);
        }
    }

    /// Publishes new states of servers whose offers are unchanged.
    fn publish_unchanged(&mut self) {
        let before = self.snapshots.borrow().clone();
        let snapshot = before.with_states_of(Arc::clone(&self.catalog), self.settled());
        self.replace(before, snapshot);
    }

    fn publish(&mut self) {
        let before = self.snapshots.borrow().clone();
        let (catalog, layout) = (Arc::clone(&self.catalog), Arc::clone(&self.config.layout));
        let snapshot = before.followed_by(catalog, layout, self.settled());
        self.replace(before, snapshot);
    }

    fn settled(&self) -> bool {
        self.config.servers.keys().all(|name| self.known.contains(name))
    }

    /// Publishes a snapshot once it has everything that hosts used of the previous one. Unused names and
    /// search indexes are made afterwards.
    fn replace(&mut self, before: Snapshot, snapshot: Snapshot) {
        if snapshot.settled {
            snapshot.prepare_like(&before);
            self.preparer.prepare(snapshot.clone());
        }
        self.snapshots.send_replace(snapshot);
        self.retired.keep(before);
    }
}

fn without_hidden(lists: Vec<KnownList>) -> Vec<KnownList> {
    let clean = |list: KnownList| {
        let offer = Arc::new(Arc::unwrap_or_clone(list.offer).without_hidden());
        KnownList { offer, ..list }
    };
    lists.into_iter().map(clean).collect()
}
