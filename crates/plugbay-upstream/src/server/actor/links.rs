//! Links that can take no more but may still bring answers: a server forgets a session sooner than the
//! calls that it is working on.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use bytes::Bytes;
use plugbay_core::{exchange::Ticket, failure::Failure};

use super::{Actor, Phase, Waiting};
use crate::{
    http::Trouble,
    link::{Heard, Link},
};

impl Actor {
    /// Keeps a link for the calls that may still be answered on it, if there are any.
    pub(super) fn retire(&mut self, mut link: Link) -> Result<Failure, Link> {
        let mut under_way = link.under_way();
        under_way.retain(|ticket| matches!(self.pending.get(*ticket), Some(Waiting::Host(_))));
        if under_way.is_empty() {
            return Err(link);
        }
        let failure = link.retire(&under_way);
        self.retired.push(link);
        Ok(failure)
    }

    /// What a retired link did not get through goes to its successor.
    pub(super) fn take_back(&mut self, place: usize) {
        let link = &mut self.retired[place];
        let unsent = link.take_unsent();
        if link.under_way().is_empty() {
            drop(self.retired.swap_remove(place));
        }
        self.resend.extend(unsent);
        match &self.phase {
            Phase::Up(_) => self.send_again(),
            Phase::Opening(_) => {}
            Phase::Down => {
                for (ticket, _) in std::mem::take(&mut self.resend) {
                    self.undelivered(ticket, &Trouble::SessionGone);
                }
            }
        }
    }

    /// The server need not answer this any more, by whichever link it was asked.
    pub(super) fn call_off(&mut self, ticket: Ticket, notification: &Bytes) {
        let up = if let Phase::Up(link) = &mut self.phase { Some(link) } else { None };
        for link in self.retired.iter_mut().chain(up) {
            link.cancel(ticket, notification.clone());
        }
    }
}

/// What the next of them says, and its place. Dropping the future loses nothing.
pub(super) async fn next_of(links: &mut [Link]) -> (usize, Option<Heard>) {
    poll_fn(|context| {
        for (place, link) in links.iter_mut().enumerate() {
            if let Poll::Ready(heard) = pin!(link.next()).poll(context) {
                return Poll::Ready((place, heard));
            }
        }
        Poll::Pending
    })
    .await
}
