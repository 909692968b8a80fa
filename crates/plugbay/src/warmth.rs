//! Decides which servers start before anybody uses them, by their settings and by when their lists were last
//! confirmed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plugbay_core::{
    name::ServerName,
    start::{FRESH_FOR, Priority, Remembered, Warm},
    surface::Snapshot,
};

use crate::{clock, config::Settings};

/// When each server last confirmed its list, in seconds since 1970. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Confirmations(Arc<Mutex<BTreeMap<ServerName, u64>>>);

impl Confirmations {
    pub fn confirm(&self, server: &ServerName, at: u64) {
        self.lock().insert(server.clone(), at);
    }

    pub fn forget(&self, server: &ServerName) {
        self.lock().remove(server);
    }

    /// When the list was last confirmed, if there is one.
    pub fn of(&self, server: &ServerName) -> Option<u64> {
        self.lock().get(server).copied()
    }

    fn remembered(&self, server: &ServerName, now: u64) -> Remembered {
        match self.of(server) {
            // A time in the future does not count: the clock was set back.
            Some(at) if at > now => Remembered::List { age: Duration::MAX },
            Some(at) => Remembered::List { age: Duration::from_secs(now - at) },
            None => Remembered::Nothing,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServerName, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The `warm` settings of all servers.
#[derive(Debug)]
pub struct Warmth {
    // A std mutex: held for one look, never across an await.
    policies: Mutex<BTreeMap<ServerName, Warm>>,
    confirmations: Confirmations,
}

impl Warmth {
    pub fn new(settings: &Settings, confirmations: Confirmations) -> Self {
        Self { policies: Mutex::new(policies(settings)), confirmations }
    }

    /// Applies new settings; returns the servers whose setting has changed.
    pub fn replace(&self, settings: &Settings) -> Vec<ServerName> {
        let next = policies(settings);
        let mut policies = self.policies.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = next.iter().filter(|(name, warm)| policies.get(*name).is_some_and(|old| old != *warm));
        let changed = changed.map(|(name, _)| name.clone()).collect();
        *policies = next;
        changed
    }

    /// The priority with which an unused server starts; `None`: it waits for its first use.
    pub fn start_of(&self, server: &ServerName, snapshot: &Snapshot) -> Option<Priority> {
        let remembered = self.confirmations.remembered(server, clock::now());
        let starts = self.policy(server).starts(remembered, snapshot.promises_warmth(server));
        let awaited = !snapshot.settled && remembered == Remembered::Nothing;
        starts.then_some(if awaited { Priority::Listed } else { Priority::Behind })
    }

    /// Whether a long unused server must list again, so that its list stays fresh.
    pub fn is_stale(&self, server: &ServerName) -> bool {
        let stale = |remembered| matches!(remembered, Remembered::List { age } if age >= FRESH_FOR);
        self.policy(server) == Warm::Fresh && stale(self.confirmations.remembered(server, clock::now()))
    }

    fn policy(&self, server: &ServerName) -> Warm {
        let policies = self.policies.lock().unwrap_or_else(PoisonError::into_inner);
        policies.get(server).copied().unwrap_or_default()
    }
}

fn policies(settings: &Settings) -> BTreeMap<ServerName, Warm> {
    settings.servers.iter().map(|server| (server.name.clone(), server.warm)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_was_confirmed_in_the_future_is_stale() {
        let (confirmations, server) = (Confirmations::default(), ServerName::parse("s").unwrap());
        assert_eq!(confirmations.remembered(&server, 100), Remembered::Nothing);
        confirmations.confirm(&server, 90);
        let list = |seconds| Remembered::List { age: Duration::from_secs(seconds) };
        assert_eq!(confirmations.remembered(&server, 100), list(10));
        assert_eq!(confirmations.remembered(&server, 80), Remembered::List { age: Duration::MAX });
        confirmations.forget(&server);
        assert_eq!(confirmations.of(&server), None);
    }
}
