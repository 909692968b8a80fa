//! Work that waits until a server is up.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use plugbay_core::{
    exchange::{Answer, Call, Caller, Ticket, Warmed},
    failure::{CallError, Failure},
    start::Priority,
};

use crate::spec::Timeouts;

/// A request that was rendered but never sent.
pub(in crate::server) type Unsent = (Ticket, Bytes);

/// Calls and other waiters that need the server to be up.
#[derive(Debug, Default)]
pub(in crate::server) struct StartQueue {
    /// Calls that came while the server was being started.
    calls: VecDeque<Queued>,
    warmed: Vec<Warmed>,
    /// Waiters that came while a failed server was being tried again. It may have been repaired since that
    /// attempt began, so only the next attempt counts for them.
    latecomers: Vec<Warmed>,
    /// The priority of a start that is wanted even though no call waits for it.
    wanted: Option<Priority>,
    /// Calls that a server never received before it ended; its successor gets them.
    unsent: Vec<Unsent>,
}

#[derive(Debug)]
struct Queued {
    call: Call,
    since: Instant,
    patience: Duration,
    /// Whether the user is logging in; the call's time does not run meanwhile.
    held: bool,
}

impl Queued {
    fn deadline(&self) -> Option<Instant> {
        if self.held {
            return None;
        }
        self.since.checked_add(self.patience)
    }
}

impl StartQueue {
    /// Adds a call. It waits as long as it may take, and at least as long as a start, but not longer than
    /// `at_most`.
    pub(in crate::server) fn push(
        &mut self,
        call: Call,
        since: Instant,
        timeouts: Timeouts,
        at_most: Duration,
    ) {
        let patience = call.timeout.unwrap_or(timeouts.call).max(timeouts.start).min(at_most);
        self.calls.push_back(Queued { call, since, patience, held: false });
    }

    pub(in crate::server) fn pop(&mut self) -> Option<Call> {
        Some(self.calls.pop_front()?.call)
    }

    /// Removes the calls that have waited too long, each with its timeout.
    pub(in crate::server) fn expire(&mut self, now: Instant) -> Vec<(Call, Duration)> {
        let is_over = |queued: &Queued| queued.deadline().is_some_and(|deadline| deadline <= now);
        let (over, kept) = self.calls.drain(..).partition::<VecDeque<_>, _>(is_over);
        self.calls = kept;
        over.into_iter().map(|queued| (queued.call, queued.patience)).collect()
    }

    pub(in crate::server) fn next_deadline(&self) -> Option<Instant> {
        self.calls.iter().filter_map(Queued::deadline).min()
    }

    /// Requests a start, even though no call waits for it.
    pub(in crate::server) fn want(&mut self, priority: Priority) {
        self.wanted = self.wanted.max(Some(priority));
    }

    /// Whether anybody still wants the start.
    pub(in crate::server) fn is_wanted(&self) -> bool {
        self.wanted.is_some() || self.is_awaited()
    }

    /// How urgent the start is.
    pub(in crate::server) fn priority(&self) -> Priority {
        if self.is_awaited() { Priority::Called } else { self.wanted.unwrap_or(Priority::Behind) }
    }

    fn is_awaited(&self) -> bool {
        !(self.calls.is_empty()
            && self.warmed.is_empty()
            && self.latecomers.is_empty()
            && self.unsent.is_empty())
    }

    /// Stops the time of a call until [`StartQueue::release`].
    pub(in crate::server) fn hold(&mut self, ticket: Ticket) {
        for queued in self.calls.iter_mut().filter(|queued| queued.call.ticket == ticket) {
            queued.held = true;
        }
    }

    /// Restarts the time of all held calls.
    pub(in crate::server) fn release(&mut self, now: Instant) {
        for queued in self.calls.iter_mut().filter(|queued| queued.held) {
            (queued.since, queued.held) = (now, false);
        }
    }

    /// Notes that the process did not run for this long: that time counts for no call.
    pub(in crate::server) fn skip_gap(&mut self, gap: Duration) {
        for queued in &mut self.calls {
            queued.since += gap;
        }
    }

    pub(in crate::server) fn contains(&self, ticket: Ticket) -> bool {
        self.calls.iter().any(|queued| queued.call.ticket == ticket)
    }

    /// The waiting calls and their callers.
    pub(in crate::server) fn callers(&self) -> Vec<(Ticket, Arc<dyn Caller>)> {
        self.calls.iter().map(|queued| (queued.call.ticket, Arc::clone(&queued.call.caller))).collect()
    }

    /// Drops a call without an answer.
    pub(in crate::server) fn cancel(&mut self, ticket: Ticket) {
        self.calls.retain(|queued| queued.call.ticket != ticket);
    }

    /// Answers every waiting call with this error.
    pub(in crate::server) fn fail_calls(&mut self, error: &CallError) {
        self.fail_calls_but(error, |_| false);
    }

    /// The same, except for the calls to keep.
    pub(in crate::server) fn fail_calls_but(&mut self, error: &CallError, keep: impl Fn(&Call) -> bool) {
        let (kept, failed) = self.calls.drain(..).partition::<VecDeque<_>, _>(|queued| keep(&queued.call));
        self.calls = kept;
        for Queued { call, .. } in failed {
            call.caller.answered(call.ticket, Answer::Failed(error.clone()));
        }
    }

    pub(in crate::server) fn await_start(&mut self, warmed: Warmed) {
        self.warmed.push(warmed);
    }

    /// Waits for the start in progress, and if that fails, for one more.
    pub(in crate::server) fn await_start_or_next(&mut self, warmed: Warmed) {
        self.latecomers.push(warmed);
    }

    /// Reports the outcome of the start to all waiters. Also used when a slow start is no longer waited for.
    pub(in crate::server) fn started(&mut self, outcome: &Result<(), Arc<Failure>>) {
        self.wanted = None;
        for warmed in self.warmed.drain(..).chain(self.latecomers.drain(..)) {
            warmed.tell(outcome.clone());
        }
    }

    /// Reports that the start has failed. Returns whether somebody waits for another one.
    pub(in crate::server) fn start_failed(&mut self, failure: &Arc<Failure>) -> bool {
        let latecomers = std::mem::take(&mut self.latecomers);
        self.started(&Err(Arc::clone(failure)));
        self.warmed = latecomers;
        !self.warmed.is_empty()
    }

    pub(in crate::server) fn replace_unsent(&mut self, unsent: Vec<Unsent>) {
        self.unsent = unsent;
    }

    pub(in crate::server) fn keep_unsent(&mut self, unsent: Vec<Unsent>) {
        self.unsent.extend(unsent);
    }

    pub(in crate::server) fn take_unsent(&mut self) -> Vec<Unsent> {
        std::mem::take(&mut self.unsent)
    }

    pub(in crate::server) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    pub(in crate::server) fn unsent_tickets(&self) -> impl Iterator<Item = Ticket> {
        self.unsent.iter().map(|(ticket, _)| *ticket)
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::{era::Era, name::ServerName, task::TaskRole, wire::write};

    use super::{super::test_caller::TestCaller, *};

    fn call(number: u64, caller: &Arc<dyn plugbay_core::exchange::Caller>) -> Call {
        let (request, params) = write::request_draft("tools/call", b"{}");
        Call {
            ticket: Ticket(number),
            caller: Arc::clone(caller),
            request,
            era: Era::Legacy,
            params: Some(params),
            timeout: None,
            task_role: TaskRole::None,
        }
    }

    #[test]
    fn queued_calls_leave_in_order_and_cancelled_calls_never() {
        let (counts, caller) = TestCaller::new();
        let mut queue = StartQueue::default();
        for number in 1..=4 {
            queue.push(call(number, &caller), Instant::now(), Timeouts::default(), Duration::MAX);
        }
        queue.cancel(Ticket(2));
        assert_eq!(queue.pop().map(|call| call.ticket), Some(Ticket(1)));
        assert_eq!(queue.pop().map(|call| call.ticket), Some(Ticket(3)));
        queue.fail_calls(&CallError::Gone(ServerName::parse("s").unwrap()));
        assert!(queue.pop().is_none());
        assert_eq!(counts.answers(), 1, "the call that was left");
    }

    #[test]
    fn a_call_waits_for_a_start_for_its_own_time_and_at_least_that_of_a_start() {
        let (_, caller) = TestCaller::new();
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut queue = StartQueue::default();
        assert!(!queue.is_wanted());
        for (number, seconds) in [(1, None), (2, Some(1)), (3, Some(600))] {
            let timeout = seconds.map(Duration::from_secs);
            queue.push(Call { timeout, ..call(number, &caller) }, now, Timeouts::default(), Duration::MAX);
        }
        assert_eq!((queue.priority(), queue.next_deadline()), (Priority::Called, Some(now + 30 * second)));
        assert!(queue.expire(now + 29 * second).is_empty());
        let expired = queue.expire(now + 120 * second);
        let expired: Vec<_> =
            expired.into_iter().map(|(call, after)| (call.ticket.0, after.as_secs())).collect();
        assert_eq!(expired, [(1, 120), (2, 30)]);
        assert_eq!(queue.pop().map(|call| call.ticket), Some(Ticket(3)));
        queue.want(Priority::Listed);
        queue.want(Priority::Behind);
        assert_eq!((queue.priority(), queue.is_wanted()), (Priority::Listed, true));
    }

    #[test]
    fn unsent_calls_are_taken_once() {
        let mut queue = StartQueue::default();
        queue.keep_unsent(vec![(Ticket(1), Bytes::new())]);
        queue.keep_unsent(vec![(Ticket(2), Bytes::new())]);
        assert_eq!(queue.unsent_tickets().collect::<Vec<_>>(), [Ticket(1), Ticket(2)]);
        assert_eq!(queue.take_unsent().len(), 2);
        assert!(!queue.has_unsent());
    }
}
