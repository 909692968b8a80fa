//! The opening without a runtime: a table of every order in which a server may answer.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    era::{Era, MODERN_VERSION},
    exchange::{Ticket, Tickets},
    host_registry::HostRegistry,
    size_limit,
    wire::write,
};
use serde_json::{Value, json};

use super::{
    OpenError,
    machine::{Event, Opening, Output},
};
use crate::http::TransportError;

const DISCOVER: &str = "server/discover";
const INITIALIZE: &str = "initialize";

#[derive(Debug, Clone, Copy)]
enum Step {
    /// plugbay sends this request, and nothing else.
    Sends(&'static str),
    /// plugbay sends this response, notification or line.
    SendsMessage(&'static str),
    /// The server answers the request with capabilities.
    Answers(&'static str),
    /// The server answers the request with an empty result.
    AnswersNothing(&'static str),
    /// The server answers the request with a message above the limit.
    AnswersTooMuch(&'static str),
    Refuses(&'static str),
    /// The server refuses `server/discover` for its version, but lists it as supported.
    RefusesVersion,
    /// The request fails with this HTTP status.
    Fails(&'static str, u16),
    /// The server sends this message.
    Says(&'static str),
    /// Nothing comes until the deadline, in this many seconds.
    Waits(u64),
    /// There is no deadline.
    WaitsForEver,
    Closes,
}
use Step::{
    Answers, AnswersNothing, AnswersTooMuch, Closes, Fails, Refuses, RefusesVersion, Says, Sends,
    SendsMessage, Waits, WaitsForEver,
};

#[derive(Debug, PartialEq, Eq)]
enum End {
    Modern,
    Legacy { asked_in_vain: bool },
    Closed { probing: bool },
    Refused,
    Undelivered,
}
use End::{Closed, Legacy, Modern, Refused, Undelivered};

/// A connection that keeps responses in order, and one on which they may overtake each other.
const PIPE: bool = false;
const HTTP: bool = true;

struct Script<'a> {
    opening: Opening<'a>,
    now: Instant,
    requests: HashMap<String, Ticket>,
}

impl Script<'_> {
    fn step(&mut self, step: Step) {
        let capabilities = || json!({ "capabilities": { "tools": {} } });
        match step {
            Sends(method) => self.sends(method),
            SendsMessage(expected) => self.sends_message(expected),
            Answers(method) => self.answers(method, &capabilities()),
            AnswersNothing(method) => self.answers(method, &json!({})),
            AnswersTooMuch(method) => {
                let instructions = "x".repeat(size_limit::OPENING);
                self.answers(method, &json!({ "capabilities": {}, "instructions": instructions }));
            }
            Refuses(method) => self.refuses(method, &json!({ "code": -32601, "message": "no" })),
            RefusesVersion => {
                let data = json!({ "supported": ["2024-11-05", MODERN_VERSION] });
                self.refuses(DISCOVER, &json!({ "code": -32022, "message": "version", "data": data }));
            }
            Fails(method, code) => {
                let error = TransportError::Status { code, text: String::new(), challenge: None };
                self.event(Event::RequestFailed { ticket: self.requests[method], error });
            }
            Says(message) => self.event(Event::Message(Bytes::from_static(message.as_bytes()))),
            Waits(seconds) => {
                let Output::Wait(Some(deadline)) = self.opening.poll() else { panic!("it does not wait") };
                assert_eq!(deadline - self.now, Duration::from_secs(seconds));
                self.now = deadline;
                self.event(Event::Deadline);
            }
            WaitsForEver => assert!(matches!(self.opening.poll(), Output::Wait(None))),
            Closes => self.event(Event::Closed),
        }
    }

    fn sends(&mut self, method: &str) {
        match self.opening.poll() {
            Output::Request(ticket, message) => {
                let request: Value = serde_json::from_slice(&message).unwrap();
                assert_eq!((&request["method"], &request["id"]), (&json!(method), &json!(ticket.0)));
                self.requests.insert(method.to_owned(), ticket);
            }
            output => panic!("{output:?} instead of {method}"),
        }
    }

    fn sends_message(&mut self, expected: &str) {
        match self.opening.poll() {
            Output::Respond(message) | Output::Keep(message) => assert_eq!(message, expected),
            output => panic!("{output:?} instead of {expected}"),
        }
    }

    fn answers(&mut self, method: &str, result: &Value) {
        let id = self.requests[method].0.to_string();
        self.event(Event::Message(write::result(id.as_bytes(), result.to_string().as_bytes())));
    }

    fn refuses(&mut self, method: &str, error: &Value) {
        let id = self.requests[method].0.to_string();
        self.event(Event::Message(write::error(id.as_bytes(), error.to_string().as_bytes())));
    }

    fn event(&mut self, event: Event) {
        self.opening.handle(event, self.now);
    }

    /// The outcome of the opening, with the messages that belong to it.
    fn end(mut self) -> End {
        let agreed = match self.opening.poll() {
            Output::Agreed(version) => version,
            Output::Failed(OpenError::Closed { probing }) => return Closed { probing },
            Output::Failed(OpenError::Refused(_)) => return Refused,
            Output::Failed(OpenError::Undelivered(_)) => return Undelivered,
            output => panic!("no end: {output:?}"),
        };
        if agreed.is_some() {
            let Output::Notify(initialized) = self.opening.poll() else { panic!("not initialized") };
            assert_eq!(initialized, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        let Output::Opened(opened) = self.opening.poll() else { panic!("not opened") };
        assert!(opened.capabilities.tools);
        match opened.era {
            Some(Era::Modern) => Modern,
            _ => Legacy { asked_in_vain: opened.asked_in_vain },
        }
    }
}

fn check(cases: &[(&str, Era, bool, &[Step], End)]) {
    for (what, first, reorders_responses, steps, end) in cases {
        let (tickets, registry) = (Tickets::default(), HostRegistry::default());
        let now = Instant::now();
        let opening = Opening::new(*first, *reorders_responses, &tickets, &registry, now);
        let mut script = Script { opening, now, requests: HashMap::new() };
        for step in *steps {
            script.step(*step);
        }
        assert_eq!(script.end(), *end, "{what}");
    }
}

#[test]
fn server_discover_opens_modern_servers() {
    check(&[
        ("at once", Era::Modern, PIPE, &[Sends(DISCOVER), Answers(DISCOVER)], Modern),
        (
            "refused and listed in one error",
            Era::Modern,
            HTTP,
            &[Sends(DISCOVER), RefusesVersion, Sends(DISCOVER), Answers(DISCOVER)],
            Modern,
        ),
        (
            "late, and initialize is ignored",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), WaitsForEver, Answers(DISCOVER), Waits(2)],
            Modern,
        ),
        (
            "late, and initialize is refused",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), Answers(DISCOVER), Refuses(INITIALIZE)],
            Modern,
        ),
        (
            "late, behind the refusal of initialize",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), Refuses(INITIALIZE), Answers(DISCOVER)],
            Modern,
        ),
        (
            "overtaken by initialize",
            Era::Modern,
            HTTP,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), Answers(INITIALIZE), Answers(DISCOVER)],
            Modern,
        ),
        (
            "late over HTTP",
            Era::Modern,
            HTTP,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), Answers(DISCOVER)],
            Modern,
        ),
        (
            "upgraded since it was legacy",
            Era::Legacy,
            PIPE,
            &[Sends(INITIALIZE), Refuses(INITIALIZE), Sends(DISCOVER), Answers(DISCOVER)],
            Modern,
        ),
    ]);
}

#[test]
fn initialize_opens_legacy_servers() {
    let answered = || Legacy { asked_in_vain: false };
    let in_vain = || Legacy { asked_in_vain: true };
    let null_error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#;
    check(&[
        ("first", Era::Legacy, PIPE, &[Sends(INITIALIZE), WaitsForEver, Answers(INITIALIZE)], answered()),
        (
            "discover refused",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), Refuses(DISCOVER), Sends(INITIALIZE), WaitsForEver, Answers(INITIALIZE)],
            answered(),
        ),
        (
            "discover refused without an id",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), Says(null_error), Sends(INITIALIZE), Answers(INITIALIZE)],
            answered(),
        ),
        (
            "discover answered with nothing in it",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), AnswersNothing(DISCOVER), Sends(INITIALIZE), Answers(INITIALIZE)],
            answered(),
        ),
        (
            "version refused twice",
            Era::Modern,
            PIPE,
            &[
                Sends(DISCOVER),
                RefusesVersion,
                Sends(DISCOVER),
                RefusesVersion,
                Sends(INITIALIZE),
                Answers(INITIALIZE),
            ],
            answered(),
        ),
        (
            "discover ignored",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), Answers(INITIALIZE)],
            in_vain(),
        ),
        (
            "discover refused late",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), Refuses(DISCOVER), Answers(INITIALIZE)],
            answered(),
        ),
        (
            "both answered late",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), Answers(DISCOVER), Answers(INITIALIZE)],
            answered(),
        ),
        (
            "discover still unanswered over HTTP",
            Era::Modern,
            HTTP,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), Answers(INITIALIZE), Waits(5)],
            in_vain(),
        ),
        (
            "discover refused late over HTTP",
            Era::Modern,
            HTTP,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), Answers(INITIALIZE), Refuses(DISCOVER)],
            answered(),
        ),
        (
            "discover not allowed over HTTP",
            Era::Modern,
            HTTP,
            &[Sends(DISCOVER), Fails(DISCOVER, 400), Sends(INITIALIZE), Answers(INITIALIZE)],
            answered(),
        ),
    ]);
}

#[test]
fn an_opening_fails_with_the_error_of_initialize() {
    check(&[
        ("closed by discover", Era::Modern, PIPE, &[Sends(DISCOVER), Closes], Closed { probing: true }),
        ("closed by initialize", Era::Legacy, PIPE, &[Sends(INITIALIZE), Closes], Closed { probing: false }),
        (
            "closed behind a late answer",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), Answers(DISCOVER), Closes],
            Closed { probing: false },
        ),
        (
            "both refused",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), Refuses(DISCOVER), Sends(INITIALIZE), Refuses(INITIALIZE)],
            Refused,
        ),
        (
            "both refused, legacy first",
            Era::Legacy,
            PIPE,
            &[Sends(INITIALIZE), Refuses(INITIALIZE), Sends(DISCOVER), Refuses(DISCOVER)],
            Refused,
        ),
        (
            "refused, and discover never answered",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), Waits(2), Sends(INITIALIZE), Refuses(INITIALIZE), Waits(10)],
            Refused,
        ),
        (
            "too much",
            Era::Modern,
            PIPE,
            &[Sends(DISCOVER), AnswersTooMuch(DISCOVER), Sends(INITIALIZE), AnswersTooMuch(INITIALIZE)],
            Refused,
        ),
        ("unauthorized", Era::Modern, HTTP, &[Sends(DISCOVER), Fails(DISCOVER, 401)], Undelivered),
        (
            "unauthorized, legacy",
            Era::Legacy,
            HTTP,
            &[Sends(INITIALIZE), Fails(INITIALIZE, 401)],
            Undelivered,
        ),
        (
            "no such path",
            Era::Modern,
            HTTP,
            &[Sends(DISCOVER), Fails(DISCOVER, 404), Sends(INITIALIZE), Fails(INITIALIZE, 404)],
            Undelivered,
        ),
    ]);
}

#[test]
fn server_requests_during_an_opening_are_rejected_and_other_lines_kept() {
    let pong = r#"{"jsonrpc":"2.0","id":"p","result":{}}"#;
    let unknown = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}"#;
    check(&[(
        "a talkative server",
        Era::Modern,
        PIPE,
        &[
            Sends(DISCOVER),
            Says(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#),
            SendsMessage(pong),
            Says(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#),
            SendsMessage(unknown),
            Says(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#),
            Says("[1,"),
            SendsMessage("[1,"),
            Says(r#"{"jsonrpc":"2.0","id":999,"result":{}}"#),
            Answers(DISCOVER),
        ],
        Modern,
    )]);
}

#[test]
fn initialize_declares_the_client_capabilities_of_its_time() {
    let (tickets, registry) = (Tickets::default(), HostRegistry::default());
    let now = Instant::now();
    let mut opening = Opening::new(Era::Modern, PIPE, &tickets, &registry, now);
    let Output::Request(discover, _) = opening.poll() else { panic!("no request") };
    registry.add_capabilities(ClientCapabilities { roots: true, ..ClientCapabilities::NONE });
    let error = TransportError::SessionGone;
    opening.handle(Event::RequestFailed { ticket: discover, error }, now);
    let Output::Request(initialize, message) = opening.poll() else { panic!("no request") };
    let request: Value = serde_json::from_slice(&message).unwrap();
    assert!(request["params"]["capabilities"]["roots"].is_object(), "{request}");
    let id = initialize.0.to_string();
    let result = br#"{"protocolVersion":"2025-03-26","capabilities":{},"instructions":"be kind"}"#;
    opening.handle(Event::Message(write::result(id.as_bytes(), result)), now);
    assert!(matches!(opening.poll(), Output::Agreed(Some(version)) if version == "2025-03-26"));
    assert!(matches!(opening.poll(), Output::Notify(_)));
    let Output::Opened(opened) = opening.poll() else { panic!("not opened") };
    assert!(opened.declared.roots);
    assert_eq!(opened.instructions.as_deref(), Some("be kind"));
}
