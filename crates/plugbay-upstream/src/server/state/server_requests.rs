//! The requests of a server that hosts have not answered yet.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use bytes::Bytes;
use plugbay_core::{
    exchange::{Caller, ServerRequest, Ticket},
    wire::Draft,
};
use rustc_hash::FxHashMap;

use super::known_hosts::KnownHosts;

/// Limit of open requests of one server.
const OPEN_LIMIT: usize = 256;
/// Limit of URL elicitations that are remembered, so that their completion reaches the right host.
const URL_ELICITATION_LIMIT: usize = 64;

/// The open requests of one server, and the URL elicitations among the earlier ones.
#[derive(Debug, Default)]
pub(in crate::server) struct ServerRequests {
    open: FxHashMap<Ticket, OpenRequest>,
    /// The hosts whose calls the process has had: a request without a call may belong to any of them.
    pub(in crate::server) known_hosts: KnownHosts,
    /// Raw `elicitationId`s and the hosts that opened the URL, newest first.
    url_elicitations: VecDeque<(Bytes, Weak<dyn Caller>)>,
}

/// A request that a host has been asked to answer.
#[derive(Debug)]
pub(in crate::server) struct OpenRequest {
    /// The server's own raw id.
    pub(in crate::server) id: Bytes,
    /// Kept whole, because another call may have to carry it. All calls in it wait for the answer.
    pub(in crate::server) server_request: ServerRequest,
    pub(in crate::server) recipient: Recipient,
}

/// The host that a server's message is for, and the call that carries it there.
#[derive(Debug, Clone)]
pub(in crate::server) struct Recipient {
    pub(in crate::server) caller: Arc<dyn Caller>,
    pub(in crate::server) call: Option<Ticket>,
}

impl ServerRequests {
    pub(in crate::server) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(in crate::server) fn is_full(&self) -> bool {
        self.open.len() >= OPEN_LIMIT
    }

    pub(in crate::server) fn insert(&mut self, request: OpenRequest) {
        self.open.insert(request.server_request.number, request);
    }

    /// Removes a request, because the host has answered.
    pub(in crate::server) fn remove(&mut self, number: Ticket) -> Option<OpenRequest> {
        self.open.remove(&number)
    }

    /// Removes the request with this raw id, which the server cancels.
    pub(in crate::server) fn cancelled(&mut self, id: &[u8]) -> Vec<OpenRequest> {
        self.take_where(|request| request.id == id)
    }

    /// Removes the requests whose calls have all ended.
    pub(in crate::server) fn orphaned(&mut self, goes_on: impl Fn(Ticket) -> bool) -> Vec<OpenRequest> {
        self.take_where(|request| {
            let calls = &request.server_request.calls;
            !calls.is_empty() && !calls.iter().any(|call| goes_on(*call))
        })
    }

    /// Removes all requests, because the server is gone.
    pub(in crate::server) fn drain(&mut self) -> Vec<OpenRequest> {
        self.open.drain().map(|(_, request)| request).collect()
    }

    pub(in crate::server) fn url_elicited(&mut self, id: Bytes, host: &Arc<dyn Caller>) {
        self.url_elicitations.truncate(URL_ELICITATION_LIMIT - 1);
        self.url_elicitations.push_front((id, Arc::downgrade(host)));
    }

    /// The host that opened the URL of this elicitation, which is now complete.
    pub(in crate::server) fn url_elicitation_completed(&mut self, id: &[u8]) -> Option<Arc<dyn Caller>> {
        let index = self.url_elicitations.iter().position(|(known, _)| *known == id)?;
        self.url_elicitations.remove(index)?.1.upgrade()
    }

    fn take_where(&mut self, gone: impl Fn(&OpenRequest) -> bool) -> Vec<OpenRequest> {
        self.open.extract_if(|_, request| gone(request)).map(|(_, request)| request).collect()
    }
}

impl OpenRequest {
    /// Tells the host that no answer is needed any more.
    pub(in crate::server) fn withdraw(&self, notification: Draft) {
        let Recipient { caller, call } = &self.recipient;
        caller.withdrawn(*call, self.server_request.number, notification);
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::{
        name::ServerName,
        wire::{Head, Kind, write},
    };

    use super::{super::test_caller::TestCaller, *};

    fn request(number: u64, id: &str, calls: &[u64], caller: &Arc<dyn Caller>) -> OpenRequest {
        let message = write::request(id.as_bytes(), "elicitation/create", b"{}");
        let head = Head::read(&message).unwrap();
        let Kind::Request { method, .. } = head.kind.clone() else { panic!("no request") };
        let calls: Vec<Ticket> = calls.iter().copied().map(Ticket).collect();
        let recipient = Recipient { caller: Arc::clone(caller), call: calls.last().copied() };
        let server = ServerName::parse("s").unwrap();
        let server_request = ServerRequest { number: Ticket(number), server, calls, message, head, method };
        OpenRequest { id: Bytes::from(id.to_owned()), server_request, recipient }
    }

    fn numbers(requests: &[OpenRequest]) -> Vec<u64> {
        let mut numbers: Vec<u64> = requests.iter().map(|request| request.server_request.number.0).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn server_requests_end_by_reply_cancellation_or_the_end_of_their_calls() {
        let (counts, caller) = TestCaller::new();
        let mut requests = ServerRequests::default();
        for (number, id, calls) in
            [(10, "1", &[1, 2][..]), (11, "\"a\"", &[2]), (12, "2", &[]), (13, "3", &[3]), (14, "4", &[3])]
        {
            requests.insert(request(number, id, calls, &caller));
        }
        assert_eq!(requests.remove(Ticket(14)).map(|open| open.id), Some(Bytes::from_static(b"4")));
        assert!(requests.remove(Ticket(14)).is_none(), "answered once");
        assert_eq!(numbers(&requests.cancelled(b"\"a\"")), [11]);
        assert_eq!(numbers(&requests.orphaned(|call| call == Ticket(2))), [13], "10 is also about call 2");
        assert_eq!(numbers(&requests.orphaned(|_| false)), [10], "12 is about no call");
        let rest = requests.drain();
        assert_eq!(numbers(&rest), [12]);
        rest[0].withdraw(write::cancellation("over"));
        assert!(requests.is_empty() && counts.withdrawals() == 1);
    }

    #[test]
    fn open_server_requests_are_limited() {
        let (_, caller) = TestCaller::new();
        let mut requests = ServerRequests::default();
        for number in 0..OPEN_LIMIT as u64 {
            assert!(!requests.is_full());
            requests.insert(request(number, "1", &[], &caller));
        }
        assert!(requests.is_full());
    }

    #[test]
    fn a_url_elicitation_completes_once_and_at_its_host() {
        let (_, caller) = TestCaller::new();
        let (_, other) = TestCaller::new();
        let mut requests = ServerRequests::default();
        requests.url_elicited(Bytes::from_static(b"\"x\""), &caller);
        requests.url_elicited(Bytes::from_static(b"\"y\""), &other);
        let host = requests.url_elicitation_completed(b"\"x\"").unwrap();
        assert!(Arc::ptr_eq(&host, &caller));
        assert!(requests.url_elicitation_completed(b"\"x\"").is_none());
        drop(other);
        assert!(requests.url_elicitation_completed(b"\"y\"").is_none(), "its host is gone");
    }
}
