//! The shares of callers: how much memory, how many requests, sessions and connections each may use.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hyper::StatusCode;
use tokio::time::Instant;

use super::{Limits, listen::Peer, reject::Rejection};
use crate::{
    budget::{Budget, Reservation},
    limits::{CALLS, LEAST_CALLS, LEAST_CONNECTIONS, LEAST_OF_CALLER, LEAST_SESSIONS},
    seal::Owner,
};

/// How often a reached limit of one caller is logged.
const REPORT_EVERY: Duration = Duration::from_secs(60);
/// How often a caller's sessions are searched for memory to free.
const RECLAIM_EVERY: Duration = Duration::from_secs(1);

/// The owner of a share: a caller with a token, or an address without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    Caller(Owner),
    Peer(Peer),
}

/// The use of memory, requests, sessions and connections by one caller.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) holder: Holder,
    /// Bytes of its requests, and of unread messages.
    pub(super) memory: Arc<Budget>,
    /// Its requests in flight.
    pub(super) calls: Arc<Budget>,
    pub(super) sessions: Arc<Budget>,
    pub(super) connections: Arc<Budget>,
    /// Counts the rejections of all callers.
    refused: Arc<AtomicU64>,
    // A std mutex: held for a look, never across an await.
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    reported: Option<Instant>,
    reclaimed: Option<Instant>,
}

/// The shares of all callers.
#[derive(Debug)]
pub(super) struct Shares {
    memory: Arc<Budget>,
    calls: Arc<Budget>,
    sessions: Arc<Budget>,
    connections_of_peers: Arc<Budget>,
    connections_of_callers: Arc<Budget>,
    refused: Arc<AtomicU64>,
    // A std mutex: held for a look-up, never across an await.
    table: Mutex<HashMap<Holder, Arc<Share>>>,
}

impl Shares {
    pub(super) fn new(limits: Limits, refused: Arc<AtomicU64>) -> Self {
        Self {
            memory: Budget::new(limits.waiting),
            calls: Budget::new(CALLS),
            sessions: Budget::new(limits.sessions),
            connections_of_peers: Budget::new(limits.connections),
            connections_of_callers: Budget::new(limits.connections),
            refused,
            table: Mutex::default(),
        }
    }

    pub(super) fn of(&self, holder: Holder) -> Arc<Share> {
        let mut table = self.lock();
        Arc::clone(table.entry(holder).or_insert_with(|| Arc::new(self.begin(holder))))
    }

    fn begin(&self, holder: Holder) -> Share {
        let connections = match holder {
            Holder::Peer(_) => &self.connections_of_peers,
            Holder::Caller(_) => &self.connections_of_callers,
        };
        Share {
            holder,
            memory: self.memory.share(LEAST_OF_CALLER),
            calls: self.calls.share(LEAST_CALLS),
            sessions: self.sessions.share(LEAST_SESSIONS),
            connections: connections.share(LEAST_CONNECTIONS),
            refused: Arc::clone(&self.refused),
            last: Mutex::default(),
        }
    }

    /// Forgets the callers that use nothing.
    pub(super) fn sweep(&self) {
        self.lock().retain(|_, share| Arc::strong_count(share) > 1 || share.is_in_use());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Holder, Arc<Share>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    fn is_in_use(&self) -> bool {
        [&self.memory, &self.calls, &self.sessions, &self.connections].iter().any(|budget| budget.held() > 0)
    }

    /// Counts one more request in flight, or rejects it.
    pub(super) fn begin_call(&self, id: &[u8]) -> Result<Reservation, Rejection> {
        let too_many = || self.reject(id, "this caller has too many requests in flight");
        self.calls.take_one().ok_or_else(too_many)
    }

    /// Rejects a request because the caller has reached a limit of its own.
    pub(super) fn reject(&self, id: &[u8], why: &'static str) -> Rejection {
        self.count_refusal();
        self.report(why);
        Rejection::busy(StatusCode::TOO_MANY_REQUESTS, id, why)
    }

    pub(super) fn count_refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Logs that the caller has reached a limit.
    pub(super) fn report(&self, what: &'static str) {
        if self.is_time(|last| &mut last.reported, REPORT_EVERY) {
            tracing::warn!("{} has reached a limit: {what}", self.holder);
        }
    }

    /// Whether the caller's sessions may be searched again.
    pub(super) fn may_reclaim(&self) -> bool {
        self.is_time(|last| &mut last.reclaimed, RECLAIM_EVERY)
    }

    fn is_time(&self, last: impl FnOnce(&mut Last) -> &mut Option<Instant>, every: Duration) -> bool {
        let mut state = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, last) = (Instant::now(), last(&mut state));
        let is_time = last.is_none_or(|last| now.duration_since(last) >= every);
        if is_time {
            *last = Some(now);
        }
        is_time
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The beginning of the digest is enough to tell callers apart, and reveals nothing.
            Self::Caller(Owner(owner)) => {
                write!(f, "caller {:02x}{:02x}{:02x}", owner[0], owner[1], owner[2])
            }
            Self::Peer(Peer::Local) => f.write_str("a process of this user"),
            Self::Peer(Peer::Address(address)) => write!(f, "the host at {address}"),
        }
    }
}

#[cfg(test)]
const LIMITS: Limits = Limits { connections: 100, waiting: 1_000_000, sessions: 100 };

#[cfg(test)]
impl Default for Share {
    fn default() -> Self {
        Shares::new(LIMITS, Arc::default()).begin(Holder::Peer(Peer::Local))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_caller_at_a_limit_is_reported_once_a_minute_and_forgotten_when_it_uses_nothing() {
        let shares = Shares::new(LIMITS, Arc::default());
        let share = shares.of(Holder::Caller(Owner([1; 32])));
        assert!(Arc::ptr_eq(&share, &shares.of(Holder::Caller(Owner([1; 32])))));
        assert!(share.is_time(|last| &mut last.reported, REPORT_EVERY));
        assert!(!share.is_time(|last| &mut last.reported, REPORT_EVERY));
        tokio::time::advance(REPORT_EVERY).await;
        assert!(share.is_time(|last| &mut last.reported, REPORT_EVERY));
        let held = share.memory.session().reserve(1);
        drop(share);
        shares.sweep();
        assert_eq!(shares.lock().len(), 1, "what it holds is not forgotten");
        drop(held);
        shares.sweep();
        assert!(shares.lock().is_empty());
    }

    #[test]
    fn one_caller_cannot_have_all_requests_in_flight() {
        let shares = Shares::new(LIMITS, Arc::default());
        let [one, other] = [1, 2].map(|n| shares.of(Holder::Caller(Owner([n; 32]))));
        let mut taken = Vec::new();
        while let Ok(slot) = one.begin_call(b"1") {
            taken.push(slot);
        }
        assert_eq!((taken.len(), shares.refused.load(Ordering::Relaxed)), (CALLS / 2, 1));
        assert!(other.begin_call(b"1").is_ok());
    }
}
