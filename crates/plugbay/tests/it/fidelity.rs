//! Messages pass unchanged: results, errors, arguments, definitions and ids, byte for byte, in every pairing
//! of eras.

use plugbay_testkit::{Host, Script, Workspace, dress};
use serde_json::json;

use crate::{gateway, open};

/// The eras of a host and of its server.
pub(crate) type Pair = (&'static str, &'static str);

pub(crate) const PAIRS: [Pair; 4] =
    [("legacy", "legacy"), ("legacy", "modern"), ("modern", "legacy"), ("modern", "modern")];

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
    // Order, duplicates and white space.
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

/// Content that a legacy server may send, because it has no meaning in its own era.
const FOREIGN: &[&str] = &[
    r#"{"resultType":"weird","content":[]}"#,
    r#"{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"x"}"#,
    r#"{"content":[],"result\u0054ype":"task","taskId":"1"}"#,
];

/// Members that a host adds to its request for any recipient.
const TRACE: &str = r#""traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"vendor=\u0061,x=1","baggage":"user=é,n=1.0""#;

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

/// A server whose tools `t0`, `t1`… answer with the entries of the corpus.
fn corpus(key: &str, texts: &[&str]) -> Script {
    let add = |script: Script, (n, text): (usize, &&str)| {
        script.tool(&format!("t{n}"), format!(r#"{{"{key}":{text}}}"#))
    };
    texts.iter().enumerate().fold(Script::new(), add)
}

/// The server `s` behind a host of either era.
#[track_caller]
pub(crate) fn paired(workspace: &Workspace, (host, server): Pair, script: Script, tool: &str) -> Host {
    let script = script.set("era", json!(server));
    let started = workspace.serve_with(&gateway(), &[("s", script)]);
    if host == "modern" {
        started.discover();
    } else {
        started.initialize();
    }
    started.await_tools(&[tool]);
    started
}

/// A result as its host gets it. For results of a legacy server, the newer era adds its required members at
/// the end.
pub(crate) fn passed(sent: &str, pair: Pair, method: &str) -> String {
    if pair != ("modern", "legacy") {
        return sent.to_owned();
    }
    let kept = sent.strip_suffix('}').expect("an object");
    let comma = if kept.trim_end().ends_with('{') { "" } else { "," };
    let kept_for = if method == "resources/read" { r#","ttlMs":0,"cacheScope":"private""# } else { "" };
    format!(r#"{kept}{comma}"resultType":"complete"{kept_for}}}"#)
}

/// Params as their server gets them, except for the name. The eras differ in what a request says about its
/// client: a modern server is told on behalf of a legacy host, and a legacy server is not told.
pub(crate) fn reaching(host: &Host, pair: Pair, params: &str) -> String {
    match pair {
        ("modern", "legacy") if params.starts_with(r#"{"_meta""#) => params.to_owned(),
        ("modern", "legacy") => dress(params, ""),
        ("legacy", "modern") => {
            let version = env!("CARGO_PKG_VERSION");
            let meta = format!(
                r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"plugbay","version":"{version}"}},"io.modelcontextprotocol/clientCapabilities":{{}}"#
            );
            dress(params, &meta)
        }
        _ => host.dress(params),
    }
}

#[test]
fn call_results_pass_unchanged() {
    for pair in PAIRS {
        let results = if pair.1 == "legacy" { [RESULTS, FOREIGN].concat() } else { RESULTS.to_vec() };
        let workspace = Workspace::new();
        let host = paired(&workspace, pair, corpus("result", &results), "s__t0");
        for (n, sent) in results.iter().enumerate() {
            let answer = host.call(&format!("s__t{n}"), "{}");
            assert_eq!(answer.result(), passed(sent, pair, "tools/call"), "{pair:?}");
            if FOREIGN.contains(sent) && pair.0 == "modern" {
                assert_eq!(
                    answer.result_value()["resultType"],
                    "complete",
                    "the last of doubled keys counts"
                );
            }
        }
        host.finish();
    }
}

#[test]
fn json_rpc_errors_pass_unchanged() {
    for pair in PAIRS {
        let workspace = Workspace::new();
        let host = paired(&workspace, pair, corpus("error", ERRORS), "s__t0");
        for (n, sent) in ERRORS.iter().enumerate() {
            assert_eq!(host.call(&format!("s__t{n}"), "{}").error(), *sent, "{pair:?}");
        }
        host.finish();
    }
}

#[test]
fn input_requests_of_a_modern_server_pass_unchanged() {
    let workspace = Workspace::new();
    let asked = r#"{"requestState":"abc","resultType":"input_required","inputRequests":{}}"#;
    let host = paired(&workspace, ("modern", "modern"), corpus("result", &[asked]), "s__t0");
    assert_eq!(host.call("s__t0", "{}").result(), asked);
    host.finish();
}

#[test]
fn request_ids_come_back_exactly() {
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
    let requests = [
        r#"{"name":"s__echo","arguments":{"n":123456789012345678901234567890,"f":1.0,"z":1,"a":"\u00e9é"}}"#,
        r#"{"arguments":{"name":"s__echo","_meta":{"progressToken":1}},"name":"s__echo"}"#,
        &format!(
            r#"{{"_meta":{{{TRACE},"com.example/x":1.0}},"name":"s__echo","arguments":{{}},"later":[1]}}"#
        ),
        r#"{ "name" : "s__echo" , "arguments" : { "deep" : [[[[{"x":1e400}]]]] } }"#,
        r#"{"name":"s__echo"}"#,
    ];
    for pair in PAIRS {
        let workspace = Workspace::new();
        let host = paired(&workspace, pair, Script::friendly(), "s__echo");
        for request in requests {
            let id = host.request("tools/call", request);
            // The first occurrence that is the member itself, not the one inside the arguments.
            let expected = if request.starts_with(r#"{"arguments""#) {
                request.replace(r#","name":"s__echo"}"#, r#","name":"echo"}"#)
            } else {
                request.replacen("s__echo", "echo", 1)
            };
            let expected = reaching(&host, pair, &expected);
            assert_eq!(host.expect_response(id).content_text(), expected, "{pair:?}");
        }
        host.finish();
    }
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
fn unusual_json_rpc_envelopes_are_understood() {
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
fn a_response_with_two_ids_ends_no_other_call() {
    let workspace = Workspace::new();
    let mut script = Script::friendly().tool("slow", r#"{"delay_ms":1500,"echo":true}"#);
    for id in 0..8 {
        script = script.tool(&format!("twice_{id}"), format!(r#"{{"duplicate_id":{id}}}"#));
    }
    let config = workspace.config(&[("s", script)]).options("s", serde_json::json!({"timeout": "10s"}));
    let host = crate::open_with(&workspace, &config, &["s__echo"]);
    let slow: Vec<u64> =
        (0..4).map(|n| host.start_call("s__slow", &format!(r#"{{"canary":{n}}}"#))).collect();
    let hostile: Vec<u64> = (0..8).map(|n| host.start_call(&format!("s__twice_{n}"), "{}")).collect();
    for (n, id) in slow.into_iter().enumerate() {
        assert!(host.expect_response(id).content_text().contains(&format!(r#""canary":{n}"#)));
    }
    // Each hostile one ends too, in any way; `finish` checks that none was answered twice.
    for id in hostile {
        host.expect_response(id);
    }
    host.finish();
}
