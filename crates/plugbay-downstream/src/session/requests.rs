//! The requests of one host that wait for their answers, and their limits.

use std::{collections::HashMap, convert::Infallible, sync::Arc};

use bytes::Bytes;
use plugbay_core::exchange::Ticket;
use tokio::sync::oneshot;

use crate::{
    limits::{CALL_BYTES_OF_HOST, CALLS_OF_HOST},
    outbox::Outbox,
    refusal::Refusal,
};

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) enum InFlight {
    /// A request in the table of calls.
    Call(Ticket),
    /// A request that waits for the catalog, an index or a model, not for a server.
    Waiting {
        /// Takes the answer.
        sink: Arc<Outbox>,
        /// Dropped with the entry, which cancels the work.
        _interest: oneshot::Sender<Infallible>,
    },
}

/// Resolves when a request is cancelled or its host disconnects.
pub(crate) type Cancelled = oneshot::Receiver<Infallible>;

/// Requests by the host's raw id, with their lengths: each stays in memory until its answer.
#[derive(Debug, Default)]
pub(super) struct Requests {
    table: HashMap<Bytes, (usize, InFlight)>,
    bytes: usize,
}

impl Requests {
    /// Adds a request, unless the host has too many in flight.
    pub(super) fn insert(&mut self, id: Bytes, length: usize, request: InFlight) -> Result<(), Refusal> {
        if self.table.len() >= CALLS_OF_HOST {
            return Err(Refusal::Busy("this host has too many requests in flight"));
        }
        if !self.is_empty() && self.bytes + length > CALL_BYTES_OF_HOST {
            return Err(Refusal::Busy("this host has too many bytes of requests in flight"));
        }
        self.bytes += length;
        self.table.insert(id, (length, request));
        Ok(())
    }

    pub(super) fn remove(&mut self, id: &[u8]) -> Option<InFlight> {
        let (length, request) = self.table.remove(id)?;
        self.bytes -= length;
        Some(request)
    }

    pub(super) fn has_call(&self, ticket: Ticket) -> bool {
        self.table.values().any(|(_, request)| matches!(request, InFlight::Call(open) if *open == ticket))
    }

    pub(super) fn contains(&self, id: &[u8]) -> bool {
        self.table.contains_key(id)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(super) fn into_all(self) -> impl Iterator<Item = (Bytes, InFlight)> {
        self.table.into_iter().map(|(id, (_, request))| (id, request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_flight_are_limited_by_number_and_by_bytes() {
        let mut requests = Requests::default();
        let id = |n: usize| Bytes::from(n.to_string());
        let call = || InFlight::Call(Ticket(0));
        for n in 0..CALLS_OF_HOST {
            requests.insert(id(n), 10, call()).unwrap();
        }
        assert!(matches!(requests.insert(id(CALLS_OF_HOST), 10, call()), Err(Refusal::Busy(_))));
        assert!(requests.remove(b"0").is_some() && requests.insert(id(0), 10, call()).is_ok());

        let mut requests = Requests::default();
        requests.insert(id(0), 2 * CALL_BYTES_OF_HOST, call()).expect("one alone may have any length");
        assert!(requests.insert(id(1), 1, call()).is_err());
        requests.remove(b"0");
        requests.insert(id(1), 1, call()).unwrap();
        assert_eq!((requests.len(), requests.bytes), (1, 1));
    }
}
