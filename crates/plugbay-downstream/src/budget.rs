//! A limit on the memory of unread messages, counted as long as they live.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use plugbay_core::wire::Frame;

/// A memory limit. Bytes of a share count in its parent too.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    limit: usize,
    parent: Option<Arc<Budget>>,
}

/// What one host may leave unread before new work for it waits, if many share a budget.
pub(crate) const UNREAD: usize = 16 * 1024 * 1024;
/// What all hosts may leave unread together.
pub(crate) const UNREAD_BY_ALL: usize = 512 * 1024 * 1024;

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), limit, parent: None })
    }

    /// A share that is full at `limit`, or when its parent is.
    pub(crate) fn share(self: &Arc<Self>, limit: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), limit, parent: Some(Arc::clone(self)) })
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether new work may begin.
    pub(crate) fn has_room(&self) -> bool {
        self.held() < self.limit && self.parent.as_ref().is_none_or(|parent| parent.has_room())
    }

    /// Whether a message that has come can be kept. Only the topmost budget limits that.
    pub(crate) fn has_room_for(&self, length: usize) -> bool {
        match &self.parent {
            Some(parent) => parent.has_room_for(length),
            None => self.held().saturating_add(length) <= self.limit,
        }
    }

    /// Whether slow hosts should be disconnected now, before others suffer.
    pub(crate) fn is_under_pressure(&self) -> bool {
        match &self.parent {
            Some(parent) => parent.is_under_pressure(),
            None => self.held() >= self.limit / 4,
        }
    }

    pub(crate) fn reserve(self: &Arc<Self>, length: usize) -> Reservation {
        let mut reservation = Reservation { budget: Arc::clone(self), length: 0 };
        reservation.grow(length);
        reservation
    }

    /// The same bytes, counted until the last slice of them is dropped.
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

/// Counted until it is dropped.
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

    /// Lives as long as these bytes.
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
        let share = parent.share(10);
        let frame = share.hold(Frame::from("0123456789"));
        let slice = frame.pieces()[0].slice(2..3);
        assert_eq!((parent.held(), share.held()), (10, 10));
        assert!(parent.has_room() && !share.has_room());
        drop(frame);
        assert_eq!((parent.held(), &slice[..]), (10, &b"2"[..]));
        drop(slice);
        assert_eq!((parent.held(), share.held()), (0, 0));
    }

    #[test]
    fn a_budget_share_is_full_when_its_parent_is() {
        let parent = Budget::new(100);
        let (one, other) = (parent.share(10), parent.share(1000));
        let mut held = one.reserve(20);
        assert!(!one.has_room() && one.has_room_for(80) && !one.is_under_pressure());
        assert!(other.has_room() && other.has_room_for(80) && !other.has_room_for(81));
        held.grow(80);
        assert!(!other.has_room() && other.is_under_pressure());
        drop(held);
        assert!(one.has_room() && other.has_room() && !other.is_under_pressure());
    }
}
