//! The actor that owns one server: a closed loop over all its events.
//!
//! Its state is in [`super::state`] and [`links`]; the other files hold the methods for the events.

mod commands;
mod dialect;
mod inbound;
mod lifecycle;
mod links;
mod listing;
mod login;
mod notifications;
mod server_requests;
mod start;
mod start_watch;
mod timer;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use plugbay_core::{
    catalog::{Dialect, HiddenText},
    credentials::LoginOffer,
    exchange::{Caller, ListChange, Ticket},
    failure::{CallError, Failure},
    lifecycle::{Lifecycle, Patience},
    pending::{GAP, Pending},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use self::{
    dialect::Speech,
    links::Links,
    listing::PageRead,
    login::LoginState,
    start::{StartError, Started},
    start_watch::Watch,
    timer::Timer,
};
use super::{
    ServerContext, clock,
    message::{Command, ListTerms, Status},
    opening::Opened,
    state::{
        list_schedule::ListSchedule, listing::Listing, server_requests::ServerRequests,
        start_queue::StartQueue, subscriptions::Subscriptions, tasks::Tasks,
    },
};
use crate::{link::LinkEvent, slots::Slot, spec::ServerSpec};

/// Longest pause before a remote is tried again. An attempt is just one connection, and the remote should
/// soon be usable.
const REMOTE_RETRY: Duration = Duration::from_secs(3);
/// Longest interval of the timer while requests have a deadline. It shows a time in which the process did not
/// run.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long a call waits for a remote that was away: its user should get the error within 2 s.
const REMOTE_OPENING: Duration = Duration::from_millis(1800);

pub(super) struct Actor {
    spec: Arc<ServerSpec>,
    context: ServerContext,
    handles: HandleSide,
    /// The time of the event that is being handled.
    now: Instant,
    timer: Timer,

    lifecycle: Lifecycle,
    login: LoginState,
    links: Links,
    /// The dialect of the server: remembered, or learnt at the last opening.
    speech: Speech,
    opened: Opened,
    queue: StartQueue,
    /// Requests that the server has not answered yet.
    pending: Pending<Waiting>,
    server_requests: ServerRequests,
    tasks: Tasks,
    listing: ListingState,
    subscriptions: Subscriptions,
}

/// The state of the server's lists: when they are requested, and for which hosts.
#[derive(Default)]
struct ListingState {
    schedule: ListSchedule,
    /// The terms of the listing in progress, or else of the last one.
    terms: ListTerms,
    /// Whether hosts have sent requests to this process.
    is_touched: bool,
    /// The change that the listing in progress will show, and the one that the next will show.
    change_listed: Option<Arc<ListChange>>,
    change_noted: Option<Arc<ListChange>>,
    /// The hidden characters that were logged.
    hidden: Option<Arc<HiddenText>>,
    /// Long pages that are being read in another thread.
    reading: JoinSet<(Ticket, Option<PageRead>)>,
}

/// The actor's side of its handles.
struct HandleSide {
    inbox: mpsc::UnboundedReceiver<Command>,
    status: watch::Sender<Status>,
}

/// The recipient of a response.
enum Waiting {
    Host(Arc<dyn Caller>),
    Listing(Listing),
    /// The page has come, and is being read in another thread.
    Page,
    /// `subscriptions/listen`, which a modern server answers only when it ends the subscription.
    Subscription,
    /// Nobody needs the response.
    Nobody,
}

/// An event of a server.
enum Event {
    Command(Option<Command>),
    /// An instance of the server may run, or there is no slot.
    Slot(Result<Slot, CallError>),
    /// The server may start now.
    Turn,
    /// The start exceeds its timeout but goes on.
    Slow(Failure),
    Opened(Result<Started, StartError>),
    Link(LinkEvent),
    Closed,
    /// The retired link at this index has an event. `None`: it has unsent requests, or is done.
    Retired(usize, Option<LinkEvent>),
    /// A long page was read.
    Page(Ticket, Option<PageRead>),
    /// A long page could not be read.
    PageLost,
    /// There are other credentials than the ones that needed a login.
    CredentialsChanged,
    /// A login has begun, and the user can be told where to log in.
    LoginBegun(Result<LoginOffer, Arc<Failure>>),
    /// The login that hosts were asked for has failed.
    LoginFailed(Arc<Failure>),
    /// Something may be due. `gap` is the time in which the process did not run.
    Tick {
        gap: Option<Duration>,
    },
}

impl Actor {
    pub(super) fn new(
        spec: Arc<ServerSpec>,
        known: Option<Dialect>,
        context: ServerContext,
        inbox: mpsc::UnboundedReceiver<Command>,
        status: watch::Sender<Status>,
    ) -> Self {
        // The instance of a session may never be used again, so it is restarted only for a call. A remote is
        // tried again in any case: an attempt is only a connection.
        let comes_back = context.slots.is_none() || spec.is_remote();
        let mut patience = Patience { idle: spec.timeouts.idle, comes_back, ..Patience::default() };
        if spec.is_remote() {
            patience.last_retry = REMOTE_RETRY;
        }
        // Any number that differs between servers will do.
        let seed =
            spec.name.as_str().bytes().fold(17u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
        Self {
            context,
            handles: HandleSide { inbox, status },
            now: clock::now(),
            timer: Timer::default(),
            lifecycle: Lifecycle::new(patience, seed),
            login: LoginState::default(),
            links: Links::default(),
            speech: Speech::new(&spec, known),
            opened: Opened::default(),
            queue: StartQueue::default(),
            pending: Pending::default(),
            server_requests: ServerRequests::default(),
            tasks: Tasks::default(),
            listing: ListingState::default(),
            subscriptions: Subscriptions::default(),
            spec,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let event = self.next_event().await;
            self.now = clock::now();
            match event {
                Event::Command(None) => return self.stop(None).await,
                Event::Command(Some(Command::Stop(done))) => return self.stop(Some(done)).await,
                Event::Closed => self.closed().await,
                event => self.handle(event),
            }
            self.after_event();
            // A server with many messages takes turns with the others.
            tokio::task::consume_budget().await;
        }
    }

    async fn next_event(&mut self) -> Event {
        self.arm_timer();
        let Links { current, retired, slow_callers, .. } = &mut self.links;
        tokio::select! {
            // Commands come first: all that wait go out in one write. The server comes last: one that never
            // stops sending must not stop the clock.
            biased;
            command = self.handles.inbox.recv() => Event::Command(command),
            late = self.timer.fired() => Event::Tick { gap: gap(late, self.now) },
            event = self.login.next() => event,
            Some(read) = self.listing.reading.join_next() => match read {
                Ok((ticket, page)) => Event::Page(ticket, page),
                Err(_) => Event::PageLost,
            },
            (index, event) = links::next_retired(retired) => Event::Retired(index, event),
            event = links::next(current, slow_callers) => event,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Command(Some(command)) => self.command(command),
            Event::Slot(Ok(slot)) => self.enqueue(Some(slot)),
            Event::Slot(Err(busy)) => self.no_slot(&busy),
            Event::Turn => self.launch(),
            Event::Slow(failure) => self.start_is_slow(failure),
            Event::Opened(Ok(started)) => self.opened(started),
            Event::Opened(Err(error)) => self.start_failed(error),
            Event::Link(event) | Event::Retired(_, Some(event)) => self.link_event(event),
            Event::Retired(index, None) => self.reclaim_unsent(index),
            Event::Page(ticket, page) => self.page_read(ticket, page),
            Event::PageLost => self.page_lost(),
            Event::CredentialsChanged => self.credentials_changed(),
            Event::LoginBegun(outcome) => self.login_begun(&outcome),
            Event::LoginFailed(failure) => self.login_failed(&failure),
            Event::Tick { gap } => self.tick(gap),
            Event::Command(None) | Event::Closed => {} // `run` handles these
        }
    }

    /// Does what any event may have made necessary.
    fn after_event(&mut self) {
        self.end_orphaned_requests();
        self.end_orphaned_logins();
        self.tasks.retain_calls(|ticket| self.pending.contains(ticket));
        self.reopen_when_idle();
        self.publish_status();
    }

    fn arm_timer(&mut self) {
        let wake = self
            .lifecycle
            .next_tick()
            .into_iter()
            .chain(self.pending.next_deadline())
            .chain(self.links.trim_at)
            .chain(self.links.watch.as_ref().map(Watch::next_look))
            .chain(self.queue.next_deadline())
            .chain(self.listing.schedule.next_deadline())
            .chain(self.login.next_deadline())
            .chain(self.subscriptions.next_deadline())
            .chain(self.pending.next_deadline().map(|_| self.now + HEARTBEAT))
            .min();
        self.timer.arm(wake);
    }
}

/// The time in which the process did not run, if the timer fired late and the previous event came at
/// `before`. The process may have stopped well before the timer was due.
fn gap(late: Duration, before: Instant) -> Option<Duration> {
    let since = clock::now().saturating_duration_since(before);
    (late > GAP).then(|| since.min(late + HEARTBEAT))
}
