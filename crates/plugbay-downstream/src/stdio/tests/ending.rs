//! The end of a session: what is in flight may finish, but not for ever.

use tokio::time::{Instant, sleep};

use super::{
    SECOND,
    stage::{INITIALIZE, Stage, call, list, snapshot, unsettled},
};

#[tokio::test(start_paused = true)]
async fn a_session_without_calls_ends_at_once() {
    let mut stage = Stage::legacy().await;
    let start = Instant::now();
    stage.close();
    assert_eq!(stage.heard().await, None);
    stage.ended().await.unwrap();
    assert_eq!(start.elapsed().as_millis(), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_have_two_seconds() {
    let mut stage = Stage::legacy().await;
    stage.say(call(1)).await;
    stage.say(call(2)).await;
    let (quick, _slow) = (stage.forwarded().await, stage.forwarded().await);
    let start = Instant::now();
    stage.close();
    sleep(SECOND).await;
    quick.answer("{}");
    assert_eq!(stage.hear().await["id"], 1);
    let refused = stage.hear().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&2.into(), &(-32000).into()));
    assert_eq!(stage.heard().await, None);
    stage.ended().await.unwrap();
    assert_eq!(start.elapsed(), 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_told_to_stop_reads_no_more_and_answers_what_it_has() {
    let mut stage = Stage::legacy().await;
    stage.say(call(1)).await;
    let forwarded = stage.forwarded().await;
    stage.stop();
    sleep(SECOND).await;
    stage.say(call(2)).await;
    stage.nothing_forwarded().await;
    forwarded.answer("{}");
    let answer = stage.hear().await;
    assert_eq!(answer["id"], 1);
    assert_eq!(stage.heard().await, None);
    stage.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_is_the_end() {
    let mut stage = Stage::legacy().await;
    stage.say(call(1)).await;
    let forwarded = stage.forwarded().await;
    stage.close();
    sleep(SECOND).await;
    let start = Instant::now();
    forwarded.answer("{}");
    assert_eq!(stage.hear().await["id"], 1);
    assert_eq!(stage.heard().await, None);
    assert_eq!(start.elapsed().as_millis(), 0);
}

/// What a script does that writes its requests and closes: the list must not be lost.
#[tokio::test(start_paused = true)]
async fn a_list_that_waits_is_in_flight_too() {
    for (after, answered) in [(1, true), (3, false)] {
        let mut stage = Stage::with(unsettled());
        stage.say(INITIALIZE).await;
        stage.say(list(1)).await;
        stage.close();
        assert_eq!(stage.hear().await["id"], "init");
        sleep(after * SECOND).await;
        stage.snapshots.send_replace(snapshot(&["echo"], true));
        let last = stage.heard().await;
        assert_eq!(last.is_some_and(|line| line.contains("s__echo")), answered);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_is_not_sent_for_a_host_that_has_gone() {
    let mut stage = Stage::with(unsettled());
    stage.say(call(1)).await;
    stage.close();
    assert_eq!(stage.hear().await["error"]["code"], -32000);
    assert_eq!(stage.heard().await, None);
    stage.snapshots.send_replace(snapshot(&["echo"], true));
    stage.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_neither_reads_nor_goes_is_not_waited_for() {
    let mut stage = Stage::legacy().await;
    stage.say(call(1)).await;
    stage.forwarded().await.answer(format!("\"{}\"", "x".repeat(100_000)));
    let start = Instant::now();
    stage.close();
    let _ = (&mut stage.serving).await;
    assert!(start.elapsed() < 90 * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_all_of_the_last_answer() {
    let mut stage = Stage::legacy().await;
    stage.say(call(1)).await;
    stage.forwarded().await.answer(format!("\"{}\"", "x".repeat(100_000)));
    stage.close();
    let mut text = Vec::new();
    while let Some(byte) = stage.read_slowly().await {
        text.extend(byte);
    }
    assert!(text.len() > 100_000 && text.ends_with(b"\n"), "{}", text.len());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_stops_reading_for_good_ends_its_session() {
    let mut stage = Stage::legacy().await;
    stage.say(call(1)).await;
    let forwarded = stage.forwarded().await;
    let stage = stage.deaf();
    forwarded.answer("{}");
    assert!(stage.await.unwrap().is_err());
}
