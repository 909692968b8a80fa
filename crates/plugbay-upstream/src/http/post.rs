//! Posts messages to the server and reads the responses.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    exchange::Ticket,
    wire::{Head, Incoming, Kind, Span, as_message},
};
use reqwest::{Response, StatusCode, header::HeaderMap};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use crate::{
    link::{ReadMessage, answered_ticket},
    process::text::{clean, error_text},
};

use super::{
    HttpEvent, Parked, TransportError,
    events::{Events, ResumePoint},
    mirror::Headers,
    peer::{self, Flavour, Peer, is_json, is_stream},
};

/// How many logins a request waits for. After that, another one would not help.
const LOGINS: u32 = 3;
/// How often in a row a broken stream is requested again.
const RESUMPTIONS: u32 = 5;

/// A notification that the server has not accepted by then no longer delays the others.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a stream may take to end after its response, so that its connection can be reused.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Posts notifications and responses one after the other.
pub(super) async fn post_in_order(
    peer: Arc<Peer>,
    mut messages: mpsc::UnboundedReceiver<Bytes>,
    to_link: mpsc::Sender<HttpEvent>,
) {
    while let Some(message) = messages.recv().await {
        let length = message.len();
        match timeout(NOTIFICATION_TIMEOUT, post_one(&peer, message)).await {
            Ok(Ok(_)) => {}
            Ok(Err(error @ TransportError::SessionGone)) => _ = to_link.send(HttpEvent::Lost(error)).await,
            Ok(Err(error)) => tracing::debug!(?error, "the server did not take a notification"),
            Err(_) => tracing::debug!("the server did not take a notification in time"),
        }
        peer.taken(length);
        peer.mark_initialized(); // the first notification is `notifications/initialized`
    }
}

/// Posts a notification or a response. Waits for a login, unless requests are waiting for this message.
async fn post_one(peer: &Peer, message: Bytes) -> Result<Response, TransportError> {
    loop {
        match peer.post(message.clone(), HeaderMap::new()).await {
            Err(TransportError::NeedsLogin { since, .. }) if peer.is_initialized() => {
                peer.credentials_changed(since).await;
            }
            outcome => return outcome,
        }
    }
}

/// A request that is being sent, and the link to notify.
pub(super) struct Outgoing {
    pub(super) peer: Arc<Peer>,
    pub(super) ticket: Ticket,
    pub(super) to_link: mpsc::Sender<HttpEvent>,
    pub(super) parked: Parked,
}

impl Outgoing {
    /// Sends a request. If it needs a login, the link is notified, and the request is sent again with new
    /// credentials. If nothing has reached the server, another link may send `message` instead.
    pub(super) async fn with_login<T, F>(
        &self,
        message: Option<&Bytes>,
        send: impl Fn() -> F,
    ) -> Result<T, TransportError>
    where
        F: Future<Output = Result<T, TransportError>>,
    {
        let mut logins = 0;
        loop {
            let (failure, since) = match send().await {
                Err(TransportError::NeedsLogin { failure, since }) => (failure, since),
                outcome => return outcome,
            };
            // During the opening it fails: the actor decides when the server is opened again.
            if !self.peer.is_open() || logins == LOGINS {
                return Err(TransportError::NeedsLogin { failure, since });
            }
            logins += 1;
            if let Some(message) = message {
                self.parked.put(message.clone());
            }
            let _ = self.to_link.send(HttpEvent::NeedsLogin { ticket: self.ticket, failure }).await;
            self.peer.credentials_changed(since).await;
            if message.is_some() && self.parked.take().is_none() {
                return std::future::pending().await; // another link sends it
            }
        }
    }
}

/// Posts a request and forwards all messages that come back.
pub(super) async fn request(request: Outgoing, message: Bytes, headers: Headers) {
    let ticket = request.ticket;
    let mut exchange = Exchange { request, answered: false, in_session: false };
    let (note, rest) = match exchange.run(message.clone(), headers).await {
        Ok(rest) => (HttpEvent::Done(ticket), rest),
        Err(error) => {
            let error = if exchange.in_session { error.within_session() } else { error };
            (HttpEvent::Failed { ticket, message, error }, None)
        }
    };
    let _ = exchange.request.to_link.send(note).await;
    if let Some(mut rest) = rest {
        let _ = timeout(DRAIN_TIMEOUT, async { while let Ok(Some(_)) = rest.chunk().await {} }).await;
    }
}

/// One request and its response.
struct Exchange {
    request: Outgoing,
    answered: bool,
    /// Whether the request was sent in a session; another request may have opened one since.
    in_session: bool,
}

impl Exchange {
    /// Returns the response if its stream is still open.
    async fn run(&mut self, message: Bytes, headers: Headers) -> Result<Option<Response>, TransportError> {
        let peer = Arc::clone(&self.request.peer);
        peer.ready().await;
        self.in_session = peer.has_session();
        let post = || peer.post(message.clone(), headers.map.clone());
        let response = self.request.with_login(Some(&message), post).await?;
        if peer.flavour == Flavour::Sse && response.status().is_success() {
            return Ok(None); // the response comes on the SSE stream
        }
        if is_stream(&response) {
            return self.stream(response).await.map(Some);
        }
        if is_json(&response) {
            return self.body(response).await.map(|()| None);
        }
        match response.status() {
            StatusCode::OK => {
                Err(TransportError::Unusable("its response is neither JSON nor an event stream"))
            }
            _ => Err(peer.status_error(response).await),
        }
    }

    async fn body(&mut self, response: Response) -> Result<(), TransportError> {
        let status = response.status();
        let challenge = peer::challenge(&response);
        let read = self.read(as_message(peer::body(response, self.request.peer.limit).await?)).await;
        if read.answers {
            return self.forward(read).await;
        }
        match read.event {
            HttpEvent::Read(ReadMessage { message, head, .. })
                if !status.is_success() || matches!(&head, Ok(head) if is_error(head)) =>
            {
                let text = text_of(&message, head.ok().and_then(|head| head.payload));
                Err(self.request.peer.error_of(status, text, challenge))
            }
            _ if status.is_success() => {
                Err(TransportError::Unusable("its response does not answer the request"))
            }
            _ => Err(self.request.peer.error_of(status, String::new(), challenge)),
        }
    }

    /// Reads a stream until the response has come. If a legacy server's stream breaks, it is resumed if its
    /// events have ids.
    async fn stream(&mut self, mut response: Response) -> Result<Response, TransportError> {
        let mut resume_point = ResumePoint::default();
        loop {
            let mut events = Events::new(response, self.request.peer.limit, &resume_point);
            let broke = loop {
                match events.next().await {
                    Ok(event) => {
                        let read = self.read(event.data).await;
                        self.forward(read).await?;
                    }
                    Err(error) => break error,
                }
                if self.answered {
                    return Ok(events.into_response());
                }
            };
            resume_point = events.resume_point(&resume_point);
            if self.request.peer.is_modern() || resume_point.last_id.is_none() {
                return Err(broke);
            }
            response = self.resume(&mut resume_point).await.ok_or(broke)?;
        }
    }

    async fn resume(&self, resume_point: &mut ResumePoint) -> Option<Response> {
        let mut failures = 0;
        loop {
            sleep(resume_point.next_attempt()).await;
            let get = || self.request.peer.get(resume_point.last_id.as_ref());
            match self.request.with_login(None, get).await {
                Ok(response) if is_stream(&response) => return Some(response),
                Ok(_)
                | Err(
                    TransportError::SessionGone
                    | TransportError::Status { .. }
                    | TransportError::NeedsLogin { .. }
                    | TransportError::Rejected(_),
                ) => return None,
                Err(_) if failures < RESUMPTIONS => failures += 1,
                Err(_) => return None,
            }
        }
    }

    async fn forward(&mut self, read: Received) -> Result<(), TransportError> {
        if let HttpEvent::Incoming(Incoming::TooLong { .. }) = read.event {
            return Err(TransportError::TooLarge);
        }
        self.answered |= read.answers;
        let _ = self.request.to_link.send(read.event).await;
        Ok(())
    }

    /// Parses a message, once for the link and for its recipient.
    async fn read(&self, incoming: Incoming) -> Received {
        let ticket = self.request.ticket;
        let is_ours = |id: Option<&[u8]>| id.and_then(answered_ticket) == Some(ticket);
        match incoming {
            Incoming::Message(message) => {
                let mut read = read_in_turn(message).await;
                if matches!(&read.head, Ok(head) if is_own_message(head)) {
                    read.during = Some(ticket);
                }
                Received { answers: is_ours(read.answered_id()), event: HttpEvent::Read(read) }
            }
            Incoming::NotText(message) => {
                let answers = is_ours(Head::id_of_truncated_response(&message, &message));
                Received { answers, event: HttpEvent::Incoming(Incoming::NotText(message)) }
            }
            other => Received { answers: false, event: HttpEvent::Incoming(other) },
        }
    }
}

/// A message that came back for a request, and whether it is the answer, be it a result or an error.
struct Received {
    event: HttpEvent,
    answers: bool,
}

/// Parses a message; a long one in another thread.
async fn read_in_turn(message: Bytes) -> ReadMessage {
    match ReadMessage::of_long(message.clone()) {
        Ok(reading) => reading.await.unwrap_or_else(|_| ReadMessage::of(message, None)),
        Err(message) => ReadMessage::of(message, None),
    }
}

/// Whether it is a request or notification by the server.
fn is_own_message(head: &Head) -> bool {
    matches!(head.kind, Kind::Request { .. } | Kind::Notification { .. })
}

fn is_error(head: &Head) -> bool {
    matches!(head.kind, Kind::Error { .. })
}

/// The message in a JSON error that answers no request, or the whole text.
fn text_of(json: &Bytes, error: Option<Span>) -> String {
    match error {
        Some(error) => error_text(json, &error),
        None => clean(json),
    }
}
