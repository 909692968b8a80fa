//! Large results: outlines and handles, reading parts of results, and handles as arguments.

mod shapes;
mod tasks;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Catalog, Change, Offer, Tool},
    era::Era,
    exposure::{Exposure, Mode},
    fit::{ResultRules, Threshold},
    surface::{Layout, Snapshot},
};
use serde_json::{Value, json};

use super::harness::{Harness, INITIALIZED, MESSAGE_LIMIT, cancel, modern, request, server};

/// A server `s` with a tool that reads, and one that writes a text or a list.
fn snapshot(mode: Mode, results: ResultRules) -> Snapshot {
    snapshot_with(&[], mode, results)
}

/// The same with further tools.
fn snapshot_with(further: &[&str], mode: Mode, results: ResultRules) -> Snapshot {
    let write = json!({ "type": "object", "properties": {
        "path": { "type": "string" }, "text": { "type": "string" }, "list": { "type": "array" }, "any": {} } });
    let tools = [
        json!({ "name": "read", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } }),
        json!({ "name": "write", "inputSchema": write }),
    ];
    let further = further.iter().map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }));
    let tools: Vec<Value> = tools.into_iter().chain(further).collect();
    let tools = tools.iter().map(|tool| Tool::parse(Bytes::from(tool.to_string())).unwrap());
    let offer = Offer::new(Era::Legacy, None, None, tools.collect());
    let catalog = Catalog::default().apply(Change::Listed(server(), Arc::new(offer)));
    let exposure = Exposure { mode: Some(mode), results, ..Exposure::default() };
    let settings = plugbay_core::surface::LiveSettings { message_limit: MESSAGE_LIMIT, ..Default::default() };
    let layout = Layout {
        mode: Some(mode),
        exposures: [(server(), exposure)].into(),
        name_limit: 64,
        split: true,
        settings,
        ..Layout::default()
    };
    Snapshot::new(Arc::new(catalog), Arc::new(layout), true)
}

async fn in_mode(mode: Mode) -> Harness {
    let mut harness = Harness::with(snapshot(mode, ResultRules::default()));
    harness.open().await;
    harness
}

async fn as_host(client: &str, rules: ResultRules, mode: Mode) -> Harness {
    let mut harness = Harness::with(snapshot(mode, rules));
    let info = json!({ "protocolVersion": "2025-11-25", "clientInfo": { "name": client, "version": "1" } });
    harness.ask(request("\"init\"", "initialize", &info.to_string())).await;
    harness.say(INITIALIZED).await;
    harness
}

fn tool_call(id: u32, name: &str, arguments: &Value) -> String {
    request(id, "tools/call", &json!({ "name": name, "arguments": arguments }).to_string())
}

fn execute(id: u32, tool: &str, arguments: &Value) -> String {
    tool_call(id, "execute_tool", &json!({ "name": tool, "arguments": arguments }))
}

/// 40,000 bytes of text in lines.
fn page() -> String {
    (0..1000).fold(String::new(), |page, n| page + &format!("line {n:04} \"of\" a long and boring page\n"))
}

fn text_result(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// The handle that an outline shows.
fn handle(text: &str) -> String {
    let at = text.find("r_").unwrap_or_else(|| panic!("no handle: {text}"));
    text[at..at + 24].to_owned()
}

/// Calls `read` with `execute_tool`; the server answers with this result.
async fn called(harness: &mut Harness, result: &Value) -> Value {
    harness.say(execute(1, "s__read", &json!({}))).await;
    harness.forwarded().await.answer(result);
    harness.hear().await
}

async fn stored(harness: &mut Harness, result: &Value) -> String {
    let answer = called(harness, result).await;
    handle(text(&answer))
}

async fn told(harness: &mut Harness, tool: &str, arguments: Value) -> (String, bool) {
    let answer = harness.ask(tool_call(2, tool, &arguments)).await;
    (text(&answer).to_owned(), answer["result"]["isError"] == true)
}

#[tokio::test(start_paused = true)]
async fn a_large_result_is_answered_with_an_outline_and_read_by_its_handle() {
    let mut harness = in_mode(Mode::Search).await;
    assert_eq!(harness.tools().await, "search_tools describe_tool execute_tool execute_read_tool");
    let answer = called(&mut harness, &text_result(&page())).await;
    let (outline, length) = (text(&answer).to_owned(), answer.to_string().len());
    assert!(length < 6_000 && outline.contains("line 0000"), "{length}: {outline}");
    let handle = handle(&outline);
    let arguments = format!(r#"{{"result":"{handle}","lines":"1-80"}}"#);
    let how = format!(r#"execute_tool {{"name":"read_result","arguments":{arguments}}}"#);
    assert!(outline.contains(&how), "{outline}");

    let lines = json!({ "result": handle, "lines": "500-501" });
    let wanted = "line 0499 \"of\" a long and boring page\nline 0500 \"of\" a long and boring page";
    for (tool, arguments) in [
        ("read_result", lines.clone()),
        ("execute_tool", json!({ "name": "read_result", "arguments": lines })),
        ("execute_read_tool", json!({ "name": "read_result", "arguments": lines })),
        ("execute_tool", json!({ "name": "read_result", "result": handle, "lines": "500-501" })),
        ("execute_tool", json!({ "name": "readResult", "arguments": lines })),
    ] {
        let (part, failed) = told(&mut harness, tool, arguments).await;
        assert!(part.contains(wanted) && !part.contains("0502") && !failed, "{tool}: {part}");
    }
    let (found, _) =
        told(&mut harness, "read_result", json!({ "result": handle, "grep": "line 0777" })).await;
    assert!(found.contains("line 0777") && found.len() < 1_000, "{found}");
    let (first, _) = told(&mut harness, "read_result", json!({ "result": handle })).await;
    let (second, _) = told(&mut harness, "read_result", json!({ "result": handle, "page": 2 })).await;
    assert!(first.contains("line 0000") && second.contains("line 05") && first.len() < 20_000, "{second}");
    let (both, failed) =
        told(&mut harness, "read_result", json!({ "result": handle, "page": 2, "grep": "x" })).await;
    assert!(both.contains("one of") && failed, "{both}");
}

#[tokio::test(start_paused = true)]
async fn small_results_and_results_of_listed_tools_pass_byte_for_byte() {
    let large = format!(r#"{{ "content" : [{{"type":"text","text":"{}"}}] }}"#, "x".repeat(60_000));
    let small = r#"{ "content" : [ {"text":"y", "type":"text"} ] ,"odd":1}"#;
    let mut harness = in_mode(Mode::All).await;
    for result in [&large[..], small] {
        harness.say(tool_call(1, "s__read", &json!({}))).await;
        harness.forwarded().await.answer(result);
        assert_eq!(harness.hear_text().await, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
    }
    harness.say(execute(1, "s__read", &json!({}))).await;
    harness.forwarded().await.answer(small);
    assert_eq!(harness.hear_text().await, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{small}}}"#));
    assert_eq!(format!("{:?}", harness.results), "Results(0, Totals { bytes: 0, memory: 0, files: 0 })");
}

#[tokio::test(start_paused = true)]
async fn hosts_that_run_code_and_gateways_get_results_whole() {
    let large = text_result(&page());
    for (client, outlined) in [("codex-mcp-client", false), ("plugbay", false), ("claude-code", true)] {
        let mut harness = as_host(client, ResultRules::default(), Mode::Search).await;
        let answer = called(&mut harness, &large).await;
        assert_eq!(answer["result"] != large, outlined, "{client}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_user_decides_which_results_stay_whole() {
    let large = text_result(&page());
    let whole = ResultRules { threshold: Some(Threshold::Whole), ..ResultRules::default() };
    let higher = ResultRules { threshold: Some(Threshold::Above(100_000)), ..ResultRules::default() };
    for rules in [whole, higher] {
        let mut harness = as_host("claude-code", rules, Mode::Search).await;
        assert_eq!(called(&mut harness, &large).await["result"], large);
    }
    let listed = ResultRules { listed: true, ..ResultRules::default() };
    let mut harness = as_host("claude-code", listed, Mode::All).await;
    assert_eq!(harness.tools().await, "read_result s__read s__write");
    harness.say(tool_call(1, "s__read", &json!({}))).await;
    harness.forwarded().await.answer(&large);
    let answer = harness.hear().await;
    let outline = text(&answer);
    let how = format!(r#"read_result {{"result":"{}","lines":"1-80"}}"#, handle(outline));
    assert!(outline.contains(&how), "{outline}");
}

#[tokio::test(start_paused = true)]
async fn a_suite_reads_parts_of_its_results() {
    let mut harness = in_mode(Mode::Suite).await;
    harness.say(tool_call(1, "s_suite", &json!({ "action": "call", "subtool": "read", "args": {} }))).await;
    harness.forwarded().await.answer(text_result(&page()));
    let answer = harness.hear().await;
    let outline = text(&answer).to_owned();
    let handle = handle(&outline);
    let args = format!(r#"{{"result":"{handle}","lines":"1-80"}}"#);
    let how = format!(r#"s_suite {{"action":"call","subtool":"read_result","args":{args}}}"#);
    assert!(outline.contains(&how), "{outline}");
    let args = json!({ "result": handle, "lines": "3" });
    let read = json!({ "action": "call", "subtool": "read_result", "args": args });
    let (part, failed) = told(&mut harness, "s_suite", read).await;
    assert!(part.contains("line 0002") && !failed, "{part}");
    let write = json!({ "action": "call", "subtool": "write", "args": { "text": { "$result": handle } } });
    harness.say(tool_call(2, "s_suite", &write)).await;
    assert_eq!(sent(&harness.forwarded().await.text()), json!({ "text": page() }));
}

#[tokio::test(start_paused = true)]
async fn an_unknown_handle_is_told_and_says_how_to_go_on() {
    let mut harness = in_mode(Mode::Search).await;
    let unknown = "r_AAECAwQFBgcICQoLDA0ODw";
    let (why, failed) = told(&mut harness, "read_result", json!({ "result": unknown })).await;
    assert!(failed && why.contains(unknown) && why.contains("30 minutes") && why.contains("again"), "{why}");
    for (arguments, word) in [
        (json!({}), "result"),
        (json!({ "result": "r_x" }), "a handle looks like"),
        (json!({ "result": 5 }), "a handle looks like"),
    ] {
        let (why, failed) = told(&mut harness, "read_result", arguments).await;
        assert!(failed && why.contains(word), "{why}");
    }
    let handle = stored(&mut harness, &text_result(&page())).await;
    tokio::time::sleep(Duration::from_secs(31 * 60)).await;
    let (why, failed) = told(&mut harness, "read_result", json!({ "result": handle })).await;
    assert!(failed && why.contains("there is no result"), "{why}");
}

#[tokio::test]
async fn a_cancelled_call_stores_nothing() {
    let mut harness = in_mode(Mode::Search).await;
    let busy = harness.workers.occupy().await;
    harness.say(execute(1, "s__read", &json!({}))).await;
    harness.forwarded().await.answer(text_result(&page()));
    harness.say(cancel(1)).await;
    assert_eq!(harness.ask(request(3, "ping", "{}")).await["id"], 3);
    drop(busy);
    // Work of a later call is done after that of the cancelled call.
    let kept = stored(&mut harness, &text_result(&page())).await;
    assert!(format!("{:?}", harness.results).starts_with("Results(1,"), "{:?}", harness.results);
    let (_, failed) = told(&mut harness, "read_result", json!({ "result": kept })).await;
    assert!(!failed);
}

#[tokio::test(start_paused = true)]
async fn results_are_forgotten_with_their_session() {
    let mut harness = in_mode(Mode::Search).await;
    stored(&mut harness, &text_result(&page())).await;
    assert!(format!("{:?}", harness.results).starts_with("Results(1,"));
    harness.leave().await;
    assert!(format!("{:?}", harness.results).starts_with("Results(0,"), "{:?}", harness.results);
}

#[tokio::test(start_paused = true)]
async fn a_stored_result_can_be_read_as_a_resource() {
    let mut harness = in_mode(Mode::Search).await;
    let handle = stored(&mut harness, &text_result(&page())).await;
    let uri = format!("plugbay://result/{handle}");
    let answer = harness.ask(request(3, "resources/read", &json!({ "uri": uri }).to_string())).await;
    let wanted = json!([{ "uri": uri, "mimeType": "text/plain", "text": page() }]);
    assert_eq!(answer["result"]["contents"], wanted);
    let unknown = json!({ "uri": "plugbay://result/r_AAECAwQFBgcICQoLDA0ODw" }).to_string();
    assert_eq!(harness.ask(request(4, "resources/read", &unknown)).await["error"]["code"], -32002);
}

#[tokio::test(start_paused = true)]
async fn a_modern_host_gets_an_outline_that_is_complete() {
    let mut harness = Harness::with(snapshot(Mode::Search, ResultRules::default()));
    let params = json!({ "name": "execute_tool", "arguments": { "name": "s__read", "arguments": {} } });
    let members = params.to_string();
    let members = format!(",{}", &members[1..members.len() - 1]);
    harness.say(modern(1, "tools/call", &members)).await;
    harness.forwarded().await.answer(text_result(&page()));
    let answer = harness.hear().await;
    assert_eq!(answer["result"]["resultType"], "complete");
    let read =
        json!({ "name": "read_result", "arguments": { "result": handle(text(&answer)), "lines": "2" } });
    let members = read.to_string();
    let members = format!(",{}", &members[1..members.len() - 1]);
    let answer = harness.ask(modern(2, "tools/call", &members)).await;
    assert!(text(&answer).contains("line 0001"), "{answer}");
}

// --- handles as arguments

/// The arguments that a server gets.
fn sent(message: &str) -> Value {
    let message: Value = serde_json::from_str(message).unwrap();
    message["params"]["arguments"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_handle_as_an_argument_is_replaced_by_the_text_byte_for_byte() {
    let mut harness = in_mode(Mode::Search).await;
    let handle = stored(&mut harness, &text_result(&page())).await;
    let reference = json!({ "$result": handle });
    harness.say(execute(3, "s__write", &json!({ "path": "a", "text": reference }))).await;
    let forwarded = harness.forwarded().await;
    assert_eq!(sent(&forwarded.text()), json!({ "path": "a", "text": page() }));
    forwarded.answer(text_result("written"));
    assert_eq!(text(&harness.hear().await), "written");

    let odd = json!({ "any": [{ "$result": "no handle" }, { "$result": handle, "more": 1 }, { "deep": [reference] }] });
    harness.say(execute(4, "s__write", &odd)).await;
    let got = sent(&harness.forwarded().await.text());
    assert_eq!(got["any"][0], odd["any"][0]);
    assert_eq!(got["any"][1], odd["any"][1]);
    assert_eq!(got["any"][2], json!({ "deep": [page()] }));
}

#[tokio::test(start_paused = true)]
async fn a_reference_within_arguments_in_a_string_is_found() {
    let mut harness = in_mode(Mode::Search).await;
    let handle = stored(&mut harness, &text_result(&page())).await;
    let arguments = json!({ "path": "a", "text": { "$result": handle } }).to_string();
    harness.say(execute(3, "s__write", &json!(arguments))).await;
    assert_eq!(sent(&harness.forwarded().await.text()), json!({ "path": "a", "text": page() }));
}

#[tokio::test(start_paused = true)]
async fn a_json_text_becomes_a_list_where_the_schema_wants_one() {
    let mut harness = in_mode(Mode::Search).await;
    let rows: Vec<Value> = (0..2000).map(|n| json!({ "id": n, "text": "row" })).collect();
    let list = json!(rows).to_string();
    let handle = stored(&mut harness, &text_result(&list)).await;
    let reference = json!({ "$result": handle });
    for (id, key, wanted) in [(3, "list", json!(rows)), (4, "text", json!(list)), (5, "any", json!(list))] {
        harness.say(execute(id, "s__write", &json!({ key: reference }))).await;
        assert_eq!(sent(&harness.forwarded().await.text()), json!({ key: wanted }), "{key}");
    }
    let structured = json!({ "content": [], "structuredContent": { "rows": rows } });
    let handle = stored(&mut harness, &structured).await;
    harness.say(execute(6, "s__write", &json!({ "any": { "$result": handle } }))).await;
    assert_eq!(sent(&harness.forwarded().await.text()), json!({ "any": { "rows": rows } }));
    harness.say(execute(7, "s__write", &json!({ "list": { "$result": handle, "jq": ".rows" } }))).await;
    assert_eq!(sent(&harness.forwarded().await.text()), json!({ "list": rows }));
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_cannot_be_resolved_says_where_and_why() {
    let mut harness = in_mode(Mode::Search).await;
    let rows = json!((0..5000).collect::<Vec<_>>());
    let handle = stored(&mut harness, &text_result(&rows.to_string())).await;
    let unknown = "r_AAECAwQFBgcICQoLDA0ODw";
    for (reference, words) in [
        (json!({ "$result": unknown }), ["arguments.any[1]", "there is no result r_AAE"]),
        (
            json!({ "$result": handle, "jq": ".[]" }),
            ["arguments.any[1]", "exactly one value here; it gives 5000"],
        ),
        (json!({ "$result": handle, "jq": "nonsense" }), ["arguments.any[1]", "is no filter"]),
    ] {
        harness.say(execute(3, "s__write", &json!({ "any": [1, reference] }))).await;
        let answer = harness.hear().await;
        let told = text(&answer);
        assert!(words.iter().all(|word| told.contains(word)), "{told}");
        assert_eq!(answer["result"]["isError"], true);
    }
    let many = json!({ "any": vec![json!({ "$result": handle }); 33] });
    let (told, failed) =
        told(&mut harness, "execute_tool", json!({ "name": "s__write", "arguments": many })).await;
    assert!(failed && told.contains("33 results; the limit of one call is 32"), "{told}");
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_gets_too_long_by_its_references_is_refused() {
    let mut harness = in_mode(Mode::Search).await;
    let handle = stored(&mut harness, &text_result(&page())).await;
    let thrice = json!({ "any": vec![json!({ "$result": handle }); 3] });
    let (told, failed) =
        told(&mut harness, "execute_tool", json!({ "name": "s__write", "arguments": thrice })).await;
    assert!(failed && told.contains("the limit of a message is 100000"), "{told}");
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn references_beyond_the_limit_of_a_message_are_not_read() {
    let mut harness = in_mode(Mode::Search).await;
    let handle = stored(&mut harness, &text_result(&page())).await;
    let mut any = vec![json!({ "$result": handle }); 3];
    any.push(json!({ "$result": handle, "jq": "endless" }));
    let call = json!({ "name": "s__write", "arguments": { "any": any } });
    let (told, failed) = told(&mut harness, "execute_tool", call).await;
    assert!(failed && told.contains("the limit of a message is 100000"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn jq_reads_the_json_that_the_outline_shows() {
    let mut harness = in_mode(Mode::Search).await;
    let rows: Vec<Value> = (0..2000).map(|n| json!({ "number": n, "title": "a ship" })).collect();
    let rows = serde_json::to_string(&rows).unwrap();
    let result = json!({ "content": [
        { "type": "text", "text": "Found 2000 ships:" }, { "type": "text", "text": rows }] });
    let answer = called(&mut harness, &result).await;
    let outline = answer["result"]["content"][1]["text"].as_str().unwrap();
    assert!(outline.contains(".[]: 2,000 objects"), "{outline}");
    let call = json!({ "name": "s__write", "arguments": {
        "any": { "$result": handle(outline), "jq": "." } } });
    harness.say(tool_call(3, "execute_tool", &call)).await;
    let forwarded = harness.forwarded().await;
    assert_eq!(sent(&forwarded.text())["any"].as_array().map(Vec::len), Some(2000));
    let answer =
        harness.ask(tool_call(4, "read_result", &json!({ "result": handle(outline), "jq": ".[]" }))).await;
    assert!(text(&answer).contains("JSON lines") && text(&answer).contains(".title"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_reference_takes_for_ever_can_be_cancelled() {
    let mut harness = in_mode(Mode::Search).await;
    let handle = stored(&mut harness, &text_result(&page())).await;
    harness.say(execute(3, "s__write", &json!({ "any": { "$result": handle, "jq": "endless" } }))).await;
    assert_eq!(harness.ask(request(4, "ping", "{}")).await["id"], 4);
    harness.say(cancel(3)).await;
    harness.hear_nothing().await;
    harness.nothing_forwarded().await;
}

// --- jq beside a call

fn filtered(id: u32, filter: &str) -> String {
    tool_call(id, "execute_tool", &json!({ "name": "s__read", "arguments": {}, "jq": filter }))
}

#[tokio::test(start_paused = true)]
async fn jq_beside_a_call_takes_a_part_of_the_result() {
    let mut harness = in_mode(Mode::Search).await;
    let result = json!({ "content": [{ "type": "text", "text": "x".repeat(50_000) }],
        "structuredContent": { "name": "n", "rows": [1, 2] }, "_meta": { "kept": true } });
    harness.say(filtered(1, ".rows")).await;
    harness.forwarded().await.answer(&result);
    let answer = harness.hear().await;
    assert_eq!(text(&answer).trim(), "[1,2]");
    assert_eq!(answer["result"]["_meta"]["kept"], true);
    assert_eq!(answer["result"].get("structuredContent"), None);
    harness.say(filtered(2, ".rows")).await;
    harness.forwarded().await.answer(r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#);
    assert_eq!(
        harness.hear_text().await,
        r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}"#
    );
}

#[tokio::test(start_paused = true)]
async fn a_wrong_filter_beside_a_call_loses_nothing() {
    let mut harness = in_mode(Mode::Search).await;
    harness.say(filtered(1, "nonsense")).await;
    harness
        .forwarded()
        .await
        .answer(json!({ "content": [], "structuredContent": { "name": "n", "rows": [1] } }));
    let answer = harness.hear().await;
    let told_text = text(&answer).to_owned();
    assert_eq!(answer["result"]["isError"], true);
    assert!(told_text.contains("s__read was called") && told_text.contains("is no filter"), "{told_text}");
    let (part, failed) =
        told(&mut harness, "read_result", json!({ "result": handle(&told_text), "jq": ".rows" })).await;
    assert_eq!((part.trim(), failed), ("[1]", false));
}

#[tokio::test(start_paused = true)]
async fn values_of_a_filter_that_are_large_are_a_result_of_their_own() {
    let mut harness = in_mode(Mode::Search).await;
    let rows: Vec<String> = (0..3000).map(|n| format!("row number {n}")).collect();
    harness.say(filtered(1, ".rows")).await;
    harness.forwarded().await.answer(json!({ "content": [], "structuredContent": { "rows": rows } }));
    let answer = harness.hear().await;
    let outline = text(&answer).to_owned();
    assert!(outline.len() < 8_000, "{outline}");
    let whole = json!({ "result": handle(&outline), "jq": "." });
    let (again, failed) = told(&mut harness, "read_result", whole).await;
    assert!(
        again.contains("row number 0") && again.contains("r_") && again.len() < 20_000 && !failed,
        "{again}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_suite_whose_server_has_a_tool_read_result_reads_by_the_full_name() {
    let snapshot = snapshot_with(&["read_result"], Mode::Suite, ResultRules::default());
    let mut harness = Harness::with(snapshot);
    harness.open().await;
    let call = |subtool: &str, args: Value| json!({ "action": "call", "subtool": subtool, "args": args });
    harness.say(tool_call(1, "s_suite", &call("read", json!({})))).await;
    harness.forwarded().await.answer(text_result(&page()));
    let answer = harness.hear().await;
    let outline = text(&answer).to_owned();
    assert!(outline.contains(r#""subtool":"plugbay__read_result""#), "{outline}");
    let args = json!({ "result": handle(&outline), "lines": "3" });
    let (part, failed) = told(&mut harness, "s_suite", call("plugbay__read_result", args.clone())).await;
    assert!(part.contains("line 0002") && !failed, "{part}");
    harness.say(tool_call(3, "s_suite", &call("read_result", args.clone()))).await;
    let forwarded = harness.forwarded().await;
    assert_eq!(sent(&forwarded.text()), args, "the server has its own");
    forwarded.answer(text_result("its own"));
    assert_eq!(text(&harness.hear().await), "its own");
}
