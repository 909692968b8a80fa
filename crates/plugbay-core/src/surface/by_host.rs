//! One snapshot for several kinds of hosts: servers may list something else for each.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Snapshot;
use crate::{catalog::Catalog, declaration::Declaration};

/// How many kinds of hosts are kept apart in one snapshot.
const LIMIT: usize = 16;

/// What other kinds of hosts see in the same snapshot, as far as a host has asked. `None`: what all see.
// A std mutex: hosts of one kind that come together wait for one snapshot, which takes a few milliseconds.
#[derive(Debug, Default)]
pub(super) struct ByHost(Mutex<Vec<(Declaration, Option<Snapshot>)>>);

impl Snapshot {
    /// The same snapshot for hosts that declare this.
    #[must_use]
    pub fn for_host(&self, host: &Declaration) -> Self {
        let mut known = self.by_host.lock();
        if let Some((_, seen)) = known.iter().find(|(kind, _)| kind == host) {
            return seen.as_ref().unwrap_or(self).clone();
        }
        let seen = self.catalog.seen_by(host);
        let seen =
            seen.map(|catalog| self.followed_by(Arc::new(catalog), Arc::clone(&self.layout), self.settled));
        if known.len() >= LIMIT {
            known.remove(0);
        }
        known.push((host.clone(), seen.clone()));
        seen.unwrap_or_else(|| self.clone())
    }

    /// Whether it is certain what hosts that declare this see, or will not become certain.
    pub fn fits(&self, host: &Declaration) -> bool {
        self.catalog.fits(host)
    }
}

impl ByHost {
    /// The same lists with other states of the servers.
    pub(super) fn with_states_of(&self, catalog: &Catalog, settled: bool) -> Self {
        let changed = |(host, seen): (Declaration, Option<Snapshot>)| {
            let seen = seen?;
            let catalog = Arc::new(catalog.seen_by(&host)?);
            Some((host, Some(seen.with_states_of(catalog, settled))))
        };
        Self(Mutex::new(self.kinds().into_iter().filter_map(changed).collect()))
    }

    /// A copy of the kinds of hosts and what they see, so that the lock is not held while it is used.
    pub(super) fn kinds(&self) -> Vec<(Declaration, Option<Snapshot>)> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Declaration, Option<Snapshot>)>> {
        // Nothing can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
