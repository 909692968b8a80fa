//! The table of calls: each host call from the moment it is sent until it is answered, also while it waits for
//! another message.
//!
//! No clock and no I/O in here: events come in with the time, actions go out. A call is *suspended* when no server
//! works on it, or when its host is away: it goes on after a message of the other side, or after a pause.

mod action;
mod call;
mod polled_task;
mod repeat;
#[cfg(test)]
mod simulation;
mod steps;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use bytes::Bytes;
use rustc_hash::FxHashMap;

use self::call::{Call, State};
pub use self::{
    action::{Action, Carried, Interruption, NextRequest, ResumeError, Resumed},
    call::{Bridge, Ended, NewCall},
    polled_task::{PolledTask, cancel_request},
    repeat::{HostRequest, RepeatedCall},
};
use crate::{
    capabilities::ClientCapabilities,
    era::Era,
    exchange::{Answer, ServerRequest, ServerRequestError, Ticket, Tickets},
    pending::GAP,
};

/// How long a host may take to answer what a server asks in the middle of a call.
pub const HOST_PATIENCE: Duration = Duration::from_secs(600);
/// Server requests that come within this time reach a modern host together.
const GATHERING: Duration = Duration::from_millis(10);
/// How many calls may wait for modern hosts that are away.
const MAX_AWAY: usize = 1024;
/// How many paused runs may wait for modern hosts.
const MAX_RUNS: usize = 256;

/// All calls by the ticket of their first request. `H` is where the host waits, `R` a run.
#[derive(Debug)]
pub struct CallTable<H, R> {
    entries: FxHashMap<Ticket, Entry<H, R>>,
    /// The call's first ticket, by the ticket of a request that was sent later for it.
    sent_again: FxHashMap<Ticket, Ticket>,
    /// When something is due; an entry that has moved on since is passed over.
    deadlines: BTreeSet<(Instant, Ticket)>,
    /// The number of calls that wait for a modern host, and of paused runs.
    away: usize,
    runs: usize,
}

#[derive(Debug)]
enum Entry<H, R> {
    Call(Box<Call<H>>),
    /// A run that waits for its modern host to come back.
    PausedRun {
        run: R,
        until: Instant,
    },
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

    /// A modern host is back with the answers to server requests. From now on these `capabilities` apply.
    pub fn resume(
        &mut self,
        ticket: Ticket,
        (host, capabilities): (H, ClientCapabilities),
        answered: &[Ticket],
        now: Instant,
        tickets: &Tickets,
    ) -> Result<Resumed<H>, ResumeError> {
        let call = self.call(ticket).ok_or(ResumeError::Ended)?;
        if call.host.is_some() {
            return Err(ResumeError::WaitedFor);
        }
        call.host = Some(host);
        call.capabilities = capabilities;
        let server = call.server.clone();
        let wanted = answered.iter().copied().filter(|id| call.requests.remove(id).is_some()).collect();
        let (more, answer) = (!call.requests.is_empty(), call.answer.take());
        self.count_requests(ticket, true);
        if let Some(answer) = answer {
            let action = self.advance(ticket, answer, now, tickets);
            return Ok(Resumed { server, wanted, action });
        }
        let state = if more { State::Gathering { until: now + GATHERING } } else { State::InFlight };
        self.set_state(ticket, state);
        Ok(Resumed { server, wanted, action: None })
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
            // By the protocol the server is not told of this: the request is just not sent again.
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
        if call.host.is_some() {
            return self.advance(ticket, answer, now, tickets);
        }
        call.requests.retain(|_, request| request.outlives(sent)); // another call may still answer them
        call.answer = Some(keep(answer));
        None
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

    /// The server has withdrawn its request.
    pub fn withdrawn(&mut self, sent: Ticket, request: Ticket) {
        let Some(ticket) = self.call_of(sent) else { return };
        let Some(call) = self.call(ticket) else { return };
        let before = call.is_away();
        call.requests.remove(&request);
        self.count_requests(ticket, before);
    }

    // --- what runs do

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

    /// The actions that are due, and the runs that no host came back for.
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
            State::HostAsked { until } if now.saturating_duration_since(until) > GAP => {
                self.set_state(ticket, State::HostAsked { until: now + HOST_PATIENCE });
                None
            }
            State::HostAsked { .. } => self.cannot_ask(ticket, "the host did not answer in time"),
            State::Repeating { .. } => self.repeat(ticket, tickets),
            State::Polling { .. } => self.poll(ticket, now, tickets),
        }
    }

    // --- queries

    /// The place where the host of a call waits, by the ticket that the server knows.
    pub fn host(&self, sent: Ticket) -> Option<&H> {
        match self.entries.get(&self.call_of(sent)?)? {
            Entry::Call(call) => call.host.as_ref(),
            Entry::PausedRun { .. } => None,
        }
    }

    /// Whether the host of a call can be asked to open a URL in the middle of it.
    pub fn opens_urls(&self, sent: Ticket) -> bool {
        let Some(Entry::Call(call)) = self.call_of(sent).and_then(|ticket| self.entries.get(&ticket)) else {
            return false;
        };
        call.capabilities.url && (call.era == Era::Legacy || matches!(call.bridge, Bridge::HostReturns))
    }

    /// Whether the call that was sent under this ticket is still open.
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
}
