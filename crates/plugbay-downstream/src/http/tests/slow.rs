//! Hosts that do not read, do not write, or vanish: each runs into a limit, and no other host is affected.

use tokio::time::{Instant, sleep};

use super::harness::{Harness, http, post, stateless, within};
use crate::scripted::{SECOND, call, list, modern, request};

fn calling() -> String {
    stateless("tools/call", "s__echo", &modern(1, "tools/call", r#","name":"s__echo""#))
}

fn large() -> String {
    format!("{{\"x\":\"{}\"}}", "x".repeat(4_000_000))
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_reads_nothing_is_closed_and_disturbs_no_other() {
    let mut harness = Harness::new();
    let mut slow = harness.connect_through(1000);
    slow.say(calling()).await;
    harness.servers.forwarded().await.answer(large());
    let mut host = harness.connect();
    host.say(calling()).await;
    harness.servers.forwarded().await.answer("{}");
    assert_eq!(host.reply().await.json()["id"], 1);

    sleep(31 * SECOND).await;
    let cut = slow.read_to_end().await;
    assert!(cut > 0 && cut < 100_000, "{cut} bytes after the connection was given up");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_reads_a_little_at_a_time_gets_everything() {
    let mut harness = Harness::new();
    let mut slow = harness.connect_through(100_000);
    slow.say(calling()).await;
    harness.servers.forwarded().await.answer(large());
    let mut read = 0;
    loop {
        sleep(20 * SECOND).await;
        match slow.read_some(100_000).await {
            0 => break,
            count => read += count,
        }
        if read > 4_000_000 {
            return;
        }
    }
    panic!("cut off after {read} bytes");
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_host_stops_reading_is_closed() {
    let mut harness = Harness::new();
    let mut slow = harness.connect_through(300);
    slow.say(calling()).await;
    let forwarded = harness.servers.forwarded().await;
    // The head and the keep-alive comments fill the small buffer, and then nothing moves.
    assert_eq!(harness.servers.cancelled().await.0, forwarded.ticket());
}

#[tokio::test(start_paused = true)]
async fn unread_answers_count_and_further_requests_are_rejected() {
    let mut harness = Harness::new();
    let session = harness.open().await;
    let mut slow = Vec::new();
    for n in 0..5 {
        let mut host = harness.connect_through(1000);
        host.say(within(&session, &call(n))).await;
        harness.servers.forwarded().await.answer(large());
        slow.push(host);
    }
    sleep(SECOND).await;
    let refused = harness.ask(within(&session, &list(9))).await;
    assert_eq!(refused.status, 429, "20 MB are unread");
    let other = harness.open().await;
    assert_eq!(harness.ask(within(&other, &list(1))).await.status, 200, "which is nobody else's trouble");
    drop(slow);
    sleep(SECOND).await;
    assert_eq!(harness.ask(within(&session, &list(9))).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn unread_progress_is_dropped_and_the_answer_is_not() {
    let mut harness = Harness::new();
    let session = harness.open().await;
    let mut slow = harness.connect_through(1000);
    let body = request(1, "tools/call", r#"{"name":"s__echo","_meta":{"progressToken":"p"}}"#);
    slow.say(within(&session, &body)).await;
    let forwarded = harness.servers.forwarded().await;
    for _ in 0..100_000 {
        forwarded.progress();
    }
    forwarded.answer(r#"{"done":1}"#);
    slow.reply().await;
    let mut events = 0;
    while let Some(event) = slow.event().await {
        events += 1;
        if event.data.contains("\"done\":1") {
            assert!(events < 10_000, "{events} of 100,000 were kept");
            return;
        }
    }
    panic!("no answer");
}

#[tokio::test(start_paused = true)]
async fn a_slow_request_head_times_out() {
    let harness = Harness::new();
    let mut host = harness.connect();
    let start = Instant::now();
    for letter in http("GET", "/healthz", &[], "").chars().take(40) {
        host.say(letter.to_string()).await;
        sleep(SECOND).await;
    }
    host.read_to_end().await;
    assert!(start.elapsed() <= 41 * SECOND);
    let mut idle = harness.connect();
    idle.say(http("GET", "/healthz", &[], "")).await;
    assert_eq!(idle.reply().await.status, 200);
    let start = Instant::now();
    idle.closed().await;
    assert!(start.elapsed() <= 31 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_slow_request_body_times_out() {
    let harness = Harness::new();
    let mut host = harness.connect();
    host.say(post(&[("content-length", "1000")], "{")).await;
    let start = Instant::now();
    assert_eq!(host.reply().await.status, 408);
    assert_eq!(start.elapsed().as_secs(), 60);
    host.closed().await;
}

#[tokio::test(start_paused = true)]
async fn under_memory_pressure_stalled_connections_are_closed_first() {
    let mut harness = Harness::new();
    let mut slow = Vec::new();
    for _ in 0..10 {
        let mut host = harness.connect_through(1000);
        host.say(calling()).await;
        harness.servers.forwarded().await.answer(large());
        slow.push(host);
    }
    // More than a quarter of the limit is queued now; other hosts are served as usual.
    let mut host = harness.connect();
    host.say(calling()).await;
    harness.servers.forwarded().await.answer(large());
    assert!(host.reply().await.body.len() > 4_000_000);
    sleep(5 * SECOND).await;
    let mut gave_way = 0;
    for mut host in slow {
        gave_way += u32::from(host.was_let_go().await);
    }
    assert!((4..10).contains(&gave_way), "{gave_way} gave way: as many as must, and no more");
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_the_memory_limit_becomes_an_error() {
    let mut harness = Harness::new();
    let mut slow = Vec::new();
    for _ in 0..25 {
        let mut host = harness.connect_through(1000);
        host.say(calling()).await;
        slow.push((host, harness.servers.forwarded().await));
    }
    for (_, forwarded) in &slow {
        forwarded.answer(large());
    }
    let (last, _) = slow.last_mut().unwrap();
    let told = last.reply().await;
    assert_eq!((told.status, told.code()), (200, serde_json::json!(-32000)), "no room for the last answer");
    drop(slow);
    sleep(SECOND).await;
    let mut host = harness.connect();
    host.say(calling()).await;
    harness.servers.forwarded().await.answer("{}");
    assert_eq!(host.reply().await.json()["id"], 1, "and all is well when they have gone");
}
