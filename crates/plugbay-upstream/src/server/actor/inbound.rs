//! What a server says, and to whom it goes.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    era::{self, Era},
    exchange::{Answer, Ticket, Topic},
    failure::CallError,
    wire::{Fault, Head, Incoming, Kind, Malformed, Members, Span},
};

use super::{Actor, FAULTS_LIMIT, LARGE, Phase, REST, Waiting};
use crate::{http::Trouble, link::Heard};

impl Actor {
    pub(super) fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Incoming(Incoming::Message(message)) => self.message(message),
            Heard::During { ticket, message } => self.message_during(message, Some(ticket)),
            Heard::Incoming(Incoming::NotText(message)) => self.malformed(&message, None, &Fault::Utf8),
            Heard::Incoming(Incoming::Noise(line)) => self.note(&line),
            Heard::Incoming(Incoming::TooLong { start, end }) => self.too_long(&start, &end),
            Heard::Failed { ticket, trouble } => self.undelivered(ticket, &trouble),
        }
    }

    fn message(&mut self, message: Bytes) {
        self.message_during(message, None);
    }

    fn message_during(&mut self, message: Bytes, during: Option<Ticket>) {
        match Head::read_quickly(&message) {
            Ok(head) => match &head.kind {
                Kind::Result { id } | Kind::Error { id: Some(id) } => {
                    if let Some(ticket) = ticket(&message[id.clone()]) {
                        self.answered(ticket, message, head);
                    }
                }
                Kind::Error { id: None } => self.note(&message),
                Kind::Request { .. } => self.asked(message, head, during),
                Kind::Notification { method } => {
                    let method = method.clone();
                    self.notified(message, &method, head.payload, during);
                }
            },
            Err(Malformed { id, fault }) => self.malformed(&message, id, &fault),
        }
    }

    fn malformed(&mut self, message: &[u8], id: Option<Span>, fault: &Fault) {
        let id = id.map(|id| &message[id]).or_else(|| Head::id_of_truncated_response(message, message));
        let whose = id.and_then(ticket);
        let error = CallError::Malformed { server: self.spec.name.clone(), fault: fault.to_string() };
        self.refuse(whose, error, message);
    }

    fn answered(&mut self, ticket: Ticket, message: Bytes, head: Head) {
        self.faults = 0;
        self.end_questions_of(ticket);
        // An unknown ticket: the call was cancelled or timed out, and its end has been told.
        match self.pending.complete(ticket) {
            Some(Waiting::Host(caller)) => {
                self.life.served(self.now);
                self.rest_at = Some(self.now + REST);
                let era = self.opened.era.unwrap_or(Era::Legacy);
                let large = message.len() >= LARGE;
                let answer = self.returned(ticket, &caller, Answer::Response { message, head, era });
                caller.answered(ticket, answer);
                self.pressed = large.then_some(caller);
            }
            Some(Waiting::Listing(listing)) => self.list_page(listing, &message, &head),
            Some(Waiting::Subscription) => self.subscription_ended(&head),
            Some(Waiting::Nobody) | None => {}
        }
    }

    fn notified(&mut self, message: Bytes, method: &Span, params: Option<Span>, during: Option<Ticket>) {
        match &message[method.clone()] {
            b"notifications/progress" => {
                let token = params.and_then(|params| Members::find(&message, &params, "progressToken"));
                let Some(token) = token else { return };
                let Some(ticket) = ticket(&message[token.clone()]) else { return };
                match self.pending.progress(ticket, self.now) {
                    Some(Waiting::Host(caller)) => caller.progressed(ticket, message, token),
                    Some(_) => {}
                    None => {
                        if let Some(caller) = self.beginner(ticket) {
                            caller.progressed(ticket, message, token);
                        }
                    }
                }
            }
            b"notifications/tools/list_changed"
            | b"notifications/resources/list_changed"
            | b"notifications/prompts/list_changed" => self.list_soon(),
            b"notifications/message" => self.logs(message, params.as_ref(), during),
            b"notifications/resources/updated" => self.updated(message, params),
            b"notifications/tasks" | b"notifications/tasks/status" => self.task_told(message, params),
            b"notifications/cancelled" => self.withdraws(&message, params.as_ref()),
            b"notifications/elicitation/complete" => self.visit_ended(message, params.as_ref()),
            method if era::is_core(method) => {}
            _ => self.tells(message, Topic::Unknown, during),
        }
    }

    fn too_long(&mut self, start: &[u8], end: &[u8]) {
        let limit = self.spec.message_limit;
        let whose = Head::id_of_truncated_response(start, end).and_then(ticket);
        let error = CallError::TooLarge { server: self.spec.name.clone(), limit };
        self.refuse(whose, error, start);
    }

    /// A request of ours found no way to the server, or its answer none back.
    pub(super) fn undelivered(&mut self, ticket: Ticket, trouble: &Trouble) {
        let server = self.spec.name.clone();
        match self.pending.complete(ticket) {
            Some(Waiting::Host(caller)) => {
                let error = match trouble {
                    Trouble::TooLarge => CallError::TooLarge { server, limit: self.spec.message_limit },
                    _ => CallError::Down { server, failure: Arc::new(trouble.failure_of(&self.spec)) },
                };
                caller.answered(ticket, Answer::Failed(error));
            }
            Some(Waiting::Listing(_)) => {
                self.list_failed(format!("did not list its tools: {}", trouble.failure_of(&self.spec)));
            }
            Some(Waiting::Subscription) => self.subscription_lost(trouble),
            Some(Waiting::Nobody) | None => {}
        }
    }

    /// What cannot be forwarded ends its call, if it can be told whose it was.
    fn refuse(&mut self, whose: Option<Ticket>, error: CallError, message: &[u8]) {
        let Some(ticket) = whose else {
            return self.fault(&error, message);
        };
        match self.pending.complete(ticket) {
            Some(Waiting::Host(caller)) => caller.answered(ticket, Answer::Failed(error)),
            Some(Waiting::Listing(_)) => self.list_failed(format!("its list of tools is unusable: {error}")),
            // A late answer is not noted either: others read the notes.
            Some(Waiting::Subscription | Waiting::Nobody) | None => {}
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
}

/// The number in an id or a progress token that we minted.
fn ticket(id: &[u8]) -> Option<Ticket> {
    std::str::from_utf8(id).ok()?.parse().ok().map(Ticket)
}
