//! Starts: timeouts, retries, and what happens to calls meanwhile.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use plugbay_core::{catalog::Dialect, era::Era, wire};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    MINUTE, SECOND,
    harness::{Harness, Scripted, Setup, silent},
};
use crate::{Starts, Vitals, spec::Framing};

/// The longest pause after a failure that follows this many others. A pause is at least three quarters of it.
fn longest_pause(failures: usize) -> f64 {
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0].get(failures).copied().unwrap_or(300.0)
}

fn check_pauses(launches: &[f64], each_takes: f64) {
    for (failures, pair) in launches.windows(2).enumerate() {
        let (pause, longest) = (pair[1] - pair[0] - each_takes, longest_pause(failures));
        assert!(pause >= longest * 0.75 - 0.01 && pause <= longest + 0.01, "{failures}: {pause}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_open_is_retried_with_growing_pauses() {
    let harness = Harness::new(Setup::default());
    let start = Instant::now();
    harness.handle.refresh();
    sleep(10 * 60 * MINUTE).await;
    let launches = harness.launches(start);
    check_pauses(&launches, 30.0);
    assert!((110..140).contains(&launches.len()), "{}", launches.len());
}

#[tokio::test(start_paused = true)]
async fn calls_to_a_failed_server_do_not_restart_it_each_time() {
    let harness = Harness::new(Setup { broken: |_| true, ..Setup::default() });
    let start = Instant::now();
    for _ in 0..5 * 3600 {
        let (one, other) = (harness.call("a"), harness.call("b"));
        assert!(harness.calls.end(one).await.contains("no such program"));
        assert!(harness.calls.end(other).await.contains("no such program"));
        sleep(2 * SECOND).await;
    }
    let launches = harness.launches(start);
    assert!((120..170).contains(&launches.len()), "{}", launches.len());
    assert!(launches.last().unwrap() + 301.0 > 36_000.0, "it is still tried");
}

#[tokio::test(start_paused = true)]
async fn calls_after_a_second_failure_are_refused_with_reason_and_retry_time() {
    let mut harness = Harness::new(Setup { broken: |launch| launch < 2, ..Setup::default() });
    let start = Instant::now();
    let down = "server 's' failed: there is no such program";
    for _ in 0..2 {
        assert_eq!(harness.calls.end(harness.call("forgiven")).await, down);
    }
    let refused = harness.calls.end(harness.call("refused")).await;
    let told = refused.strip_prefix(down).and_then(|text| text.strip_prefix("; it is started again in "));
    let told: f64 = told.unwrap().strip_suffix(" s at the latest").unwrap().parse().unwrap();
    assert_eq!(harness.launches(start), [0.0, 0.0]);

    let mut peer = harness.launched().await; // nobody asked: the pause is over
    assert!((harness.launches(start)[2] - told).abs() < 0.06, "{told}");
    let call = harness.call("works");
    peer.open(Era::Legacy).await;
    peer.list(&["works"]).await;
    let request = peer.expect_call("works").await;
    peer.answer(&request, json!({ "fine": true })).await;
    assert_eq!(harness.calls.end(call).await, r#"{"fine":true}"#);

    drop(peer); // what was before is forgotten
    harness.condition(|condition| matches!(condition, crate::Condition::Error(_))).await;
    let call = harness.call("again");
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["again"]).await;
    peer.expect_call("again").await;
    assert!(harness.calls.ends_of(call).is_empty());
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_the_start_and_go_out_in_order() {
    let mut harness = Harness::new(Setup::default());
    let calls = ["a", "b", "c", "d"].map(|tool| harness.call(tool));
    let mut peer = harness.launched().await;
    harness.cancel(calls[1]);
    sleep(20 * SECOND).await;
    peer.open(Era::Legacy).await;
    peer.list(&[]).await;
    for tool in ["a", "c", "d"] {
        peer.expect_call(tool).await;
    }
    peer.expect_nothing().await;
    assert_eq!(harness.launches(Instant::now()).len(), 1);
    assert!(calls.iter().all(|call| harness.calls.ends_of(*call).is_empty()));
}

/// What the server does before its timeout, and the error that callers get.
#[tokio::test(start_paused = true)]
async fn a_start_has_one_deadline_whatever_the_server_prints() {
    for (known, words) in [(None, "did not answer within 30 s of its start"), (Some(silent()), "try: ")] {
        let mut harness = Harness::new(Setup { known, ..Setup::default() });
        let start = Instant::now();
        let call = harness.call("a");
        let mut peer = harness.launched().await;
        for _ in 0..29 {
            sleep(SECOND).await;
            peer.say("still loading").await;
        }
        let end = harness.calls.end(call).await;
        assert!(end.contains(words) && end.contains("still loading"), "{end}");
        assert_eq!(start.elapsed(), 30 * SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_tools_list_has_failed() {
    let mut harness = Harness::new(Setup::default());
    let call = harness.call("a");
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    assert!(harness.calls.end(call).await.contains("did not list its tools within 30 s"));
    assert!(harness.report().await.contains("did not list"));
    peer.expect("tools/list").await;
    peer.expect_call("a").await;
    peer.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn silent_starts_try_the_other_framing_unless_configured() {
    use wire::Framing::{ContentLength, Newline};
    let cases = [
        (Framing::Auto, "", [Newline, Newline, ContentLength, Newline, Newline, ContentLength]),
        (Framing::Auto, "Loading ...", [Newline, Newline, ContentLength, Newline, Newline, ContentLength]),
        (Framing::Auto, r#"{"jsonrpc":"2.0","method":"loading"}"#, [Newline; 6]),
        (Framing::Newline, "", [Newline; 6]),
        (Framing::ContentLength, "", [ContentLength; 6]),
    ];
    for (framing, word, expected) in cases {
        let mut harness = Harness::new(Setup { framing, known: None, ..Setup::default() });
        harness.handle.refresh();
        for expected in expected {
            let mut peer = harness.launched().await;
            peer.say(word).await;
            peer.expect("server/discover").await;
            assert_eq!(peer.framing(), Some(expected), "{framing:?} {word:?}");
            peer.expect("initialize").await;
            peer.expect_end().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_framing_that_worked_is_kept() {
    let mut harness = Harness::new(Setup::default());
    harness.handle.refresh();
    let _silent = (harness.launched().await, harness.launched().await);
    for _ in 0..2 {
        let mut peer = harness.launched().await;
        peer.open(Era::Legacy).await;
        peer.list(&["echo"]).await;
        assert_eq!(peer.framing(), Some(wire::Framing::ContentLength));
        harness.condition(|condition| *condition == crate::Condition::Ready).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_content_length_with_an_error_gets_lines_at_once() {
    let answers = [
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"Invalid JSON"}}"#,
    ];
    for answer in answers {
        let mut harness = Harness::new(Setup::default());
        harness.handle.refresh();
        let _silent = (harness.launched().await, harness.launched().await);
        let mut peer = harness.launched().await;
        peer.expect("initialize").await;
        assert_eq!(peer.framing(), Some(wire::Framing::ContentLength));
        let asked = Instant::now();
        peer.say(answer).await;
        let mut peer = harness.launched().await;
        peer.open(Era::Legacy).await;
        assert_eq!((peer.framing(), asked.elapsed() < SECOND), (Some(wire::Framing::Newline), true));
        peer.list(&["echo"]).await;
        harness.condition(|condition| *condition == crate::Condition::Ready).await;
    }
}

#[tokio::test(start_paused = true)]
async fn remembered_content_length_framing_goes_back_to_lines_when_a_start_fails() {
    use wire::Framing::{ContentLength, Newline};
    let known = Some(Dialect { framing: ContentLength, ..silent() });
    let mut harness = Harness::new(Setup { known, ..Setup::default() });
    harness.handle.refresh();
    for expected in [ContentLength, Newline, ContentLength, Newline] {
        let mut peer = harness.launched().await;
        peer.expect("initialize").await;
        assert_eq!(peer.framing(), Some(expected));
        if expected == ContentLength {
            drop(peer); // it exits: that is no reason to try the same again
        } else {
            peer.expect_end().await;
        }
        let next = if expected == ContentLength { Newline } else { ContentLength };
        assert_eq!(harness.failure().await.1.framing, next);
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_machine_is_no_reason_to_try_another_framing() {
    let vitals = Arc::new(Scripted::default());
    let starts = Starts::with(4, Arc::clone(&vitals) as Arc<dyn Vitals>);
    let mut harness = Harness::new(Setup { starts, ..Setup::default() });
    vitals.saturated.store(1, Relaxed);
    harness.handle.refresh();
    for _ in 0..4 {
        let mut peer = harness.launched().await;
        peer.expect("initialize").await;
        assert_eq!(peer.framing(), Some(wire::Framing::Newline));
        peer.expect_end().await;
    }
}
