//! `tools/list`: pages, changes, many changes at once, and calls meanwhile.

use std::time::Duration;

use plugbay_core::{capabilities::ClientCapabilities, era::Era, exchange::SubscriptionTarget};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    MINUTE, SECOND,
    harness::{Harness, Setup},
    host::{Host, HostEvent},
    peer::page,
};
use crate::server::Command;

#[tokio::test(start_paused = true)]
async fn calls_do_not_wait_for_tools_list() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    peer.list_changed().await;
    let list = peer.expect("tools/list").await;
    let call = harness.call("a");
    let request = peer.expect_call("a").await;
    peer.answer(&request, json!({ "a": 1 })).await;
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
    peer.answer(&list, page(&["echo", "more"])).await;
    assert_eq!(harness.report().await, "echo more");
}

#[tokio::test(start_paused = true)]
async fn a_long_page_of_tools_list_is_read_beside_the_actor() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    peer.list_changed().await;
    let list = peer.expect("tools/list").await;
    let tool = |name: &str, length: usize| json!({ "name": name, "description": "x".repeat(length) });
    let tools = [tool("one", 700_000), tool("two", 700_000), tool("vast", 2 << 20)];
    peer.answer(&list, json!({ "tools": tools, "nextCursor": "2" })).await;
    let next = peer.expect("tools/list").await;
    peer.answer(&next, page(&["three"])).await;
    assert_eq!(harness.report().await, "one three two");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_while_its_page_is_read_lists_again() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    peer.list_changed().await;
    let list = peer.expect("tools/list").await;
    let description = "x".repeat(900_000);
    let tools: Vec<_> =
        (0..8).map(|n| json!({ "name": n.to_string(), "description": description })).collect();
    peer.answer(&list, json!({ "tools": tools, "nextCursor": "2" })).await;
    drop(peer);
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn many_list_changed_notifications_lead_to_two_listings() {
    for era in [Era::Legacy, Era::Modern] {
        let (mut harness, mut peer) = Harness::ready(Setup::default(), era).await;
        peer.list_changed().await;
        let first = peer.expect("tools/list").await;
        for _ in 0..500 {
            peer.list_changed().await;
            harness.handle.refresh();
        }
        peer.expect_nothing().await;
        peer.answer(&first, page(&["old"])).await;
        peer.list(&["new"]).await;
        peer.expect_nothing().await;
        assert_eq!((harness.report().await, harness.report().await), ("old".into(), "new".into()));
    }
}

#[tokio::test(start_paused = true)]
async fn list_changed_of_a_crashed_server_does_not_delay_the_next_listing() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    peer.list_changed().await;
    peer.expect("tools/list").await;
    peer.list_changed().await;
    peer.expect_nothing().await;
    drop(peer);
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn pages_of_tools_list_are_collected_and_end() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    harness.handle.refresh();
    let mut cursors = Vec::new();
    for (tools, next) in [(["a", "b"], "p2"), (["c", "b"], "p3"), (["d", "e"], "p3")] {
        let request = peer.expect("tools/list").await;
        cursors.push(request["params"]["cursor"].clone());
        let mut result = page(&tools);
        result["nextCursor"] = next.into();
        peer.answer(&request, result).await;
    }
    assert_eq!(cursors, [json!(null), json!("p2"), json!("p3")]);
    assert_eq!(harness.report().await, "a b c d e", "a cursor that repeats itself is the end");
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_tools_list_has_failed() {
    let cases = [
        (r#"{"jsonrpc":"2.0","id":#,"error":{"code":1,"message":"not now"}}"#, "tools: not now"),
        (r#"{"jsonrpc":"2.0","id":#,"result":{"tools":[}}"#, "unusable: server 's' sent"),
        (r#"{"jsonrpc":"2.0","id":#,"result":{"tools":["#, "unusable: server 's' sent"),
        (r#"{"id":#,"result":{"tools":[]}}"#, "unusable: server 's' sent"),
    ];
    for (answer, words) in cases {
        let mut harness = Harness::new(Setup::default());
        let call = harness.call("a");
        let mut peer = harness.launched().await;
        peer.open(Era::Legacy).await;
        let request = peer.expect("tools/list").await;
        peer.say(answer.replace('#', &request["id"].to_string())).await;
        let report = harness.report().await;
        assert!(report.contains(words), "{answer}: {report}");
        assert!(harness.calls.end(call).await.contains(words));
    }
}

/// Many servers do one thing at a time: then a list waits for the call before it.
#[tokio::test(start_paused = true)]
async fn a_slow_tools_list_behind_a_call_does_not_end_the_server() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let call = harness.call("long");
    let request = peer.expect_call("long").await;
    peer.list_changed().await;
    let list = peer.expect("tools/list").await;
    sleep(100 * SECOND).await;
    peer.answer(&request, json!({ "done": 1 })).await;
    assert_eq!(harness.calls.end(call).await, r#"{"done":1}"#);
    sleep(10 * SECOND).await;
    peer.answer(&list, page(&["new"])).await;
    assert_eq!(harness.report().await, "new");
}

#[tokio::test(start_paused = true)]
async fn a_failed_second_tools_list_keeps_the_tools() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    sleep(10 * SECOND).await;
    peer.list_changed().await;
    peer.expect("tools/list").await; // and no answer
    sleep(MINUTE).await;
    peer.list_changed().await;
    let list = peer.expect("tools/list").await;
    peer.refuse(&list, "not now").await;
    let call = harness.call("still");
    let request = peer.expect_call("still").await;
    peer.answer(&request, json!({ "here": 1 })).await;
    assert_eq!(harness.calls.end(call).await, r#"{"here":1}"#);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_tools_capability_gets_no_tools_list() {
    let mut harness = Harness::new(Setup { known: None, ..Setup::default() });
    harness.handle.refresh();
    let mut peer = harness.launched().await;
    let request = peer.expect("server/discover").await;
    peer.answer(&request, json!({ "capabilities": { "completions": {} } })).await;
    assert_eq!(harness.report().await, "");
    peer.expect_nothing().await;
    harness.condition(|condition| *condition == crate::Condition::Ready).await;
}

#[tokio::test(start_paused = true)]
async fn each_item_kind_is_listed_and_a_refusal_affects_its_kind_only() {
    let mut harness = Harness::new(Setup { known: None, ..Setup::default() });
    harness.handle.refresh();
    let mut peer = harness.launched().await;
    let request = peer.expect("server/discover").await;
    let able = json!({ "tools": {}, "resources": { "subscribe": true }, "prompts": {}, "completions": {} });
    peer.answer(&request, json!({ "capabilities": able })).await;
    let request = peer.expect("tools/list").await;
    peer.answer(&request, page(&["a"])).await;
    let listened = peer.expect("subscriptions/listen").await;
    let wanted =
        json!({ "toolsListChanged": true, "resourcesListChanged": true, "promptsListChanged": true });
    assert_eq!(listened["params"]["notifications"], wanted);
    let request = peer.expect("resources/list").await;
    peer.answer(&request, json!({ "resources": [{ "uri": "x:2" }], "nextCursor": "more" })).await;
    let request = peer.expect("resources/list").await;
    assert_eq!(request["params"]["cursor"], "more");
    peer.answer(&request, json!({ "resources": [{ "uri": "x:1" }, { "no": "uri" }] })).await;
    let request = peer.expect("resources/templates/list").await;
    peer.refuse(&request, "what is that?").await;
    let request = peer.expect("prompts/list").await;
    peer.answer(&request, json!({ "prompts": [{ "name": "p" }] })).await;
    let offer = harness.offer().await;
    let keys = |items: &[plugbay_core::catalog::Item]| {
        items.iter().map(|item| item.key.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!([keys(&offer.resources), keys(&offer.templates), keys(&offer.prompts)], ["x:1 x:2", "", "p"]);
    assert!(offer.capabilities.subscribe && offer.capabilities.completions && !offer.capabilities.logging);
}

#[tokio::test(start_paused = true)]
async fn skills_are_listed_page_by_page_and_a_server_that_does_not_answer_keeps_its_tools() {
    for answers in [true, false] {
        let mut harness = Harness::new(Setup { known: None, ..Setup::default() });
        harness.handle.refresh();
        let mut peer = harness.launched().await;
        let request = peer.expect("server/discover").await;
        let extensions = json!({ "io.modelcontextprotocol/skills": { "directoryRead": true } });
        peer.answer(&request, json!({ "capabilities": { "tools": {}, "extensions": extensions } })).await;
        let request = peer.expect("tools/list").await;
        peer.answer(&request, page(&["a"])).await;
        peer.expect("subscriptions/listen").await;
        let request = peer.expect("skills/list").await;
        peer.answer(&request, json!({ "skills": [{ "uri": "skill://b/SKILL.md" }], "nextCursor": "2" }))
            .await;
        let request = peer.expect("skills/list").await;
        assert_eq!(request["params"]["cursor"], "2");
        if answers {
            peer.answer(&request, json!({ "skills": [{ "uri": "skill://a/SKILL.md" }] })).await;
        }
        let offer = harness.offer().await;
        let skills: Vec<&str> = offer.skills.iter().map(|skill| skill.key.as_str()).collect();
        let all = ["skill://a/SKILL.md", "skill://b/SKILL.md"];
        assert_eq!(skills, if answers { &all[..] } else { &all[1..] });
        assert_eq!(offer.tools.len(), 1);
        assert!(offer.capabilities.skills && offer.capabilities.directory_read);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_does_not_overtake_a_subscription() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Modern).await;
    for uri in [r#""x:1""#, r#""x:2""#] {
        harness.handle.send(Command::Subscribe(SubscriptionTarget::Resource(uri.into())));
    }
    harness.call("echo");
    let listened = peer.expect("subscriptions/listen").await;
    assert_eq!(listened["params"]["notifications"]["resourceSubscriptions"], json!(["x:1", "x:2"]));
    peer.expect("notifications/cancelled").await; // the one that asked for less
    peer.expect("tools/call").await;
}

#[tokio::test(start_paused = true)]
async fn list_changed_during_a_call_is_over_for_it_when_its_report_is_dealt_with() {
    for era in [Era::Legacy, Era::Modern] {
        let (mut harness, mut peer) = Harness::ready(Setup::default(), era).await;
        let host = Host::new(None);
        let call = harness.call_by(&host, "grow");
        let request = peer.expect_call("grow").await;
        peer.list_changed().await;
        peer.answer(&request, json!({ "a": 1 })).await;
        assert_eq!(host.next_event().await, HostEvent::ListsChanging(call));
        let HostEvent::Answered(..) = host.next_event().await else { panic!("no answer") };
        peer.list(&["echo", "new"]).await;
        let report = harness.whole_report().await;
        host.expect_nothing_more();
        drop(report);
        assert_eq!(host.next_event().await, HostEvent::ListsChanged(call));
    }
}

#[tokio::test(start_paused = true)]
async fn list_changed_during_a_listing_is_over_with_the_next_listing() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    harness.handle.refresh();
    let old = peer.expect("tools/list").await;
    let call = harness.call_by(&host, "grow");
    peer.expect_call("grow").await;
    peer.list_changed().await;
    assert_eq!(host.next_event().await, HostEvent::ListsChanging(call));
    peer.answer(&old, page(&["old"])).await;
    assert_eq!(harness.report().await, "old");
    peer.expect("tools/list").await;
    host.expect_nothing_more();
    drop(peer); // a server that is gone changes nothing any more
    assert_eq!(host.next_event().await, HostEvent::ListsChanged(call));
}

#[tokio::test(start_paused = true)]
async fn no_call_waits_for_a_listing_that_was_put_off() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    let call = harness.call_by(&host, "flood");
    peer.expect_call("flood").await;
    let begun = Instant::now();
    for number in 0..6 {
        peer.list_changed().await;
        assert_eq!(host.next_event().await, HostEvent::ListsChanging(call));
        if number < 4 {
            peer.list(&["echo"]).await;
            harness.report().await;
            assert_eq!(begun.elapsed(), Duration::ZERO, "a few are listed at once");
        }
        assert_eq!(host.next_event().await, HostEvent::ListsChanged(call));
    }
    peer.list(&["echo"]).await;
    assert_eq!(begun.elapsed(), SECOND);
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_is_reported_with_what_the_server_was_told_and_whether_a_call_came_before() {
    for era in [Era::Legacy, Era::Modern] {
        let (mut harness, mut peer) = Harness::ready(Setup::default(), era).await;
        let rich = ClientCapabilities { sampling: true, ..ClientCapabilities::NONE };
        harness.context.host_registry.add_capabilities(rich);
        harness.handle.send(Command::ClientCapabilitiesGrew);
        if era == Era::Legacy {
            peer = harness.launched().await;
            peer.open(era).await;
        }
        let request = peer.expect("tools/list").await;
        if era == Era::Modern {
            let key = "io.modelcontextprotocol/clientCapabilities";
            assert_eq!(request["params"]["_meta"][key], json!({ "sampling": {} }));
        }
        peer.answer(&request, page(&["echo", "ask"])).await;
        let report = harness.whole_report().await;
        assert_eq!((report.terms.told.capabilities, report.terms.untouched), (rich, true), "{era:?}");
        harness.call("echo");
        peer.expect_call("echo").await;
        harness.handle.refresh();
        peer.list(&["echo"]).await;
        assert!(!harness.whole_report().await.terms.untouched);
    }
}
