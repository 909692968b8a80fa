//! The list of tools as one host sees it: waiting for it, and notifications when it changes.

use serde_json::json;

use super::harness::{Harness, INITIALIZE, INITIALIZED, cancel, list, modern, snapshot, unsettled};

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

impl Harness {
    /// The names that this host sees.
    pub(super) async fn tools(&mut self) -> String {
        let answer = self.ask(list(1)).await;
        let tools = answer["result"]["tools"].as_array().expect("tools").clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    fn change(&self, tools: &[&str]) {
        self.snapshots.send_replace(snapshot(tools, true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_list_waits_until_every_server_has_listed() {
    let mut harness = Harness::with(unsettled());
    harness.say(INITIALIZE).await;
    harness.hear().await;
    harness.say(INITIALIZED).await;
    for id in [1, 2, 3] {
        harness.say(list(id)).await;
    }
    assert_eq!(
        harness.ask(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await["id"],
        9,
        "others do not wait"
    );
    assert_eq!(harness.ask(list(1)).await["error"]["code"], -32600, "its id is in use");
    harness.say(cancel(2)).await;
    harness.snapshots.send_replace(snapshot(&["early"], false));
    harness.hear_nothing().await;
    harness.change(&["early", "late"]);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = harness.hear().await;
        assert_eq!(answer["result"]["tools"], json!([{ "name": "s__early" }, { "name": "s__late" }]));
        ids.push(answer["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 3], "the second was cancelled");
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn list_changed_is_sent_once_and_only_for_visible_changes() {
    let mut harness = Harness::legacy().await;
    harness.change(&["a"]);
    harness.hear_nothing().await; // it has not listed yet
    assert_eq!(harness.tools().await, "s__a");
    harness.change(&["a"]);
    harness.hear_nothing().await; // no change to see
    for tools in [&["a", "b"][..], &["b"], &["a"]] {
        harness.change(tools);
        assert_eq!(harness.hear_text().await, CHANGED);
        harness.hear_nothing().await;
    }
    assert_eq!(harness.tools().await, "s__a");
    harness.change(&["c"]);
    harness.change(&["a"]); // gone before anybody looked
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn list_changed_waits_for_the_initialized_notification() {
    let mut harness = Harness::new();
    harness.say(INITIALIZE).await;
    harness.hear().await;
    assert_eq!(harness.tools().await, "s__echo");
    harness.change(&["new"]);
    harness.hear_nothing().await;
    harness.say(INITIALIZED).await;
    assert_eq!(harness.hear_text().await, CHANGED);
    harness.say(INITIALIZED).await;
    harness.hear_nothing().await;
    assert_eq!(harness.tools().await, "s__new");
}

#[tokio::test(start_paused = true)]
async fn list_changed_is_not_sent_for_a_list_already_sent() {
    let mut harness = Harness::new();
    harness.say(INITIALIZE).await;
    harness.hear().await;
    assert_eq!(harness.tools().await, "s__echo");
    harness.change(&["new"]);
    assert_eq!(harness.tools().await, "s__new");
    harness.say(INITIALIZED).await;
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn list_changed_is_not_sent_to_a_modern_host_without_subscription() {
    let mut harness = Harness::new();
    harness.ask(modern(1, "tools/list", "")).await;
    harness.change(&["new"]);
    harness.hear_nothing().await;
}
