//! MCP tasks: their hosts, their timeouts, and their loss when the server crashes.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    era::{CAPABILITIES_KEY, Era},
    exchange::{Caller, SubscriptionTarget},
    task::{EXTENSION, TaskRole},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    MINUTE, SECOND,
    harness::{Harness, Setup},
    host::{Host, HostEvent},
    peer::Peer,
};
use crate::{server::Command, spec::Timeouts};

/// A host's call that the server answers with a task, which it keeps for `ttl`.
async fn begin(harness: &Harness, peer: &mut Peer, host: &Arc<Host>, id: &str, ttl: Value) -> Value {
    let call = harness.call_with_role(host, "begin", TaskRole::Begin);
    let request = peer.expect_call("begin").await;
    peer.answer(&request, json!({ "task": { "taskId": id, "status": "working", "ttl": ttl } })).await;
    let HostEvent::Answered(ended, _) = host.next_event().await else { panic!("no answer") };
    assert_eq!(ended, call);
    request
}

fn about(id: &str) -> TaskRole {
    TaskRole::About(id.into())
}

#[tokio::test(start_paused = true)]
async fn tasks_result_has_no_timeout() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    let waiting = harness.call_with_role(&host, "result", TaskRole::Await("1".into()));
    let request = peer.expect_call("result").await;
    sleep(20 * 60 * MINUTE).await;
    host.expect_nothing_more();
    peer.answer(&request, json!({ "done": 1 })).await;
    assert_eq!(host.next_event().await, HostEvent::Answered(waiting, r#"{"done":1}"#.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_task_in_progress_is_not_stopped_when_idle() {
    for (ttl, over, stays) in
        [(json!(20 * 60 * 1000), false, 25), (Value::Null, false, 65), (json!(20 * 60 * 1000), true, 5)]
    {
        let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
        let host = Host::new(None);
        begin(&harness, &mut peer, &host, "1", ttl.clone()).await;
        if over {
            let ended = json!({ "taskId": "1", "status": "completed" });
            peer.notify("notifications/tasks/status", ended).await;
            let HostEvent::Notification(_) = host.next_event().await else { panic!() };
        }
        let begun = Instant::now();
        peer.expect_end().await;
        let stayed = begun.elapsed();
        assert!(stayed >= (stays - 5) * MINUTE && stayed <= stays * MINUTE, "{ttl} {over}: {stayed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_lost_with_its_server_is_answered_with_the_reason() {
    let timeouts = Timeouts { shutdown: SECOND, ..Timeouts::default() };
    let (mut harness, mut peer) = Harness::ready(Setup { timeouts, ..Setup::default() }, Era::Legacy).await;
    let host = Host::new(None);
    begin(&harness, &mut peer, &host, "1", Value::Null).await;
    let waiting = harness.call_with_role(&host, "result", TaskRole::Await("1".into()));
    peer.expect_call("result").await;
    drop(peer);
    let HostEvent::Answered(ended, why) = host.next_event().await else { panic!() };
    assert!(ended == waiting && why.starts_with("server 's' failed"), "{why}");

    harness.handle.refresh();
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    for (id, words) in [("1", "the task was lost with server 's', which failed"), ("other", "no such task")] {
        harness.call_with_role(&host, "get", about(id));
        let request = peer.expect_call("get").await;
        peer.refuse(&request, "no such task").await;
        let HostEvent::Answered(_, why) = host.next_event().await else { panic!() };
        assert!(why.contains(words), "{why}");
    }
    // Some servers keep their tasks elsewhere.
    harness.call_with_role(&host, "get", about("1"));
    let request = peer.expect_call("get").await;
    peer.answer(&request, json!({ "taskId": "1", "status": "working" })).await;
    let HostEvent::Answered(_, text) = host.next_event().await else { panic!() };
    assert!(text.contains("working"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_task_go_to_its_host_and_to_no_other() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let (owner, other) = (Host::new(None), Host::new(None));
    let begun = begin(&harness, &mut peer, &owner, "1", Value::Null).await;
    let latest = harness.call_with_role(&other, "else", TaskRole::None);
    peer.expect_call("else").await;

    let ask = |task: &str| {
        let meta = json!({ "io.modelcontextprotocol/related-task": { "taskId": task } });
        json!({ "jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": { "_meta": meta } })
    };
    peer.say(ask("1")).await;
    assert_eq!(owner.next_request().await.1, None);
    let waiting = harness.call_with_role(&owner, "result", TaskRole::Await("1".into()));
    peer.expect_call("result").await;
    peer.say(ask("1")).await;
    assert_eq!(owner.next_request().await.1, Some(waiting), "where its host waits for it");
    peer.say(ask("unheard-of")).await;
    assert_eq!(peer.next().await.unwrap()["error"]["message"], "no host can be asked");

    peer.notify("notifications/tasks/status", json!({ "taskId": "1", "status": "working" })).await;
    let HostEvent::Notification(text) = owner.next_event().await else { panic!() };
    assert!(text.contains(r#""taskId":"1""#), "{text}");
    peer.notify("notifications/tasks/status", json!({ "taskId": "2" })).await;
    peer.progress(&begun).await;
    assert_eq!(owner.next_event().await, HostEvent::Notification(format!("progress of {}", begun["id"])));
    other.expect_nothing_more();
    harness.cancel(latest);
}

#[tokio::test(start_paused = true)]
async fn a_modern_call_that_takes_tasks_declares_the_tasks_extension() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Modern).await;
    let host = Host::new(None);
    for (task_role, told) in [(TaskRole::None, Value::Null), (TaskRole::Begin, json!({ EXTENSION: {} }))] {
        harness.call_with_role(&host, "a", task_role);
        let request = peer.expect_call("a").await;
        let declared = &request["params"]["_meta"][CAPABILITIES_KEY];
        assert_eq!((&declared["extensions"], &declared["elicitation"]), (&told, &json!({ "form": {} })));
    }
}

#[tokio::test(start_paused = true)]
async fn subscriptions_listen_names_tasks_and_their_status_is_forwarded() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Modern).await;
    let host = Host::new(None);
    let reader: Arc<dyn Caller> = host.clone();
    harness.context.host_registry.reads(Arc::downgrade(&reader));
    for what in
        [SubscriptionTarget::Task(Bytes::from("\"1\"")), SubscriptionTarget::Resource(Bytes::from("\"x:1\""))]
    {
        harness.handle.send(Command::Subscribe(what));
    }
    let listen = peer.expect("subscriptions/listen").await;
    let wanted = &listen["params"]["notifications"];
    assert_eq!((&wanted["taskIds"], &wanted["resourceSubscriptions"]), (&json!(["1"]), &json!(["x:1"])));
    assert_eq!(listen["params"]["_meta"][CAPABILITIES_KEY]["extensions"], json!({ EXTENSION: {} }));
    peer.notify("notifications/tasks", json!({ "taskId": "1", "status": "completed" })).await;
    let HostEvent::Notification(text) = host.next_event().await else { panic!() };
    assert!(text.contains("notifications/tasks"), "{text}");
}
