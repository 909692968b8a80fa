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

use crate::{process::text::clean, server::error_text};

use super::{
    Note,
    events::{Bookmark, Events},
    mirror::Headers,
    peer::{self, Flavour, Peer, Trouble, is_json, is_stream},
};

/// So often in a row a stream that broke off is asked for again in vain.
const RESUMPTIONS: u32 = 5;

/// A notification that is not taken by then holds up the others no longer.
const COURIER_PATIENCE: Duration = Duration::from_secs(30);
/// How long a stream may take to end after its answer, so that its connection can be used again.
const LEAVE_TAKING: Duration = Duration::from_secs(1);

/// Notifications and answers, one after the other.
pub(super) async fn carry(
    peer: Arc<Peer>,
    mut messages: mpsc::UnboundedReceiver<Bytes>,
    notes: mpsc::Sender<Note>,
) {
    while let Some(message) = messages.recv().await {
        let length = message.len();
        match timeout(COURIER_PATIENCE, peer.post(message, HeaderMap::new())).await {
            Ok(Ok(_)) => {}
            Ok(Err(trouble @ Trouble::SessionGone)) => _ = notes.send(Note::Lost(trouble)).await,
            Ok(Err(trouble)) => tracing::debug!(?trouble, "a notification was not taken"),
            Err(_) => tracing::debug!("a notification was not taken in time"),
        }
        peer.taken(length);
        peer.introduce(); // the first notification is the one that ends the opening
    }
}

/// Sends a request and passes on everything that comes back for it.
pub(super) async fn request(
    peer: Arc<Peer>,
    ticket: Ticket,
    message: Bytes,
    headers: Headers,
    notes: mpsc::Sender<Note>,
) {
    let mut exchange = Exchange { peer, ticket, notes, answered: false, in_session: false };
    let (note, rest) = match exchange.run(message.clone(), headers).await {
        Ok(rest) => (Note::Done(ticket), rest),
        Err(trouble) => {
            let trouble = if exchange.in_session { trouble.within_session() } else { trouble };
            (Note::Failed { ticket, message, trouble }, None)
        }
    };
    let _ = exchange.notes.send(note).await;
    if let Some(mut rest) = rest {
        let _ = timeout(LEAVE_TAKING, async { while let Ok(Some(_)) = rest.chunk().await {} }).await;
    }
}

struct Exchange {
    peer: Arc<Peer>,
    ticket: Ticket,
    notes: mpsc::Sender<Note>,
    answered: bool,
    /// It was sent in one; another request may have opened it since.
    in_session: bool,
}

impl Exchange {
    /// Gives a stream that is still open.
    async fn run(&mut self, message: Bytes, headers: Headers) -> Result<Option<Response>, Trouble> {
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
            StatusCode::OK => Err(Trouble::Unusable("what it sent is neither JSON nor a stream")),
            _ => Err(peer::refused(response).await),
        }
    }

    async fn body(&mut self, response: Response) -> Result<(), Trouble> {
        let status = response.status();
        let challenge = peer::challenge(&response);
        let incoming = as_message(peer::body(response, self.peer.limit).await?);
        if self.is_answer(&incoming) {
            return self.pass_on(incoming).await;
        }
        match incoming {
            Incoming::Message(message) if !status.is_success() || is_error(&message) => {
                Err(Trouble::Status { code: status.as_u16(), words: words_of(&message), challenge })
            }
            _ if status.is_success() => Err(Trouble::Unusable("what it sent is no answer to it")),
            _ => Err(Trouble::Status { code: status.as_u16(), words: String::new(), challenge }),
        }
    }

    /// A stream that ends early is asked for again where it broke off, if it told how.
    async fn stream(&mut self, mut response: Response) -> Result<Response, Trouble> {
        let mut bookmark = Bookmark::default();
        loop {
            let mut events = Events::new(response, self.peer.limit, &bookmark);
            let broke = loop {
                match events.next().await {
                    Ok(event) => self.pass_on(event.data).await?,
                    Err(trouble) => break trouble,
                }
                if self.answered {
                    return Ok(events.into_response());
                }
            };
            bookmark = events.bookmark(&bookmark);
            if self.peer.is_modern() || bookmark.last_id.is_none() {
                return Err(broke);
            }
            response = self.resume(&mut bookmark).await.ok_or(broke)?;
        }
    }

    async fn resume(&self, bookmark: &mut Bookmark) -> Option<Response> {
        let mut failures = 0;
        loop {
            sleep(bookmark.next_attempt()).await;
            match self.peer.get(bookmark.last_id.as_ref()).await {
                Ok(response) if is_stream(&response) => return Some(response),
                Ok(_) | Err(Trouble::SessionGone | Trouble::Status { .. }) => return None,
                Err(_) if failures < RESUMPTIONS => failures += 1,
                Err(_) => return None,
            }
        }
    }

    async fn pass_on(&mut self, incoming: Incoming) -> Result<(), Trouble> {
        match &incoming {
            Incoming::TooLong { .. } => return Err(Trouble::TooLarge),
            incoming => self.answered |= self.is_answer(incoming),
        }
        let note = match incoming {
            Incoming::Message(message) if is_no_answer(&message) => {
                Note::During { ticket: self.ticket, message }
            }
            incoming => Note::Incoming(incoming),
        };
        let _ = self.notes.send(note).await;
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
