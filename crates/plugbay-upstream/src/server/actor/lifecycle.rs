//! The life of a server: started, opened, failed, stopped, and what becomes of its calls.

use std::{sync::Arc, time::Duration};

use plugbay_core::{
    catalog::Offer,
    era::Era,
    exchange::{Answer, Ticket},
    failure::{CallError, Failure, Limit},
    lifecycle::{Due, State},
};
use tokio::sync::oneshot;

use super::{
    super::{
        clock,
        message::{Command, Condition, Report, Status},
        request,
        state::start_queue::Unsent,
    },
    Actor, Waiting, dialect,
    links::Current,
    start::{self, StartError, Started},
};
use crate::spec::Timeouts;

impl Actor {
    pub(super) fn start(&mut self) {
        let opening = start::start(Arc::clone(&self.spec), self.context.clone(), self.dialect);
        self.links.current = Current::Opening(Box::pin(opening));
    }

    pub(super) fn opened(&mut self, started: Started) {
        let Started { link, opened, dialect } = started;
        self.links.opened(link);
        (self.dialect, self.opened) = (dialect, opened);
        self.lists.restarted();
        self.subscriptions.restarted();
        self.lifecycle.started(self.now);
        self.list();
        if self.opened.era == Some(Era::Modern) && self.opened.capabilities.item_kinds().next().is_some() {
            self.listen();
        }
        self.subscribe_all();
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
        self.dialect = dialect::after_failed_start(self.dialect, &self.spec, error.silent);
        self.fail(error.failure, Vec::new());
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
        if self.queue.has_unsent() {
            self.lifecycle.wanted(self.now);
            self.start();
        }
    }

    /// The server is gone: every caller that waits gets the reason, once. Calls that the server never
    /// received are kept for its successor, unless it keeps failing.
    fn fail(&mut self, failure: Failure, unsent: Vec<Unsent>) {
        self.links.current = Current::Down;
        self.withdraw_all_requests();
        let failure = Arc::new(failure);
        tracing::warn!(server = %self.spec.name, "{failure}");
        self.lifecycle.failed(self.now, Arc::clone(&failure));
        self.tasks.server_lost(&failure);
        self.queue.started(&Err(Arc::clone(&failure)));
        let error = CallError::Down { server: self.spec.name.clone(), failure: Arc::clone(&failure) };
        self.queue.fail_calls(&error);
        self.keep_for_successor(unsent);
        let mut kept = self.links.in_flight_on_retired();
        kept.extend(self.queue.unsent_tickets());
        for (ticket, waiting) in self.pending.drain_but(|ticket| kept.contains(&ticket)) {
            if let Waiting::Host(caller) = waiting {
                caller.answered(ticket, Answer::Failed(error.clone()));
            }
        }
        self.report(Err(failure));
    }

    fn keep_for_successor(&mut self, unsent: Vec<Unsent>) {
        let mut unsent = if self.lifecycle.forgives() { unsent } else { Vec::new() };
        // Others were cancelled, or are requests of our own that the next server gets anyway.
        unsent.retain(|(ticket, _)| matches!(self.pending.get(*ticket), Some(Waiting::Host(_))));
        self.queue.replace_unsent(unsent);
    }

    pub(super) fn tick(&mut self) {
        while self.links.ending.try_join_next().is_some() {}
        if self.lists.due(self.now) {
            self.list();
        }
        self.listen_if_due();
        let busy = self.is_busy(); // also with the calls that expire now
        for (ticket, waiting, after) in self.pending.expire(self.now) {
            self.expired(ticket, waiting, after);
        }
        self.links.trim(self.now, busy);
        match self.lifecycle.tick(self.now, busy) {
            Some(Due::Start) => self.start(),
            Some(Due::Stop) => {
                self.lifecycle.stopped();
                self.withdraw_all_requests();
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
                self.cancel_request(ticket, &request::cancellation(ticket, "timed out"));
                let Timeouts { call, call_max, .. } = self.spec.timeouts;
                let limit = if [call, call_max].contains(&after) { Limit::Settings } else { Limit::Call };
                caller.answered(ticket, Answer::Failed(CallError::TimedOut { server, after, limit }));
            }
            // Many servers do one thing at a time: the list comes after the call.
            Waiting::Listing(listing) if self.lists.has_listed() && self.is_calling() => {
                self.pending.register(ticket, Waiting::Listing(listing), self.now, after, after);
            }
            Waiting::Listing(_) => {
                self.list_failed(format!("did not list its tools within {} s", after.as_secs()));
            }
            Waiting::Subscription | Waiting::Nobody => {}
        }
    }

    /// Ends a server that runs but is of no use.
    pub(super) fn give_up(&mut self, what: String) {
        let Some(link) = self.links.up() else { return };
        let failure = link.failure(what);
        self.end_link();
        self.fail(failure, Vec::new());
    }

    /// Opens a legacy server again when hosts have more capabilities than it was told at `initialize`. That
    /// must not disturb a call.
    pub(super) fn reopen_when_idle(&mut self) {
        if self.links.up().is_some() && !self.is_busy() && self.was_told_less() {
            self.lifecycle.stopped();
            self.withdraw_all_requests();
            self.end_link();
            self.lifecycle.wanted(self.now);
            self.start();
        }
    }

    fn was_told_less(&self) -> bool {
        self.opened.era == Some(Era::Legacy)
            && !self.context.host_registry.is_told(self.opened.declared, &self.opened.declared_extensions)
    }

    fn end_link(&mut self) {
        self.links.end(self.spec.timeouts.shutdown);
    }

    pub(super) async fn stop(mut self, done: Option<oneshot::Sender<()>>) {
        let waiters: Vec<_> = done.into_iter().chain(self.drain_inbox()).collect();
        self.withdraw_all_requests();
        let error = CallError::Gone(self.spec.name.clone());
        self.queue.fail_calls(&error);
        for (ticket, waiting) in self.pending.drain() {
            if let Waiting::Host(caller) = waiting {
                caller.answered(ticket, Answer::Failed(error.clone()));
            }
        }
        self.end_link(); // a start under way ends with its process
        while self.links.ending.join_next().await.is_some() {}
        for done in waiters {
            let _ = done.send(());
        }
    }

    /// Takes the commands that nobody will handle any more; returns who else waits for the stop.
    fn drain_inbox(&mut self) -> Vec<oneshot::Sender<()>> {
        self.inbox.close();
        let mut waiters = Vec::new();
        while let Ok(command) = self.inbox.try_recv() {
            match command {
                Command::Forward(call) => self.queue.push(call),
                Command::Cancel { ticket, notification } => self.cancel(ticket, &notification),
                Command::Stop(done) => waiters.push(done),
                Command::Reply { .. }
                | Command::Notify(_)
                | Command::RootsChanged(_)
                | Command::Subscribe(_)
                | Command::Unsubscribe(_)
                | Command::LogLevelChanged
                | Command::ClientCapabilitiesGrew
                | Command::Refresh
                | Command::Warm(_)
                | Command::Hold(_) => {}
            }
        }
        waiters
    }

    fn is_calling(&self) -> bool {
        self.pending.iter().any(|waiting| matches!(waiting, Waiting::Host(_)))
    }

    /// Whether the server is in use. A subscription to lists alone does not count: it is open for as long as
    /// the server runs.
    pub(super) fn is_busy(&self) -> bool {
        !self.server_requests.is_empty()
            || self.tasks.in_progress(self.now)
            || !self.subscriptions.is_empty()
            || !self.pending.iter().all(|waiting| matches!(waiting, Waiting::Subscription))
    }

    pub(super) fn report(&self, outcome: Result<Arc<Offer>, Arc<Failure>>) {
        let _ = self.context.reports.send(Report { spec: Arc::clone(&self.spec), outcome });
    }

    pub(super) fn publish_status(&self) {
        let condition = match self.lifecycle.state() {
            State::Idle => Condition::Idle,
            State::Error { failure, .. } => Condition::Error(Arc::clone(failure)),
            State::Ready { .. } if self.lists.has_listed() => Condition::Ready,
            State::Warming | State::Ready { .. } => Condition::Warming,
        };
        let pid = self.links.up().and_then(crate::link::Link::pid);
        self.status.send_if_modified(|status| {
            let era = self.opened.era;
            let changed = status.condition != condition || status.pid != pid || status.era != era;
            if changed {
                *status = Status { condition, pid, era };
                self.context.status_changed.notify_one();
            }
            changed
        });
    }
}
