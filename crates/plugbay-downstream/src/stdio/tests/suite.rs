//! Suite mode: a server as one tool.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    catalog::{Catalog, Change, Offer, Tool},
    era::Era,
    exposure::{Exposure, Mode},
    failure::Failure,
    name::ServerName,
    policy::{Patterns, Policy},
    surface::{Layout, Snapshot},
};
use serde_json::{Value, json};

use super::harness::{Harness, modern, request};

fn server(name: &str) -> ServerName {
    ServerName::parse(name).unwrap()
}

/// `notes` has three tools, one of them denied; `new` has not listed yet.
fn suites() -> Snapshot {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" }, "tags": { "type": "array", "items": { "type": "string" } } }, "required": ["text"] });
    let tools = [
        json!({ "name": "add", "description": "Adds a note. It is kept.", "inputSchema": schema }),
        json!({ "name": "list", "description": "Lists all notes.", "inputSchema": { "type": "object" } }),
        json!({ "name": "wipe" }),
    ];
    let tools = tools.iter().map(|tool| Tool::parse(Bytes::from(tool.to_string())).unwrap());
    let offer = Offer::new(Era::Legacy, None, Some("Keeps notes for later.".to_owned()), tools.collect());
    let catalog = Catalog::default().apply(Change::Listed(server("notes"), Arc::new(offer)));
    let policy = Policy { deny: Patterns::compile(["wipe"]).unwrap(), ..Policy::default() };
    let notes = Exposure { policy, ..Exposure::default() };
    let exposures = [(server("notes"), notes), (server("new"), Exposure::default())].into();
    let layout = Layout { mode: Some(Mode::Suite), exposures, name_limit: 64, ..Layout::default() };
    Snapshot::new(Arc::new(catalog), Arc::new(layout), true)
}

fn suite(name: &str, arguments: &Value) -> String {
    request(9, "tools/call", &json!({ "name": name, "arguments": arguments }).to_string())
}

async fn said(harness: &mut Harness, arguments: Value) -> (String, bool) {
    let answer = harness.ask(suite("notes_suite", &arguments)).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (text.to_owned(), answer["result"]["isError"] == true)
}

#[tokio::test(start_paused = true)]
async fn arguments_of_a_suite_have_a_limit_that_is_told() {
    let mut harness = Harness::with(suites());
    harness.open().await;
    let long = "y".repeat(1 << 20);
    for (argument, arguments) in [
        ("query", json!({ "action": "introspect", "query": long })),
        ("query", json!({ "action": "introspect", "args": { "query": long } })),
        ("names", json!({ "action": "introspect", "names": vec!["ad*"; 20_000] })),
        ("subtool", json!({ "action": "call", "subtool": long, "args": {} })),
    ] {
        let (text, failed) = said(&mut harness, arguments).await;
        assert!(
            text.contains(&format!("`{argument}` is too long")) && failed && text.len() < 200,
            "{text:.200}"
        );
    }
    let (text, failed) = said(&mut harness, json!({ "action": long })).await;
    assert!(text.starts_with("\"action\" must be") && failed && text.len() < 200, "{text:.200}");
}

#[tokio::test(start_paused = true)]
async fn a_suite_introspects_from_the_catalog() {
    let mut harness = Harness::with(suites());
    harness.open().await;
    assert_eq!(harness.tools().await, "new_suite notes_suite");
    let both = "add(text: string, tags?: string[]) - Adds a note. It is kept.\nlist() - Lists all notes.";
    for arguments in [json!({ "action": "introspect" }), json!({}), json!({ "action": "Introspect" })] {
        assert_eq!(said(&mut harness, arguments).await, (both.to_owned(), false));
    }
    let (one, _) = said(&mut harness, json!({ "action": "introspect", "query": "show all notes" })).await;
    assert!(one.starts_with("list()"), "{one}");
    let within = json!({ "action": "introspect", "args": { "query": "show all notes" } });
    assert_eq!(said(&mut harness, within).await.0, one);
    for arguments in [
        json!({ "action": "introspect", "names": ["add"] }),
        json!({ "action": "introspect", "subtool": "ADD" }),
        json!({ "action": "introspect", "names": "a*" }),
        json!({ "action": "introspect", "args": { "names": ["add"], "detail": true } }),
    ] {
        let (full, _) = said(&mut harness, arguments).await;
        assert!(
            full.starts_with("add - Adds a note. It is kept.\n{\"properties\"") && !full.contains("list"),
            "{full}"
        );
    }
    let (all, _) = said(&mut harness, json!({ "action": "introspect", "detail": true })).await;
    assert!(all.contains("list - Lists all notes.\n{"), "{all}");
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_suite_tool_call_is_forwarded_as_a_direct_one() {
    let mut harness = Harness::with(suites());
    harness.open().await;
    let text = "12345678901234567890123";
    for arguments in [
        format!(r#"{{"action":"call","subtool":"add","args":{{"text":"{text}"}}}}"#),
        format!(r#"{{"action":"call","subtool":"Add","args":"{{\"text\":\"{text}\"}}"}}"#),
        format!(r#"{{"subtool":"notes__add","text":"{text}"}}"#),
        format!(r#"{{"action":"call","tool":"add","arguments":{{"text":"{text}"}}}}"#),
        format!(r#"{{"tool":"add","args":{{"text":"{text}"}}}}"#),
        format!(r#"{{"args":{{"subtool":"add","args":{{"text":"{text}"}}}}}}"#),
    ] {
        let params = format!(r#"{{"name":"notes_suite","arguments":{arguments},"_meta":{{"k":1.0}}}}"#);
        harness.say(request(5, "tools/call", &params)).await;
        let forwarded = harness.forwarded().await;
        let expected = format!(r#"{{"name":"add","arguments":{{"text":"{text}"}},"_meta":{{"k":1.0}}}}"#);
        assert!(forwarded.text().ends_with(&format!("{expected}}}")), "{arguments}: {}", forwarded.text());
        forwarded.answer(r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}],"x":1.0}"#);
        assert!(harness.hear_text().await.contains(r#""mimeType":"image/png"}],"x":1.0"#));
    }
}

#[tokio::test(start_paused = true)]
async fn a_suite_tool_call_that_cannot_be_made_says_why() {
    let mut harness = Harness::with(suites());
    harness.open().await;
    for (arguments, expected) in [
        (json!({ "action": "call" }), "`subtool` is missing: the tool to call, as introspect shows it"),
        (json!({ "action": "call", "subtool": "wipe" }), "notes has no tool \"wipe\". It has:"),
        (json!({ "action": "call", "subtool": "ad" }), "notes has no tool \"ad\". It has:\nadd(text: string"),
        (json!({ "action": "call", "subtool": "add", "args": {} }), "text"),
        (json!({ "action": "call", "subtool": "add", "args": { "text": {} } }), "text"),
        (json!({ "action": "run" }), "\"action\" must be \"introspect\" or \"call\", not \"run\""),
    ] {
        let (told, failed) = said(&mut harness, arguments.clone()).await;
        assert!(told.contains(expected) && failed, "{arguments}: {told}");
    }
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_suite_waits_for_a_server_that_never_connected() {
    let mut harness = Harness::with(suites());
    harness.say(modern(1, "tools/call", r#","name":"new_suite","arguments":{"action":"introspect"}"#)).await;
    harness.hear_nothing().await;
    let offer = Arc::new(Offer::new(
        Era::Legacy,
        None,
        None,
        vec![Tool::parse(Bytes::from_static(br#"{"name":"t"}"#)).unwrap()],
    ));
    let met = suites().catalog.apply(Change::Listed(server("new"), offer));
    harness.snapshots.send_replace(Snapshot::new(Arc::new(met), Arc::clone(&suites().layout), true));
    assert_eq!(harness.hear().await["result"]["content"][0]["text"], "t()");

    let mut harness = Harness::with(suites());
    harness.open().await;
    harness.say(suite("new_suite", &json!({ "action": "call", "subtool": "t" }))).await;
    let failure = Arc::new(Failure::new("exited with code 1", Vec::new()));
    let failed = suites().catalog.apply(Change::Failed(server("new"), failure));
    harness.snapshots.send_replace(Snapshot::new(Arc::new(failed), Arc::clone(&suites().layout), true));
    let answer = harness.hear().await;
    assert_eq!(
        answer["result"]["content"][0]["text"],
        "new does not work: exited with code 1; try: run `plugbay list`, which starts it and shows all that it says"
    );
    assert_eq!(answer["result"]["isError"], true);
}
