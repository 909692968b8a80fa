//! Consent to the calls of an agent run: users of both eras are asked, over stdio and over HTTP.

use plugbay_testkit::{Host, HttpGateway, MODERN_META};
use serde_json::{Value, json};

use super::{Harness, SECRET, told};
use crate::{
    dialect::{ANTHROPIC, DIALECTS, STREAMED},
    gateway,
};

const MODERN_HEADERS: [(&str, &str); 3] =
    [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "natural_language")];

/// The request of a modern host, with these additional members.
fn wish(members: &str) -> String {
    format!(r#"{{"name":"natural_language","arguments":{{"query":"x"}}{members}}}"#)
}

/// The same as a body, from a host whose user can be asked.
fn modern(members: &str) -> String {
    let meta = MODERN_META.replace("clientCapabilities\":{}", "clientCapabilities\":{\"elicitation\":{}}");
    let params = wish(&format!(r#"{members},"_meta":{{{meta}}}"#));
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

/// The server request in an answer that asks for input, and the members that accept it.
fn asked_by(answer: &Value) -> (String, String) {
    let (result, requests) = (&answer["result"], answer["result"]["inputRequests"].as_object());
    let (number, request) = requests.and_then(|all| all.iter().next()).unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(
        (&result["resultType"], &request["method"]),
        (&json!("input_required"), &json!("elicitation/create"))
    );
    let responses = json!({ number: { "action": "accept", "content": {} } });
    let retry = format!(r#","inputResponses":{responses},"requestState":{}"#, result["requestState"]);
    (request["params"]["message"].to_string(), retry)
}

#[test]
fn a_modern_host_consents_by_sending_its_request_again() {
    for dialect in DIALECTS {
        let wanted = [("s__add", json!({ "n": 1 })), ("s__drop", json!({ "n": 2 }))];
        let harness = Harness::new(dialect, [dialect.calls(&wanted), dialect.says("All of it.")]);
        harness.workspace.write_config(&harness.config(&json!({})));
        let host = Host::spawn(harness.workspace.command(&gateway()).env(dialect.key_variable(), SECRET));
        host.declare(r#"{"elicitation":{"form":{}}}"#);
        host.discover();
        host.await_tools(&["natural_language", "s__read"]);
        let mut request = wish("");
        for part in ["s__add", "s__drop"] {
            let answer = host.expect_response(host.request("tools/call", &request)).value();
            let (server_request, retry) = asked_by(&answer);
            assert!(server_request.contains(part), "{server_request}");
            assert_eq!(harness.calls_made(), 0, "first everything is asked");
            request = wish(&retry);
        }
        let (words, record, failed) = told(&host.expect_response(host.request("tools/call", &request)));
        assert_eq!((words.as_str(), failed), ("All of it.", false), "{dialect:?}");
        assert_eq!(record, "Calls:\n1. s__add {\"n\":1}: done\n2. s__drop {\"n\":2}: done");
        let again = host.expect_response(host.request("tools/call", &request));
        assert!(again.text().contains("has ended"), "{}", again.text());
        assert_eq!(harness.calls_made(), 2, "nothing is done twice");
        host.finish();
    }
}

#[test]
fn over_http_a_modern_host_consents_on_another_connection() {
    let dialect = STREAMED[0];
    let harness =
        Harness::new(dialect, [dialect.calls(&[("s__add", json!({ "n": 1 }))]), dialect.says("Added.")]);
    harness.workspace.write_config(&harness.config(&json!({})));
    let gateway = HttpGateway::start(harness.workspace.command(&gateway()).env("ANTHROPIC_API_KEY", SECRET));
    let ask = |members: &str| -> Value {
        let reply = gateway.post(&MODERN_HEADERS, &modern(members));
        // An answer that takes long comes as a stream.
        let answer = reply.body.lines().filter_map(|line| line.strip_prefix("data:")).next_back();
        serde_json::from_str(answer.unwrap_or(&reply.body)).unwrap_or_else(|_| panic!("{}", reply.body))
    };
    let (_, retry) = asked_by(&ask(""));
    assert_eq!(harness.calls_made(), 0);
    let answer = ask(&retry);
    assert_eq!(answer["result"]["content"][0]["text"], "Added.", "{answer}");
    assert_eq!(harness.calls_made(), 1);
}

#[test]
fn a_user_consents_to_one_call_by_elicitation_and_declines_another() {
    for dialect in DIALECTS {
        let wanted = [("s__add", json!({ "n": 1 })), ("s__drop", json!({ "n": 2 }))];
        let harness = Harness::new(dialect, [dialect.calls(&wanted), dialect.says("Half of it.")]);
        let host = harness.open(&json!({}), r#"{"elicitation":{}}"#);
        let id = host.start_call("natural_language", r#"{"query":"x"}"#);
        for (part, answer) in
            [("s__add", r#"{"action":"accept","content":{}}"#), ("s__drop", r#"{"action":"decline"}"#)]
        {
            let server_request = host.expect_request("elicitation/create");
            assert!(server_request.text().contains(part), "{}", server_request.text());
            assert_eq!(harness.calls_made(), 0, "first everything is asked");
            host.reply(&server_request, answer);
        }
        let (words, record, failed) = told(&host.expect_response(id));
        assert_eq!((words.as_str(), failed), ("Half of it.", false));
        assert_eq!(
            record,
            "Calls:\n1. s__add {\"n\":1}: done\n2. s__drop {\"n\":2}: not made: not allowed: the user declined it"
        );
        assert_eq!(harness.calls_made(), 1);
        host.finish();
    }
}

#[test]
fn a_modern_host_that_disconnects_cancels_its_agent_run() {
    let dialect = ANTHROPIC;
    let harness = Harness::new(dialect, [dialect.calls(&[("s__dawdle", json!({ "n": 1 }))])]);
    harness.workspace.write_config(&harness.config(&json!({})));
    let gateway = HttpGateway::start(harness.workspace.command(&gateway()).env("ANTHROPIC_API_KEY", SECRET));
    let mut host = gateway.connect();
    host.post(&MODERN_HEADERS, &modern(""));
    harness.workspace.await_log("s", "tools/call", 1);
    drop(host);
    harness.workspace.await_log("s", "notifications/cancelled", 1);
    assert_eq!(harness.calls_made(), 1);
}
