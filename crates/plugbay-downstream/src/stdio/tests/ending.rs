//! The end of a session: requests in flight may finish, but not for ever.

use std::sync::Arc;

use tokio::time::{Instant, sleep};

use super::{
    SECOND,
    harness::{Harness, INITIALIZE, call, list, snapshot, unsettled},
};

#[tokio::test(start_paused = true)]
async fn a_session_without_calls_ends_at_once() {
    let mut harness = Harness::legacy().await;
    let start = Instant::now();
    harness.close();
    assert_eq!(harness.heard().await, None);
    harness.ended().await.unwrap();
    assert_eq!(start.elapsed().as_millis(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_have_two_seconds() {
    let mut harness = Harness::legacy().await;
    harness.say(call(1)).await;
    harness.say(call(2)).await;
    let (quick, _slow) = (harness.forwarded().await, harness.forwarded().await);
    let start = Instant::now();
    harness.close();
    sleep(SECOND).await;
    quick.answer("{}");
    assert_eq!(harness.hear().await["id"], 1);
    let refused = harness.hear().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&2.into(), &(-32000).into()));
    assert_eq!(harness.heard().await, None);
    harness.ended().await.unwrap();
    assert_eq!(start.elapsed(), 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_told_to_stop_rejects_new_requests_and_answers_what_it_has() {
    let mut harness = Harness::legacy().await;
    harness.say(call(1)).await;
    let forwarded = harness.forwarded().await;
    harness.stop();
    sleep(SECOND).await;
    let refused = harness.ask(call(2)).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&2.into(), &(-32000).into()));
    let why = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("shutting down"), "{why}");
    harness.nothing_forwarded().await;
    forwarded.answer("{}");
    let answer = harness.hear().await;
    assert_eq!(answer["id"], 1);
    assert_eq!(harness.heard().await, None);
    harness.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_have_the_time_of_drain_when_the_gateway_is_told_to_stop() {
    for (drain, answered) in [(None, false), (Some(10 * SECOND), true)] {
        let mut first = snapshot(&["echo"], true);
        let mut layout = (*first.layout).clone();
        layout.settings.drain = drain;
        first.layout = Arc::new(layout);
        let mut harness = Harness::with(first);
        harness.say(call(1)).await;
        let forwarded = harness.forwarded().await;
        let start = Instant::now();
        harness.stop();
        sleep(9 * SECOND).await;
        forwarded.answer("{}");
        let answer = harness.hear().await;
        assert_eq!(answer["error"].is_null(), answered, "{answer}");
        harness.ended().await.unwrap();
        assert_eq!(start.elapsed(), 9 * SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_with_the_last_answer() {
    let mut harness = Harness::legacy().await;
    harness.say(call(1)).await;
    let forwarded = harness.forwarded().await;
    harness.close();
    sleep(SECOND).await;
    let start = Instant::now();
    forwarded.answer("{}");
    assert_eq!(harness.hear().await["id"], 1);
    assert_eq!(harness.heard().await, None);
    assert_eq!(start.elapsed().as_millis(), 0);
}

/// A script may write its requests and close its end at once: the list must not be lost.
#[tokio::test(start_paused = true)]
async fn a_waiting_list_request_is_in_flight_too() {
    for (after, answered) in [(1, true), (3, false)] {
        let mut harness = Harness::with(unsettled());
        harness.say(INITIALIZE).await;
        harness.say(list(1)).await;
        harness.close();
        assert_eq!(harness.hear().await["id"], "init");
        sleep(after * SECOND).await;
        harness.snapshots.send_replace(snapshot(&["echo"], true));
        let last = harness.heard().await;
        assert_eq!(last.is_some_and(|line| line.contains("s__echo")), answered);
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_tool_call_is_not_sent_for_a_closed_session() {
    let mut harness = Harness::with(unsettled());
    harness.say(call(1)).await;
    harness.close();
    assert_eq!(harness.hear().await["error"]["code"], -32000);
    assert_eq!(harness.heard().await, None);
    harness.snapshots.send_replace(snapshot(&["echo"], true));
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_closing_session_does_not_wait_for_a_host_that_reads_nothing() {
    let mut harness = Harness::legacy().await;
    harness.say(call(1)).await;
    harness.forwarded().await.answer(format!("\"{}\"", "x".repeat(100_000)));
    let start = Instant::now();
    harness.close();
    let _ = (&mut harness.serving).await;
    assert!(start.elapsed() < 90 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_all_of_the_last_answer() {
    let mut harness = Harness::legacy().await;
    harness.say(call(1)).await;
    harness.forwarded().await.answer(format!("\"{}\"", "x".repeat(100_000)));
    harness.close();
    let mut text = Vec::new();
    while let Some(byte) = harness.read_slowly().await {
        text.extend(byte);
    }
    assert!(text.len() > 100_000 && text.ends_with(b"\n"), "{}", text.len());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_stops_reading_for_good_ends_its_session() {
    let mut harness = Harness::legacy().await;
    harness.say(call(1)).await;
    let forwarded = harness.forwarded().await;
    let harness = harness.deaf();
    forwarded.answer("{}");
    assert!(harness.await.unwrap().is_err());
}
