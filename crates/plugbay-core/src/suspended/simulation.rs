//! Seeded schedules of both tables of requests: every request gets exactly one reply, to its owner, whatever is lost,
//! late, doubled or cancelled.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::*;
use crate::{
    capabilities::ClientCapabilities,
    failure::{CallError, Failure, Limit},
    name::ServerName,
    pending::Pending,
    task::TaskRole,
    wire::{Head, Kind, write},
};

const SCHEDULES: u64 = 10_000;
const STEPS: usize = 48;
const SERVERS: [&str; 2] = ["one", "two"];
/// How long a server may be silent on one request, and how long it may work on it.
const PATIENCE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(900));

#[test]
fn every_request_gets_exactly_one_reply_whatever_happens() {
    let mut ends = [0; 6];
    for seed in 0..SCHEDULES {
        let run = || Schedule::new(seed).run();
        let seen = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| panic!("the seed is {seed}"));
        ends.iter_mut().zip(seen).for_each(|(all, more)| *all += more);
    }
    assert!(ends.iter().all(|times| *times > 1000), "every kind of end is common: {ends:?}");
}

/// A request of a host: the first of a call, or one by which a modern host comes back.
struct Request {
    call: usize,
    replies: u32,
    cancelled: bool,
}

/// A call as the schedule follows it.
struct Followed {
    ticket: Ticket,
    server: usize,
    /// Its server's requests that a modern host has been told of.
    told: Vec<Ticket>,
    /// Questions that a legacy host has not answered.
    asked: Vec<String>,
}

struct Schedule {
    dice: u64,
    now: Instant,
    tickets: Tickets,
    table: CallTable<usize, usize>,
    /// The requests that each server has not answered.
    pending: [Pending<()>; 2],
    requests: Vec<Request>,
    calls: Vec<Followed>,
    /// The calls of all tickets that servers have ever seen, and their order.
    seen: Vec<(Ticket, usize)>,
    of_ticket: HashMap<Ticket, usize>,
    /// Runs: how often each has left the table.
    runs: Vec<(Ticket, u32)>,
    ends: [u64; 6],
}

impl Schedule {
    fn new(seed: u64) -> Self {
        Self {
            dice: seed,
            now: Instant::now(),
            tickets: Tickets::default(),
            table: CallTable::default(),
            pending: [Pending::default(), Pending::default()],
            requests: Vec::new(),
            calls: Vec::new(),
            seen: Vec::new(),
            of_ticket: HashMap::new(),
            runs: Vec::new(),
            ends: [0; 6],
        }
    }

    fn run(mut self) -> [u64; 6] {
        for _ in 0..STEPS {
            self.step();
        }
        let mut rounds = 0;
        while !self.table.is_empty() {
            self.wait(HOST_PATIENCE);
            rounds += 1;
            assert!(rounds < 200, "a call that never ends: {:?}", self.table);
        }
        for request in &self.requests {
            let expected = u32::from(!request.cancelled);
            assert_eq!(request.replies, expected, "replies to a request of call {}", request.call);
        }
        assert!(self.runs.iter().all(|(_, times)| *times == 1), "{:?}", self.runs);
        self.wait(2 * HOST_PATIENCE);
        assert!(self.table.is_clean() && self.table.next_deadline().is_none());
        assert!(self.pending.iter().all(Pending::is_empty), "a server works on for nobody");
        self.ends
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.dice ^ (self.dice >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }

    fn step(&mut self) {
        match self.roll(20) {
            0..4 => self.begin(),
            4..9 => self.server_answers(),
            9 | 10 => self.server_asks(),
            11 | 12 => self.host_answers(),
            13..15 => self.host_returns(),
            15 => self.cancel(),
            16 => self.crash(),
            17 => self.agent_run(),
            _ => {
                let longest = [20, 2_000, 700_000][self.roll(3)];
                let time = Duration::from_millis(self.roll(longest) as u64);
                self.wait(time);
            }
        }
    }

    // --- what hosts do

    fn begin(&mut self) {
        let (ticket, at, server) = (self.tickets.next(), self.calls.len(), self.roll(2));
        let (draft, params) = write::request_draft("tools/call", br#"{"name":"a"}"#);
        let timeout = (self.roll(2) == 0).then_some(PATIENCE.0);
        let repeat = RepeatedCall::new(draft, params, timeout, TaskRole::None);
        let (era, bridge, polled) = match self.roll(4) {
            0 => (Era::Modern, Bridge::HostReturns, None),
            1 => (Era::Modern, Bridge::HostReturns, Some(PolledTask::legacy(timeout))),
            2 => (Era::Legacy, Bridge::Direct, None),
            _ => (Era::Legacy, Bridge::Repeat(Box::new(repeat)), None),
        };
        self.calls.push(Followed { ticket, server, told: Vec::new(), asked: Vec::new() });
        let (host, capabilities) = (self.request(at), ClientCapabilities::ALL);
        let server = name(server);
        self.table.register(ticket, NewCall { host, server, era, capabilities, bridge, polled });
        self.sent(ticket, at);
    }

    /// Notes another request of a call's host.
    fn request(&mut self, call: usize) -> usize {
        self.requests.push(Request { call, replies: 0, cancelled: false });
        self.requests.len() - 1
    }

    /// A legacy host answers a question, or says that it cannot; a second answer finds nothing.
    fn host_answers(&mut self) {
        let Some(at) = self.pick() else { return };
        let Some(key) = self.calls[at].asked.pop() else { return };
        let fails = self.roll(6) == 0;
        let result = if fails { Err("no".to_owned()) } else { Ok(Bytes::from_static(b"{}")) };
        let action = self.table.host_answered(self.calls[at].ticket, key, result, &self.tickets);
        self.act(action);
    }

    /// A modern host comes back, with some answers, none, or those of another call; perhaps twice.
    fn host_returns(&mut self) {
        let (Some(at), Some(other)) = (self.pick(), self.pick()) else { return };
        let of = if self.roll(8) == 0 { other } else { at };
        let mut answered = self.calls[of].told.clone();
        answered.truncate(self.roll(3));
        let request = self.request(at);
        let host = (request, ClientCapabilities::ALL);
        match self.table.resume(self.calls[at].ticket, host, &answered, self.now, &self.tickets) {
            Ok(resumed) => {
                assert!(resumed.wanted.iter().all(|wanted| self.calls[at].told.contains(wanted)));
                self.act(resumed.action);
            }
            Err(_) => self.requests[request].replies += 1, // an error
        }
    }

    /// A host cancels the request that it waits for.
    fn cancel(&mut self) {
        let Some(at) = self.pick() else { return };
        let ticket = self.calls[at].ticket;
        let waits = self.requests.iter().rposition(|request| request.call == at && request.replies == 0);
        let Some(request) = waits.filter(|request| !self.requests[*request].cancelled) else { return };
        let Some(ended) = self.table.cancel(ticket) else { return };
        assert_eq!(ended.host, Some(request), "it is this request that waits");
        self.requests[request].cancelled = true;
        self.over(at, &ended);
        self.ends[0] += 1;
    }

    // --- what servers do

    /// An answer to any ticket that a server has ever seen: the first, a late or a doubled one, or one by a server
    /// that was not asked.
    fn server_answers(&mut self) {
        if self.seen.is_empty() {
            return;
        }
        let newest = self.roll(self.seen.len().min(6));
        let (ticket, at) = self.seen[self.seen.len() - 1 - newest];
        let (modern, text) = self.words(at);
        let stranger = self.roll(8) == 0;
        for server in if stranger { 0..2 } else { self.calls[at].server..self.calls[at].server + 1 } {
            let foreign = server != self.calls[at].server;
            if self.pending[server].complete(ticket).is_none() {
                continue;
            }
            assert!(!foreign, "the answer of a server that was not asked");
            let message = Bytes::from(text.clone());
            let head = Head::read(&message).unwrap();
            let era = if modern { Era::Modern } else { Era::Legacy };
            self.answer(ticket, Answer::Response { message, head, era });
        }
    }

    fn words(&mut self, at: usize) -> (bool, Vec<u8>) {
        let done = format!(r#"{{"canary":"c{at}."}}"#);
        let requests = [
            r#""a":{"method":"roots/list"}"#,
            r#""a":{"method":"roots/list"},"b":{"method":"roots/list"}"#,
            "",
        ][self.roll(3)];
        let refused = r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}"#;
        let (modern, result) = match self.roll(12) {
            0 | 1 => (true, format!(r#"{{"resultType":"input_required","inputRequests":{{{requests}}}}}"#)),
            2 => (false, r#"{"task":{"taskId":"1","status":"working"}}"#.to_owned()),
            3 => (true, r#"{"resultType":"task","taskId":"1","status":"working"}"#.to_owned()),
            4 => (true, r#"{"taskId":"1","status":"working"}"#.to_owned()),
            5 => (
                true,
                format!(r#"{{"taskId":"1","status":"input_required","inputRequests":{{{requests}}}}}"#),
            ),
            6 => (true, format!(r#"{{"taskId":"1","status":"completed","result":{done}}}"#)),
            7 | 8 => return (true, write::error(b"0", refused.as_bytes()).to_vec()),
            9 => (true, done),
            _ => (false, done),
        };
        (modern, write::result(b"0", result.as_bytes()).to_vec())
    }

    fn answer(&mut self, sent: Ticket, answer: Answer) {
        let action = self.table.answered(sent, answer, self.now, &self.tickets, |answer| answer);
        self.act(action);
    }

    /// A server asks something for one call or for two, or takes it back.
    fn server_asks(&mut self) {
        if self.seen.is_empty() {
            return;
        }
        let newest = self.roll(self.seen.len().min(6));
        let (sent, at) = self.seen[self.seen.len() - 1 - newest];
        if self.roll(4) == 0 {
            if let Some(told) = self.calls[at].told.last() {
                self.table.withdrawn(sent, *told);
            }
            return;
        }
        let mut calls = vec![sent];
        if self.roll(3) == 0 {
            let other = self.roll(self.seen.len());
            calls.push(self.seen[other].0);
        }
        let message = write::request(b"1", "roots/list", b"{}");
        let head = Head::read(&message).unwrap();
        let Kind::Request { method, .. } = head.kind.clone() else { panic!("a request") };
        let (number, server) = (self.tickets.next(), name(self.calls[at].server));
        let request = ServerRequest { number, server, calls, message, head, method };
        let _ = self.table.server_request(sent, request, self.now);
    }

    /// Everything that a server works on is lost.
    fn crash(&mut self) {
        let server = self.roll(2);
        let failure = Arc::new(Failure::new("it has ended", Vec::new()));
        let lost: Vec<Ticket> = self.pending[server].drain().map(|(ticket, ())| ticket).collect();
        for ticket in lost {
            let error = CallError::down(name(server), Arc::clone(&failure));
            self.answer(ticket, Answer::Failed(error));
        }
    }

    // --- what time does

    fn wait(&mut self, time: Duration) {
        self.now += time;
        for server in 0..2 {
            for (ticket, (), after) in self.pending[server].expire(self.now) {
                let error = CallError::TimedOut { server: name(server), after, limit: Limit::Call };
                self.answer(ticket, Answer::Failed(error));
            }
        }
        let (actions, runs) = self.table.due(self.now, &self.tickets);
        for action in actions {
            self.act(Some(action));
        }
        for run in runs {
            self.runs[run].1 += 1;
            self.ends[1] += 1;
        }
    }

    fn agent_run(&mut self) {
        if self.roll(2) == 0 {
            let (ticket, until) = (self.tickets.next(), self.now + HOST_PATIENCE);
            self.table.pause(ticket, self.runs.len(), until);
            self.runs.push((ticket, 0));
        } else if !self.runs.is_empty() {
            let at = self.roll(self.runs.len());
            if let Ok(run) = self.table.resume_run(self.runs[at].0) {
                assert_eq!(run, at, "each run by its own ticket");
                self.runs[at].1 += 1;
            }
        }
    }

    // --- what the table decides

    fn act(&mut self, action: Option<Action<usize>>) {
        match action {
            Some(Action::Deliver(ended, answer)) => {
                let at = self.call_of(ended.sent);
                self.reply(at, ended.host);
                if let Answer::Response { message, .. } = &answer {
                    let text = String::from_utf8_lossy(message);
                    let foreign = text.contains(r#""canary""#) && !text.contains(&format!(r#""c{at}.""#));
                    assert!(!foreign, "call {at} got {text}");
                }
                self.over(at, &ended);
                self.ends[2] += 1;
            }
            Some(Action::Fail(ended, _)) => {
                let at = self.call_of(ended.sent);
                self.reply(at, ended.host);
                self.over(at, &ended);
                self.ends[3] += 1;
            }
            Some(Action::Expire(ended, _)) => {
                assert_eq!(ended.host, None, "only a call that nobody waits for expires");
                let at = self.call_of(ended.sent);
                self.over(at, &ended);
                self.ends[4] += 1;
            }
            Some(Action::Send { call, sent, .. }) => {
                let at = self.call_of(call);
                self.sent(sent, at);
            }
            Some(Action::AskHost { call, requests, .. }) => {
                let at = self.call_of(call);
                self.calls[at].asked = requests.into_iter().map(|request| request.key).collect();
            }
            Some(Action::Present { call, host, requests, .. }) => {
                let at = self.call_of(call);
                self.reply(at, Some(host));
                self.calls[at].told = requests.iter().map(|request| request.number).collect();
                self.ends[5] += 1;
            }
            None => {}
        }
    }

    /// A server works on a request of this call.
    fn sent(&mut self, sent: Ticket, at: usize) {
        let server = self.calls[at].server;
        self.pending[server].register(sent, (), self.now, PATIENCE.0, PATIENCE.1);
        self.seen.push((sent, at));
        self.of_ticket.insert(sent, at);
    }

    fn reply(&mut self, at: usize, host: Option<usize>) {
        let request = &mut self.requests[host.expect("somebody waits")];
        assert_eq!(request.call, at, "the reply of another call");
        assert!(!request.cancelled, "a reply to a cancelled request");
        request.replies += 1;
        assert_eq!(request.replies, 1, "a second reply");
    }

    /// The server is told that nobody waits for this any more.
    fn over(&mut self, at: usize, ended: &Ended<usize>) {
        self.pending[self.calls[at].server].complete(ended.sent);
    }

    fn call_of(&self, ticket: Ticket) -> usize {
        self.of_ticket[&ticket]
    }

    fn pick(&mut self) -> Option<usize> {
        if self.calls.is_empty() {
            return None;
        }
        let newest = self.roll(self.calls.len().min(4));
        Some(self.calls.len() - 1 - newest)
    }
}

fn name(server: usize) -> ServerName {
    ServerName::parse(SERVERS[server]).unwrap()
}
