//! Commands from the host side: calls, cancellations, and requests to start the server.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    era::{self, Era, MetaSlot},
    exchange::{Answer, Call, Ticket, Warmed},
    failure::CallError,
    lifecycle::Admission,
    start::Priority,
    task::TaskRole,
    wire::Draft,
};

use super::{
    super::{message::Command, opening::RESPONSE_BACKLOG_LIMIT, request},
    Actor, Waiting,
};

/// Limit of bytes that a server may leave unread; above it further calls fail at once.
pub(super) const BACKLOG_LIMIT: usize = 64 * 1024 * 1024;

impl Actor {
    pub(super) fn command(&mut self, command: Command) {
        match command {
            Command::Forward(call) => self.forward(call),
            Command::Cancel { ticket, notification } => self.cancel(ticket, &notification),
            Command::Reply { server_request, reply } => self.replied(server_request, reply),
            Command::Subscribe(target) => self.subscribe(&target),
            Command::Unsubscribe(target) => self.unsubscribe(&target),
            Command::LogLevelChanged => self.log_level_changed(),
            Command::Notify(notification) => self.notify(notification),
            Command::RootsChanged(notification) => self.roots_changed(notification),
            Command::Refresh(priority) => self.refresh(priority),
            Command::Warm(warmed) => self.warm(warmed),
            Command::Hold { user, held } => self.lifecycle.held(user, held, self.now),
            Command::IdleSince(reply) => _ = reply.send(self.idle_since()),
            Command::Yield(reply) => _ = reply.send(self.give_way()),
            // A legacy server is opened again by `after_event`.
            Command::ClientCapabilitiesGrew => self.list_for_more(),
            Command::Stop(_) => {} // `run` handles it
        }
    }

    fn forward(&mut self, call: Call) {
        // The call may change a resource that a host has just subscribed to.
        self.listen_if_due();
        match self.lifecycle.wanted(self.now) {
            Admission::Ready if !self.awaits_tools() => self.send(call),
            Admission::Ready | Admission::Wait => {
                self.await_start(call);
                self.hurry();
            }
            Admission::Start => {
                self.await_start(call);
                self.start();
            }
            Admission::Refuse { failure, retry_in } => {
                let error = CallError::Resting { server: self.spec.name.clone(), failure, retry_in };
                call.caller.answered(call.ticket, Answer::Failed(error));
            }
            Admission::AwaitLogin { failure } => self.forward_after_login(call, failure),
        }
    }

    pub(super) fn send(&mut self, call: Call) {
        let Some(link) = self.links.up_mut() else { return };
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
                let (capabilities, extensions) = (caller.client_capabilities(), caller.extensions());
                let meta = request::modern_meta_for(capabilities, extensions, caller.log_level(), tasks);
                request = slot.fill(request, &meta);
            }
            (Era::Modern, Some(Era::Legacy)) => request = era::without_envelope(request, params.as_ref()),
            _ => {}
        }
        link.request(ticket, request.render(ticket.0));
        self.listing.is_touched = true;
        let unlimited = matches!(task_role, TaskRole::Await(_)).then_some(Duration::MAX);
        self.tasks.sending(ticket, &caller, task_role);
        self.note_host(&caller);
        self.links.slow_callers.called(&*caller);
        let patience = timeout.or(unlimited).unwrap_or(self.spec.timeouts.call);
        let at_most = patience.max(self.spec.timeouts.call_max);
        self.pending.register(ticket, Waiting::Host(caller), self.now, patience, at_most);
    }

    pub(super) fn cancel(&mut self, ticket: Ticket, notification: &Draft) {
        self.queue.cancel(ticket);
        self.leave_if_unwanted();
        if self.pending.complete(ticket).is_some() {
            let notification = self.in_its_era(notification.clone());
            self.cancel_request(ticket, &notification.render(ticket.0));
        }
    }

    fn notify(&mut self, notification: Bytes) {
        let notification = self.in_its_era(Draft::new(notification)).render(0);
        self.send_to_server(notification, RESPONSE_BACKLOG_LIMIT);
    }

    /// A host's notification in the form for this server's era.
    fn in_its_era(&self, notification: Draft) -> Draft {
        match self.opened.era {
            Some(Era::Legacy) => era::notification_without_envelope(notification),
            _ => notification,
        }
    }

    fn refresh(&mut self, priority: Priority) {
        let mut admission = self.lifecycle.wanted(self.now);
        if matches!(admission, Admission::AwaitLogin { .. }) {
            admission = self.lifecycle.urged(self.now); // the user may have logged in elsewhere
        }
        match admission {
            Admission::Ready => self.list(),
            Admission::Start => {
                self.queue.want(priority);
                self.start();
            }
            Admission::Wait => {
                self.queue.want(priority);
                self.hurry();
            }
            Admission::Refuse { .. } | Admission::AwaitLogin { .. } => {}
        }
    }

    fn warm(&mut self, warmed: Warmed) {
        let admission = self.lifecycle.urged(self.now);
        if self.links.up().is_some() && self.listing.schedule.has_listed() {
            return warmed.tell(Ok(()));
        }
        if self.links.is_trying_again() {
            self.queue.await_start_or_next(warmed);
        } else {
            self.queue.await_start(warmed);
        }
        if admission == Admission::Start {
            self.start();
        } else {
            self.hurry();
        }
    }
}
