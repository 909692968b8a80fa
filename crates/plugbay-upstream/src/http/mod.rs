//! A server behind a URL: each request is a POST, and its response is one body or an event stream.

mod client;
mod credentials;
mod error;
mod events;
mod mirror;
mod peer;
mod plain_api;
mod post;
pub(crate) mod remote;
mod stream;
#[cfg(test)]
mod tests;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::{exchange::Ticket, failure::Failure, wire::Incoming};
use rustc_hash::FxHashMap;
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::timeout,
};

pub(crate) use credentials::ServerCredentials;
pub(crate) use error::TransportError;
pub(crate) use mirror::{Mirror, Mirrors};
pub(crate) use peer::Flavour;

use crate::{
    http::{mirror::Headers, peer::Peer},
    link::{LinkEvent, ReadMessage, Witness},
    process::StderrRing,
    spec::HttpSpec,
};

/// Limit of events that wait for the actor; further ones stay unread in their connections.
const INBOX_CAPACITY: usize = 16;

/// The link to an HTTP server. Dropping it ends every request in flight.
pub(crate) struct HttpLink {
    peer: Arc<Peer>,
    to_link: mpsc::Sender<HttpEvent>,
    inbox: mpsc::Receiver<HttpEvent>,
    requests: FxHashMap<Ticket, InFlight>,
    /// Notifications and responses, which must arrive in order.
    outbox: mpsc::UnboundedSender<Bytes>,
    /// The arguments of each tool that are repeated in headers.
    mirrors: Mirrors,
    unsent: Vec<(Ticket, Bytes)>,
    /// The reason why nothing more can be sent. Requests in flight may still be answered.
    lost: Option<Failure>,
    /// Whether another link has taken over; then this one only waits for its last responses.
    retired: bool,
    /// Lines that were not messages.
    unparsed: StderrRing,
    tasks: JoinSet<()>,
}

/// A request without an answer so far.
struct InFlight {
    task: AbortHandle,
    /// Whether it is a subscription, which ends only with the link.
    lasting: bool,
    parked: Parked,
}

/// A request that the server has rejected, while it waits for a login. Whoever takes it out must send it.
// A std mutex: held for a swap.
#[derive(Debug, Clone, Default)]
struct Parked(Arc<Mutex<Option<Bytes>>>);

impl Parked {
    fn put(&self, message: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }

    fn take(&self) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An event in one of the connections of a link.
#[derive(Debug)]
enum HttpEvent {
    Incoming(Incoming),
    Read(ReadMessage),
    /// The request has been answered.
    Done(Ticket),
    Failed {
        ticket: Ticket,
        message: Bytes,
        error: TransportError,
    },
    /// The request waits for new credentials: only a login can help.
    NeedsLogin {
        ticket: Ticket,
        failure: Arc<Failure>,
    },
    /// The whole link is lost: the server expired the session, or closed the SSE stream.
    Lost(TransportError),
}

impl HttpLink {
    /// Opens a link. `session_id` names the hosts' session to a remote gateway.
    pub(crate) fn open(
        spec: &HttpSpec,
        flavour: Flavour,
        limit: usize,
        session_id: Option<&str>,
        credentials: Option<Arc<ServerCredentials>>,
    ) -> Result<Self, Failure> {
        let peer = Arc::new(Peer::new(spec, flavour, limit, session_id, credentials)?);
        let (to_link, inbox) = mpsc::channel(INBOX_CAPACITY);
        let (outbox, messages) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(post::post_in_order(Arc::clone(&peer), messages, to_link.clone()));
        if flavour == Flavour::Sse {
            tasks.spawn(stream::sse(Arc::clone(&peer), to_link.clone()));
        }
        let unparsed = StderrRing::new(peer.secrets.clone(), None);
        Ok(Self {
            peer,
            to_link,
            inbox,
            requests: FxHashMap::default(),
            outbox,
            mirrors: Mirrors::new(),
            unsent: Vec::new(),
            lost: None,
            retired: false,
            unparsed,
            tasks,
        })
    }

    /// Sends a notification or a response. A modern server and the plain API accept only requests, so they
    /// get none.
    pub(crate) fn send(&mut self, message: Bytes) {
        if self.peer.is_modern() || self.peer.flavour == Flavour::PlainApi {
            return;
        }
        self.peer.queued(message.len());
        let _ = self.outbox.send(message);
    }

    pub(crate) fn request(&mut self, ticket: Ticket, message: Bytes) {
        if self.lost.is_some() {
            return self.unsent.push((ticket, message));
        }
        let parked = Parked::default();
        let (peer, to_link) = (Arc::clone(&self.peer), self.to_link.clone());
        let request = post::Outgoing { peer, ticket, to_link, parked: parked.clone() };
        if self.peer.flavour == Flavour::PlainApi {
            let task = self.tasks.spawn(plain_api::request(request, message));
            self.requests.insert(ticket, InFlight { task, lasting: false, parked });
            return;
        }
        let headers = if self.peer.is_legacy() {
            Headers::default() // also if the host is modern
        } else {
            mirror::headers(&message, &self.mirrors)
        };
        let lasting = headers.lasting;
        let task = self.tasks.spawn(post::request(request, message, headers));
        self.requests.insert(ticket, InFlight { task, lasting, parked });
    }

    /// Cancels a request. For a modern server its stream is closed. A legacy server gets the notification,
    /// because to it a closed stream means nothing.
    pub(crate) fn cancel(&mut self, ticket: Ticket, notification: Bytes) {
        // Over SSE a request leaves the table when it is posted, but its response may still come.
        let sse = self.peer.flavour == Flavour::Sse;
        match self.requests.remove(&ticket) {
            Some(request) => request.task.abort(),
            None if sse => {}
            None => return,
        }
        if self.lost.is_none() {
            self.send(notification);
        }
    }

    /// Ends a request that the server has rejected.
    pub(crate) fn abandon(&mut self, ticket: Ticket) {
        if let Some(request) = self.requests.remove(&ticket) {
            request.task.abort();
        }
    }

    pub(crate) async fn next(&mut self) -> Option<LinkEvent> {
        loop {
            while self.tasks.try_join_next().is_some() {}
            if self.lost.is_some() && (!self.retired || !self.unsent.is_empty() || self.requests.is_empty()) {
                return None;
            }
            match self.inbox.recv().await? {
                HttpEvent::Incoming(incoming) => return Some(LinkEvent::Incoming(incoming)),
                HttpEvent::Read(message) => return Some(LinkEvent::Read(message)),
                HttpEvent::Done(ticket) => {
                    self.requests.remove(&ticket);
                }
                HttpEvent::Failed { ticket, message, error } => {
                    // If it is not there, it has been cancelled.
                    if self.requests.remove(&ticket).is_some()
                        && let Some(heard) = self.failed(ticket, message, error)
                    {
                        return Some(heard);
                    }
                }
                HttpEvent::NeedsLogin { ticket, failure } => {
                    if self.requests.contains_key(&ticket) {
                        return Some(LinkEvent::NeedsLogin { ticket, failure });
                    }
                }
                HttpEvent::Lost(error) => {
                    if self.peer.flavour == Flavour::Sse {
                        self.requests.clear(); // no response can come any more
                    }
                    self.lost.get_or_insert_with(|| error.failure(&self.peer));
                }
            }
        }
    }

    /// Handles a failed request. One that never reached the server may be sent again over another link.
    fn failed(&mut self, ticket: Ticket, message: Bytes, error: TransportError) -> Option<LinkEvent> {
        if self.peer.remote && self.peer.is_open() && matches!(error, TransportError::Unreachable(_)) {
            // The call fails now instead of after another attempt, because its host waits.
            self.lost.get_or_insert_with(|| error.failure(&self.peer));
            return Some(LinkEvent::Failed { ticket, error });
        }
        let alone = self.requests.values().all(|request| request.lasting);
        let reopen = match &error {
            TransportError::SessionGone => true,
            TransportError::Unreachable(_) => alone && self.peer.is_open(),
            _ => false,
        };
        if !reopen {
            return Some(LinkEvent::Failed { ticket, error });
        }
        self.lost.get_or_insert_with(|| error.failure(&self.peer));
        self.unsent.push((ticket, message));
        None
    }

    /// Notes that the server is open: requests carry the version, and the GET stream of a legacy server is
    /// read.
    pub(crate) fn opened(&mut self, version: Option<&str>) {
        self.peer.opened(version);
        // A server of both eras may have opened a session for `initialize`.
        if version.is_none()
            && let Some(session) = self.peer.take_session()
        {
            let peer = Arc::clone(&self.peer);
            self.tasks.spawn(async move { peer.end_session(session).await });
        }
        let (peer, to_link) = (Arc::clone(&self.peer), self.to_link.clone());
        match self.peer.flavour {
            Flavour::Streamable if version.is_some() => _ = self.tasks.spawn(stream::listen(peer, to_link)),
            Flavour::PlainApi => _ = self.tasks.spawn(plain_api::poll(peer, to_link)),
            Flavour::Streamable | Flavour::Sse => {}
        }
    }

    /// Whether requests repeat arguments in headers, as for modern servers.
    pub(crate) fn mirrors_arguments(&self) -> bool {
        self.peer.is_modern()
    }

    pub(crate) fn set_mirrors(&mut self, mirrors: Mirrors) {
        self.mirrors = mirrors;
    }

    /// Takes the unsent requests, and those that the server has rejected and that wait for a login.
    pub(crate) fn take_unsent(&mut self) -> Vec<(Ticket, Bytes)> {
        let Self { requests, unsent, .. } = self;
        requests.retain(|ticket, request| match request.parked.take() {
            Some(message) if !request.lasting => {
                request.task.abort();
                unsent.push((*ticket, message));
                false
            }
            _ => true,
        });
        std::mem::take(&mut self.unsent)
    }

    /// Requests that may still be answered.
    pub(crate) fn in_flight(&self) -> Vec<Ticket> {
        self.requests.iter().filter(|(_, request)| !request.lasting).map(|(ticket, _)| *ticket).collect()
    }

    /// Gives way to another link; this one only waits for the responses to these requests.
    pub(crate) fn retire(&mut self, kept: &[Ticket]) -> Failure {
        self.retired = true;
        self.requests.retain(|ticket, request| {
            let keep = kept.contains(ticket);
            if !keep {
                request.task.abort();
            }
            keep
        });
        self.lost.clone().unwrap_or_else(|| self.failure("went away"))
    }

    pub(crate) fn untaken(&self) -> usize {
        self.peer.untaken()
    }

    pub(crate) fn backlog(&self) -> usize {
        self.peer.backlog()
    }

    pub(crate) fn keep_line(&self, line: &[u8]) {
        self.unparsed.push_line(line);
    }

    pub(crate) fn failure(&self, what: impl Into<String>) -> Failure {
        self.witness().failure(what)
    }

    pub(crate) fn witness(&self) -> Witness {
        Witness { stderr: self.unparsed.clone(), text: None }
    }

    pub(crate) fn post_mortem(mut self, during: &str, grace: Duration) -> Failure {
        let failure = self.lost.take().unwrap_or_else(|| self.failure(format!("went away {during}")));
        tokio::spawn(self.end(grace));
        failure
    }

    /// Ends all requests and deletes the session of a legacy server.
    pub(crate) async fn end(mut self, grace: Duration) {
        self.tasks.shutdown().await;
        if let Some(session) = self.peer.take_session() {
            let _ = timeout(grace, self.peer.end_session(session)).await;
        }
    }
}
