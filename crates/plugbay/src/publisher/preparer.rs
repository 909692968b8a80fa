//! Makes the parts of snapshots that are made on first use, in a separate thread: with many tools that takes
//! a while.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use plugbay_core::{auto, catalog::Tools, surface::Snapshot};

use crate::embeddings;

/// Prepares one snapshot at a time. Of those published meanwhile, only the latest is prepared.
#[derive(Debug, Clone, Default)]
pub(crate) struct Preparer(Arc<Mutex<Work>>);

#[derive(Debug, Default)]
struct Work {
    next: Option<Snapshot>,
    /// Whether preparation has begun. At first, hosts that open their sessions need the processor.
    begun: bool,
    /// Whether a thread is working; it then checks for the next snapshot.
    under_way: bool,
    told: Told,
}

/// The names about which the user was warned.
#[derive(Debug, Default)]
struct Told {
    collisions: Vec<String>,
    shadowed: Vec<String>,
    ambiguous: Vec<String>,
}

/// Reads the tools that nobody has needed yet and that take longer than a moment.
fn read_tools(snapshot: &Snapshot) {
    let unread = snapshot.catalog.unread_tools();
    let (first, second) = unread.split_at(unread.len() / 2);
    at_once(&mut || first.iter().for_each(Tools::read), &mut || second.iter().for_each(Tools::read));
}

/// Runs two jobs at the same time.
fn at_once(first: &mut (dyn FnMut() + Send), second: &mut (dyn FnMut() + Send)) {
    thread::scope(|scope| {
        scope.spawn(second);
        first();
    });
}

impl Preparer {
    pub(super) fn prepare(&self, snapshot: Snapshot) {
        let mut work = self.lock();
        work.next = Some(snapshot);
        self.go_on(&mut work);
    }

    /// Starts to prepare snapshots from now on.
    pub(crate) fn begin(&self) {
        let mut work = self.lock();
        work.begun = true;
        self.go_on(&mut work);
    }

    fn go_on(&self, work: &mut Work) {
        if !work.begun || work.under_way || work.next.is_none() {
            return;
        }
        let preparer = self.clone();
        // Without a thread, the first request that needs a part makes it.
        work.under_way = thread::Builder::new().spawn(move || preparer.work()).is_ok();
    }

    fn work(&self) {
        while let Some(snapshot) = self.next() {
            read_tools(&snapshot);
            if snapshot.listing.is_searchable() || auto::may_search(&snapshot) {
                snapshot.tool_index.prepare_by(embeddings::table, at_once);
            }
            self.warn(&snapshot);
            for (server, entry) in snapshot.catalog.iter() {
                if !entry.offer.tools.can_wait(server) {
                    snapshot.names.prepare(server);
                }
            }
        }
    }

    fn next(&self) -> Option<Snapshot> {
        let mut work = self.lock();
        let next = work.next.take();
        work.under_way = next.is_some();
        next
    }

    /// Makes the names, and warns of new ones that the user may not expect.
    fn warn(&self, snapshot: &Snapshot) {
        let names = &**snapshot.names;
        let now = Told {
            collisions: names.collisions.clone(),
            shadowed: names.shadowed.clone(),
            ambiguous: names.ambiguous.clone(),
        };
        let mut work = self.lock();
        let new = |now: &[String], told: &[String]| -> Vec<String> {
            now.iter().filter(|name| told.binary_search(name).is_err()).cloned().collect()
        };
        for name in new(&now.collisions, &work.told.collisions) {
            tracing::warn!(
                "two tools want the name {name}: plugbay shows neither; rename one in the configuration"
            );
        }
        for name in new(&now.shadowed, &work.told.shadowed) {
            tracing::warn!(
                "{name} is a local tool, or reads like one, and also a remote one: plugbay shows the remote one with its remote's name in front"
            );
        }
        for name in new(&now.ambiguous, &work.told.ambiguous) {
            tracing::warn!(
                "{name} is ambiguous without its server's name: plugbay shows it with that name in front"
            );
        }
        work.told = now;
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        // Nothing can panic half-way through a change, so poisoned work is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
