//! The gateway as a protocol peer: handshakes of both eras, errors, and a clean end.

use plugbay_testkit::{Host, Script, Workspace, wait_until_gone};
use serde_json::{Value, json};

use crate::{LIST_CHANGED, gateway, open};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn fresh(workspace: &Workspace) -> Host {
    workspace.serve_with(&gateway(), &[("s", Script::friendly())])
}

#[test]
fn each_legacy_version_is_spoken() {
    let workspace = Workspace::new();
    for version in LEGACY {
        let host = fresh(&workspace);
        let result = host.initialize_as(version).result_value();
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
        assert!(result["serverInfo"]["name"].is_string() && result["serverInfo"]["version"].is_string());
        host.await_tools(&["s__echo"]);
        host.call("s__echo", "{}");
        host.finish();
    }
}

#[test]
fn an_unknown_protocol_version_gets_a_supported_one() {
    let workspace = Workspace::new();
    for version in ["1999-01-01", "2099-01-01", "", "latest"] {
        let host = fresh(&workspace);
        let result = host.initialize_as(version).result_value();
        assert!(LEGACY.contains(&result["protocolVersion"].as_str().unwrap()), "{result}");
        host.finish();
    }
}

#[test]
fn ping_is_answered() {
    let workspace = Workspace::new();
    let host = fresh(&workspace);
    host.initialize();
    let id = host.request("ping", "{}");
    assert_eq!(host.expect_response(id).result_value(), json!({}));
    host.send_raw(r#"{"jsonrpc":"2.0","id":"no params","method":"ping"}"#);
    assert!(!host.expect_response(r#""no params""#).is_error());
    host.finish();
}

#[test]
fn an_unknown_method_is_refused() {
    let workspace = Workspace::new();
    let host = fresh(&workspace);
    host.initialize();
    let id = host.request("no/such", "{}");
    assert_eq!(host.expect_response(id).error_code(), -32601);
    host.notify("notifications/no/such", "{}");
    host.barrier();
    host.finish();
}

#[test]
fn a_malformed_message_is_refused_and_the_connection_goes_on() {
    let workspace = Workspace::new();
    let host = fresh(&workspace);
    host.initialize();
    for bad in ["{", "not json", r#"{"jsonrpc":"2.0","id":1,"method":"#, "\u{0}", "[", r#"{"a":1}}"#] {
        host.send_raw(bad);
        let answer = host.expect(&format!("an answer to {bad:?}"), |m| {
            m.is_error() && m.id().is_none_or(|id| id == "null")
        });
        assert_eq!(answer.error_code(), -32700, "{bad}");
    }
    host.send_bytes(b"\xff\xfe\n");
    host.expect("an answer to bytes that are no text", |m| {
        m.is_error() && m.id().is_none_or(|id| id == "null")
    });
    for invalid in ["{}", "1", r#""text""#, "null", r#"{"jsonrpc":"2.0","method":7}"#] {
        host.send_raw(invalid);
        let answer = host.expect(&format!("an answer to {invalid:?}"), |m| {
            m.is_error() && m.id().is_none_or(|id| id == "null")
        });
        assert!([-32600, -32700].contains(&answer.error_code()), "{answer:?}");
    }
    host.send_raw("");
    host.send_raw("   ");
    host.barrier();
    host.finish();
}

#[test]
fn a_batch_is_answered_or_refused_but_never_swallowed() {
    let workspace = Workspace::new();
    let host = fresh(&workspace);
    host.initialize_as("2025-03-26");
    host.send_raw(r#"[{"jsonrpc":"2.0","id":"b1","method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"b2","method":"no/such"}]"#);
    let first = host.expect("an answer to the batch", |m| {
        m.text().contains(r#""b1""#) || m.text().contains(r#""b2""#) || m.id() == Some("null")
    });
    let mut answers = first.members_of_batch();
    if !(answers.len() == 1 && answers[0].is_error() && answers[0].id() == Some("null")) {
        while answers.len() < 2 {
            answers.push(host.expect("the rest of the batch", |m| {
                m.is_response() && m.id().is_some_and(|id| id.starts_with("\"b"))
            }));
        }
        let ok = answers.iter().find(|m| m.id() == Some(r#""b1""#)).expect("b1");
        let bad = answers.iter().find(|m| m.id() == Some(r#""b2""#)).expect("b2");
        assert!(!ok.is_error() && bad.error_code() == -32601);
    }
    host.send_raw("[]");
    let empty =
        host.expect("an answer to an empty batch", |m| m.is_error() && m.id().is_none_or(|id| id == "null"));
    assert!([-32600, -32700].contains(&empty.error_code()));
    host.barrier();
    host.finish();
}

#[test]
fn envelopes_with_doubled_keys_are_refused() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", Script::friendly())], &["s__echo"]);
    host.call("s__echo", "{}");
    let calls = workspace.count_log("s", r#""tools/call""#);
    for line in [
        r#"{"jsonrpc":"2.0","id":501,"method":"tools/list","method":"tools/call","params":{"name":"s__echo"}}"#,
        r#"{"jsonrpc":"2.0","id":502,"id":503,"method":"tools/call","params":{"name":"s__echo"}}"#,
        r#"{"jsonrpc":"2.0","id":504,"method":"tools/call","params":{"name":"s__pid"},"params":{"name":"s__echo"}}"#,
    ] {
        host.send_raw(line);
        let answer = host.expect(line, plugbay_testkit::RawMessage::is_response);
        assert!(answer.is_error(), "{line} → {answer:?}");
    }
    host.barrier();
    assert_eq!(workspace.count_log("s", r#""tools/call""#), calls);
    host.finish();
}

#[test]
fn discovery_tells_versions_and_capabilities() {
    let workspace = Workspace::new();
    let host = fresh(&workspace);
    let result = host.discover().result_value();
    assert!(result["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{result}");
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    check_cache_hints(&result);
    host.finish();
}

#[test]
fn a_modern_tool_list_has_its_cache_hints() {
    let workspace = Workspace::new();
    let host = fresh(&workspace);
    host.speak_modern();
    host.await_tools(&["s__echo"]);
    let id = host.request("tools/list", "{}");
    let result = host.expect_response(id).result_value();
    assert_eq!(result["resultType"], "complete");
    check_cache_hints(&result);
    host.finish();
}

#[track_caller]
fn check_cache_hints(result: &Value) {
    assert!(result["ttlMs"].is_u64(), "{result}");
    assert!(["public", "private"].contains(&result["cacheScope"].as_str().unwrap_or_default()), "{result}");
}

#[test]
fn modern_requests_without_their_metadata_are_refused() {
    let workspace = Workspace::new();
    let host = fresh(&workspace);
    host.discover();
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let send = |id: u64, method: &str, params: &str| {
        host.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        host.expect_response(id)
    };
    assert_eq!(send(700, "server/discover", "{}").error_code(), -32602);
    assert_eq!(send(701, "tools/list", &format!(r#"{{"_meta":{{{version}}}}}"#)).error_code(), -32602);
    let call = format!(r#"{{"name":"s__echo","arguments":{{}},"_meta":{{{version}}}}}"#);
    assert_eq!(send(702, "tools/call", &call).error_code(), -32602);
    host.barrier();
    host.finish();
}

#[test]
fn an_unsupported_modern_protocol_version_gets_the_supported_ones() {
    let workspace = Workspace::new();
    let host = fresh(&workspace);
    let meta = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01","io.modelcontextprotocol/clientCapabilities":{}}}"#;
    for (id, method) in [(801, "server/discover"), (802, "tools/list")] {
        host.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{meta}}}"#));
        let answer = host.expect_response(id);
        assert_eq!(answer.error_code(), -32022);
        let data = &answer.value()["error"]["data"];
        assert!(data["supported"].as_array().unwrap().contains(&json!("2026-07-28")), "{data}");
        assert_eq!(data["requested"], "1900-01-01");
    }
    host.discover();
    host.finish();
}

#[test]
fn subscriptions_are_acknowledged_served_and_cancelled() {
    let workspace = Workspace::new();
    let script = Script::friendly()
        .tool("one", r#"{"change_tools":["one","two","three"]}"#)
        .tool("two", r#"{"change_tools":["one","two","three","four"]}"#);
    let host = workspace.serve_with(&gateway(), &[("s", script)]);
    host.discover();
    host.await_tools(&["s__one"]);
    for id in [r#""tools-\u00e9""#, "12345678901234567890"] {
        host.request_as(id, "subscriptions/listen", r#"{"notifications":{"toolsListChanged":true}}"#);
    }
    host.request_as(r#""nothing""#, "subscriptions/listen", r#"{"notifications":{}}"#);
    for _ in 0..3 {
        let acknowledged = host.expect_notification("notifications/subscriptions/acknowledged");
        let granted = &acknowledged.params_value()["notifications"]["toolsListChanged"];
        let nothing = acknowledged.text().contains(r#""nothing""#);
        assert_eq!(granted == &json!(true), !nothing, "{acknowledged:?}");
    }
    host.call("s__one", "{}");
    for _ in 0..2 {
        let changed = host.expect_notification(LIST_CHANGED);
        let text = changed.text();
        assert!(
            text.contains(r#"subscriptionId":"tools-\u00e9""#)
                || text.contains(r#"subscriptionId":12345678901234567890"#),
            "{text}"
        );
    }
    host.await_tools(&["s__three"]);
    host.cancel("12345678901234567890");
    host.call("s__two", "{}");
    assert!(host.expect_notification(LIST_CHANGED).text().contains(r#""tools-\u00e9""#));
    host.await_tools(&["s__four"]);
    let ended = host.finish();
    let changes = ended.messages.iter().filter(|m| m.method().as_deref() == Some(LIST_CHANGED));
    assert_eq!(changes.count(), 3);
}

#[test]
fn the_end_of_input_ends_the_gateway_and_its_servers() {
    let workspace = Workspace::new();
    let script = Script::friendly().tool("hang", r#"{"hang":true}"#);
    let host = open(&workspace, &[("a", script.clone()), ("b", script)], &["a__hang", "b__hang"]);
    host.start_call("a__hang", "{}");
    workspace.await_log("a", r#""hang""#, 1);
    let mut processes = host.descendants();
    processes.extend(workspace.processes());
    assert!(processes.len() >= 2, "{processes:?}");
    host.finish();
    wait_until_gone(&processes);
}
