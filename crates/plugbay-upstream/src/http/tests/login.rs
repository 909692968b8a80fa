//! A server that needs a login: its state, the calls that wait for it, and how it comes back.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use plugbay_core::{
    exchange::{Reply, ServerRequestError, Ticket},
    server_state::ServerState,
};
use serde_json::{Value, json};
use tokio::time::{advance, pause, resume};

use super::{
    SECOND,
    harness::{Harness, Setup, capabilities, described, page},
    peer::Server,
    script::{LOGIN_URL, OnRejection, Script},
};
use crate::server::{
    Command,
    tests::host::{Host, HostEvent},
};

const NEEDED: &str = "server 's' needs a login at https://auth.example; try: run `plugbay auth login s`";

fn setup(script: &Arc<Script>) -> Setup {
    Setup { credentials: Some(script.clone()), ..Setup::default() }
}

/// A script in which nobody has logged in yet.
fn logged_out() -> Arc<Script> {
    Script::new(OnRejection::NeedsLogin, None)
}

/// A legacy server whose `initialize` is rejected.
async fn rejecting(script: &Arc<Script>) -> (Harness, Server) {
    let server = Server::start().await;
    let harness = Harness::new(setup(script), &server.url());
    (harness, server)
}

impl Server {
    /// Opens and lists again after the login.
    async fn comes_back(&mut self) {
        self.open_legacy("one").await;
        self.take("GET").await.status(405);
        self.list(&["echo"]).await;
    }
}

impl Harness {
    fn reply(&self, server_request: Ticket, action: &str) {
        let reply = Reply::Result(Bytes::from(json!({ "action": action }).to_string()));
        self.handle.send(Command::Reply { server_request, reply });
    }

    fn state(&self) -> ServerState {
        self.handle.status().borrow().condition.server_state()
    }
}

/// The number of the server request that asks the host to log in.
async fn asked(host: &Host, call: Ticket) -> Ticket {
    let (number, during, text) = host.next_request().await;
    assert_eq!(during, Some(call));
    let request: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&request["id"], &request["method"]), (&json!(number.0), &json!("elicitation/create")));
    let params = &request["params"];
    assert_eq!((&params["mode"], &params["url"]), (&json!("url"), &json!(LOGIN_URL)));
    assert_eq!(params["message"], "Log in at auth.example");
    assert!(params["elicitationId"].as_str().unwrap().starts_with("login-"));
    number
}

fn completed(number: u64) -> HostEvent {
    let params = format!(r#"{{"elicitationId":"login-{number}"}}"#);
    let method = "notifications/elicitation/complete";
    HostEvent::Completed(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#))
}

fn answered(call: Ticket) -> HostEvent {
    HostEvent::Answered(call, r#"{"ok":1}"#.to_owned())
}

fn failed(call: Ticket) -> HostEvent {
    HostEvent::Answered(call, NEEDED.to_owned())
}

#[tokio::test]
async fn a_server_that_needs_a_login_says_so_and_starts_by_itself_after_it() {
    let script = logged_out();
    let (mut harness, mut server) = rejecting(&script).await;
    harness.handle.refresh();
    server.take("initialize").await.status(401);
    assert_eq!(harness.report().await, &NEEDED[11..]);
    harness.condition(|condition| condition.server_state() == ServerState::NeedsLogin).await;
    assert_eq!(harness.calls.end(harness.call("a")).await, NEEDED, "at once, because nobody can be asked");
    assert_eq!((server.untaken().len(), script.logins()), (0, 0));

    script.set("new");
    let initialize = server.take("initialize").await;
    assert_eq!(initialize.header("authorization"), Some("Bearer new"));
    initialize.answer(described());
    server.take("notifications/initialized").await.status(202);
    server.take("GET").await.status(405);
    server.list(&["echo"]).await;
    assert_eq!(harness.report().await, "echo");
    harness.works(&mut server).await;
    assert_eq!(harness.state(), ServerState::Ready);
}

#[tokio::test]
async fn a_modern_server_that_needs_a_login_is_not_asked_in_the_other_era() {
    let script = logged_out();
    let mut server = Server::start().await;
    let unknown = Setup { known: None, ..setup(&script) };
    let mut harness = Harness::new(unknown, &server.url());
    harness.handle.refresh();
    server.take("server/discover").await.status(401);
    assert_eq!(harness.report().await, &NEEDED[11..]);
    script.set("new");
    server.take("server/discover").await.answer(capabilities());
    server.list(&["echo"]).await;
    assert_eq!(harness.report().await, "echo");
}

#[tokio::test]
async fn an_sse_server_that_needs_a_login_is_opened_after_it() {
    let script = logged_out();
    let mut server = Server::start().await;
    let sse = Setup { credentials: Some(script.clone()), ..Setup::sse() };
    let mut harness = Harness::new(sse, &server.url());
    harness.handle.refresh();
    server.take("GET").await.status(401);
    assert_eq!(harness.report().await, &NEEDED[11..]);
    script.set("new");
    assert_eq!(server.take("GET").await.header("authorization"), Some("Bearer new"));
}

/// For an hour without a login the server gets no request, whatever its callers do.
#[tokio::test]
async fn a_server_that_needs_a_login_gets_no_storm_of_requests() {
    let script = logged_out();
    let (mut harness, mut server) = rejecting(&script).await;
    harness.handle.refresh();
    server.take("initialize").await.status(401);
    harness.report().await;
    pause();
    for _ in 0..60 {
        advance(60 * SECOND).await;
        assert_eq!(harness.calls.end(harness.call("a")).await, NEEDED);
    }
    assert_eq!((script.asked.load(Ordering::Relaxed), server.untaken().len()), (1, 0));
    resume();
    // The user may have logged in elsewhere.
    harness.handle.refresh();
    server.take("initialize").await.status(401);
    harness.report().await;
    assert_eq!(server.untaken(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_change_all_the_time_and_never_help_make_no_storm() {
    let script = Script::new(OnRejection::NothingHelps, None);
    let harness = Harness::new(setup(&script), "http://127.0.0.1:9/mcp");
    harness.handle.refresh();
    tokio::time::sleep(3600 * SECOND).await;
    let attempts = script.asked.load(Ordering::Relaxed);
    assert!((10..30).contains(&attempts), "{attempts}");
}

#[tokio::test]
async fn a_call_waits_for_a_login_by_elicitation_and_is_sent_when_the_server_has_started() {
    let (script, host) = (logged_out(), Host::logging_in());
    let (mut harness, mut server) = rejecting(&script).await;
    let call = harness.call_by(&host, "echo");
    server.take("initialize").await.status(401);
    let number = asked(&host, call).await;
    assert_eq!(harness.report().await, &NEEDED[11..]);
    harness.reply(number, "accept");
    script.set("new");
    server.comes_back().await;
    assert_eq!(host.next_event().await, completed(1));
    let request = server.take_call("echo").await;
    assert_eq!(request.header("authorization"), Some("Bearer new"));
    request.answer(json!({ "ok": 1 }));
    assert_eq!(host.next_event().await, answered(call));
    assert_eq!((harness.report().await.as_str(), script.logins()), ("echo", 1));
    host.expect_nothing_more();
}

#[tokio::test]
async fn a_call_for_a_server_that_is_known_to_need_a_login_waits_too() {
    let (script, host) = (logged_out(), Host::logging_in());
    let (mut harness, mut server) = rejecting(&script).await;
    harness.handle.refresh();
    server.take("initialize").await.status(401);
    harness.report().await;
    let (one, two) = (harness.call_by(&host, "echo"), harness.call_by(&host, "echo"));
    let number = asked(&host, one).await;
    let three = harness.call_by(&host, "echo");
    harness.reply(number, "accept");
    script.set("new");
    server.comes_back().await;
    assert_eq!(host.next_event().await, completed(1));
    // Each has its own connection, so they may arrive in any order.
    let mut ended = Vec::new();
    for _ in 0..3 {
        server.take_call("echo").await.answer(json!({ "ok": 1 }));
        ended.push(host.next_event().await);
    }
    assert!([one, two, three].iter().all(|call| ended.contains(&answered(*call))), "{ended:?}");
    assert_eq!((script.logins(), server.untaken().len()), (1, 0), "one login for all");
    host.expect_nothing_more();
}

#[tokio::test]
async fn a_login_that_the_user_declines_ends_the_call() {
    let (script, host) = (logged_out(), Host::logging_in());
    let (harness, mut server) = rejecting(&script).await;
    let mut calls = vec![harness.call_by(&host, "echo")];
    server.take("initialize").await.status(401);
    for action in ["decline", "cancel", "what?"] {
        let number = asked(&host, calls[0]).await;
        harness.reply(number, action);
        assert_eq!(host.next_event().await, failed(calls[0]), "{action}");
        calls = vec![harness.call_by(&host, "echo")];
    }
    let server_request = asked(&host, calls[0]).await;
    let reply = Reply::Refused(ServerRequestError::HostGone);
    harness.handle.send(Command::Reply { server_request, reply });
    assert_eq!(host.next_event().await, failed(calls[0]));
    host.expect_nothing_more();
    assert_eq!(server.untaken(), [""; 0]);
}

#[tokio::test]
async fn a_login_that_fails_after_the_host_accepted_it_ends_the_calls() {
    let (script, host) = (logged_out(), Host::logging_in());
    let (harness, mut server) = rejecting(&script).await;
    let (one, two) = (harness.call_by(&host, "echo"), harness.call_by(&host, "echo"));
    server.take("initialize").await.status(401);
    harness.reply(asked(&host, one).await, "accept");
    script.login_fails.notify_one();
    for call in [one, two] {
        let why = "server 's' needs a login, but the user said no";
        let event = host.next_event().await;
        assert!(
            matches!(&event, HostEvent::Answered(ended, text) if *ended == call && text.contains(why)),
            "{event:?}"
        );
    }
    host.expect_nothing_more();
    assert_eq!(server.untaken(), [""; 0]);
}

#[tokio::test]
async fn a_cancelled_call_takes_its_login_request_back_and_another_call_asks_anew() {
    let (script, host) = (logged_out(), Host::logging_in());
    let (harness, mut server) = rejecting(&script).await;
    let (one, two) = (harness.call_by(&host, "echo"), harness.call_by(&host, "echo"));
    server.take("initialize").await.status(401);
    let number = asked(&host, one).await;
    harness.cancel(one);
    assert!(matches!(host.next_event().await, HostEvent::Withdrawn(withdrawn, _) if withdrawn == number));
    let again = asked(&host, two).await;
    harness.reply(again, "accept");
    script.set("new");
    server.comes_back().await;
    assert_eq!(host.next_event().await, completed(2));
    server.take_call("echo").await.answer(json!({ "ok": 1 }));
    assert_eq!(host.next_event().await, answered(two));
    host.expect_nothing_more();
    assert_eq!(server.untaken(), [""; 0], "the cancelled call was never sent");
}

/// Two windows use one server: one login is enough.
#[tokio::test]
async fn a_login_in_one_host_lets_the_calls_of_all_hosts_go_on() {
    let (script, one, two) = (logged_out(), Host::logging_in(), Host::logging_in());
    let (harness, mut server) = rejecting(&script).await;
    let (first, second) = (harness.call_by(&one, "echo"), harness.call_by(&two, "echo"));
    server.take("initialize").await.status(401);
    let number = asked(&one, first).await;
    let unanswered = asked(&two, second).await;
    assert_eq!(script.logins(), 1);
    harness.reply(number, "accept");
    script.set("new");
    server.comes_back().await;
    for _ in 0..2 {
        server.take_call("echo").await.answer(json!({ "ok": 1 }));
    }
    assert_eq!((one.next_event().await, one.next_event().await), (completed(1), answered(first)));
    assert_eq!(two.next_event().await, completed(1));
    assert!(matches!(two.next_event().await, HostEvent::Withdrawn(number, _) if number == unanswered));
    assert_eq!(two.next_event().await, answered(second));
}

/// The session of a legacy server, and other callers' calls, are not affected.
#[tokio::test]
async fn a_call_rejected_in_mid_session_waits_for_a_login_and_is_sent_again() {
    let (script, host) = (Script::new(OnRejection::NeedsLogin, Some("old")), Host::logging_in());
    let (harness, mut server) = Harness::legacy(setup(&script)).await;
    let other = harness.call("other");
    let other_request = server.take_call("other").await;
    let call = harness.call_by(&host, "echo");
    let rejected = server.take_call("echo").await;
    let message = rejected.message.clone();
    rejected.status(401);
    let number = asked(&host, call).await;
    harness.condition(|condition| condition.server_state() == ServerState::NeedsLogin).await;
    assert_eq!(server.untaken(), [""; 0]);
    other_request.answer(json!({ "other": 1 }));
    assert_eq!(harness.calls.end(other).await, r#"{"other":1}"#);

    harness.reply(number, "accept");
    script.set("new");
    let again = server.take_call("echo").await;
    assert_eq!((again.header("authorization"), &again.message), (Some("Bearer new"), &message));
    assert_eq!(again.header("mcp-session-id"), Some("one"));
    again.answer(json!({ "ok": 1 }));
    assert_eq!((host.next_event().await, host.next_event().await), (completed(1), answered(call)));
    server.list(&["echo"]).await;
    harness.works(&mut server).await;
    assert_eq!(server.untaken(), [""; 0]);
    host.expect_nothing_more();
}

#[tokio::test]
async fn a_call_in_mid_session_ends_if_its_host_cannot_log_in_or_declines() {
    let (script, host) = (logged_out(), Host::logging_in());
    let (harness, mut server) = Harness::legacy(setup(&script)).await;
    let call = harness.call("a");
    server.take_call("a").await.status(401);
    assert_eq!(harness.calls.end(call).await, NEEDED);
    assert_eq!(script.logins(), 0);

    let call = harness.call_by(&host, "echo");
    server.take_call("echo").await.status(401);
    let number = asked(&host, call).await;
    harness.reply(number, "decline");
    assert_eq!(host.next_event().await, failed(call));

    let cancelled = harness.call_by(&host, "echo");
    server.take_call("echo").await.status(401);
    let number = asked(&host, cancelled).await;
    harness.cancel(cancelled);
    assert!(matches!(host.next_event().await, HostEvent::Withdrawn(withdrawn, _) if withdrawn == number));
    server.take("notifications/cancelled").await.status(202);
    script.set("new");
    server.list(&["echo"]).await;
    harness.works(&mut server).await;
    assert_eq!(server.untaken(), [""; 0], "nothing that has ended is sent again");
    host.expect_nothing_more();
}

#[tokio::test]
async fn a_call_with_too_small_a_scope_waits_for_a_login() {
    let (script, host) = (Script::new(OnRejection::NeedsLogin, Some("small")), Host::logging_in());
    let (harness, mut server) = Harness::legacy(setup(&script)).await;
    let call = harness.call_by(&host, "echo");
    let challenge = r#"Bearer error="insufficient_scope", scope="write""#;
    server.take_call("echo").await.reply(403, &[("www-authenticate", challenge)], "");
    let number = asked(&host, call).await;
    harness.works(&mut server).await;
    assert_eq!(harness.state(), ServerState::Ready, "other calls work");
    harness.reply(number, "accept");
    script.set("wide");
    let again = server.take_call("echo").await;
    assert_eq!(again.header("authorization"), Some("Bearer wide"));
    again.answer(json!({ "ok": 1 }));
    assert_eq!((host.next_event().await, host.next_event().await), (completed(1), answered(call)));
}

#[tokio::test]
async fn a_call_waits_for_a_login_for_ten_minutes_and_is_then_told_of_the_login() {
    let (script, host) = (logged_out(), Host::logging_in());
    let (harness, mut server) = Harness::legacy(setup(&script)).await;
    let call = harness.call_by(&host, "echo");
    server.take_call("echo").await.status(401);
    let number = asked(&host, call).await;
    harness.reply(number, "accept");
    harness.condition(|condition| condition.server_state() == ServerState::NeedsLogin).await;
    pause();
    advance(599 * SECOND).await;
    tokio::task::yield_now().await;
    host.expect_nothing_more();
    advance(2 * SECOND).await;
    assert_eq!(host.next_event().await, failed(call));
    resume();
    harness.works(&mut server).await;
}

#[tokio::test]
async fn a_call_that_waits_for_a_start_is_told_of_the_login_after_ten_minutes() {
    let (script, host) = (logged_out(), Host::logging_in());
    let (harness, mut server) = rejecting(&script).await;
    let call = harness.call_by(&host, "echo");
    server.take("initialize").await.status(401);
    let number = asked(&host, call).await;
    pause();
    advance(599 * SECOND).await;
    tokio::task::yield_now().await;
    host.expect_nothing_more();
    advance(2 * SECOND).await;
    assert_eq!(host.next_event().await, failed(call));
    assert!(matches!(host.next_event().await, HostEvent::Withdrawn(withdrawn, _) if withdrawn == number));
}

/// Only `initialize` is open to everybody.
#[tokio::test]
async fn a_server_that_is_opened_without_a_login_and_lists_only_with_one() {
    let (script, host) = (logged_out(), Host::logging_in());
    let (mut harness, mut server) = rejecting(&script).await;
    let call = harness.call_by(&host, "echo");
    let initialize = server.take("initialize").await;
    let body = initialize.response(described());
    initialize.reply(200, &[("content-type", "application/json"), ("mcp-session-id", "one")], body);
    server.take("notifications/initialized").await.status(401);
    server.take("GET").await.status(401);
    server.take_call("echo").await.status(401);
    let number = asked(&host, call).await;
    server.take("tools/list").await.status(401);
    assert_eq!(harness.report().await, &NEEDED[11..]);
    server.take("DELETE").await.status(200);
    harness.reply(number, "accept");
    script.set("new");
    server.open_legacy("two").await;
    server.take("GET").await.status(405);
    server.take("tools/list").await.answer(page(&["echo"]));
    let request = server.take_call("echo").await;
    assert_eq!(request.header("mcp-session-id"), Some("two"));
    request.answer(json!({ "ok": 1 }));
    assert_eq!((host.next_event().await, host.next_event().await), (completed(1), answered(call)));
    assert_eq!(harness.report().await, "echo");
    assert_eq!(server.untaken(), [""; 0]);
}

#[tokio::test]
async fn the_get_stream_comes_back_after_a_login() {
    let script = logged_out();
    let mut server = Server::start().await;
    let mut harness = Harness::new(setup(&script), &server.url());
    harness.handle.refresh();
    server.open_legacy("one").await;
    server.take("GET").await.status(401);
    server.list(&["a"]).await;
    assert_eq!(harness.report().await, "a");
    harness.works(&mut server).await;
    script.set("new");
    let get = server.take("GET").await;
    assert_eq!(
        (get.header("authorization"), get.header("mcp-session-id")),
        (Some("Bearer new"), Some("one"))
    );
    let _stream = get.stream();
    server.list(&["a", "b"]).await;
    assert_eq!(harness.report().await, "a b");
}

#[tokio::test]
async fn the_subscription_of_a_modern_server_comes_back_after_a_login() {
    let script = logged_out();
    let (mut harness, mut server, subscription) = Harness::modern(setup(&script)).await;
    subscription.status(401);
    harness.condition(|condition| condition.server_state() == ServerState::NeedsLogin).await;
    script.set("new");
    let again = server.take("subscriptions/listen").await;
    assert_eq!(again.header("authorization"), Some("Bearer new"));
    server.list(&["echo", "more"]).await;
    assert_eq!(harness.report().await, "echo more");
}
