//! One call: who waits for it, which server works on it, and what it waits for.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use bytes::Bytes;

use super::{
    polled_task::{PolledTask, Step},
    repeat::{MAX_REQUEST_BYTES, MAX_REQUESTS, RepeatedCall},
};
use crate::{
    capabilities::{self, ClientCapabilities},
    era::{Era, InputRequired},
    exchange::{Answer, ServerRequest, ServerRequestError, Ticket},
    name::ServerName,
    task::{self, TaskRole},
};

/// A call that begins.
#[derive(Debug)]
pub struct NewCall<H> {
    pub host: H,
    pub server: ServerName,
    pub era: Era,
    /// The server requests that its host supports.
    pub capabilities: ClientCapabilities,
    pub bridge: Bridge,
    /// The task that plugbay polls for a host that cannot.
    pub polled: Option<PolledTask>,
}

/// How a server's question in the middle of a call reaches its host.
#[derive(Debug, Default)]
pub enum Bridge {
    /// Host and server speak the same era, so nothing is kept for the call.
    #[default]
    Direct,
    /// A modern host sends its request again; the legacy server's part of the call goes on meanwhile. It also
    /// does so for a call that waits for a login, whatever era its server speaks.
    HostReturns,
    /// A modern server is sent the request again with the legacy host's answers.
    Repeat(Box<RepeatedCall>),
}

/// A call that has left the table.
#[derive(Debug)]
pub struct Ended<H> {
    pub host: Option<H>,
    pub server: ServerName,
    /// The ticket that the server knows.
    pub sent: Ticket,
    /// Requests of the server that may be about another call: that one can carry them.
    pub left_open: Vec<Ticket>,
    /// The polled task that nobody waits for any more.
    pub task: Option<Arc<str>>,
    /// Its result was that of a polled task.
    pub polled: bool,
}

#[derive(Debug)]
pub(super) struct Call<H> {
    /// Where the host waits; nowhere while a modern host is away.
    pub(super) host: Option<H>,
    /// The request that the server works on, or worked on last.
    pub(super) sent: Ticket,
    pub(super) server: ServerName,
    pub(super) era: Era,
    pub(super) capabilities: ClientCapabilities,
    pub(super) bridge: Bridge,
    pub(super) polled: Option<Box<PolledTask>>,
    /// The server's requests to a modern host.
    pub(super) requests: BTreeMap<Ticket, ServerRequest>,
    /// The server's answer, if it came while the host was away.
    pub(super) answer: Option<Answer>,
    pub(super) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The server works on it.
    InFlight,
    /// The server has asked something; more may follow at once.
    Gathering { until: Instant },
    /// A modern host has been told what the server asks, and answers with its next request.
    HostAway { until: Instant },
    /// A legacy host has been asked what a modern server wants to know.
    HostAsked { until: Instant },
    /// The request is about to be sent to the server once more.
    Repeating { at: Instant },
    /// The server is about to be asked for the state of its task.
    Polling { at: Instant },
}

impl State {
    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Self::InFlight => None,
            Self::Gathering { until } | Self::HostAway { until } | Self::HostAsked { until } => Some(until),
            Self::Repeating { at } | Self::Polling { at } => Some(at),
        }
    }
}

impl<H> Call<H> {
    /// Whether it counts among those that wait for a modern host.
    pub(super) fn is_away(&self) -> bool {
        self.host.is_none() || !self.requests.is_empty()
    }

    /// The server requests that may be about another call than the one that was sent under this ticket.
    pub(super) fn take_left_open(&mut self, sent: Ticket) -> Vec<Ticket> {
        let requests = std::mem::take(&mut self.requests).into_values();
        requests.filter(|request| request.outlives(sent)).map(|request| request.number).collect()
    }

    /// Checks that its host can be asked this.
    pub(super) fn allow(&self, request: &ServerRequest) -> Result<(), ServerRequestError> {
        if !capabilities::is_common(request.method()) {
            return Err(ServerRequestError::Unknown);
        }
        match self.capabilities.lacks(&request.message, request.method(), request.params()) {
            Some(lacking) => Err(ServerRequestError::Undeclared(lacking)),
            None if !self.has_room_for(request) => Err(ServerRequestError::TooMany),
            None => Ok(()),
        }
    }

    /// Whether one more request can wait for its host.
    fn has_room_for(&self, request: &ServerRequest) -> bool {
        let bytes: usize = self.requests.values().map(|waiting| waiting.message.len()).sum();
        self.requests.len() < MAX_REQUESTS && bytes + request.message.len() <= MAX_REQUEST_BYTES
    }

    /// What an answer means to a call that has, or may yet have, a polled task.
    pub(super) fn step(&mut self, answer: Answer, now: Instant) -> Step {
        if let Some(task) = &mut self.polled {
            return task.step(answer);
        }
        match (&self.bridge, &answer) {
            (Bridge::Repeat(repeat), Answer::Response { message, head, era: Era::Modern })
                if repeat.task_role == TaskRole::None && task::is_demanded(message, head) =>
            {
                self.polled = Some(Box::new(PolledTask::modern(repeat.timeout, now)));
                Step::RepeatAsTask
            }
            _ => Step::Done(answer),
        }
    }

    /// A modern server's answer that asks its legacy host for more.
    pub(super) fn input_required(&self, answer: &Answer) -> Option<(Bytes, InputRequired)> {
        let Answer::Response { message, head, era: Era::Modern } = answer else { return None };
        let required = (self.era == Era::Legacy).then(|| InputRequired::read(message, head)).flatten()?;
        Some((message.clone(), required))
    }
}

impl<H> Ended<H> {
    /// The same without the task: it is over too, or belongs to its host.
    pub(super) fn kept_task(self) -> Self {
        Self { task: None, ..self }
    }
}
