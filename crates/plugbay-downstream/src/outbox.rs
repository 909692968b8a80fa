//! The queue of messages to one host.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::wire::Frame;
use tokio::{sync::Notify, time::sleep};

use crate::{budget::Budget, refusal::Refusal, respond};

/// From this many unread bytes on, plugbay reads no requests of the host and drops notifications.
const HIGH: usize = 8 * 1024 * 1024;

/// How much is read ahead from servers for a busy host. Bytes in a server's pipe cost nothing; bytes here need
/// a buffer and are cold when they are written.
const AHEAD: usize = 64 * 1024;

/// Limit of queued notifications, in bytes, if many outboxes share one budget.
const HIGH_AMONG_MANY: usize = 256 * 1024;

/// The queue of messages to one host. Pushing never waits, so a host that does not read stalls only itself.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// It belongs to one request and closes with its answer.
    for_one: bool,
    /// Messages before the answer are dropped.
    answers_only: bool,
    /// The outbox of the outer request, which takes the server requests of this one.
    outer: Option<Arc<Outbox>>,
    /// Why plugbay itself answered with an error, for a transport that says it in another form.
    refusal: OnceLock<Refusal>,
    /// Counts the queued bytes; none if there is only one host.
    budget: Option<Arc<Budget>>,
    // A std mutex: held for a push or a swap, never across an await.
    queue: Mutex<Queue>,
    filled: Notify,
    drained: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Frame>,
    /// Queued, or taken and not yet written.
    bytes: usize,
    closed: bool,
    /// Servers that read no further ahead until there is room.
    waiting: Vec<Waker>,
}

impl Outbox {
    /// For one request: its progress and then its answer, which closes it.
    pub(crate) fn for_request(budget: &Arc<Budget>) -> Self {
        Self { for_one: true, ..Self::for_notifications(budget) }
    }

    /// For a request whose host takes no stream.
    pub(crate) fn for_answer(budget: &Arc<Budget>) -> Self {
        Self { answers_only: true, ..Self::for_request(budget) }
    }

    /// For a request of plugbay, made for the one that is answered in `outer`.
    pub(crate) fn within(outer: &Arc<Self>) -> Self {
        Self {
            for_one: true,
            outer: Some(Arc::clone(outer)),
            budget: outer.budget.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn outer(&self) -> Option<&Arc<Self>> {
        self.outer.as_ref()
    }

    pub(crate) fn takes_answers_only(&self) -> bool {
        self.answers_only
    }

    /// For messages that belong to no request, if requests have their own outboxes.
    pub(crate) fn for_notifications(budget: &Arc<Budget>) -> Self {
        Self { budget: Some(Arc::clone(budget)), ..Self::default() }
    }

    /// Whether an answer of this length can be kept. Without a budget it always can.
    pub(crate) fn has_room_for(&self, length: usize) -> bool {
        self.budget.as_ref().is_none_or(|budget| budget.has_room_for(length))
    }

    /// Sends the answer to a request; it is never dropped.
    pub(crate) fn answer(&self, frame: Frame) {
        self.push(frame);
        if self.for_one {
            self.close();
        }
    }

    /// Answers a request of this raw id with an error of plugbay.
    pub(crate) fn refuse(&self, id: &[u8], refusal: &Refusal) {
        if self.for_one {
            let _ = self.refusal.set(refusal.clone()); // before the answer, which wakes the reader
        }
        self.answer(respond::error(id, refusal));
    }

    /// The error of plugbay that is the answer; `None` if the answer is a server's.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        self.refusal.get()
    }

    /// Sends a message that must not be dropped.
    pub(crate) fn send(&self, frame: Frame) {
        self.push(frame);
    }

    /// Sends a notification, unless the same one is last in the queue.
    pub(crate) fn send_once(&self, frame: Frame) {
        let waits = self.lock().frames.back().is_some_and(|last| last.pieces() == frame.pieces());
        if !waits {
            self.push(frame);
        }
    }

    /// Sends a notification, or drops it if the host does not keep up.
    pub(crate) fn send_if_room(&self, frame: Frame) {
        if self.has_room() {
            self.push(frame);
        }
    }

    /// Whether the host keeps up, so that more than answers can be sent to it.
    pub(crate) fn has_room(&self) -> bool {
        match &self.budget {
            None => self.lock().bytes < HIGH,
            Some(budget) => self.lock().bytes < HIGH_AMONG_MANY && budget.has_room(),
        }
    }

    /// Counts a message that waits elsewhere for the same host; `None` if there is no room for it.
    pub(crate) fn hold(&self, message: Bytes) -> Option<Bytes> {
        match &self.budget {
            None => Some(message),
            Some(budget) => {
                let room = budget.has_room_for(message.len());
                room.then(|| budget.reserve(message.len()).around(message))
            }
        }
    }

    /// The request was cancelled: there will be no answer.
    pub(crate) fn cancelled(&self) {
        if self.for_one {
            self.close();
        }
    }

    fn push(&self, frame: Frame) {
        let frame = match &self.budget {
            None => frame,
            Some(budget) => budget.hold(frame),
        };
        let mut queue = self.lock();
        if queue.closed {
            return;
        }
        queue.bytes += frame.len();
        queue.frames.push_back(frame);
        drop(queue);
        self.filled.notify_one();
    }

    /// Everything that waits; `None` when the outbox is closed and empty.
    pub(crate) async fn take(&self) -> Option<VecDeque<Frame>> {
        loop {
            {
                let mut queue = self.lock();
                if !queue.frames.is_empty() {
                    return Some(std::mem::take(&mut queue.frames));
                }
                if queue.closed {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    /// The first message, if it has come.
    pub(crate) fn take_now(&self) -> Option<Frame> {
        let frame = self.lock().frames.pop_front()?;
        self.written(frame.len());
        Some(frame)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Closed, and every message has been taken.
    pub(crate) fn is_done(&self) -> bool {
        let queue = self.lock();
        queue.closed && queue.frames.is_empty()
    }

    /// So much of what was taken has been written.
    pub(crate) fn written(&self, bytes: usize) {
        let mut queue = self.lock();
        queue.bytes -= bytes;
        let low = queue.bytes < HIGH;
        let waiting = if queue.bytes < AHEAD { std::mem::take(&mut queue.waiting) } else { Vec::new() };
        drop(queue);
        waiting.into_iter().for_each(Waker::wake);
        if low {
            self.drained.notify_waiters();
        }
    }

    /// Ready when a server may read on for this host.
    pub(crate) fn poll_ahead(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.lock();
        if queue.bytes < AHEAD || queue.closed {
            return Poll::Ready(());
        }
        if !queue.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            queue.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Waits until the host has read enough of what it was sent.
    pub(crate) async fn room(&self) {
        loop {
            let drained = self.drained.notified();
            if self.lock().bytes < HIGH {
                return;
            }
            drained.await;
        }
    }

    /// Waits until the host has read nothing for so long.
    pub(crate) async fn stuck(&self, patience: Duration) {
        loop {
            let before = self.lock().bytes;
            sleep(patience).await;
            if self.lock().bytes == before {
                return;
            }
        }
    }

    /// No more will come; what is queued is still given out.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        let waiting = std::mem::take(&mut queue.waiting);
        drop(queue);
        waiting.into_iter().for_each(Waker::wake);
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing can panic half-way through a change, so a poisoned queue is still whole.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_messages_count_in_the_budget() {
        let budget = Budget::new(100);
        let outbox = Outbox::for_notifications(&budget);
        let held = outbox.hold(Bytes::from(vec![0; 60])).expect("room");
        assert_eq!((budget.held(), outbox.hold(Bytes::from(vec![0; 60]))), (60, None));
        drop(held);
        assert_eq!(budget.held(), 0);
    }
}
