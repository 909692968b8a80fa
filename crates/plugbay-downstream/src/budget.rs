//! Shares of a limited resource, above all memory. Units are counted as long as they are held.
//!
//! Budgets form a tree: all, caller, session. A share may hold as much as its parent has left. So the more is
//! in use, the less each may take: one alone gets half, two get a third each. The last part is always free
//! for a newcomer.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use plugbay_core::wire::Frame;

use crate::limits::{LEAST_OF_SESSION, UNREAD, UNREAD_ANSWERS};

/// A limit. Units of a share count in its parent too.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    /// At this level no new work begins.
    limit: usize,
    /// At this level new answers are not kept.
    limit_of_answers: usize,
    /// This much may be held, however much others hold.
    least: usize,
    parent: Option<Arc<Budget>>,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Self::of(limit, limit, limit, None)
    }

    /// A share for a caller: it may hold as much as it leaves to others, but always `least`.
    pub(crate) fn share(self: &Arc<Self>, least: usize) -> Arc<Self> {
        Self::of(usize::MAX, usize::MAX, least, Some(self))
    }

    /// A share of the memory for one session, or one request without a session.
    pub(crate) fn session(self: &Arc<Self>) -> Arc<Self> {
        Self::of(UNREAD, UNREAD_ANSWERS, LEAST_OF_SESSION, Some(self))
    }

    fn of(limit: usize, limit_of_answers: usize, least: usize, parent: Option<&Arc<Self>>) -> Arc<Self> {
        let (held, parent) = (AtomicUsize::new(0), parent.cloned());
        Arc::new(Self { held, limit, limit_of_answers, least, parent })
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// How much this may hold, given what others leave.
    fn fair(&self) -> usize {
        self.parent.as_ref().map_or(self.limit, |parent| parent.left().max(self.least))
    }

    fn left(&self) -> usize {
        self.fair().saturating_sub(self.held())
    }

    /// Whether new work may begin.
    pub(crate) fn has_room(&self) -> bool {
        self.held() < self.limit.min(self.fair())
    }

    /// Whether a new answer can be kept. The first one may use everything that others leave.
    pub(crate) fn has_room_for(&self, length: usize) -> bool {
        let held = self.held();
        let limit = if held == 0 { usize::MAX } else { self.limit_of_answers };
        held.saturating_add(length) <= limit.min(self.fair())
    }

    /// Whether slow connections should be closed now, before the budget is used up.
    pub(crate) fn is_under_pressure(&self) -> bool {
        self.held() >= self.fair() / 4
    }

    pub(crate) fn reserve(self: &Arc<Self>, length: usize) -> Reservation {
        let mut reservation = Reservation { budget: Arc::clone(self), length: 0 };
        reservation.grow(length);
        reservation
    }

    /// Counts one more, if there is room.
    pub(crate) fn take_one(self: &Arc<Self>) -> Option<Reservation> {
        self.has_room().then(|| self.reserve(1))
    }

    /// Counts the bytes of a frame until the last slice of them is dropped.
    pub(crate) fn hold(self: &Arc<Self>, frame: Frame) -> Frame {
        frame.map(|piece| self.reserve(piece.len()).around(piece))
    }

    fn add(&self, length: usize) {
        self.held.fetch_add(length, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.add(length);
        }
    }

    fn subtract(&self, length: usize) {
        self.held.fetch_sub(length, Ordering::Relaxed);
        if let Some(parent) = &self.parent {
            parent.subtract(length);
        }
    }
}

/// The memory budget of the caller that uses a connection; set when the caller is known, with its first
/// request.
#[derive(Debug, Clone)]
pub(crate) struct BudgetOfConnection(Arc<Mutex<Arc<Budget>>>);

impl BudgetOfConnection {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self(Arc::new(Mutex::new(budget)))
    }

    pub(crate) fn set(&self, budget: &Arc<Budget>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(budget);
    }

    pub(crate) fn is_under_pressure(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_under_pressure()
    }
}

/// Units held of a budget, until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    length: usize,
}

impl Reservation {
    pub(crate) fn grow(&mut self, length: usize) {
        self.length += length;
        self.budget.add(length);
    }

    /// Ties the reservation to these bytes: both are dropped together.
    pub(crate) fn around(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(CountedBytes { bytes, _reservation: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.subtract(self.length);
    }
}

struct CountedBytes {
    bytes: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgeted_bytes_count_until_their_last_slice_is_dropped() {
        let parent = Budget::new(100);
        let share = parent.share(1);
        let frame = share.hold(Frame::from("0123456789"));
        let slice = frame.pieces()[0].slice(2..3);
        assert_eq!((parent.held(), share.held()), (10, 10));
        drop(frame);
        assert_eq!((parent.held(), &slice[..]), (10, &b"2"[..]));
        drop(slice);
        assert_eq!((parent.held(), share.held()), (0, 0));
    }

    #[test]
    fn one_caller_never_takes_the_last_of_a_budget() {
        let all = Budget::new(100);
        let (one, other) = (all.share(2), all.share(2));
        let mut held = one.reserve(0);
        while one.has_room() {
            held.grow(1);
        }
        assert_eq!(one.held(), 50, "half of all");
        assert!(!one.has_room_for(1) && other.has_room() && other.has_room_for(50));
        let mut held_by_other = other.reserve(0);
        while other.has_room() {
            held_by_other.grow(1);
        }
        assert_eq!((other.held(), one.held()), (25, 50), "half of what was left");
        let third = all.share(2);
        assert!(third.has_room_for(25));
        let _rest = all.reserve(25);
        assert!(third.has_room_for(2) && !third.has_room_for(3), "and the least in any case");
    }

    #[test]
    fn a_session_that_leaves_everything_unread_leaves_room_for_others_of_its_caller() {
        let caller = Budget::new(UNREAD_ANSWERS * 8).share(1);
        let (greedy, other) = (caller.session(), caller.session());
        let mut held = greedy.reserve(0);
        held.grow(UNREAD);
        assert!(!greedy.has_room() && greedy.has_room_for(UNREAD), "its calls in flight are answered");
        held.grow(UNREAD_ANSWERS - UNREAD);
        assert!(!greedy.has_room_for(1) && other.has_room() && other.has_room_for(UNREAD));
        assert!(other.has_room_for(2 * UNREAD_ANSWERS), "an answer alone may be long");
        let _all = other.reserve(UNREAD_ANSWERS * 4);
        let third = caller.session();
        assert!(third.has_room() && third.has_room_for(LEAST_OF_SESSION));
    }

    #[test]
    fn a_caller_is_under_pressure_by_its_own_doing_only() {
        let all = Budget::new(100);
        let (one, other) = (all.share(8), all.share(8));
        let _held = one.reserve(20);
        let _little = other.reserve(1);
        assert!(one.is_under_pressure() && !other.is_under_pressure());
    }
}
