//! The opening: legacy hosts, modern hosts, and hosts that mix the two.

use plugbay_core::{
    era::{CAPABILITIES_KEY, MODERN_VERSION, SERVER_INFO_KEY, VERSION_KEY},
    wire::Framing,
};
use serde_json::{Value, json};

use super::harness::{Harness, INITIALIZE, INITIALIZED, list, modern, request};

/// Sends each line to one host; the value at this pointer in each answer must be the given one.
async fn check(dialogue: &[(&str, &str, Value)]) {
    let mut harness = Harness::new();
    for (line, pointer, expected) in dialogue {
        let answer = harness.ask(line).await;
        assert_eq!(answer.pointer(pointer), Some(expected), "{line} → {answer}");
    }
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn initialize_negotiates_the_protocol_version() {
    let versions = [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        (MODERN_VERSION, "2025-11-25"),
    ];
    for (asked, given) in versions {
        let params = json!({ "protocolVersion": asked, "capabilities": {}, "x": [1] }).to_string();
        let line = request(1, "initialize", &params);
        check(&[(&line, "/result/protocolVersion", given.into()), (&line, "/id", 1.into())]).await;
    }
    check(&[
        (INITIALIZE, "/result/capabilities", json!({ "tools": { "listChanged": true } })),
        (INITIALIZE, "/result/serverInfo/name", "plugbay".into()),
        (&request(2, "ping", "{}"), "/result", json!({})),
        (r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#, "/result", json!({})),
        (&list(4), "/result", json!({ "tools": [{ "name": "s__echo" }] })),
        (&request(5, "initialize", "{}"), "/error/code", (-32602).into()),
        (&request(6, "roots/list", "{}"), "/error/code", (-32601).into()),
        (&request(7, "server/discover", "{}"), "/error/code", (-32602).into()),
        (&request(8, "tools/list", r#"{"cursor":"p2"}"#), "/error/code", (-32602).into()),
        (&request(9, "tools/list", r#"{"cursor":null}"#), "/id", 9.into()),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_modern_host_needs_no_initialize_but_its_meta() {
    let meta = |fields: &Value| request(1, "tools/list", &json!({ "_meta": fields }).to_string());
    let info = format!("/result/_meta/{}", SERVER_INFO_KEY.replace('/', "~1"));
    check(&[
        (&modern(1, "tools/list", ""), "/result/resultType", "complete".into()),
        (&modern(2, "tools/list", ""), "/result/tools/0/name", "s__echo".into()),
        (&modern(3, "tools/list", ""), &format!("{info}/name"), "plugbay".into()),
        (&modern(4, "server/discover", ""), "/result/supportedVersions/0", MODERN_VERSION.into()),
        (&modern(5, "server/discover", ""), "/result/resultType", "complete".into()),
        (&modern(6, "ping", ""), "/error/code", (-32601).into()),
        (&modern(7, "tools/call", ""), "/error/code", (-32602).into()),
        (&meta(&json!({ VERSION_KEY: "2030-01-01" })), "/error/code", (-32022).into()),
        (&meta(&json!({ VERSION_KEY: "2030-01-01" })), "/error/data/requested", "2030-01-01".into()),
        (&meta(&json!({ VERSION_KEY: 7, CAPABILITIES_KEY: {} })), "/error/code", (-32602).into()),
        (&meta(&json!({ VERSION_KEY: MODERN_VERSION })), "/error/code", (-32602).into()),
        (
            &meta(&json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: [] })),
            "/error/code",
            (-32602).into(),
        ),
        (&list(8), "/error/code", (-32602).into()),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_host_may_send_initialize_after_modern_requests() {
    check(&[
        (&modern(1, "server/discover", ""), "/result/resultType", "complete".into()),
        (&list(2), "/error/code", (-32602).into()),
        (INITIALIZE, "/result/protocolVersion", "2025-11-25".into()),
        (&list(3), "/result/tools/0/name", "s__echo".into()),
        (&modern(4, "tools/list", ""), "/result/resultType", "complete".into()),
        (&list(5), "/result", json!({ "tools": [{ "name": "s__echo" }] })),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_frames_with_content_length_is_answered_alike() {
    let mut harness = Harness::new();
    for (line, id) in [(INITIALIZE.to_owned(), json!("init")), (list(7), json!(7))] {
        harness.write(format!("Content-Length: {}\r\n\r\n{line}", line.len()).as_bytes()).await;
        assert_eq!(harness.hear().await["id"], id);
        assert_eq!(harness.framing(), Some(Framing::ContentLength));
    }
    harness.say(INITIALIZED).await; // in another framing, and yet understood
    harness.say(list(8)).await;
    assert_eq!(harness.hear().await["id"], 8);
    assert_eq!(harness.framing(), Some(Framing::ContentLength));
}
