//! Calls that wait for the user's login, and the hosts that were asked for it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use plugbay_core::{
    exchange::{Caller, Ticket},
    failure::Failure,
};

/// How long a call waits for a login.
pub(in crate::server) const LOGIN_TIME: Duration = Duration::from_secs(600);

/// The calls that wait for one login. Each host is asked once, however many of its calls wait.
#[derive(Debug, Default)]
pub(in crate::server) struct Logins {
    waiting: Vec<WaitingCall>,
    asked: Vec<AskedHost>,
}

/// A call that goes on after the login.
#[derive(Debug, Clone)]
pub(in crate::server) struct WaitingCall {
    pub(in crate::server) ticket: Ticket,
    pub(in crate::server) caller: Arc<dyn Caller>,
    /// The reason why the login is needed.
    pub(in crate::server) failure: Arc<Failure>,
    pub(in crate::server) until: Instant,
}

/// A host that was asked to open the login page.
#[derive(Debug, Clone)]
pub(in crate::server) struct AskedHost {
    /// The number of the server request.
    pub(in crate::server) number: Ticket,
    pub(in crate::server) caller: Arc<dyn Caller>,
    /// The call that carries the server request.
    pub(in crate::server) call: Ticket,
    /// Whether its user has agreed.
    pub(in crate::server) accepted: bool,
    /// The name of the login.
    pub(in crate::server) id: String,
}

impl Logins {
    pub(in crate::server) fn wait(&mut self, call: WaitingCall) {
        if !self.contains(call.ticket) {
            self.waiting.push(call);
        }
    }

    pub(in crate::server) fn contains(&self, ticket: Ticket) -> bool {
        self.get(ticket).is_some()
    }

    pub(in crate::server) fn get(&self, ticket: Ticket) -> Option<&WaitingCall> {
        self.waiting.iter().find(|call| call.ticket == ticket)
    }

    /// The first call of each host that has not been asked.
    pub(in crate::server) fn unasked(&self) -> Vec<WaitingCall> {
        let mut unasked: Vec<WaitingCall> = Vec::new();
        for call in &self.waiting {
            let asked = self.asked.iter().any(|asked| asked.caller.is_same_host(&*call.caller));
            if !asked && !unasked.iter().any(|other| other.caller.is_same_host(&*call.caller)) {
                unasked.push(call.clone());
            }
        }
        unasked
    }

    pub(in crate::server) fn asked(&mut self, host: AskedHost) {
        self.asked.push(host);
    }

    pub(in crate::server) fn is_asked(&self, number: Ticket) -> bool {
        self.asked.iter().any(|asked| asked.number == number)
    }

    pub(in crate::server) fn accepted(&mut self, number: Ticket) {
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.number == number) {
            asked.accepted = true;
        }
    }

    /// Removes the calls of a host that does not log in.
    pub(in crate::server) fn declined(&mut self, number: Ticket) -> Vec<WaitingCall> {
        let Some(at) = self.asked.iter().position(|asked| asked.number == number) else { return Vec::new() };
        let host = self.asked.swap_remove(at).caller;
        self.leave(&*host)
    }

    /// Removes the calls of a host.
    pub(in crate::server) fn leave(&mut self, host: &dyn Caller) -> Vec<WaitingCall> {
        self.waiting.extract_if(.., |call| call.caller.is_same_host(host)).collect()
    }

    /// Removes the calls that have waited too long.
    pub(in crate::server) fn expire(&mut self, now: Instant) -> Vec<WaitingCall> {
        self.waiting.extract_if(.., |call| call.until <= now).collect()
    }

    pub(in crate::server) fn next_deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|call| call.until).min()
    }

    /// Forgets calls that have ended. Returns the hosts whose answer nobody needs, or which no call can reach
    /// any more.
    pub(in crate::server) fn retain(&mut self, goes_on: impl Fn(Ticket) -> bool) -> Vec<AskedHost> {
        self.waiting.retain(|call| goes_on(call.ticket));
        let waits = |ticket: Ticket| self.waiting.iter().any(|call| call.ticket == ticket);
        let has_calls = |host: &dyn Caller| self.waiting.iter().any(|call| call.caller.is_same_host(host));
        let needed = |asked: &AskedHost| {
            if asked.accepted { has_calls(&*asked.caller) } else { waits(asked.call) }
        };
        self.asked.extract_if(.., |asked| !needed(asked)).collect()
    }

    /// Takes everything out, because the login has ended.
    pub(in crate::server) fn drain(&mut self) -> (Vec<WaitingCall>, Vec<AskedHost>) {
        (std::mem::take(&mut self.waiting), std::mem::take(&mut self.asked))
    }

    pub(in crate::server) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.asked.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::test_caller::TestCaller, *};

    fn call(ticket: u64, caller: &Arc<dyn Caller>, until: Instant) -> WaitingCall {
        let failure = Arc::new(Failure::new("needs a login", Vec::new()));
        WaitingCall { ticket: Ticket(ticket), caller: Arc::clone(caller), failure, until }
    }

    fn ask(logins: &mut Logins, number: u64) {
        for WaitingCall { ticket, caller, .. } in logins.unasked() {
            let id = "1".to_owned();
            logins.asked(AskedHost { number: Ticket(number), caller, call: ticket, accepted: false, id });
        }
    }

    fn tickets(calls: &[WaitingCall]) -> Vec<u64> {
        calls.iter().map(|call| call.ticket.0).collect()
    }

    #[test]
    fn a_host_is_asked_once_for_a_login_and_answers_for_all_its_calls() {
        let ((_, one), (_, other), now) = (TestCaller::new(), TestCaller::new(), Instant::now());
        let mut logins = Logins::default();
        for (ticket, caller) in [(1, &one), (2, &one), (1, &one), (3, &other)] {
            logins.wait(call(ticket, caller, now));
        }
        assert_eq!(tickets(&logins.unasked()), [1, 3]);
        ask(&mut logins, 10);
        logins.wait(call(4, &one, now));
        assert!(logins.unasked().is_empty(), "it has been asked");
        assert_eq!(tickets(&logins.declined(Ticket(10))), [1, 2, 4]);
        assert!(logins.contains(Ticket(3)) && logins.declined(Ticket(99)).is_empty());
    }

    #[test]
    fn a_login_request_ends_with_the_call_that_carries_it_and_another_call_carries_the_next() {
        let ((_, one), now) = (TestCaller::new(), Instant::now());
        let mut logins = Logins::default();
        logins.wait(call(1, &one, now));
        logins.wait(call(2, &one, now));
        ask(&mut logins, 10);
        let orphans = logins.retain(|ticket| ticket != Ticket(1));
        assert_eq!(orphans.iter().map(|asked| asked.number).collect::<Vec<_>>(), [Ticket(10)]);
        assert_eq!(tickets(&logins.unasked()), [2]);
        ask(&mut logins, 11);
        logins.accepted(Ticket(11));
        logins.wait(call(3, &one, now));
        assert!(logins.retain(|ticket| ticket == Ticket(3)).is_empty(), "its user logs in at this moment");
        assert_eq!(logins.retain(|_| false).len(), 1);
        assert!(logins.is_empty());
    }

    #[test]
    fn a_call_does_not_wait_for_a_login_for_ever() {
        let ((_, one), now) = (TestCaller::new(), Instant::now());
        let mut logins = Logins::default();
        logins.wait(call(1, &one, now + LOGIN_TIME));
        logins.wait(call(2, &one, now));
        assert_eq!((logins.next_deadline(), tickets(&logins.expire(now))), (Some(now), vec![2]));
        assert_eq!(logins.next_deadline(), Some(now + LOGIN_TIME));
    }
}
