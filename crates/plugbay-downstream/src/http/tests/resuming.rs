//! Streams that break: their calls go on, and missed events are sent again.

use tokio::time::sleep;

use super::harness::{Event, Harness, Host, get, post, within};
use crate::scripted::{Forwarded, INITIALIZE, SECOND, request};

fn calling(id: u32) -> String {
    request(id, "tools/call", r#"{"name":"s__echo","_meta":{"progressToken":"p"}}"#)
}

/// A session with a call whose stream has begun.
async fn streaming(harness: &mut Harness) -> (String, Host, Forwarded) {
    let session = harness.open().await;
    let mut host = harness.connect();
    host.say(within(&session, &calling(1))).await;
    let forwarded = harness.servers.forwarded().await;
    forwarded.progress();
    assert_eq!(host.reply().await.headers["content-type"], "text/event-stream");
    (session, host, forwarded)
}

async fn resumed(harness: &Harness, session: &str, last: &str) -> Host {
    let mut host = harness.connect();
    host.open_stream(get(session, Some(last))).await;
    host
}

fn id(event: &Event) -> &str {
    event.id.as_deref().expect("an id")
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_goes_on_behind_the_last_event_that_arrived() {
    let mut harness = Harness::new();
    let (session, mut host, forwarded) = streaming(&mut harness).await;
    let first = host.event().await.unwrap();
    assert_eq!(first.data, "", "something to resume from");
    let progress = host.event().await.unwrap();
    forwarded.progress();
    let lost = host.event().await.unwrap();
    drop(host);
    harness.servers.nothing_forwarded().await; // it was not cancelled
    forwarded.progress();

    let mut host = resumed(&harness, &session, id(&progress)).await;
    assert_eq!(host.event().await.unwrap(), lost);
    let next = host.event().await.unwrap();
    assert!(next.data.contains("progress") && next.id != lost.id, "{next:?}");
    drop(host);
    sleep(SECOND).await;
    forwarded.answer(r#"{"late":1}"#);
    sleep(30 * SECOND).await;

    for _ in 0..2 {
        // It can be lost again and again.
        let mut host = resumed(&harness, &session, id(&next)).await;
        assert_eq!(host.hear().await["result"]["late"], 1);
        assert_eq!(host.event().await, None);
    }
    let mut host = resumed(&harness, &session, id(&first)).await;
    assert_eq!(host.event().await.unwrap(), progress);
}

#[tokio::test(start_paused = true)]
async fn a_stream_keeps_its_answer_for_a_minute_and_its_call_as_long_as_it_takes() {
    let mut harness = Harness::new();
    let (session, mut host, forwarded) = streaming(&mut harness).await;
    let first = host.event().await.unwrap();
    drop(host);
    sleep(600 * SECOND).await;
    forwarded.answer("{}");
    sleep(50 * SECOND).await;
    let mut host = resumed(&harness, &session, id(&first)).await;
    host.event().await.unwrap();
    assert_eq!(host.hear().await["id"], 1);
    drop(host);
    sleep(100 * SECOND).await;
    let gone = harness.ask(get(&session, Some(id(&first)))).await;
    assert_eq!(gone.status, 400, "not 404, which would end the session");
}

#[tokio::test(start_paused = true)]
async fn resuming_a_finished_stream_gets_204() {
    let taken_back = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    for cancelled in [false, true] {
        let mut harness = Harness::new();
        let (session, mut host, forwarded) = streaming(&mut harness).await;
        let mut last = host.event().await.unwrap();
        if cancelled {
            harness.ask(within(&session, taken_back)).await;
        } else {
            forwarded.answer("{}");
        }
        while let Some(event) = host.event().await {
            last = event;
        }
        assert_eq!(harness.ask(get(&session, Some(id(&last)))).await.status, 204, "cancelled: {cancelled}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_resumes_only_the_streams_of_its_session() {
    let mut harness = Harness::new();
    let (session, mut host, _forwarded) = streaming(&mut harness).await;
    let first = host.event().await.unwrap();
    let other = harness.open().await;
    for (session, last) in
        [(&other, id(&first)), (&session, "9-1"), (&session, "x"), (&session, "1-"), (&session, "-1-1")]
    {
        assert_eq!(harness.ask(get(session, Some(last))).await.status, 400, "{last}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_stream_ends_its_earlier_connection() {
    let mut harness = Harness::new();
    let (session, mut host, forwarded) = streaming(&mut harness).await;
    let first = host.event().await.unwrap();
    host.event().await.unwrap();
    // Two at once: the later one has it.
    let (mut earlier, mut second) = (harness.connect(), harness.connect());
    earlier.say(get(&session, Some(id(&first)))).await;
    second.open_stream(get(&session, Some(id(&first)))).await;
    second.event().await.unwrap();
    assert_eq!(host.event().await, None);
    earlier.reply().await;
    while earlier.event().await.is_some() {}
    forwarded.answer("{}");
    assert_eq!(second.hear().await["id"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_keeps_a_limited_number_of_events_and_always_the_answer() {
    let mut harness = Harness::new();
    let (session, mut host, forwarded) = streaming(&mut harness).await;
    let first = host.event().await.unwrap();
    for _ in 0..5000 {
        forwarded.progress();
        host.event().await.unwrap();
    }
    drop(host);
    forwarded.answer(format!("{{\"x\":\"{}\"}}", "x".repeat(300_000)));
    let mut host = resumed(&harness, &session, id(&first)).await;
    let mut events = 0;
    while let Some(event) = host.event().await {
        events += 1;
        if event.data.len() > 300_000 {
            assert!(events < 5000, "{events}");
            return;
        }
    }
    panic!("no answer in {events} events");
}

/// Hosts of older revisions cannot read an event without a message.
#[tokio::test(start_paused = true)]
async fn a_stream_of_an_older_revision_has_no_empty_event() {
    let mut harness = Harness::new();
    let opened = harness.ask(post(&[], &INITIALIZE.replace("2025-11-25", "2025-06-18"))).await;
    let session = &opened.headers["mcp-session-id"];
    let mut host = harness.connect();
    host.say(within(session, &calling(1))).await;
    let forwarded = harness.servers.forwarded().await;
    forwarded.progress();
    host.reply().await;
    assert_eq!(host.hear().await["method"], "notifications/progress");
}
