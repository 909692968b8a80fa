//! Server notifications: logs by level and era, and resource updates.

use bytes::Bytes;
use plugbay_core::{
    exchange::{ServerNotification, Topic},
    level::Level,
    wire::{Head, Members},
};
use serde_json::json;

use super::harness::{Harness, call, modern, request, server};

fn log(word: &str) -> ServerNotification {
    let message = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{word}","data":1.0}}}}"#
    );
    ServerNotification {
        server: server(),
        message: Bytes::from(message),
        topic: Topic::Log(Level::parse(word)),
    }
}

fn updated(params: &str) -> ServerNotification {
    let message =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{params}}}"#);
    let message = Bytes::from(message);
    let params = Head::read(&message).expect("a notification").payload.expect("params");
    let uri = Members::find(&message, &params, "uri").expect("a URI");
    ServerNotification { server: server(), message, topic: Topic::Updated { uri, params } }
}

#[tokio::test(start_paused = true)]
async fn log_notifications_follow_the_level_of_a_legacy_host() {
    let mut harness = Harness::legacy().await;
    harness.tell(&log("debug"));
    assert_eq!(harness.hear_text().await, log("debug").message, "as it came");
    assert_eq!(
        harness.ask(request(1, "logging/setLevel", r#"{"level":"error"}"#)).await["result"],
        json!({})
    );
    assert_eq!(harness.log_level().await, Some(Level::Error));
    harness.tell(&log("warning"));
    harness.tell(&log("critical"));
    assert_eq!(harness.hear().await["params"]["level"], "critical");
    let wrong = harness.ask(request(2, "logging/setLevel", r#"{"level":"loud"}"#)).await;
    assert_eq!(wrong["error"]["code"], -32602);
    for (word, level) in [("debug", Level::Debug), ("alert", Level::Alert)] {
        harness.ask(request(3, "logging/setLevel", &format!(r#"{{"level":"{word}"}}"#))).await;
        assert_eq!(harness.log_level().await, Some(level), "more or less");
    }
    harness.close();
    assert_eq!(harness.log_level().await, None);
}

#[tokio::test(start_paused = true)]
async fn log_notifications_follow_the_level_of_a_modern_request() {
    let mut harness = Harness::new();
    harness.say(modern(1, "tools/call", r#","name":"s__echo""#)).await;
    let silent = harness.forwarded().await;
    silent.log(&log("error"));
    harness
        .say(
            modern(2, "tools/call", r#","name":"s__echo""#)
                .replace(r#""_meta":{"#, r#""_meta":{"io.modelcontextprotocol/logLevel":"warning","#),
        )
        .await;
    assert_eq!(harness.log_level().await, Some(Level::Warning), "its server is a legacy one");
    let wordy = harness.forwarded().await;
    wordy.log(&log("info"));
    wordy.log(&log("warning"));
    assert_eq!(harness.hear().await["params"]["level"], "warning");
}

#[tokio::test(start_paused = true)]
async fn resource_updates_carry_the_uri_that_the_host_knows() {
    let mut harness = Harness::with(super::resources::stocked(&[]));
    harness.open().await;
    let uri = r#"{"uri":"plugbay://s/x://1"}"#;
    assert_eq!(harness.ask(request(1, "resources/subscribe", uri)).await["result"], json!({}));
    assert_eq!(harness.item_subscribed().await, r#""x://1""#);
    harness.tell(&updated(r#"{"uri":"x://2"}"#));
    harness.tell(&updated(r#"{ "uri":"x://1" ,"n":1.0}"#));
    let expected = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{ "uri":"plugbay://s/x://1" ,"n":1.0}}"#;
    assert_eq!(harness.hear_text().await, expected);
    harness.ask(request(2, "resources/unsubscribe", uri)).await;
    harness.tell(&updated(r#"{"uri":"x://1"}"#));
    assert!(harness.ask(call(3)).await["error"].is_object(), "and nothing came before this answer");
}

#[tokio::test(start_paused = true)]
async fn resource_updates_may_be_about_a_part_of_the_resource() {
    let mut harness = Harness::with(super::resources::stocked(&[]));
    harness.open().await;
    for (id, uri) in [(1, "plugbay://s/x://1"), (2, "x://é"), (3, "x://é/a/")] {
        harness.ask(request(id, "resources/subscribe", &format!(r#"{{"uri":"{uri}"}}"#))).await;
        harness.item_subscribed().await;
    }
    for (told, heard) in [
        (r"x:\/\/1", "plugbay://s/x://1"),
        ("x://1/part", "plugbay://s/x://1/part"),
        ("x://1?n=\\\"", "plugbay://s/x://1?n=\""),
        (r"x://\u00e9", "x://é"),
        ("x://é#there", "x://é#there"),
        ("x://é/a/b", "x://é/a/b"), // once, though two are meant
    ] {
        harness.tell(&updated(&format!(r#"{{"uri":"{told}"}}"#)));
        assert_eq!(harness.hear().await["params"]["uri"], heard);
    }
    for other in ["x://12", "x://", "x://e", "y://1"] {
        harness.tell(&updated(&format!(r#"{{"uri":"{other}"}}"#)));
    }
    harness.ask(request(4, "resources/unsubscribe", r#"{"uri":"x:\/\/\u00e9"}"#)).await;
    harness.tell(&updated(r#"{"uri":"x://é"}"#));
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_subscription_needs_the_server_capability() {
    let mut harness = Harness::with(super::resources::silent());
    harness.open().await;
    let refused = harness.ask(request(1, "resources/subscribe", r#"{"uri":"x://1"}"#)).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let mut harness = Harness::with(super::resources::silent());
    let filter = r#","notifications":{"resourcesListChanged":true,"resourceSubscriptions":["x://1"]}"#;
    harness.say(modern(7, "subscriptions/listen", filter)).await;
    let granted = harness.hear().await;
    assert_eq!(granted["params"]["notifications"], json!({ "resourcesListChanged": true }));
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn notifications_of_a_subscription_carry_its_id() {
    let mut harness = Harness::with(super::resources::stocked(&[]));
    let filter = r#","notifications":{"resourceSubscriptions":["x://1","x://7"]}"#;
    harness.say(modern(7, "subscriptions/listen", filter)).await;
    let granted = harness.hear().await;
    assert_eq!(granted["params"]["notifications"], json!({ "resourceSubscriptions": ["x://1", "x://7"] }));
    let key = "io.modelcontextprotocol/subscriptionId";
    for params in [
        r#"{"uri":"x://1"}"#.to_owned(),
        r#"{"_meta":{},"uri":"x://1"}"#.to_owned(),
        format!(r#"{{"_meta":{{"{key}":"another"}},"uri":"x://1"}}"#),
    ] {
        harness.tell(&updated(&params));
        let told = harness.hear().await;
        assert_eq!((&told["params"]["_meta"][key], &told["params"]["uri"]), (&json!(7), &json!("x://1")));
    }
}
