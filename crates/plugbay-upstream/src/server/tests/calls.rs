//! Calls: timeouts, progress, the hard maximum, cancellation.

use plugbay_core::era::Era;
use serde_json::json;
use tokio::time::{Instant, advance, sleep};

use super::{
    MINUTE, SECOND,
    harness::{Harness, Setup},
    host::{Host, HostEvent},
};
use crate::{server::Command, spec::Timeouts};

fn patience(call: u32, at_most: u32) -> Setup {
    let timeouts = Timeouts { call: call * SECOND, call_max: at_most * SECOND, ..Timeouts::default() };
    Setup { timeouts, ..Setup::default() }
}

#[tokio::test(start_paused = true)]
async fn a_call_times_out_and_the_server_gets_a_cancellation() {
    for (own, seconds) in [(None, 120), (Some(5), 5), (Some(600), 600), (Some(7200), 7200)] {
        let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
        let start = Instant::now();
        let call = harness.call_within("slow", own.map(|own| own * SECOND));
        let request = peer.expect_call("slow").await;
        let end = harness.calls.end(call).await;
        assert!(end.contains(&format!("did not answer within {seconds} s;")), "{end}");
        assert_eq!(start.elapsed(), seconds * SECOND);
        let cancelled = peer.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"], json!({ "requestId": request["id"], "reason": "timed out" }));

        peer.progress(&request).await; // late, and so nobody's
        peer.answer(&request, json!({})).await;
        let next = harness.call("quick");
        let request = peer.expect_call("quick").await;
        peer.answer(&request, json!({ "quick": 1 })).await;
        assert_eq!(harness.calls.end(next).await, r#"{"quick":1}"#);
        assert_eq!((harness.calls.ends_of(call).len(), harness.calls.progress_of(call)), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn progress_extends_the_call_timeout_up_to_the_maximum() {
    let (harness, mut peer) = Harness::ready(patience(10, 40), Era::Legacy).await;
    let start = Instant::now();
    let (silent, lively) = (harness.call("silent"), harness.call("lively"));
    peer.expect_call("silent").await;
    let request = peer.expect_call("lively").await;
    for _ in 0..4 {
        sleep(9 * SECOND).await;
        peer.progress(&request).await;
    }
    assert!(harness.calls.ends_of(silent)[0].contains("did not answer within 10 s"));
    let end = harness.calls.end(lively).await;
    assert!(end.contains("did not answer within 40 s"), "{end}");
    assert_eq!(start.elapsed(), 40 * SECOND);
    assert_eq!(harness.calls.progress_of(lively), 4);
}

#[tokio::test(start_paused = true)]
async fn call_timeouts_fire_while_a_server_sends_without_pause() {
    let (harness, mut peer) = Harness::ready(patience(10, 20), Era::Legacy).await;
    let call = harness.call("chatty");
    let request = peer.expect_call("chatty").await;
    for _ in 0..1000 {
        for _ in 0..100 {
            peer.progress(&request).await;
        }
        advance(SECOND / 10).await;
        if !harness.calls.ends_of(call).is_empty() {
            return;
        }
    }
    panic!("the hard maximum did not hold");
}

/// The timeout fires whatever else happens at that moment.
#[tokio::test(start_paused = true)]
async fn a_call_timeout_fires_among_many_calls() {
    for crowd in ["noise", "command", "both"] {
        let (harness, mut peer) = Harness::ready(patience(10, 20), Era::Legacy).await;
        let start = Instant::now();
        let call = harness.call("a");
        peer.expect_call("a").await;
        sleep(SECOND / 5 * 49).await;
        advance(SECOND / 5).await;
        if crowd != "command" {
            peer.say("noise").await;
        }
        if crowd != "noise" {
            harness.handle.refresh();
        }
        assert!(harness.calls.end(call).await.contains("did not answer within 10 s"), "{crowd}");
        assert!(start.elapsed() < 11 * SECOND, "{crowd}");
    }
}

/// The machine slept, or the process was stopped, so plugbay could not read from the server.
#[tokio::test(start_paused = true)]
async fn a_call_outlives_the_sleep_of_the_machine() {
    let (harness, mut peer) = Harness::ready(patience(10, 20), Era::Legacy).await;
    let [answered, silent] = ["a", "b"].map(|tool| harness.call(tool));
    let request = peer.expect_call("a").await;
    peer.expect_call("b").await;
    advance(3600 * SECOND).await;
    sleep(9 * SECOND).await;
    peer.answer(&request, json!({ "a": 1 })).await;
    assert_eq!(harness.calls.end(answered).await, r#"{"a":1}"#);
    assert_eq!(harness.calls.ends_of(silent), [""; 0]);
    assert!(harness.calls.end(silent).await.contains("did not answer within 10 s"));
}

/// The event loop is late again and again because it is busy: that does not count as sleep.
#[tokio::test(start_paused = true)]
async fn a_silent_server_is_given_up_although_the_timer_is_late() {
    let (harness, mut peer) = Harness::ready(patience(10, 20), Era::Legacy).await;
    let silent = harness.call("a");
    peer.expect_call("a").await;
    for _ in 0..5 {
        advance(5 * SECOND + SECOND * 6 / 10).await;
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
    let ends = harness.calls.ends_of(silent);
    assert!(ends.len() == 1 && ends[0].contains("did not answer within 10 s"), "{ends:?}");
}

/// Messages after a large answer are read when its caller has room, or after a while anyway: somebody may be
/// waiting for them. Requests and cancellations go out meanwhile.
#[tokio::test(start_paused = true)]
async fn a_slow_caller_delays_reading_responses_and_nothing_else() {
    let (harness, mut peer) = Harness::ready(patience(10, 20), Era::Legacy).await;
    harness.calls.press(true);
    let [large, taken_back, behind] = ["a", "b", "c"].map(|tool| harness.call(tool));
    let request = peer.expect_call("a").await;
    peer.answer(&request, json!({ "a": "x".repeat(20_000) })).await;
    harness.calls.end(large).await;
    for tool in ["b", "c"] {
        let request = peer.expect_call(tool).await;
        peer.answer(&request, json!({ "tool": tool })).await;
    }
    harness.cancel(taken_back);
    peer.expect("notifications/cancelled").await;
    sleep(SECOND / 10).await;
    assert_eq!(harness.calls.ends_of(behind), [""; 0]);
    sleep(SECOND / 2).await;
    assert_eq!(harness.calls.end(behind).await, r#"{"tool":"c"}"#);
    assert_eq!(harness.calls.ends_of(taken_back), [""; 0]);
}

/// plugbay waits once for a caller that reads nothing, however many responses it gets, and never while
/// another host waits for its own response.
#[tokio::test(start_paused = true)]
async fn a_slow_caller_does_not_hold_up_the_responses_of_another_host() {
    let (harness, mut peer) = Harness::ready(patience(10, 20), Era::Legacy).await;
    harness.calls.press(true);
    let host = Host::new(None);
    let large = || json!({ "a": "x".repeat(20_000) });
    let start = Instant::now();
    for tool in ["a", "b", "c", "d"] {
        let ticket = harness.call(tool);
        let request = peer.expect_call(tool).await;
        peer.answer(&request, large()).await;
        harness.calls.end(ticket).await;
    }
    assert!(start.elapsed() < SECOND / 2, "it is waited for once: {:?}", start.elapsed());

    harness.calls.press(false); // it has drained, so that it is waited for again
    let ticket = harness.call("drained");
    let request = peer.expect_call("drained").await;
    peer.answer(&request, large()).await;
    harness.calls.end(ticket).await;
    harness.calls.press(true);

    let (slow, start) = (harness.call("e"), Instant::now());
    let request = peer.expect_call("e").await;
    peer.answer(&request, large()).await;
    harness.calls.end(slow).await;
    let ticket = harness.call_by(&host, "echo");
    let request = peer.expect_call("echo").await;
    peer.answer(&request, json!({})).await;
    assert_eq!(host.next_event().await, HostEvent::Answered(ticket, "{}".to_owned()));
    assert!(start.elapsed() < SECOND / 10, "another host waits: {:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn cancellation_ends_a_call_without_a_response() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let call = harness.call("a");
    let request = peer.expect_call("a").await;
    harness.cancel(call);
    let cancelled = peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(request["id"], call.0);
    harness.cancel(call); // again, and of one that never was: nothing goes out
    harness.cancel(plugbay_core::exchange::Ticket(999));
    peer.progress(&request).await;
    peer.answer(&request, json!({})).await;
    peer.expect_nothing().await;
    sleep(60 * MINUTE).await;
    assert_eq!((harness.calls.ends_of(call).len(), harness.calls.progress_of(call)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn cancellation_of_an_answered_call_does_nothing() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let call = harness.call("a");
    let request = peer.expect_call("a").await;
    peer.answer(&request, json!({})).await;
    harness.calls.end(call).await;
    harness.cancel(call);
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_gets_no_more_calls() {
    let (harness, _peer) = Harness::ready(Setup { pipe: 1000, ..Setup::default() }, Era::Legacy).await;
    let ticket = || harness.context.tickets.next();
    let large = harness.calls.call(ticket(), &"x".repeat(9_000_000), None).request;
    for _ in 0..8 {
        let call = harness.calls.call(ticket(), "large", None);
        harness
            .handle
            .send(Command::Forward(plugbay_core::exchange::Call { request: large.clone(), ..call }));
    }
    let end = harness.calls.end(harness.call("one more")).await;
    assert!(end.contains("does not read what it is sent"), "{end}");
}
