//! Requests to a legacy host, from servers or from plugbay, and the routing of its answers.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    exchange::{Reply, ServerRequest, ServerRequestError, Ticket},
    name::ServerName,
    suspended::HostRequest,
    wire::{Draft, Frame, Head, Kind, Members, Span, string_value},
};

use tokio::sync::oneshot;

use super::Session;
use crate::{outbox::Outbox, respond, tasks};

/// A server request that the host has not answered yet.
#[derive(Debug)]
pub(super) struct PendingRequest {
    origin: Origin,
    /// The calls that it may belong to. When the last of them ends, it is withdrawn.
    calls: Vec<Ticket>,
    /// The outbox that it was sent to.
    sink: Arc<Outbox>,
}

/// The sender of a request to the host.
#[derive(Debug)]
enum Origin {
    Server {
        name: ServerName,
        /// The server's progress token. The host gets plugbay's request id as token instead.
        token: Option<Bytes>,
    },
    /// A modern server, by an `input_required` result. It gets all answers together, each under its key.
    MultiRoundTrip { call: Ticket, key: String },
    /// plugbay itself.
    Gateway(oneshot::Sender<(Bytes, Head)>),
}

/// A host's answer to a request by plugbay: a result, or the error message.
pub(crate) type HostResult = Result<Bytes, String>;

impl Session {
    /// Sends a server's request to the host. Its id and progress token are replaced by a ticket, because two
    /// servers may have chosen the same.
    ///
    /// `of_call` is the outbox of the call that the request belongs to.
    pub(crate) fn send_server_request(
        &self,
        of_call: Option<&Arc<Outbox>>,
        server_request: ServerRequest,
    ) -> Result<(), ServerRequestError> {
        if !self.gateway().sees(&server_request.server) {
            return Err(ServerRequestError::NoHost);
        }
        let mut state = self.lock();
        let sink = match of_call {
            Some(sink) => self.sink_for_requests(sink),
            None if state.listens() => Arc::clone(self.outbox()),
            None => return Err(ServerRequestError::NoHost),
        };
        let lacking = state.client_capabilities.lacks(
            &server_request.message,
            server_request.method(),
            server_request.params(),
        );
        if let Some(lacking) = lacking {
            return Err(ServerRequestError::Undeclared(lacking));
        }
        // A server must not fill the memory by sending and withdrawing requests without end.
        if !sink.has_room() {
            return Err(ServerRequestError::TooMany);
        }
        let ServerRequest { number, server, calls, message, head, .. } = server_request;
        let meta = head.payload.as_ref().and_then(|params| Members::find(&message, params, "_meta"));
        let token = meta.and_then(|meta| Members::find(&message, &meta, "progressToken"));
        let own = token.clone().map(|token| message.slice(token));
        let origin = Origin::Server { name: server.clone(), token: own };
        state.server_requests.insert(number, PendingRequest { origin, calls, sink: Arc::clone(&sink) });
        drop(state);
        let number = number.0.to_string();
        let labels = tasks::server_request_labels(&message, head.payload.as_ref(), &server, &self.owner());
        let labels = labels.iter().map(|(at, text)| (*at..*at, &text[..]));
        let token = token.map(|token| (token, number.as_bytes()));
        let changes: Vec<(Span, &[u8])> = labels.chain(token).collect();
        sink.send(head.readdressed(&message, number.as_bytes(), &changes));
        Ok(())
    }

    /// Forwards the host's progress on a server request to that server.
    pub(crate) fn host_progress(&self, message: &Bytes, params: Option<&Span>) {
        let token = params.and_then(|params| Members::find(message, params, "progressToken"));
        let Some(token) = token else { return };
        let Some(server_request) = request_id(&message[token.clone()]) else { return };
        let state = self.lock();
        let origin = state.server_requests.get(&server_request).map(|pending| &pending.origin);
        let Some(Origin::Server { name, token: Some(own) }) = origin else { return };
        let (server, told) = (name.clone(), Frame::edited(message, &[(token, own)]).into_bytes());
        drop(state);
        self.gateway().servers.notify(&server, told);
    }

    /// Sends a request by plugbay to the host while the host waits for an answer in `of_request`. `params` is
    /// raw JSON.
    fn send_gateway_request(
        &self,
        of_request: &Arc<Outbox>,
        method: &str,
        params: &str,
    ) -> Result<(Ticket, oneshot::Receiver<(Bytes, Head)>), ServerRequestError> {
        let sink = self.sink_for_requests(of_request);
        let mut state = self.lock();
        let lacking =
            state.client_capabilities.lacks(params.as_bytes(), method.as_bytes(), Some(&(0..params.len())));
        if let Some(lacking) = lacking {
            return Err(ServerRequestError::Undeclared(lacking));
        }
        if !sink.has_room() {
            return Err(ServerRequestError::TooMany);
        }
        let number = self.gateway().tickets.next();
        let (waits, answer) = oneshot::channel();
        let pending =
            PendingRequest { origin: Origin::Gateway(waits), calls: Vec::new(), sink: Arc::clone(&sink) };
        state.server_requests.insert(number, pending);
        drop(state);
        sink.send(respond::gateway_request(number, method, params));
        Ok((number, answer))
    }

    /// Sends a request by plugbay to the host and waits for the answer. Dropping the future withdraws the
    /// request.
    pub(crate) async fn request_host(
        &self,
        of_request: &Arc<Outbox>,
        method: &str,
        params: &str,
    ) -> Result<HostResult, ServerRequestError> {
        let (number, answer) = self.send_gateway_request(of_request, method, params)?;
        let _withdraw = WithdrawOnDrop { session: self, number };
        let (message, head) = answer.await.map_err(|_| ServerRequestError::HostGone)?;
        let payload = head.payload.unwrap_or_default();
        if let Kind::Result { .. } = head.kind {
            return Ok(Ok(message.slice(payload)));
        }
        let words = Members::find(&message, &payload, "message");
        let words = words.and_then(|words| string_value(&message[words]));
        Ok(Err(words.as_deref().unwrap_or("it failed").to_owned()))
    }

    /// The outbox for server requests of a call: that of the call, unless its host accepts only the answer there.
    pub(crate) fn sink_for_requests(&self, of_call: &Arc<Outbox>) -> Arc<Outbox> {
        let of_call = of_call.outer().unwrap_or(of_call);
        Arc::clone(if of_call.takes_answers_only() { self.outbox() } else { of_call })
    }

    /// Routes the host's response to the sender of the request. Responses to unknown requests are ignored.
    pub(crate) fn replied(self: &Arc<Self>, message: Bytes, head: Head) {
        let (Kind::Result { id } | Kind::Error { id: Some(id) }) = &head.kind else { return };
        let Some(number) = request_id(&message[id.clone()]) else { return };
        let Some(PendingRequest { origin, .. }) = self.lock().server_requests.remove(&number) else { return };
        match origin {
            Origin::Server { name, .. } => {
                let (message, head) = tasks::with_server_task_id(message, head, &self.owner());
                self.gateway().servers.reply(&name, number, Reply::Response { message, head });
            }
            Origin::MultiRoundTrip { call, key } => self.input_answered(call, key, &message, &head),
            Origin::Gateway(origin) => _ = origin.send((message, head)),
        }
    }

    /// Withdraws a request: sends the host a cancellation.
    pub(crate) fn withdraw(&self, server_request: Ticket, notification: &Draft) {
        let pending = self.lock().server_requests.remove(&server_request);
        if let Some(pending) = pending {
            self.send_cancellation(server_request, &pending, notification);
        }
    }

    /// Sends the cancellation through the request's outbox, or through the session's if the call has ended.
    fn send_cancellation(&self, server_request: Ticket, pending: &PendingRequest, notification: &Draft) {
        let sink = if pending.sink.is_closed() { self.outbox() } else { &pending.sink };
        sink.send(notification.render(server_request.0).into());
    }

    /// Sends the input requests of a modern server to the host. `sent` is the ticket that the server knows.
    /// `false` if the host leaves too much unread.
    pub(crate) fn send_input_requests(
        &self,
        call: Ticket,
        sent: Ticket,
        of_call: &Arc<Outbox>,
        requests: Vec<HostRequest>,
    ) -> bool {
        let sink = self.sink_for_requests(of_call);
        if !sink.has_room() {
            return false;
        }
        let mut state = self.lock();
        for HostRequest { key, id, .. } in &requests {
            let origin = Origin::MultiRoundTrip { call, key: key.clone() };
            let pending = PendingRequest { origin, calls: vec![sent], sink: Arc::clone(&sink) };
            state.server_requests.insert(*id, pending);
        }
        drop(state);
        for HostRequest { message, .. } in requests {
            sink.send(message);
        }
        true
    }

    fn input_answered(&self, call: Ticket, key: String, message: &Bytes, head: &Head) {
        let Some(payload) = head.payload.clone() else { return };
        let result = match head.kind {
            Kind::Error { .. } => {
                let words = Members::find(message, &payload, "message").map(|span| message.slice(span));
                Err(words.as_deref().and_then(string_value).unwrap_or_default().into_owned())
            }
            _ => Ok(message.slice(payload)),
        };
        self.gateway().suspended.host_answered(self.gateway(), call, key, result);
    }

    /// Withdraws the server requests that belong only to a call that has ended.
    pub(crate) fn withdraw_requests_of(&self, sent: Ticket) {
        let state = self.lock();
        if state.server_requests.is_empty() {
            return;
        }
        let concerned = state.server_requests.iter().filter(|(_, pending)| pending.calls.contains(&sent));
        let concerned: Vec<(Ticket, Vec<Ticket>)> =
            concerned.map(|(id, pending)| (*id, pending.calls.clone())).collect();
        drop(state);
        // The lock of the table of calls is never taken while the session's is held.
        let goes_on = |call: &Ticket| *call != sent && self.gateway().suspended.contains(*call);
        for (id, _) in concerned.into_iter().filter(|(_, calls)| !calls.iter().any(goes_on)) {
            self.withdraw(id, &respond::call_has_ended());
        }
    }

    /// Refuses all pending server requests, because the host has disconnected.
    pub(crate) fn refuse_pending(&self) {
        let server_requests = std::mem::take(&mut self.lock().server_requests);
        for (number, pending) in server_requests {
            if let Origin::Server { name, .. } = pending.origin {
                self.gateway().servers.reply(&name, number, Reply::Refused(ServerRequestError::HostGone));
            }
        }
    }
}

/// The ticket that the host got as request id.
fn request_id(json: &[u8]) -> Option<Ticket> {
    std::str::from_utf8(json).ok()?.parse().ok().map(Ticket)
}

/// Withdraws a request on drop, unless it was answered.
struct WithdrawOnDrop<'a> {
    session: &'a Session,
    number: Ticket,
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        self.session.withdraw(self.number, &respond::not_needed());
    }
}
