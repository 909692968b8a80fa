//! A server behind a URL: each request is a POST of its own, and answers come as bodies or as streams.

mod client;
mod events;
mod mirror;
mod peer;
mod post;
mod stream;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{catalog::Tool, exchange::Ticket, failure::Failure, wire::Incoming};
use rustc_hash::FxHashMap;
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::timeout,
};

pub(crate) use peer::{Flavour, TransportError};

use crate::{
    http::{
        mirror::{Headers, Mirror},
        peer::Peer,
    },
    link::{LinkEvent, TAIL_LINES},
    process::StderrRing,
    spec::HttpSpec,
};

/// So many messages may wait for the server's task; whoever has more waits with it, unread.
const INBOX_CAPACITY: usize = 16;

/// Dropping it ends every request that is under way.
pub(crate) struct HttpLink {
    peer: Arc<Peer>,
    to_link: mpsc::Sender<HttpEvent>,
    inbox: mpsc::Receiver<HttpEvent>,
    requests: FxHashMap<Ticket, InFlight>,
    /// Notifications and answers, which must arrive in order.
    outbox: mpsc::UnboundedSender<Bytes>,
    /// Which arguments of which tools are repeated in headers.
    mirrors: HashMap<String, Mirror>,
    unsent: Vec<(Ticket, Bytes)>,
    /// Why no more can be sent. What is under way may still be answered.
    lost: Option<Failure>,
    /// Another link has taken over; this one only waits for its last answers.
    retired: bool,
    /// What was no message.
    unparsed: StderrRing,
    tasks: JoinSet<()>,
}

struct InFlight {
    task: AbortHandle,
    /// A subscription, which ends only with the link.
    lasting: bool,
}

/// What the tasks of a link tell it.
#[derive(Debug)]
enum HttpEvent {
    Incoming(Incoming),
    /// On the way to the answer of this request the server says something else.
    During {
        ticket: Ticket,
        message: Bytes,
    },
    /// The request has been answered.
    Done(Ticket),
    Failed {
        ticket: Ticket,
        message: Bytes,
        error: TransportError,
    },
    /// The server has closed what the whole link depends on.
    Lost(TransportError),
}

impl HttpLink {
    pub(crate) fn open(spec: &HttpSpec, flavour: Flavour, limit: usize) -> Result<Self, Failure> {
        let peer = Arc::new(Peer::new(spec, flavour, limit)?);
        let (to_link, inbox) = mpsc::channel(INBOX_CAPACITY);
        let (outbox, messages) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(post::carry(Arc::clone(&peer), messages, to_link.clone()));
        if flavour == Flavour::Sse {
            tasks.spawn(stream::sse(Arc::clone(&peer), to_link.clone()));
        }
        Ok(Self {
            peer,
            to_link,
            inbox,
            requests: FxHashMap::default(),
            outbox,
            mirrors: HashMap::new(),
            unsent: Vec::new(),
            lost: None,
            retired: false,
            unparsed: StderrRing::default(),
            tasks,
        })
    }

    /// To a modern server nothing but requests may be sent.
    pub(crate) fn send(&mut self, message: Bytes) {
        if self.peer.is_modern() {
            return;
        }
        self.peer.queued(message.len());
        let _ = self.outbox.send(message);
    }

    pub(crate) fn request(&mut self, ticket: Ticket, message: Bytes) {
        if self.lost.is_some() {
            return self.unsent.push((ticket, message));
        }
        let headers = if self.peer.is_legacy() {
            Headers::default() // also if the host is modern
        } else {
            mirror::headers(&message, &self.mirrors)
        };
        let lasting = headers.lasting;
        let posting = post::request(Arc::clone(&self.peer), ticket, message, headers, self.to_link.clone());
        let task = self.tasks.spawn(posting);
        self.requests.insert(ticket, InFlight { task, lasting });
    }

    /// A modern server is told by closing the stream, a legacy one in words: there a stream that is
    /// closed means nothing.
    pub(crate) fn cancel(&mut self, ticket: Ticket, notification: Bytes) {
        // What was posted by the old transport is no longer ours, but may well be under way.
        let elsewhere = self.peer.flavour == Flavour::Sse;
        match self.requests.remove(&ticket) {
            Some(posted) => posted.task.abort(),
            None if elsewhere => {}
            None => return,
        }
        if self.lost.is_none() {
            self.send(notification);
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
                HttpEvent::During { ticket, message } => return Some(LinkEvent::During { ticket, message }),
                HttpEvent::Done(ticket) => {
                    self.requests.remove(&ticket);
                }
                HttpEvent::Failed { ticket, message, error } => {
                    // Otherwise it has been cancelled.
                    if self.requests.remove(&ticket).is_some()
                        && let Some(heard) = self.failed(ticket, message, error)
                    {
                        return Some(heard);
                    }
                }
                HttpEvent::Lost(error) => {
                    if self.peer.flavour == Flavour::Sse {
                        self.requests.clear(); // nothing can answer them any more
                    }
                    self.lost.get_or_insert_with(|| error.failure(&self.peer));
                }
            }
        }
    }

    /// A request that never reached the server may be sent again, once the way is open.
    fn failed(&mut self, ticket: Ticket, message: Bytes, error: TransportError) -> Option<LinkEvent> {
        let alone = self.requests.values().all(|posted| posted.lasting);
        let start_anew = match &error {
            TransportError::SessionGone => true,
            TransportError::Unreachable(_) => alone && self.peer.is_open(),
            _ => false,
        };
        if !start_anew {
            return Some(LinkEvent::Failed { ticket, error });
        }
        self.lost.get_or_insert_with(|| error.failure(&self.peer));
        self.unsent.push((ticket, message));
        None
    }

    /// From now on requests carry the version, and a legacy server's own messages are listened to.
    pub(crate) fn opened(&mut self, version: Option<&str>) {
        self.peer.opened(version);
        // A server of both eras may have opened a session before it was known to be modern.
        if version.is_none()
            && let Some(session) = self.peer.take_session()
        {
            let peer = Arc::clone(&self.peer);
            self.tasks.spawn(async move { peer.end_session(session).await });
        }
        if version.is_some() && self.peer.flavour == Flavour::Streamable {
            self.tasks.spawn(stream::listen(Arc::clone(&self.peer), self.to_link.clone()));
        }
    }

    /// A tool whose schema asks for headers that cannot be sent is left out, as the protocol demands.
    pub(crate) fn callable(&mut self, tools: Vec<Tool>) -> Vec<Tool> {
        self.mirrors.clear();
        if !self.peer.is_modern() {
            return tools;
        }
        let mut usable = Vec::with_capacity(tools.len());
        for tool in tools {
            match Mirror::read(&tool.definition) {
                Ok(Some(mirror)) => _ = self.mirrors.insert(tool.name.clone(), mirror),
                Ok(None) => {}
                Err(reason) => {
                    tracing::warn!(tool = %tool.name, "left out: {reason}");
                    continue;
                }
            }
            usable.push(tool);
        }
        usable
    }

    pub(crate) fn take_unsent(&mut self) -> Vec<(Ticket, Bytes)> {
        std::mem::take(&mut self.unsent)
    }

    /// Requests that may still be answered, though no more can be sent.
    pub(crate) fn in_flight(&self) -> Vec<Ticket> {
        self.requests.iter().filter(|(_, posted)| !posted.lasting).map(|(ticket, _)| *ticket).collect()
    }

    /// Another link takes over. From here only these requests are still waited for.
    pub(crate) fn retire(&mut self, kept: &[Ticket]) -> Failure {
        self.retired = true;
        self.requests.retain(|ticket, posted| {
            let keep = kept.contains(ticket);
            if !keep {
                posted.task.abort();
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
        Failure::new(what, self.unparsed.tail(TAIL_LINES))
    }

    pub(crate) fn post_mortem(mut self, during: &str, grace: Duration) -> Failure {
        let failure = self.lost.take().unwrap_or_else(|| self.failure(format!("went away {during}")));
        tokio::spawn(self.end(grace));
        failure
    }

    /// A legacy server keeps its session until it is told that nobody needs it.
    pub(crate) async fn end(mut self, grace: Duration) {
        self.tasks.shutdown().await;
        if let Some(session) = self.peer.take_session() {
            let _ = timeout(grace, self.peer.end_session(session)).await;
        }
    }
}
