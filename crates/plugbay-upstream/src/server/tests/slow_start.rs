//! Slow starts: they are reported in time, go on while the server works, and wait for their turn.

use std::sync::{Arc, atomic::Ordering::Relaxed, mpsc};

use plugbay_core::{era::Era, exchange::Warmed, start::Priority};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::{
    super::Command,
    MINUTE, SECOND,
    harness::{Harness, Scripted, Setup},
};
use crate::{Condition, Starts, Vitals, spec::Timeouts};

/// A server that uses a processor all the time, with this many slots for starts.
fn busy(slots: usize) -> (Arc<Scripted>, Setup) {
    let vitals = Arc::new(Scripted::default());
    vitals.uses.store(1, Relaxed);
    let starts = Starts::with(slots, Arc::clone(&vitals) as Arc<dyn Vitals>);
    (vitals, Setup { starts, ..Setup::default() })
}

fn is_slow(condition: &Condition) -> bool {
    matches!(condition, Condition::Slow(_))
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_becomes_ready_after_its_time_out_and_answers_the_waiting_call() {
    let (_, setup) = busy(1);
    let mut harness = Harness::new(setup);
    let start = Instant::now();
    let call = harness.call("late");
    let (sender, warmed) = mpsc::channel();
    let tell = Warmed::new(move |outcome: Result<(), _>| sender.send(outcome.is_ok()).unwrap());
    harness.handle.send(Command::Warm(tell));
    let mut peer = harness.launched().await;
    let report = harness.report().await;
    assert!(report.starts_with("slow: still starting after 30 s; try: "), "{report}");
    assert_eq!(
        (start.elapsed(), warmed.try_recv()),
        (30 * SECOND, Ok(false)),
        "an activation does not wait on"
    );
    harness.condition(is_slow).await;
    assert!(harness.calls.ends_of(call).is_empty(), "the call waits");
    sleep(60 * SECOND).await;
    peer.open(Era::Legacy).await;
    harness.condition(is_slow).await;
    peer.list(&["late"]).await;
    assert_eq!(harness.report().await, "late");
    let request = peer.expect_call("late").await;
    peer.answer(&request, json!({ "fine": true })).await;
    assert_eq!(harness.calls.end(call).await, r#"{"fine":true}"#);
    assert_eq!(harness.launches(start), [0.0], "it was never started again");
    harness.condition(|condition| *condition == Condition::Ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_to_a_slow_server_has_its_own_time_out() {
    let (_, setup) = busy(1);
    let harness = Harness::new(setup);
    let start = Instant::now();
    let patient = harness.call_within("patient", Some(4 * MINUTE));
    let usual = harness.call("usual");
    let short = harness.call_within("short", Some(SECOND));
    for (call, after) in [(short, 30), (usual, 120), (patient, 240)] {
        let end = harness.calls.end(call).await;
        assert_eq!(start.elapsed(), after * SECOND, "{end}");
        assert!(end.contains("slow: still starting") || after == 30, "{end}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_start_has_a_hard_end() {
    let (_, setup) = busy(1);
    let mut harness = Harness::new(setup);
    let start = Instant::now();
    harness.handle.refresh();
    let mut peer = harness.launched().await;
    assert!(harness.report().await.starts_with("slow: "));
    peer.expect("initialize").await;
    peer.expect_end().await;
    let report = harness.report().await;
    assert!(report.starts_with("was still starting after 300 s, so plugbay ended it"), "{report}");
    assert_eq!(start.elapsed(), 300 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_exits_during_its_start_fails_at_once() {
    let (_, setup) = busy(1);
    let mut harness = Harness::new(setup);
    let start = Instant::now();
    let call = harness.call("a");
    drop(harness.launched().await);
    assert!(harness.calls.end(call).await.contains("before it answered"));
    assert!(start.elapsed() < SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_that_falls_idle_is_given_up_after_its_time_out() {
    let (vitals, setup) = busy(1);
    let mut harness = Harness::new(setup);
    let start = Instant::now();
    let call = harness.call("a");
    let mut peer = harness.launched().await;
    sleep(40 * SECOND).await;
    vitals.uses.store(0, Relaxed);
    assert!(harness.calls.end(call).await.contains("did not answer within 30 s of its start"));
    assert_eq!(start.elapsed(), 69 * SECOND, "idle since the look at 39 s");
    peer.expect("initialize").await;
    peer.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_is_slow_counts_as_a_slow_start() {
    let (vitals, setup) = busy(1);
    let mut harness = Harness::new(setup);
    harness.handle.refresh();
    let mut peer = harness.launched().await;
    sleep(20 * SECOND).await;
    peer.open(Era::Legacy).await;
    assert!(harness.report().await.starts_with("slow: still starting after 30 s"));
    sleep(70 * SECOND).await;
    peer.list(&["late"]).await;
    assert_eq!(harness.report().await, "late");
    vitals.uses.store(0, Relaxed);
    harness.condition(|condition| *condition == Condition::Ready).await;
}

/// Two servers and one slot.
fn two() -> (Harness, Harness, Arc<Scripted>) {
    let (vitals, setup) = busy(1);
    let starts = Arc::clone(&setup.starts);
    (Harness::new(setup), Harness::new(Setup { starts, ..Setup::default() }), vitals)
}

#[tokio::test(start_paused = true)]
async fn a_start_in_the_queue_does_not_lose_its_time() {
    let (mut first, mut second, _) = two();
    first.handle.refresh();
    let mut peer = first.launched().await;
    let start = Instant::now();
    second.handle.refresh();
    second.condition(|condition| *condition == Condition::Warming).await;
    sleep(25 * SECOND).await;
    peer.open(Era::Legacy).await;
    assert!(second.launches(start).is_empty(), "the slot is held until the first list");
    peer.list(&["one"]).await;
    let _peer = second.launched().await;
    assert_eq!(second.launches(start), [25.0]);
    assert!(second.report().await.starts_with("slow: "));
    assert_eq!(start.elapsed(), 55 * SECOND, "the time in the queue does not count");
}

#[tokio::test(start_paused = true)]
async fn a_slow_or_idle_start_gives_its_slot_to_the_next() {
    for (uses, after) in [(1, 30.0), (0, 6.0)] {
        let (mut first, mut second, vitals) = two();
        vitals.uses.store(uses, Relaxed);
        let start = Instant::now();
        first.handle.refresh();
        let _slow = first.launched().await;
        second.handle.refresh();
        let _peer = second.launched().await;
        assert_eq!(second.launches(start), [after], "{uses}");
        assert_eq!(first.launches(start), [0.0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_start_gives_its_slot_to_the_next() {
    let (mut first, mut second, _) = two();
    first.handle.refresh();
    let peer = first.launched().await;
    second.handle.refresh();
    drop(peer);
    second.launched().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_raises_a_start_in_the_queue_and_its_cancellation_leaves_it() {
    let (_, setup) = busy(1);
    let starts = Arc::clone(&setup.starts);
    let mut first = Harness::new(setup);
    first.handle.refresh();
    let mut peer = first.launched().await;
    let mut others = [0; 3].map(|_| Harness::new(Setup { starts: Arc::clone(&starts), ..Setup::default() }));
    for other in &others {
        other.handle.refresh_for(Priority::Listed);
        other.condition(|condition| *condition == Condition::Warming).await;
    }
    let mut unwanted = Harness::new(Setup { starts, ..Setup::default() });
    let cancelled = unwanted.call("a");
    unwanted.condition(|condition| *condition == Condition::Warming).await;
    unwanted.cancel(cancelled);
    unwanted.condition(|condition| *condition == Condition::Idle).await;
    others[2].call("b");
    sleep(SECOND).await;
    peer.open(Era::Legacy).await;
    peer.list(&[]).await;
    let _raised = others[2].launched().await;
    assert!(others[0].launches(Instant::now()).is_empty() && others[1].launches(Instant::now()).is_empty());
    assert!(timeout(2 * MINUTE, unwanted.launched()).await.is_err(), "nobody wants it");
    assert_eq!(others[0].launches(Instant::now()).len(), 1, "it starts in the end");
}

#[tokio::test(start_paused = true)]
async fn many_slow_starts_all_list_a_few_at_a_time() {
    const SLOTS: usize = 8;
    let (_, setup) = busy(SLOTS);
    let starts = Arc::clone(&setup.starts);
    let timeouts = Timeouts { idle: None, ..Timeouts::default() };
    let begun = Instant::now();
    let each = |_| {
        let mut harness = Harness::new(Setup { starts: Arc::clone(&starts), timeouts, ..Setup::default() });
        tokio::spawn(async move {
            harness.handle.refresh();
            let mut peer = harness.launched().await;
            sleep(20 * SECOND).await;
            peer.open(Era::Legacy).await;
            peer.list(&["echo"]).await;
            assert_eq!(harness.report().await, "echo", "never slow, never failed");
            harness.launches(begun)
        })
    };
    let mut launches = Vec::new();
    for task in (0..60).map(each).collect::<Vec<_>>() {
        launches.extend(task.await.unwrap());
    }
    assert_eq!(launches.len(), 60, "none was started twice");
    for at in &launches {
        let together = launches.iter().filter(|other| **other <= *at && at - **other < 20.0).count();
        assert!(together <= SLOTS, "{together} at {at} s");
    }
    assert_eq!(begun.elapsed(), 160 * SECOND, "60 in groups of 8, of 20 s each");
}
