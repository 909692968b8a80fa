//! Subscriptions of modern hosts.

use plugbay_core::era::SUBSCRIPTION_KEY;
use serde_json::{Value, json};

use super::harness::{Harness, INITIALIZE, INITIALIZED, cancel, listen, modern, snapshot};

impl Harness {
    /// The next notification: its last word, and the subscription that it belongs to.
    async fn told(&mut self) -> (String, Value) {
        let message = self.hear().await;
        let method = message["method"].as_str().unwrap_or_else(|| panic!("{message}"));
        let word = method.rsplit('/').next().unwrap().to_owned();
        (word, message["params"]["_meta"][SUBSCRIPTION_KEY].clone())
    }

    async fn subscribe(&mut self, id: &str) {
        self.say(listen(id)).await;
        let expected = serde_json::from_str(id).unwrap();
        assert_eq!(self.told().await, ("acknowledged".to_owned(), expected));
    }
}

fn changed(id: impl Into<Value>) -> (String, Value) {
    ("list_changed".to_owned(), id.into())
}

#[tokio::test(start_paused = true)]
async fn each_subscription_is_acknowledged_notified_and_ended_by_its_id() {
    let mut harness = Harness::new();
    harness.ask(modern(1, "tools/list", "")).await;
    harness.subscribe("10").await;
    harness.subscribe("\"10\"").await;
    harness.subscribe("\"other\"").await;
    harness.say(modern(11, "subscriptions/listen", r#","notifications":{"moonListChanged":true}"#)).await;
    let acknowledged = harness.hear().await;
    assert_eq!(acknowledged["params"]["notifications"], json!({}), "what is not there is not granted");

    harness.snapshots.send_replace(snapshot(&["a"], true));
    for id in [json!(10), json!("10"), json!("other")] {
        assert_eq!(harness.told().await, changed(id));
    }
    harness.say(cancel("\"10\"")).await;
    harness.hear_nothing().await;
    harness.snapshots.send_replace(snapshot(&["b"], true));
    for id in [json!(10), json!("other")] {
        assert_eq!(harness.told().await, changed(id));
    }
    harness.hear_nothing().await;

    harness.close();
    for id in [json!(10), json!("other"), json!(11)] {
        let end = harness.hear().await;
        assert_eq!((&end["id"], &end["result"]["resultType"]), (&id, &json!("complete")));
        assert_eq!(end["result"]["_meta"][SUBSCRIPTION_KEY], id);
    }
    assert_eq!(harness.heard().await, None);
    harness.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn list_changed_follows_the_acknowledgement_of_a_subscription() {
    let mut harness = Harness::new();
    harness.ask(modern(1, "tools/list", "")).await;
    harness.snapshots.send_replace(snapshot(&["a"], true));
    harness.hear_nothing().await;
    harness.subscribe("2").await;
    assert_eq!(harness.told().await, changed(2));
    harness.subscribe("3").await;
    harness.hear_nothing().await; // told already
}

#[tokio::test(start_paused = true)]
async fn no_list_changed_notification_before_the_first_list() {
    let mut harness = Harness::new();
    harness.subscribe("1").await;
    harness.snapshots.send_replace(snapshot(&["a"], true));
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn the_id_of_an_open_subscription_is_in_use() {
    let mut harness = Harness::new();
    harness.subscribe("1").await;
    for line in [listen(1), modern(1, "tools/call", r#","name":"s__echo""#)] {
        assert_eq!(harness.ask(&line).await["error"]["code"], -32600, "{line}");
    }
    harness.nothing_forwarded().await;
    harness.say(cancel(1)).await;
    harness.subscribe("1").await;
}

#[tokio::test(start_paused = true)]
async fn list_changed_notifications_reach_a_host_of_both_eras_twice() {
    let mut harness = Harness::new();
    harness.ask(INITIALIZE).await;
    harness.say(INITIALIZED).await;
    harness.ask(modern(1, "tools/list", "")).await;
    harness.subscribe("2").await;
    harness.snapshots.send_replace(snapshot(&["a"], true));
    assert_eq!(harness.told().await, changed(Value::Null));
    assert_eq!(harness.told().await, changed(2));
    harness.hear_nothing().await;
}
