//! Runs the opening over a link: sends its messages, and passes it events and the time.

use std::time::Instant;

use plugbay_core::{era::Era, exchange::Tickets, host_registry::HostRegistry, wire::Incoming};
use tokio::time::timeout_at;

use super::{
    super::clock,
    OpenError, Opened, RESPONSE_BACKLOG_LIMIT,
    machine::{Event, Opening, Output},
};
use crate::{
    http::TransportError,
    link::{Link, LinkEvent, ReadMessage},
};

/// Opens a server, beginning with the request of era `first`. `guesses_framing`: the link's framing is only a
/// guess.
pub(in crate::server) async fn open(
    link: &mut Link,
    first: Era,
    guesses_framing: bool,
    tickets: &Tickets,
    host_registry: &HostRegistry,
) -> Result<Opened, OpenError> {
    let mut opening = Opening::new(first, link.reorders_responses(), tickets, host_registry, clock::now());
    loop {
        match opening.poll() {
            Output::Request(ticket, message) => link.request(ticket, message),
            Output::Notify(message) => link.send(message),
            Output::Respond(message) if link.untaken() < RESPONSE_BACKLOG_LIMIT => link.send(message),
            Output::Respond(_) => {}
            Output::Keep(text) => link.keep_line(&text),
            Output::Agreed(version) => link.opened(version.as_deref()),
            Output::Wait(deadline) => {
                let event = next_event(link, deadline).await;
                let is_answer = matches!(&event, Event::Message(message) if opening.is_answer(message));
                if guesses_framing && link.answers_by_lines() && !is_answer {
                    return Err(OpenError::ReadsLines);
                }
                opening.handle(event, clock::now());
            }
            Output::Opened(opened) => return Ok(*opened),
            Output::Failed(error) => return Err(error),
        }
    }
}

async fn next_event(link: &mut Link, deadline: Option<Instant>) -> Event {
    let heard = match deadline {
        Some(deadline) => match timeout_at(deadline.into(), link.next()).await {
            Ok(heard) => heard,
            Err(_) => return Event::Deadline,
        },
        None => link.next().await,
    };
    match heard {
        None => Event::Closed,
        Some(
            LinkEvent::Incoming(Incoming::Message(message)) | LinkEvent::Read(ReadMessage { message, .. }),
        ) => Event::Message(message),
        Some(LinkEvent::Incoming(
            Incoming::Noise(text) | Incoming::NotText(text) | Incoming::TooLong { start: text, .. },
        )) => Event::Unreadable(text),
        Some(LinkEvent::Failed { ticket, error }) => Event::RequestFailed { ticket, error },
        // Requests wait for a login only over an open link.
        Some(LinkEvent::NeedsLogin { ticket, failure }) => {
            Event::RequestFailed { ticket, error: TransportError::Rejected(failure) }
        }
    }
}
