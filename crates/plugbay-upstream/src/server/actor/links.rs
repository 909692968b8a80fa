//! The links of one server: the current one, those that only wait for answers, and those that are ending.

use std::{
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use plugbay_core::{
    exchange::{Caller, Ticket},
    failure::{CallError, Failure},
};
use tokio::{sync::mpsc, task::JoinSet, time::timeout_at};

use super::{Actor, Event, Waiting, start, start_watch::Watch};
use crate::{
    http::TransportError,
    link::{Link, LinkEvent},
    slots::Slot,
    starts::Turn,
};

/// After a response of this size, the actor waits until its caller has room,
const LARGE_RESPONSE: usize = 16 * 1024;
/// but not for longer than this, not again until the caller has drained, and not while another host uses the server.
const SLOW_CALLER_TIMEOUT: Duration = Duration::from_millis(250);
/// The buffers of a link are kept for the next response for this long.
const TRIM_AFTER: Duration = Duration::from_secs(1);

/// All links of one server.
#[derive(Default)]
pub(super) struct Links {
    pub(super) current: Current,
    /// Links that can send no more but may still bring answers.
    pub(super) retired: Vec<Link>,
    pub(super) ending: JoinSet<()>,
    pub(super) slow_callers: SlowCallers,
    /// When unused buffers are released.
    pub(super) trim_at: Option<Instant>,
    /// The slot that the current link runs in, if it needs one.
    pub(super) slot: Option<Slot>,
    /// Malformed messages since the last valid one.
    pub(super) malformed: u32,
    /// The start in progress, once the server is open and until it has listed.
    pub(super) watch: Option<Watch>,
    /// The failure reported for a slow start in progress.
    pub(super) slow: Option<Arc<Failure>>,
    /// The reason why the server has failed, until it has been opened again.
    pub(super) away: Option<Arc<Failure>>,
}

/// The callers of large responses that do not keep up.
#[derive(Default)]
pub(super) struct SlowCallers {
    /// The caller whose room is awaited, and the end of that wait. Until then nothing more is read.
    awaited: Option<(Arc<dyn Caller>, Instant)>,
    /// Callers for which that wait was in vain.
    given_up: Vec<Weak<dyn Caller>>,
}

impl SlowCallers {
    /// Waits for the caller of a large response; used only while no other host waits for an answer.
    fn wait_for(&mut self, caller: &Arc<dyn Caller>, now: Instant) {
        let is_ready = caller.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready();
        let is_same = |slow: &Weak<dyn Caller>| std::ptr::addr_eq(slow.as_ptr(), Arc::as_ptr(caller));
        self.given_up.retain(|slow| slow.strong_count() > 0 && !(is_ready && is_same(slow)));
        if !is_ready && !self.given_up.iter().any(is_same) {
            self.awaited = Some((Arc::clone(caller), now + SLOW_CALLER_TIMEOUT));
        }
    }

    /// Ends the wait if another host uses the server, because that host must not wait.
    pub(super) fn called(&mut self, caller: &dyn Caller) {
        self.awaited.take_if(|(slow, _)| !slow.is_same_host(caller));
    }

    fn give_up(&mut self) {
        if let Some((caller, _)) = self.awaited.take() {
            self.given_up.push(Arc::downgrade(&caller));
        }
    }
}

/// The link that calls are sent over.
#[derive(Default)]
pub(super) enum Current {
    #[default]
    Down,
    /// Other instances of this server are running, and one of them may give way.
    AwaitingSlot(Pin<Box<dyn Future<Output = Result<Slot, CallError>> + Send>>),
    /// Other servers start first.
    Queued(Turn, Option<Slot>),
    Opening(Opening),
    Up(Link),
}

/// A server that is being opened.
pub(super) struct Opening {
    pub(super) start: Pin<Box<dyn Future<Output = Result<start::Started, start::StartError>> + Send>>,
    /// Receives a failure when the start is slow.
    pub(super) slow: mpsc::UnboundedReceiver<Failure>,
}

impl Links {
    /// Whether a server that has failed is being opened.
    pub(super) fn is_trying_again(&self) -> bool {
        self.away.is_some() && matches!(self.current, Current::Opening(_))
    }

    pub(super) fn up(&self) -> Option<&Link> {
        if let Current::Up(link) = &self.current { Some(link) } else { None }
    }

    pub(super) fn up_mut(&mut self) -> Option<&mut Link> {
        if let Current::Up(link) = &mut self.current { Some(link) } else { None }
    }

    /// Takes the link out, if it is up; nothing is up or being opened after this.
    pub(super) fn take(&mut self) -> Option<Link> {
        self.start_ended();
        match std::mem::take(&mut self.current) {
            Current::Up(link) => Some(link),
            Current::Down | Current::AwaitingSlot(_) | Current::Queued(..) | Current::Opening(_) => None,
        }
    }

    /// Notes that the start is over, successful or not; this ends its turn in the queue of starts.
    pub(super) fn start_ended(&mut self) {
        (self.watch, self.slow) = (None, None);
    }

    pub(super) fn opened(&mut self, link: Link, slot: Option<Slot>) {
        self.current = Current::Up(link);
        self.slot = slot;
        self.malformed = 0;
    }

    /// Ends the current link in the background.
    pub(super) fn end(&mut self, grace: Duration) {
        if let Some(link) = self.take() {
            let slot = self.slot.take();
            self.ending.spawn(async move {
                link.end(grace).await;
                drop(slot); // only now another instance may run
            });
        }
    }

    pub(super) fn trim_later(&mut self, now: Instant) {
        self.trim_at = Some(now + TRIM_AFTER);
    }

    /// Releases unused buffers if they are due. A busy server keeps them.
    pub(super) fn trim(&mut self, now: Instant, busy: bool) {
        if self.trim_at.is_none_or(|at| now < at) {
            return;
        }
        self.trim_at = busy.then(|| now + TRIM_AFTER);
        if let (Some(link), false) = (self.up_mut(), busy) {
            link.trim();
        }
    }

    /// Requests that retired links may still bring answers to.
    pub(super) fn in_flight_on_retired(&self) -> Vec<Ticket> {
        self.retired.iter().flat_map(Link::in_flight).collect()
    }
}

/// The next event of the current link. Dropping the future loses nothing.
pub(super) async fn next(current: &mut Current, slow_callers: &mut SlowCallers) -> Event {
    if let (Some((caller, until)), Current::Up(link)) = (&slow_callers.awaited, &mut *current) {
        let ready = timeout_at((*until).into(), poll_fn(|context| caller.poll_ready(context)));
        let in_time = tokio::select! {
            biased;
            outcome = ready => outcome.is_ok(),
            () = link.keep_writing() => true,
        };
        if !in_time {
            slow_callers.give_up();
        }
    }
    slow_callers.awaited = None;
    match current {
        Current::Down => pending().await,
        Current::AwaitingSlot(slot) => Event::Slot(slot.await),
        Current::Queued(turn, _) => {
            turn.granted().await;
            Event::Turn
        }
        Current::Opening(Opening { start, slow }) => tokio::select! {
            biased;
            Some(failure) = slow.recv() => Event::Slow(failure),
            outcome = start => Event::Opened(outcome),
        },
        Current::Up(link) => link.next().await.map_or(Event::Closed, Event::Link),
    }
}

/// The next event of any retired link, and its index. Dropping the future loses nothing.
pub(super) async fn next_retired(links: &mut [Link]) -> (usize, Option<LinkEvent>) {
    poll_fn(|context| {
        for (index, link) in links.iter_mut().enumerate() {
            if let Poll::Ready(event) = pin!(link.next()).poll(context) {
                return Poll::Ready((index, event));
            }
        }
        Poll::Pending
    })
    .await
}

impl Actor {
    /// Handles a response whose caller may be slower than the server.
    pub(super) fn responded(&mut self, length: usize, caller: &Arc<dyn Caller>) {
        self.links.trim_later(self.now);
        let waits = |other: &Waiting| matches!(other, Waiting::Host(host) if !host.is_same_host(&**caller));
        if length >= LARGE_RESPONSE && !self.pending.iter().any(waits) {
            self.links.slow_callers.wait_for(caller, self.now);
        }
    }

    /// Keeps a link if calls may still be answered over it: a server forgets a session sooner than the calls
    /// that it is working on. `Err` returns the link.
    pub(super) fn retire(&mut self, mut link: Link) -> Result<Failure, Link> {
        let mut in_flight = link.in_flight();
        in_flight.retain(|ticket| matches!(self.pending.get(*ticket), Some(Waiting::Host(_))));
        if in_flight.is_empty() {
            return Err(link);
        }
        let failure = link.retire(&in_flight);
        self.links.retired.push(link);
        Ok(failure)
    }

    /// Moves the requests that a retired link did not send to the current one.
    pub(super) fn reclaim_unsent(&mut self, index: usize) {
        let link = &mut self.links.retired[index];
        let unsent = link.take_unsent();
        if link.in_flight().is_empty() {
            drop(self.links.retired.swap_remove(index));
        }
        self.queue.keep_unsent(unsent);
        match &self.links.current {
            Current::Up(_) => self.send_unsent(),
            Current::AwaitingSlot(_) | Current::Queued(..) | Current::Opening(_) => {}
            Current::Down => {
                for (ticket, _) in self.queue.take_unsent() {
                    self.undelivered(ticket, &TransportError::SessionGone);
                }
            }
        }
    }

    /// Ends a request that waits for a login, whichever link it was sent over.
    pub(super) fn abandon_request(&mut self, ticket: Ticket) {
        let Links { current, retired, .. } = &mut self.links;
        let up = if let Current::Up(link) = current { Some(link) } else { None };
        for link in retired.iter_mut().chain(up) {
            link.abandon(ticket);
        }
    }

    /// Tells the server that no answer is needed, over the link that carried the request.
    pub(super) fn cancel_request(&mut self, ticket: Ticket, notification: &Bytes) {
        let Links { current, retired, .. } = &mut self.links;
        let up = if let Current::Up(link) = current { Some(link) } else { None };
        for link in retired.iter_mut().chain(up) {
            link.cancel(ticket, notification.clone());
        }
    }
}
