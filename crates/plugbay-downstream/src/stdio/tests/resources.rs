//! Resources, templates, prompts and completions: lists, routing to their server, and change notifications.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    catalog::{Catalog, Change, Item, ItemKind, Items, Offer, ServerCapabilities},
    era::Era,
    exposure::Mode,
    surface::{Layout, Snapshot},
};
use serde_json::json;

use super::harness::{Harness, INITIALIZE, modern, request, server, unsettled};

/// The server `s` with a resource, a template and these prompts.
pub(super) fn stocked(prompts: &[&str]) -> Snapshot {
    stocked_with(prompts, true)
}

/// A server that has resources, but does not notify of changes.
pub(super) fn silent() -> Snapshot {
    stocked_with(&[], false)
}

fn stocked_with(prompts: &[&str], subscribe: bool) -> Snapshot {
    let item = |item_kind, json: String| Item::parse(Bytes::from(json), item_kind).expect("an item");
    let stock = Items {
        resources: vec![item(ItemKind::Resource, r#"{ "uri":"x://1","size":1.0}"#.to_owned())],
        templates: vec![item(ItemKind::Template, r#"{"uriTemplate":"x://{n}"}"#.to_owned())],
        prompts: prompts
            .iter()
            .map(|name| item(ItemKind::Prompt, format!(r#"{{"name":"{name}"}}"#)))
            .collect(),
        ..Items::default()
    };
    let capabilities = ServerCapabilities {
        resources: true,
        subscribe,
        prompts: true,
        completions: true,
        ..ServerCapabilities::default()
    };
    let offer = Offer::new(Era::Legacy, None, None, Vec::new()).with_items(capabilities, stock);
    let catalog = Catalog::default().apply(Change::Listed(server(), Arc::new(offer)));
    let layout = Layout { mode: Some(Mode::All), name_limit: 64, ..Layout::default() };
    Snapshot::new(Arc::new(catalog), Arc::new(layout), true)
}

#[tokio::test(start_paused = true)]
async fn resource_lists_are_sent_as_the_server_wrote_them() {
    let [mut harness, mut stateless] = [(); 2].map(|()| Harness::with(stocked(&["review"])));
    for (method, list) in [
        ("resources/list", r#"{"resources":[{ "uri":"x://1","size":1.0}]"#),
        ("resources/templates/list", r#"{"resourceTemplates":[{"uriTemplate":"x://{n}"}]"#),
        ("prompts/list", r#"{"prompts":[{"name":"s__review"}]"#),
    ] {
        harness.say(request(1, method, "{}")).await;
        assert_eq!(harness.hear_text().await, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{list}}}}}"#));
        stateless.say(modern(2, method, "")).await;
        let answer = stateless.hear_text().await;
        assert!(answer.contains(list) && answer.contains(r#""resultType":"complete","ttlMs":0"#), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn resource_and_prompt_requests_use_the_names_of_the_server() {
    let mut harness = Harness::with(stocked(&["review"]));
    for (method, params, own) in [
        (
            "prompts/get",
            r#"{"name":"s__review","arguments":{"a":1.0}}"#,
            r#"{"name":"review","arguments":{"a":1.0}}"#,
        ),
        ("resources/read", r#"{"uri":"x://1"}"#, r#"{"uri":"x://1"}"#),
        ("resources/read", r#"{"uri":"plugbay://s/y:2"}"#, r#"{"uri":"y:2"}"#),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"s__review"},"argument":{"name":"name","value":"s__review"}}"#,
            r#"{"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"name","value":"s__review"}}"#,
        ),
        (
            "completion/complete",
            r#"{"ref":{"type":"ref/resource","uri":"x://{n}"},"argument":{"name":"n","value":""}}"#,
            r#"{"ref":{"type":"ref/resource","uri":"x://{n}"},"argument":{"name":"n","value":""}}"#,
        ),
    ] {
        harness.say(request(7, method, params)).await;
        let forwarded = harness.forwarded().await;
        assert_eq!(forwarded.text(), request(forwarded.ticket().0, method, own));
        forwarded.answer(r#"{"v":1.0}"#);
        assert!(harness.hear_text().await.contains(r#""result":{"v":1.0}"#), "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_servers_resource_is_complete_to_a_modern_host() {
    let mut harness = Harness::with(stocked(&[]));
    harness.say(modern(1, "resources/read", r#","uri":"x://1""#)).await;
    harness.forwarded().await.answer(r#"{"contents":[]}"#);
    let result = harness.hear().await["result"].clone();
    let expected = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "contents": [] });
    assert_eq!(result, expected);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_resource_has_the_error_code_of_the_era() {
    let mut harness = Harness::with(stocked(&["review"]));
    let unknown = harness.ask(request(1, "prompts/get", r#"{"name":"review"}"#)).await;
    assert_eq!(unknown["error"]["message"], "Unknown prompt: review. Did you mean s__review?");
    let mut empty = Harness::new(); // its server has no resources
    let legacy = empty.ask(request(1, "resources/read", r#"{"uri":"y:1"}"#)).await;
    assert_eq!((&legacy["error"]["code"], &legacy["error"]["data"]["uri"]), (&json!(-32002), &json!("y:1")));
    let modern = empty.ask(modern(1, "resources/read", r#","uri":"y:1""#)).await;
    assert_eq!(modern["error"]["code"], -32602);
    for params in ["{}", r#"{"ref":{}}"#, r#"{"ref":"x"}"#] {
        assert_eq!(empty.ask(request(1, "completion/complete", params)).await["error"]["code"], -32602);
    }
}

#[tokio::test(start_paused = true)]
async fn server_capabilities_are_merged_or_complete_while_unknown() {
    let opened =
        async |snapshot| Harness::with(snapshot).ask(INITIALIZE).await["result"]["capabilities"].clone();
    let tools = json!({ "listChanged": true });
    assert_eq!(opened(super::harness::snapshot(&[], true)).await, json!({ "tools": tools }));
    let all = |subscribe: bool| {
        let resources = json!({ "listChanged": true, "subscribe": subscribe });
        json!({ "tools": tools, "prompts": tools, "resources": resources, "completions": {} })
    };
    assert_eq!(opened(stocked(&[])).await, all(true));
    assert_eq!(opened(silent()).await, all(false));
    let mut unknown = all(true);
    unknown["logging"] = json!({});
    unknown["tasks"] = json!({ "requests": { "tools": { "call": {} } }, "list": {}, "cancel": {} });
    unknown["extensions"] = json!({ "io.modelcontextprotocol/skills": {} });
    assert_eq!(opened(unsettled()).await, unknown);
}

#[tokio::test(start_paused = true)]
async fn list_changed_names_the_list_that_changed_only() {
    let mut harness = Harness::legacy().await;
    harness.snapshots.send_replace(stocked(&["one"]));
    harness.ask(request(1, "prompts/list", "{}")).await;
    harness.ask(request(2, "resources/list", "{}")).await;
    harness.snapshots.send_replace(stocked(&["two"]));
    assert_eq!(harness.hear().await["method"], "notifications/prompts/list_changed");
    let listed = harness.ask(request(3, "prompts/list", "{}")).await;
    assert_eq!(listed["result"]["prompts"][0]["name"], "s__two", "and nothing came before this answer");
}

/// Everything that reaches a server counts against the limits, not only calls.
#[tokio::test(start_paused = true)]
async fn subscriptions_and_unknown_notifications_count_against_the_rate_limit() {
    let stocked = stocked(&[]);
    let mut layout = (*stocked.layout).clone();
    layout.settings.call_limits.rate = "2/hour".parse().ok();
    let mut harness = Harness::with(Snapshot::new(stocked.catalog, Arc::new(layout), true));
    harness.open().await;
    let subscribe = |n: u32| request(n, "resources/subscribe", &format!(r#"{{"uri":"x://{n}"}}"#));
    for n in 1..=2 {
        assert_eq!(harness.ask(subscribe(n)).await["result"], json!({}));
        harness.item_subscribed().await;
    }
    assert_eq!(harness.ask(subscribe(3)).await["error"]["code"], -32029);
    harness.say(r#"{"jsonrpc":"2.0","method":"vendor/told","params":{"uri":"x://1"}}"#).await;
    harness.nothing_forwarded().await;
}
