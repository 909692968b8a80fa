//! A host that does not read: it stalls itself, and costs no more than a limit.

use super::stage::{Stage, call, list, request, snapshot};

/// More than one outbox holds: eight of them are over its limit.
fn megabyte() -> String {
    format!("{{\"x\":\"{}\"}}", "x".repeat(1_100_000))
}

#[tokio::test(start_paused = true)]
async fn answers_are_kept_notifications_dropped_and_requests_left_unread() {
    let mut stage = Stage::legacy().await;
    let params = r#"{"name":"s__echo","_meta":{"progressToken":1}}"#;
    let mut calls = Vec::new();
    for id in 0..20 {
        stage.say(request(id, "tools/call", params)).await;
        calls.push(stage.forwarded().await);
    }
    for forwarded in &calls[1..] {
        forwarded.answer(megabyte());
    }
    for _ in 0..1000 {
        calls[0].progress();
    }
    stage.snapshots.send_replace(snapshot(&["echo", "new"], true));
    stage.say(call("\"unread\"")).await;
    stage.nothing_forwarded().await;

    for id in 1..20 {
        assert_eq!(stage.hear().await["id"], id);
    }
    let unread = stage.forwarded().await; // there is room again
    calls[0].progress();
    assert_eq!(stage.hear().await["method"], "notifications/progress");
    calls[0].answer("{}");
    assert_eq!(stage.hear().await["id"], 0);
    unread.answer("{}");
    assert_eq!(stage.hear().await["id"], "unread");
    stage.hear_nothing().await;
}

/// Many requests in one read, each with a large answer.
#[tokio::test(start_paused = true)]
async fn what_was_read_at_once_is_not_answered_at_once() {
    let tools: Vec<String> = (0..10_000).map(|n| format!("a-tool-with-a-long-name-{n}")).collect();
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let mut stage = Stage::with(snapshot(&tools, true));
    let requests: Vec<String> = (0..100).map(list).chain([call("\"last\"")]).collect();
    let requests = requests.join("\n").replace("s__echo", "s__a-tool-with-a-long-name-7");
    let before = "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}\n".repeat(30_000); // makes for large reads
    stage.write(before.as_bytes()).await;
    stage.hear_nothing().await;
    stage.write(format!("{requests}\n").as_bytes()).await;
    stage.nothing_forwarded().await;
    for id in 0..100 {
        assert_eq!(stage.hear().await["id"], id);
    }
    stage.forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_reads_a_little_at_a_time_gets_everything() {
    let mut stage = Stage::legacy().await;
    for round in 0..3 {
        let mut calls = Vec::new();
        for id in 0..12 {
            stage.say(call(id)).await;
            calls.push(stage.forwarded().await);
        }
        for forwarded in &calls {
            forwarded.answer(megabyte());
        }
        for id in 0..12 {
            tokio::task::yield_now().await;
            assert_eq!(stage.hear().await["id"], id, "round {round}");
        }
    }
}
