//! The task that owns one server: a closed loop over everything that can happen to it.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Manners, Offer, Tool},
    era::{Era, MetaSlot},
    exchange::{Answer, Call, Caller, Ticket},
    failure::{CallError, Failure},
    lifecycle::{Admission, Due, Lifecycle, Patience, State},
    pending::Pending,
    wire::{Draft, Fault, Framing, Head, Incoming, Kind, Malformed, Members, Span},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::{Instant, Sleep, sleep, timeout},
};

use super::{
    Surroundings,
    listing::{self, Listing, Step},
    message::{Command, Condition, Report, Status},
    opening::{self, OpenError, Opened},
};
use crate::{
    link::Link,
    spec::{self, ServerSpec, Transport},
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
/// How long after an answer its buffers are kept for the next.
const REST: Duration = Duration::from_secs(1);
/// Where the timer stands when nothing is due.
const FAR_AWAY: Duration = Duration::from_secs(365 * 24 * 3600);

pub(super) struct Task {
    spec: Arc<ServerSpec>,
    around: Surroundings,
    inbox: mpsc::UnboundedReceiver<Command>,
    status: watch::Sender<Status>,

    life: Lifecycle,
    phase: Phase,
    /// What is known of the server: remembered, or learnt when it was opened.
    era: Option<Era>,
    opened: Opened,
    framing: Framing,
    /// Calls that came while the server was being started.
    queue: VecDeque<Call>,
    pending: Pending<Waiting>,
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
    last_subscription: Option<std::time::Instant>,
    /// Unusable messages since the last good one.
    faults: u32,
    /// Whether the running server has listed its tools at least once.
    listed: bool,
    /// The list changed while it was being read.
    list_again: bool,
    /// Servers on their way out.
    ending: JoinSet<()>,
}

enum Phase {
    Down,
    Opening(Pin<Box<dyn Future<Output = Start> + Send>>),
    Up(Box<Link>),
}

type Start = Result<(Box<Link>, Opened), StartError>;

/// Why a start failed. `silent`: the server ran but never said a word.
struct StartError {
    failure: Failure,
    silent: bool,
}

/// Who waits for an answer.
enum Waiting {
    Host(Arc<dyn Caller>),
    Listing(Listing),
    /// A modern server's list changes; answered only when the server ends it.
    Subscription,
}

#[expect(clippy::large_enum_variant, reason = "one event lives at a time, and a box would cost each call")]
enum Event {
    Command(Option<Command>),
    Opened(Start),
    Incoming(Incoming),
    Closed,
    Tick,
}

impl Task {
    pub(super) fn new(
        spec: Arc<ServerSpec>,
        known: Option<Manners>,
        around: Surroundings,
        inbox: mpsc::UnboundedReceiver<Command>,
        status: watch::Sender<Status>,
    ) -> Self {
        let patience = Patience { idle: spec.timeouts.idle, ..Patience::default() };
        let Transport::Stdio(stdio) = &spec.transport;
        let framing = match stdio.framing {
            spec::Framing::ContentLength => Framing::ContentLength,
            spec::Framing::Newline => Framing::Newline,
            spec::Framing::Auto => known.map(|known| known.framing).unwrap_or_default(),
        };
        // Any number will do that differs from server to server.
        let seed =
            spec.name.as_str().bytes().fold(17u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
        Self {
            around,
            inbox,
            status,
            life: Lifecycle::new(patience, seed),
            phase: Phase::Down,
            era: known.map(|known| known.era),
            opened: Opened::default(),
            framing,
            queue: VecDeque::new(),
            pending: Pending::default(),
            resend: Vec::new(),
            pressed: None,
            now: now(),
            timer: Box::pin(sleep(FAR_AWAY)),
            wound_up: false,
            rest_at: None,
            list_at: None,
            last_list: None,
            last_subscription: None,
            faults: 0,
            listed: false,
            list_again: false,
            ending: JoinSet::new(),
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
                Event::Opened(Ok((link, opened))) => self.opened(link, opened),
                Event::Opened(Err(error)) => self.start_failed(error),
                Event::Incoming(item) => self.incoming(item),
                Event::Closed => self.closed().await,
                Event::Tick => self.tick(),
            }
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
                        () = link.connection.write_on() => {}
                    },
                    Phase::Down | Phase::Opening(_) => {}
                }
                self.pressed = None;
            }
            match &mut self.phase {
                Phase::Down => std::future::pending().await,
                Phase::Opening(opening) => Event::Opened(opening.await),
                Phase::Up(link) => link.next().await.map_or(Event::Closed, Event::Incoming),
            }
        };
        tokio::select! {
            // Commands first: all that wait go out in one write. The server last: one that never stops
            // talking must not stop the clock.
            biased;
            command = self.inbox.recv() => Event::Command(command),
            () = &mut self.timer, if self.wound_up => Event::Tick,
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
            Command::Refresh => self.refresh(),
            Command::Stop(_) => {}
        }
    }

    fn forward(&mut self, call: Call) {
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
        if link.connection.backlog() > BACKLOG_LIMIT {
            let failure = link.failure("does not read what it is sent");
            let error = CallError::Down { server: self.spec.name.clone(), failure: Arc::new(failure) };
            return call.caller.answered(call.ticket, Answer::Failed(error));
        }
        let Call { ticket, caller, mut request, era, params, timeout } = call;
        if self.opened.era == Some(Era::Modern) && era == Era::Legacy {
            let slot = MetaSlot::find(request.message(), params.as_ref());
            request = slot.fill(request, &opening::modern_fields());
        }
        link.connection.send_call(ticket, request.render(ticket.0));
        let patience = timeout.unwrap_or(self.spec.timeouts.call);
        let at_most = patience.max(self.spec.timeouts.call_max);
        self.pending.register(ticket, Waiting::Host(caller), self.now, patience, at_most);
    }

    fn cancel(&mut self, ticket: Ticket, notification: &Draft) {
        self.queue.retain(|call| call.ticket != ticket);
        if self.pending.complete(ticket).is_some()
            && let Phase::Up(link) = &mut self.phase
        {
            link.connection.send(notification.render(ticket.0));
        }
    }

    fn refresh(&mut self) {
        match self.life.wanted(self.now) {
            Admission::Ready => self.list(),
            Admission::Start => self.start(),
            Admission::Wait | Admission::Refuse { .. } => {}
        }
    }

    // --- the life of the server

    fn start(&mut self) {
        let opening = start(Arc::clone(&self.spec), self.around.clone(), self.era, self.framing);
        self.phase = Phase::Opening(Box::pin(opening));
    }

    fn opened(&mut self, link: Box<Link>, opened: Opened) {
        self.phase = Phase::Up(link);
        self.era = opened.era;
        self.opened = opened;
        self.listed = false;
        (self.list_again, self.list_at, self.last_list) = (false, None, None);
        self.faults = 0;
        self.life.started(self.now);
        self.list();
        if self.opened.era == Some(Era::Modern) && self.opened.has_tools {
            self.subscribe();
        }
        self.send_again();
        while let Some(call) = self.queue.pop_front() {
            self.send(call);
        }
    }

    fn send_again(&mut self) {
        let Phase::Up(link) = &mut self.phase else { return };
        for (ticket, message) in self.resend.drain(..) {
            if self.pending.contains(ticket) {
                link.connection.send_call(ticket, message);
            }
        }
    }

    fn start_failed(&mut self, error: StartError) {
        let Transport::Stdio(stdio) = &self.spec.transport;
        if error.silent && stdio.framing == spec::Framing::Auto {
            self.framing = match self.framing {
                Framing::Newline => Framing::ContentLength,
                Framing::ContentLength => Framing::Newline,
            };
        }
        self.fail(error.failure);
    }

    async fn closed(&mut self) {
        if let Phase::Up(mut link) = std::mem::replace(&mut self.phase, Phase::Down) {
            let unsent = link.connection.take_unsent();
            let during = if self.calling() { "during a call" } else { "while it was idle" };
            let failure = link.post_mortem(during, self.spec.timeouts.shutdown).await;
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
        let failure = Arc::new(failure);
        tracing::warn!(server = %self.spec.name, "{failure}");
        self.life.failed(self.now, Arc::clone(&failure));
        let error = CallError::Down { server: self.spec.name.clone(), failure: Arc::clone(&failure) };
        for call in self.queue.drain(..) {
            call.caller.answered(call.ticket, Answer::Failed(error.clone()));
        }
        self.resend = if self.life.forgives() { unsent } else { Vec::new() };
        self.resend.retain(|(ticket, _)| self.pending.contains(*ticket)); // others were taken back
        let resend = &self.resend;
        for (ticket, waiting) in
            self.pending.drain_but(|ticket| resend.iter().any(|(kept, _)| *kept == ticket))
        {
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
        let busy = self.busy(); // also with what is only now given up
        for (ticket, waiting, after) in self.pending.expire(self.now) {
            self.expired(ticket, waiting, after);
        }
        if self.rest_at.is_some_and(|at| at <= self.now) {
            self.rest_at = busy.then(|| self.now + REST);
            if let (Phase::Up(link), false) = (&mut self.phase, busy) {
                link.connection.rest();
            }
        }
        match self.life.tick(self.now, busy) {
            Some(Due::Start) => self.start(),
            Some(Due::Stop) => {
                self.life.stopped();
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
                if let Phase::Up(link) = &mut self.phase {
                    link.connection.send(timed_out(ticket));
                }
                caller.answered(ticket, Answer::Failed(CallError::TimedOut { server, after }));
            }
            // Many servers do one thing at a time: the list comes after the call.
            Waiting::Listing(listing) if self.listed && self.calling() => {
                self.pending.register(ticket, Waiting::Listing(listing), self.now, after, after);
            }
            Waiting::Listing(_) => {
                let what = format!("did not list its tools within {} s", after.as_secs());
                self.give_up(what);
            }
            Waiting::Subscription => {}
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
                Command::Refresh => {}
                Command::Stop(other) => others.push(other),
            }
        }
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

    // --- what the server says

    fn incoming(&mut self, item: Incoming) {
        match item {
            Incoming::Message(message) => self.message(message),
            Incoming::NotText(message) => self.malformed(&message, None, &Fault::Utf8),
            Incoming::Noise(line) => self.note(&line),
            Incoming::TooLong { start } => self.too_long(&start),
        }
    }

    fn message(&mut self, message: Bytes) {
        match Head::read_quickly(&message) {
            Ok(head) => match &head.kind {
                Kind::Result { id } | Kind::Error { id: Some(id) } => {
                    if let Some(ticket) = ticket(&message, id) {
                        self.answered(ticket, message, head);
                    }
                }
                Kind::Error { id: None } => self.note(&message),
                Kind::Request { id, method } => {
                    let answer = opening::answer(&message, id, method);
                    if let Phase::Up(link) = &mut self.phase
                        && link.connection.backlog() < opening::ANSWERS_LIMIT
                    {
                        link.connection.send(answer);
                    }
                }
                Kind::Notification { method } => {
                    let method = method.clone();
                    self.notified(message, &method, head.payload);
                }
            },
            Err(Malformed { id, fault }) => self.malformed(&message, id, &fault),
        }
    }

    fn malformed(&mut self, message: &[u8], id: Option<Span>, fault: &Fault) {
        let id = id.or_else(|| Head::id_of_truncated_response(message));
        let whose = id.and_then(|id| ticket(message, &id));
        let error = CallError::Malformed { server: self.spec.name.clone(), fault: fault.to_string() };
        self.refuse(whose, error, message);
    }

    fn answered(&mut self, ticket: Ticket, message: Bytes, head: Head) {
        self.faults = 0;
        // An unknown ticket: the call was cancelled or timed out, and its end has been told.
        match self.pending.complete(ticket) {
            Some(Waiting::Host(caller)) => {
                self.life.served(self.now);
                self.rest_at = Some(self.now + REST);
                let era = self.opened.era.unwrap_or(Era::Legacy);
                let large = message.len() >= LARGE;
                caller.answered(ticket, Answer::Response { message, head, era });
                self.pressed = large.then_some(caller);
            }
            Some(Waiting::Listing(listing)) => self.list_page(listing, &message, &head),
            Some(Waiting::Subscription) => self.subscription_ended(&head),
            None => {}
        }
    }

    /// The server closed it in good order: it is opened again, and what changed meanwhile is listed.
    fn subscription_ended(&mut self, head: &Head) {
        let calm = self.last_subscription.is_none_or(|last| self.now >= last + LIST_PAUSE);
        if matches!(head.kind, Kind::Result { .. }) && calm {
            self.subscribe();
            self.list_soon();
        }
    }

    fn notified(&mut self, message: Bytes, method: &Span, params: Option<Span>) {
        match &message[method.clone()] {
            b"notifications/progress" => {
                let token = params.and_then(|params| Members::find(&message, &params, "progressToken"));
                let Some(token) = token else { return };
                let Some(ticket) = ticket(&message, &token) else { return };
                if let Some(Waiting::Host(caller)) = self.pending.progress(ticket, self.now) {
                    caller.progressed(ticket, message, token);
                }
            }
            b"notifications/tools/list_changed" => self.list_soon(),
            _ => {}
        }
    }

    fn too_long(&mut self, start: &Bytes) {
        let limit = self.spec.message_limit;
        let whose = Head::id_of_truncated_response(start).and_then(|id| ticket(start, &id));
        let error = CallError::TooLarge { server: self.spec.name.clone(), limit };
        self.refuse(whose, error, start);
    }

    /// What cannot be forwarded ends its call, if it can be told whose it was.
    fn refuse(&mut self, whose: Option<Ticket>, error: CallError, message: &[u8]) {
        let Some(ticket) = whose else {
            return self.fault(&error, message);
        };
        match self.pending.complete(ticket) {
            Some(Waiting::Host(caller)) => caller.answered(ticket, Answer::Failed(error)),
            Some(Waiting::Listing(_)) => self.give_up(format!("its list of tools is unusable: {error}")),
            // A late answer is not noted either: others read the notes.
            Some(Waiting::Subscription) | None => {}
        }
    }

    /// Something unusable that is nobody's answer. A server may send a great many of these, so they
    /// are not all told.
    fn fault(&mut self, error: &CallError, message: &[u8]) {
        self.faults += 1;
        if self.faults.is_power_of_two() {
            tracing::warn!(server = %self.spec.name, count = self.faults, "{error}");
            self.note(&message[..message.len().min(200)]);
        }
        if self.faults >= FAULTS_LIMIT {
            self.give_up(format!("sends nothing but unusable messages: {error}"));
        }
    }

    fn note(&self, line: &[u8]) {
        if let Phase::Up(link) = &self.phase {
            link.note(line);
        }
    }

    // --- its tools

    fn list(&mut self) {
        if !matches!(self.phase, Phase::Up(_)) {
            return;
        }
        if !self.opened.has_tools {
            return self.report(Vec::new());
        }
        if self.listing() {
            self.list_again = true;
            return;
        }
        self.ask_for_page(Listing::default(), None);
    }

    /// At once, unless the last list is so fresh that this could go on for ever.
    fn list_soon(&mut self) {
        match self.last_list.map(|last| last + LIST_PAUSE).filter(|next| self.now < *next) {
            Some(next) => self.list_at = Some(next),
            None => self.list(),
        }
    }

    fn ask_for_page(&mut self, listing: Listing, cursor: Option<&Bytes>) {
        let Phase::Up(link) = &mut self.phase else { return };
        let ticket = self.around.tickets.next();
        let modern = self.opened.era == Some(Era::Modern);
        let fields = if modern { opening::modern_fields() } else { String::new() };
        link.connection.send(listing::request(ticket.0, cursor, &fields));
        let patience = self.spec.timeouts.start;
        self.pending.register(ticket, Waiting::Listing(listing), self.now, patience, patience);
    }

    fn list_page(&mut self, mut listing: Listing, message: &Bytes, head: &Head) {
        let whole = Head::read(message).map_err(|malformed| malformed.fault.to_string());
        match (&head.kind, &head.payload, whole) {
            (Kind::Result { .. }, Some(result), Ok(_)) => match listing.page(message, result) {
                Step::Next(cursor) => self.ask_for_page(listing, Some(&cursor)),
                Step::Complete(tools) => self.report(tools),
            },
            (_, Some(error), Ok(_)) => {
                let what = format!("refused to list its tools: {}", opening::error_text(message, error));
                self.give_up(what);
            }
            (_, _, Err(fault)) => self.give_up(format!("its list of tools is unusable: {fault}")),
            _ => {}
        }
    }

    fn report(&mut self, tools: Vec<Tool>) {
        self.listed = true;
        self.last_list = Some(self.now);
        self.rest_at = Some(self.now + REST);
        let Opened { era, info, instructions, .. } = &self.opened;
        let manners = Manners { era: era.unwrap_or(Era::Legacy), framing: self.framing };
        let offer = Offer::new(manners, info.clone(), instructions.clone(), tools);
        self.tell(Ok(Arc::new(offer)));
        if std::mem::take(&mut self.list_again) {
            self.list_soon();
        }
    }

    fn subscribe(&mut self) {
        let Phase::Up(link) = &mut self.phase else { return };
        let ticket = self.around.tickets.next();
        let fields = opening::modern_fields();
        link.connection.send(Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"subscriptions/listen","params":{{"_meta":{{{fields}}},"notifications":{{"toolsListChanged":true}}}}}}"#,
            ticket.0
        )));
        self.pending.register_for_ever(ticket, Waiting::Subscription);
        self.last_subscription = Some(self.now);
    }

    fn listing(&self) -> bool {
        self.pending.iter().any(|waiting| matches!(waiting, Waiting::Listing(_)))
    }

    fn calling(&self) -> bool {
        self.pending.iter().any(|waiting| matches!(waiting, Waiting::Host(_)))
    }

    /// A subscription is open for as long as the server runs, and no use of it.
    fn busy(&self) -> bool {
        !self.pending.iter().all(|waiting| matches!(waiting, Waiting::Subscription))
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
            let changed = status.condition != condition || status.pid != pid || status.era != self.era;
            if changed {
                *status = Status { condition, pid, era: self.era };
            }
            changed
        });
    }
}

/// Launches and opens a server within its start timeout. A server that does not survive the modern
/// question is launched once more and spoken to in the old way.
async fn start(spec: Arc<ServerSpec>, around: Surroundings, known: Option<Era>, framing: Framing) -> Start {
    let patience = spec.timeouts.start;
    let deadline = Instant::now() + patience;
    let mut known = known;
    loop {
        let loud = |failure| StartError { failure, silent: false };
        let launched = (around.launcher)(&spec).map_err(loud)?;
        let mut link = Link::new(launched, framing, spec.message_limit);
        let opening = opening::open(&mut link, known, &around.tickets);
        match timeout(deadline - Instant::now(), opening).await {
            Ok(Ok(opened)) => return Ok((Box::new(link), opened)),
            Ok(Err(OpenError::Closed { probing: true })) => {
                known = Some(Era::Legacy);
                tokio::spawn(link.end(spec.timeouts.shutdown));
            }
            Ok(Err(OpenError::Closed { probing: false })) => {
                return Err(loud(link.post_mortem("before it answered", spec.timeouts.shutdown).await));
            }
            Ok(Err(OpenError::Refused(text))) => {
                let failure = link.failure(format!("refused to be initialised: {text}"));
                tokio::spawn(link.end(spec.timeouts.shutdown));
                return Err(loud(failure));
            }
            Err(_) => {
                let silent = !link.connection.has_spoken();
                let what = format!("did not answer within {} s of its start", patience.as_secs_f32());
                let mut failure = link.failure(what);
                if failure.remedy.is_none() {
                    failure.remedy = Some(
                        "run its command by hand, or raise \"start\" in its \"plugbay\" settings".into(),
                    );
                }
                tokio::spawn(link.end(spec.timeouts.shutdown));
                return Err(StartError { failure, silent });
            }
        }
    }
}

/// Our own cancellation of a call that took too long.
fn timed_out(ticket: Ticket) -> Bytes {
    Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":"timed out"}}}}"#,
        ticket.0
    ))
}

/// The number in an id or a progress token that we minted.
fn ticket(message: &[u8], span: &Span) -> Option<Ticket> {
    std::str::from_utf8(&message[span.clone()]).ok()?.parse().ok().map(Ticket)
}

/// The runtime's clock, which tests can stop, in the terms of core.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}
