//! One message on its way to the server, and its answer on the way back.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    exchange::Ticket,
    wire::{Head, Incoming, Kind, as_message},
};
use reqwest::{Response, StatusCode, header::HeaderMap};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use crate::process::text::{clean, error_text};

use super::{
    HttpEvent,
    events::{Events, ResumePoint},
    mirror::Headers,
    peer::{self, Flavour, Peer, TransportError, is_json, is_stream},
};

/// So often in a row a stream that broke off is asked for again in vain.
const RESUMPTIONS: u32 = 5;

/// A notification that is not taken by then holds up the others no longer.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a stream may take to end after its answer, so that its connection can be used again.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Notifications and answers, one after the other.
pub(super) async fn carry(
    peer: Arc<Peer>,
    mut messages: mpsc::UnboundedReceiver<Bytes>,
    to_link: mpsc::Sender<HttpEvent>,
) {
    while let Some(message) = messages.recv().await {
        let length = message.len();
        match timeout(NOTIFICATION_TIMEOUT, peer.post(message, HeaderMap::new())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error @ TransportError::SessionGone)) => _ = to_link.send(HttpEvent::Lost(error)).await,
            Ok(Err(error)) => tracing::debug!(?error, "a notification was not taken"),
            Err(_) => tracing::debug!("a notification was not taken in time"),
        }
        peer.taken(length);
        peer.mark_initialized(); // the first notification is the one that ends the opening
    }
}

/// Sends a request and passes on everything that comes back for it.
pub(super) async fn request(
    peer: Arc<Peer>,
    ticket: Ticket,
    message: Bytes,
    headers: Headers,
    to_link: mpsc::Sender<HttpEvent>,
) {
    let mut exchange = Exchange { peer, ticket, to_link, answered: false, in_session: false };
    let (note, rest) = match exchange.run(message.clone(), headers).await {
        Ok(rest) => (HttpEvent::Done(ticket), rest),
        Err(error) => {
            let error = if exchange.in_session { error.within_session() } else { error };
            (HttpEvent::Failed { ticket, message, error }, None)
        }
    };
    let _ = exchange.to_link.send(note).await;
    if let Some(mut rest) = rest {
        let _ = timeout(DRAIN_TIMEOUT, async { while let Ok(Some(_)) = rest.chunk().await {} }).await;
    }
}

struct Exchange {
    peer: Arc<Peer>,
    ticket: Ticket,
    to_link: mpsc::Sender<HttpEvent>,
    answered: bool,
    /// It was sent in one; another request may have opened it since.
    in_session: bool,
}

impl Exchange {
    /// Gives a stream that is still open.
    async fn run(&mut self, message: Bytes, headers: Headers) -> Result<Option<Response>, TransportError> {
        self.peer.ready().await;
        self.in_session = self.peer.has_session();
        let response = self.peer.post(message, headers.map).await?;
        if self.peer.flavour == Flavour::Sse && response.status().is_success() {
            return Ok(None); // the answer comes by the one stream
        }
        if is_stream(&response) {
            return self.stream(response).await.map(Some);
        }
        if is_json(&response) {
            return self.body(response).await.map(|()| None);
        }
        match response.status() {
            StatusCode::OK => Err(TransportError::Unusable("what it sent is neither JSON nor a stream")),
            _ => Err(peer::refused(response).await),
        }
    }

    async fn body(&mut self, response: Response) -> Result<(), TransportError> {
        let status = response.status();
        let challenge = peer::challenge(&response);
        let incoming = as_message(peer::body(response, self.peer.limit).await?);
        if self.is_answer(&incoming) {
            return self.pass_on(incoming).await;
        }
        match incoming {
            Incoming::Message(message) if !status.is_success() || is_error(&message) => {
                Err(TransportError::Status { code: status.as_u16(), words: words_of(&message), challenge })
            }
            _ if status.is_success() => Err(TransportError::Unusable("what it sent is no answer to it")),
            _ => Err(TransportError::Status { code: status.as_u16(), words: String::new(), challenge }),
        }
    }

    /// A stream that ends early is asked for again where it broke off, if it told how.
    async fn stream(&mut self, mut response: Response) -> Result<Response, TransportError> {
        let mut resume_point = ResumePoint::default();
        loop {
            let mut events = Events::new(response, self.peer.limit, &resume_point);
            let broke = loop {
                match events.next().await {
                    Ok(event) => self.pass_on(event.data).await?,
                    Err(error) => break error,
                }
                if self.answered {
                    return Ok(events.into_response());
                }
            };
            resume_point = events.resume_point(&resume_point);
            if self.peer.is_modern() || resume_point.last_id.is_none() {
                return Err(broke);
            }
            response = self.resume(&mut resume_point).await.ok_or(broke)?;
        }
    }

    async fn resume(&self, resume_point: &mut ResumePoint) -> Option<Response> {
        let mut failures = 0;
        loop {
            sleep(resume_point.next_attempt()).await;
            match self.peer.get(resume_point.last_id.as_ref()).await {
                Ok(response) if is_stream(&response) => return Some(response),
                Ok(_) | Err(TransportError::SessionGone | TransportError::Status { .. }) => return None,
                Err(_) if failures < RESUMPTIONS => failures += 1,
                Err(_) => return None,
            }
        }
    }

    async fn pass_on(&mut self, incoming: Incoming) -> Result<(), TransportError> {
        match &incoming {
            Incoming::TooLong { .. } => return Err(TransportError::TooLarge),
            incoming => self.answered |= self.is_answer(incoming),
        }
        let note = match incoming {
            Incoming::Message(message) if is_no_answer(&message) => {
                HttpEvent::During { ticket: self.ticket, message }
            }
            incoming => HttpEvent::Incoming(incoming),
        };
        let _ = self.to_link.send(note).await;
        Ok(())
    }

    fn is_answer(&self, incoming: &Incoming) -> bool {
        let (Incoming::Message(message) | Incoming::NotText(message)) = incoming else { return false };
        let mut digits = itoa::Buffer::new();
        let ours = digits.format(self.ticket.0).as_bytes();
        match Head::read_quickly(message).map(|head| head.kind) {
            Ok(Kind::Result { id } | Kind::Error { id: Some(id) }) => &message[id] == ours,
            Ok(_) => false,
            Err(_) => Head::id_of_truncated_response(message, message) == Some(ours),
        }
    }
}

fn is_no_answer(message: &Bytes) -> bool {
    let kind = Head::read_quickly(message).map(|head| head.kind);
    matches!(kind, Ok(Kind::Request { .. } | Kind::Notification { .. }))
}

fn is_error(message: &Bytes) -> bool {
    matches!(Head::read(message).map(|head| head.kind), Ok(Kind::Error { .. }))
}

/// The words of a JSON error that is nobody's answer, or the whole of it.
fn words_of(json: &Bytes) -> String {
    let error = Head::read(json).ok().and_then(|head| head.payload);
    let text = match error {
        Some(error) => error_text(json, &error),
        None => clean(json),
    };
    text.chars().take(300).collect()
}
