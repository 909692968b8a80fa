//! The queue of messages to one host.

mod lanes;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::wire::Frame;
use tokio::{sync::Notify, time::sleep};

use crate::{
    budget::{Budget, Reservation},
    limits::{HIGH, HIGH_AMONG_MANY, LANE_ALONE, LANE_AMONG_MANY, LANE_UNHEARD, UNREAD_ALONE},
    refusal::Refusal,
    respond,
};
use lanes::{Kind, Lanes};

/// How much is read ahead from servers for a busy host. Bytes in a server's pipe cost nothing. Bytes here
/// need a buffer, and have left the processor cache when they are written.
const AHEAD: usize = 64 * 1024;

/// The queue of messages to one host. Pushing never waits, so a host that does not read stalls only itself.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// The outbox belongs to one request and closes with its answer.
    for_one: bool,
    /// Messages before the answer are dropped.
    answers_only: bool,
    /// The outbox of the outer request, which takes the server requests of the inner one.
    outer: Option<Arc<Outbox>>,
    /// Results are taken whole, never as an outline.
    takes_whole: bool,
    /// The error that plugbay itself answered with, for a transport that writes it in another form.
    refusal: OnceLock<Refusal>,
    /// Counts the queued bytes; `None` if there is only one host.
    budget: Option<Arc<Budget>>,
    /// Counts messages that wait elsewhere for the only host.
    kept_elsewhere: OnceLock<Arc<Budget>>,
    // A std mutex: held for a push or a swap, never across an await.
    queue: Mutex<Queue>,
    filled: Notify,
    drained: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// Messages that must not be dropped.
    frames: VecDeque<Frame>,
    /// How many of `frames` were taken so far.
    taken: u64,
    /// Notifications that may be dropped.
    lanes: Lanes,
    /// Bytes that are queued, or taken and not yet written.
    bytes: usize,
    closed: bool,
    /// The host has no open stream for these messages.
    unheard: bool,
    /// Counts the request in flight, until its answer.
    slot: Option<Reservation>,
    /// Writes the notice that this many messages were dropped, for a host that wants it.
    notice: Option<fn(u64) -> Frame>,
    /// Tasks that wait for room before they read on from a server.
    waiting: Vec<Waker>,
}

impl Outbox {
    /// An outbox for one request: its progress and then its answer, which closes it.
    pub(crate) fn for_request(budget: &Arc<Budget>) -> Self {
        Self { for_one: true, ..Self::for_window(budget) }
    }

    /// The same, counted among the requests in flight until its answer.
    pub(crate) fn counted(self, slot: Reservation) -> Self {
        self.lock().slot = Some(slot);
        self
    }

    /// An outbox for a request whose host accepts no stream.
    pub(crate) fn for_answer(budget: &Arc<Budget>) -> Self {
        Self { answers_only: true, ..Self::for_request(budget) }
    }

    /// An outbox for a request by plugbay, on behalf of the request that `outer` answers.
    pub(crate) fn within(outer: &Arc<Self>) -> Self {
        Self {
            for_one: true,
            outer: Some(Arc::clone(outer)),
            budget: outer.budget.clone(),
            ..Self::default()
        }
    }

    /// The same for results that stay whole, whatever their size.
    pub(crate) fn taking_whole_results(self) -> Self {
        Self { takes_whole: true, ..self }
    }

    pub(crate) fn takes_whole(&self) -> bool {
        self.takes_whole
    }

    pub(crate) fn outer(&self) -> Option<&Arc<Self>> {
        self.outer.as_ref()
    }

    pub(crate) fn takes_answers_only(&self) -> bool {
        self.answers_only
    }

    /// An outbox for all messages to one of many hosts.
    pub(crate) fn for_window(budget: &Arc<Budget>) -> Self {
        Self { budget: Some(Arc::clone(budget)), ..Self::default() }
    }

    /// An outbox for messages that belong to no request, if requests have their own. The host does not listen
    /// yet.
    pub(crate) fn for_notifications(budget: &Arc<Budget>) -> Self {
        let outbox = Self::for_window(budget);
        outbox.set_heard(false);
        outbox
    }

    /// Notes whether the host has a stream for these messages.
    pub(crate) fn set_heard(&self, heard: bool) {
        let mut queue = self.lock();
        queue.unheard = !heard;
        if !heard {
            let freed = queue.lanes.trim(LANE_UNHEARD, false);
            queue.bytes -= freed;
        }
    }

    /// Sets the notice about dropped messages.
    pub(crate) fn set_notice(&self, notice: Option<fn(u64) -> Frame>) {
        self.lock().notice = notice;
    }

    /// Drops the notifications that are kept for a host without a stream.
    pub(crate) fn drop_unheard(&self) {
        let mut queue = self.lock();
        if queue.unheard {
            let freed = queue.lanes.clear();
            queue.bytes -= freed;
        }
    }

    /// Whether an answer of this length can be kept. If the host is alone, the first one always can.
    pub(crate) fn has_room_for(&self, length: usize) -> bool {
        if let Some(budget) = &self.budget {
            return budget.has_room_for(length);
        }
        let waiting = self.lock().bytes;
        waiting == 0 || waiting.saturating_add(length) <= UNREAD_ALONE
    }

    /// Sends the answer to a request; it is never dropped.
    pub(crate) fn answer(&self, frame: Frame) {
        self.push(frame);
        if self.for_one {
            self.close();
        }
    }

    /// Answers a request of this raw id with an error by plugbay.
    pub(crate) fn refuse(&self, id: &[u8], refusal: &Refusal) {
        if self.for_one {
            let _ = self.refusal.set(refusal.clone()); // before the answer, which wakes the reader
        }
        self.answer(respond::error(id, refusal));
    }

    /// plugbay's error, if that is the answer; `None` if the answer comes from a server.
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

    /// Sends a notification. If the host does not keep up, the oldest ones are dropped.
    pub(crate) fn send_if_room(&self, frame: Frame) {
        self.push_droppable(Kind::Other, frame);
    }

    /// The same for a log message. Log messages displace no other notifications.
    pub(crate) fn send_log(&self, frame: Frame) {
        self.push_droppable(Kind::Log, frame);
    }

    /// Whether the host keeps up, so that more than answers may be sent to it.
    pub(crate) fn has_room(&self) -> bool {
        let waiting = {
            let queue = self.lock();
            queue.bytes - queue.lanes.bytes()
        };
        match &self.budget {
            None => waiting < HIGH,
            Some(budget) => waiting < HIGH_AMONG_MANY && budget.has_room(),
        }
    }

    /// Counts a message that waits elsewhere for the same host; `None` if there is no room for it.
    pub(crate) fn hold(&self, message: Bytes) -> Option<Bytes> {
        let own = || self.kept_elsewhere.get_or_init(|| Budget::new(UNREAD_ALONE));
        let budget = self.budget.as_ref().unwrap_or_else(own);
        let room = budget.has_room_for(message.len());
        room.then(|| budget.reserve(message.len()).around(message))
    }

    /// Closes the outbox of a cancelled request, which gets no answer.
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

    fn push_droppable(&self, kind: Kind, frame: Frame) {
        if self.answers_only {
            return;
        }
        let room = self.has_room();
        let mut queue = self.lock();
        if queue.closed {
            return;
        }
        if !room {
            return queue.lanes.note_dropped(kind);
        }
        let limit = match (&self.budget, queue.unheard) {
            (_, true) => LANE_UNHEARD,
            (Some(_), false) => LANE_AMONG_MANY,
            (None, false) => LANE_ALONE,
        };
        let heard = !queue.unheard;
        if !heard && frame.len() > limit.bytes {
            return queue.lanes.note_dropped(kind);
        }
        // A frame that waits is copied, so that it does not keep the whole buffer in which it was read.
        let waits = queue.bytes > 0 || !heard;
        let frame = if waits { Frame::from(Bytes::from(joined(&frame))) } else { frame };
        let frame = match &self.budget {
            None => frame,
            Some(budget) => budget.hold(frame),
        };
        let before = queue.taken + queue.frames.len() as u64;
        queue.bytes += frame.len();
        queue.lanes.push(kind, before, frame);
        let freed = queue.lanes.trim(limit, heard);
        queue.bytes -= freed;
        drop(queue);
        self.filled.notify_one();
    }

    /// Takes all queued messages; `None` when the outbox is closed and empty.
    pub(crate) async fn take(&self) -> Option<VecDeque<Frame>> {
        loop {
            {
                let mut queue = self.lock();
                if !queue.frames.is_empty() || !queue.lanes.is_empty() {
                    return Some(queue.take());
                }
                if queue.closed {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Takes the first message, if there is one.
    pub(crate) fn take_now(&self) -> Option<Frame> {
        let mut queue = self.lock();
        let frame = queue.frames.pop_front()?;
        queue.taken += 1;
        drop(queue);
        self.written(frame.len());
        Some(frame)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Whether the outbox is closed and every message has been taken.
    pub(crate) fn is_done(&self) -> bool {
        let queue = self.lock();
        queue.closed && queue.frames.is_empty() && queue.lanes.is_empty()
    }

    /// Notes that this many of the taken bytes were written.
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

    /// Ready when a server may be read further for this host.
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

    /// Waits until the host has read enough of its messages.
    pub(crate) async fn room(&self) {
        loop {
            let drained = self.drained.notified();
            if self.lock().bytes < HIGH {
                return;
            }
            drained.await;
        }
    }

    /// Waits until the host has read nothing for this long.
    pub(crate) async fn stuck(&self, patience: Duration) {
        loop {
            let before = self.lock().bytes;
            sleep(patience).await;
            if self.lock().bytes == before {
                return;
            }
        }
    }

    /// Closes the outbox. Queued messages can still be taken.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        queue.slot = None;
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

impl Queue {
    /// All queued messages, in the order in which they were sent.
    fn take(&mut self) -> VecDeque<Frame> {
        let frames = std::mem::take(&mut self.frames);
        let first = self.taken;
        self.taken += frames.len() as u64;
        if self.lanes.is_untouched() {
            return frames;
        }
        let mut all = self.lanes.merge_into(first, frames);
        if let Some((notice, dropped)) = self.notice.zip(self.lanes.take_dropped()) {
            let notice = notice(dropped);
            self.bytes += notice.len();
            all.push_front(notice);
        }
        all
    }
}

/// The bytes of a frame in a buffer of their own.
fn joined(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(frame.len());
    frame.pieces().iter().for_each(|piece| bytes.extend_from_slice(piece));
    bytes
}
