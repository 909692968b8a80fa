//! What waits to be written to one host.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use plugbay_core::wire::Frame;
use tokio::{sync::Notify, time::sleep};

/// A host that leaves this much unread gets no more of its requests read, and no notifications.
const HIGH: usize = 8 * 1024 * 1024;

/// How much is read ahead from servers for a host that is busy. What waits in a server's pipe costs
/// nothing; what waits here needs a buffer of its own, and is cold when it is written at last.
const AHEAD: usize = 64 * 1024;

/// Filling it never waits, so a host that does not read stalls nobody but itself.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
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
    /// An answer: it is kept whatever happens.
    pub(crate) fn push(&self, frame: Frame) {
        let mut queue = self.lock();
        queue.bytes += frame.len();
        queue.frames.push_back(frame);
        drop(queue);
        self.filled.notify_one();
    }

    /// A notification: dropped when the host does not keep up.
    pub(crate) fn push_if_room(&self, frame: Frame) {
        if self.lock().bytes < HIGH {
            self.push(frame);
        }
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
