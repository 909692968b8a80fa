//! Server requests: which host gets them, how its answer gets back, and what ends them.

use std::sync::Arc;

use plugbay_core::{
    era::Era,
    exchange::{Reply, ServerRequestError, Ticket},
};
use serde_json::{Value, json};

use super::{
    MINUTE, SECOND,
    harness::{Harness, Setup, cancellation},
    host::{Host, HostEvent},
    peer::Peer,
    soon,
};
use crate::{server::Command, spec::Timeouts};

const SAMPLING: &str = r#"{ "id":"é 1","method":"sampling/createMessage", "jsonrpc":"2.0","params":{"n":12345678901234567890.0}}"#;

/// A server that has sent a sampling request during a call, and the number of that request at the host.
async fn sampling_during_a_call() -> (Harness, Peer, Arc<Host>, Ticket) {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    let (number, ..) = host.next_request().await;
    (harness, peer, host, number)
}

async fn refused(peer: &mut Peer, id: Value) -> String {
    let answer = peer.next().await.unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32601)), "{answer}");
    answer["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_server_request_is_forwarded_and_answered_byte_for_byte() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    let call = harness.call_by(&host, "a");
    let request = peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    let (number, during, text) = host.next_request().await;
    assert_eq!((during, &*text), (Some(call), SAMPLING));
    harness
        .reply(number, r#"{"result":{ "z":1.0,"é":123456789012345678901 },"id":?, "jsonrpc":"2.0","x":1}"#);
    let answer = soon("the answer", peer.receive()).await.unwrap();
    assert_eq!(
        answer,
        r#"{"result":{ "z":1.0,"é":123456789012345678901 },"id":"é 1", "jsonrpc":"2.0","x":1}"#
    );
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{"twice":1}}"#);
    peer.expect_nothing().await;
    peer.answer(&request, json!({ "a": 1 })).await;
    assert_eq!(host.next_event().await, HostEvent::Answered(call, r#"{"a":1}"#.to_owned()));
    host.expect_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn an_error_response_of_the_host_is_forwarded_too() {
    let (harness, mut peer, _host, number) = sampling_during_a_call().await;
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"error":{"code":-1,"message":"User rejected"}}"#);
    let answer = peer.next().await.unwrap();
    assert_eq!(
        answer,
        json!({ "jsonrpc": "2.0", "id": "é 1", "error": { "code": -1, "message": "User rejected" } })
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_request_may_be_about_any_call_of_one_host() {
    let timeouts = Timeouts { call: 10 * SECOND, call_max: 60 * MINUTE, ..Timeouts::default() };
    let (harness, mut peer) = Harness::ready(Setup { timeouts, ..Setup::default() }, Era::Legacy).await;
    let host = Host::new(None);
    for by_host in [false, true] {
        let (first, latest) = (harness.call_by(&host, "a"), harness.call_by(&host, "b"));
        let asker = peer.expect_call("a").await;
        let request = peer.expect_call("b").await;
        peer.say(SAMPLING).await;
        let (number, by, _) = host.next_request().await;
        assert_eq!(by, Some(latest));
        if by_host {
            harness.handle.send(Command::Cancel { ticket: latest, notification: cancellation() });
            peer.expect("notifications/cancelled").await;
        } else {
            peer.answer(&request, json!({})).await;
            assert_eq!(host.next_event().await, HostEvent::Answered(latest, "{}".to_owned()));
        }
        tokio::time::sleep(30 * MINUTE).await;
        host.expect_nothing_more(); // nor has the other call timed out
        harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{"user":1}}"#);
        assert_eq!(peer.next().await.unwrap()["result"], json!({ "user": 1 }));
        peer.answer(&asker, json!({})).await;
        assert_eq!(host.next_event().await, HostEvent::Answered(first, "{}".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_request_ends_with_the_last_call_it_may_be_about() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    harness.call_by(&host, "a");
    harness.call_by(&host, "b");
    let requests = [peer.expect_call("a").await, peer.expect_call("b").await];
    peer.say(SAMPLING).await;
    let (number, ..) = host.next_request().await;
    harness.call_by(&host, "c"); // which cannot be meant
    peer.expect_call("c").await;
    for request in &requests {
        peer.answer(request, json!({})).await;
    }
    let HostEvent::Answered(..) = host.next_event().await else { panic!("the first is no end of it") };
    let HostEvent::Withdrawn(withdrawn, _) = host.next_event().await else { panic!("not withdrawn") };
    assert_eq!((withdrawn, &peer.next().await.unwrap()["error"]["code"]), (number, &json!(-32000)));
}

#[tokio::test(start_paused = true)]
async fn server_requests_and_logs_that_may_be_for_several_hosts_go_to_none() {
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"?"}}"#;
    for (holders, one_host) in
        [([None, None], false), ([Some(1), Some(2)], false), ([Some(1), Some(1)], true)]
    {
        let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
        let [first, second] = holders.map(Host::owned_by);
        harness.call_by(&first, "a");
        harness.call_by(&second, "b");
        peer.expect_call("a").await;
        let request = peer.expect_call("b").await;
        peer.say(log).await;
        peer.say(SAMPLING).await;
        if one_host {
            assert_eq!(second.next_event().await, HostEvent::Notification(log.to_owned()));
            second.next_request().await;
        } else {
            let refused = peer.next().await.unwrap();
            assert_eq!(refused["error"]["message"], ServerRequestError::Ambiguous.to_string());
            second.expect_nothing_more();
            peer.answer(&request, json!({})).await;
            let HostEvent::Answered(..) = second.next_event().await else { panic!("no end") };
            peer.say(log).await;
            peer.say(SAMPLING).await;
            let refused = peer.next().await.unwrap();
            assert_eq!(refused["error"]["message"], ServerRequestError::Ambiguous.to_string(), "still");
        }
        first.expect_nothing_more();
        second.expect_nothing_more();
    }
}

#[tokio::test(start_paused = true)]
async fn late_server_requests_and_logs_of_one_hosts_work_reach_no_other_host() {
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"?"}}"#;
    let unknown = r#"{"jsonrpc":"2.0","method":"notifications/job","params":{}}"#;
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let [first, second] = [None, None].map(Host::owned_by);
    let ticket = harness.call_by(&first, "later");
    let request = peer.expect_call("later").await;
    peer.answer(&request, json!({})).await;
    assert_eq!(first.next_event().await, HostEvent::Answered(ticket, "{}".to_owned()));

    // Only the second host has made a call, so the other one is not asked, although it could be.
    harness.listens(&second);
    for message in [log, unknown, SAMPLING] {
        peer.say(message).await;
    }
    assert_eq!(refused(&mut peer, json!("é 1")).await, "no host can be asked");

    harness.call_by(&second, "b");
    peer.expect_call("b").await;
    drop(first);
    for message in [log, unknown, SAMPLING] {
        peer.say(message).await;
    }
    let refused = peer.next().await.unwrap();
    assert_eq!(refused["error"]["message"], ServerRequestError::Ambiguous.to_string());
    second.expect_nothing_more();

    // The next process has worked for no other host.
    drop(peer);
    let HostEvent::Answered(..) = second.next_event().await else { panic!("no end") };
    harness.call_by(&second, "c");
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    peer.expect_call("c").await;
    peer.say(log).await;
    peer.say(SAMPLING).await;
    assert_eq!(second.next_event().await, HostEvent::Notification(log.to_owned()));
    second.next_request().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_request_that_one_call_leaves_open_is_carried_by_another() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    let (first, latest) = (harness.call_by(&host, "a"), harness.call_by(&host, "b"));
    peer.expect_call("a").await;
    peer.expect_call("b").await;
    peer.say(SAMPLING).await;
    let (number, by, text) = host.next_request().await;
    assert_eq!(by, Some(latest));
    harness.handle.send(Command::Reply { server_request: number, reply: Reply::LeftOpen });
    assert_eq!(host.next_request().await, (number, Some(first), text));
    harness.handle.send(Command::Reply { server_request: number, reply: Reply::LeftOpen });
    assert_eq!(refused(&mut peer, json!("é 1")).await, "no host can be asked");
    host.expect_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn a_server_request_without_a_call_goes_to_the_only_host_or_none() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    peer.say(SAMPLING).await;
    assert_eq!(refused(&mut peer, json!("é 1")).await, "no host can be asked");
    let (one, other) = (Host::new(None), Host::new(None));
    harness.listens(&one);
    peer.say(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#).await;
    let (number, during, _) = one.next_request().await;
    assert_eq!(during, None);
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{"roots":[]}}"#);
    assert_eq!(peer.next().await.unwrap(), json!({ "jsonrpc": "2.0", "id": 7, "result": { "roots": [] } }));
    harness.listens(&other);
    peer.say(r#"{"jsonrpc":"2.0","id":8,"method":"roots/list"}"#).await;
    assert_eq!(refused(&mut peer, json!(8)).await, "no host can be asked");
    one.expect_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn a_server_request_is_refused_with_the_reason_of_the_host() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(Some(ServerRequestError::Undeclared("sampling")));
    harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    let why = refused(&mut peer, json!("é 1")).await;
    assert_eq!(why, "the host has not declared the capability \"sampling\"");
    host.expect_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn a_server_can_cancel_its_request() {
    let (harness, mut peer, host, number) = sampling_during_a_call().await;
    peer.notify("notifications/cancelled", json!({ "requestId": "another" })).await;
    peer.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"é 1","reason":"enough"}}"#).await;
    let expected = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":"enough"}}}}"#,
        number.0
    );
    assert_eq!(host.next_event().await, HostEvent::Withdrawn(number, expected));
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{"late":1}}"#);
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn server_requests_end_with_their_call() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    for by_host in [false, true] {
        let call = harness.call_by(&host, "a");
        let request = peer.expect_call("a").await;
        peer.say(SAMPLING).await;
        let (number, ..) = host.next_request().await;
        if by_host {
            harness.handle.send(Command::Cancel { ticket: call, notification: cancellation() });
            peer.expect("notifications/cancelled").await;
        } else {
            peer.answer(&request, json!({})).await;
        }
        let HostEvent::Withdrawn(withdrawn, text) = host.next_event().await else { panic!("not withdrawn") };
        assert_eq!(withdrawn, number);
        assert!(text.contains("the call has ended"), "{text}");
        let told = peer.next().await.unwrap();
        assert_eq!((&told["id"], &told["error"]["code"]), (&json!("é 1"), &json!(-32000)));
        if !by_host {
            let HostEvent::Answered(..) = host.next_event().await else { panic!("answered before") };
        }
    }
    host.expect_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn a_call_does_not_time_out_while_a_server_request_is_open() {
    let timeouts = Timeouts { call: 10 * SECOND, call_max: 60 * MINUTE, ..Timeouts::default() };
    let (harness, mut peer) = Harness::ready(Setup { timeouts, ..Setup::default() }, Era::Legacy).await;
    let host = Host::new(None);
    let call = harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    let (number, ..) = host.next_request().await;
    tokio::time::sleep(30 * MINUTE).await;
    host.expect_nothing_more();
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{}}"#);
    peer.next().await.unwrap();
    let answered = tokio::time::Instant::now();
    let HostEvent::Answered(ended, why) = host.next_event().await else { panic!("no end") };
    assert_eq!((ended, answered.elapsed().as_secs()), (call, 10), "{why}");
}

#[tokio::test(start_paused = true)]
async fn the_maximum_call_time_includes_open_server_requests() {
    let timeouts = Timeouts { call: 10 * SECOND, call_max: 2 * MINUTE, ..Timeouts::default() };
    let (harness, mut peer) = Harness::ready(Setup { timeouts, ..Setup::default() }, Era::Legacy).await;
    let host = Host::new(None);
    let start = tokio::time::Instant::now();
    let call = harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    host.next_request().await;
    let mut heard = [host.next_event().await, host.next_event().await];
    heard.sort_by_key(|heard| matches!(heard, HostEvent::Answered(..)));
    let [HostEvent::Withdrawn(..), HostEvent::Answered(ended, _)] = heard else { panic!("{heard:?}") };
    assert_eq!((ended, start.elapsed()), (call, 2 * MINUTE));
}

#[tokio::test(start_paused = true)]
async fn a_crash_withdraws_open_server_requests() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    let call = harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    let (number, ..) = host.next_request().await;
    drop(peer);
    let HostEvent::Withdrawn(withdrawn, _) = host.next_event().await else { panic!("not withdrawn") };
    assert_eq!(withdrawn, number);
    let HostEvent::Answered(ended, _) = host.next_event().await else { panic!("no end") };
    assert_eq!(ended, call);
    // Its successor does not get answers to another server's requests.
    harness.handle.refresh();
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{}}"#);
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn elicitation_complete_goes_to_the_host_that_was_asked() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let (host, other) = (Host::new(None), Host::new(None));
    harness.call_by(&host, "a");
    let request = peer.expect_call("a").await;
    let params = json!({ "mode": "url", "elicitationId": "e1", "url": "https://x", "message": "m" });
    peer.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params })).await;
    let (number, ..) = host.next_request().await;
    harness.reply(number, r#"{"jsonrpc":"2.0","id":?,"result":{"action":"accept"}}"#);
    peer.next().await.unwrap();
    peer.answer(&request, json!({})).await;
    let HostEvent::Answered(..) = host.next_event().await else { panic!("no end") };
    harness.call_by(&other, "b");
    peer.expect_call("b").await;
    let complete =
        r#"{"jsonrpc":"2.0", "method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}"#;
    peer.notify("notifications/elicitation/complete", json!({ "elicitationId": "unheard of" })).await;
    peer.say(complete).await;
    assert_eq!(host.next_event().await, HostEvent::Completed(complete.to_owned()));
    peer.say(complete).await; // once is enough
    peer.expect_nothing().await;
    host.expect_nothing_more();
    other.expect_nothing_more();
}

#[tokio::test(start_paused = true)]
async fn too_many_server_requests_are_refused() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let host = Host::new(None);
    harness.call_by(&host, "a");
    peer.expect_call("a").await;
    for n in 0..=256 {
        peer.say(json!({ "jsonrpc": "2.0", "id": n, "method": "roots/list" })).await;
    }
    let refused = peer.next().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(256), &json!(-32000)));
    assert_eq!(host.received(), 256);
}

#[tokio::test(start_paused = true)]
async fn a_server_request_of_a_modern_server_is_refused() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Modern).await;
    let host = Host::new(None);
    harness.call_by(&host, "a");
    peer.expect_call("a").await;
    peer.say(SAMPLING).await;
    refused(&mut peer, json!("é 1")).await;
    host.expect_nothing_more();
}
