//! Resources, prompts, completions and notifications also pass unchanged, byte for byte, in every pairing of
//! eras.

use plugbay_testkit::{Host, RawMessage, Script, Workspace};
use serde_json::json;

use crate::fidelity::{PAIRS, Pair, RESULTS, paired, passed, reaching};

const RESOURCE: &str = r#"{"size":123456789012345678901234567890,"uri":"x:\/\/odd","name":"odd","x-later":1e400,"icons":[{"src":"data:,","sizes":["48x48"],"theme":"dark"}],"annotations":{"z":1,"priority":0.10,"audience":["user"]},"_meta":{"a/b":[1.0]}}"#;
const TEMPLATE: &str = r#"{"name":"t \u00e9é","uriTemplate":"x://t/{id}","annotations":{"lastModified":"2026-01-02"},"later":[1.0,1E-400],"icons":[]}"#;
const PROMPT: &str = r#"{"arguments":[{"required":true,"name":"a","later":1.0}],"name":"odd","icons":[{"src":"data:,"}],"title":"\ud83d\ude00","_meta":{"z":1,"a":2}}"#;

/// A server that has all of these, and answers each request with an entry of the corpus.
fn server() -> Script {
    let uris = (0..RESULTS.len()).map(|n| format!(r#"{{"uri":"x:{n}","name":"{n}"}}"#));
    let prompts = (0..RESULTS.len()).map(|n| format!(r#"{{"name":"p{n}"}}"#));
    let list = |odd: &str, others: Vec<String>| format!("[{odd},{}]", others.join(","));
    let behaviours = |key: &str| {
        let all = RESULTS.iter().enumerate();
        let all = all.map(|(n, result)| format!(r#""{key}{n}":{{"result":{result}}}"#)).collect::<Vec<_>>();
        format!(r#"{{"*":{{"echo":true}},{}}}"#, all.join(","))
    };
    Script::friendly()
        .set("resources", list(RESOURCE, uris.collect()))
        .set("templates", format!("[{TEMPLATE}]"))
        .set("prompts", list(PROMPT, prompts.collect()))
        .set("reads", behaviours("x:"))
        .set("gets", behaviours("p"))
        .set("completes", behaviours("p"))
        .set("logging", true)
}

#[track_caller]
fn open(workspace: &Workspace, pair: Pair, script: Script) -> Host {
    paired(workspace, pair, script, "s__echo")
}

#[track_caller]
fn ask(host: &Host, method: &str, params: &str) -> RawMessage {
    let id = host.request(method, params);
    host.expect_response(id)
}

#[test]
fn definitions_are_listed_unchanged_but_for_the_name() {
    for pair in PAIRS {
        let workspace = Workspace::new();
        let host = open(&workspace, pair, server());
        let prompt = PROMPT.replace(r#""name":"odd""#, r#""name":"s__odd""#);
        for (method, definition) in [
            ("resources/list", RESOURCE),
            ("resources/templates/list", TEMPLATE),
            ("prompts/list", prompt.as_str()),
        ] {
            let listed = ask(&host, method, "{}");
            assert!(listed.result().contains(definition), "{pair:?}: {listed:?}");
        }
        host.finish();
    }
}

#[test]
fn call_results_pass_unchanged() {
    for pair in PAIRS {
        let workspace = Workspace::new();
        let host = open(&workspace, pair, server());
        for (n, sent) in RESULTS.iter().enumerate() {
            let reference = format!(
                r#"{{"ref":{{"type":"ref/prompt","name":"s__p{n}"}},"argument":{{"name":"a","value":""}}}}"#
            );
            for (method, params) in [
                ("resources/read", format!(r#"{{"uri":"x:{n}"}}"#)),
                ("prompts/get", format!(r#"{{"name":"s__p{n}"}}"#)),
                ("completion/complete", reference),
            ] {
                let answer = ask(&host, method, &params);
                assert_eq!(answer.result(), passed(sent, pair, method), "{method}, {pair:?}");
            }
        }
        host.finish();
    }
}

#[test]
fn requests_reach_the_server_unchanged_but_for_the_name() {
    let requests = [
        (
            "prompts/get",
            r#"{"arguments":{"name":"s__odd","z":"\u00e9é"},"name":"s__odd","later":[1.0,1e400]}"#,
            "/messages/0/content/text",
        ),
        (
            "resources/read",
            r#"{ "later":{"n":123456789012345678901234567890}, "uri":"x:\/\/odd" }"#,
            "/contents/0/text",
        ),
        (
            "completion/complete",
            r#"{"argument":{"value":"\u0000","name":"s__odd"},"context":{"arguments":{"z":"1","a":"2"}},"ref":{"name":"s__odd","type":"ref/prompt","n":1.0}}"#,
            "/completion/values/0",
        ),
    ];
    for pair in PAIRS {
        let workspace = Workspace::new();
        let host = open(&workspace, pair, server());
        for (method, params, pointer) in requests {
            let answer = ask(&host, method, params).result_value();
            // The name is replaced in the member itself and in the reference, but not in an argument that
            // looks like it.
            let expected = match method {
                "prompts/get" => params.replace(r#","name":"s__odd""#, r#","name":"odd""#),
                "completion/complete" => {
                    params.replace(r#""ref":{"name":"s__odd""#, r#""ref":{"name":"odd""#)
                }
                _ => params.to_owned(),
            };
            let expected = reaching(&host, pair, &expected);
            assert_eq!(answer.pointer(pointer).unwrap(), &json!(expected), "{method}, {pair:?}");
        }
        host.finish();
    }
}

#[test]
fn a_missing_resource_has_the_error_code_of_each_era() {
    let error =
        |code: &str| format!(r#"{{"data":{{"uri":"x:0","n":1.0}},"code":{code},"message":"\u00e9"}}"#);
    let code_of = |era: &str| if era == "modern" { "-32602" } else { "-32002" };
    for pair in PAIRS {
        let workspace = Workspace::new();
        let sent = error(code_of(pair.1));
        let script = server().set("reads", format!(r#"{{"x:0":{{"error":{sent}}}}}"#));
        let host = open(&workspace, pair, script);
        let answer = ask(&host, "resources/read", r#"{"uri":"x:0"}"#);
        assert_eq!(answer.error(), error(code_of(pair.0)), "{pair:?}");
        host.finish();
    }
}

const PROGRESS: &str = r#"{"progress":1.50,"progressToken":TOKEN,"x":123456789012345678901234567890,"message":"\u00e9","_meta":{"a":1.0}}"#;
const LOG: &str = r#"{"data":{"n":1e400,"z":1,"a":"\ud83d\ude00"},"level":"error","later":[],"logger":"é"}"#;
const UPDATED: &str = r#""title":"\u00e9","uri":"x:0","n":1.0"#;
const LABEL: &str = r#""_meta":{"io.modelcontextprotocol/subscriptionId":SUBSCRIPTION}"#;

#[test]
fn notifications_pass_unchanged_but_for_what_addresses_them() {
    for pair in PAIRS {
        let (host_era, server_era) = pair;
        let workspace = Workspace::new();
        let updated = match server_era {
            "modern" => format!("{{{LABEL},{UPDATED}}}"),
            _ => format!("{{{UPDATED}}}"),
        };
        let lines = [("progress", PROGRESS), ("message", LOG), ("resources/updated", &updated)].map(
            |(method, params)| {
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#)
            },
        );
        let script = server().tool("tell", json!({ "send": lines }));
        let host = open(&workspace, pair, script);
        if host_era == "modern" {
            host.request_as(
                9000,
                "subscriptions/listen",
                r#"{"notifications":{"resourceSubscriptions":["x:0"]}}"#,
            );
            host.expect_notification("notifications/subscriptions/acknowledged");
        } else {
            ask(&host, "resources/subscribe", r#"{"uri":"x:0"}"#).result();
        }
        let level = match host_era {
            "modern" => r#","io.modelcontextprotocol/logLevel":"debug""#,
            _ => "",
        };
        ask(
            &host,
            "tools/call",
            &format!(r#"{{"_meta":{{"progressToken":"\u0074 1"{level}}},"name":"s__tell"}}"#),
        );

        let told = |method: &str| host.expect_notification(&format!("notifications/{method}"));
        let case = format!("{host_era}, {server_era}");
        assert_eq!(told("progress").params().unwrap(), PROGRESS.replace("TOKEN", r#""\u0074 1""#), "{case}");
        assert_eq!(told("message").params(), Some(LOG), "{case}");
        let updated = told("resources/updated");
        if host_era == "modern" {
            let label = LABEL.replace("SUBSCRIPTION", "9000");
            assert_eq!(updated.params().unwrap(), format!("{{{label},{UPDATED}}}"), "{case}");
        } else {
            assert!(updated.params().unwrap().ends_with(&format!("{UPDATED}}}")), "{case}: {updated:?}");
        }
        host.finish();
    }
}
