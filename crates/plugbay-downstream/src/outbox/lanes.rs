//! Notifications that wait for a host and may be dropped: log messages, and all others.

use std::collections::VecDeque;

use plugbay_core::wire::Frame;

use crate::limits::Lane as Limit;

/// The kind of a notification. A notification displaces only others of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Log,
    Other,
}

#[derive(Debug, Default)]
pub(super) struct Lanes {
    logs: Lane,
    others: Lane,
    /// Numbers all notifications.
    next: u64,
    /// How many were dropped since the last notice to the host, and whether log messages are among them.
    dropped: u64,
    dropped_logs: bool,
}

#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    /// How many messages that must not be dropped were sent before this notification.
    before: u64,
    number: u64,
    frame: Frame,
}

impl Lanes {
    pub(super) fn bytes(&self) -> usize {
        self.logs.bytes + self.others.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.logs.waiting.is_empty() && self.others.waiting.is_empty()
    }

    /// Whether no notification is queued and none was dropped.
    pub(super) fn is_untouched(&self) -> bool {
        self.is_empty() && self.dropped == 0
    }

    pub(super) fn push(&mut self, kind: Kind, before: u64, frame: Frame) {
        let number = self.next;
        self.next += 1;
        let lane = match kind {
            Kind::Log => &mut self.logs,
            Kind::Other => &mut self.others,
        };
        lane.bytes += frame.len();
        lane.waiting.push_back(Waiting { before, number, frame });
    }

    pub(super) fn note_dropped(&mut self, kind: Kind) {
        self.dropped += 1;
        self.dropped_logs |= kind == Kind::Log;
    }

    /// Drops the oldest ones above a limit, but with `keep_newest` never the newest. Returns the dropped
    /// bytes.
    pub(super) fn trim(&mut self, limit: Limit, keep_newest: bool) -> usize {
        let (logs, log_bytes) = self.logs.trim(limit, keep_newest);
        let (others, other_bytes) = self.others.trim(limit, keep_newest);
        self.dropped += logs + others;
        self.dropped_logs |= logs > 0;
        log_bytes + other_bytes
    }

    /// Drops all. Returns the dropped bytes.
    pub(super) fn clear(&mut self) -> usize {
        self.trim(Limit { messages: 0, bytes: 0 }, false)
    }

    /// How many were dropped, if a host that reads log messages should know. Restarts the count.
    pub(super) fn take_dropped(&mut self) -> Option<u64> {
        let dropped = std::mem::take(&mut self.dropped);
        std::mem::take(&mut self.dropped_logs).then_some(dropped)
    }

    /// All notifications and `frames`, in the order in which they were sent. `first` is the number of the first frame.
    pub(super) fn merge_into(&mut self, mut first: u64, frames: VecDeque<Frame>) -> VecDeque<Frame> {
        let mut all =
            VecDeque::with_capacity(frames.len() + self.logs.waiting.len() + self.others.waiting.len());
        for frame in frames {
            self.take_until(first, &mut all);
            all.push_back(frame);
            first += 1;
        }
        self.take_until(u64::MAX, &mut all);
        all
    }

    /// Moves the notifications that were sent before the frame of this number.
    fn take_until(&mut self, frame: u64, all: &mut VecDeque<Frame>) {
        loop {
            let (log, other) = (self.logs.next(frame), self.others.next(frame));
            let lane = match (log, other) {
                (None, None) => return,
                (Some(log), Some(other)) if log < other => &mut self.logs,
                (Some(_), None) => &mut self.logs,
                _ => &mut self.others,
            };
            all.extend(lane.pop());
        }
    }
}

impl Lane {
    /// The number of the first notification that was sent before this frame.
    fn next(&self, frame: u64) -> Option<u64> {
        self.waiting.front().filter(|waiting| waiting.before <= frame).map(|waiting| waiting.number)
    }

    fn pop(&mut self) -> Option<Frame> {
        let Waiting { frame, .. } = self.waiting.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }

    /// Drops the oldest ones above a limit. Returns their number and bytes.
    fn trim(&mut self, limit: Limit, keep_newest: bool) -> (u64, usize) {
        let (before, bytes) = (self.waiting.len(), self.bytes);
        let least = usize::from(keep_newest);
        while self.waiting.len() > least && (self.waiting.len() > limit.messages || self.bytes > limit.bytes)
        {
            self.pop();
        }
        ((before - self.waiting.len()) as u64, bytes - self.bytes)
    }
}
