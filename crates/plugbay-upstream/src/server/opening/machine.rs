//! The opening as a state machine: it takes events with their time, and returns messages and the outcome.
//!
//! plugbay sends `server/discover` first, unless the server is known not to answer it. A server that refuses
//! it, or does not answer soon, gets `initialize`. A late answer to `server/discover` still counts, because
//! a modern server may be slow to start.

use std::{
    collections::VecDeque,
    mem,
    time::{Duration, Instant},
};

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    era::Era,
    exchange::{Ticket, Tickets},
    extension::Extensions,
    host_registry::HostRegistry,
    size_limit,
    wire::{Head, Kind, Span},
};

use super::{OpenError, Opened, messages};
use crate::{http::TransportError, process::text::error_text};

/// A server that leaves `server/discover` unanswered for this long gets `initialize`.
pub(super) const DISCOVER_TIMEOUT: Duration = Duration::from_secs(2);
/// A modern server that has answered late may leave `initialize` unanswered for this long.
pub(super) const DISCOVERED_TIMEOUT: Duration = Duration::from_secs(2);
/// How long plugbay waits for `server/discover` after `initialize` was refused.
pub(super) const REFUSED_TIMEOUT: Duration = Duration::from_secs(10);
/// How long plugbay waits for `server/discover` after `initialize` has succeeded. It is shorter, because
/// hosts give a server ten seconds to start.
pub(super) const INITIALIZED_TIMEOUT: Duration = Duration::from_secs(5);

/// Something that happened to the connection.
#[derive(Debug)]
pub(super) enum Event {
    Message(Bytes),
    /// The server sent something that is not a message.
    Unreadable(Bytes),
    /// One request was not delivered, or its response was lost.
    RequestFailed {
        ticket: Ticket,
        error: TransportError,
    },
    Closed,
    /// The deadline of the last [`Output::Wait`] has passed.
    Deadline,
}

/// The next action for the driver.
#[derive(Debug)]
pub(super) enum Output {
    Request(Ticket, Bytes),
    Notify(Bytes),
    /// Send a response, if the server reads its input.
    Respond(Bytes),
    /// Keep a line that explains a failure.
    Keep(Bytes),
    /// From now on the link uses this protocol version; `None`: each request names it.
    Agreed(Option<String>),
    /// Wait for the next event, at most until this time.
    Wait(Option<Instant>),
    Opened(Box<Opened>),
    Failed(OpenError),
}

/// The opening of one server.
pub(super) struct Opening<'a> {
    state: State,
    outputs: VecDeque<Output>,
    /// Whether a response may overtake another.
    reorders_responses: bool,
    discover: Ticket,
    initialize: Ticket,
    last_sent: Method,
    /// Whether `server/discover` was refused for its version and sent once more.
    repeated: bool,
    tickets: &'a Tickets,
    host_registry: &'a HostRegistry,
    declared: ClientCapabilities,
    declared_extensions: Extensions,
}

#[derive(Debug)]
enum State {
    /// Only `server/discover` was sent.
    Discovering {
        deadline: Instant,
    },
    /// `initialize` was sent, and nothing has succeeded yet.
    Initializing {
        discover: Discover,
    },
    /// `initialize` has succeeded; the answer to `server/discover` may have been overtaken.
    Initialized {
        message: Bytes,
        result: Span,
        deadline: Instant,
    },
    /// `server/discover` has succeeded late; the server may prefer `initialize`.
    Discovered {
        opened: Box<Opened>,
        deadline: Instant,
    },
    /// `initialize` was refused; `server/discover` may still succeed.
    Refused {
        error: OpenError,
        deadline: Instant,
    },
    Done,
}

/// The state of `server/discover` once `initialize` was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Discover {
    NotSent,
    Unanswered,
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Discover,
    Initialize,
}

enum Reply {
    Result(Bytes, Span),
    Refused(OpenError),
}

impl<'a> Opening<'a> {
    /// A new opening. `reorders_responses`: responses travel separately, so one may overtake another.
    pub(super) fn new(
        first: Era,
        reorders_responses: bool,
        tickets: &'a Tickets,
        host_registry: &'a HostRegistry,
        now: Instant,
    ) -> Self {
        let mut opening = Self {
            state: State::Done,
            outputs: VecDeque::new(),
            reorders_responses,
            discover: tickets.next(),
            initialize: tickets.next(),
            last_sent: Method::Discover,
            repeated: false,
            tickets,
            host_registry,
            declared: ClientCapabilities::NONE,
            declared_extensions: Extensions::default(),
        };
        opening.state = match first {
            Era::Modern => {
                opening.send_discover();
                State::Discovering { deadline: now + DISCOVER_TIMEOUT }
            }
            Era::Legacy => {
                opening.send_initialize();
                State::Initializing { discover: Discover::NotSent }
            }
        };
        opening
    }

    /// The next action; [`Output::Wait`] when there is nothing else to do.
    pub(super) fn poll(&mut self) -> Output {
        self.outputs.pop_front().unwrap_or_else(|| Output::Wait(self.deadline()))
    }

    pub(super) fn handle(&mut self, event: Event, now: Instant) {
        match event {
            Event::Message(message) => self.message(message, now),
            Event::Unreadable(line) => self.outputs.push_back(Output::Keep(line)),
            Event::RequestFailed { ticket, error } => {
                if let Some(method) = self.method_of(ticket) {
                    self.replied(method, Reply::Refused(OpenError::Undelivered(error)), now);
                }
            }
            Event::Closed => {
                let probing = matches!(self.state, State::Discovering { .. });
                self.fail(OpenError::Closed { probing });
            }
            Event::Deadline => self.timed_out(),
        }
    }

    /// Whether the message answers a request of this opening.
    pub(super) fn is_answer(&self, message: &[u8]) -> bool {
        match Head::read(message).map(|head| head.kind) {
            Ok(Kind::Result { id } | Kind::Error { id: Some(id) }) => self.method(&message[id]).is_some(),
            _ => false,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Discovering { deadline }
            | State::Initialized { deadline, .. }
            | State::Discovered { deadline, .. }
            | State::Refused { deadline, .. } => Some(*deadline),
            State::Initializing { .. } | State::Done => None,
        }
    }

    fn timed_out(&mut self) {
        match mem::replace(&mut self.state, State::Done) {
            State::Discovering { .. } => self.initialize_after(Discover::Unanswered),
            // A modern server that ignores `initialize`, because it does not know it.
            State::Discovered { opened, .. } => self.open_modern(opened),
            State::Initialized { message, result, .. } => self.open_legacy(&message, &result, true),
            State::Refused { error, .. } => self.fail(error),
            state @ (State::Initializing { .. } | State::Done) => self.state = state,
        }
    }

    fn message(&mut self, message: Bytes, now: Instant) {
        let Ok(head) = Head::read(&message) else {
            return self.outputs.push_back(Output::Keep(message));
        };
        match (head.kind, head.payload) {
            (Kind::Result { id } | Kind::Error { id: Some(id) }, Some(payload))
                if payload.len() > size_limit::OPENING =>
            {
                if let Some(method) = self.method(&message[id]) {
                    let what = format!("its answer is longer than {} bytes", size_limit::OPENING);
                    self.replied(method, Reply::Refused(OpenError::Refused(what)), now);
                }
            }
            (Kind::Result { id }, Some(result)) => match self.method(&message[id]) {
                Some(Method::Discover) if !messages::is_modern(&message, &result) => {
                    let error = OpenError::Refused("names no version that we speak".to_owned());
                    self.replied(Method::Discover, Reply::Refused(error), now);
                }
                Some(method) => self.replied(method, Reply::Result(message, result), now),
                None => {}
            },
            (Kind::Error { id }, Some(error)) => {
                // An error without an id concerns the last request.
                let method = id.map_or(Some(self.last_sent), |id| self.method(&message[id]));
                self.refused(method, &message, &error, now);
            }
            (Kind::Request { id, method }, _) => {
                self.outputs.push_back(Output::Respond(messages::reject(&message, &id, &method)));
            }
            _ => {}
        }
    }

    fn refused(&mut self, method: Option<Method>, message: &[u8], error: &Span, now: Instant) {
        let Some(method) = method else { return };
        if method == Method::Discover && !self.repeated && messages::contradicts_itself(message, error) {
            self.repeated = true;
            self.discover = self.tickets.next();
            return self.send_discover();
        }
        self.replied(method, Reply::Refused(OpenError::Refused(error_text(message, error))), now);
    }

    fn replied(&mut self, method: Method, reply: Reply, now: Instant) {
        match (method, reply) {
            (Method::Discover, Reply::Result(message, result)) => {
                self.discovered(Box::new(messages::read_discover(&message, &result)), now);
            }
            (Method::Discover, Reply::Refused(error)) => self.discover_refused(error),
            (Method::Initialize, Reply::Result(message, result)) => self.initialized(message, result, now),
            (Method::Initialize, Reply::Refused(error)) => self.initialize_refused(error, now),
        }
    }

    fn discovered(&mut self, opened: Box<Opened>, now: Instant) {
        match &self.state {
            State::Initializing { .. } | State::Discovered { .. } if !self.reorders_responses => {
                self.state = State::Discovered { opened, deadline: now + DISCOVERED_TIMEOUT };
            }
            State::Done => {}
            _ => self.open_modern(opened),
        }
    }

    fn discover_refused(&mut self, error: OpenError) {
        match mem::replace(&mut self.state, State::Done) {
            State::Discovering { .. } if error.is_final() => self.fail(error),
            State::Discovering { .. } => self.initialize_after(Discover::Refused),
            State::Initializing { discover: Discover::Unanswered } => {
                self.state = State::Initializing { discover: Discover::Refused };
            }
            State::Initialized { message, result, .. } => self.open_legacy(&message, &result, false),
            State::Refused { error, .. } => self.fail(error),
            state @ (State::Initializing { .. } | State::Discovered { .. } | State::Done) => {
                self.state = state;
            }
        }
    }

    fn initialized(&mut self, message: Bytes, result: Span, now: Instant) {
        let unanswered = matches!(
            self.state,
            State::Initializing { discover: Discover::Unanswered }
                | State::Initialized { .. }
                | State::Refused { .. }
        );
        if unanswered && self.reorders_responses {
            self.state = State::Initialized { message, result, deadline: now + INITIALIZED_TIMEOUT };
        } else if !matches!(self.state, State::Done) {
            self.open_legacy(&message, &result, unanswered);
        }
    }

    fn initialize_refused(&mut self, error: OpenError, now: Instant) {
        match mem::replace(&mut self.state, State::Done) {
            State::Discovered { opened, .. } => self.open_modern(opened),
            State::Initializing { discover: Discover::Unanswered } => {
                self.state = State::Refused { error, deadline: now + REFUSED_TIMEOUT };
            }
            // It was legacy at the last opening, and may have been upgraded since.
            State::Initializing { discover: Discover::NotSent } if !error.is_final() => {
                self.send_discover();
                self.state = State::Refused { error, deadline: now + REFUSED_TIMEOUT };
            }
            State::Initializing { .. } => self.fail(error),
            state => self.state = state,
        }
    }

    fn initialize_after(&mut self, discover: Discover) {
        self.send_initialize();
        self.state = State::Initializing { discover };
    }

    fn send_discover(&mut self) {
        self.last_sent = Method::Discover;
        self.outputs.push_back(Output::Request(self.discover, messages::discover(self.discover)));
    }

    fn send_initialize(&mut self) {
        self.last_sent = Method::Initialize;
        // Read as late as possible: a host may have declared its capabilities while the server was starting.
        self.declared = self.host_registry.client_capabilities();
        self.declared_extensions = self.host_registry.extensions();
        let message = messages::initialize(self.initialize, self.declared, &self.declared_extensions);
        self.outputs.push_back(Output::Request(self.initialize, message));
    }

    fn open_modern(&mut self, opened: Box<Opened>) {
        self.state = State::Done;
        self.outputs.extend([Output::Agreed(None), Output::Opened(opened)]);
    }

    fn open_legacy(&mut self, message: &Bytes, result: &Span, asked_in_vain: bool) {
        self.state = State::Done;
        let opened = Opened {
            declared: self.declared,
            declared_extensions: mem::take(&mut self.declared_extensions),
            asked_in_vain,
            ..messages::read_initialize(message, result)
        };
        self.outputs.extend([
            Output::Agreed(Some(messages::legacy_version(message, result))),
            Output::Notify(messages::initialized()),
            Output::Opened(Box::new(opened)),
        ]);
    }

    fn fail(&mut self, error: OpenError) {
        self.state = State::Done;
        self.outputs.push_back(Output::Failed(error));
    }

    fn method(&self, id: &[u8]) -> Option<Method> {
        self.method_of(Ticket(std::str::from_utf8(id).ok()?.parse().ok()?))
    }

    fn method_of(&self, ticket: Ticket) -> Option<Method> {
        if ticket == self.discover {
            Some(Method::Discover)
        } else {
            (ticket == self.initialize).then_some(Method::Initialize)
        }
    }
}
