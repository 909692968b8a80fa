//! The task that owns one server: a closed loop over everything that can happen to it.

mod inbound;
mod notifications;
mod retired;
mod server_requests;
mod start;
mod task_roles;
mod tools;

use std::{
    collections::{BTreeMap, VecDeque},
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Dialect, Offer},
    era::{self, Era, MetaSlot},
    exchange::{Answer, Call, Caller, SubscriptionTarget, Ticket, Warmed},
    failure::{CallError, Failure, Limit},
    level::Level,
    lifecycle::{Admission, Due, Lifecycle, Patience, State},
    pending::Pending,
    task::TaskRole,
    wire::Draft,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::{Instant, Sleep, sleep, timeout},
};

use self::server_requests::ServerRequests;
use self::start::{Habits, StartError, Started};
use self::task_roles::TaskRoles;
use super::{
    Surroundings,
    listing::Listing,
    message::{Command, Condition, Report, Status},
    opening::{self, Opened},
};
use crate::{
    link::{Heard, Link},
    spec::{ServerSpec, Timeouts},
};

/// A server that takes no input may leave this much unread; further calls fail at once.
const BACKLOG_LIMIT: usize = 64 * 1024 * 1024;

/// An answer of this size is worth waiting for its reader,
const LARGE: usize = 16 * 1024;
/// but not for longer: behind it may be answers that others wait for.
const PRESSED: Duration = Duration::from_millis(250);
/// So many unusable messages in a row, and a server is given up.
const FAULTS_LIMIT: u32 = 10_000;
/// The shortest time between two lists of a server that keeps changing.
const LIST_PAUSE: Duration = Duration::from_secs(1);
/// The pause before a subscription that was cut off is opened again.
const RESUBSCRIBE: Duration = Duration::from_secs(5);
/// How long after an answer its buffers are kept for the next.
const REST: Duration = Duration::from_secs(1);
/// Where the timer stands when nothing is due.
const FAR_AWAY: Duration = Duration::from_secs(365 * 24 * 3600);

pub(super) struct Actor {
    spec: Arc<ServerSpec>,
    around: Surroundings,
    inbox: mpsc::UnboundedReceiver<Command>,
    status: watch::Sender<Status>,

    life: Lifecycle,
    phase: Phase,
    habits: Habits,
    opened: Opened,
    /// Calls that came while the server was being started.
    queue: VecDeque<Call>,
    /// Whoever waits for it to be up.
    warmed: Vec<Warmed>,
    pending: Pending<Waiting>,
    /// What the server has asked and not been told yet.
    server_requests: ServerRequests,
    /// What hosts have begun here and may come back to.
    task_roles: TaskRoles,
    /// Calls that a server died without having got any of: the next one gets them.
    resend: Vec<(Ticket, Bytes)>,
    /// Whoever got a large answer: nothing more is read before it has room, for a while.
    pressed: Option<Arc<dyn Caller>>,
    /// When the event came that is being dealt with.
    now: std::time::Instant,
    timer: Pin<Box<Sleep>>,
    /// Whether the timer is still to be heard. It may have fired already.
    wound_up: bool,
    /// When buffers are given back, unless another call comes.
    rest_at: Option<std::time::Instant>,
    /// When the tools are listed again because they changed.
    list_at: Option<std::time::Instant>,
    last_list: Option<std::time::Instant>,
    /// When a subscription that was cut off is opened again.
    subscribe_at: Option<std::time::Instant>,
    last_subscription: Option<std::time::Instant>,
    /// Unusable messages since the last good one.
    faults: u32,
    /// What somebody wants to hear of when it changes, and how many do.
    watched: BTreeMap<SubscriptionTarget, usize>,
    /// From which level on the server was told to log.
    level: Option<Level>,
    /// The subscription that is open.
    subscription: Option<Ticket>,
    /// Whether the running server has listed its tools at least once.
    listed: bool,
    /// The list changed while it was being read.
    list_again: bool,
    /// Servers on their way out.
    ending: JoinSet<()>,
    /// Links that can take no more but may still bring answers.
    retired: Vec<Link>,
}

enum Phase {
    Down,
    Opening(Pin<Box<dyn Future<Output = Start> + Send>>),
    Up(Link),
}

type Start = Result<Started, StartError>;

/// Who waits for an answer.
enum Waiting {
    Host(Arc<dyn Caller>),
    Listing(Listing),
    /// A modern server's list changes; answered only when the server ends it.
    Subscription,
    /// The answer changes nothing.
    Nobody,
}

enum Event {
    Command(Option<Command>),
    Opened(Start),
    Heard(Heard),
    Closed,
    /// The retired link at this place has said something, or has something to give back.
    Retired(usize, Option<Heard>),
    Tick,
}

impl Actor {
    pub(super) fn new(
        spec: Arc<ServerSpec>,
        known: Option<Dialect>,
        around: Surroundings,
        inbox: mpsc::UnboundedReceiver<Command>,
        status: watch::Sender<Status>,
    ) -> Self {
        let patience = Patience { idle: spec.timeouts.idle, ..Patience::default() };
        // Any number will do that differs from server to server.
        let seed =
            spec.name.as_str().bytes().fold(17u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
        Self {
            around,
            inbox,
            status,
            life: Lifecycle::new(patience, seed),
            phase: Phase::Down,
            habits: Habits::new(&spec, known),
            opened: Opened::default(),
            queue: VecDeque::new(),
            warmed: Vec::new(),
            pending: Pending::default(),
            server_requests: ServerRequests::default(),
            task_roles: TaskRoles::default(),
            resend: Vec::new(),
            pressed: None,
            now: now(),
            timer: Box::pin(sleep(FAR_AWAY)),
            wound_up: false,
            rest_at: None,
            list_at: None,
            last_list: None,
            subscribe_at: None,
            last_subscription: None,
            faults: 0,
            watched: BTreeMap::new(),
            level: None,
            subscription: None,
            listed: false,
            list_again: false,
            ending: JoinSet::new(),
            retired: Vec::new(),
            spec,
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let event = self.next_event().await;
            self.now = now();
            match event {
                Event::Command(Some(Command::Stop(done))) => return self.stop(Some(done)).await,
                Event::Command(None) => return self.stop(None).await,
                Event::Command(Some(command)) => self.command(command),
                Event::Opened(Ok(started)) => self.opened(started),
                Event::Opened(Err(error)) => self.start_failed(error),
                Event::Heard(heard) | Event::Retired(_, Some(heard)) => self.heard(heard),
                Event::Closed => self.closed().await,
                Event::Retired(place, None) => self.take_back(place),
                Event::Tick => self.tick(),
            }
            self.end_orphaned_questions();
            self.task_roles.forget_all_but(|ticket| self.pending.contains(ticket));
            self.open_anew_when_idle();
            self.show();
            // A server with much to say takes turns with the others.
            tokio::task::consume_budget().await;
        }
    }

    async fn next_event(&mut self) -> Event {
        self.wind_up();
        let server = async {
            if let Some(caller) = &self.pressed {
                let ready = timeout(PRESSED, poll_fn(|context| caller.poll_ready(context)));
                match &mut self.phase {
                    Phase::Up(link) => tokio::select! {
                        biased;
                        _ = ready => {}
                        () = link.write_on() => {}
                    },
                    Phase::Down | Phase::Opening(_) => {}
                }
                self.pressed = None;
            }
            match &mut self.phase {
                Phase::Down => std::future::pending().await,
                Phase::Opening(opening) => Event::Opened(opening.await),
                Phase::Up(link) => link.next().await.map_or(Event::Closed, Event::Heard),
            }
        };
        tokio::select! {
            // Commands first: all that wait go out in one write. The server last: one that never stops
            // talking must not stop the clock.
            biased;
            command = self.inbox.recv() => Event::Command(command),
            () = &mut self.timer, if self.wound_up => Event::Tick,
            (place, heard) = retired::next_of(&mut self.retired) => Event::Retired(place, heard),
            event = server => event,
        }
    }

    /// Sets the timer if it would fire too late. Firing too early is harmless, and rarer than calls.
    fn wind_up(&mut self) {
        let wake = self
            .life
            .next_tick()
            .into_iter()
            .chain(self.pending.next_deadline())
            .chain(self.rest_at)
            .chain(self.list_at)
            .chain(self.subscribe_at)
            .min();
        if let Some(wake) = wake.map(Instant::from_std)
            && (!self.wound_up || wake < self.timer.deadline())
        {
            self.timer.as_mut().reset(wake);
            self.wound_up = true;
        }
    }

    // --- what the host side wants

    fn command(&mut self, command: Command) {
        match command {
            Command::Forward(call) => self.forward(call),
            Command::Cancel { ticket, notification } => self.cancel(ticket, &notification),
            Command::Reply { server_request, reply } => self.replied(server_request, reply),
            Command::Watch(what) => self.watch(&what),
            Command::Unwatch(what) => self.unwatch(&what),
            Command::LogLevelChanged => self.log_level_changed(),
            Command::Notify(notification) => self.say(notification, opening::ANSWERS_LIMIT),
            Command::RootsChanged(notification) => self.roots_changed(notification),
            Command::Refresh => self.refresh(),
            Command::Warm(warmed) => self.warm(warmed),
            Command::Held(held) => self.life.held(held, self.now),
            // What is to be done is looked at behind every event.
            Command::AudienceGrew | Command::Stop(_) => {}
        }
    }

    fn forward(&mut self, call: Call) {
        // What the call changes must not be missed by whoever asked before it to hear of that.
        self.subscribe_if_due();
        match self.life.wanted(self.now) {
            Admission::Ready => self.send(call),
            Admission::Wait => self.queue.push_back(call),
            Admission::Start => {
                self.queue.push_back(call);
                self.start();
            }
            Admission::Refuse { failure, retry_in } => {
                let error = CallError::Resting { server: self.spec.name.clone(), failure, retry_in };
                call.caller.answered(call.ticket, Answer::Failed(error));
            }
        }
    }

    fn send(&mut self, call: Call) {
        let Phase::Up(link) = &mut self.phase else { return };
        if link.backlog() > BACKLOG_LIMIT {
            let failure = link.failure("does not read what it is sent");
            let error = CallError::Down { server: self.spec.name.clone(), failure: Arc::new(failure) };
            return call.caller.answered(call.ticket, Answer::Failed(error));
        }
        let Call { ticket, caller, mut request, era, params, timeout, task_role } = call;
        match (era, self.opened.era) {
            (Era::Legacy, Some(Era::Modern)) => {
                let slot = MetaSlot::find(request.message(), params.as_ref());
                let tasks = task_role != TaskRole::None;
                let (can, knows) = (caller.client_capabilities(), caller.extensions());
                let fields = opening::modern_fields_with(can, knows, caller.log_level(), tasks);
                request = slot.fill(request, &fields);
            }
            (Era::Modern, Some(Era::Legacy)) => request = era::without_envelope(request, params.as_ref()),
            _ => {}
        }
        link.request(ticket, request.render(ticket.0));
        let for_ever = matches!(task_role, TaskRole::Await(_)).then_some(Duration::MAX);
        self.set_out(ticket, &caller, task_role);
        let patience = timeout.or(for_ever).unwrap_or(self.spec.timeouts.call);
        let at_most = patience.max(self.spec.timeouts.call_max);
        self.pending.register(ticket, Waiting::Host(caller), self.now, patience, at_most);
    }

    fn cancel(&mut self, ticket: Ticket, notification: &Draft) {
        self.queue.retain(|call| call.ticket != ticket);
        if self.pending.complete(ticket).is_some() {
            self.call_off(ticket, &notification.render(ticket.0));
        }
    }

    fn refresh(&mut self) {
        match self.life.wanted(self.now) {
            Admission::Ready => self.list(),
            Admission::Start => self.start(),
            Admission::Wait | Admission::Refuse { .. } => {}
        }
    }

    fn warm(&mut self, warmed: Warmed) {
        if self.life.urged(self.now) == Admission::Start {
            self.start();
        }
        match &self.phase {
            Phase::Up(_) if self.listed => warmed.tell(Ok(())),
            _ => self.warmed.push(warmed),
        }
    }

    // --- the life of the server

    fn start(&mut self) {
        let opening = start::start(Arc::clone(&self.spec), self.around.clone(), self.habits);
        self.phase = Phase::Opening(Box::pin(opening));
    }

    fn opened(&mut self, started: Started) {
        self.phase = Phase::Up(started.link);
        self.habits = started.habits;
        self.opened = started.opened;
        self.listed = false;
        (self.list_again, self.list_at, self.last_list, self.subscribe_at) = (false, None, None, None);
        self.faults = 0;
        self.life.started(self.now);
        self.list();
        if self.opened.era == Some(Era::Modern) && self.opened.features.item_kinds().next().is_some() {
            self.subscribe();
        }
        self.ask_for_news();
        self.send_again();
        while let Some(call) = self.queue.pop_front() {
            self.send(call);
        }
    }

    fn send_again(&mut self) {
        let Phase::Up(link) = &mut self.phase else { return };
        for (ticket, message) in self.resend.drain(..) {
            if self.pending.contains(ticket) {
                link.request(ticket, message);
            }
        }
    }

    fn start_failed(&mut self, error: StartError) {
        self.habits = self.habits.doubted(&self.spec, error.silent);
        self.fail(error.failure);
    }

    async fn closed(&mut self) {
        if let Phase::Up(mut link) = std::mem::replace(&mut self.phase, Phase::Down) {
            let unsent = link.take_unsent();
            let during = if self.calling() { "during a call" } else { "while it was idle" };
            let failure = match self.retire(link) {
                Ok(failure) => failure,
                Err(link) => link.post_mortem(during, self.spec.timeouts.shutdown).await,
            };
            self.now = now();
            self.fail_but(failure, unsent);
            if !self.resend.is_empty() {
                self.life.wanted(self.now);
                self.start();
            }
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.fail_but(failure, Vec::new());
    }

    /// The server is gone: everybody who waits for it hears why, once. Calls that it never got are
    /// kept for its successor, unless it keeps on failing.
    fn fail_but(&mut self, failure: Failure, unsent: Vec<(Ticket, Bytes)>) {
        self.phase = Phase::Down;
        self.forget_questions();
        let failure = Arc::new(failure);
        tracing::warn!(server = %self.spec.name, "{failure}");
        self.life.failed(self.now, Arc::clone(&failure));
        self.lose_tasks(&failure);
        for warmed in self.warmed.drain(..) {
            warmed.tell(Err(Arc::clone(&failure)));
        }
        let error = CallError::Down { server: self.spec.name.clone(), failure: Arc::clone(&failure) };
        for call in self.queue.drain(..) {
            call.caller.answered(call.ticket, Answer::Failed(error.clone()));
        }
        self.resend = if self.life.forgives() { unsent } else { Vec::new() };
        // Others were taken back, or are server requests of our own that the next server is asked anyway.
        self.resend.retain(|(ticket, _)| matches!(self.pending.get(*ticket), Some(Waiting::Host(_))));
        let mut kept: Vec<Ticket> = self.retired.iter().flat_map(Link::under_way).collect();
        kept.extend(self.resend.iter().map(|(ticket, _)| *ticket));
        for (ticket, waiting) in self.pending.drain_but(|ticket| kept.contains(&ticket)) {
            if let Waiting::Host(caller) = waiting {
                caller.answered(ticket, Answer::Failed(error.clone()));
            }
        }
        self.tell(Err(failure));
    }

    fn tick(&mut self) {
        self.wound_up = false;
        while self.ending.try_join_next().is_some() {}
        if self.list_at.take_if(|at| *at <= self.now).is_some() {
            self.list();
        }
        self.subscribe_if_due();
        let busy = self.busy(); // also with what is only now given up
        for (ticket, waiting, after) in self.pending.expire(self.now) {
            self.expired(ticket, waiting, after);
        }
        if self.rest_at.is_some_and(|at| at <= self.now) {
            self.rest_at = busy.then(|| self.now + REST);
            if let (Phase::Up(link), false) = (&mut self.phase, busy) {
                link.rest();
            }
        }
        match self.life.tick(self.now, busy) {
            Some(Due::Start) => self.start(),
            Some(Due::Stop) => {
                self.life.stopped();
                self.forget_questions();
                self.pending.drain().for_each(drop);
                self.end_link();
            }
            None => {}
        }
    }

    fn expired(&mut self, ticket: Ticket, waiting: Waiting, after: Duration) {
        let server = self.spec.name.clone();
        match waiting {
            Waiting::Host(caller) => {
                self.call_off(ticket, &cancellation(ticket, "timed out"));
                let Timeouts { call, call_max, .. } = self.spec.timeouts;
                let limit = if [call, call_max].contains(&after) { Limit::Settings } else { Limit::Call };
                caller.answered(ticket, Answer::Failed(CallError::TimedOut { server, after, limit }));
            }
            // Many servers do one thing at a time: the list comes after the call.
            Waiting::Listing(listing) if self.listed && self.calling() => {
                self.pending.register(ticket, Waiting::Listing(listing), self.now, after, after);
            }
            Waiting::Listing(_) => {
                self.list_failed(format!("did not list its tools within {} s", after.as_secs()));
            }
            Waiting::Subscription | Waiting::Nobody => {}
        }
    }

    /// Ends a server that runs but is of no use.
    fn give_up(&mut self, what: String) {
        let Phase::Up(link) = &self.phase else { return };
        let failure = link.failure(what);
        self.end_link();
        self.fail(failure);
    }

    fn end_link(&mut self) {
        if let Phase::Up(link) = std::mem::replace(&mut self.phase, Phase::Down) {
            self.ending.spawn(link.end(self.spec.timeouts.shutdown));
        }
    }

    async fn stop(mut self, done: Option<oneshot::Sender<()>>) {
        let error = CallError::Gone(self.spec.name.clone());
        self.inbox.close();
        let mut others = Vec::new(); // who asked for the same end
        while let Ok(command) = self.inbox.try_recv() {
            match command {
                Command::Forward(call) => self.queue.push_back(call),
                Command::Cancel { ticket, notification } => self.cancel(ticket, &notification),
                Command::Reply { .. }
                | Command::Notify(_)
                | Command::RootsChanged(_)
                | Command::Watch(_)
                | Command::Unwatch(_)
                | Command::LogLevelChanged
                | Command::AudienceGrew
                | Command::Refresh
                | Command::Warm(_)
                | Command::Held(_) => {}
                Command::Stop(other) => others.push(other),
            }
        }
        self.forget_questions();
        for call in self.queue.drain(..) {
            call.caller.answered(call.ticket, Answer::Failed(error.clone()));
        }
        for (ticket, waiting) in self.pending.drain() {
            if let Waiting::Host(caller) = waiting {
                caller.answered(ticket, Answer::Failed(error.clone()));
            }
        }
        self.end_link();
        self.phase = Phase::Down; // a start under way ends with its process
        while self.ending.join_next().await.is_some() {}
        for done in done.into_iter().chain(others) {
            let _ = done.send(());
        }
    }

    fn calling(&self) -> bool {
        self.pending.iter().any(|waiting| matches!(waiting, Waiting::Host(_)))
    }

    /// A subscription to lists is open for as long as the server runs, and no use of it; what somebody
    /// watches is, and a task that may be under way.
    fn busy(&self) -> bool {
        !self.server_requests.is_empty()
            || self.task_roles.under_way(self.now)
            || !self.watched.is_empty()
            || !self.pending.iter().all(|waiting| matches!(waiting, Waiting::Subscription))
    }

    // --- what others see

    fn tell(&self, outcome: Result<Arc<Offer>, Arc<Failure>>) {
        let _ = self.around.reports.send(Report { spec: Arc::clone(&self.spec), outcome });
    }

    fn show(&self) {
        let condition = match self.life.state() {
            State::Asleep => Condition::Asleep,
            State::Failed { failure, .. } => Condition::Failed(Arc::clone(failure)),
            State::Ready { .. } if self.listed => Condition::Ready,
            State::Warming | State::Ready { .. } => Condition::Warming,
        };
        let pid = if let Phase::Up(link) = &self.phase { link.pid() } else { None };
        self.status.send_if_modified(|status| {
            let era = self.opened.era;
            let changed = status.condition != condition || status.pid != pid || status.era != era;
            if changed {
                *status = Status { condition, pid, era };
                self.around.shown.notify_one();
            }
            changed
        });
    }
}

/// Our own cancellation of a request.
fn cancellation(ticket: Ticket, reason: &str) -> Bytes {
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":"{reason}"}}}}"#,
        ticket.0
    ))
}

/// The runtime's clock, which tests can stop, in the terms of core.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}
