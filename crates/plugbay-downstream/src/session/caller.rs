//! The session as servers see it: takes answers, progress, requests and notifications.

use std::task::{Context, Poll};

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    exchange::{Answer, Caller, ListChange, ServerNotification, ServerRequest, ServerRequestError, Ticket},
    extension::Extensions,
    level::Level,
    wire::{Draft, Frame, Span},
};

use super::{Session, SessionKind};

/// The table of calls finds the host of an answer: over HTTP a modern host may wait in another session.
impl Caller for Session {
    fn answered(&self, ticket: Ticket, answer: Answer) {
        self.gateway.suspended.answered(self, ticket, answer);
    }

    fn owner(&self) -> Option<[u8; 32]> {
        (self.kind == SessionKind::SingleRequest).then_some(self.owner.0)
    }

    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        // If every request has its own outbox, this one stays empty. So one slow host cannot hold up a server
        // that many hosts share.
        self.outbox.poll_ahead(context)
    }

    fn log_level(&self) -> Option<Level> {
        self.lock().level
    }

    fn lists_changing(&self, call: Ticket, change: &ListChange) {
        self.hold_for_lists(call, change);
    }

    fn notified(&self, during: Option<Ticket>, notification: &ServerNotification) {
        self.deliver_notification(during, notification);
    }

    fn progressed(&self, ticket: Ticket, notification: Bytes, token: Span) {
        if self.gateway.suspended.progressed(ticket, &notification, token.clone()) {
            return;
        }
        let state = self.lock();
        if let Some((_, wanted)) = state.tokens.iter().find(|(begun_by, _)| *begun_by == ticket) {
            self.outbox.send_if_room(Frame::edited(&notification, &[(token, wanted)]));
        }
    }

    fn client_capabilities(&self) -> ClientCapabilities {
        self.lock().client_capabilities
    }

    fn extensions(&self) -> Extensions {
        self.lock().extensions.clone()
    }

    fn server_request(
        &self,
        during: Option<Ticket>,
        request: ServerRequest,
    ) -> Result<(), ServerRequestError> {
        match during {
            Some(ticket) => self.gateway.suspended.server_request(&self.gateway, ticket, request),
            None => self.send_server_request(None, request),
        }
    }

    /// Only for a host on this machine: it may use a login as the user of plugbay may.
    fn can_log_in(&self, call: Ticket) -> bool {
        match self.kind {
            SessionKind::OnlyHost | SessionKind::Window => self.gateway.suspended.opens_urls(call),
            SessionKind::OneOfMany | SessionKind::SingleRequest => false,
        }
    }

    fn withdrawn(&self, during: Option<Ticket>, request: Ticket, notification: Draft) {
        self.withdraw(request, &notification);
        if let Some(ticket) = during {
            self.gateway.suspended.withdrawn(ticket, request);
        }
    }

    fn completed(&self, notification: Bytes) {
        if self.lock().listens() {
            self.outbox.send(notification.into());
        }
    }
}
