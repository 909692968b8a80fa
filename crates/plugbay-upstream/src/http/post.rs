//! One message on its way to the server, and its answer on the way back.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use plugbay_core::{
    exchange::Ticket,
    wire::{Head, Incoming, Kind, as_message},
};
use reqwest::{Response, StatusCode};
use tokio::{sync::mpsc, time::sleep};

use crate::{process::text::clean, server::error_text};

use super::{
    Note,
    events::{Bookmark, Events},
    mirror::{self, Headers},
    peer::{self, Flavour, Peer, Trouble, is_json, is_stream},
};

/// So often in a row a stream that broke off is asked for again without having brought anything.
const RESUMPTIONS: u32 = 5;

/// Notifications and answers, one after the other.
pub(super) async fn carry(
    peer: Arc<Peer>,
    mut messages: mpsc::UnboundedReceiver<Bytes>,
    notes: mpsc::Sender<Note>,
) {
    while let Some(message) = messages.recv().await {
        let headers = mirror::headers(&message, &HashMap::new()).map;
        match peer.post(message, headers).await {
            Ok(_) => {}
            Err(trouble @ Trouble::SessionGone) => _ = notes.send(Note::Lost(trouble)).await,
            Err(trouble) => tracing::debug!(?trouble, "a notification was not taken"),
        }
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
    let mut exchange = Exchange { peer, ticket, notes, answered: false };
    let note = match exchange.run(message.clone(), headers).await {
        Ok(()) => Note::Done(ticket),
        Err(trouble) => Note::Failed { ticket, message, trouble },
    };
    let _ = exchange.notes.send(note).await;
}

struct Exchange {
    peer: Arc<Peer>,
    ticket: Ticket,
    notes: mpsc::Sender<Note>,
    answered: bool,
}

impl Exchange {
    async fn run(&mut self, message: Bytes, headers: Headers) -> Result<(), Trouble> {
        self.peer.ready().await;
        let response = self.peer.post(message, headers.map).await?;
        if self.peer.flavour == Flavour::Sse {
            return Ok(()); // the answer comes by the one stream
        }
        if is_stream(&response) {
            return self.stream(response).await;
        }
        if is_json(&response) {
            return self.body(response).await;
        }
        match response.status() {
            StatusCode::OK => Err(Trouble::Broken("the answer is neither JSON nor a stream".to_owned())),
            _ => Err(peer::refused(response).await),
        }
    }

    async fn body(&mut self, response: Response) -> Result<(), Trouble> {
        let status = response.status();
        let incoming = as_message(peer::body(response, self.peer.limit).await?);
        if !status.is_success() && !self.is_answer(&incoming) {
            let Incoming::Message(words) = &incoming else { return Err(Trouble::Broken(status.to_string())) };
            return Err(Trouble::Status { code: status.as_u16(), words: words_of(words), challenge: None });
        }
        self.pass_on(incoming).await
    }

    /// A stream that ends early is asked for again where it broke off, if it told how.
    async fn stream(&mut self, mut response: Response) -> Result<(), Trouble> {
        let mut bookmark = Bookmark::default();
        loop {
            let mut events = Events::new(response, self.peer.limit, &bookmark);
            let broke = loop {
                match events.next().await {
                    Ok(event) => self.pass_on(event.data).await?,
                    Err(trouble) => break trouble,
                }
                if self.answered {
                    return Ok(());
                }
            };
            bookmark = events.bookmark(0);
            if self.peer.is_modern() || bookmark.last_id.is_none() {
                return Err(broke);
            }
            response = self.resume(&mut bookmark).await.ok_or(broke)?;
        }
    }

    async fn resume(&self, bookmark: &mut Bookmark) -> Option<Response> {
        loop {
            let (pause, attempt) = bookmark.next_attempt();
            if attempt > RESUMPTIONS {
                return None;
            }
            sleep(pause).await;
            match self.peer.get(bookmark.last_id.as_ref()).await {
                Ok(response) if is_stream(&response) => return Some(response),
                Ok(_) | Err(Trouble::SessionGone | Trouble::Status { .. }) => return None,
                Err(_) => {}
            }
        }
    }

    async fn pass_on(&mut self, incoming: Incoming) -> Result<(), Trouble> {
        match &incoming {
            Incoming::TooLong { .. } => return Err(Trouble::TooLarge),
            incoming => self.answered |= self.is_answer(incoming),
        }
        let _ = self.notes.send(Note::Incoming(incoming)).await;
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

/// The words of a JSON error that is nobody's answer, or the whole of it.
fn words_of(json: &Bytes) -> String {
    let error = Head::read(json).ok().and_then(|head| head.payload);
    let text = match error {
        Some(error) => error_text(json, &error),
        None => clean(json),
    };
    text.chars().take(300).collect()
}
