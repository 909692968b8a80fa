//! The table of calls: each host call from the moment it is sent until it is answered, also while it waits for
//! another message.
//!
//! No clock and no I/O in here: events come in with the time, actions go out. A call is *suspended* when no server
//! works on it, or when its host is away: it goes on after a message of the other side, or after a pause.

mod polled_task;
mod repeat;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use rustc_hash::FxHashMap;

use self::{polled_task::Step, repeat::MAX_ROUNDS};
pub use self::{
    polled_task::{PolledTask, cancel_request},
    repeat::{HostRequest, RepeatedCall},
};
use crate::{
    capabilities::{self, ClientCapabilities},
    era::{Era, InputRequired},
    exchange::{Answer, ServerRequest, ServerRequestError, Ticket, Tickets},
    failure::{CallError, Limit},
    name::ServerName,
    task::{self, TaskRole},
    wire::{Draft, Span},
};

/// How long a host may take to answer what a server asks in the middle of a call.
pub const HOST_PATIENCE: Duration = Duration::from_secs(600);
/// Server requests that come within this time reach a modern host together.
const GATHERING: Duration = Duration::from_millis(10);
/// So many calls may wait for modern hosts that are away, and so many agent runs.
const MAX_AWAY: usize = 1024;
const MAX_RUNS: usize = 256;

/// All calls by the ticket of their first request. `H` is where the host waits, `R` an agent run.
#[derive(Debug)]
pub struct CallTable<H, R> {
    entries: FxHashMap<Ticket, Entry<H, R>>,
    /// The calls of requests that have been sent under a later ticket.
    sent_again: FxHashMap<Ticket, Ticket>,
    /// When something is due; an entry that has moved on since is passed over.
    deadlines: BTreeSet<(Instant, Ticket)>,
    /// Calls that a server has asked something for, and agent runs.
    away: usize,
    runs: usize,
}

#[derive(Debug)]
enum Entry<H, R> {
    Call(Box<Call<H>>),
    /// An agent run that waits for its modern host to come back.
    PausedRun {
        run: R,
        until: Instant,
    },
}

#[derive(Debug)]
struct Call<H> {
    /// Where the host waits; nowhere while a modern host is away.
    host: Option<H>,
    /// The request that the server works on, or worked on last.
    sent: Ticket,
    server: ServerName,
    era: Era,
    capabilities: ClientCapabilities,
    bridge: Bridge,
    polled: Option<Box<PolledTask>>,
    /// What the server has asked a modern host.
    requests: BTreeMap<Ticket, ServerRequest>,
    /// The server's answer, if it came while the host was away.
    answer: Option<Answer>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
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
    fn deadline(self) -> Option<Instant> {
        match self {
            Self::InFlight => None,
            Self::Gathering { until } | Self::HostAway { until } | Self::HostAsked { until } => Some(until),
            Self::Repeating { at } | Self::Polling { at } => Some(at),
        }
    }
}

/// How a server's question in the middle of a call reaches its host.
#[derive(Debug, Default)]
pub enum Bridge {
    /// Both speak the same era, so nothing is kept for it.
    #[default]
    Direct,
    /// A modern host sends its request again; the legacy server's part of the call goes on meanwhile.
    HostReturns,
    /// A modern server is sent the request again with the legacy host's answers.
    Repeat(Box<RepeatedCall>),
}

/// A call that begins.
#[derive(Debug)]
pub struct NewCall<H> {
    pub host: H,
    pub server: ServerName,
    pub era: Era,
    /// What its host can be asked.
    pub capabilities: ClientCapabilities,
    pub bridge: Bridge,
    /// The task that plugbay polls for a host that cannot.
    pub polled: Option<PolledTask>,
}

/// The next request of a call that goes on.
#[derive(Debug)]
pub struct NextRequest {
    pub request: Draft,
    pub params: Span,
    pub task_role: TaskRole,
    pub timeout: Option<Duration>,
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

/// Why plugbay ends a call itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Interruption {
    /// The server needs an answer that the host cannot give.
    #[error("{0}")]
    CannotAsk(String),
    /// The host was asked and answered with this error.
    #[error("{0}")]
    HostFailed(String),
    /// The call took longer than it may.
    #[error("the call took longer than {after:?}")]
    TimedOut { server: ServerName, after: Duration },
}

impl Interruption {
    fn cannot_ask(why: &str) -> Self {
        Self::CannotAsk(why.to_owned())
    }
}

/// What is to be done; the table has already changed.
#[derive(Debug)]
pub enum Action<H> {
    /// The server's answer goes to the host.
    Deliver(Ended<H>, Answer),
    /// The call ends with an error of ours.
    Fail(Ended<H>, Interruption),
    /// Nobody came back for the call. `true`: the server still works on it.
    Expire(Ended<H>, bool),
    /// The server gets another request under a ticket of its own.
    Send { call: Ticket, sent: Ticket, server: ServerName, next: NextRequest },
    /// A legacy host is asked what a modern server wants to know.
    AskHost { call: Ticket, sent: Ticket, requests: Vec<HostRequest> },
    /// A modern host is told what the server asks, and comes back until then.
    Present { call: Ticket, host: H, requests: Vec<ServerRequest>, until: Instant },
}

/// How a server request gets to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// The table keeps it for a modern host.
    Kept,
    /// A legacy host is asked at once.
    Directly,
}

/// Why a host that comes back finds no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    #[error("the call of this \"requestState\" has ended")]
    Ended,
    #[error("the call of this \"requestState\" is being waited for already")]
    WaitedFor,
}

impl<H, R> Default for CallTable<H, R> {
    fn default() -> Self {
        Self {
            entries: FxHashMap::default(),
            sent_again: FxHashMap::default(),
            deadlines: BTreeSet::new(),
            away: 0,
            runs: 0,
        }
    }
}

impl<H, R> CallTable<H, R> {
    // --- what hosts do

    pub fn register(&mut self, ticket: Ticket, call: NewCall<H>) {
        let NewCall { host, server, era, capabilities, bridge, polled } = call;
        let call = Call {
            host: Some(host),
            sent: ticket,
            server,
            era,
            capabilities,
            bridge,
            polled: polled.map(Box::new),
            requests: BTreeMap::new(),
            answer: None,
            state: State::InFlight,
        };
        self.entries.insert(ticket, Entry::Call(Box::new(call)));
    }

    /// The call's host has cancelled it, or has gone.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<Ended<H>> {
        self.end(ticket)
    }

    /// A modern host is back with the answers to server requests. Gives those that are still wanted, with the
    /// server that wants them.
    pub fn resume(
        &mut self,
        ticket: Ticket,
        host: H,
        answered: &[Ticket],
        now: Instant,
    ) -> Result<(ServerName, Vec<Ticket>, Option<Action<H>>), ResumeError> {
        let call = self.call(ticket).ok_or(ResumeError::Ended)?;
        if call.host.is_some() {
            return Err(ResumeError::WaitedFor);
        }
        call.host = Some(host);
        let server = call.server.clone();
        let wanted = answered.iter().copied().filter(|id| call.requests.remove(id).is_some()).collect();
        let (more, answer) = (!call.requests.is_empty(), call.answer.take());
        self.count_requests(ticket, true);
        if let Some(answer) = answer {
            let action = self.end(ticket).map(|ended| Action::Deliver(ended.kept_task(), answer));
            return Ok((server, wanted, action));
        }
        let state = if more { State::Gathering { until: now + GATHERING } } else { State::InFlight };
        self.set_state(ticket, state);
        Ok((server, wanted, None))
    }

    /// A legacy host has answered a request of [`Action::AskHost`]; `result` is raw JSON.
    pub fn host_answered(
        &mut self,
        ticket: Ticket,
        key: String,
        result: Result<Bytes, String>,
        tickets: &Tickets,
    ) -> Option<Action<H>> {
        let result = match result {
            Ok(result) => result,
            // By the protocol the server is not told of it: the request is just not sent again.
            Err(words) => return self.fail(ticket, Interruption::HostFailed(words)),
        };
        let Bridge::Repeat(repeat) = &mut self.call(ticket)?.bridge else { return None };
        if repeat.answered(key, result) { self.repeat(ticket, tickets) } else { None }
    }

    // --- what servers do

    /// The answer to the request that was sent under this ticket. `keep` makes room for an answer whose host is away.
    pub fn answered(
        &mut self,
        sent: Ticket,
        answer: Answer,
        now: Instant,
        tickets: &Tickets,
        keep: impl FnOnce(Answer) -> Answer,
    ) -> Option<Action<H>> {
        let ticket = self.call_of(sent)?;
        let call = self.call(ticket)?;
        match call.step(answer, now) {
            Step::Done(answer) => {
                if let Some((message, required)) = call.input_required(&answer) {
                    return self.ask_host(ticket, &message, &required, now, tickets);
                }
                self.deliver(ticket, answer, keep)
            }
            Step::Insist => self.repeat(ticket, tickets),
            Step::Await(next) => self.send(ticket, next, tickets),
            Step::Poll(pause) => {
                self.set_state(ticket, State::Polling { at: now + pause });
                None
            }
            Step::Ask(message, required) => self.ask_host(ticket, &message, &required, now, tickets),
        }
    }

    /// The server asks something in the middle of a call.
    pub fn server_request(
        &mut self,
        sent: Ticket,
        request: ServerRequest,
        now: Instant,
    ) -> Result<Carried, ServerRequestError> {
        let ticket = self.call_of(sent).ok_or(ServerRequestError::CallEnded)?;
        let full = self.away >= MAX_AWAY;
        let call = self.call(ticket).ok_or(ServerRequestError::CallEnded)?;
        if call.era == Era::Legacy {
            return Ok(Carried::Directly);
        }
        let Bridge::HostReturns = call.bridge else { return Err(ServerRequestError::NoHost) };
        call.allow(&request)?;
        let first = call.requests.is_empty();
        if first && full && call.host.is_some() {
            return Err(ServerRequestError::TooMany);
        }
        let before = call.is_away();
        call.requests.insert(request.number, request);
        let gathers = first && call.host.is_some();
        self.count_requests(ticket, before);
        if gathers {
            self.set_state(ticket, State::Gathering { until: now + GATHERING });
        }
        Ok(Carried::Kept)
    }

    /// The server no longer wants to know.
    pub fn withdrawn(&mut self, sent: Ticket, request: Ticket) {
        let Some(ticket) = self.call_of(sent) else { return };
        let Some(call) = self.call(ticket) else { return };
        let before = call.is_away();
        call.requests.remove(&request);
        self.count_requests(ticket, before);
    }

    // --- what agent runs do

    pub fn has_room_for_runs(&self) -> bool {
        self.runs < MAX_RUNS
    }

    /// Keeps a run until its host comes back.
    pub fn pause(&mut self, ticket: Ticket, run: R, until: Instant) {
        self.runs += 1;
        self.deadlines.insert((until, ticket));
        self.entries.insert(ticket, Entry::PausedRun { run, until });
    }

    /// The host of a paused run is back.
    pub fn resume_run(&mut self, ticket: Ticket) -> Result<R, ResumeError> {
        if !matches!(self.entries.get(&ticket), Some(Entry::PausedRun { .. })) {
            return Err(ResumeError::Ended);
        }
        self.runs -= 1;
        match self.entries.remove(&ticket) {
            Some(Entry::PausedRun { run, .. }) => Ok(run),
            _ => Err(ResumeError::Ended),
        }
    }

    // --- what time does

    /// When [`Self::due`] should be called next.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// What the passing of time calls for, and the runs that nobody came back for.
    pub fn due(&mut self, now: Instant, tickets: &Tickets) -> (Vec<Action<H>>, Vec<R>) {
        let (mut actions, mut runs) = (Vec::new(), Vec::new());
        while let Some((at, ticket)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, ticket));
            match self.entries.get(&ticket) {
                Some(Entry::PausedRun { until, .. }) if *until == at => {
                    runs.extend(self.resume_run(ticket).ok());
                }
                Some(Entry::Call(call)) if call.state.deadline() == Some(at) => {
                    let state = call.state;
                    actions.extend(self.expired(ticket, state, now, tickets));
                }
                _ => {}
            }
        }
        (actions, runs)
    }

    fn expired(
        &mut self,
        ticket: Ticket,
        state: State,
        now: Instant,
        tickets: &Tickets,
    ) -> Option<Action<H>> {
        match state {
            State::InFlight => None,
            State::Gathering { .. } => self.present(ticket, now),
            State::HostAway { .. } => {
                let working = self.call(ticket)?.answer.is_none();
                Some(Action::Expire(self.end(ticket)?, working))
            }
            State::HostAsked { .. } => {
                self.fail(ticket, Interruption::cannot_ask("the host did not answer in time"))
            }
            State::Repeating { .. } => self.repeat(ticket, tickets),
            State::Polling { .. } => self.poll(ticket, now, tickets),
        }
    }

    // --- what everybody may ask

    /// Where the host of a call waits, by the ticket that the server knows.
    pub fn host(&self, sent: Ticket) -> Option<&H> {
        match self.entries.get(&self.call_of(sent)?)? {
            Entry::Call(call) => call.host.as_ref(),
            Entry::PausedRun { .. } => None,
        }
    }

    /// Whether the call that was sent under this ticket goes on.
    pub fn contains(&self, sent: Ticket) -> bool {
        self.call_of(sent).is_some()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether nothing is due, counted or remembered for a call that has ended.
    #[cfg(test)]
    fn is_clean(&self) -> bool {
        self.is_empty() && self.sent_again.is_empty() && (self.away, self.runs) == (0, 0)
    }

    // --- steps

    fn deliver(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        keep: impl FnOnce(Answer) -> Answer,
    ) -> Option<Action<H>> {
        let call = self.call(ticket)?;
        if call.host.is_none() {
            let sent = call.sent;
            call.requests.retain(|_, request| request.outlives(sent)); // another call may still answer them
            call.answer = Some(keep(answer));
            return None;
        }
        let timed_out = matches!(answer, Answer::Failed(CallError::TimedOut { .. }));
        let ended = self.end(ticket)?;
        Some(Action::Deliver(if timed_out { ended } else { ended.kept_task() }, answer))
    }

    /// Tells a modern host what its server asks.
    fn present(&mut self, ticket: Ticket, now: Instant) -> Option<Action<H>> {
        let call = self.call(ticket)?;
        if call.requests.is_empty() {
            self.set_state(ticket, State::InFlight); // all were withdrawn
            return None;
        }
        let requests = call.requests.values().cloned().collect();
        let host = call.host.take()?;
        let until = now + HOST_PATIENCE;
        self.set_state(ticket, State::HostAway { until });
        Some(Action::Present { call: ticket, host, requests, until })
    }

    fn ask_host(
        &mut self,
        ticket: Ticket,
        message: &Bytes,
        required: &InputRequired,
        now: Instant,
        tickets: &Tickets,
    ) -> Option<Action<H>> {
        let call = self.call(ticket)?;
        let capabilities = call.capabilities;
        let Bridge::Repeat(repeat) = &mut call.bridge else {
            let why = "this request cannot be repeated with an answer";
            return self.fail(ticket, Interruption::cannot_ask(why));
        };
        if repeat.rounds >= MAX_ROUNDS {
            let why = format!("it has asked {MAX_ROUNDS} times already");
            return self.fail(ticket, Interruption::CannotAsk(why));
        }
        let polled = call.polled.as_deref();
        let known = |key: &str| polled.is_some_and(|task| task.has_sent(key));
        match repeat.begin_round(message, required, capabilities, known, tickets) {
            Err(why) => self.fail(ticket, Interruption::CannotAsk(why)),
            Ok(requests) if requests.is_empty() => {
                let at = now + repeat.pause();
                self.set_state(ticket, State::Repeating { at });
                None
            }
            Ok(requests) => {
                let sent = call.sent;
                self.set_state(ticket, State::HostAsked { until: now + HOST_PATIENCE });
                Some(Action::AskHost { call: ticket, sent, requests })
            }
        }
    }

    /// Sends the request again with all answers; a task that has begun gets them by a request of its own.
    fn repeat(&mut self, ticket: Ticket, tickets: &Tickets) -> Option<Action<H>> {
        let call = self.call(ticket)?;
        let Bridge::Repeat(repeat) = &call.bridge else { return None };
        let update = call.polled.as_mut().and_then(|task| task.update(repeat.answers()));
        let task_role = call.polled.as_ref().map_or_else(|| repeat.task_role.clone(), |task| task.role());
        let next = update.unwrap_or_else(|| repeat.request(task_role));
        self.send(ticket, next, tickets)
    }

    fn poll(&mut self, ticket: Ticket, now: Instant, tickets: &Tickets) -> Option<Action<H>> {
        let call = self.call(ticket)?;
        let task = call.polled.as_ref()?;
        if let Some(after) = task.overdue(now) {
            let server = call.server.clone();
            return self.fail(ticket, Interruption::TimedOut { server, after });
        }
        let next = task.state_request()?;
        self.send(ticket, next, tickets)
    }

    /// To the server this is another request, and so it has a ticket of its own.
    fn send(&mut self, ticket: Ticket, next: NextRequest, tickets: &Tickets) -> Option<Action<H>> {
        let sent = tickets.next();
        self.set_state(ticket, State::InFlight);
        let call = self.call(ticket)?;
        let (server, before) = (call.server.clone(), std::mem::replace(&mut call.sent, sent));
        self.sent_again.remove(&before);
        self.sent_again.insert(sent, ticket);
        Some(Action::Send { call: ticket, sent, server, next })
    }

    fn fail(&mut self, ticket: Ticket, why: Interruption) -> Option<Action<H>> {
        Some(Action::Fail(self.end(ticket)?, why))
    }

    fn end(&mut self, ticket: Ticket) -> Option<Ended<H>> {
        self.call(ticket)?;
        let Some(Entry::Call(call)) = self.entries.remove(&ticket) else { return None };
        if call.is_away() {
            self.away -= 1;
        }
        if call.sent != ticket {
            self.sent_again.remove(&call.sent);
        }
        let Call { host, sent, server, polled, requests, .. } = *call;
        let left_open = requests.into_values().filter(|request| request.outlives(sent));
        let left_open = left_open.map(|request| request.number).collect();
        let task = polled.as_ref().and_then(|task| task.id());
        Some(Ended { host, server, sent, left_open, task, polled: polled.is_some() })
    }

    /// The call that a server works on under this ticket; an earlier ticket of the call counts no more.
    fn call_of(&self, sent: Ticket) -> Option<Ticket> {
        let again = (!self.sent_again.is_empty()).then(|| self.sent_again.get(&sent).copied()).flatten();
        let ticket = again.unwrap_or(sent);
        match self.entries.get(&ticket)? {
            Entry::Call(call) if call.sent == sent => Some(ticket),
            _ => None,
        }
    }

    fn call(&mut self, ticket: Ticket) -> Option<&mut Call<H>> {
        match self.entries.get_mut(&ticket)? {
            Entry::Call(call) => Some(call),
            Entry::PausedRun { .. } => None,
        }
    }

    fn set_state(&mut self, ticket: Ticket, state: State) {
        if let Some(call) = self.call(ticket) {
            call.state = state;
            self.deadlines.extend(state.deadline().map(|at| (at, ticket)));
        }
    }

    fn count_requests(&mut self, ticket: Ticket, before: bool) {
        let after = self.call(ticket).is_some_and(|call| call.is_away());
        self.away = self.away + usize::from(after) - usize::from(before);
    }
}

impl<H> Call<H> {
    /// Whether it counts among those that wait for a modern host.
    fn is_away(&self) -> bool {
        self.host.is_none() || !self.requests.is_empty()
    }

    /// Whether its host can be asked this.
    fn allow(&self, request: &ServerRequest) -> Result<(), ServerRequestError> {
        if !capabilities::is_common(request.method()) {
            return Err(ServerRequestError::Unknown);
        }
        match self.capabilities.lacks(&request.message, request.method(), request.params()) {
            Some(lacking) => Err(ServerRequestError::Undeclared(lacking)),
            None => Ok(()),
        }
    }

    /// What an answer means to a call that has, or may yet have, a polled task.
    fn step(&mut self, answer: Answer, now: Instant) -> Step {
        if let Some(task) = &mut self.polled {
            return task.step(answer);
        }
        match (&self.bridge, &answer) {
            (Bridge::Repeat(repeat), Answer::Response { message, head, era: Era::Modern })
                if repeat.task_role == TaskRole::None && task::is_demanded(message, head) =>
            {
                self.polled = Some(Box::new(PolledTask::modern(repeat.timeout, now)));
                Step::Insist
            }
            _ => Step::Done(answer),
        }
    }

    /// A modern server's answer that asks its legacy host for more.
    fn input_required(&self, answer: &Answer) -> Option<(Bytes, InputRequired)> {
        let Answer::Response { message, head, era: Era::Modern } = answer else { return None };
        let required = (self.era == Era::Legacy).then(|| InputRequired::read(message, head)).flatten()?;
        Some((message.clone(), required))
    }
}

impl<H> Ended<H> {
    /// Its task is over too, or belongs to its host.
    fn kept_task(self) -> Self {
        Self { task: None, ..self }
    }
}

impl Interruption {
    /// As the error of a call, if it is one.
    pub fn call_error(&self) -> Option<CallError> {
        match self {
            Self::TimedOut { server, after } => {
                Some(CallError::TimedOut { server: server.clone(), after: *after, limit: Limit::Call })
            }
            Self::CannotAsk(_) | Self::HostFailed(_) => None,
        }
    }
}
