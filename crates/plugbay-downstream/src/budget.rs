//! How much memory messages may take that nobody has read yet, counted for as long as they live.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use plugbay_core::wire::Frame;

/// A part of a greater whole, if there is one: what a part holds, the whole holds too.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    limit: usize,
    whole: Option<Arc<Budget>>,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), limit, whole: None })
    }

    /// A share that is full at `limit`, or when the whole is.
    pub(crate) fn share(self: &Arc<Self>, limit: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), limit, whole: Some(Arc::clone(self)) })
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// New work may begin.
    pub(crate) fn has_room(&self) -> bool {
        self.held() < self.limit && self.whole.as_ref().is_none_or(|whole| whole.has_room())
    }

    /// What has come can be kept: only the whole sets a limit to that.
    pub(crate) fn has_room_for(&self, length: usize) -> bool {
        match &self.whole {
            Some(whole) => whole.has_room_for(length),
            None => self.held().saturating_add(length) <= self.limit,
        }
    }

    /// Whoever is slow should give way now, before others must.
    pub(crate) fn is_pressed(&self) -> bool {
        match &self.whole {
            Some(whole) => whole.is_pressed(),
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
        if let Some(whole) = &self.whole {
            whole.add(length);
        }
    }

    fn subtract(&self, length: usize) {
        self.held.fetch_sub(length, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.subtract(length);
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
        Bytes::from_owner(Held { bytes, _reservation: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.subtract(self.length);
    }
}

struct Held {
    bytes: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_their_last_slice_is_gone() {
        let whole = Budget::new(100);
        let share = whole.share(10);
        let frame = share.hold(Frame::from("0123456789"));
        let slice = frame.pieces()[0].slice(2..3);
        assert_eq!((whole.held(), share.held()), (10, 10));
        assert!(whole.has_room() && !share.has_room());
        drop(frame);
        assert_eq!((whole.held(), &slice[..]), (10, &b"2"[..]));
        drop(slice);
        assert_eq!((whole.held(), share.held()), (0, 0));
    }

    #[test]
    fn a_share_is_full_when_the_whole_is() {
        let whole = Budget::new(100);
        let (one, other) = (whole.share(10), whole.share(1000));
        let mut held = one.reserve(20);
        assert!(!one.has_room() && one.has_room_for(80) && !one.is_pressed());
        assert!(other.has_room() && other.has_room_for(80) && !other.has_room_for(81));
        held.grow(80);
        assert!(!other.has_room() && other.is_pressed());
        drop(held);
        assert!(one.has_room() && other.has_room() && !other.is_pressed());
    }
}
