//! Messages from a server, and their recipients.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    era::{self, Era},
    exchange::{Answer, Caller, Ticket, Topic},
    failure::CallError,
    wire::{Fault, Head, Incoming, Kind, Malformed, Members, Span},
};

use super::{Actor, Waiting};
use crate::{
    http::TransportError,
    link::{LinkEvent, ReadMessage, answered_ticket, ticket},
};

/// A server that sends this many malformed messages in a row is ended.
const MALFORMED_LIMIT: u32 = 10_000;

impl Actor {
    pub(super) fn link_event(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Incoming(Incoming::Message(message)) => self.message(ReadMessage::of(message, None)),
            LinkEvent::Read(message) => self.message(message),
            LinkEvent::Incoming(Incoming::NotText(message)) => self.not_text(&message),
            LinkEvent::Incoming(Incoming::Noise(line)) => self.keep_line(&line),
            LinkEvent::Incoming(Incoming::TooLong { start, end }) => self.too_long(&start, &end),
            LinkEvent::Failed { ticket, error } => self.undelivered(ticket, &error),
            LinkEvent::NeedsLogin { ticket, failure } => self.needs_login(ticket, failure),
        }
    }

    fn message(&mut self, read: ReadMessage) {
        let answers = read.answered_id().and_then(answered_ticket);
        let ReadMessage { message, head, during } = read;
        match head {
            Ok(head) => match &head.kind {
                Kind::Result { id } | Kind::Error { id: Some(id) } => {
                    match (ticket(&message[id.clone()]), answers) {
                        (Some(ticket), _) => self.response(ticket, message, head),
                        (None, Some(ticket)) => {
                            let fault =
                                format!("its id is {:?} instead of {}", text(&message[id.clone()]), ticket.0);
                            self.malformed(&message, Some(ticket), fault);
                        }
                        (None, None) => {}
                    }
                }
                Kind::Error { id: None } => self.keep_line(&message),
                Kind::Request { .. } => self.server_request(message, head, during),
                Kind::Notification { method } => {
                    let method = method.clone();
                    self.notification(message, &method, head.payload, during);
                }
            },
            Err(Malformed { fault, .. }) => self.malformed(&message, answers, fault.to_string()),
        }
    }

    fn response(&mut self, ticket: Ticket, message: Bytes, head: Head) {
        self.links.malformed = 0;
        self.end_requests_of(ticket);
        // `None`: the call was cancelled or timed out, and its caller has already been told.
        match self.pending.complete(ticket) {
            Some(Waiting::Host(caller)) => {
                self.lifecycle.served(self.now);
                self.login.served();
                let length = message.len();
                let answer = self.answer(ticket, &caller, message, head);
                caller.answered(ticket, answer);
                self.responded(length, &caller);
            }
            Some(Waiting::Listing(listing)) => self.page_received(ticket, listing, message, head),
            // A second answer to the same request.
            Some(Waiting::Page) => self.pending.register_for_ever(ticket, Waiting::Page),
            Some(Waiting::Subscription) => self.subscription_ended(&head),
            Some(Waiting::Nobody) | None => {}
        }
    }

    /// The response, or the reason why its task was lost.
    fn answer(&mut self, ticket: Ticket, caller: &Arc<dyn Caller>, message: Bytes, head: Head) -> Answer {
        match self.tasks.answered(ticket, caller, (&message, &head), self.now) {
            Some(failure) => Answer::Failed(CallError::TaskLost { server: self.spec.name.clone(), failure }),
            None => Answer::Response { message, head, era: self.opened.era.unwrap_or(Era::Legacy) },
        }
    }

    fn notification(&mut self, message: Bytes, method: &Span, params: Option<Span>, during: Option<Ticket>) {
        match &message[method.clone()] {
            b"notifications/progress" => self.progress(message, params),
            b"notifications/tools/list_changed"
            | b"notifications/resources/list_changed"
            | b"notifications/prompts/list_changed" => self.list_change_notified(during),
            b"notifications/message" => self.log_message(message, params.as_ref(), during),
            b"notifications/resources/updated" => self.resource_updated(message, params),
            b"notifications/tasks" | b"notifications/tasks/status" => self.task_status(message, params),
            b"notifications/cancelled" => self.cancelled_by_server(&message, params.as_ref()),
            b"notifications/elicitation/complete" => {
                self.url_elicitation_completed(message, params.as_ref());
            }
            method if era::is_core(method) => {}
            _ => self.notify_hosts(message, Topic::Unknown, during),
        }
    }

    fn progress(&mut self, message: Bytes, params: Option<Span>) {
        let token = params.and_then(|params| Members::find(&message, &params, "progressToken"));
        let Some(token) = token else { return };
        let Some(ticket) = ticket(&message[token.clone()]) else { return };
        match self.pending.progress(ticket, self.now) {
            Some(Waiting::Host(caller)) => caller.progressed(ticket, message, token),
            Some(_) => {}
            None => {
                if let Some(host) = self.tasks.host_of_creator(ticket) {
                    host.progressed(ticket, message, token);
                }
            }
        }
    }

    fn malformed(&mut self, message: &[u8], answers: Option<Ticket>, fault: String) {
        let error = CallError::Malformed { server: self.spec.name.clone(), fault };
        self.unusable(answers, error, message);
    }

    fn not_text(&mut self, message: &[u8]) {
        let answers = Head::id_of_truncated_response(message, message).and_then(answered_ticket);
        let at = std::str::from_utf8(message).map_or_else(|error| error.valid_up_to(), str::len);
        self.malformed(message, answers, format!("{}, at offset {at}", Fault::Utf8));
    }

    fn too_long(&mut self, start: &[u8], end: &[u8]) {
        let limit = self.spec.message_limit;
        let call = Head::id_of_truncated_response(start, end).and_then(answered_ticket);
        let error = CallError::TooLarge { server: self.spec.name.clone(), limit };
        self.unusable(call, error, start);
    }

    /// A request was not delivered, or its response was lost.
    pub(super) fn undelivered(&mut self, ticket: Ticket, error: &TransportError) {
        let server = self.spec.name.clone();
        match self.pending.complete(ticket) {
            Some(Waiting::Host(caller)) => {
                let error = match error {
                    TransportError::TooLarge => {
                        CallError::TooLarge { server, limit: self.spec.message_limit }
                    }
                    _ => CallError::down(server, Arc::new(error.failure_of(&self.spec))),
                };
                caller.answered(ticket, Answer::Failed(error));
            }
            Some(Waiting::Listing(listing)) => {
                let what = format!("did not list its tools: {}", error.failure_of(&self.spec));
                self.page_failed(listing, what);
            }
            Some(Waiting::Page) => self.pending.register_for_ever(ticket, Waiting::Page),
            Some(Waiting::Subscription) => self.subscription_lost(error),
            Some(Waiting::Nobody) | None => {}
        }
    }

    /// Handles an unusable message: it ends the call that it answers, if there is one.
    fn unusable(&mut self, call: Option<Ticket>, error: CallError, message: &[u8]) {
        let Some(ticket) = call else {
            return self.count_malformed(&error, message);
        };
        match self.pending.complete(ticket) {
            Some(Waiting::Host(caller)) => caller.answered(ticket, Answer::Failed(error)),
            Some(Waiting::Listing(listing)) => {
                self.page_failed(listing, format!("its list of tools is unusable: {error}"));
            }
            Some(Waiting::Page) => self.pending.register_for_ever(ticket, Waiting::Page),
            // A late response is not kept: it would appear in failures that other hosts read.
            Some(Waiting::Subscription | Waiting::Nobody) | None => {}
        }
    }

    /// Counts a malformed message that answers no call. There may be very many, so only some are logged.
    fn count_malformed(&mut self, error: &CallError, message: &[u8]) {
        self.links.malformed += 1;
        let count = self.links.malformed;
        if count.is_power_of_two() {
            tracing::warn!(server = %self.spec.name, count, "{error}");
            let cut: &[u8] = if message.len() > 200 { "…".as_bytes() } else { b"" };
            self.keep_line(&[&message[..message.len().min(200)], cut].concat());
        }
        if count >= MALFORMED_LIMIT {
            self.give_up(format!("sends nothing but unusable messages: {error}"));
        }
    }

    fn keep_line(&self, line: &[u8]) {
        if let Some(link) = self.links.up() {
            link.keep_line(line);
        }
    }
}

/// The beginning of an id, for an error message.
fn text(id: &[u8]) -> String {
    String::from_utf8_lossy(&id[..id.len().min(40)]).into_owned()
}
