//! Entry points of the fuzz targets.

use std::time::Duration;

use bytes::Bytes;
use plugbay_core::exchange::Ticket;
use tokio::time::Instant;

use crate::seal::{Owner, Seal, Subject};

/// A `requestState` for one name and its arguments.
pub struct SealedState {
    pub text: String,
    seal: Seal,
    now: Instant,
}

impl SealedState {
    pub fn new(ticket: u64, name: &str, arguments: &str) -> Self {
        let seal = Seal::new().expect("the system gives random numbers");
        let now = Instant::now();
        let expires = now + Duration::from_secs(60);
        let text = seal.close(Ticket(ticket), &Owner::default(), &subject(name, arguments), expires);
        Self { text, seal, now }
    }

    /// The ticket in a state, if its seal is valid.
    pub fn open(&self, state: &str, name: &str, arguments: &str) -> Option<u64> {
        let opened = self.seal.open(state, &Owner::default(), &subject(name, arguments), self.now);
        opened.ok().map(|Ticket(ticket)| ticket)
    }

    /// The prefix of every state of this gateway.
    pub fn mark(&self) -> &str {
        self.text.rsplit_once('.').map_or("", |(mark, _)| &self.text[..=mark.len()])
    }
}

fn subject(name: &str, arguments: &str) -> Subject {
    let (name, arguments) =
        (Bytes::copy_from_slice(name.as_bytes()), Bytes::copy_from_slice(arguments.as_bytes()));
    Subject { method: Bytes::from_static(b"tools/call"), name, arguments }
}
