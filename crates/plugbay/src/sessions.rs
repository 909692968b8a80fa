//! The sessions of a gateway. Each sees its own servers, and its own catalog if those list something else.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, SystemTime},
};

use plugbay_core::{
    catalog::{Change, Freshness, Offer},
    declaration::Declaration,
    exchange::ListChange,
    fair::{Removable, gives_way},
    host_registry::HostRegistry,
    name::ServerName,
    scope::SessionKey,
    surface::Snapshot,
};
use plugbay_downstream::{SessionView, SuspendedCalls};
use plugbay_upstream::{Instances, Observer, Pool, Report, SessionLabel, SessionPool, User};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::{JoinSet, spawn_blocking},
    time::{Instant, MissedTickBehavior, interval},
};

use crate::config::hex_digest;

/// A session without a connection ends when no request has come for this long.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// Number of digits that distinguish the files of sessions.
const LABEL: usize = 24;
/// A session's file that was not written for this long is removed.
const FILE_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
const SWEEP: Duration = Duration::from_secs(10);
/// Limit of lasting sessions; above it, the caller with the most loses the one that was unused longest.
const LIMIT: usize = 4096;

/// Removes the files of sessions that were not written for a month: no session comes back to them.
pub(crate) fn remove_old_files(folder: &Path, now: SystemTime) {
    let Ok(files) = fs::read_dir(folder) else { return };
    for file in files.flatten() {
        let written = file.metadata().and_then(|metadata| metadata.modified());
        let is_old = |written| now.duration_since(written).is_ok_and(|age| age >= FILE_AGE);
        if written.is_ok_and(is_old) {
            let _ = fs::remove_file(file.path()); // another gateway may have been faster
        }
    }
}

/// All sessions of one gateway.
pub(crate) struct Sessions {
    pool: Arc<Pool>,
    instances: Arc<Instances>,
    /// The registry of the gateway, which counts the hosts of all sessions.
    host_registry: Arc<HostRegistry>,
    /// The catalog of the gateway.
    base: watch::Receiver<Snapshot>,
    status_changed: Arc<Notify>,
    /// Notified when a session's lists have changed.
    switched: Arc<Notify>,
    reports: mpsc::UnboundedSender<(SessionKey, Report)>,
    // A std mutex: held for look-ups, never across an await.
    entries: Mutex<HashMap<SessionKey, Entry>>,
    retired: Mutex<Vec<Snapshot>>,
}

/// An event for the catalogs of sessions.
enum Event {
    Base,
    Report(SessionKey, Report),
    Published(Vec<Arc<ListChange>>),
    Sweep,
}

struct Entry {
    /// The servers of the session, as long as it is in use or lasts.
    servers: Weak<SessionPool>,
    /// Keeps the servers of a lasting session alive.
    kept: Option<Arc<SessionPool>>,
    used: Instant,
    host_registry: Arc<HostRegistry>,
    suspended: Arc<SuspendedCalls>,
    snapshots: watch::Sender<Snapshot>,
    /// The offers of its own instances that differ from the catalog.
    overlay: Overlay,
}

/// The offers of a session's own instances, with the declarations that those got.
type Overlay = BTreeMap<ServerName, (Arc<Offer>, Declaration)>;

/// The parts of a gateway that its sessions share.
pub(crate) struct Common {
    pub(crate) pool: Arc<Pool>,
    pub(crate) instances: Arc<Instances>,
    pub(crate) host_registry: Arc<HostRegistry>,
    pub(crate) base: watch::Receiver<Snapshot>,
    pub(crate) status_changed: Arc<Notify>,
    pub(crate) switched: Arc<Notify>,
    /// List changes that are in the catalog.
    pub(crate) published: mpsc::UnboundedReceiver<Vec<Arc<ListChange>>>,
}

impl Sessions {
    /// Creates the sessions, and spawns the task that looks after them; it ends with the last handle.
    pub(crate) fn new(common: Common) -> Arc<Self> {
        let Common { pool, instances, host_registry, base, status_changed, switched, published } = common;
        let (reports, inbox) = mpsc::unbounded_channel();
        let (entries, retired) = Default::default();
        let sessions = Arc::new(Self {
            pool,
            instances,
            host_registry,
            base,
            status_changed,
            switched,
            reports,
            entries,
            retired,
        });
        tokio::spawn(look_after(Arc::downgrade(&sessions), sessions.base.clone(), inbox, published));
        sessions
    }

    /// The view of this session, which begins now if it does not exist.
    pub(crate) fn enter(&self, key: &SessionKey) -> SessionView {
        let mut entries = self.lock();
        if let Some(entry) = entries.get_mut(key)
            && let Some(servers) = entry.servers.upgrade()
        {
            entry.used = Instant::now();
            return entry.view(servers);
        }
        let evicted = if key.lasts() { make_room(&mut entries, key) } else { None };
        let (entry, servers) = self.begin(key);
        let view = entry.view(servers);
        entries.insert(key.clone(), entry);
        drop(entries);
        drop(evicted); // its servers end outside the lock
        view
    }

    fn begin(&self, key: &SessionKey) -> (Entry, Arc<SessionPool>) {
        let host_registry = Arc::new(HostRegistry::default());
        self.host_registry.include(&host_registry);
        let (sender, session) = (self.reports.clone(), key.clone());
        let observer = Observer {
            reports: Arc::new(move |report| _ = sender.send((session.clone(), report))),
            status_changed: Arc::clone(&self.status_changed),
        };
        let user = User { host_registry: Arc::clone(&host_registry), observer };
        let name = hex_digest(key.as_bytes())[..LABEL].to_owned();
        let label = SessionLabel { name, caller: key.caller().into(), lasts: key.lasts() };
        let (pool, instances) = (Arc::clone(&self.pool), Arc::clone(&self.instances));
        let servers = Arc::new(SessionPool::new(pool, instances, user, label));
        let entry = Entry {
            servers: Arc::downgrade(&servers),
            kept: key.lasts().then(|| Arc::clone(&servers)),
            used: Instant::now(),
            host_registry,
            suspended: Arc::default(),
            snapshots: watch::Sender::new(self.base.borrow().clone()),
            overlay: BTreeMap::new(),
        };
        (entry, servers)
    }

    /// Notes that the servers' configuration has changed.
    pub(crate) fn reconfigured(&self) {
        for servers in self.live() {
            servers.reconfigured();
        }
    }

    /// Stops the servers of all sessions; returns when no process is left.
    pub(crate) async fn stop(&self) {
        let mut stopping: JoinSet<()> = JoinSet::new();
        for servers in self.live() {
            stopping.spawn(async move { servers.stop().await });
        }
        self.lock().clear();
        while stopping.join_next().await.is_some() {}
    }

    /// The number of sessions.
    pub(crate) fn count(&self) -> usize {
        self.live().len()
    }

    /// The processes of servers that belong to a single session.
    pub(crate) fn pids(&self) -> Vec<(ServerName, i32)> {
        self.live().iter().flat_map(|servers| servers.pids()).collect()
    }

    fn live(&self) -> Vec<Arc<SessionPool>> {
        self.lock().values().filter_map(|entry| entry.servers.upgrade()).collect()
    }

    /// Ends the sessions that are no longer used.
    fn sweep(&self) {
        let now = Instant::now();
        let mut ended = Vec::new();
        self.lock().retain(|_, entry| {
            if entry.is_viewed() {
                entry.used = now;
            }
            let goes_on = entry.servers.strong_count() > 0 && now.duration_since(entry.used) < IDLE;
            if !goes_on {
                ended.extend(entry.kept.take());
            }
            goes_on
        });
    }

    fn handle(&self, event: Event) {
        match event {
            Event::Base => self.base_changed(),
            Event::Report(key, report) => self.reported(&key, report),
            Event::Published(changes) => {
                self.base_changed();
                drop(changes); // hosts can see the new lists
            }
            Event::Sweep => {
                self.sweep();
                self.retired().retain(Snapshot::is_shared);
            }
        }
    }

    /// Updates all sessions after a change of the gateway's catalog.
    fn base_changed(&self) {
        let mut diverging = Vec::new();
        let entries = self.lock();
        // Sessions that begin later begin with this catalog or a newer one.
        let base = self.base.borrow().clone();
        for (key, entry) in entries.iter() {
            if entry.overlay.is_empty() {
                entry.snapshots.send_replace(base.clone());
            } else {
                diverging.push((key.clone(), entry.overlay.clone()));
            }
        }
        drop(entries);
        for (key, mut overlay) in diverging {
            overlay.retain(|server, (offer, told)| differs(&base, server, offer, told));
            self.publish(&key, overlay, &base);
        }
        // An observer of the base may have looked before the sessions had it.
        self.switched.notify_one();
    }

    /// Handles a report of a session's own instance. If it differs from the catalog, only this session sees
    /// it.
    fn reported(&self, key: &SessionKey, report: Report) {
        let Ok(offer) = report.outcome else { return };
        let Some(mut overlay) = self.lock().get(key).map(|entry| entry.overlay.clone()) else { return };
        let (server, base) = (&report.spec.name, self.base.borrow().clone());
        let told = report.terms.told;
        let differs = differs(&base, server, &offer, &told);
        let before = if differs {
            overlay.insert(server.clone(), (Arc::clone(&offer), told))
        } else {
            overlay.remove(server)
        };
        if before.is_none() && !differs
            || before.is_some_and(|(before, _)| differs && before.lists_same(&offer))
        {
            return self.note(key, overlay);
        }
        if differs && is_stale(&base, server) {
            // The cache may be from an older version of the server; the instance that lists for all sessions
            // finds out.
            if let Some(handle) = self.pool.servers().handles.get(server) {
                handle.refresh();
            }
        }
        self.publish(key, overlay, &base);
        self.switched.notify_one();
    }

    /// Makes the snapshot of one session, outside the lock because it takes a while.
    fn publish(&self, key: &SessionKey, overlay: Overlay, base: &Snapshot) {
        let Some(before) = self.lock().get(key).map(|entry| entry.snapshots.borrow().clone()) else { return };
        let snapshot = if overlay.is_empty() { base.clone() } else { overlaid(base, &overlay) };
        snapshot.prepare_like(&before);
        self.note(key, overlay);
        if let Some(entry) = self.lock().get(key) {
            entry.snapshots.send_replace(snapshot);
        }
        self.retired().push(before);
    }

    fn note(&self, key: &SessionKey, overlay: Overlay) {
        let before = self.lock().get_mut(key).map(|entry| std::mem::replace(&mut entry.overlay, overlay));
        drop(before); // outside the lock, because lists may be long
    }

    /// Session snapshots that hosts may still use. The event loop must not free them, because lists may be
    /// long.
    fn retired(&self) -> MutexGuard<'_, Vec<Snapshot>> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, Entry>> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn view(&self, servers: Arc<SessionPool>) -> SessionView {
        SessionView {
            servers,
            snapshots: self.snapshots.subscribe(),
            host_registry: Arc::clone(&self.host_registry),
            suspended: Arc::clone(&self.suspended),
        }
    }

    fn is_viewed(&self) -> bool {
        self.servers.strong_count() > usize::from(self.kept.is_some())
    }
}

/// If there are too many lasting sessions, removes one that is not in use: of the caller with the most, the
/// one that was unused longest.
fn make_room(entries: &mut HashMap<SessionKey, Entry>, new: &SessionKey) -> Option<Entry> {
    if entries.len() < LIMIT || entries.keys().filter(|key| key.lasts()).count() < LIMIT {
        return None;
    }
    let lasting = entries.iter().filter(|(key, _)| key.lasts()).map(|(key, entry)| {
        let removable = !entry.is_viewed();
        (key.caller(), removable.then_some(Removable { key, used: entry.used }))
    });
    let oldest = gives_way(new.caller(), lasting).cloned();
    oldest.and_then(|key| entries.remove(&key))
}

/// Whether the catalog has another list for hosts with the declaration that the server got.
fn differs(base: &Snapshot, server: &ServerName, offer: &Offer, told: &Declaration) -> bool {
    base.catalog.get(server).is_none_or(|entry| !entry.offer_for(told).0.lists_same(offer))
}

fn is_stale(base: &Snapshot, server: &ServerName) -> bool {
    base.catalog.get(server).is_some_and(|entry| entry.freshness == Freshness::Stale)
}

fn overlaid(base: &Snapshot, overlay: &Overlay) -> Snapshot {
    let catalog = overlay.iter().fold((*base.catalog).clone(), |catalog, (server, (offer, _))| {
        catalog.apply(Change::Listed(server.clone(), Arc::clone(offer)))
    });
    base.followed_by(Arc::new(catalog), Arc::clone(&base.layout), base.settled)
}

/// Keeps the catalogs of sessions up to date, and ends unused sessions. Each event is handled in another
/// thread, because long lists take time.
async fn look_after(
    sessions: Weak<Sessions>,
    mut base: watch::Receiver<Snapshot>,
    mut reports: mpsc::UnboundedReceiver<(SessionKey, Report)>,
    mut published: mpsc::UnboundedReceiver<Vec<Arc<ListChange>>>,
) {
    let mut sweep = interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let event = tokio::select! {
            Ok(()) = base.changed() => Event::Base,
            Some((key, report)) = reports.recv() => Event::Report(key, report),
            Some(changes) = published.recv() => Event::Published(changes),
            _ = sweep.tick() => Event::Sweep,
        };
        let Some(sessions) = sessions.upgrade() else { return };
        if matches!(event, Event::Sweep) && sessions.retired().is_empty() {
            sessions.sweep();
        } else if spawn_blocking(move || sessions.handle(event)).await.is_err() {
            return; // it panicked, or the process ends
        }
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::{catalog::Catalog, failure::Failure, surface::Layout};

    use super::*;

    fn sessions() -> Arc<Sessions> {
        let snapshot = Snapshot::new(Arc::new(Catalog::default()), Arc::new(Layout::default()), true);
        Sessions::new(Common {
            pool: Arc::default(),
            instances: Instances::new(Arc::new(|_, _| Err(Failure::new("none", Vec::new())))),
            host_registry: Arc::default(),
            base: watch::Sender::new(snapshot).subscribe(),
            status_changed: Arc::default(),
            switched: Arc::default(),
            published: mpsc::unbounded_channel().1,
        })
    }

    #[tokio::test]
    async fn lasting_sessions_give_way_to_each_other_only() {
        let sessions = sessions();
        let lasting = |number: usize| sessions.enter(&SessionKey::lasting(number.to_string()));
        let first = Arc::downgrade(&lasting(0).servers);
        let connections: Vec<_> =
            (0..LIMIT).map(|number| sessions.enter(&SessionKey::new(number.to_string()))).collect();
        lasting(1);
        assert!(first.upgrade().is_some(), "connections take no place of lasting sessions");
        drop(connections);
        (2..LIMIT).for_each(|number| drop(lasting(number)));
        assert!(first.upgrade().is_some());
        lasting(LIMIT);
        assert!(first.upgrade().is_none(), "the one that was unused longest");
    }

    #[test]
    fn session_files_of_last_month_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memory-x.json");
        fs::write(&file, "").unwrap();
        remove_old_files(folder.path(), SystemTime::now() + FILE_AGE - Duration::from_secs(60));
        assert!(file.exists());
        remove_old_files(folder.path(), SystemTime::now() + FILE_AGE);
        assert!(!file.exists());
    }
}
