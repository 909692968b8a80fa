//! What servers say to a session: answers, progress, server requests, notifications.

use std::task::{Context, Poll};

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    era::{self, Era, InputRequired},
    exchange::{Answer, Caller, ServerNotification, ServerRequest, ServerRequestError, Ticket},
    extension::Extensions,
    level::Level,
    wire::{Draft, Frame, Head, Span},
};
use smallvec::SmallVec;

use super::{HostCall, Recourse, Session, Standing};
use crate::{
    respond::{self, Refusal},
    seal::Owner,
    tasks::{self, Role},
};

impl HostCall {
    /// The server's answer with the host's id, and what must be put right for this host.
    fn passed_on(&self, message: &Bytes, head: &Head, era: Era, owner: &Owner) -> Frame {
        let bridged = match (era, self.era) {
            (Era::Legacy, Era::Modern) => era::completion(message, head, self.reads),
            _ => None,
        };
        let renumbered = (era != self.era).then(|| era::renumbered(message, head, era, self.reads)).flatten();
        let remark = self.repairs.as_ref().and_then(|member| era::remark(message, head, member));
        let remark = remark.as_ref().map(|(at, text)| (*at..*at, &text[..]));
        // An empty result has no comma to part the two.
        let remark = remark.filter(|_| bridged.as_ref().is_none_or(|(_, text)| text.starts_with(b",")));
        let labels = tasks::labels(self, message, head, owner);
        let labels = labels.iter().map(|(at, text)| (*at..*at, &text[..]));
        let changes: SmallVec<[(Span, &[u8]); 2]> =
            bridged.into_iter().chain(renumbered).chain(remark).chain(labels).collect();
        head.readdressed(message, &self.id, &changes)
    }

    /// What a legacy server's error wants a modern host to see to, if it can.
    fn visits(&self, message: &[u8], head: &Head) -> Option<Vec<Span>> {
        let Recourse::Park(terms) = &self.recourse else { return None };
        era::visits_required(message, head).filter(|_| terms.client_capabilities.url)
    }
}

/// What a server says to this session, of calls that wait here.
impl Session {
    pub(crate) fn answered_here(&self, ticket: Ticket, answer: Answer) {
        let Some(answer) = self.drive(ticket, answer) else { return };
        let call = self.forget(&mut self.lock(), ticket);
        if let Some(call) = call {
            self.deliver(ticket, call, answer);
        }
    }

    pub(crate) fn asked_here(
        &self,
        during: Option<Ticket>,
        server_request: ServerRequest,
    ) -> Result<(), ServerRequestError> {
        let mut state = self.lock();
        let call = during.and_then(|ticket| Some((ticket, state.calls.get_mut(&ticket)?)));
        let Some((ticket, call)) = call.filter(|(_, call)| call.era == Era::Modern) else {
            drop(state);
            return self.ask(during, server_request);
        };
        let Recourse::Park(terms) = &call.recourse else { return Err(ServerRequestError::NoHost) };
        let terms = terms.clone();
        call.asked = true;
        drop(state);
        let session = self.me.upgrade().ok_or(ServerRequestError::HostGone)?;
        self.gateway.parking.asked_in(&session, ticket, terms, server_request)
    }

    fn deliver(&self, ticket: Ticket, call: HostCall, answer: Answer) {
        let frame = match answer {
            Answer::Response { message, head, era } => {
                let bridged = call.era == Era::Modern && era == Era::Legacy;
                match bridged.then(|| call.visits(&message, &head)).flatten() {
                    Some(visits) => respond::visits_required(&call.id, &message, &visits),
                    None => call.passed_on(&message, &head, era, &self.owner),
                }
            }
            Answer::Failed(error) => match &call.role {
                // One server's trouble must not hide the tasks of all others.
                Role::Lists { next: Some(next) } => {
                    respond::unlisted(&call.id, &tasks::cursor_of(next), &call.server, &error)
                }
                _ => respond::error(&call.id, &Refusal::Call(error)),
            },
        };
        if call.sink.has_room_for(frame.len()) {
            call.sink.answer(frame);
        } else {
            call.sink.answer(respond::error(&call.id, &Refusal::TooMuchUnread));
        }
        if let (Role::Begins, Some(token)) = (call.role, call.progress_token) {
            self.lock().remember_token(ticket, token);
        }
    }

    /// A modern server's answer to a legacy host that asks for more.
    fn asks_for_input(&self, ticket: Ticket, answer: &Answer) -> Option<(Bytes, InputRequired)> {
        let Answer::Response { message, head, era: Era::Modern } = answer else { return None };
        let legacy = self.lock().calls.get(&ticket).is_some_and(|call| call.era == Era::Legacy);
        let required = legacy.then(|| InputRequired::read(message, head)).flatten()?;
        Some((message.clone(), required))
    }
}

/// A call of a modern host may wait in another session than the one that sent it, or in none.
impl Caller for Session {
    fn answered(&self, ticket: Ticket, answer: Answer) {
        let Some(answer) = self.drive(ticket, answer) else { return };
        if let Some((message, required)) = self.asks_for_input(ticket, &answer)
            && let Some(session) = self.me.upgrade()
        {
            return session.start_round(ticket, &message, &required);
        }
        let call = self.forget(&mut self.lock(), ticket);
        let Some(call) = call else { return self.gateway.parking.answered(ticket, answer, self) };
        if call.asked {
            self.gateway.parking.forget(ticket, &*self.gateway.servers);
        }
        self.deliver(ticket, call, answer);
    }

    fn holder(&self) -> Option<[u8; 32]> {
        (self.standing == Standing::OneRequest).then_some(self.owner.0)
    }

    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        // Where every request has an outbox of its own this one stays empty, and so a server that many
        // hosts share is not held up for one of them.
        self.outbox.poll_ahead(context)
    }

    fn log_level(&self) -> Option<Level> {
        self.lock().level
    }

    fn told(&self, during: Option<Ticket>, server_notification: &ServerNotification) {
        self.hear(during, server_notification);
    }

    fn progressed(&self, ticket: Ticket, notification: Bytes, token: Span) {
        let state = self.lock();
        let Some(call) = state.calls.get(&ticket) else {
            if let Some((_, wanted)) = state.tokens.iter().find(|(begun_by, _)| *begun_by == ticket) {
                return self.outbox.tell_if_room(Frame::edited(&notification, &[(token, wanted)]));
            }
            drop(state);
            let elsewhere = self.gateway.parking.session_of(ticket);
            if let Some(session) = elsewhere.filter(|session| !std::ptr::eq(&raw const **session, self)) {
                session.progressed(ticket, notification, token);
            }
            return;
        };
        // A server that reports progress nobody asked for is not passed on.
        let Some(wanted) = &call.progress_token else { return };
        call.sink.tell_if_room(Frame::edited(&notification, &[(token, wanted)]));
    }

    fn client_capabilities(&self) -> ClientCapabilities {
        self.lock().client_capabilities
    }

    fn extensions(&self) -> Extensions {
        self.lock().extensions.clone()
    }

    fn asked(&self, during: Option<Ticket>, server_request: ServerRequest) -> Result<(), ServerRequestError> {
        match during {
            Some(ticket) if !self.lock().calls.contains_key(&ticket) => {
                self.gateway.parking.asked_elsewhere(ticket, server_request)
            }
            _ => self.asked_here(during, server_request),
        }
    }

    fn withdrawn(&self, during: Option<Ticket>, server_request: Ticket, notification: Draft) {
        self.withdraw(server_request, &notification);
        if let Some(ticket) = during {
            self.gateway.parking.withdrawn(ticket, server_request);
        }
    }

    fn completed(&self, notification: Bytes) {
        if self.lock().listens() {
            self.outbox.tell(notification.into());
        }
    }
}
