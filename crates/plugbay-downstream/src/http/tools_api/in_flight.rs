//! The number of plain calls that each session has in flight.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use plugbay_core::scope::SessionKey;

use crate::limits::CALLS_OF_SESSION as LIMIT;

#[derive(Debug, Clone, Default)]
pub(in crate::http) struct InFlight {
    // A std mutex: held for a look-up, never across an await.
    calls: Arc<Mutex<HashMap<SessionKey, usize>>>,
}

/// A call in flight, until this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    in_flight: InFlight,
    key: SessionKey,
}

impl InFlight {
    /// Counts one more call; `None` if the session has too many already.
    pub(super) fn enter(&self, key: &SessionKey) -> Option<Slot> {
        let mut calls = self.lock();
        let count = calls.entry(key.clone()).or_default();
        if *count >= LIMIT {
            return None;
        }
        *count += 1;
        Some(Slot { in_flight: self.clone(), key: key.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, usize>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut calls = self.in_flight.lock();
        if let Some(count) = calls.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                calls.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_flight_are_limited_for_each_session() {
        let (in_flight, one, other) = (InFlight::default(), SessionKey::new("1"), SessionKey::new("2"));
        let mut slots: Vec<Slot> = (0..LIMIT).map(|_| in_flight.enter(&one).unwrap()).collect();
        assert!(in_flight.enter(&one).is_none());
        assert!(in_flight.enter(&other).is_some());
        slots.pop();
        assert!(in_flight.enter(&one).is_some());
        drop(slots);
        assert!(in_flight.lock().is_empty());
    }
}
