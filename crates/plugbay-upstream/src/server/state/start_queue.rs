//! Work that waits until a server is up.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use plugbay_core::{
    exchange::{Answer, Call, Ticket, Warmed},
    failure::{CallError, Failure},
};

/// A request that was rendered but never sent.
pub(in crate::server) type Unsent = (Ticket, Bytes);

/// Calls and waiters that want the server to be up.
#[derive(Debug, Default)]
pub(in crate::server) struct StartQueue {
    /// Calls that came while the server was being started.
    calls: VecDeque<Call>,
    warmed: Vec<Warmed>,
    /// Calls that a server ended without having received: its successor gets them.
    unsent: Vec<Unsent>,
}

impl StartQueue {
    pub(in crate::server) fn push(&mut self, call: Call) {
        self.calls.push_back(call);
    }

    pub(in crate::server) fn pop(&mut self) -> Option<Call> {
        self.calls.pop_front()
    }

    /// Drops a call without an answer.
    pub(in crate::server) fn cancel(&mut self, ticket: Ticket) {
        self.calls.retain(|call| call.ticket != ticket);
    }

    /// Answers every call that waits with this error.
    pub(in crate::server) fn fail_calls(&mut self, error: &CallError) {
        for call in self.calls.drain(..) {
            call.caller.answered(call.ticket, Answer::Failed(error.clone()));
        }
    }

    pub(in crate::server) fn await_start(&mut self, warmed: Warmed) {
        self.warmed.push(warmed);
    }

    /// The start has ended like this.
    pub(in crate::server) fn started(&mut self, outcome: &Result<(), Arc<Failure>>) {
        for warmed in self.warmed.drain(..) {
            warmed.tell(outcome.clone());
        }
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
            queue.push(call(number, &caller));
        }
        queue.cancel(Ticket(2));
        assert_eq!(queue.pop().map(|call| call.ticket), Some(Ticket(1)));
        assert_eq!(queue.pop().map(|call| call.ticket), Some(Ticket(3)));
        queue.fail_calls(&CallError::Gone(ServerName::parse("s").unwrap()));
        assert!(queue.pop().is_none());
        assert_eq!(counts.answers(), 1, "the call that was left");
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
