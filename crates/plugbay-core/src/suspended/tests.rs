//! The table without a runtime: scripted cases, and seeded schedules in which every call must end exactly once.

use std::time::{Duration, Instant};

use bytes::Bytes;
use proptest::prelude::*;

use super::{
    repeat::{MAX_REQUEST_BYTES, MAX_REQUESTS, MAX_REQUESTS_OF_CALL, MAX_ROUNDS},
    *,
};
use crate::{
    capabilities::ClientCapabilities,
    name::ServerName,
    task::TaskRole,
    wire::{Head, Kind, write},
};

type Table = CallTable<u32, &'static str>;

/// A table, its clock and its tickets.
struct Bench {
    table: Table,
    now: Instant,
    tickets: Tickets,
}

impl Bench {
    fn new() -> Self {
        Self { table: Table::default(), now: Instant::now(), tickets: Tickets::default() }
    }

    fn call(&mut self, host: u32, era: Era, bridge: Bridge) -> Ticket {
        let (ticket, server) = (self.tickets.next(), ServerName::parse("s").unwrap());
        let capabilities = ClientCapabilities::ALL;
        self.table.register(ticket, NewCall { host, server, era, capabilities, bridge, polled: None });
        ticket
    }

    /// A modern host's call of a legacy tool that requires a task.
    fn polled_call(&mut self, host: u32) -> Ticket {
        let (ticket, server) = (self.tickets.next(), ServerName::parse("s").unwrap());
        let (era, capabilities, bridge) = (Era::Modern, ClientCapabilities::ALL, Bridge::HostReturns);
        let polled = Some(PolledTask::legacy(None));
        self.table.register(ticket, NewCall { host, server, era, capabilities, bridge, polled });
        ticket
    }

    fn legacy_call(&mut self, host: u32) -> Ticket {
        let (draft, params) = write::request_draft("tools/call", br#"{"name":"a"}"#);
        let repeat = RepeatedCall::new(draft, params, Some(Duration::from_secs(60)), TaskRole::None);
        self.call(host, Era::Legacy, Bridge::Repeat(Box::new(repeat)))
    }

    fn answer(&mut self, sent: Ticket, answer: Answer) -> Option<Action<u32>> {
        self.table.answered(sent, answer, self.now, &self.tickets, |answer| answer)
    }

    fn ask(&mut self, sent: Ticket, id: u64) -> Result<Carried, ServerRequestError> {
        self.table.server_request(sent, server_request(sent, id), self.now)
    }

    fn resume(&mut self, call: Ticket, host: u32, answered: &[Ticket]) -> Result<Resumed<u32>, ResumeError> {
        let host = (host, ClientCapabilities::ALL);
        self.table.resume(call, host, answered, self.now, &self.tickets)
    }

    fn wait(&mut self, time: Duration) -> Vec<Action<u32>> {
        self.now += time;
        self.table.due(self.now, &self.tickets).0
    }
}

fn modern(result: &str) -> Answer {
    response(write::result(b"0", result.as_bytes()), Era::Modern)
}

fn legacy(result: &str) -> Answer {
    response(write::result(b"0", result.as_bytes()), Era::Legacy)
}

fn response(message: Bytes, era: Era) -> Answer {
    let head = Head::read(&message).unwrap();
    Answer::Response { message, head, era }
}

fn server_request(call: Ticket, id: u64) -> ServerRequest {
    let message = write::request(b"1", "roots/list", b"{}");
    let head = Head::read(&message).unwrap();
    let Kind::Request { method, .. } = head.kind.clone() else { panic!("a request") };
    let server = ServerName::parse("s").unwrap();
    ServerRequest { number: Ticket(id), server, calls: vec![call], message, head, method }
}

const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}}}"#;

#[test]
fn a_call_is_answered_once() {
    let mut bench = Bench::new();
    let call = bench.call(7, Era::Legacy, Bridge::Direct);
    let Some(Action::Deliver(ended, _)) = bench.answer(call, legacy("{}")) else { panic!("delivered") };
    assert_eq!((ended.host, ended.sent), (Some(7), call));
    assert!(bench.answer(call, legacy("{}")).is_none(), "a second answer finds no call");
    assert!(bench.table.is_clean());
}

#[test]
fn server_requests_reach_a_modern_host_together_and_its_answers_the_server() {
    let mut bench = Bench::new();
    let call = bench.call(1, Era::Modern, Bridge::HostReturns);
    assert_eq!(bench.ask(call, 900), Ok(Carried::Kept));
    assert_eq!(bench.ask(call, 901), Ok(Carried::Kept));
    let presented = bench.wait(GATHERING);
    let [Action::Present { host: 1, requests, .. }] = &presented[..] else { panic!("{presented:?}") };
    assert_eq!(requests.len(), 2);
    assert_eq!(bench.table.host(call), None, "the host is away");
    let answered = [Ticket(900), Ticket(5)];
    let Resumed { wanted, action, .. } = bench.resume(call, 2, &answered).unwrap();
    assert_eq!((wanted, action.is_none()), (vec![Ticket(900)], true), "only what was asked is answered");
    assert_eq!(bench.resume(call, 3, &[]).unwrap_err(), ResumeError::WaitedFor);
    assert!(matches!(bench.wait(GATHERING)[..], [Action::Present { host: 2, .. }]), "901 is still open");
    assert!(bench.answer(call, legacy("{}")).is_none(), "kept until the host is back");
    let action = bench.resume(call, 3, &[]).unwrap().action;
    assert!(matches!(action, Some(Action::Deliver(Ended { host: Some(3), .. }, _))));
    assert!(bench.table.is_clean());
}

#[test]
fn server_requests_that_wait_for_a_modern_host_are_limited() {
    let mut bench = Bench::new();
    let call = bench.call(1, Era::Modern, Bridge::HostReturns);
    let small = server_request(call, 1);
    let padded = [&small.message[..], &vec![b' '; MAX_REQUEST_BYTES]].concat();
    let large = ServerRequest { message: Bytes::from(padded), ..small };
    let refused = bench.table.server_request(call, large, bench.now);
    assert_eq!(refused, Err(ServerRequestError::TooMany));
    for id in 0..MAX_REQUESTS as u64 {
        assert_eq!(bench.ask(call, 900 + id), Ok(Carried::Kept));
    }
    assert_eq!(bench.ask(call, 1), Err(ServerRequestError::TooMany));
    let other = bench.call(2, Era::Modern, Bridge::HostReturns);
    assert_eq!(bench.ask(other, 2), Ok(Carried::Kept), "of each call");
}

#[test]
fn a_call_whose_modern_host_does_not_come_back_expires() {
    for answered in [false, true] {
        let mut bench = Bench::new();
        let call = bench.call(1, Era::Modern, Bridge::HostReturns);
        bench.ask(call, 900).unwrap();
        bench.wait(GATHERING);
        if answered {
            assert!(bench.answer(call, legacy("{}")).is_none());
        }
        assert!(bench.wait(HOST_PATIENCE.saturating_sub(Duration::from_millis(1))).is_empty());
        let expired = bench.wait(Duration::from_millis(1));
        let [Action::Expire(_, working)] = &expired[..] else { panic!("{expired:?}") };
        assert_eq!(*working, !answered, "the server is told only if it still works");
        assert_eq!(bench.resume(call, 2, &[]).unwrap_err(), ResumeError::Ended);
        assert!(bench.table.is_clean());
    }
}

const BEGUN: &str = r#"{"task":{"taskId":"1","status":"working"}}"#;

#[test]
fn a_task_that_begins_while_its_modern_host_is_away_is_awaited_once_the_host_returns() {
    let mut bench = Bench::new();
    let call = bench.polled_call(1);
    bench.ask(call, 900).unwrap();
    bench.wait(GATHERING);
    bench.table.withdrawn(call, Ticket(900));
    assert!(bench.answer(call, legacy(BEGUN)).is_none(), "no host, no caller for the next request");
    let action = bench.resume(call, 2, &[]).unwrap().action;
    let Some(Action::Send { sent, .. }) = action else { panic!("{action:?}") };
    let action = bench.answer(sent, legacy("{}"));
    assert!(matches!(action, Some(Action::Deliver(Ended { host: Some(2), .. }, _))), "{action:?}");
    assert!(bench.table.is_clean());
}

#[test]
fn a_server_request_that_outlives_the_request_of_its_call_is_left_open() {
    let mut bench = Bench::new();
    let other = bench.call(1, Era::Modern, Bridge::HostReturns);
    let call = bench.polled_call(1);
    let either = ServerRequest { calls: vec![other, call], ..server_request(call, 900) };
    bench.table.server_request(call, either, bench.now).unwrap();
    let action = bench.answer(call, legacy(BEGUN));
    let Some(Action::Send { sent, left_open, .. }) = action else { panic!("{action:?}") };
    assert_eq!(left_open, [Ticket(900)], "the other call carries it");
    bench.ask(sent, 901).unwrap();
    let presented = bench.wait(GATHERING);
    let [Action::Present { requests, .. }] = &presented[..] else { panic!("{presented:?}") };
    assert_eq!(requests.iter().map(|request| request.number.0).collect::<Vec<_>>(), [901]);
    bench.table.cancel(call);
    bench.table.cancel(other);
    assert!(bench.table.is_clean());
}

#[test]
fn a_server_request_round_repeats_the_call_under_a_new_ticket() {
    let mut bench = Bench::new();
    let call = bench.legacy_call(1);
    let Some(Action::AskHost { call: of, requests, .. }) = bench.answer(call, modern(ASKS)) else {
        panic!("asked")
    };
    assert_eq!((of, requests[0].key.as_str()), (call, "k"));
    let result = Ok(Bytes::from_static(br#"{"roots":[]}"#));
    let action = bench.table.host_answered(call, "k".to_owned(), result, &bench.tickets);
    let Some(Action::Send { sent, next, .. }) = action else { panic!("sent again") };
    let text = next.request.render(sent.0);
    assert!(text.starts_with(format!(r#"{{"jsonrpc":"2.0","id":{}"#, sent.0).as_bytes()));
    assert!(String::from_utf8_lossy(&text).contains(r#""inputResponses":{"k":{"roots":[]}}"#));
    assert!(bench.answer(call, modern("{}")).is_none(), "the first ticket counts no more");
    assert!(matches!(bench.answer(sent, modern("{}")), Some(Action::Deliver(..))));
    assert!(bench.table.is_clean());
}

#[test]
fn a_host_that_fails_or_does_not_answer_ends_the_round() {
    let mut bench = Bench::new();
    let call = bench.legacy_call(1);
    bench.answer(call, modern(ASKS));
    let declined = bench.table.host_answered(call, "k".to_owned(), Err("no".to_owned()), &bench.tickets);
    assert!(matches!(declined, Some(Action::Fail(_, Interruption::HostFailed(_)))));
    let call = bench.legacy_call(1);
    bench.answer(call, modern(ASKS));
    assert!(matches!(bench.wait(HOST_PATIENCE)[..], [Action::Fail(_, Interruption::CannotAsk { .. })]));
    assert!(bench.table.is_clean());
}

/// An `input_required` result with `count` requests, each with `bytes` bytes of text.
fn asks(count: usize, bytes: usize) -> Answer {
    let entry =
        |n: usize| format!(r#""{n}":{{"method":"roots/list","params":{{"x":"{}"}}}}"#, "x".repeat(bytes));
    let entries: Vec<String> = (0..count).map(entry).collect();
    modern(&format!(r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#, entries.join(",")))
}

#[test]
fn an_input_required_result_with_too_many_requests_ends_its_call() {
    let mut bench = Bench::new();
    for (answer, why) in [
        (asks(5000, 0), "it asks for more than 64 answers at once"),
        (asks(2, MAX_REQUEST_BYTES / 2), "its requests are longer than 1048576 bytes"),
    ] {
        let call = bench.legacy_call(1);
        let Some(Action::Fail(_, interruption)) = bench.answer(call, answer) else { panic!("{why}") };
        let told = format!("server \"s\" sent a request that the host cannot answer: {why}");
        assert_eq!(interruption.to_string(), told);
    }
    assert!(bench.table.is_clean());
}

#[test]
fn the_input_requests_of_all_rounds_of_a_call_are_limited() {
    let mut bench = Bench::new();
    let (call, mut sent, mut asked) = (bench.legacy_call(1), None, 0);
    loop {
        match bench.answer(sent.unwrap_or(call), asks(MAX_REQUESTS, 0)) {
            Some(Action::AskHost { requests, .. }) => {
                asked += requests.len();
                for request in requests {
                    let result = Ok(Bytes::from_static(b"{}"));
                    let action = bench.table.host_answered(call, request.key, result, &bench.tickets);
                    if let Some(Action::Send { sent: again, .. }) = action {
                        sent = Some(again);
                    }
                }
            }
            Some(Action::Fail(_, Interruption::CannotAsk { .. })) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(asked, MAX_REQUESTS_OF_CALL);
    assert!(bench.table.is_clean());
}

#[test]
fn a_server_that_asks_without_end_is_stopped() {
    let mut bench = Bench::new();
    let mut sent = bench.legacy_call(1);
    let call = sent;
    for round in 0..=MAX_ROUNDS {
        match bench.answer(sent, modern(ASKS)) {
            Some(Action::AskHost { .. }) => {
                let result = Ok(Bytes::from_static(b"{}"));
                let action = bench.table.host_answered(call, "k".to_owned(), result, &bench.tickets);
                let Some(Action::Send { sent: again, .. }) = action else { panic!("{action:?}") };
                sent = again;
            }
            Some(Action::Fail(_, Interruption::CannotAsk { .. })) => assert_eq!(round, MAX_ROUNDS),
            other => panic!("{other:?}"),
        }
    }
    assert!(bench.table.is_clean());
}

#[test]
fn a_paused_run_waits_for_its_host_and_not_for_ever() {
    let mut bench = Bench::new();
    let (kept, forgotten) = (bench.tickets.next(), bench.tickets.next());
    let until = bench.now + HOST_PATIENCE;
    bench.table.pause(kept, "kept", until);
    bench.table.pause(forgotten, "forgotten", until);
    assert_eq!(bench.table.resume_run(kept), Ok("kept"));
    assert_eq!(bench.table.resume_run(kept), Err(ResumeError::Ended), "good once");
    bench.now += HOST_PATIENCE;
    assert_eq!(bench.table.due(bench.now, &bench.tickets).1, ["forgotten"]);
    assert!(bench.table.is_clean());
}

#[test]
fn calls_that_wait_for_hosts_are_limited() {
    let mut bench = Bench::new();
    for host in 0..u32::try_from(MAX_AWAY).unwrap() {
        let call = bench.call(host, Era::Modern, Bridge::HostReturns);
        bench.ask(call, u64::from(host)).unwrap();
    }
    let late = bench.call(0, Era::Modern, Bridge::HostReturns);
    assert_eq!(bench.ask(late, 1), Err(ServerRequestError::TooMany));
}

/// What may happen next in a schedule.
#[derive(Debug, Clone, Copy)]
enum Move {
    Begin(u8),
    Answer(usize, u8),
    Ask(usize),
    HostReplies(usize, bool),
    Return(usize),
    Cancel(usize),
    Wait(u64),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        (0..3u8).prop_map(Move::Begin),
        (0..8usize, 0..3u8).prop_map(|(at, what)| Move::Answer(at, what)),
        (0..8usize).prop_map(Move::Ask),
        (0..8usize, any::<bool>()).prop_map(|(at, fails)| Move::HostReplies(at, fails)),
        (0..8usize).prop_map(Move::Return),
        (0..8usize).prop_map(Move::Cancel),
        (1..400_000u64).prop_map(Move::Wait),
    ];
    proptest::collection::vec(one, 1..60)
}

/// Follows every call of a schedule: its latest ticket at the server, the open requests, and how often it ended.
#[derive(Default)]
struct Followed {
    sent: Vec<Ticket>,
    calls: Vec<Ticket>,
    keys: Vec<Vec<String>>,
    ended: Vec<usize>,
}

impl Followed {
    fn note(&mut self, action: Option<Action<u32>>) {
        match action {
            Some(Action::Deliver(ended, _) | Action::Fail(ended, _) | Action::Expire(ended, _)) => {
                self.end(ended.sent);
            }
            Some(Action::Send { call, sent, .. }) => {
                let at = self.at(call);
                self.sent[at] = sent;
            }
            Some(Action::AskHost { call, requests, .. }) => {
                let at = self.at(call);
                self.keys[at] = requests.into_iter().map(|request| request.key).collect();
            }
            Some(Action::Present { .. }) | None => {}
        }
    }

    fn at(&self, call: Ticket) -> usize {
        self.calls.iter().position(|known| *known == call).expect("a call of this schedule")
    }

    fn end(&mut self, sent: Ticket) {
        let at = self.sent.iter().position(|known| *known == sent).expect("a call of this schedule");
        self.ended[at] += 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_call_ends_exactly_once(moves in moves()) {
        let (mut bench, mut followed) = (Bench::new(), Followed::default());
        for step in moves {
            let pick = |at: usize| followed.calls.get(at % followed.calls.len().max(1)).copied();
            match step {
                Move::Begin(kind) => {
                    let host = u32::try_from(followed.calls.len()).unwrap();
                    let call = match kind {
                        0 => bench.call(host, Era::Modern, Bridge::HostReturns),
                        1 => bench.polled_call(host),
                        _ => bench.legacy_call(host),
                    };
                    followed.calls.push(call);
                    followed.sent.push(call);
                    followed.keys.push(Vec::new());
                    followed.ended.push(0);
                }
                Move::Answer(at, what) => if let Some(call) = pick(at) {
                    let sent = followed.sent[followed.at(call)];
                    let answer = match what {
                        0 => modern(ASKS),
                        1 => legacy(BEGUN),
                        _ => modern("{}"),
                    };
                    let action = bench.answer(sent, answer);
                    followed.note(action);
                },
                Move::Ask(at) => if let Some(call) = pick(at) {
                    let sent = followed.sent[followed.at(call)];
                    let id = bench.tickets.next().0;
                    let _ = bench.ask(sent, id);
                },
                Move::HostReplies(at, fails) => if let Some(call) = pick(at) {
                    let index = followed.at(call);
                    if let Some(key) = followed.keys[index].pop() {
                        let result = if fails { Err("no".to_owned()) } else { Ok(Bytes::from_static(b"{}")) };
                        let action = bench.table.host_answered(call, key, result, &bench.tickets);
                        followed.note(action);
                    }
                },
                Move::Return(at) => if let Some(call) = pick(at)
                    && let Ok(resumed) = bench.resume(call, 0, &[])
                {
                    followed.note(resumed.action);
                },
                Move::Cancel(at) => if let Some(call) = pick(at)
                    && let Some(ended) = bench.table.cancel(call)
                {
                    followed.end(ended.sent);
                },
                Move::Wait(milliseconds) => {
                    for action in bench.wait(Duration::from_millis(milliseconds)) {
                        followed.note(Some(action));
                    }
                }
            }
            prop_assert!(followed.ended.iter().all(|times| *times <= 1));
        }
        for call in followed.calls.clone() {
            if let Some(ended) = bench.table.cancel(call) {
                followed.end(ended.sent);
            }
        }
        prop_assert!(followed.ended.iter().all(|times| *times == 1), "{:?}", followed.ended);
        prop_assert!(bench.table.is_clean());
    }
}
