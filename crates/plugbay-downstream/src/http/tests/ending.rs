//! The end of the gateway: no new host is let in. Requests in flight may finish, but not for ever.

use std::sync::Arc;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::harness::{Harness, get, http, stateless, within};
use crate::scripted::{SECOND, call, modern, snapshot};

fn calling(id: u32) -> String {
    stateless("tools/call", "s__echo", &modern(id, "tools/call", r#","name":"s__echo""#))
}

#[tokio::test(start_paused = true)]
async fn shutdown_without_calls_in_flight_is_immediate() {
    let mut harness = Harness::new();
    let session = harness.open().await;
    let mut listening = harness.connect();
    listening.open_stream(get(&session, None)).await;
    let mut idle = harness.connect();
    idle.say(http("GET", "/healthz", &[], "")).await;
    idle.reply().await;
    let start = Instant::now();
    harness.stop();
    listening.event().await; // what it can resume from
    assert_eq!(listening.event().await, None);
    idle.closed().await;
    harness.ended().await;
    assert_eq!(start.elapsed().as_millis(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_get_their_answers() {
    let mut harness = Harness::new();
    let session = harness.open().await;
    let (mut modern, mut legacy) = (harness.connect(), harness.connect());
    modern.say(calling(1)).await;
    let first = harness.servers.forwarded().await;
    legacy.say(within(&session, &call(2))).await;
    let second = harness.servers.forwarded().await;
    harness.stop();
    sleep(SECOND).await;
    let start = Instant::now();
    let mut late = harness.connect();
    late.say(calling(3)).await;
    late.closed().await;
    assert_eq!(start.elapsed().as_millis(), 0, "nobody else comes in");
    sleep(24 * SECOND).await;
    first.answer("{}");
    second.answer("{}");
    for (host, id) in [(&mut modern, 1), (&mut legacy, 2)] {
        assert_eq!(host.reply().await.status, 200);
        assert_eq!(host.hear_answer().await["id"], id);
        host.closed().await;
    }
    harness.ended().await;
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_have_thirty_seconds() {
    let mut harness = Harness::new();
    let session = harness.open().await;
    let (mut modern, mut legacy) = (harness.connect(), harness.connect());
    modern.say(calling(1)).await;
    let _first = harness.servers.forwarded().await;
    legacy.say(within(&session, &call(2))).await;
    let _second = harness.servers.forwarded().await;
    let start = Instant::now();
    harness.stop();
    for (host, id) in [(&mut modern, 1), (&mut legacy, 2)] {
        host.reply().await;
        let refused = host.hear_answer().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(-32000)));
    }
    harness.ended().await;
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_have_the_time_of_drain() {
    let mut first = snapshot(&["echo"], true);
    let mut layout = (*first.layout).clone();
    layout.settings.drain = Some(3 * SECOND);
    first.layout = Arc::new(layout);
    let mut harness = Harness::with(first, &[]);
    let mut host = harness.connect();
    host.say(calling(1)).await;
    let _call = harness.servers.forwarded().await;
    let start = Instant::now();
    harness.stop();
    harness.ended().await;
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait_for_a_host_that_reads_nothing() {
    let mut harness = Harness::new();
    let mut slow = harness.connect_through(1000);
    slow.say(calling(1)).await;
    harness.servers.forwarded().await.answer(format!("\"{}\"", "x".repeat(1_000_000)));
    let start = Instant::now();
    harness.stop();
    harness.ended().await;
    assert!(start.elapsed() <= 35 * SECOND, "{:?}", start.elapsed());
}
