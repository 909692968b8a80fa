//! A host that does not read: it stalls only itself, and uses no more memory than a limit.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    time::Instant,
};

use super::harness::{Harness, INITIALIZE, call, list, request, snapshot};
use crate::{
    scripted::{self, SECOND, soon},
    stdio::{UnreadLimit, Window, serve_window},
};

/// A text of which eight exceed the limit of an outbox.
fn megabyte() -> String {
    format!("{{\"x\":\"{}\"}}", "x".repeat(1_100_000))
}

#[tokio::test(start_paused = true)]
async fn answers_are_kept_notifications_dropped_and_requests_left_unread() {
    let mut harness = Harness::legacy().await;
    let params = r#"{"name":"s__echo","_meta":{"progressToken":1}}"#;
    let mut calls = Vec::new();
    for id in 0..20 {
        harness.say(request(id, "tools/call", params)).await;
        calls.push(harness.forwarded().await);
    }
    for forwarded in &calls[1..] {
        forwarded.answer(megabyte());
    }
    for _ in 0..1000 {
        calls[0].progress();
    }
    harness.snapshots.send_replace(snapshot(&["echo", "new"], true));
    harness.say(call("\"unread\"")).await;
    harness.nothing_forwarded().await;

    for id in 1..20 {
        assert_eq!(harness.hear().await["id"], id);
    }
    let unread = harness.forwarded().await; // there is room again
    calls[0].progress();
    assert_eq!(harness.hear().await["method"], "notifications/progress");
    calls[0].answer("{}");
    assert_eq!(harness.hear().await["id"], 0);
    unread.answer("{}");
    assert_eq!(harness.hear().await["id"], "unread");
    harness.hear_nothing().await;
}

/// Many requests in one read, each with a large answer.
#[tokio::test(start_paused = true)]
async fn requests_read_at_once_are_answered_as_the_host_reads() {
    let tools: Vec<String> = (0..10_000).map(|n| format!("a-tool-with-a-long-name-{n}")).collect();
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let mut harness = Harness::with(snapshot(&tools, true));
    let requests: Vec<String> = (0..100).map(list).chain([call("\"last\"")]).collect();
    let requests = requests.join("\n").replace("s__echo", "s__a-tool-with-a-long-name-7");
    let before = "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\n".repeat(30_000); // makes for large reads
    harness.write(before.as_bytes()).await;
    harness.hear_nothing().await;
    harness.write(format!("{requests}\n").as_bytes()).await;
    harness.nothing_forwarded().await;
    for id in 0..100 {
        assert_eq!(harness.hear().await["id"], id);
    }
    harness.forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_reads_a_little_at_a_time_gets_everything() {
    let mut harness = Harness::legacy().await;
    for round in 0..3 {
        let mut calls = Vec::new();
        for id in 0..12 {
            harness.say(call(id)).await;
            calls.push(harness.forwarded().await);
        }
        for forwarded in &calls {
            forwarded.answer(megabyte());
        }
        for id in 0..12 {
            tokio::task::yield_now().await;
            assert_eq!(harness.hear().await["id"], id, "round {round}");
        }
    }
}

/// Its servers go on for other windows, and its answers would stay in memory.
#[tokio::test(start_paused = true)]
async fn a_window_whose_host_reads_nothing_is_let_go_and_its_answers_are_counted() {
    let (gateway, _snapshots, mut servers) = scripted::gateway(snapshot(&["echo"], true));
    let (mut input, their_input) = tokio::io::duplex(1_000_000);
    let (mut output, their_output) = tokio::io::duplex(1000);
    let (unread, (_sender, controls)) = (UnreadLimit::default(), mpsc::unbounded_channel());
    let window = Window {
        owner: [1; 32],
        token: String::new(),
        state: None,
        unread: unread.clone(),
        controls,
        cut: std::sync::Arc::default(),
    };
    let serving = serve_window(gateway, their_input, their_output, window, std::future::pending());
    let serving = tokio::spawn(serving);
    let say = format!("{INITIALIZE}\n{}\n{}\n", call(1), call(2));
    input.write_all(say.as_bytes()).await.expect("room");
    output.read_u8().await.expect("the answer to initialize");
    let start = Instant::now();
    for _ in 0..2 {
        servers.forwarded().await.answer(megabyte());
    }
    assert!(unread.held() > 2_000_000, "{} bytes are counted", unread.held());
    let ended = tokio::time::timeout(40 * SECOND, serving).await.expect("it is let go").expect("no panic");
    assert_eq!(ended.expect_err("it read nothing").kind(), std::io::ErrorKind::TimedOut);
    assert!(start.elapsed() >= 30 * SECOND, "{:?}", start.elapsed());
    soon("the memory", async {
        while unread.held() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
