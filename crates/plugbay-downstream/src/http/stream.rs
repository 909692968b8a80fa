//! An event stream that outlives its connection: a legacy host resumes it and gets the events that it missed.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hyper::{Response, StatusCode};
use plugbay_core::wire::Frame;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep},
};

use super::reply::{self, Body, Disconnected};
use crate::{host_view::HostView, outbox::Outbox};

/// How long a stream waits for its host to come back, and how long when memory is short.
const WAITS: Duration = Duration::from_secs(60);
const WAITS_UNDER_PRESSURE: Duration = Duration::from_secs(5);
/// How much of the sent events is kept in addition to the newest.
const KEPT: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct EventStream {
    number: u64,
    sink: Arc<Outbox>,
    /// Set if the stream carries `list_changed` notifications.
    host_view: Option<Arc<HostView>>,
    /// The first event is empty: it gives the host an id to come back with.
    primes: bool,
    // A std mutex: held to look or to add, never across an await.
    log: Mutex<Log>,
    /// Counts connections. Only the latest one is served: an earlier one is broken, even if that was not
    /// noticed yet.
    generation: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Log {
    events: VecDeque<(u64, Frame)>,
    bytes: usize,
    last: u64,
    /// The last event that was sent on any connection.
    sent: u64,
    /// The time of the last disconnection; `None` while a host is connected.
    disconnected_since: Option<Instant>,
    /// Everything was sent, including the answer.
    finished: bool,
    /// The answer is known to have come, so the stream's waiting time has begun.
    answered: bool,
}

/// A host's position: the stream and the last event that it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) event: u64,
}

impl EventId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, event) = text.split_once('-')?;
        Some(Self { stream: stream.parse().ok()?, event: event.parse().ok()? })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.stream, self.event)
    }
}

impl EventStream {
    /// `sent` are the messages that were already taken from the sink.
    pub(super) fn new(number: u64, sink: Arc<Outbox>, primes: bool, sent: VecDeque<Frame>) -> Arc<Self> {
        let stream = Self::of(None, number, sink, primes);
        stream.lock().add(sent);
        Arc::new(stream)
    }

    /// A stream for messages that belong to no request.
    pub(super) fn for_notifications(
        host_view: &Arc<HostView>,
        number: u64,
        sink: Arc<Outbox>,
        primes: bool,
    ) -> Arc<Self> {
        Arc::new(Self::of(Some(Arc::clone(host_view)), number, sink, primes))
    }

    fn of(host_view: Option<Arc<HostView>>, number: u64, sink: Arc<Outbox>, primes: bool) -> Self {
        let log = Log { disconnected_since: Some(Instant::now()), ..Log::default() };
        Self { number, sink, host_view, primes, log: Mutex::new(log), generation: watch::Sender::new(0) }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Sends only new events.
    pub(super) fn open(self: &Arc<Self>) -> Response<Body> {
        let last = self.lock().last;
        self.attach(last, self.primes)
    }

    /// Sends all events from the start.
    pub(super) fn open_from_start(self: &Arc<Self>) -> Response<Body> {
        self.attach(0, self.primes)
    }

    /// Sends the events after this one. Some of them may be gone, but never the answer. If no more will come,
    /// the status tells the host not to reconnect, as server-sent events define it. After an empty stream it
    /// would reconnect, and open other streams.
    pub(super) fn resume(self: &Arc<Self>, event: u64) -> Response<Body> {
        if self.sink.is_done() && self.next_behind(event).is_none() {
            return reply::empty(StatusCode::NO_CONTENT);
        }
        self.attach(event, false)
    }

    /// Breaks the connection. A host that may come back resumes the stream.
    pub(super) fn detach(&self) {
        self.generation.send_modify(|generation| *generation += 1);
        self.lock().disconnected_since.get_or_insert_with(Instant::now);
        self.sink.set_heard(false);
    }

    fn attach(self: &Arc<Self>, behind: u64, prime: bool) -> Response<Body> {
        let (out, response) = reply::events();
        self.generation.send_modify(|generation| *generation += 1);
        let mut generation = self.generation.subscribe();
        let mine = *generation.borrow_and_update();
        self.lock().disconnected_since = None;
        self.sink.set_heard(true);
        let (stream, listener) = (Arc::clone(self), self.host_view.as_ref().map(HostView::listen));
        tokio::spawn(async move {
            let _ = stream.pump(behind, prime, &out, &mut generation).await;
            if *stream.generation.borrow() == mine {
                stream.lock().disconnected_since = Some(Instant::now());
                stream.sink.set_heard(false);
            }
            drop(listener);
        });
        response
    }

    async fn pump(
        &self,
        behind: u64,
        prime: bool,
        out: &mpsc::Sender<Bytes>,
        generation: &mut watch::Receiver<u64>,
    ) -> Result<(), Disconnected> {
        let mut sent = behind;
        if prime {
            let id = EventId { stream: self.number, event: sent };
            out.send(Bytes::from(format!("id: {id}\ndata: \n\n"))).await.map_err(|_| Disconnected)?;
        }
        loop {
            while let Some((event, message)) = self.next_behind(sent) {
                let id = EventId { stream: self.number, event }.to_string();
                reply::send(out, Some(&id), &message).await?;
                sent = event;
                self.lock().sent(event);
            }
            if self.sink.is_done() {
                self.lock().finished = true;
                return Ok(());
            }
            tokio::select! {
                biased; // an earlier connection takes no more messages
                _ = generation.changed() => return Err(Disconnected),
                () = out.closed() => return Err(Disconnected),
                frames = reply::take(&self.sink) => self.lock().add(frames.unwrap_or_default()),
                () = sleep(reply::KEEP_ALIVE) => reply::keep_alive(out).await?,
            }
        }
    }

    fn next_behind(&self, event: u64) -> Option<(u64, Frame)> {
        self.lock().events.iter().find(|(number, _)| *number > event).cloned()
    }

    pub(super) fn is_attached(&self) -> bool {
        self.lock().disconnected_since.is_none()
    }

    /// Bytes that are kept only because the end of a sent answer may not have arrived.
    pub(super) fn finished_bytes(&self) -> Option<usize> {
        let log = self.lock();
        (log.finished && log.disconnected_since.is_some()).then_some(log.bytes)
    }

    /// Whether no host came back for the answer in time. A stream with a call in flight is never abandoned.
    pub(super) fn is_abandoned(&self, now: Instant, under_pressure: bool) -> bool {
        let mut log = self.lock();
        if log.disconnected_since.is_some() && !log.answered {
            log.disconnected_since = Some(now);
            log.answered = self.sink.is_closed();
        }
        let waits = if under_pressure { WAITS_UNDER_PRESSURE } else { WAITS };
        log.disconnected_since.is_some_and(|since| now.duration_since(since) >= waits)
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        // Nothing can panic half-way through a change, so a poisoned log is still whole.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn add(&mut self, messages: VecDeque<Frame>) {
        for message in messages {
            self.last += 1;
            self.bytes += message.len();
            self.events.push_back((self.last, message));
        }
        self.trim();
    }

    fn sent(&mut self, event: u64) {
        self.sent = self.sent.max(event);
        self.trim();
    }

    /// Drops old events, but never unsent ones: a server request among them would wait for ever. The newest
    /// stays, whatever its size: it may be the answer.
    fn trim(&mut self) {
        while self.bytes > KEPT && self.events.len() > 1 && self.events[0].0 <= self.sent {
            let dropped = self.events.pop_front();
            self.bytes -= dropped.map_or(0, |(_, message)| message.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_drops_only_sent_events_and_never_the_newest() {
        let large = || Frame::from(vec![b'x'; KEPT]);
        let mut log = Log::default();
        log.add([large(), large(), large()].into());
        let kept = |log: &Log| log.events.iter().map(|(number, _)| *number).collect::<Vec<_>>();
        assert_eq!(kept(&log), [1, 2, 3], "however much waits to be sent at once");
        log.sent(1);
        assert_eq!(kept(&log), [2, 3]);
        log.sent(3);
        assert_eq!((kept(&log), log.bytes), (vec![3], KEPT));
        log.add([large()].into());
        assert_eq!(kept(&log), [4]);
    }
}
