//! Subscriptions and log levels of hosts, and their way to servers.

use std::sync::Arc;

use plugbay_core::{
    era::Era,
    exchange::{Caller, SubscriptionTarget, Ticket},
    level::Level,
    start::Priority,
    wire::write,
};
use serde_json::json;

use super::{
    harness::{Harness, Scripted, Setup},
    host::{Host, HostEvent},
    peer::Peer,
};
use crate::{Starts, server::Command};

/// A legacy server that supports subscriptions and log levels.
async fn attentive() -> (Harness, Peer) {
    let mut harness = Harness::new(Setup::default());
    harness.handle.refresh();
    let mut peer = harness.launched().await;
    let request = peer.expect("initialize").await;
    let able = json!({ "tools": {}, "resources": { "subscribe": true }, "logging": {} });
    peer.answer(&request, json!({ "capabilities": able })).await;
    peer.expect("notifications/initialized").await;
    for (method, kind) in [
        ("tools/list", "tools"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ] {
        let request = peer.expect(method).await;
        peer.answer(&request, json!({ kind: [] })).await;
    }
    harness.offer().await;
    (harness, peer)
}

#[tokio::test(start_paused = true)]
async fn a_server_gets_unsubscribe_when_the_last_subscriber_leaves() {
    let (harness, mut peer) = attentive().await;
    let what = || SubscriptionTarget::Resource(r#""x:1""#.into());
    harness.handle.send(Command::Subscribe(what()));
    assert_eq!(peer.expect("resources/subscribe").await["params"], json!({ "uri": "x:1" }));
    harness.handle.send(Command::Subscribe(what()));
    harness.handle.send(Command::Unsubscribe(what()));
    peer.expect_nothing().await; // somebody still does
    harness.handle.send(Command::Unsubscribe(what()));
    assert_eq!(peer.expect("resources/unsubscribe").await["params"], json!({ "uri": "x:1" }));
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Modern).await;
    harness.handle.send(Command::Subscribe(what()));
    peer.expect("subscriptions/listen").await;
    peer.expect("notifications/cancelled").await;
    peer.list(&["echo"]).await;
    harness.handle.send(Command::Unsubscribe(what()));
    let listened = peer.expect("subscriptions/listen").await;
    assert_eq!(listened["params"]["notifications"], json!({ "toolsListChanged": true }));
}

#[tokio::test(start_paused = true)]
async fn logging_set_level_is_the_lowest_level_that_a_host_wants() {
    let (mut harness, mut peer) = attentive().await;
    let hosts: [Arc<dyn Caller>; 2] = [Host::new(None), Host::new(None)];
    let [one, other] = hosts.each_ref().map(Arc::downgrade);
    for (host, level, told) in [
        (&one, Some(Level::Debug), Some("debug")),
        (&other, Some(Level::Error), None),
        (&one, Some(Level::Warning), Some("warning")),
        (&one, None, Some("error")),
        (&other, None, None), // nobody has a wish, and there is no word for that
        (&other, Some(Level::Error), None),
    ] {
        harness.context.host_registry.wants_log(host, level);
        harness.handle.send(Command::LogLevelChanged);
        match told {
            Some(word) => {
                assert_eq!(peer.expect("logging/setLevel").await["params"], json!({ "level": word }));
            }
            None => peer.expect_nothing().await,
        }
    }
    drop(peer);
    harness.handle.refresh();
    let mut peer = harness.launched().await;
    let request = peer.expect("initialize").await;
    peer.answer(&request, json!({ "capabilities": { "logging": {} } })).await;
    peer.expect("notifications/initialized").await;
    let told = peer.expect("logging/setLevel").await;
    assert_eq!(told["params"], json!({ "level": "error" }), "as its predecessor was told");
}

#[tokio::test(start_paused = true)]
async fn unknown_notifications_go_to_the_only_host_or_to_none() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let hosts = [Host::new(None), Host::new(None)];
    let join = |host: &Arc<Host>| {
        let host: Arc<dyn Caller> = host.clone();
        harness.context.host_registry.joined(Arc::downgrade(&host));
        harness.context.host_registry.reads(Arc::downgrade(&host));
    };
    join(&hosts[0]);
    peer.notify("notifications/acme/done", json!({ "for": "the first" })).await;
    let HostEvent::Notification(text) = hosts[0].next_event().await else { panic!() };
    assert!(text.contains("acme/done"), "{text}");
    join(&hosts[1]);
    peer.notify("notifications/acme/done", json!({ "for": "one of them" })).await;
    peer.notify("notifications/message", json!({ "level": "error", "data": 1 })).await;
    for host in &hosts {
        let HostEvent::Notification(text) = host.next_event().await else { panic!() };
        assert!(text.contains("notifications/message"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_for_a_subscription_keeps_its_turn_when_a_call_is_cancelled() {
    let starts = Starts::with(1, Arc::new(Scripted::default()));
    let mut other = starts.gate().enter(Priority::Called);
    other.granted().await;
    let mut harness = Harness::new(Setup { starts: Arc::clone(&starts), ..Setup::default() });
    harness.handle.send(Command::Subscribe(SubscriptionTarget::Resource(r#""x:1""#.into())));
    let notification = write::cancellation("the host has cancelled it");
    harness.handle.send(Command::Cancel { ticket: Ticket(u64::MAX), notification });
    harness.condition(|condition| *condition != crate::Condition::Idle).await;
    drop(other);
    harness.launched().await;
}
