//! Unknown methods and notifications pass through in both directions, if their recipient can be determined.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    catalog::{Catalog, Change, Item, ItemKind, Items, Offer, ServerCapabilities, Tool},
    era::Era,
    exchange::{ServerNotification, Topic},
    exposure::{Exposure, Mode},
    extension::Extensions,
    name::ServerName,
    policy::{Patterns, Policy},
    surface::{Layout, Snapshot},
};
use serde_json::json;

use super::harness::{Harness, INITIALIZED, call, modern, request, server};

/// These servers. Each has the tools `echo` and `wipe`, of which `wipe` is denied, the resource `x://1`, one
/// named after itself, the prompt `ask`, and an extension `com.example/{name}`.
fn snapshot_of(servers: &[&str]) -> Snapshot {
    let mut catalog = Catalog::default();
    let mut layout = Layout { mode: Some(Mode::All), name_limit: 64, ..Layout::default() };
    for name in servers {
        let item = |item_kind, json: String| Item::parse(Bytes::from(json), item_kind).expect("an item");
        let stock = Items {
            resources: vec![
                item(ItemKind::Resource, r#"{"uri":"x://1"}"#.to_owned()),
                item(ItemKind::Resource, format!(r#"{{"uri":"{name}:1"}}"#)),
            ],
            prompts: vec![item(ItemKind::Prompt, r#"{"name":"ask"}"#.to_owned())],
            ..Items::default()
        };
        let tools = ["echo", "wipe"]
            .map(|name| Tool::parse(Bytes::from(format!(r#"{{"name":"{name}"}}"#))).expect("a tool"));
        let features = ServerCapabilities {
            tools: true,
            resources: true,
            subscribe: true,
            prompts: true,
            ..ServerCapabilities::default()
        };
        let declared = format!(r#"{{"extensions":{{"com.example/{name}":{{}}}}}}"#);
        let offer = Offer::new(Era::Legacy, None, None, tools.to_vec())
            .with_items(features, stock)
            .extended(Extensions::read(declared.as_bytes(), &(0..declared.len())));
        let policy = Policy { deny: Patterns::compile(["wipe"]).expect("a pattern"), ..Policy::default() };
        let name = ServerName::parse(name).expect("a name");
        catalog = catalog.apply(Change::Listed(name.clone(), Arc::new(offer)));
        layout.exposures.insert(name, Exposure { policy, ..Exposure::default() });
    }
    Snapshot::new(Arc::new(catalog), Arc::new(layout), true)
}

/// A method with its params, and the server with the message that it gets; `None` if the request is refused.
type Case = (&'static str, &'static str, Option<(&'static str, &'static str)>);

const REQUESTS: &[Case] = &[
    ("x/get", r#""name":"b__echo","n":1.0"#, Some(("b", r#""name":"echo","n":1.0"#))),
    ("x/get", r#""name":"a__ask""#, Some(("a", r#""name":"ask""#))),
    ("x/get", r#""uri":"plugbay://b/x://1""#, Some(("b", r#""uri":"x://1""#))),
    ("x/get", r#""uri":"b:1""#, Some(("b", r#""uri":"b:1""#))),
    ("x/get", r#""taskId":"b__7""#, Some(("b", r#""taskId":"7""#))),
    (
        "b/get",
        r#""name":"anybody","uri":"http://elsewhere""#,
        Some(("b", r#""name":"anybody","uri":"http://elsewhere""#)),
    ),
    ("com.example/a/get", r#""n":1"#, Some(("a", r#""n":1"#))),
    ("x/get", r#""n":1"#, None),
    ("x/get", r#""name":"b__wipe""#, None),
    ("b/get", r#""name":"wipe""#, None),
    ("Tools/Call", r#""name":"b__echo""#, None),
    ("sampling/createMessage", r#""name":"b__echo""#, None),
];

#[tokio::test(start_paused = true)]
async fn an_unknown_request_is_routed_by_its_subject() {
    for era in [Era::Legacy, Era::Modern] {
        let mut harness = Harness::with(snapshot_of(&["a", "b"]));
        for (method, members, reached) in REQUESTS {
            let said = |id: u64, members: &str| match era {
                Era::Legacy => request(id, method, &format!("{{{members}}}")),
                Era::Modern => modern(id, method, &format!(",{members}")),
            };
            // The era of a task is that of its server.
            let reached = reached.filter(|_| era == Era::Legacy || !members.contains("taskId"));
            harness.say(said(7, members)).await;
            if let Some((server, own)) = reached {
                let forwarded = harness.forwarded().await;
                assert_eq!(forwarded.server(), server, "{method} {members}");
                assert_eq!(forwarded.text(), said(forwarded.ticket().0, own));
                forwarded.answer(r#"{"v":1.0}"#);
                assert!(harness.hear_text().await.contains(r#""id":7,"result":{"v":1.0"#));
            } else {
                assert_eq!(harness.hear().await["error"]["code"], -32601, "{method} {members}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_server_gets_every_unknown_request_but_denied_tools() {
    let mut harness = Harness::with(snapshot_of(&["s"]));
    for params in ["{}", r#"{"n":1.0}"#, r#"{"name":"nobody"}"#] {
        harness.say(request(1, "y/get", params)).await;
        let forwarded = harness.forwarded().await;
        assert_eq!(forwarded.text(), request(forwarded.ticket().0, "y/get", params));
        forwarded.answer("{}");
        harness.hear().await;
    }
    let refused = harness.ask(request(2, "y/get", r#"{"name":"wipe"}"#)).await;
    assert_eq!(refused["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn a_host_notification_is_routed_as_its_requests_are() {
    let mut harness = Harness::with(snapshot_of(&["a", "b"]));
    harness.open().await;
    let note =
        |method: &str, params: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
    for unknown in [
        note("notifications/x/seen", "{}"),
        note("notifications/x/seen", r#"{"name":"b__echo","Name":"a__echo"}"#),
        note("notifications/message", r#"{"name":"b__echo"}"#),
    ] {
        harness.say(unknown).await;
    }
    harness.say(note("notifications/x/seen", r#"{"n":1.0,"name":"b__echo"}"#)).await;
    let own = note("notifications/x/seen", r#"{"n":1.0,"name":"echo"}"#);
    assert_eq!(harness.notified().await, ("b".to_owned(), own));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_server_notification_goes_to_the_host_of_its_call() {
    let message = r#"{"jsonrpc":"2.0","method":"notifications/x/hello","params":{"n":1.0}}"#;
    let server_notification = ServerNotification {
        server: server(),
        message: Bytes::from_static(message.as_bytes()),
        topic: Topic::Unknown,
    };
    let mut legacy = Harness::legacy().await;
    legacy.tell(&server_notification);
    assert_eq!(legacy.hear_text().await, message);
    let mut stateless = Harness::new();
    stateless.say(modern(1, "tools/call", r#","name":"s__echo""#)).await;
    let forwarded = stateless.forwarded().await;
    stateless.tell(&server_notification);
    stateless.hear_nothing().await; // it has not asked to hear of what belongs to no request
    forwarded.log(&server_notification);
    assert_eq!(stateless.hear_text().await, message);
}

#[tokio::test(start_paused = true)]
async fn host_progress_reaches_the_server_that_sent_the_request() {
    let mut harness = Harness::new();
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{"sampling":{}}}"#;
    harness.ask(request("\"init\"", "initialize", params)).await;
    harness.say(INITIALIZED).await;
    harness.say(call(1)).await;
    let forwarded = harness.forwarded().await;
    // Two server requests with the same progress token.
    for number in [900, 901] {
        let params = r#"{"_meta":{"a":1.0,"progressToken":"\u0070t"},"messages":[]}"#;
        forwarded.ask(number, "sampling/createMessage", params).unwrap();
        let own = params.replace(r#""\u0070t""#, &number.to_string());
        assert!(harness.hear_text().await.contains(&own));
    }
    let progress = |token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progress":1.0,"progressToken":{token}}}}}"#
        )
    };
    for stray in ["1", "902", r#""pt""#] {
        harness.say(progress(stray)).await;
    }
    harness.say(progress("901")).await;
    assert_eq!(harness.notified().await, ("s".to_owned(), progress(r#""\u0070t""#)));
}

#[tokio::test(start_paused = true)]
async fn a_resource_uri_of_several_servers_is_refused_with_the_uri_of_each() {
    let mut harness = Harness::with(snapshot_of(&["a", "b"]));
    harness.open().await;
    // Earlier calls or reads do not decide the server: a hostile server could list the names of others.
    for (said, server) in [
        (request(1, "tools/call", r#"{"name":"a__echo"}"#), "a"),
        (request(1, "resources/read", r#"{"uri":"plugbay://b/x://1"}"#), "b"),
    ] {
        harness.say(&said).await;
        let forwarded = harness.forwarded().await;
        assert_eq!(forwarded.server(), server, "{said}");
        forwarded.answer("{}");
        harness.hear().await;
    }
    let uri = r#"{"uri":"x://1"}"#;
    let completion = r#"{"ref":{"type":"ref/resource","uri":"x://1"},"argument":{"name":"n","value":""}}"#;
    for said in [
        request(2, "resources/read", uri),
        request(2, "resources/subscribe", uri),
        request(2, "completion/complete", completion),
    ] {
        let error = harness.ask(&said).await["error"].clone();
        assert_eq!(error["code"], -32602, "{said}: {error}");
        assert_eq!(error["data"]["uris"], json!(["plugbay://a/x://1", "plugbay://b/x://1"]), "{said}");
    }
    harness.say(request(3, "x/get", uri)).await;
    harness.nothing_forwarded().await;
}
