//! Restarts: a call that the server received is never sent again; an unsent one goes to the next server.

use std::sync::Arc;

use plugbay_core::{
    era::Era,
    exchange::{Servers, Warmed},
    failure::Failure,
    name::ServerName,
};
use serde_json::json;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::{
    super::message::Command,
    MINUTE, SECOND,
    harness::{Harness, Setup, cancellation},
    peer::Peer,
};
use crate::{Pool, ServerSet};

/// A server that has read the first call, but not one byte of the second and third.
async fn stuffed(setup: Setup) -> (Harness, Peer, [plugbay_core::exchange::Ticket; 3]) {
    let (harness, peer) = Harness::ready(Setup { pipe: 300, ..setup }, Era::Legacy).await;
    let first = harness.call(&"x".repeat(1000));
    sleep(SECOND).await; // as much of it as the pipe holds is written
    let calls = [first, harness.call("second"), harness.call("third")];
    sleep(SECOND).await;
    (harness, peer, calls)
}

#[tokio::test(start_paused = true)]
async fn unsent_calls_go_to_the_restarted_server_once() {
    let (mut harness, peer, [sent, second, third]) = stuffed(Setup::default()).await;
    drop(peer);
    assert!(harness.calls.end(sent).await.contains("closed its output during a call"));
    let mut peer = harness.launched().await;
    harness.cancel(third);
    let fourth = harness.call("fourth");
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    for (tool, call) in [("second", second), ("fourth", fourth)] {
        let request = peer.expect_call(tool).await;
        assert_eq!(request["id"], call.0);
        peer.answer(&request, json!({ "tool": tool })).await;
        assert_eq!(harness.calls.end(call).await, format!(r#"{{"tool":"{tool}"}}"#));
    }
    peer.expect_nothing().await;
    assert!(harness.calls.ends_of(third).is_empty(), "taken back");
}

#[tokio::test(start_paused = true)]
async fn a_second_crash_in_a_row_ends_the_unsent_calls() {
    let (mut harness, peer, [_, second, third]) = stuffed(Setup::default()).await;
    drop(peer);
    drop(harness.launched().await); // it was legacy, so there is no second try
    for call in [second, third] {
        assert!(harness.calls.end(call).await.contains("closed its output before it answered"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_crashing_gets_no_unsent_calls() {
    let (mut harness, peer, [_, second, third]) = stuffed(Setup::default()).await;
    drop(peer);
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    peer.expect_call("second").await;
    peer.expect_call("third").await;
    harness.call(&"y".repeat(1000));
    sleep(SECOND).await;
    let unsent = harness.call("unsent");
    sleep(SECOND).await;
    drop(peer);
    for call in [second, third, unsent] {
        assert!(harness.calls.end(call).await.contains("closed its output during a call"));
    }
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn an_unsent_call_keeps_its_timeout() {
    let timeouts = crate::spec::Timeouts { call: 10 * SECOND, ..crate::spec::Timeouts::default() };
    let (mut harness, peer, [_, second, _]) = stuffed(Setup { timeouts, ..Setup::default() }).await;
    let start = Instant::now();
    drop(peer);
    let mut peer = harness.launched().await;
    assert!(harness.calls.end(second).await.contains("did not answer within 10 s"));
    assert_eq!(start.elapsed(), 9 * SECOND);
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_calls_do_not_restart_a_server() {
    let (mut harness, peer, [_, second, third]) = stuffed(Setup::default()).await;
    harness.cancel(second);
    harness.cancel(third);
    let start = Instant::now();
    drop(peer);
    harness.launched().await;
    assert!(start.elapsed() > SECOND / 2, "an ordinary retry");
}

#[tokio::test(start_paused = true)]
async fn an_activation_during_a_failing_retry_is_told_of_the_next_start() {
    let (mut harness, peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    drop(peer);
    let retried = harness.launched().await;
    let warm = |harness: &Harness| {
        let (hear, heard) = oneshot::channel();
        harness.handle.send(Command::Warm(Warmed::new(move |outcome| drop(hear.send(outcome)))));
        heard
    };
    let heard = warm(&harness);
    sleep(SECOND / 10).await; // mended meanwhile
    let failed = Instant::now();
    drop(retried);
    let mut peer = harness.launched().await;
    assert!(failed.elapsed() < SECOND, "at once");
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    assert_eq!(heard.await.unwrap(), Ok(()));

    drop(peer);
    let retried = harness.launched().await;
    let heard = warm(&harness);
    sleep(SECOND / 10).await;
    drop(retried);
    drop(harness.launched().await);
    assert!(heard.await.unwrap().is_err(), "one more start, not many");
}

/// The answer is already in the pipe when writing to the server fails.
#[tokio::test(start_paused = true)]
async fn responses_before_a_crash_are_delivered() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let answered = harness.call("a");
    let request = peer.expect_call("a").await;
    peer.answer(&request, json!({ "a": 1 })).await;
    drop(peer);
    let unsent = harness.call("b");
    assert_eq!(harness.calls.end(answered).await, r#"{"a":1}"#);
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    let request = peer.expect_call("b").await;
    peer.answer(&request, json!({ "b": 1 })).await;
    assert_eq!(harness.calls.end(unsent).await, r#"{"b":1}"#);
}

/// Stops a server in each of its states.
#[tokio::test(start_paused = true)]
async fn stop_answers_every_call() {
    let gone = "server 's' is not configured any more";
    for stage in ["asleep", "opening", "up", "stuffed", "resting"] {
        let (mut harness, mut peer, mut calls) = (Harness::new(Setup::default()), None, Vec::new());
        match stage {
            "opening" => {
                calls.push(harness.call("a"));
                peer = Some(harness.launched().await);
            }
            "up" => {
                let (ready, mut running) = Harness::ready(Setup::default(), Era::Modern).await;
                harness = ready;
                calls.push(harness.call("a"));
                running.expect_call("a").await;
                peer = Some(running);
            }
            "stuffed" => {
                let (ready, running, stuck) = stuffed(Setup::default()).await;
                harness = ready;
                calls.extend(stuck);
                peer = Some(running);
            }
            "resting" => harness = Harness::new(Setup { broken: |_| true, ..Setup::default() }),
            _ => {}
        }
        // These are in the actor's inbox when the stop arrives: one before it, one after it.
        let before = harness.call("b");
        let stopping = harness.handle.stop();
        let behind = async { harness.call("c") };
        let ((), behind) = tokio::join!(stopping, behind);
        let after = harness.call("d");
        for call in calls.into_iter().chain([behind, after]) {
            assert_eq!(harness.calls.end(call).await, gone, "{stage}");
        }
        assert!(!harness.calls.end(before).await.is_empty(), "{stage}");
        if let Some(mut peer) = peer {
            while peer.receive().await.is_some() {}
        }
        let launches = harness.launches(Instant::now()).len();
        sleep(60 * MINUTE).await;
        assert_eq!(harness.launches(Instant::now()).len(), launches, "{stage}: it stays ended");
        harness.handle.stop().await; // once more does no harm
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_to_an_unknown_server_is_answered() {
    let harness = Harness::new(Setup::default());
    let name = |name| ServerName::parse(name).unwrap();
    let failure = Arc::new(Failure::new("its command is missing", Vec::new()));
    let pool = Pool::default();
    pool.replace(ServerSet { invalid: [(name("broken"), failure)].into(), ..ServerSet::default() });
    let cases = [("broken", "its command is missing"), ("gone", "is not configured any more")];
    for (server, words) in cases {
        let ticket = harness.context.tickets.next();
        pool.forward(&name(server), harness.calls.call(ticket, "a", None));
        pool.cancel(&name(server), ticket, cancellation());
        let end = harness.calls.end(ticket).await;
        assert!(end.contains(words), "{end}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_ends_every_sent_call_and_no_other() {
    let (mut harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let calls: Vec<_> = (0..100).map(|n| harness.call(&format!("tool{n}"))).collect();
    for n in 0..100 {
        let request = peer.expect_call(&format!("tool{n}")).await;
        if n % 3 == 0 {
            peer.answer(&request, json!({ "n": n })).await;
        }
    }
    sleep(SECOND).await;
    drop(peer);
    for (n, call) in calls.iter().enumerate() {
        let end = harness.calls.end(*call).await;
        assert!(if n % 3 == 0 { end == format!(r#"{{"n":{n}}}"#) } else { end.contains("closed") }, "{end}");
    }
    let mut peer = harness.launched().await;
    peer.open(Era::Legacy).await;
    peer.list(&["echo"]).await;
    peer.expect_nothing().await;
}
