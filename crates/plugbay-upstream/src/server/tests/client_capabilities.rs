//! Client capabilities: declared to servers, and declared again when they grow.

use bytes::Bytes;
use plugbay_core::{capabilities::ClientCapabilities, era::Era};
use serde_json::json;

use super::{
    harness::{Harness, Setup},
    host::{Host, HostEvent},
    soon,
};
use crate::server::Command;

#[tokio::test(start_paused = true)]
async fn initialize_declares_the_capabilities_of_hosts() {
    let mut harness = Harness::new(Setup::default());
    harness.context.host_registry.add_capabilities(ClientCapabilities {
        sampling: true,
        url: true,
        ..ClientCapabilities::NONE
    });
    harness.handle.refresh();
    let mut peer = harness.launched().await;
    let request = peer.expect("initialize").await;
    assert_eq!(request["params"]["capabilities"], json!({ "sampling": {}, "elicitation": { "url": {} } }));
}

#[tokio::test(start_paused = true)]
async fn a_modern_call_declares_the_capabilities_of_its_caller() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Modern).await;
    harness.call_by(&Host::new(None), "a");
    let call = peer.expect_call("a").await;
    let key = "io.modelcontextprotocol/clientCapabilities";
    assert_eq!(call["params"]["_meta"][key], json!({ "elicitation": { "form": {} }, "roots": {} }));
}

#[tokio::test(start_paused = true)]
async fn grown_client_capabilities_reopen_an_idle_legacy_server() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    harness.call_by(&host, "a");
    let request = peer.expect_call("a").await;
    assert!(
        harness
            .context
            .host_registry
            .add_capabilities(ClientCapabilities { sampling: true, ..ClientCapabilities::NONE })
    );
    harness.handle.send(Command::ClientCapabilitiesGrew);
    peer.expect_nothing().await; // it is at work
    peer.answer(&request, json!({ "a": 1 })).await;
    peer.expect_end().await;
    let mut next = harness.launched().await;
    let request = next.expect("initialize").await;
    assert_eq!(request["params"]["capabilities"], json!({ "sampling": {} }));
    let HostEvent::Answered(_, answer) = host.next_event().await else { panic!("no end") };
    assert_eq!(answer, r#"{"a":1}"#);
    next.answer(&request, json!({ "capabilities": { "tools": {} } })).await;
    next.expect("notifications/initialized").await;
    next.list(&["echo"]).await;
    harness.handle.send(Command::ClientCapabilitiesGrew); // nothing new
    next.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn roots_list_changed_goes_to_servers_that_know_of_roots() {
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    for roots in [true, false] {
        let mut harness = Harness::new(Setup::default());
        harness
            .context
            .host_registry
            .add_capabilities(ClientCapabilities { roots, ..ClientCapabilities::NONE });
        harness.handle.refresh();
        let mut peer = harness.launched().await;
        peer.open(Era::Legacy).await;
        peer.list(&["echo"]).await;
        assert_eq!(harness.report().await, "echo");
        harness.handle.send(Command::RootsChanged(Bytes::from_static(changed.as_bytes())));
        if roots {
            assert_eq!(soon("a notification", peer.receive()).await.as_deref(), Some(changed));
        } else {
            peer.expect_nothing().await;
        }
    }
}
