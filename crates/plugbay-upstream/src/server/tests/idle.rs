//! Idle servers: stopped when unused, started by the next use.

use plugbay_core::{era::Era, exchange::Warmed};
use serde_json::json;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::{
    super::Command,
    MINUTE, SECOND,
    harness::{Harness, Setup},
};
use crate::{Condition, spec::Timeouts};

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_stopped_after_five_minutes_and_starts_on_use() {
    for era in [Era::Legacy, Era::Modern] {
        let (mut harness, mut peer) = Harness::ready(Setup::default(), era).await;
        sleep(4 * MINUTE).await;
        let call = harness.call("a");
        let request = peer.expect_call("a").await;
        sleep(MINUTE).await;
        peer.answer(&request, json!({})).await;
        harness.calls.end(call).await;
        let used = Instant::now();
        peer.expect_end().await;
        assert_eq!(used.elapsed(), 5 * MINUTE, "{era:?}");
        harness.condition(|condition| *condition == Condition::Idle).await;

        sleep(24 * 60 * MINUTE).await; // asleep is no failure: nothing is tried again
        assert_eq!(harness.launches(used).len(), 1);
        let call = harness.call("b");
        let mut peer = harness.launched().await;
        peer.open(era).await;
        peer.list(&["echo"]).await;
        if era == Era::Modern {
            peer.expect("subscriptions/listen").await;
        }
        let request = peer.expect_call("b").await;
        peer.answer(&request, json!({ "b": 1 })).await;
        assert_eq!(harness.calls.end(call).await, r#"{"b":1}"#);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_in_flight_keeps_its_server_running() {
    let timeouts = Timeouts { call: 50 * MINUTE, ..Timeouts::default() };
    let (harness, mut peer) = Harness::ready(Setup { timeouts, ..Setup::default() }, Era::Modern).await;
    let call = harness.call("long");
    let request = peer.expect_call("long").await;
    sleep(47 * MINUTE).await;
    peer.answer(&request, json!({ "done": 1 })).await;
    assert_eq!(harness.calls.end(call).await, r#"{"done":1}"#);
    let used = Instant::now();
    peer.expect_end().await;
    assert_eq!(used.elapsed(), 5 * MINUTE);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_an_idle_timeout_keeps_running() {
    let timeouts = Timeouts { idle: None, ..Timeouts::default() };
    let (harness, mut peer) = Harness::ready(Setup { timeouts, ..Setup::default() }, Era::Modern).await;
    sleep(24 * 60 * MINUTE).await;
    harness.call("a");
    peer.expect_call("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_held_server_is_not_stopped_when_idle() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    harness.handle.hold(true);
    sleep(3 * MINUTE + 24 * 60 * MINUTE).await;
    harness.call("a");
    let request = peer.expect_call("a").await;
    peer.answer(&request, json!({})).await;
    sleep(3 * MINUTE).await;
    harness.handle.hold(false);
    let left = Instant::now();
    peer.expect_end().await;
    assert_eq!(left.elapsed(), 5 * MINUTE, "counted from when it was put away");
}

#[tokio::test(start_paused = true)]
async fn warm_reports_the_outcome_of_the_start() {
    let mut harness = Harness::new(Setup { broken: |launch| launch < 2, ..Setup::default() });
    let warm = |harness: &Harness| {
        let (hear, heard) = oneshot::channel();
        harness.handle.send(Command::Warm(Warmed::new(move |outcome| drop(hear.send(outcome)))));
        heard
    };
    let start = Instant::now();
    for _ in 0..2 {
        let failure = warm(&harness).await.unwrap().unwrap_err();
        assert_eq!(failure.to_string(), "there is no such program");
    }
    let heard = warm(&harness);
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    heard.await.unwrap().unwrap();
    warm(&harness).await.unwrap().unwrap();
    assert_eq!(harness.launches(start), [0.0, 0.0, 0.0], "each asked for one start, and no pause was kept");
}

#[tokio::test(start_paused = true)]
async fn notifications_do_not_keep_a_server_from_being_idle() {
    let (_world, mut peer) = Harness::ready(Setup::default(), Era::Modern).await;
    let start = Instant::now();
    for _ in 0..20 {
        sleep(14 * SECOND).await;
        peer.say("tick").await;
        peer.notify("notifications/message", json!({ "level": "info", "data": "tock" })).await;
    }
    peer.expect_end().await;
    assert_eq!(start.elapsed(), 5 * MINUTE);
}

/// A server that died while idle is reported differently from one that broke off a call.
#[tokio::test(start_paused = true)]
async fn a_crash_report_says_whether_calls_were_in_flight() {
    for era in [Era::Legacy, Era::Modern] {
        let (mut harness, peer) = Harness::ready(Setup::default(), era).await;
        drop(peer);
        assert_eq!(harness.report().await, "closed its output while it was idle");

        let (mut harness, mut peer) = Harness::ready(Setup::default(), era).await;
        let call = harness.call("a");
        peer.expect_call("a").await;
        drop(peer);
        assert_eq!(harness.report().await, "closed its output during a call");
        assert_eq!(harness.calls.end(call).await, "server 's' failed: closed its output during a call");
    }
}
