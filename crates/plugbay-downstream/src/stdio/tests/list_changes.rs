//! `tools/list_changed` of a server during a call: the host gets the new list before the answer.

use std::{sync::Arc, time::Duration};

use plugbay_core::{
    catalog::{Catalog, Change, Offer, Tool, Variants},
    declaration::Declaration,
    era::{CLIENT_INFO_KEY, Era},
    exchange::ListChange,
    surface::{Layout, LiveSettings, Snapshot},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::harness::{
    Forwarded, Harness, INITIALIZED, call, cancel, list, listen, modern, request, server, snapshot,
};

const CHANGED: &str = "notifications/tools/list_changed";
const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A modern request from a client of this name.
fn of(client: &str, line: &str) -> String {
    let client = json!({ "name": client, "version": "1" });
    line.replacen(r#""_meta":{"#, &format!(r#""_meta":{{"{CLIENT_INFO_KEY}":{client},"#), 1)
}

/// A host of this name and era that has listed its tools, and a call by this host.
async fn calling(era: Era, client: &str) -> (Harness, Forwarded) {
    let mut harness = Harness::new();
    match era {
        Era::Legacy => {
            let client = json!({ "name": client, "version": "1" });
            let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
            harness.ask(request("\"i\"", "initialize", &params.to_string())).await;
            harness.say(INITIALIZED).await;
            harness.ask(list(1)).await;
            harness.say(call(2)).await;
        }
        Era::Modern => {
            harness.say(of(client, &listen(9))).await;
            harness.hear().await;
            harness.ask(of(client, &modern(1, "tools/list", ""))).await;
            harness.say(of(client, &modern(2, "tools/call", r#","name":"s__echo""#))).await;
        }
    }
    let call = harness.forwarded().await;
    (harness, call)
}

/// The server notifies of a list change.
fn changing(call: &Forwarded) -> Arc<ListChange> {
    let change = Arc::new(ListChange::default());
    call.caller().lists_changing(call.ticket(), &change);
    change
}

fn again(era: Era, client: &str) -> String {
    match era {
        Era::Legacy => list(3),
        Era::Modern => of(client, &modern(3, "tools/list", "")),
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_waits_for_the_new_list_and_for_the_host_to_list_again() {
    for era in ERAS {
        let (mut harness, call) = calling(era, "opencode").await;
        let change = changing(&call);
        call.answer(r#"{"content":[]}"#);
        harness.hear_nothing().await;
        harness.snapshots.send_replace(snapshot(&["echo", "more"], true));
        drop(change);
        assert_eq!(harness.hear().await["method"], CHANGED, "{era:?}");
        harness.hear_nothing().await;
        let listed = harness.ask(again(era, "opencode")).await;
        assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(2), "{listed}");
        assert_eq!(harness.hear().await["id"], 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_has_listed_before_the_answer_needs_time_to_settle_only() {
    let (mut harness, call) = calling(Era::Legacy, "gemini-cli-mcp-client").await;
    let change = changing(&call);
    harness.snapshots.send_replace(snapshot(&["echo", "more"], true));
    drop(change);
    assert_eq!(harness.hear().await["method"], CHANGED);
    harness.ask(again(Era::Legacy, "")).await;
    let begun = Instant::now();
    call.answer(r#"{"content":[]}"#);
    assert_eq!(harness.hear().await["id"], 2);
    assert_eq!(begun.elapsed(), Duration::from_millis(250));
}

#[tokio::test(start_paused = true)]
async fn the_answer_waits_for_the_pause_of_the_profile_at_most() {
    for publishes in [true, false] {
        let (mut harness, call) = calling(Era::Legacy, "claude-code").await;
        let change = changing(&call);
        let begun = Instant::now();
        call.answer(r#"{"content":[]}"#);
        if publishes {
            harness.snapshots.send_replace(snapshot(&["echo", "more"], true));
            drop(change);
            assert_eq!(harness.hear().await["method"], CHANGED);
        }
        assert_eq!(harness.hear().await["id"], 2);
        assert_eq!(begun.elapsed(), Duration::from_millis(1500));
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_the_same_after_all_does_not_hold_the_answer() {
    let (mut harness, call) = calling(Era::Legacy, "opencode").await;
    let change = changing(&call);
    let begun = Instant::now();
    call.answer(r#"{"content":[]}"#);
    drop(change);
    assert_eq!(harness.hear().await["id"], 2);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn only_hosts_that_list_again_wait_and_other_calls_go_on() {
    let (mut harness, deaf) = calling(Era::Legacy, "codex-mcp-client").await;
    let _change = changing(&deaf);
    deaf.answer(r#"{"content":[]}"#);
    assert_eq!(harness.hear().await["id"], 2);

    let (mut harness, held) = calling(Era::Legacy, "opencode").await;
    let _change = changing(&held);
    held.answer(r#"{"content":[]}"#);
    harness.say(call(4)).await;
    harness.forwarded().await.answer(r#"{"content":[]}"#);
    assert_eq!(harness.hear().await["id"], 4);
}

#[tokio::test(start_paused = true)]
async fn a_held_answer_of_a_cancelled_call_is_not_sent() {
    let (mut harness, call) = calling(Era::Legacy, "opencode").await;
    let change = changing(&call);
    call.answer(r#"{"content":[]}"#);
    harness.say(cancel(2)).await;
    harness.ask(request(5, "ping", "{}")).await;
    drop(change);
    harness.hear_nothing().await;
    harness.leave().await;
}

/// A server `s` with one tool for hosts without capabilities, and two for those with sampling.
fn choosy(is_known: bool) -> Snapshot {
    let offer = |names: &[&str]| {
        let tool = |name: &&str| Tool::parse(json!({ "name": name }).to_string().into()).unwrap();
        Arc::new(Offer::new(Era::Legacy, None, None, names.iter().map(tool).collect()))
    };
    let (poor, rich) = (offer(&["echo"]), offer(&["echo", "ask"]));
    let mut variants = Variants::default();
    variants.learn(&Declaration::default(), &poor, 1);
    if is_known {
        let text = br#"{"sampling":{}}"#;
        variants.learn(&Declaration::read(text, &(0..text.len())), &rich, 1);
    }
    variants.set_told(Some(Declaration::default()));
    let catalog = Catalog::default().apply(Change::Listed(server(), poor));
    let catalog = catalog.apply(Change::Varied(server(), Arc::new(variants)));
    let layout = (*snapshot(&["echo"], true).layout).clone();
    let settings = LiveSettings { list_wait: Duration::from_secs(5), ..layout.settings };
    Snapshot::new(Arc::new(catalog), Arc::new(Layout { settings, ..layout }), true)
}

fn declaring(client: &str, sampling: bool) -> String {
    let capabilities = if sampling { json!({ "sampling": {} }) } else { json!({}) };
    let client = json!({ "name": client, "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
    request("\"i\"", "initialize", &params.to_string())
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn tools_list_has_what_the_server_lists_for_the_capabilities_of_the_host() {
    for (sampling, expected) in [(false, &["s__echo"][..]), (true, &["s__ask", "s__echo"])] {
        let mut harness = Harness::with(choosy(true));
        harness.ask(declaring("codex-mcp-client", sampling)).await;
        harness.say(INITIALIZED).await;
        assert_eq!(names(&harness.ask(list(1)).await), expected);
        let mut modern_host = Harness::with(choosy(true));
        let request = modern(1, "tools/list", "");
        let declared = r#""io.modelcontextprotocol/clientCapabilities":{"#;
        let request = if sampling {
            request.replace(declared, &format!(r#"{declared}"sampling":{{}}"#))
        } else {
            request
        };
        assert_eq!(names(&modern_host.ask(request).await), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_lists_once_waits_a_moment_for_the_list_for_its_capabilities() {
    let mut harness = Harness::with(choosy(false));
    harness.ask(declaring("codex-mcp-client", true)).await;
    harness.say(list(1)).await;
    harness.hear_nothing().await;
    harness.snapshots.send_replace(choosy(true));
    assert_eq!(names(&harness.hear().await), ["s__ask", "s__echo"]);

    let mut harness = Harness::with(choosy(false));
    let begun = Instant::now();
    harness.ask(declaring("codex-mcp-client", true)).await;
    assert_eq!(names(&harness.ask(list(1)).await), ["s__echo"]);
    assert_eq!(begun.elapsed(), Duration::from_secs(3), "it does not wait for ever");
    assert_eq!(names(&harness.ask(list(2)).await), ["s__echo"]);

    let mut harness = Harness::with(choosy(false));
    let begun = Instant::now();
    harness.ask(declaring("claude-code", true)).await;
    harness.say(INITIALIZED).await;
    assert_eq!(names(&harness.ask(list(1)).await), ["s__echo"]);
    assert_eq!(begun.elapsed(), Duration::ZERO, "one that lists again does not wait");
    harness.snapshots.send_replace(choosy(true));
    assert_eq!(harness.hear().await["method"], CHANGED);
    assert_eq!(names(&harness.ask(list(2)).await), ["s__ask", "s__echo"]);
}
