//! Requests of a server to hosts: which host answers, and how the response gets back.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    era::Era,
    exchange::{Caller, Reply, ServerRequest, ServerRequestError, Ticket},
    task,
    wire::{Draft, Head, Hole, Kind, Members, Span, string_value, write},
};

use super::{
    super::{
        opening::{RESPONSE_BACKLOG_LIMIT, reject},
        state::{
            known_hosts::KnownHosts,
            server_requests::{OpenRequest, Recipient},
        },
    },
    Actor, Waiting,
    commands::BACKLOG_LIMIT,
};

impl Actor {
    /// Handles a request of the server. `during` is the call on whose stream it came.
    pub(super) fn server_request(&mut self, message: Bytes, head: Head, during: Option<Ticket>) {
        let Kind::Request { id, method } = head.kind.clone() else { return };
        // A modern server may send requests only in its results.
        if &message[method.clone()] == b"ping" || self.opened.era == Some(Era::Modern) {
            return self.send_to_server(reject(&message, &id, &method), RESPONSE_BACKLOG_LIMIT);
        }
        let id = message.slice(id);
        if let Err(why) = self.forward_to_host(id.clone(), message, head, method, during) {
            self.send_to_server(refusal(&id, why), RESPONSE_BACKLOG_LIMIT);
        }
    }

    fn forward_to_host(
        &mut self,
        id: Bytes,
        message: Bytes,
        head: Head,
        method: Span,
        during: Option<Ticket>,
    ) -> Result<(), ServerRequestError> {
        if self.server_requests.is_full() {
            return Err(ServerRequestError::TooMany);
        }
        let task = head.payload.as_ref().and_then(|params| task::related(&message, params));
        let task = task.and_then(|id| string_value(&message[id]));
        let recipients = match (during, task) {
            (None, Some(id)) => vec![self.recipient_for_task(&id).ok_or(ServerRequestError::NoHost)?],
            _ => self.candidates(during)?,
        };
        let number = self.context.tickets.next();
        let calls = recipients.iter().filter_map(|recipient| recipient.call).collect();
        let server = self.spec.name.clone();
        self.offer(id, ServerRequest { number, server, calls, message, head, method }, recipients)
    }

    /// The hosts that may answer: the host of the call that this belongs to. If the server names no call, the
    /// host of the calls in flight; without calls, the only host. Nobody answers for a call that has ended,
    /// or without a call if the process has served several hosts.
    fn candidates(&self, during: Option<Ticket>) -> Result<Vec<Recipient>, ServerRequestError> {
        let recipients = match during {
            Some(ticket) if !self.pending.contains(ticket) => return Err(ServerRequestError::NoHost),
            Some(ticket) => self.recipients(&[ticket]),
            None => self.in_flight()?,
        };
        if recipients.is_empty() {
            return Ok(vec![self.only_host().ok_or(ServerRequestError::NoHost)?]);
        }
        Ok(recipients)
    }

    /// The host of this task. If the task is unknown, the only host.
    fn recipient_for_task(&self, id: &str) -> Option<Recipient> {
        if self.tasks.contains(id) { self.tasks.recipient(id) } else { self.only_host() }
    }

    fn only_host(&self) -> Option<Recipient> {
        let only =
            self.context.host_registry.only().filter(|host| self.server_requests.known_hosts.allow(&**host));
        only.map(|caller| Recipient { caller, call: None })
    }

    /// Notes that the process works for this host. The instance of a session works for no other host.
    pub(super) fn note_host(&mut self, caller: &Arc<dyn Caller>) {
        if self.context.slots.is_none() {
            self.server_requests.known_hosts.called(caller);
        }
    }

    /// Forgets the hosts: a new process knows only the calls that it inherits.
    pub(super) fn forget_hosts(&mut self) {
        self.server_requests.known_hosts = KnownHosts::default();
        let calls: Vec<Ticket> = self.pending.tickets().collect();
        for recipient in self.recipients(&calls) {
            self.note_host(&recipient.caller);
        }
    }

    pub(super) fn recipients(&self, calls: &[Ticket]) -> Vec<Recipient> {
        let recipient = |ticket: &Ticket| match self.pending.get(*ticket)? {
            Waiting::Host(caller) => Some(Recipient { caller: Arc::clone(caller), call: Some(*ticket) }),
            _ => None,
        };
        calls.iter().filter_map(recipient).collect()
    }

    /// The calls that a message without a call may belong to, oldest first. If the process has had calls of
    /// several hosts, none may see the message: it may belong to a call that has ended.
    pub(super) fn in_flight(&self) -> Result<Vec<Recipient>, ServerRequestError> {
        if self.server_requests.known_hosts.are_several() {
            return Err(ServerRequestError::Ambiguous);
        }
        let mut calls: Vec<Ticket> = self.pending.tickets().collect();
        calls.sort_unstable();
        let recipients = self.recipients(&calls);
        let of_one_host = recipients.windows(2).all(|pair| pair[0].caller.is_same_host(&*pair[1].caller));
        of_one_host.then_some(recipients).ok_or(ServerRequestError::Ambiguous)
    }

    /// Forwards the request over the latest call whose caller accepts it.
    fn offer(
        &mut self,
        id: Bytes,
        server_request: ServerRequest,
        recipients: Vec<Recipient>,
    ) -> Result<(), ServerRequestError> {
        let mut refused = ServerRequestError::NoHost;
        for recipient in recipients.into_iter().rev() {
            match recipient.caller.server_request(recipient.call, server_request.clone()) {
                Ok(()) => {
                    self.forwarded(OpenRequest { id, server_request, recipient });
                    return Ok(());
                }
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    fn forwarded(&mut self, request: OpenRequest) {
        for ticket in &request.server_request.calls {
            self.pending.hold(*ticket);
        }
        if let Some(id) = elicitation_id(&request.server_request.message, request.server_request.params()) {
            self.server_requests.url_elicited(id, &request.recipient.caller);
        }
        self.server_requests.insert(request);
    }

    /// Handles a host's answer, or its refusal to answer over the call that carried the request.
    pub(super) fn replied(&mut self, number: Ticket, reply: Reply) {
        if self.login_replied(number, &reply) {
            return;
        }
        // `None`: the server request was withdrawn, or its server is gone.
        let Some(request) = self.server_requests.remove(number) else { return };
        self.release(&request.server_request);
        let response = match reply {
            Reply::Response { message, head } => head.readdressed(&message, &request.id, &[]).into_bytes(),
            Reply::Result(result) => write::result(&request.id, &result),
            Reply::Refused(why) => refusal(&request.id, why),
            Reply::LeftOpen => {
                let OpenRequest { id, mut server_request, recipient } = request;
                server_request.calls.retain(|call| Some(*call) != recipient.call);
                let recipients = self.recipients(&server_request.calls);
                match self.offer(id.clone(), server_request, recipients) {
                    Ok(()) => return,
                    Err(why) => refusal(&id, why),
                }
            }
        };
        self.send_to_server(response, BACKLOG_LIMIT);
    }

    fn release(&mut self, server_request: &ServerRequest) {
        for ticket in &server_request.calls {
            self.pending.release(*ticket, self.now);
        }
    }

    /// Handles `notifications/cancelled` from the server.
    pub(super) fn cancelled_by_server(&mut self, message: &Bytes, params: Option<&Span>) {
        let Some(id) = params.and_then(|params| Members::find(message, params, "requestId")) else { return };
        for request in self.server_requests.cancelled(&message[id.clone()]) {
            self.release(&request.server_request);
            request.withdraw(Draft::new(message.clone()).with(id.clone(), Hole::Ticket));
        }
    }

    /// Ends the server requests of a call that is about to be answered, if they belong to it alone.
    pub(super) fn end_requests_of(&mut self, ticket: Ticket) {
        self.end_requests(Some(ticket));
    }

    /// The same for calls that ended in another way.
    pub(super) fn end_orphaned_requests(&mut self) {
        self.end_requests(None);
    }

    fn end_requests(&mut self, ended: Option<Ticket>) {
        if self.server_requests.is_empty() {
            return;
        }
        let goes_on = |call: Ticket| Some(call) != ended && self.pending.contains(call);
        for request in self.server_requests.orphaned(goes_on) {
            request.withdraw(write::cancellation("the call has ended"));
            self.send_to_server(refusal(&request.id, ServerRequestError::CallEnded), RESPONSE_BACKLOG_LIMIT);
        }
    }

    /// Withdraws all server requests: the server is gone, and needs no answers.
    pub(super) fn withdraw_all_requests(&mut self) {
        for request in self.server_requests.drain() {
            request.withdraw(write::cancellation("the server has gone"));
        }
    }

    /// Forwards `notifications/elicitation/complete` only to the host that opened the URL.
    pub(super) fn url_elicitation_completed(&mut self, message: Bytes, params: Option<&Span>) {
        let Some(id) = elicitation_id(&message, params) else { return };
        if let Some(host) = self.server_requests.url_elicitation_completed(&id) {
            host.completed(message);
        }
    }

    pub(super) fn roots_changed(&mut self, notification: Bytes) {
        if self.opened.declared.roots {
            self.send_to_server(notification, RESPONSE_BACKLOG_LIMIT);
        }
    }

    /// Sends a notification or a response, unless the server leaves more than `limit` bytes of them unread.
    pub(super) fn send_to_server(&mut self, message: Bytes, limit: usize) {
        if let Some(link) = self.links.up_mut()
            && link.untaken() < limit
        {
            link.send(message);
        }
    }
}

fn elicitation_id(message: &Bytes, params: Option<&Span>) -> Option<Bytes> {
    Members::find(message, params?, "elicitationId").map(|id| message.slice(id))
}

fn refusal(id: &[u8], why: ServerRequestError) -> Bytes {
    let error = serde_json::json!({ "code": why.code(), "message": why.to_string() });
    write::error(id, error.to_string().as_bytes())
}
