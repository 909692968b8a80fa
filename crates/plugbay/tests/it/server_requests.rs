//! Server requests: each in every pairing of eras, and the ways in which one ends.

use plugbay_testkit::{Host, RawMessage, Script, Workspace};
use serde_json::{Value, json};

use crate::gateway;

const ALL: &str = r#"{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"experimental":{"x":{}}}"#;

struct Ask {
    tool: &'static str,
    method: &'static str,
    params: &'static str,
    answer: &'static str,
}

const ASKS: [Ask; 4] = [
    Ask {
        tool: "sample",
        method: "sampling/createMessage",
        params: r#"{"messages":[ {"role":"user","content":{"type":"text","text":"é?"}} ],"maxTokens":100,"n":12345678901234567890.0}"#,
        answer: r#"{"role":"assistant", "content":{"type":"text","text":"é!"},"model":"m","n":1.0}"#,
    },
    Ask {
        tool: "form",
        method: "elicitation/create",
        params: r#"{"message":"who?", "requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}"#,
        answer: r#"{"action":"accept", "content":{"a":"me"}}"#,
    },
    Ask {
        tool: "url",
        method: "elicitation/create",
        params: r#"{"mode":"url","elicitationId":"e 1", "url":"https://example.com/?a=1","message":"go"}"#,
        answer: r#"{"action":"accept"}"#,
    },
    Ask {
        tool: "roots", method: "roots/list", params: "{}", answer: r#"{"roots":[ {"uri":"file:///é"} ]}"#
    },
];

fn server(era: &str) -> Script {
    let behaviours = |key: &str| {
        let all =
            ASKS.iter().map(|ask| format!(r#""{key}{}":{{"ask":[{}]}}"#, ask.tool, ask.server_request()));
        format!("{{{}}}", all.collect::<Vec<_>>().join(","))
    };
    let prompts: Vec<Value> = ASKS.iter().map(|ask| json!({ "name": ask.tool })).collect();
    let resources = ASKS.iter().map(|ask| json!({ "uri": format!("x:{}", ask.tool), "name": ask.tool }));
    let script = Script::friendly()
        .set("prompts", json!(prompts))
        .set("resources", resources.collect::<Value>())
        .set("gets", behaviours(""))
        .set("reads", behaviours("x:"))
        .set("era", format!("\"{era}\""))
        .tool(
            "both",
            r#"{"ask":[{"method":"roots/list"},{"method":"elicitation/create","params":{"message":"m"}}]}"#,
        );
    ASKS.iter()
        .fold(script, |script, ask| script.tool(ask.tool, format!(r#"{{"ask":[{}]}}"#, ask.server_request())))
}

impl Ask {
    fn server_request(&self) -> String {
        format!(r#"{{"method":"{}","params":{}}}"#, self.method, self.params)
    }
}

/// A gateway with one server in this era, and a host in its era with these capabilities.
fn open(workspace: &Workspace, host_era: &str, server_era: &str, capabilities: &str) -> Host {
    let host = workspace.serve_with(&gateway(), &[("s", server(server_era))]);
    host.declare(capabilities);
    if host_era == "modern" {
        host.discover();
    } else {
        host.initialize();
    }
    host.await_tools(&["s__roots"]);
    host
}

fn call_params(tool: &str) -> String {
    format!(r#"{{"name":"s__{tool}","arguments":{{"k":1.0}}}}"#)
}

/// The same request, with the answers that it was asked for.
fn retry(host: &Host, method: &str, params: &str, required: &RawMessage, responses: &str) -> u64 {
    let state = &required.result_value()["requestState"];
    let params = params.strip_suffix('}').unwrap();
    host.request(method, &format!(r#"{params},"inputResponses":{responses},"requestState":{state}}}"#))
}

/// Makes a call that sends one server request, as a host in this era sees it.
#[track_caller]
fn go_through(host: &Host, host_era: &str, ask: &Ask) -> RawMessage {
    go_through_request(host, host_era, "tools/call", &call_params(ask.tool), ask)
}

#[track_caller]
fn go_through_request(host: &Host, host_era: &str, method: &str, params: &str, ask: &Ask) -> RawMessage {
    let id = host.request(method, params);
    if host_era == "legacy" {
        let asked = host.expect_request(ask.method);
        assert_eq!(asked.params(), Some(ask.params), "as the server wrote it");
        host.reply(&asked, ask.answer);
        return host.expect_response(id);
    }
    let required = host.expect_response(id);
    let result = required.result_value();
    assert_eq!(result["resultType"], "input_required", "{required:?}");
    let entries = result["inputRequests"].as_object().unwrap();
    assert_eq!(entries.len(), 1);
    let (key, entry) = entries.iter().next().unwrap();
    assert_eq!(entry["method"], ask.method);
    assert!(required.result().contains(ask.params), "as the server wrote it: {required:?}");
    let id = retry(host, method, params, &required, &format!("{{{}:{}}}", json!(key), ask.answer));
    host.expect_response(id)
}

#[test]
fn prompts_and_resources_may_make_server_requests_as_calls_do() {
    for host_era in ["legacy", "modern"] {
        for server_era in ["legacy", "modern"] {
            let workspace = Workspace::new();
            let host = open(&workspace, host_era, server_era, ALL);
            for ask in &ASKS {
                for (method, params, answer) in [
                    ("prompts/get", format!(r#"{{"name":"s__{}"}}"#, ask.tool), "/messages/0/content/text"),
                    ("resources/read", format!(r#"{{"uri":"x:{}"}}"#, ask.tool), "/contents/0/text"),
                ] {
                    let case = format!("{host_era} host, {server_era} server, {method}, {}", ask.tool);
                    let got = go_through_request(&host, host_era, method, &params, ask).result_value();
                    let text = got.pointer(answer).and_then(Value::as_str);
                    assert!(text.is_some_and(|text| text.contains(ask.answer)), "{case}: {got}");
                }
            }
            host.finish();
        }
    }
}

#[test]
fn every_server_request_is_answered_in_every_pairing_of_eras() {
    for host_era in ["legacy", "modern"] {
        for server_era in ["legacy", "modern"] {
            let workspace = Workspace::new();
            let host = open(&workspace, host_era, server_era, ALL);
            for ask in &ASKS {
                let case = format!("{host_era} host, {server_era} server, {}", ask.tool);
                let answer = go_through(&host, host_era, ask);
                let text = answer.content_text();
                assert!(text.contains(ask.answer), "{case}: {answer:?}");
                if server_era == "legacy" {
                    let answers: Value = serde_json::from_str(&text).unwrap();
                    assert!(answers[0]["id"].as_str().unwrap().starts_with("of "), "{case}: {text}");
                }
                let calls = format!(r#""name":"{}""#, ask.tool);
                let times = if server_era == "legacy" { 1 } else { 2 };
                assert_eq!(workspace.count_log("s", &calls), times, "{case}: how often it was called");
            }
            host.finish();
        }
    }
}

#[test]
fn several_server_requests_are_sent_to_the_host_at_once() {
    for (host_era, server_era) in [("legacy", "legacy"), ("legacy", "modern"), ("modern", "legacy")] {
        let workspace = Workspace::new();
        let host = open(&workspace, host_era, server_era, ALL);
        let id = host.request("tools/call", &call_params("both"));
        let answer = if host_era == "legacy" {
            let (roots, form) =
                (host.expect_request("roots/list"), host.expect_request("elicitation/create"));
            host.reply(&form, r#"{"action":"decline"}"#);
            host.reply(&roots, r#"{"roots":[]}"#);
            host.expect_response(id)
        } else {
            let required = host.expect_response(id);
            let requests = required.result_value()["inputRequests"].as_object().unwrap().clone();
            assert_eq!(requests.len(), 2, "{required:?}");
            let answers = requests.iter().map(|(key, entry)| {
                let elicitation = entry["method"] == "elicitation/create";
                let answer =
                    if elicitation { json!({ "action": "decline" }) } else { json!({ "roots": [] }) };
                (key.clone(), answer)
            });
            let answers = Value::from_iter(answers.collect::<Vec<_>>());
            let id = retry(&host, "tools/call", &call_params("both"), &required, &answers.to_string());
            host.expect_response(id)
        };
        let text = answer.content_text();
        assert!(text.contains(r#""action":"decline""#) && text.contains(r#""roots":[]"#), "{text}");
        host.finish();
    }
}

#[test]
fn servers_get_the_client_capabilities_of_the_host_and_no_more() {
    for host_era in ["legacy", "modern"] {
        let declared = r#"{"elicitation":{"url":{}},"roots":{}}"#;
        let workspace = Workspace::new();
        let host = open(&workspace, host_era, "legacy", declared);
        go_through(&host, host_era, &ASKS[3]);
        let log = workspace.log("s");
        let opening = log.iter().rfind(|line| line.contains(r#""initialize""#)).unwrap();
        assert!(opening.contains(&format!(r#""capabilities":{declared}"#)), "{opening}");
        // A request that it did not declare is refused on its behalf.
        for tool in ["sample", "form"] {
            let text = host.call(&format!("s__{tool}"), "{}").content_text();
            assert!(text.contains("-32601") && text.contains("has not declared"), "{text}");
        }
        host.finish();
    }
    let workspace = Workspace::new();
    let host = open(&workspace, "legacy", "modern", r#"{"sampling":{}}"#);
    let refused = host.call("s__roots", "{}");
    assert!(refused.failure().contains("has not declared the capability"), "{refused:?}");
    let log = workspace.log("s");
    let call = log.iter().rfind(|line| line.contains(r#""tools/call""#)).unwrap();
    assert!(call.contains(r#"clientCapabilities":{"sampling":{}}"#), "{call}");
    host.finish();
}

#[test]
fn a_server_gets_one_handshake_with_the_capabilities_of_its_host() {
    for host_era in ["legacy", "modern"] {
        let workspace = Workspace::new();
        for run in 1..=2 {
            let host = open(&workspace, host_era, "legacy", ALL); // then with what is known from before
            go_through(&host, host_era, &ASKS[3]);
            assert_eq!(workspace.starts("s").len(), run, "{host_era}");
            host.finish();
        }
    }
}

#[test]
fn a_server_started_before_its_host_initialized_gets_another_handshake() {
    let workspace = Workspace::new();
    let host = workspace.serve_with(&gateway(), &[("s", server("legacy"))]);
    workspace.await_log("s", "listed", 1);
    host.declare(ALL);
    host.initialize();
    workspace.await_log("s", "listed", 2);
    host.await_tools(&["s__roots"]);
    assert!(go_through(&host, "legacy", &ASKS[0]).content_text().contains("é!"));
    host.finish();
}

#[test]
fn a_cancelled_call_cancels_its_server_request() {
    let workspace = Workspace::new();
    let host = open(&workspace, "legacy", "legacy", ALL);
    let id = host.request("tools/call", &call_params("roots"));
    let asked = host.expect_request("roots/list");
    host.cancel(id);
    let cancelled = host.expect_notification("notifications/cancelled");
    assert_eq!(cancelled.params_value()["requestId"].to_string(), asked.id().unwrap());
    workspace.await_log("s", "the call that this was asked for has ended", 1);
    host.reply(&asked, r#"{"roots":["late"]}"#);
    go_through(&host, "legacy", &ASKS[3]);
    assert_eq!(workspace.count_log("s", r#"["late"]"#), 0);
    host.finish();
}

#[test]
fn a_server_that_dies_leaves_no_server_request_behind() {
    let workspace = Workspace::new();
    let host = open(&workspace, "legacy", "legacy", ALL);
    let id = host.request("tools/call", &call_params("roots"));
    let asked = host.expect_request("roots/list");
    workspace.server_process("s").signal(plugbay_testkit::Signal::KILL);
    let cancelled = host.expect_notification("notifications/cancelled");
    assert_eq!(cancelled.params_value()["requestId"].to_string(), asked.id().unwrap());
    host.expect_response(id).error();
    host.reply(&asked, "{}");
    assert!(go_through(&host, "legacy", &ASKS[3]).content_text().contains("file:///é"));
    host.finish();
}

#[test]
fn an_unknown_request_state_is_refused_without_a_call() {
    let workspace = Workspace::new();
    let host = open(&workspace, "modern", "legacy", ALL);
    let id = host.request("tools/call", &call_params("roots"));
    let required = host.expect_response(id);
    let state = required.result_value()["requestState"].as_str().unwrap().to_owned();
    let half = &state[..state.len() / 2];
    for (tool, state) in [("roots", half), ("roots", "made up"), ("form", &*state)] {
        let params = call_params(tool);
        let params = params.strip_suffix('}').unwrap();
        let id = host.request("tools/call", &format!(r#"{params},"requestState":{}}}"#, json!(state)));
        assert_eq!(host.expect_response(id).error_code(), -32602, "{tool} {state}");
    }
    assert_eq!(workspace.count_log("s", r#""tools/call""#), 1);
    host.finish();
}

#[test]
fn changed_roots_reach_servers() {
    let workspace = Workspace::new();
    let host = open(&workspace, "legacy", "legacy", ALL);
    go_through(&host, "legacy", &ASKS[3]);
    host.notify("notifications/roots/list_changed", "{}");
    workspace.await_log("s", "notifications/roots/list_changed", 1);
    host.finish();
}
