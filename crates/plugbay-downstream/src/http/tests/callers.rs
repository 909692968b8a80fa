//! Named callers: what they see, how many calls they may make, and how their tokens end.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use plugbay_core::{
    exposure::Mode,
    limit::CallLimits,
    policy::ToolGrant,
    search::memory::SearchMemory,
    surface::{Layout, Snapshot},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::{sync::watch, time::advance};

use super::harness::{Harness, fitting, http, post};
use crate::{
    http::NamedToken,
    principal::Grant,
    scripted::{INITIALIZE, call, list, modern, request, snapshot},
};

type Tokens = watch::Sender<Arc<Vec<NamedToken>>>;

fn token(name: &str, grant: Grant) -> NamedToken {
    let digest = Sha256::digest(name).into();
    let grant = Grant { name: Some(name.into()), ..grant };
    NamedToken { digest, owner: Sha256::digest(format!("owner {name}")).into(), expires: None, grant }
}

fn for_tools(globs: &[&str]) -> Grant {
    Grant { tools: Some(ToolGrant::compile(globs).unwrap()), ..Grant::default() }
}

fn limited(rate: &str, quota: &str) -> Grant {
    let limits = CallLimits { rate: rate.parse().ok(), quota: quota.parse().ok(), session_rate: None };
    Grant { limits, ..Grant::default() }
}

fn harness(first: Snapshot, tokens: Vec<NamedToken>) -> (Harness, Tokens) {
    let tokens = Tokens::new(Arc::new(tokens));
    (Harness::with_callers(first, &["unnamed"], Some(tokens.subscribe())), tokens)
}

fn two_tools(mode: Option<Mode>) -> Snapshot {
    let whole = snapshot(&["echo", "wipe"], true);
    let layout = Layout { mode, ..(*whole.layout).clone() };
    Snapshot::new(whole.catalog, Arc::new(layout), true)
}

/// A modern request of this caller.
fn by(caller: &str, method: &str, name: &str, members: &str) -> String {
    let bearer = format!("Bearer {caller}");
    let mut headers = fitting(method, name).to_vec();
    headers.push(("authorization", &bearer));
    post(&headers, &modern(1, method, members))
}

fn tool(caller: &str, name: &str, arguments: &Value) -> String {
    by(caller, "tools/call", name, &format!(r#","name":"{name}","arguments":{arguments}"#))
}

#[tokio::test(start_paused = true)]
async fn a_caller_sees_and_calls_its_own_tools_only_in_every_mode() {
    for mode in [Mode::All, Mode::Search, Mode::Activate, Mode::Suite] {
        let (mut harness, _tokens) = harness(
            two_tools(Some(mode)),
            vec![token("some", for_tools(&["s__echo"])), token("none", for_tools(&["t__*"]))],
        );
        let asks = [
            by("some", "tools/list", "", ""),
            by("some", "server/discover", "", ""),
            tool("some", "search_tools", &json!({ "query": "wipe" })),
            tool("some", "describe_tool", &json!({ "name": "s__wipe" })),
            tool("some", "gateway_activate", &json!({ "name": "s" })),
            tool("some", "gateway_status", &json!({})),
            tool("some", "s_suite", &json!({ "action": "introspect" })),
        ];
        for ask in asks {
            let reply = harness.ask(ask).await;
            let told =
                reply.body.replace("s__wipe", "").contains("wipe") && reply.body.contains("\"result\"");
            assert!(!told, "{mode}: {reply:?}");
        }
        let forbidden = [
            tool("some", "s__wipe", &json!({})),
            tool("some", "execute_tool", &json!({ "name": "s__wipe", "arguments": {} })),
            tool("some", "execute_tool", &json!({ "name": "wipe", "server": "s", "arguments": {} })),
            tool("some", "s_suite", &json!({ "action": "call", "tool": "wipe", "arguments": {} })),
            by("some", "vendor/run", "", r#","name":"wipe""#),
            tool("none", "s__echo", &json!({})),
        ];
        for ask in forbidden {
            harness.ask(ask).await;
        }
        harness.servers.nothing_forwarded().await;
        let nothing = harness.ask(by("none", "tools/list", "", "")).await;
        assert!(!nothing.body.contains("s__") && !nothing.body.contains("s_suite"), "{nothing:?}");
        let asking = tokio::spawn({
            let mut host = harness.connect();
            async move {
                host.say(tool("some", "s__echo", &json!({}))).await;
                host.reply().await
            }
        });
        harness.servers.forwarded().await.answer("{}");
        assert_eq!(asking.await.unwrap().status, 200, "{mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_reaches_the_servers_of_the_callers_grant_and_not_at_every_call() {
    let tokens = vec![token("some", for_tools(&["s__echo"])), token("none", for_tools(&["t__*"]))];
    let (mut harness, _tokens) = harness(two_tools(Some(Mode::Search)), tokens);
    let refresh = |caller: &str| tool(caller, "proxy_refresh", &json!({}));
    assert_eq!(harness.ask(refresh("none")).await.status, 200);
    harness.servers.nothing_forwarded().await;
    harness.ask(refresh("some")).await;
    assert_eq!(harness.servers.refreshed().await, "s");
    harness.ask(refresh("some")).await;
    harness.servers.nothing_forwarded().await;
    advance(Duration::from_secs(5)).await;
    harness.ask(refresh("some")).await;
    assert_eq!(harness.servers.refreshed().await, "s");
}

#[tokio::test(start_paused = true)]
async fn calls_over_a_rate_limit_get_an_error_with_the_time_to_wait() {
    let (mut harness, _tokens) =
        harness(two_tools(None), vec![token("slow", limited("2/min", "")), token("free", Grant::default())]);
    for _ in 0..2 {
        let mut host = harness.connect();
        host.say(tool("slow", "s__echo", &json!({}))).await;
        harness.servers.forwarded().await.answer("{}");
        assert_eq!(host.reply().await.status, 200);
    }
    let refused = harness.ask(tool("slow", "s__echo", &json!({}))).await;
    assert_eq!((refused.status, refused.code()), (200, json!(-32029)), "{refused:?}");
    assert_eq!(refused.json()["error"]["data"], json!({ "retryAfter": 30, "limit": "2/min" }));
    harness.servers.nothing_forwarded().await;
    assert_eq!(harness.ask(by("slow", "tools/list", "", "")).await.status, 200, "a list reaches no server");
    let mut host = harness.connect();
    host.say(tool("free", "s__echo", &json!({}))).await;
    harness.servers.forwarded().await.answer("{}");
    assert_eq!(host.reply().await.status, 200);
    advance(Duration::from_secs(30)).await;
    let mut host = harness.connect();
    host.say(tool("slow", "s__echo", &json!({}))).await;
    harness.servers.forwarded().await.answer("{}");
    assert_eq!(host.reply().await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_gets_401() {
    let mut old = token("old", Grant::default());
    old.expires = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    let (harness, _tokens) = harness(two_tools(None), vec![old]);
    let refused = harness.ask(by("old", "tools/list", "", "")).await;
    assert_eq!(refused.status, 401);
    assert!(
        refused.headers["www-authenticate"].contains("expired") && refused.body.contains("expired"),
        "{refused:?}"
    );
    assert_eq!(harness.ask(by("unnamed", "tools/list", "", "")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_ends_its_sessions_and_calls_at_once() {
    let (mut harness, tokens) =
        harness(two_tools(None), vec![token("ada", Grant::default()), token("bob", Grant::default())]);
    let mut sessions = Vec::new();
    for caller in ["ada", "bob"] {
        let bearer = format!("Bearer {caller}");
        let opened = harness.ask(post(&[("authorization", &bearer)], INITIALIZE)).await;
        sessions.push((bearer, opened.headers["mcp-session-id"].clone()));
    }
    let within = |number: usize, body: &str| {
        let (bearer, session): &(String, String) = &sessions[number];
        post(
            &[("authorization", bearer), ("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")],
            body,
        )
    };
    let mut host = harness.connect();
    host.say(within(0, &call(7))).await;
    let forwarded = harness.servers.forwarded().await;
    revoke_ada(&tokens);
    let (cancelled, _) = harness.servers.cancelled().await;
    assert_eq!(cancelled, forwarded.ticket());
    let answer = host.reply().await;
    assert!(answer.body.contains("revoked"), "{answer:?}");
    assert_eq!(harness.ask(within(0, &list(8))).await.status, 401);
    assert_eq!(harness.ask(within(1, &list(9))).await.status, 200);
}

/// Removes ada's token and keeps all others.
fn revoke_ada(tokens: &Tokens) {
    tokens.send_modify(|tokens| {
        let others = tokens.iter().filter(|token| token.grant.name.as_deref() != Some("ada"));
        *tokens = Arc::new(others.cloned().collect());
    });
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_ends_streams_and_plain_calls() {
    let (mut harness, tokens) = harness(two_tools(None), vec![token("ada", Grant::default())]);
    let bearer = ("authorization", "Bearer ada");
    let opened = harness.ask(post(&[bearer], INITIALIZE)).await;
    let session = ("mcp-session-id", &*opened.headers["mcp-session-id"]);
    let mut legacy = harness.connect();
    legacy.open_stream(http("GET", "/mcp", &[bearer, session], "")).await;
    let mut modern = harness.connect();
    modern
        .open_stream(by("ada", "subscriptions/listen", "", r#","notifications":{"toolsListChanged":true}"#))
        .await;
    modern.hear().await;
    let mut plain = harness.connect();
    let body = r#"{"name":"s__echo","arguments":{}}"#;
    plain.say(http("POST", "/tools/call", &[bearer], body)).await;
    let forwarded = harness.servers.forwarded().await;
    revoke_ada(&tokens);
    assert_eq!(harness.servers.cancelled().await.0, forwarded.ticket());
    let refused = plain.reply().await;
    assert_eq!(refused.status, 401, "{refused:?}");
    assert!(refused.body.contains("unauthorized") && refused.body.contains("revoked"), "{refused:?}");
    while legacy.event().await.is_some() {}
    while modern.event().await.is_some() {}
    harness.stop();
    harness.ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_grant_ends_the_calls_that_began_with_the_former_one() {
    let (mut harness, tokens) = harness(two_tools(None), vec![token("ada", Grant::default())]);
    let mut host = harness.connect();
    host.say(tool("ada", "s__wipe", &json!({}))).await;
    let forwarded = harness.servers.forwarded().await;
    tokens.send_replace(Arc::new(vec![token("ada", for_tools(&["s__echo"]))]));
    assert_eq!(harness.servers.cancelled().await.0, forwarded.ticket());
    assert!(host.reply().await.body.contains("revoked"));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_revoked_while_a_request_body_comes_gets_401() {
    let (mut harness, tokens) = harness(two_tools(None), vec![token("ada", for_tools(&["s__echo"]))]);
    let request = tool("ada", "s__wipe", &json!({}));
    let (first, rest) = request.split_at(request.len() - 1);
    let mut host = harness.connect();
    host.say(first).await;
    harness.servers.nothing_forwarded().await;
    revoke_ada(&tokens);
    harness.servers.nothing_forwarded().await;
    host.say(rest).await;
    assert_eq!(host.reply().await.status, 401);
}

#[tokio::test(start_paused = true)]
async fn a_request_with_an_id_in_use_costs_no_quota() {
    let (mut harness, _tokens) = harness(two_tools(None), vec![token("ada", limited("", "2/day"))]);
    let bearer = ("authorization", "Bearer ada");
    let opened = harness.ask(post(&[bearer], INITIALIZE)).await;
    let session = ("mcp-session-id", &*opened.headers["mcp-session-id"]);
    let within = |body: &str| post(&[bearer, session, ("mcp-protocol-version", "2025-11-25")], body);
    let mut first = harness.connect();
    first.say(within(&call(7))).await;
    let forwarded = harness.servers.forwarded().await;
    let refused = harness.ask(within(&call(7))).await;
    assert!(refused.body.contains("-32600"), "{refused:?}");
    forwarded.answer("{}");
    first.reply().await;
    let mut second = harness.connect();
    second.say(within(&call(8))).await;
    harness.servers.forwarded().await.answer("{}");
    second.reply().await;
    let refused = harness.ask(within(&call(9))).await;
    assert!(refused.body.contains("-32029"), "{refused:?}");
    let again = harness.ask(within(&call(9))).await;
    assert!(again.body.contains("-32029"), "its id is free: {again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_gateway_stays_guarded_when_its_last_token_is_revoked() {
    let tokens = Tokens::new(Arc::new(Vec::new()));
    let harness = Harness::with_callers(two_tools(None), &[], Some(tokens.subscribe()));
    let asked = async || harness.ask(http("POST", "/mcp", &[], &request(1, "ping", "{}"))).await.status;
    assert_ne!(asked().await, 401);
    tokens.send_replace(Arc::new(vec![token("first", Grant::default())]));
    assert_eq!(asked().await, 401);
    tokens.send_replace(Arc::default());
    assert_eq!(asked().await, 401);
}

#[tokio::test(start_paused = true)]
async fn only_the_one_caller_without_a_name_has_the_users_memory_of_searches() {
    for (unnamed, by, is_user) in [
        (&["first"][..], "first", true),
        (&["first", "first"], "first", true),
        (&["first", "second"], "first", false),
        (&["first"], "ada", false),
    ] {
        let tokens = Tokens::new(Arc::new(vec![token("ada", Grant::default())]));
        let harness = Harness::with_callers(two_tools(Some(Mode::Search)), unnamed, Some(tokens.subscribe()));
        let (mut harness, asks) =
            (harness, tool(by, "search_tools", &json!({ "query": "wipe kookaburras" })));
        harness.searches.begin(Some(SearchMemory::default()));
        harness.ask(asks).await;
        let mut host = harness.connect();
        host.say(tool(by, "execute_tool", &json!({ "name": "s__wipe", "arguments": {} }))).await;
        harness.servers.forwarded().await.answer(r#"{"content":[]}"#);
        host.reply().await;
        let remembered = harness.searches.take_unsaved();
        assert_eq!(remembered.len(), usize::from(is_user), "{unnamed:?} {by}: {remembered:?}");
        let found =
            |caller: &str| harness.ask(tool(caller, "search_tools", &json!({ "query": "kookaburra" })));
        for caller in unnamed.iter().chain(&["ada"]) {
            let knows = found(caller).await.body.contains("s__wipe");
            assert_eq!(knows, is_user && caller != &"ada", "{unnamed:?} {by}: {caller}");
        }
    }
}
