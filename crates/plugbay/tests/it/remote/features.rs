//! Everything that works locally also works through a plugbay remote, in both eras.

use plugbay_testkit::{Host, HttpGateway, Script, Workspace};
use serde_json::json;

use crate::gateway;

const CAPABILITIES: &str = r#"{"sampling":{},"elicitation":{"form":{}}}"#;
const FORM: &str = r#"{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}"#;
const SAMPLE: &str = r#"{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":9}}"#;

fn server(era: &str) -> Script {
    Script::friendly()
        .set("era", format!("\"{era}\""))
        .set("resources", json!([{ "uri": "x:one", "name": "one" }]))
        .set("prompts", json!([{ "name": "greet" }]))
        .set("reads", r#"{"x:one":{"result":{"contents":[{"uri":"x:one","text":"canary-resource"}]}}}"#)
        .set("gets", r#"{"greet":{"result":{"messages":[],"description":"canary-prompt"}}}"#)
        .tool("work", r#"{"progress":3,"progress_ms":20}"#)
        .tool("hang", r#"{"hang":true}"#)
        .tool("form", format!(r#"{{"ask":[{FORM}]}}"#))
        .tool("sample", format!(r#"{{"ask":[{SAMPLE}]}}"#))
}

/// A host in this era, its gateway, a remote gateway, and behind that a server in that era.
fn open(far: &Workspace, near: &Workspace, host_era: &str, server_era: &str) -> (HttpGateway, Host) {
    far.write_config(&far.config(&[("s", server(server_era))]).top("mode", json!("suite")));
    let remote = HttpGateway::start(&mut far.command(&gateway()));
    let url = format!("http://{}", remote.address());
    near.write_config(&near.config(&[]).top("remotes", json!({ "team": { "url": url } })));
    let host = near.serve(&gateway());
    host.declare(CAPABILITIES);
    if host_era == "modern" {
        host.speak_modern();
        host.discover();
    } else {
        host.initialize();
    }
    host.await_tools(&["s__echo", "s__form"]);
    (remote, host)
}

const PAIRS: [(&str, &str); 4] =
    [("legacy", "legacy"), ("legacy", "modern"), ("modern", "legacy"), ("modern", "modern")];

#[test]
fn resources_prompts_and_progress_pass_through_a_remote() {
    for (host_era, server_era) in PAIRS {
        let (far, near) = (Workspace::new(), Workspace::new());
        let (_remote, host) = open(&far, &near, host_era, server_era);
        let ask =
            |method: &str, params: &str| host.expect_response(host.request(method, params)).text().to_owned();
        let pair = format!("{host_era} host, {server_era} server");
        assert!(ask("resources/read", r#"{"uri":"x:one"}"#).contains("canary-resource"), "{pair}");
        assert!(ask("prompts/list", "{}").contains("\"s__greet\""), "{pair}");
        assert!(ask("prompts/get", r#"{"name":"s__greet"}"#).contains("canary-prompt"), "{pair}");
        let id = host.start_call_with_progress("s__work", "{}", r#""mine""#);
        host.expect_response(id);
        assert_eq!(host.count_notifications("notifications/progress"), 3, "{pair}");
        host.finish();
    }
}

#[test]
fn cancellation_passes_through_a_remote() {
    for server_era in ["legacy", "modern"] {
        let (far, near) = (Workspace::new(), Workspace::new());
        let (_remote, host) = open(&far, &near, "legacy", server_era);
        let id = host.start_call("s__hang", "{}");
        far.await_log("s", "tools/call", 1);
        host.cancel(id);
        far.await_log("s", "notifications/cancelled", 1);
        host.finish();
    }
}

#[test]
fn elicitation_and_sampling_pass_through_a_remote() {
    for server_era in ["legacy", "modern"] {
        let (far, near) = (Workspace::new(), Workspace::new());
        let (_remote, host) = open(&far, &near, "legacy", server_era);
        let asks = [
            ("s__form", "elicitation/create", r#"{"action":"accept","content":{"a":"canary-form"}}"#),
            (
                "s__sample",
                "sampling/createMessage",
                r#"{"role":"assistant","content":{"type":"text","text":"canary-sample"},"model":"m"}"#,
            ),
        ];
        for (tool, method, result) in asks {
            let id = host.start_call(tool, "{}");
            let asked = host.expect_request(method);
            host.reply(&asked, result);
            let answer = host.expect_response(id);
            assert!(answer.text().contains("canary"), "{server_era}: {}", answer.text());
        }
        host.finish();
    }
}
