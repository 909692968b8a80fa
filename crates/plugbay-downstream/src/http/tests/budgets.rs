//! A caller that uses up its share gets an error, and no other caller is rejected.

use bytes::Bytes;
use plugbay_core::{
    exchange::{ServerNotification, Topic},
    level::Level,
};
use serde_json::json;
use tokio::time::sleep;

use super::harness::{Harness, Host, LIMITS, Reply, get, http, post, stateless, within};
use crate::{
    http::Peer,
    scripted::{INITIALIZE, INITIALIZED, SECOND, call, list, modern, server, snapshot},
};

fn peer(number: u8) -> Peer {
    Peer::Address([10, 0, 0, number].into())
}

/// A gateway with two callers.
fn two_callers() -> Harness {
    Harness::with(snapshot(&["echo"], true), &["one", "two"])
}

/// The same request with the token of a caller.
fn of(token: &str, request: &str) -> String {
    request.replacen("\r\n", &format!("\r\nauthorization: Bearer {token}\r\n"), 1)
}

fn calling() -> String {
    stateless("tools/call", "s__echo", &modern(1, "tools/call", r#","name":"s__echo""#))
}

fn text(length: usize) -> String {
    format!("{{\"x\":\"{}\"}}", "x".repeat(length))
}

const LARGE: usize = 4_000_000;
/// The size of an answer that hyper buffers as a whole.
const BUFFERED: usize = 50_000;

fn log(bytes: usize) -> ServerNotification {
    let params = format!(r#"{{"level":"info","data":"{}"}}"#, "x".repeat(bytes));
    let message = format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#);
    ServerNotification {
        server: server(),
        message: Bytes::from(message),
        topic: Topic::Log(Some(Level::Info)),
    }
}

async fn open(harness: &Harness, token: &str) -> Reply {
    harness.ask(of(token, &post(&[], INITIALIZE))).await
}

async fn opened(harness: &Harness, token: &str) -> String {
    let opened = open(harness, token).await;
    assert_eq!(opened.status, 200, "{opened:?}");
    let id = opened.headers["mcp-session-id"].clone();
    assert_eq!(harness.ask(of(token, &within(&id, INITIALIZED))).await.status, 202);
    id
}

#[tokio::test(start_paused = true)]
async fn log_messages_for_sessions_without_a_stream_take_no_memory_of_others() {
    let harness = two_callers();
    let mut sessions = Vec::new();
    for _ in 0..150 {
        sessions.push(opened(&harness, "one").await);
    }
    for _ in 0..3 {
        harness.host_registry.each(|host| host.notified(None, &log(800_000)));
        harness.host_registry.each(|host| host.notified(None, &log(10)));
    }
    let other = opened(&harness, "two").await;
    assert_eq!(harness.ask(of("two", &within(&other, &list(1)))).await.status, 200, "others are served");
    let session = &sessions[0];
    assert_eq!(harness.ask(of("one", &within(session, &list(1)))).await.status, 200, "and so is the caller");
    let mut host = harness.connect();
    host.open_stream(of("one", &get(session, None))).await;
    host.hear_or_empty().await;
    let dropped = host.hear().await;
    let words = "3 messages were dropped, because the host did not read them in time";
    assert_eq!(dropped["params"], json!({ "level": "warning", "logger": "plugbay", "data": words }));
    assert_eq!(host.hear().await["params"]["data"], "xxxxxxxxxx");
}

#[tokio::test(start_paused = true)]
async fn unread_answers_end_no_idle_session_that_holds_nothing() {
    let mut harness = two_callers();
    let session = opened(&harness, "one").await;
    let mut unread = Vec::new();
    for length in [LARGE, 500_000, 70_000] {
        unread.extend(leave_unread(&mut harness, "one", 15, length).await);
    }
    sleep(SECOND + SECOND / 10).await; // its sessions are searched once a second
    assert_eq!(harness.ask(of("one", &within(&session, &list(1)))).await.status, 200);
}

/// A caller that does not read its answers.
async fn leave_unread(harness: &mut Harness, token: &str, count: usize, length: usize) -> Vec<Host> {
    let mut hosts = Vec::new();
    for _ in 0..count {
        let mut host = harness.connect_through(1000);
        host.say(of(token, &calling())).await;
        hosts.push((host, harness.servers.forwarded().await));
    }
    for (_, forwarded) in &hosts {
        forwarded.answer(text(length));
    }
    hosts.into_iter().map(|(host, _)| host).collect()
}

#[tokio::test(start_paused = true)]
async fn unread_answers_of_one_caller_take_no_memory_of_others() {
    let mut harness = two_callers();
    let mut unread = leave_unread(&mut harness, "one", 20, LARGE).await;
    let refused = unread[19].reply().await;
    assert_eq!(
        (refused.status, refused.code()),
        (200, json!(-32000)),
        "80 MB are more than half of the memory"
    );
    let mut host = harness.connect();
    host.say(of("two", &calling())).await;
    harness.servers.forwarded().await.answer(text(LARGE));
    assert!(host.reply().await.body.len() > LARGE, "another caller gets its answer");
    let mut host = harness.connect();
    host.say(of("one", &calling())).await;
    harness.servers.forwarded().await.answer("{}");
    assert_eq!(host.reply().await.json()["id"], 1, "small answers reach the caller itself");
    drop(unread);
    sleep(SECOND).await;
    let mut host = harness.connect();
    host.say(of("one", &calling())).await;
    harness.servers.forwarded().await.answer(text(LARGE));
    assert!(host.reply().await.body.len() > LARGE, "and large ones when it has read the others");
}

#[tokio::test(start_paused = true)]
async fn a_slow_connection_is_not_closed_for_what_another_caller_leaves_unread() {
    let mut harness = two_callers();
    let _unread = leave_unread(&mut harness, "one", 20, LARGE).await;
    let mut slow = harness.connect_through(1000);
    slow.say(of("two", &calling())).await;
    harness.servers.forwarded().await.answer(text(LARGE));
    sleep(10 * SECOND).await;
    assert!(!slow.was_let_go().await);
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_too_many_sessions_loses_its_oldest_idle_one() {
    let harness = two_callers();
    let others = opened(&harness, "two").await;
    let first = opened(&harness, "one").await;
    for _ in 0..LIMITS.sessions {
        sleep(SECOND / 1000).await;
        assert_eq!(open(&harness, "one").await.status, 200);
    }
    assert_eq!(harness.ask(of("one", &within(&first, &list(1)))).await.status, 404, "it has ended");
    assert_eq!(harness.ask(of("two", &within(&others, &list(1)))).await.status, 200, "it goes on");
    assert_eq!(open(&harness, "two").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_caller_whose_sessions_are_all_in_use_can_open_no_more_and_others_can() {
    let mut harness = two_callers();
    let mut refused = None;
    for _ in 0..LIMITS.sessions {
        let opened = open(&harness, "one").await;
        if opened.status != 200 {
            refused = Some(opened);
            break;
        }
        let session = opened.headers["mcp-session-id"].clone();
        let mut host = harness.connect();
        host.say(of("one", &within(&session, &call(1)))).await;
        harness.servers.forwarded().await; // never answered; the call goes on without its connection
    }
    let refused = refused.expect("not all sessions are for one caller");
    assert_eq!((refused.status, &*refused.headers["retry-after"]), (429, "1"));
    assert!(refused.body.contains("too many sessions"), "{refused:?}");
    assert_eq!(open(&harness, "two").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_address_with_too_many_connections_loses_its_oldest_idle_one() {
    let harness = Harness::new();
    let mut idle: Vec<Host> =
        (0..LIMITS.connections).map(|_| harness.connect_from(peer(1), 100_000)).collect();
    let mut other = harness.connect_from(peer(2), 100_000);
    other.say(http("GET", "/healthz", &[], "")).await;
    assert_eq!(other.reply().await.status, 200, "another address is served");
    idle[0].closed().await;
    let mut newest = idle.pop().expect("one");
    newest.say(http("GET", "/healthz", &[], "")).await;
    assert_eq!(newest.reply().await.status, 200, "the newest is open");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_gives_way_gets_the_rest_of_its_answer() {
    let mut harness = Harness::new();
    let mut slow = harness.connect_from(peer(1), 1000);
    slow.say(calling()).await;
    harness.servers.forwarded().await.answer(text(BUFFERED));
    sleep(SECOND).await;
    let newer: Vec<Host> = (0..LIMITS.connections).map(|_| harness.connect_from(peer(1), 1000)).collect();
    sleep(SECOND).await;
    assert!(slow.read_to_end().await > BUFFERED);
    drop(newer);
}

#[tokio::test(start_paused = true)]
async fn an_address_whose_connections_are_all_in_use_is_rejected_and_others_are_not() {
    let mut harness = Harness::new();
    let mut busy = Vec::new();
    for _ in 0..LIMITS.connections / 2 {
        let mut host = harness.connect_from(peer(1), 100_000);
        host.say(calling()).await;
        harness.servers.forwarded().await;
        busy.push(host);
    }
    let refused = harness.connect_from(peer(1), 100_000).reply().await;
    assert_eq!((refused.status, &*refused.headers["retry-after"]), (503, "1"));
    assert!(refused.body.ends_with("wait"), "{refused:?}");
    let mut other = harness.connect_from(peer(2), 100_000);
    other.say(calling()).await;
    harness.servers.forwarded().await.answer("{}");
    assert_eq!(other.reply().await.status, 200);
    drop(busy.pop());
    harness.servers.cancelled().await;
    let mut again = harness.connect_from(peer(1), 100_000);
    again.say(calling()).await;
    harness.servers.forwarded().await.answer("{}");
    assert_eq!(again.reply().await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_caller_has_its_share_of_connections_from_whatever_address() {
    let mut harness = two_callers();
    let mut busy = Vec::new();
    let refused = loop {
        let mut host = harness.connect_from(peer(busy.len().try_into().unwrap()), 100_000);
        host.say(of("one", &calling())).await;
        tokio::select! {
            biased;
            refused = host.reply() => break refused,
            _ = harness.servers.forwarded() => {}
        }
        busy.push(host);
    };
    assert_eq!((refused.status, busy.len()), (429, LIMITS.connections / 2));
    assert!(refused.body.contains("too many connections"), "{refused:?}");
    let mut other = harness.connect_from(peer(200), 100_000);
    other.say(of("two", &calling())).await;
    harness.servers.forwarded().await.answer("{}");
    assert_eq!(other.reply().await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn bytes_of_requests_count_for_their_caller() {
    let mut harness = two_callers();
    let mut unread = Vec::new();
    for length in [LARGE, 500_000, 70_000] {
        unread.extend(leave_unread(&mut harness, "one", 15, length).await);
    }
    let padding = " ".repeat(90_000);
    let body = modern(1, "tools/call", r#","name":"s__echo""#) + &padding;
    let request = stateless("tools/call", "s__echo", &body);
    let refused = harness.ask(of("one", &request)).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    let mut other = harness.connect();
    other.say(of("two", &request)).await;
    harness.servers.forwarded().await.answer("{}");
    assert_eq!(other.reply().await.status, 200);
    drop(unread);
}
