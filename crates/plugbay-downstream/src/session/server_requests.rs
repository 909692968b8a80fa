//! What a legacy host is pending: requests to it, and where its answers go.

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
    /// The calls that it may be about: it ends with the last of them.
    calls: Vec<Ticket>,
    /// Where it was put.
    sink: Arc<Outbox>,
}

/// Who wants to know.
#[derive(Debug)]
enum Origin {
    Server {
        name: ServerName,
        /// How it wants to hear how far the host is: a token, which to the host is the number of the server request.
        token: Option<Bytes>,
    },
    /// A modern server, by a result that held this key; it is told when all is known.
    MultiRoundTrip { call: Ticket, key: String },
    /// We ourselves.
    Gateway(oneshot::Sender<(Bytes, Head)>),
}

/// What a host answers to ourselves: a result, or the words of its error.
pub(crate) type HostResult = Result<Bytes, String>;

impl Session {
    /// Puts a server's request to the host as it came, but for its id and its progress token: both are a number
    /// of ours, for two servers may have chosen the same.
    ///
    /// `of_call` is where the call that it belongs to is answered.
    pub(crate) fn send_server_request(
        &self,
        of_call: Option<&Arc<Outbox>>,
        server_request: ServerRequest,
    ) -> Result<(), ServerRequestError> {
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
        // A server that asks and withdraws without end must not fill our memory.
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

    /// How far the host is with something that a server has pending.
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

    /// Asks the host something of our own while it waits for an answer in `of_request`. `params` is raw
    /// JSON.
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

    /// The same, and waits for the answer: raw JSON. Whoever waits no longer takes the server request back.
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

    /// Where a call's server requests go: with its answer, unless its host takes nothing there but that.
    pub(crate) fn sink_for_requests(&self, of_call: &Arc<Outbox>) -> Arc<Outbox> {
        let of_call = of_call.outer().unwrap_or(of_call);
        Arc::clone(if of_call.takes_answers_only() { self.outbox() } else { of_call })
    }

    /// The host answers. Whatever was not pending, or is no longer, is ignored.
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

    /// Nobody wants to know any more.
    pub(crate) fn withdraw(&self, server_request: Ticket, notification: &Draft) {
        let pending = self.lock().server_requests.remove(&server_request);
        if let Some(pending) = pending {
            self.send_cancellation(server_request, &pending, notification);
        }
    }

    /// On the way on which it was pending, unless the call whose way that was has ended before it.
    fn send_cancellation(&self, server_request: Ticket, pending: &PendingRequest, notification: &Draft) {
        let sink = if pending.sink.is_closed() { self.outbox() } else { &pending.sink };
        sink.send(notification.render(server_request.0).into());
    }

    /// Asks the host everything that a modern server wants to know. `sent` is the ticket that the server knows.
    pub(crate) fn send_input_requests(
        &self,
        call: Ticket,
        sent: Ticket,
        of_call: &Arc<Outbox>,
        requests: Vec<HostRequest>,
    ) {
        let sink = self.sink_for_requests(of_call);
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

    /// The call has ended on this side: the host need not answer what was pending for it alone.
    pub(crate) fn withdraw_requests_of(&self, sent: Ticket) {
        let state = self.lock();
        if state.server_requests.is_empty() {
            return;
        }
        let concerned = state.server_requests.iter().filter(|(_, pending)| pending.calls.contains(&sent));
        let concerned: Vec<(Ticket, Vec<Ticket>)> =
            concerned.map(|(id, pending)| (*id, pending.calls.clone())).collect();
        drop(state);
        // The table's mutex is never taken while ours is.
        let goes_on = |call: &Ticket| *call != sent && self.gateway().suspended.contains(*call);
        for (id, _) in concerned.into_iter().filter(|(_, calls)| !calls.iter().any(goes_on)) {
            self.withdraw(id, &respond::call_has_ended());
        }
    }

    /// The host is gone: whoever waits for its answers hears so.
    pub(crate) fn refuse_pending(&self) {
        let server_requests = std::mem::take(&mut self.lock().server_requests);
        for (number, pending) in server_requests {
            if let Origin::Server { name, .. } = pending.origin {
                self.gateway().servers.reply(&name, number, Reply::Refused(ServerRequestError::HostGone));
            }
        }
    }
}

/// The number by which the host knows a server request.
fn request_id(json: &[u8]) -> Option<Ticket> {
    std::str::from_utf8(json).ok()?.parse().ok().map(Ticket)
}

/// A server request that was answered is no longer there.
struct WithdrawOnDrop<'a> {
    session: &'a Session,
    number: Ticket,
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        self.session.withdraw(self.number, &respond::not_needed());
    }
}
