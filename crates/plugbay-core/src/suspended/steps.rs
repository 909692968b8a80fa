//! The steps of the table: how a call goes from one state to the next.

use std::time::Instant;

use bytes::Bytes;

use super::{
    Action, Bridge, CallTable, Ended, Entry, HOST_PATIENCE, Interruption, NextRequest,
    call::{Call, State},
    polled_task::Step,
    repeat::MAX_ROUNDS,
};
use crate::{
    era::InputRequired,
    exchange::{Answer, Ticket, Tickets},
    failure::CallError,
};

impl<H, R> CallTable<H, R> {
    /// What follows from an answer; the call's host is not away.
    pub(super) fn advance(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        now: Instant,
        tickets: &Tickets,
    ) -> Option<Action<H>> {
        let call = self.call(ticket)?;
        match call.step(answer, now) {
            Step::Done(answer) => match call.input_required(&answer) {
                Some((message, required)) => self.ask_host(ticket, &message, &required, now, tickets),
                None => self.deliver(ticket, answer),
            },
            Step::RepeatAsTask => self.repeat(ticket, tickets),
            Step::Await(next) => self.send(ticket, next, tickets),
            Step::Poll(pause) => {
                self.set_state(ticket, State::Polling { at: now + pause });
                None
            }
            Step::Ask(message, required) => self.ask_host(ticket, &message, &required, now, tickets),
        }
    }

    fn deliver(&mut self, ticket: Ticket, answer: Answer) -> Option<Action<H>> {
        let timed_out = matches!(answer, Answer::Failed(CallError::TimedOut { .. }));
        let ended = self.end(ticket)?;
        Some(Action::Deliver(if timed_out { ended } else { ended.kept_task() }, answer))
    }

    /// Tells a modern host what its server asks.
    pub(super) fn present(&mut self, ticket: Ticket, now: Instant) -> Option<Action<H>> {
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

    pub(super) fn ask_host(
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
            return self.cannot_ask(ticket, "this request cannot be repeated with an answer");
        };
        if repeat.rounds >= MAX_ROUNDS {
            return self.cannot_ask(ticket, format!("it has asked {MAX_ROUNDS} times already"));
        }
        let polled = call.polled.as_deref();
        let known = |key: &str| polled.is_some_and(|task| task.has_sent(key));
        match repeat.begin_round(message, required, capabilities, known, tickets) {
            Err(why) => self.cannot_ask(ticket, why),
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
    pub(super) fn repeat(&mut self, ticket: Ticket, tickets: &Tickets) -> Option<Action<H>> {
        let call = self.call(ticket)?;
        let Bridge::Repeat(repeat) = &call.bridge else { return None };
        let update = call.polled.as_mut().and_then(|task| task.update(repeat.answers()));
        let task_role = call.polled.as_ref().map_or_else(|| repeat.task_role.clone(), |task| task.role());
        let next = update.unwrap_or_else(|| repeat.request(task_role));
        self.send(ticket, next, tickets)
    }

    pub(super) fn poll(&mut self, ticket: Ticket, now: Instant, tickets: &Tickets) -> Option<Action<H>> {
        let call = self.call(ticket)?;
        let task = call.polled.as_ref()?;
        if let Some(after) = task.overdue(now) {
            let server = call.server.clone();
            return self.fail(ticket, Interruption::TimedOut { server, after });
        }
        let next = task.state_request()?;
        self.send(ticket, next, tickets)
    }

    /// Sends the next request of a call: to the server it is another request, so it has a ticket of its own.
    pub(super) fn send(&mut self, ticket: Ticket, next: NextRequest, tickets: &Tickets) -> Option<Action<H>> {
        let sent = tickets.next();
        self.set_state(ticket, State::InFlight);
        let call = self.call(ticket)?;
        let (server, before) = (call.server.clone(), std::mem::replace(&mut call.sent, sent));
        let was_away = call.is_away();
        let left_open = call.take_left_open(before);
        self.count_requests(ticket, was_away);
        self.sent_again.remove(&before);
        self.sent_again.insert(sent, ticket);
        Some(Action::Send { call: ticket, sent, server, next, left_open })
    }

    /// Ends a call whose server needs an answer that the host cannot give.
    pub fn cannot_ask(&mut self, ticket: Ticket, why: impl Into<String>) -> Option<Action<H>> {
        let server = self.call(ticket)?.server.clone();
        self.fail(ticket, Interruption::CannotAsk { server, why: why.into() })
    }

    pub(super) fn fail(&mut self, ticket: Ticket, why: Interruption) -> Option<Action<H>> {
        Some(Action::Fail(self.end(ticket)?, why))
    }

    pub(super) fn end(&mut self, ticket: Ticket) -> Option<Ended<H>> {
        self.call(ticket)?;
        let Some(Entry::Call(mut call)) = self.entries.remove(&ticket) else { return None };
        if call.is_away() {
            self.away -= 1;
        }
        if call.sent != ticket {
            self.sent_again.remove(&call.sent);
        }
        let left_open = call.take_left_open(call.sent);
        let Call { host, sent, server, polled, .. } = *call;
        let task = polled.as_ref().and_then(|task| task.id());
        Some(Ended { host, server, sent, left_open, task, polled: polled.is_some() })
    }

    /// The call that a server works on under this ticket; earlier tickets of the call no longer count.
    pub(super) fn call_of(&self, sent: Ticket) -> Option<Ticket> {
        let again = (!self.sent_again.is_empty()).then(|| self.sent_again.get(&sent).copied()).flatten();
        let ticket = again.unwrap_or(sent);
        match self.entries.get(&ticket)? {
            Entry::Call(call) if call.sent == sent => Some(ticket),
            _ => None,
        }
    }

    pub(super) fn call(&mut self, ticket: Ticket) -> Option<&mut Call<H>> {
        match self.entries.get_mut(&ticket)? {
            Entry::Call(call) => Some(call),
            Entry::PausedRun { .. } => None,
        }
    }

    pub(super) fn set_state(&mut self, ticket: Ticket, state: State) {
        if let Some(call) = self.call(ticket) {
            call.state = state;
            self.deadlines.extend(state.deadline().map(|at| (at, ticket)));
        }
    }

    pub(super) fn count_requests(&mut self, ticket: Ticket, before: bool) {
        let after = self.call(ticket).is_some_and(|call| call.is_away());
        self.away = self.away + usize::from(after) - usize::from(before);
    }
}
