//! Callers with access tokens: challenges, scopes, sessions that outlive a token, and the end of a token.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use plugbay_core::{
    access_token::{AccessToken, ScopeRule, ScopeRules, TokenError, TokenVerifier},
    credentials::Later,
    exposure::Mode,
    policy::ToolGrant,
    surface::{Layout, Snapshot},
};
use serde_json::json;
use tokio::{sync::watch, time::advance};

use super::harness::{Harness, Reply, fitting, http, post};
use crate::{
    http::{Authorization, AuthorizationTerms},
    scripted::{INITIALIZE, INITIALIZED, modern, request, snapshot},
};

const RESOURCE: &str = "https://gw.example/mcp";
const METADATA: &str = "https://gw.example/.well-known/oauth-protected-resource/mcp";

/// An authorization server that knows tokens of the form `subject/scope+scope/milliseconds`.
#[derive(Debug)]
struct Scripted;

impl TokenVerifier for Scripted {
    fn verify<'a>(&'a self, token: &'a str) -> Later<'a, Result<Arc<AccessToken>, TokenError>> {
        Box::pin(async move {
            if token == "unavailable" {
                return Err(TokenError::Unavailable);
            }
            let invalid = || TokenError::Invalid("the signature of the token is wrong");
            let mut parts = token.split('/');
            let (subject, scopes) = parts.next().zip(parts.next()).ok_or_else(invalid)?;
            let life: u64 = parts.next().map_or(3_600_000, |life| life.parse().unwrap());
            Ok(Arc::new(AccessToken {
                issuer: "https://idp.example".to_owned(),
                subject: subject.to_owned(),
                client: Some("app".to_owned()),
                scopes: scopes.split('+').map(str::to_owned).collect(),
                ends: SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_millis(life),
            }))
        })
    }
}

pub(super) fn terms(required: &[&str]) -> Arc<Authorization> {
    let rule = |scope: &str, tools: Option<&[&str]>| ScopeRule {
        scope: scope.to_owned(),
        tools: tools.map(|globs| ToolGrant::compile(globs).unwrap()),
    };
    let rules = vec![rule("read", Some(&["s__echo"])), rule("write", Some(&["s__echo", "s__wipe"]))];
    let required = required.iter().map(|&scope| scope.to_owned()).collect();
    Arc::new(Authorization::new(AuthorizationTerms {
        verifier: Arc::new(Scripted),
        scopes: Arc::new(ScopeRules { required, rules }),
        issuer: "https://idp.example".to_owned(),
        resource: RESOURCE.to_owned(),
        key: [7; 32],
    }))
}

type Terms = watch::Sender<Option<Arc<Authorization>>>;

fn harness(required: &[&str], mode: Option<Mode>) -> (Harness, Terms) {
    let whole = snapshot(&["echo", "wipe", "hidden"], true);
    let layout = Layout { mode, ..(*whole.layout).clone() };
    let first = Snapshot::new(whole.catalog, Arc::new(layout), true);
    let terms = Terms::new(Some(terms(required)));
    (Harness::with_authorization(first, &["static"], None, Some(terms.subscribe())), terms)
}

fn by(token: &str, method: &str, name: &str, members: &str) -> String {
    let bearer = format!("Bearer {token}");
    let mut headers = fitting(method, name).to_vec();
    headers.push(("authorization", &bearer));
    post(&headers, &modern(1, method, members))
}

fn tool(token: &str, name: &str) -> String {
    by(token, "tools/call", name, &format!(r#","name":"{name}","arguments":{{}}"#))
}

fn plain(token: &str, name: &str) -> String {
    let bearer = format!("Bearer {token}");
    let body = json!({ "name": name, "arguments": {} }).to_string();
    http("POST", "/tools/call", &[("authorization", &bearer)], &body)
}

fn within(token: &str, session: &str, body: &str) -> String {
    let bearer = format!("Bearer {token}");
    let headers =
        [("authorization", &*bearer), ("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")];
    post(&headers, body)
}

fn legacy_call(name: &str) -> String {
    request(5, "tools/call", &format!(r#"{{"name":"{name}","arguments":{{}}}}"#))
}

async fn open(harness: &Harness, token: &str) -> String {
    let bearer = format!("Bearer {token}");
    let opened = harness.ask(post(&[("authorization", &bearer)], INITIALIZE)).await;
    assert_eq!(opened.status, 200, "{opened:?}");
    let session = opened.headers["mcp-session-id"].clone();
    assert_eq!(harness.ask(within(token, &session, INITIALIZED)).await.status, 202);
    session
}

/// Sends a request that reaches a server, and gets its answer.
async fn served(harness: &mut Harness, request: String) -> Reply {
    let mut host = harness.connect();
    host.say(request).await;
    let forwarded = harness.servers.forwarded().await;
    assert!(!forwarded.text().contains("ada"), "no part of the token: {}", forwarded.text());
    forwarded.answer(r#"{"content":[]}"#);
    host.reply().await
}

#[track_caller]
fn assert_steps_up(reply: &Reply, scope: &str) {
    let challenge = &reply.headers["www-authenticate"];
    assert_eq!(reply.status, 403, "{reply:?}");
    for part in [
        "Bearer ".to_owned(),
        r#"error="insufficient_scope""#.to_owned(),
        format!(r#"scope="{scope}""#),
        format!(r#"resource_metadata="{METADATA}""#),
    ] {
        assert!(challenge.contains(&part), "{part}: {challenge}");
    }
}

#[tokio::test(start_paused = true)]
async fn protected_resource_metadata_needs_no_token_but_a_known_host() {
    let (harness, terms) = harness(&["read"], None);
    let root = "/.well-known/oauth-protected-resource";
    for path in [root.to_owned(), format!("{root}/mcp")] {
        let reply = harness.ask(http("GET", &path, &[], "")).await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(
            reply.json(),
            json!({
                "resource": RESOURCE,
                "authorization_servers": ["https://idp.example"],
                "bearer_methods_supported": ["header"],
                "resource_name": "plugbay",
                "scopes_supported": ["read", "write"],
            })
        );
        assert_eq!(harness.ask(http("GET", &path, &[("host", "evil.example")], "")).await.status, 403);
        assert_eq!(
            harness.ask(http("GET", &path, &[("origin", "https://evil.example")], "")).await.status,
            403
        );
        assert_eq!(harness.ask(http("POST", &path, &[], "")).await.status, 405);
    }
    assert_eq!(harness.ask(http("GET", &format!("{root}/other"), &[], "")).await.status, 401);
    terms.send_replace(None);
    assert_eq!(harness.ask(http("GET", root, &[], "")).await.status, 401, "there is none without an issuer");
}

#[tokio::test(start_paused = true)]
async fn challenges_name_the_metadata_the_scope_and_the_error() {
    let (harness, _terms) = harness(&[], None);
    let bare = format!(r#"Bearer realm="plugbay", resource_metadata="{METADATA}", scope="read""#);
    let bad = format!(
        r#"Bearer realm="plugbay", error="invalid_token", error_description="the signature of the token is wrong", resource_metadata="{METADATA}", scope="read""#
    );
    let ask = async |path: &str, authorization: &str| {
        harness.ask(http("POST", path, &[("authorization", authorization)], "{}")).await
    };
    for path in ["/mcp", "/tools/call", "/tools", "/metrics", "/nothing", "/mcp?access_token=ada/read"] {
        for nothing in ["", "Basic ada/read", "Bearer", "Bearer "] {
            let reply = ask(path, nothing).await;
            assert_eq!((reply.status, &reply.headers["www-authenticate"]), (401, &bare), "{path} {nothing}");
        }
        let reply = ask(path, "Bearer wrong").await;
        assert_eq!((reply.status, &reply.headers["www-authenticate"]), (401, &bad), "{path}");
        let reply = ask(path, "Bearer ada/read\r\nauthorization: Bearer ada/read").await;
        assert_eq!(reply.status, 401);
        assert!(reply.headers["www-authenticate"].contains(r#"error="invalid_request""#), "{reply:?}");
        let reply = ask(path, "Bearer unavailable").await;
        assert_eq!(reply.status, 503, "the token may be good: {reply:?}");
        assert!(!reply.headers.contains_key("www-authenticate") && reply.headers.contains_key("retry-after"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_without_a_required_scope_is_told_which() {
    let (harness, _terms) = harness(&["base"], None);
    for request in [by("ada/read", "tools/list", "", ""), plain("ada/read", "s__echo")] {
        assert_steps_up(&harness.ask(request).await, "base read");
    }
    assert_eq!(harness.ask(by("ada/base+read", "tools/list", "", "")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn tools_of_other_scopes_are_not_listed_and_step_up_when_called() {
    for mode in [Mode::All, Mode::Search, Mode::Activate] {
        let (mut harness, _terms) = harness(&[], Some(mode));
        let listed = harness.ask(by("ada/read", "tools/list", "", "")).await;
        assert!(!listed.body.contains("wipe"), "{mode} {listed:?}");
        let execute = by(
            "ada/read",
            "tools/call",
            "execute_tool",
            r#","name":"execute_tool","arguments":{"name":"s__wipe","arguments":{}}"#,
        );
        let session = open(&harness, "ada/read").await;
        for request in [
            tool("ada/read", "s__wipe"),
            plain("ada/read", "s__wipe"),
            within("ada/read", &session, &legacy_call("s__wipe")),
            execute,
        ] {
            let reply = harness.ask(request).await;
            assert_steps_up(&reply, "read write");
            assert!(reply.body.contains("read write"), "{reply:?}");
        }
        assert_steps_up(&harness.ask(tool("ada/foreign", "s__wipe")).await, "write");
        harness.servers.nothing_forwarded().await;
        let reply = harness.ask(plain("ada/read", "s__hidden")).await;
        assert_eq!(reply.json()["error"]["code"], json!("unknown_tool"), "no scope allows it: {reply:?}");
        let reply = harness.ask(tool("ada/read", "s__hidden")).await;
        assert!(reply.body.contains("Unknown tool"), "{reply:?}");
        assert_eq!(served(&mut harness, tool("ada/write", "s__wipe")).await.status, 200);
        assert_eq!(served(&mut harness, plain("ada/write", "s__wipe")).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_outlives_a_token_and_belongs_to_its_subject() {
    let (mut harness, _terms) = harness(&[], None);
    let session = open(&harness, "ada/read").await;
    let list = request(2, "tools/list", "{}");
    let first = harness.ask(within("ada/read", &session, &list)).await;
    assert!(first.body.contains("s__echo") && !first.body.contains("s__wipe"), "{first:?}");
    for other in ["bob/read", "bob/write"] {
        assert_eq!(harness.ask(within(other, &session, &list)).await.status, 404);
    }
    assert_eq!(harness.ask(within("static", &session, &list)).await.status, 404);
    assert_steps_up(&harness.ask(within("ada/read", &session, &legacy_call("s__wipe"))).await, "read write");
    let stepped = served(&mut harness, within("ada/read+write", &session, &legacy_call("s__wipe"))).await;
    assert_eq!(stepped.status, 200, "in the same session");
    let more = harness.ask(within("ada/read+write", &session, &list)).await;
    assert!(more.body.contains("s__wipe"), "{more:?}");
    let less = harness.ask(within("ada/read", &session, &legacy_call("s__wipe"))).await;
    assert_steps_up(&less, "read write");
}

#[tokio::test(start_paused = true)]
async fn other_scopes_in_a_session_notify_its_host_of_a_changed_list() {
    let (harness, _terms) = harness(&[], Some(Mode::All));
    let session = open(&harness, "ada/read").await;
    let list = request(2, "tools/list", "{}");
    harness.ask(within("ada/read", &session, &list)).await;
    let mut stream = harness.connect();
    let headers = [("authorization", "Bearer ada/read"), ("mcp-session-id", &*session)];
    stream.open_stream(http("GET", "/mcp", &headers, "")).await;
    harness.ask(within("ada/write", &session, &request(3, "ping", "{}"))).await;
    stream.event().await; // it only gives an id
    assert_eq!(stream.hear().await["method"], "notifications/tools/list_changed");
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_ends_streams_and_calls_and_its_session_waits_for_a_fresh_one() {
    let (mut harness, _terms) = harness(&[], None);
    let session = open(&harness, "ada/read/400").await;
    let mut legacy = harness.connect();
    let headers = [("authorization", "Bearer ada/read/400"), ("mcp-session-id", &*session)];
    legacy.open_stream(http("GET", "/mcp", &headers, "")).await;
    let mut modern = harness.connect();
    let listen = r#","notifications":{"toolsListChanged":true}"#;
    modern.open_stream(by("ada/read/400", "subscriptions/listen", "", listen)).await;
    let mut call = harness.connect();
    call.say(within("ada/read/400", &session, &legacy_call("s__echo"))).await;
    let forwarded = harness.servers.forwarded().await;
    std::thread::sleep(Duration::from_millis(500)); // the expiry is one of the real clock
    assert_eq!(harness.servers.cancelled().await.0, forwarded.ticket());
    assert!(call.reply().await.body.contains("expired"));
    while legacy.event().await.is_some() {}
    while modern.event().await.is_some() {}
    let reply = served(&mut harness, within("ada/read", &session, &legacy_call("s__echo"))).await;
    assert_eq!(reply.status, 200, "the session is still there");
}

#[tokio::test(start_paused = true)]
async fn a_fresh_token_of_the_same_subject_keeps_its_streams_open() {
    let (harness, _terms) = harness(&[], None);
    let session = open(&harness, "ada/read/400").await;
    let mut stream = harness.connect();
    let headers = [("authorization", "Bearer ada/read/400"), ("mcp-session-id", &*session)];
    stream.open_stream(http("GET", "/mcp", &headers, "")).await;
    stream.event().await; // it only gives an id
    harness.ask(within("ada/read", &session, &request(2, "ping", "{}"))).await;
    std::thread::sleep(Duration::from_millis(500));
    advance(Duration::from_secs(6)).await;
    stream.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn changed_terms_of_authorization_end_the_sessions_of_callers_with_access_tokens() {
    let (mut harness, terms_of) = harness(&[], None);
    let (session, own) = (open(&harness, "ada/read").await, open(&harness, "static").await);
    let mut call = harness.connect();
    call.say(within("ada/read", &session, &legacy_call("s__echo"))).await;
    let forwarded = harness.servers.forwarded().await;
    terms_of.send_replace(Some(terms(&["base"])));
    assert_eq!(harness.servers.cancelled().await.0, forwarded.ticket());
    let list = request(2, "tools/list", "{}");
    assert_eq!(harness.ask(within("ada/read", &session, &list)).await.status, 403);
    assert_eq!(harness.ask(within("ada/base+read", &session, &list)).await.status, 404);
    assert_eq!(harness.ask(within("static", &own, &list)).await.status, 200);
    terms_of.send_replace(None);
    assert_eq!(harness.ask(by("ada/base+read", "tools/list", "", "")).await.status, 401);
    assert_eq!(harness.ask(http("GET", "/tools", &[], "")).await.status, 401, "it stays guarded");
    assert_eq!(harness.ask(by("static", "tools/list", "", "")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_without_tokens_is_guarded_as_soon_as_there_are_terms_of_authorization() {
    let terms_of = Terms::new(None);
    let first = snapshot(&["echo"], true);
    let harness = Harness::with_authorization(first, &[], None, Some(terms_of.subscribe()));
    assert_eq!(harness.ask(http("GET", "/tools", &[], "")).await.status, 200);
    terms_of.send_replace(Some(terms(&[])));
    assert_eq!(harness.ask(http("GET", "/tools", &[], "")).await.status, 401);
    terms_of.send_replace(None);
    assert_eq!(harness.ask(http("GET", "/tools", &[], "")).await.status, 401);
}
