//! The life of a server: start, opening, failure and stop, and the effect on its calls.

use std::{sync::Arc, time::Duration};

use plugbay_core::{
    catalog::Offer,
    era::Era,
    exchange::{Answer, Call, Ticket},
    failure::{CallError, Failure, Limit},
    lifecycle::{Admission, Due, State},
    start::{GiveUp, Priority},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{
    super::{
        clock,
        message::{Command, Condition, Idle, Status},
        request,
        state::start_queue::Unsent,
    },
    Actor, REMOTE_OPENING, Waiting,
    links::{Current, Opening},
    start::{self, Plan, StartError, Started},
    start_watch::{Concern, Watch},
};
use crate::{
    link::Link,
    slots::Slot,
    spec::{Timeouts, Transport},
    starts::Turn,
};

/// How long a server that stops waits for credentials being fetched: an authorization server may take 30 s.
const SETTLING: Duration = Duration::from_secs(35);

impl Actor {
    /// Starts the server. An instance that needs a slot waits for it outside the queue, where it holds up no
    /// other server.
    pub(super) fn start(&mut self) {
        match self.context.slots.clone() {
            Some(request) => self.links.current = Current::AwaitingSlot(Box::pin(request.slot())),
            None => self.enqueue(None),
        }
    }

    /// Queues the start. A server behind a URL costs this machine little, so its turn is now.
    pub(super) fn enqueue(&mut self, slot: Option<Slot>) {
        match self.spec.transport {
            Transport::Stdio(_) => {
                let turn = self.context.starts.gate().enter(self.queue.priority());
                self.links.current = Current::Queued(turn, slot);
            }
            Transport::Http(_) => self.launch_in(slot, None),
        }
    }

    /// Launches the server, whose turn has come.
    pub(super) fn launch(&mut self) {
        if let Current::Queued(turn, slot) = std::mem::take(&mut self.links.current) {
            self.launch_in(slot, Some(turn));
        }
    }

    fn launch_in(&mut self, slot: Option<Slot>, turn: Option<Turn>) {
        let (late, late_inbox) = mpsc::unbounded_channel();
        let plan = Plan {
            dialect: self.speech.dialect,
            guesses_framing: self.speech.guesses_framing(&self.spec),
            watch: Watch::begin(&self.spec, &self.context.starts, turn),
            slot,
            slow: late,
        };
        let start = Box::pin(start::start(Arc::clone(&self.spec), self.context.clone(), plan));
        self.links.current = Current::Opening(Opening { start, slow: late_inbox });
    }

    /// Raises a start in the queue to the urgency of those who wait for it.
    pub(super) fn hurry(&self) {
        if let Current::Queued(turn, _) = &self.links.current {
            turn.raise(self.queue.priority());
        }
    }

    /// Leaves the queue of starts if nobody wants the server any more.
    pub(super) fn leave_if_unwanted(&mut self) {
        let waits = matches!(self.links.current, Current::AwaitingSlot(_) | Current::Queued(..));
        if waits && !self.queue.is_wanted() {
            self.links.current = Current::Down;
            self.lifecycle.stopped();
        }
    }

    /// Reports that the start exceeds its timeout. It goes on, but only calls wait for it, not lists or
    /// activations.
    pub(super) fn start_is_slow(&mut self, failure: Failure) {
        let failure = Arc::new(failure);
        tracing::warn!(server = %self.spec.name, "{failure}");
        self.links.slow = Some(Arc::clone(&failure));
        self.queue.started(&Err(Arc::clone(&failure)));
        self.report(&Err(failure));
    }

    /// Watches a server that is open and has not listed yet.
    fn watch_listing(&mut self) {
        let Some(link) = self.links.up() else { return };
        let (pid, witness) = (link.pid(), link.witness());
        let Some(watch) = self.links.watch.as_mut().filter(|watch| watch.next_look() <= self.now) else {
            return;
        };
        match watch.look(pid) {
            None => {}
            Some(Concern::Slow) => self.start_is_slow(start::slow_start(&self.spec, &witness)),
            Some(Concern::GiveUp(GiveUp::Idle)) => {
                let time = self.spec.timeouts.start.as_secs();
                self.give_up(format!("did not list its tools within {time} s"));
            }
            Some(Concern::GiveUp(GiveUp::TooLong)) => {
                let failure = start::too_long(&self.spec, &witness, watch);
                self.end_link();
                self.fail(failure, Vec::new());
            }
        }
    }

    pub(super) fn opened(&mut self, started: Started) {
        let Started { link, opened, dialect, watch, slot } = started;
        self.links.opened(link, slot);
        self.links.watch = Some(watch);
        self.speech.opened(dialect);
        self.opened = opened;
        self.log_return();
        self.listing.schedule.restarted();
        self.listing.is_touched = false;
        (self.listing.change_listed, self.listing.change_noted) = (None, None);
        self.subscriptions.restarted();
        self.lifecycle.started(self.now);
        self.end_logins();
        self.forget_hosts();
        self.list();
        if self.opened.era == Some(Era::Modern) && self.opened.capabilities.item_kinds().next().is_some() {
            self.listen();
        }
        self.subscribe_all();
        if !self.awaits_tools() {
            self.send_waiting();
        }
    }

    /// Whether calls must wait for the tools: a modern server behind a URL may want arguments in headers, as
    /// its list says.
    pub(super) fn awaits_tools(&self) -> bool {
        let is_modern = self.opened.era == Some(Era::Modern);
        is_modern && !self.listing.schedule.has_listed() && matches!(self.links.up(), Some(Link::Http(_)))
    }

    /// Sends everything that waits for the server.
    pub(super) fn send_waiting(&mut self) {
        self.send_unsent();
        while let Some(call) = self.queue.pop() {
            self.send(call);
        }
    }

    /// Sends the calls that an earlier server never received.
    pub(super) fn send_unsent(&mut self) {
        let Some(link) = self.links.up_mut() else { return };
        for (ticket, message) in self.queue.take_unsent() {
            if self.pending.contains(ticket) {
                link.request(ticket, message);
            }
        }
    }

    pub(super) fn start_failed(&mut self, error: StartError) {
        self.speech.start_failed(&self.spec, error.end);
        self.fail(error.failure, Vec::new());
    }

    /// Fails the calls because other sessions use all instances. The server is not at fault, and the next
    /// call tries again.
    pub(super) fn no_slot(&mut self, busy: &CallError) {
        self.links.current = Current::Down;
        self.lifecycle.stopped();
        self.queue.started(&Err(Arc::new(Failure::new(busy.to_string(), Vec::new()))));
        self.queue.fail_calls(busy);
        for (ticket, _) in self.queue.take_unsent() {
            if let Some(Waiting::Host(caller)) = self.pending.complete(ticket) {
                caller.answered(ticket, Answer::Failed(busy.clone()));
            }
        }
    }

    /// Since when the server has been idle; `None` if it cannot be stopped without harm.
    pub(super) fn idle_since(&self) -> Option<Idle> {
        let State::Ready { idle_since } = self.lifecycle.state() else { return None };
        let idle = self.links.up().is_some() && self.links.retired.is_empty() && !self.is_busy();
        idle.then_some(Idle { held: self.lifecycle.is_held(), since: *idle_since })
    }

    /// Stops an idle server to make room for another session's instance.
    pub(super) fn give_way(&mut self) -> bool {
        let idle = self.idle_since().is_some();
        if idle {
            tracing::info!(server = %self.spec.name, "stopped an idle instance: another session needs one");
            self.rest();
        }
        idle
    }

    /// Stops the server until it is used again.
    fn rest(&mut self) {
        self.lifecycle.stopped();
        self.withdraw_all_requests();
        self.pending.drain().for_each(drop);
        self.end_link();
    }

    pub(super) async fn closed(&mut self) {
        let Some(mut link) = self.links.take() else { return };
        let unsent = link.take_unsent();
        let during = if self.is_calling() { "during a call" } else { "while it was idle" };
        let failure = match self.retire(link) {
            Ok(failure) => failure,
            Err(link) => link.post_mortem(during, self.spec.timeouts.shutdown).await,
        };
        self.now = clock::now();
        self.fail(failure, unsent);
        if self.queue.has_unsent() && self.lifecycle.wanted(self.now) == Admission::Start {
            self.start();
        }
    }

    /// Handles the loss of the server: every caller that waits gets the reason, once. Calls that the server
    /// never received are kept for its successor, unless it keeps failing.
    pub(super) fn fail(&mut self, failure: Failure, unsent: Vec<Unsent>) {
        self.links.current = Current::Down;
        self.links.slot = None;
        self.links.start_ended();
        (self.listing.change_listed, self.listing.change_noted) = (None, None);
        self.withdraw_all_requests();
        let failure = Arc::new(failure);
        self.log_failure(&failure);
        self.lifecycle.failed(self.now, Arc::clone(&failure));
        self.tasks.server_lost(&failure);
        let error = CallError::down(self.spec.name.clone(), Arc::clone(&failure));
        let is_awaited_again = if failure.needs_login() {
            self.queue.started(&Err(Arc::clone(&failure)));
            self.start_needs_login(&failure, unsent);
            false
        } else {
            let is_awaited_again = self.queue.start_failed(&failure);
            self.queue.fail_calls(&error);
            self.keep_for_successor(unsent);
            is_awaited_again
        };
        let mut kept = self.links.in_flight_on_retired();
        kept.extend(self.queue.unsent_tickets());
        for (ticket, waiting) in self.pending.drain_but(|ticket| kept.contains(&ticket)) {
            if let Waiting::Host(caller) = waiting {
                caller.answered(ticket, Answer::Failed(error.clone()));
            }
        }
        self.report(&Err(failure));
        if is_awaited_again && self.lifecycle.urged(self.now) == Admission::Start {
            self.start();
        }
    }

    /// Logs a failure. A remote that is away fails every few seconds, so only its first failure is a warning.
    fn log_failure(&mut self, failure: &Arc<Failure>) {
        let (server, before) = (&self.spec.name, self.links.away.replace(Arc::clone(failure)));
        if before.is_some() && self.spec.is_remote() {
            return tracing::debug!(%server, "{failure}");
        }
        tracing::warn!(%server, "{failure}");
    }

    /// Logs that a remote is back.
    fn log_return(&mut self) {
        if self.links.away.take().is_some() && self.spec.is_remote() {
            tracing::warn!(server = %self.spec.name, "is back");
        }
    }

    fn keep_for_successor(&mut self, unsent: Vec<Unsent>) {
        let mut unsent = if self.lifecycle.forgives() { unsent } else { Vec::new() };
        // Others were cancelled, or are plugbay's own requests, which the next server gets anyway.
        unsent.retain(|(ticket, _)| matches!(self.pending.get(*ticket), Some(Waiting::Host(_))));
        self.queue.replace_unsent(unsent);
    }

    pub(super) fn tick(&mut self, gap: Option<Duration>) {
        if let Some(gap) = gap {
            self.pending.skip_gap(gap);
            self.queue.skip_gap(gap);
        }
        while self.links.ending.try_join_next().is_some() {}
        if self.listing.schedule.due(self.now) {
            self.list();
        }
        self.listen_if_due();
        self.watch_listing();
        self.expire_queued();
        self.expire_logins();
        let busy = self.is_busy(); // also with the calls that expire now
        for (ticket, waiting, after) in self.pending.expire(self.now) {
            self.expired(ticket, waiting, after);
        }
        self.links.trim(self.now, busy);
        match self.lifecycle.tick(self.now, busy) {
            Some(Due::Start) => {
                self.queue.want(Priority::Behind);
                self.start();
            }
            Some(Due::Stop) => self.rest(),
            None => {}
        }
    }

    /// Ends the calls that have waited too long for the start.
    fn expire_queued(&mut self) {
        for (call, after) in self.queue.expire(self.now) {
            let server = self.spec.name.clone();
            let error = match self.links.slow.as_ref().or(self.remote_failure()) {
                Some(failure) => CallError::down(server, Arc::clone(failure)),
                None => CallError::TimedOut { server, after, limit: Limit::Settings },
            };
            call.caller.answered(call.ticket, Answer::Failed(error));
        }
        self.leave_if_unwanted();
    }

    /// The reason why the remote is away, if it is.
    fn remote_failure(&self) -> Option<&Arc<Failure>> {
        self.links.away.as_ref().filter(|_| self.spec.is_remote())
    }

    /// Keeps a call until the server is open. If a remote is known to be away, the call waits only briefly.
    pub(super) fn await_start(&mut self, call: Call) {
        let at_most = if self.remote_failure().is_some() { REMOTE_OPENING } else { Duration::MAX };
        self.queue.push(call, self.now, self.spec.timeouts, at_most);
    }

    fn expired(&mut self, ticket: Ticket, waiting: Waiting, after: Duration) {
        let server = self.spec.name.clone();
        match waiting {
            Waiting::Host(caller) => {
                if let Some(failure) = self.login_of(ticket) {
                    self.abandon_request(ticket);
                    return caller.answered(ticket, Answer::Failed(CallError::down(server, failure)));
                }
                self.cancel_request(ticket, &request::cancellation(ticket, "timed out"));
                let Timeouts { call, call_max, .. } = self.spec.timeouts;
                let limit = if [call, call_max].contains(&after) { Limit::Settings } else { Limit::Call };
                caller.answered(ticket, Answer::Failed(CallError::TimedOut { server, after, limit }));
            }
            // Many servers do one thing at a time: then the list comes after the call.
            Waiting::Listing(listing) if self.listing.schedule.has_listed() && self.is_calling() => {
                self.pending.register(ticket, Waiting::Listing(listing), self.now, after, after);
            }
            Waiting::Listing(listing) => {
                self.page_failed(listing, format!("did not list its tools within {} s", after.as_secs()));
            }
            Waiting::Page | Waiting::Subscription | Waiting::Nobody => {}
        }
    }

    /// Ends a server that runs but is unusable.
    pub(super) fn give_up(&mut self, what: String) {
        let Some(link) = self.links.up() else { return };
        let failure = link.failure(what);
        self.end_link();
        self.fail(failure, Vec::new());
    }

    /// Opens a legacy server again when hosts have more capabilities than it was told at `initialize`. That
    /// must not disturb a call. It never happens to the instance of a session, which would lose its state.
    pub(super) fn reopen_when_idle(&mut self) {
        if self.context.slots.is_none()
            && self.links.up().is_some()
            && !self.is_busy()
            && self.was_told_less()
        {
            self.lifecycle.stopped();
            self.withdraw_all_requests();
            self.end_link();
            self.lifecycle.wanted(self.now);
            self.queue.want(Priority::Behind);
            self.start();
        }
    }

    fn was_told_less(&self) -> bool {
        self.opened.era == Some(Era::Legacy)
            && !self.context.host_registry.is_told(self.opened.declared, &self.opened.declared_extensions)
    }

    pub(super) fn end_link(&mut self) {
        self.links.end(self.spec.timeouts.shutdown);
    }

    pub(super) async fn stop(mut self, done: Option<oneshot::Sender<()>>) {
        let waiters: Vec<_> = done.into_iter().chain(self.drain_inbox()).collect();
        self.withdraw_all_requests();
        self.withdraw_logins();
        let error = CallError::Gone(self.spec.name.clone());
        self.queue.fail_calls(&error);
        for (ticket, waiting) in self.pending.drain() {
            if let Waiting::Host(caller) = waiting {
                caller.answered(ticket, Answer::Failed(error.clone()));
            }
        }
        self.end_link(); // a start under way ends with its process
        while self.links.ending.join_next().await.is_some() {}
        if let Some(credentials) = &self.context.credentials {
            let _ = timeout(SETTLING, credentials.source().settled()).await;
        }
        for done in waiters {
            let _ = done.send(());
        }
    }

    /// Takes the commands that nobody will handle any more; returns the senders that wait for the stop.
    fn drain_inbox(&mut self) -> Vec<oneshot::Sender<()>> {
        self.handles.inbox.close();
        let mut waiters = Vec::new();
        while let Ok(command) = self.handles.inbox.try_recv() {
            match command {
                Command::Forward(call) => self.await_start(call),
                Command::Cancel { ticket, notification } => self.cancel(ticket, &notification),
                Command::Stop(done) => waiters.push(done),
                Command::Reply { .. }
                | Command::Notify(_)
                | Command::RootsChanged(_)
                | Command::Subscribe(_)
                | Command::Unsubscribe(_)
                | Command::LogLevelChanged
                | Command::ClientCapabilitiesGrew
                | Command::Refresh(_)
                | Command::Warm(_)
                | Command::Hold { .. }
                | Command::IdleSince(_)
                | Command::Yield(_) => {}
            }
        }
        waiters
    }

    fn is_calling(&self) -> bool {
        self.pending.iter().any(|waiting| matches!(waiting, Waiting::Host(_)))
    }

    /// Whether the server is in use. A subscription to lists alone does not count, because it is open as long
    /// as the server runs.
    pub(super) fn is_busy(&self) -> bool {
        !self.server_requests.is_empty()
            || self.tasks.in_progress(self.now)
            || !self.subscriptions.is_empty()
            || !self.pending.iter().all(|waiting| matches!(waiting, Waiting::Subscription))
    }

    pub(super) fn report(&self, outcome: &Result<Arc<Offer>, Arc<Failure>>) {
        self.context.observers.report(outcome, self.speech.dialect, &self.listing.terms, None);
    }

    pub(super) fn publish_status(&self) {
        let condition = match self.lifecycle.state() {
            State::Idle => Condition::Idle,
            State::Error { failure, .. } | State::NeedsLogin { failure } => {
                Condition::Error(Arc::clone(failure))
            }
            State::Ready { .. } if self.listing.schedule.has_listed() => match self.login.needed() {
                Some(failure) => Condition::Error(Arc::clone(failure)),
                None => Condition::Ready,
            },
            State::Warming | State::Ready { .. } => match &self.links.slow {
                Some(failure) => Condition::Slow(Arc::clone(failure)),
                None => Condition::Warming,
            },
        };
        let pid = self.links.up().and_then(Link::pid);
        let changed = self.handles.status.send_if_modified(|status| {
            let era = self.opened.era;
            let changed = status.condition != condition || status.pid != pid || status.era != era;
            if changed {
                *status = Status { condition, pid, era };
            }
            changed
        });
        if changed {
            self.context.observers.status_changed();
        }
    }
}
