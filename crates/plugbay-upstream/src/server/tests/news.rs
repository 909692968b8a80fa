//! What hosts want to hear, and how servers learn of it.

use std::sync::Arc;

use plugbay_core::{
    era::Era,
    exchange::{Caller, Interest},
    level::Level,
};
use serde_json::json;

use super::{
    asks::{Heard, Host},
    peer::Peer,
    world::{Setup, World},
};
use crate::server::Command;

/// A legacy server that can be told what hosts want to hear.
async fn attentive() -> (World, Peer) {
    let mut world = World::new(Setup::default());
    world.handle.refresh();
    let mut peer = world.launched().await;
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
    world.offer().await;
    (world, peer)
}

#[tokio::test(start_paused = true)]
async fn a_server_hears_when_nobody_watches_any_more() {
    let (world, mut peer) = attentive().await;
    let what = || Interest::Resource(r#""x:1""#.into());
    world.handle.send(Command::Watch(what()));
    assert_eq!(peer.expect("resources/subscribe").await["params"], json!({ "uri": "x:1" }));
    world.handle.send(Command::Watch(what()));
    world.handle.send(Command::Unwatch(what()));
    peer.expect_nothing().await; // somebody still does
    world.handle.send(Command::Unwatch(what()));
    assert_eq!(peer.expect("resources/unsubscribe").await["params"], json!({ "uri": "x:1" }));
    let (world, mut peer) = World::ready(Setup::default(), Era::Modern).await;
    world.handle.send(Command::Watch(what()));
    peer.expect("subscriptions/listen").await;
    peer.expect("notifications/cancelled").await;
    peer.list(&["echo"]).await;
    world.handle.send(Command::Unwatch(what()));
    let listened = peer.expect("subscriptions/listen").await;
    assert_eq!(listened["params"]["notifications"], json!({ "toolsListChanged": true }));
}

#[tokio::test(start_paused = true)]
async fn a_server_logs_as_the_most_curious_host_wants_it() {
    let (mut world, mut peer) = attentive().await;
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
        world.surroundings.audience.wants_log(host, level);
        world.handle.send(Command::LogLevelChanged);
        match told {
            Some(word) => {
                assert_eq!(peer.expect("logging/setLevel").await["params"], json!({ "level": word }));
            }
            None => peer.expect_nothing().await,
        }
    }
    drop(peer);
    world.handle.refresh();
    let mut peer = world.launched().await;
    let request = peer.expect("initialize").await;
    peer.answer(&request, json!({ "capabilities": { "logging": {} } })).await;
    peer.expect("notifications/initialized").await;
    let told = peer.expect("logging/setLevel").await;
    assert_eq!(told["params"], json!({ "level": "error" }), "as its predecessor was told");
}

#[tokio::test(start_paused = true)]
async fn what_nobody_here_knows_is_told_to_the_only_host_or_to_none() {
    let (world, mut peer) = World::ready(Setup::default(), Era::Legacy).await;
    let hosts = [Host::new(None), Host::new(None)];
    let join = |host: &Arc<Host>| {
        let host: Arc<dyn Caller> = host.clone();
        world.surroundings.audience.joined(Arc::downgrade(&host));
        world.surroundings.audience.reads(Arc::downgrade(&host));
    };
    join(&hosts[0]);
    peer.notify("notifications/acme/done", json!({ "for": "the first" })).await;
    let Heard::Told(text) = hosts[0].hear().await else { panic!() };
    assert!(text.contains("acme/done"), "{text}");
    join(&hosts[1]);
    peer.notify("notifications/acme/done", json!({ "for": "one of them" })).await;
    peer.notify("notifications/message", json!({ "level": "error", "data": 1 })).await;
    for host in &hosts {
        let Heard::Told(text) = host.hear().await else { panic!() };
        assert!(text.contains("notifications/message"), "{text}");
    }
}
