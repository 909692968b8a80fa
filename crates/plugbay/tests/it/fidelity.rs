//! What passes is not changed: results, errors, arguments, definitions and ids, byte for byte.

use plugbay_testkit::{Script, Workspace};

use crate::{gateway, open};

pub(crate) const RESULTS: &[&str] = &[
    "{}",
    r#"{"content":[]}"#,
    r#"{"content":[{"type":"text","text":"plain"}]}"#,
    r#"{"content":[{"type":"text","text":"failed"}],"isError":true}"#,
    // Unknown content types and fields, metadata.
    r#"{"content":[{"type":"hologram","angle":1.0,"of":[null,true]}],"later":{"a":[1,2]}}"#,
    r#"{"_meta":{"com.example/trace":"x","progressToken":5},"content":[]}"#,
    r#"{"task":{"taskId":"1","ttl":null}}"#,
    r#"{"resultType":"complete","content":[],"ttlMs":5}"#,
    // Numbers that a float or an i64 would change.
    r#"{"content":[],"structuredContent":{"long":123456789012345678901234567890,"one":1.0,"int":1}}"#,
    r#"{"content":[],"structuredContent":{"huge":1e400,"tiny":1E-400,"zero":-0,"exp":1.50e+10}}"#,
    // Order, doubles and white space.
    r#"{"z":1,"a":2,"content":[],"m":3}"#,
    r#"{"content":[],"twice":1,"twice":2}"#,
    r#"{ "content" : [ ] ,   "isError" : false }"#,
    // Escapes, written out or not, and half a surrogate pair.
    r#"{"content":[{"type":"text","text":"\u00e9\u4e2d\ud83d\ude00 é中😀 \/ \b\f\t\u0000"}]}"#,
    r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
    r#"{"\u0063ontent":[],"\"":1,"":2}"#,
    // A payload that looks like an envelope.
    r#"{"content":[],"id":"inner","method":"tools/list","jsonrpc":"1.0","result":{"id":7},"error":null}"#,
    r#"{"content":[{"type":"text","text":"\"id\":1,\"result\":{}}"}]}"#,
    r#"{"content":[{"type":"image","data":"AAAA","mimeType":"image/png","annotations":{"priority":0.10}}]}"#,
    // Nested, well within the limit.
    r#"{"content":[],"d":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[{"x":[]}]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}"#,
];

const ERRORS: &[&str] = &[
    r#"{"code":-32000,"message":"no","data":{"n":123456789012345678901234567890,"f":1.0}}"#,
    r#"{"message":"order","code":-1}"#,
    r#"{"code":-32602,"message":"Unknown tool","data":null}"#,
    r#"{"code":99999999999,"message":"é\u00e9","extra":{"z":1,"a":2}}"#,
];

const IDS: &[&str] = &[
    "0",
    "-1",
    "9007199254740993",
    "18446744073709551616",
    "1234567890123456789012345678901234567890",
    r#""string""#,
    r#""""#,
    r#""with \" and \\ escapes""#,
    r#""\u00e9 is é, 中, 😀""#,
    r#""0""#,
];

/// A server whose tool `t0`, `t1`… answers with the corpus' entries.
fn corpus(key: &str, texts: &[&str]) -> Script {
    let add = |script: Script, (n, text): (usize, &&str)| {
        script.tool(&format!("t{n}"), format!(r#"{{"{key}":{text}}}"#))
    };
    texts.iter().enumerate().fold(Script::new(), add)
}

#[test]
fn results_pass_unchanged() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", corpus("result", RESULTS))], &["s__t0"]);
    for (n, sent) in RESULTS.iter().enumerate() {
        assert_eq!(host.call(&format!("s__t{n}"), "{}").result(), *sent);
    }
    host.finish();
}

#[test]
fn errors_pass_unchanged() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", corpus("error", ERRORS))], &["s__t0"]);
    for (n, sent) in ERRORS.iter().enumerate() {
        assert_eq!(host.call(&format!("s__t{n}"), "{}").error(), *sent);
    }
    host.finish();
}

#[test]
fn modern_results_pass_unchanged() {
    let workspace = Workspace::new();
    let results = [
        r#"{"resultType":"complete","content":[],"structuredContent":[123456789012345678901234567890,1.0,1e400]}"#,
        r#"{"z":1.0,"content":[{"type":"hologram"}],"resultType":"complete","_meta":{"a":1}}"#,
        r#"{"requestState":"abc","resultType":"input_required","inputRequests":{}}"#,
    ];
    let script = corpus("result", &results).set("era", r#""modern""#);
    let host = workspace.serve_with(&gateway(), &[("s", script)]);
    host.discover();
    host.await_tools(&["s__t0"]);
    for (n, sent) in results.iter().enumerate() {
        assert_eq!(host.call(&format!("s__t{n}"), "{}").result(), *sent);
    }
    host.finish();
}

#[test]
fn ids_come_back_exactly() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", Script::friendly())], &["s__echo"]);
    for id in IDS {
        host.request_as(id, "tools/call", r#"{"name":"s__echo","arguments":{}}"#);
        assert!(!host.expect_response(id).is_error(), "{id}");
    }
    host.request_as(r#""p""#, "ping", "{}");
    assert_eq!(host.expect_response(r#""p""#).id(), Some(r#""p""#));
    host.finish();
}

#[test]
fn requests_reach_the_server_unchanged_but_for_the_name() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", Script::friendly())], &["s__echo"]);
    let requests = [
        r#"{"name":"s__echo","arguments":{"n":123456789012345678901234567890,"f":1.0,"z":1,"a":"\u00e9é"}}"#,
        r#"{"arguments":{"name":"s__echo","_meta":{"progressToken":1}},"name":"s__echo"}"#,
        r#"{"name":"s__echo","_meta":{"com.example/x":1.0,"traceparent":"00-0af7-b7-01"},"arguments":{},"later":[1]}"#,
        r#"{ "name" : "s__echo" , "arguments" : { "deep" : [[[[{"x":1e400}]]]] } }"#,
        r#"{"name":"s__echo"}"#,
    ];
    for request in requests {
        let id = host.request("tools/call", request);
        // The first occurrence that is the member itself, not the one inside the arguments.
        let expected = if request.starts_with(r#"{"arguments""#) {
            request.replace(r#","name":"s__echo"}"#, r#","name":"echo"}"#)
        } else {
            request.replacen("s__echo", "echo", 1)
        };
        assert_eq!(host.expect_response(id).content_text(), expected);
    }
    host.finish();
}

#[test]
fn definitions_are_listed_unchanged_but_for_the_name() {
    let workspace = Workspace::new();
    let definition = r#"{"inputSchema":{"type":"object","properties":{"n":{"maximum":1e400,"default":1.0}}},"x-later":123456789012345678901234567890,"name":"odd","description":"d \u00e9é","annotations":{"readOnlyHint":true,"z":1,"a":2},"_meta":{"a/b":[]}}"#;
    let script = Script::new().set("tools", format!("[{definition}]"));
    let host = open(&workspace, &[("s", script)], &["s__odd"]);
    let expected = definition.replace(r#""name":"odd""#, r#""name":"s__odd""#);
    assert_eq!(host.list_tools()[0].raw, expected);
    host.finish();
}

#[test]
fn unusual_envelopes_are_understood() {
    let workspace = Workspace::new();
    let odd = r#"{"content":[],"id":5,"n":1.0}"#;
    let script = Script::new()
        .tool("id_last", format!(r#"{{"id_last":true,"result":{odd}}}"#))
        .tool("version_last", format!(r#"{{"key_order":["id","result","jsonrpc"],"result":{odd}}}"#))
        .tool("result_first", format!(r#"{{"key_order":["result","jsonrpc","id"],"result":{odd}}}"#))
        .tool("error_first", r#"{"key_order":["result","id","jsonrpc"],"error":{"code":-5,"message":"e"}}"#);
    let host = open(&workspace, &[("s", script)], &["s__id_last"]);
    for tool in ["s__id_last", "s__version_last", "s__result_first"] {
        assert_eq!(host.call(tool, "{}").result(), odd, "{tool}");
    }
    assert_eq!(host.call("s__error_first", "{}").error(), r#"{"code":-5,"message":"e"}"#);
    host.finish();
}

#[test]
fn a_reply_with_two_ids_ends_nobody_elses_call() {
    let workspace = Workspace::new();
    let mut script = Script::friendly().tool("slow", r#"{"delay_ms":1500,"echo":true}"#);
    for id in 0..8 {
        script = script.tool(&format!("twice_{id}"), format!(r#"{{"duplicate_id":{id}}}"#));
    }
    let config = workspace.config(&[("s", script)]).options("s", serde_json::json!({"timeout": "3s"}));
    let host = crate::open_with(&workspace, &config, &["s__echo"]);
    let slow: Vec<u64> =
        (0..4).map(|n| host.start_call("s__slow", &format!(r#"{{"canary":{n}}}"#))).collect();
    let hostile: Vec<u64> = (0..8).map(|n| host.start_call(&format!("s__twice_{n}"), "{}")).collect();
    for (n, id) in slow.into_iter().enumerate() {
        assert!(host.expect_response(id).content_text().contains(&format!(r#""canary":{n}"#)));
    }
    // Each hostile one ends too, in whatever way; `finish` checks that nothing was answered twice.
    for id in hostile {
        host.expect_response(id);
    }
    host.finish();
}
