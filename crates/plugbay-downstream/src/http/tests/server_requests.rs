//! Server requests over HTTP: on whose stream they are sent, and who may answer.

use plugbay_core::{
    era::{CAPABILITIES_KEY, MODERN_VERSION, VERSION_KEY},
    exchange::ServerRequestError,
};
use serde_json::{Value, json};

use super::harness::{Harness, Host, fitting, get, post, within};
use crate::scripted::{INITIALIZED, call, cancel, request, server_request, snapshot};

const ALL: &str = r#"{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{}}"#;

impl Harness {
    /// Opens a session of a host with these capabilities.
    pub(super) async fn open_with(&self, capabilities: &str) -> String {
        let params = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}"#);
        let opened = self.ask(post(&[], &request(1, "initialize", &params))).await;
        let id = opened.headers["mcp-session-id"].clone();
        assert_eq!(self.ask(within(&id, INITIALIZED)).await.status, 202);
        id
    }

    pub(super) async fn answer(&self, session: &str, id: &Value, result: &Value) {
        let body = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        assert_eq!(self.ask(within(session, &body)).await.status, 202);
    }
}

/// A session, and the connection that listens to its stream.
async fn listening() -> (Harness, String, Host) {
    let harness = Harness::new();
    let session = harness.open_with(ALL).await;
    let mut listener = harness.connect();
    listener.open_stream(get(&session, None)).await;
    listener.event().await; // the empty one that gives an id
    (harness, session, listener)
}

#[tokio::test(start_paused = true)]
async fn a_server_request_is_sent_on_the_stream_of_its_call() {
    let (mut harness, session, mut listener) = listening().await;
    let mut host = harness.connect();
    host.say(within(&session, &call(1))).await;
    let forwarded = harness.servers.forwarded().await;
    forwarded.ask(900, "roots/list", "{}").unwrap();
    let reply = host.reply().await;
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    let mut asked = host.hear_or_empty().await;
    if asked.is_null() {
        asked = host.hear().await;
    }
    assert_eq!((&asked["id"], &asked["method"]), (&json!(900), &json!("roots/list")));
    listener.hear_nothing().await;
    harness.answer(&session, &asked["id"], &json!({ "roots": [] })).await;
    assert_eq!(harness.servers.replied().await.0.0, 900);
    forwarded.answer("{}");
    assert_eq!(host.hear_answer().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_request_without_a_call_is_sent_on_the_session_stream() {
    let (mut harness, session, mut listener) = listening().await;
    harness
        .host_registry
        .only()
        .expect("one host")
        .server_request(None, server_request(900, "roots/list", "{}"))
        .unwrap();
    assert_eq!(listener.hear().await["id"], 900);
    harness.answer(&session, &json!(900), &json!({ "roots": [] })).await;
    assert_eq!(harness.servers.replied().await.0.0, 900);
    let other = harness.open_with(ALL).await;
    assert!(harness.host_registry.only().is_none(), "nobody could tell which of them is meant");
    let gone = harness.ask(super::harness::http("DELETE", "/mcp", &[("mcp-session-id", &other)], "")).await;
    assert_eq!(gone.status, 204);
    assert!(harness.host_registry.only().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_server_request_is_sent_on_the_session_stream_if_the_call_accepts_json_only() {
    let (mut harness, session, mut listener) = listening().await;
    let mut host = harness.connect();
    let headers = [("mcp-session-id", &*session), ("accept", "application/json")];
    host.say(post(&headers, &call(1))).await;
    let forwarded = harness.servers.forwarded().await;
    forwarded.ask(900, "roots/list", "{}").unwrap();
    assert_eq!(listener.hear().await["id"], 900);
    harness.answer(&session, &json!(900), &json!({ "roots": [] })).await;
    assert_eq!(harness.servers.replied().await.0.0, 900);
    forwarded.answer("{}");
    assert_eq!(host.reply().await.json()["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn server_requests_to_two_hosts_never_cross() {
    let mut harness = Harness::new();
    let sessions = [harness.open_with(ALL).await, harness.open_with(ALL).await];
    let mut hosts = [harness.connect(), harness.connect()];
    let mut forwarded = Vec::new();
    for (host, session) in hosts.iter_mut().zip(&sessions) {
        host.say(within(session, &call(1))).await; // the same id in both
        forwarded.push(harness.servers.forwarded().await);
    }
    for (number, forwarded) in [900, 901].into_iter().zip(&forwarded) {
        forwarded.ask(number, "elicitation/create", "{}").unwrap();
    }
    for (number, host) in [900, 901].into_iter().zip(&mut hosts) {
        host.reply().await;
        let mut asked = host.hear_or_empty().await;
        if asked.is_null() {
            asked = host.hear().await;
        }
        assert_eq!(asked["id"], number);
        host.hear_nothing().await;
    }
    // A host cannot answer a request that the other host was sent.
    harness.answer(&sessions[0], &json!(901), &json!({ "action": "accept" })).await;
    harness.servers.nothing_forwarded().await;
    harness.answer(&sessions[1], &json!(901), &json!({ "action": "accept" })).await;
    assert_eq!(harness.servers.replied().await.0.0, 901);
    // One host leaves: only its own server request ends.
    let gone =
        harness.ask(super::harness::http("DELETE", "/mcp", &[("mcp-session-id", &sessions[0])], "")).await;
    assert_eq!(gone.status, 204);
    let (number, why) = harness.servers.replied().await;
    assert_eq!((number.0, why), (900, ServerRequestError::HostGone.to_string()));
    assert_eq!(harness.servers.cancelled().await.0, forwarded[0].ticket());
    forwarded[1].answer(r#"{"second":1}"#);
    assert_eq!(hosts[1].hear_answer().await["result"]["second"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_belongs_to_the_holder_of_its_token() {
    let mut harness = Harness::with(snapshot(&["echo"], true), &["one", "two"]);
    let (mut hosts, mut forwarded) = (Vec::new(), Vec::new());
    for token in ["one", "one", "two"] {
        let mut host = harness.connect();
        host.say(modern_call(token, 1, "")).await;
        hosts.push(host);
        forwarded.push(harness.servers.forwarded().await);
    }
    let same = |one: usize, other: usize| forwarded[one].caller().is_same_host(forwarded[other].caller());
    assert_eq!((same(0, 1), same(1, 2)), (true, false), "every request of a caller is that caller's");
    let mut harness = Harness::new();
    for _ in 0..2 {
        let session = harness.open_with(ALL).await;
        let mut host = harness.connect();
        host.say(within(&session, &call(1))).await;
        hosts.push(host);
        forwarded.push(harness.servers.forwarded().await);
    }
    let same = |one: usize, other: usize| forwarded[one].caller().is_same_host(forwarded[other].caller());
    assert_eq!((same(3, 3), same(3, 4)), (true, false), "a session is a host, with a token or without");
}

#[tokio::test(start_paused = true)]
async fn a_server_request_is_cancelled_on_a_stream_that_is_open() {
    let (mut harness, session, mut listener) = listening().await;
    let mut hosts = [harness.connect(), harness.connect()];
    let mut forwarded = Vec::new();
    for (id, host) in [1, 2].into_iter().zip(&mut hosts) {
        host.say(within(&session, &call(id))).await;
        forwarded.push(harness.servers.forwarded().await);
    }
    let calls = [forwarded[0].ticket(), forwarded[1].ticket()];
    forwarded[1].ask_about(&calls, 900, "roots/list", "{}").unwrap();
    forwarded[1].answer("{}");
    hosts[1].reply().await;
    while hosts[1].hear_or_empty().await["id"] != 2 {} // behind the server_request
    forwarded[1].withdraw(900);
    assert_eq!(listener.hear().await["params"]["requestId"], 900);
}

#[tokio::test(start_paused = true)]
async fn server_requests_follow_the_capabilities_of_each_host() {
    let mut harness = Harness::new();
    let (able, unable) = (harness.open_with(ALL).await, harness.open_with("{}").await);
    for (session, outcome) in [(&able, Ok(())), (&unable, Err(ServerRequestError::Undeclared("sampling")))] {
        let mut host = harness.connect();
        host.say(within(session, &call(7))).await;
        let forwarded = harness.servers.forwarded().await;
        assert_eq!(forwarded.ask(900, "sampling/createMessage", "{}"), outcome);
    }
    assert_eq!(
        harness.host_registry.client_capabilities(),
        plugbay_core::capabilities::ClientCapabilities::ALL,
        "any host may come"
    );
}

#[tokio::test(start_paused = true)]
async fn cancellation_of_a_call_cancels_its_server_requests() {
    let mut harness = Harness::new();
    let session = harness.open_with(ALL).await;
    let mut host = harness.connect();
    host.say(within(&session, &call(1))).await;
    let forwarded = harness.servers.forwarded().await;
    forwarded.ask(900, "roots/list", "{}").unwrap();
    host.reply().await;
    while host.hear_or_empty().await["id"] != 900 {} // behind what only gives an id
    assert_eq!(harness.ask(within(&session, &cancel(1))).await.status, 202);
    assert_eq!(host.hear().await["params"]["requestId"], 900);
    assert_eq!(harness.servers.cancelled().await.0, forwarded.ticket());
}

// --- modern hosts

fn modern_call(token: &str, id: u64, members: &str) -> String {
    let capabilities: Value = serde_json::from_str(ALL).unwrap();
    let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: capabilities });
    let body = request(id, "tools/call", &format!(r#"{{"_meta":{meta},"name":"s__echo"{members}}}"#));
    let bearer = format!("Bearer {token}");
    let mut headers = fitting("tools/call", "s__echo").to_vec();
    headers.push(("authorization", &bearer));
    post(&headers, &body)
}

fn retry(token: &str, id: u64, state: &Value, responses: &Value) -> String {
    modern_call(token, id, &format!(r#","inputResponses":{responses},"requestState":{state}"#))
}

#[tokio::test(start_paused = true)]
async fn a_modern_host_answers_an_elicitation_on_another_connection() {
    let mut harness = Harness::with(snapshot(&["echo"], true), &["one", "two"]);
    let mut host = harness.connect();
    host.say(modern_call("one", 1, "")).await;
    let forwarded = harness.servers.forwarded().await;
    forwarded.ask(900, "elicitation/create", r#"{"message":"m"}"#).unwrap();
    let answer = host.reply().await.json();
    assert_eq!(answer["result"]["inputRequests"]["900"]["params"]["message"], "m");
    drop(host); // to close this connection takes nothing back: its request was answered
    harness.servers.nothing_forwarded().await;
    let given = &answer["result"]["requestState"];
    let accepted = json!({ "900": { "action": "accept" } });

    let foreign = harness.ask(retry("two", 2, given, &accepted)).await;
    assert_eq!(foreign.code(), -32602, "{foreign:?}");
    harness.servers.nothing_forwarded().await;

    let mut host = harness.connect();
    host.say(retry("one", 3, given, &accepted)).await;
    assert_eq!(harness.servers.replied().await.1, r#"{"action":"accept"}"#);
    forwarded.ask(901, "roots/list", "{}").unwrap(); // another round
    let answer = host.reply().await.json();
    assert_eq!(answer["id"], 3);
    let given = &answer["result"]["requestState"];
    let mut host = harness.connect();
    host.say(retry("one", 4, given, &json!({ "901": {} }))).await;
    harness.servers.replied().await;
    forwarded.answer(r#"{"done":1}"#);
    let answer = host.reply().await.json();
    assert_eq!((&answer["id"], &answer["result"]["done"]), (&json!(4), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn closing_the_resumed_connection_cancels_the_call() {
    let mut harness = Harness::with(snapshot(&["echo"], true), &["one"]);
    let mut host = harness.connect();
    host.say(modern_call("one", 1, "")).await;
    let forwarded = harness.servers.forwarded().await;
    forwarded.ask(900, "roots/list", "{}").unwrap();
    let answer = host.reply().await.json();
    let given = &answer["result"]["requestState"];
    let mut host = harness.connect();
    host.say(retry("one", 2, given, &json!({ "900": {} }))).await;
    harness.servers.replied().await;
    drop(host);
    assert_eq!(harness.servers.cancelled().await.0, forwarded.ticket());
    let late = harness.ask(retry("one", 3, given, &json!({ "900": {} }))).await;
    assert!(late.body.contains("has ended"), "{late:?}");
}

/// Many hosts share a gateway over HTTP, and a login there belongs to its operator.
#[tokio::test(start_paused = true)]
async fn a_host_over_http_is_not_asked_for_a_login() {
    let (mut harness, session, _listener) = listening().await;
    let mut host = harness.connect();
    host.say(within(&session, &call(1))).await;
    assert!(!harness.servers.forwarded().await.can_log_in());
    let capabilities: Value = serde_json::from_str(ALL).unwrap();
    let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: capabilities });
    let params = format!(r#"{{"_meta":{meta},"name":"s__echo","arguments":{{}}}}"#);
    let mut modern = harness.connect();
    modern.say(post(&fitting("tools/call", "s__echo"), &request(2, "tools/call", &params))).await;
    assert!(!harness.servers.forwarded().await.can_log_in());
}
