//! Unknown messages pass too: extensions and experiments, methods and notifications.

use plugbay_testkit::{Host, RawMessage, Script, Workspace};
use serde_json::json;

use crate::{
    fidelity::{PAIRS, Pair, paired, reaching},
    gateway,
};

const OF_SERVER: &str =
    r#""extensions":{"com.example/z":{"a":1},"io.modelcontextprotocol/ui":{}},"experimental":{"y":{}}"#;
const OF_HOST: &str = r#""extensions":{"io.modelcontextprotocol/ui":{ "n":1.0,"mimeTypes":["text/html;profile=mcp-app"]}},"experimental":{"x":{}}"#;

#[track_caller]
fn open(host: &Host, era: &str) -> RawMessage {
    host.declare(&format!("{{{OF_HOST}}}"));
    if era == "modern" { host.discover() } else { host.initialize() }
}

#[test]
fn extensions_are_declared_in_both_directions() {
    for pair in PAIRS {
        let (host_era, server_era): Pair = pair;
        let workspace = Workspace::new();
        let script = Script::friendly()
            .set("era", format!("{server_era:?}"))
            .set("capabilities", format!("{{{OF_SERVER}}}"));
        let host = workspace.serve_with(&gateway(), &[("s", script)]);
        open(&host, host_era);
        host.await_tools(&["s__echo"]);
        host.call("s__echo", "{}");
        host.finish();
        let told = if server_era == "modern" { r#""tools/call""# } else { r#""initialize""# };
        let log = workspace.log("s");
        let told = log.iter().rfind(|line| line.contains(told)).expect("it was called");
        assert!(told.contains(OF_HOST), "{pair:?}: {told}");

        // A server that was opened before is known when the next host comes.
        let host = workspace.serve(&gateway());
        let opened = open(&host, host_era);
        assert!(opened.result().contains(OF_SERVER), "{pair:?}: {opened:?}");
        host.finish();
    }
}

#[test]
fn a_server_learns_of_a_host_with_more_capabilities() {
    let workspace = Workspace::new();
    let host = workspace.serve_with(&gateway(), &[("s", Script::friendly())]);
    host.discover();
    host.await_tools(&["s__echo"]);
    assert_eq!(workspace.count_log("s", OF_HOST), 0);
    host.declare(&format!("{{{OF_HOST}}}"));
    host.list_tools();
    workspace.await_log("s", OF_HOST, 1);
    host.await_tools(&["s__echo"]);
    host.finish();
}

#[test]
fn unknown_methods_and_notifications_reach_their_server_and_its_host() {
    let hello = r#"{"jsonrpc":"2.0","method":"notifications/x/hello","params":{"n":1.0}}"#;
    for pair in PAIRS {
        let workspace = Workspace::new();
        let methods = json!({ "x/custom": { "echo": true, "send": [hello] } });
        let host = paired(&workspace, pair, Script::friendly().set("methods", methods), "s__echo");
        let id = host.request("x/custom", r#"{"name":"s__echo","n":1.0}"#);
        let reached = reaching(&host, pair, r#"{"name":"echo","n":1.0}"#);
        assert_eq!(host.expect_response(id).content_text(), reached, "{pair:?}");
        assert_eq!(host.expect_notification("notifications/x/hello").text(), hello, "{pair:?}");
        let id = host.request("x/other", "{}");
        assert_eq!(host.expect_response(id).error_code(), -32601, "its server does not know it either");
        host.notify("notifications/x/seen", r#"{"name":"s__echo","n":1.0}"#);
        workspace.await_log("s", r#""notifications/x/seen","params":{"name":"echo","n":1.0}"#, 1);
        host.finish();
    }
}

#[test]
fn progress_of_a_host_reaches_the_server_that_made_the_request() {
    let workspace = Workspace::new();
    let asked = r#"{"method":"sampling/createMessage","params":{"_meta":{"progressToken":"pt"},"messages":[],"maxTokens":1}}"#;
    let script = Script::friendly().tool("ask", format!(r#"{{"ask":[{asked}]}}"#));
    let host = workspace.serve_with(&gateway(), &[("s", script)]);
    host.declare(r#"{"sampling":{}}"#);
    host.initialize();
    host.await_tools(&["s__ask"]);
    let id = host.start_call("s__ask", "{}");
    let server_request = host.expect_request("sampling/createMessage");
    let token = server_request.params_value()["_meta"]["progressToken"].clone();
    host.notify("notifications/progress", &format!(r#"{{"progressToken":{token},"progress":1.0}}"#));
    workspace.await_log("s", r#"{"progressToken":"pt","progress":1.0}"#, 1);
    host.reply(&server_request, r#"{"role":"assistant","content":{"type":"text","text":"t"},"model":"m"}"#);
    assert!(!host.expect_response(id).is_error());
    host.finish();
}

#[test]
fn a_resource_uri_of_two_servers_is_refused_with_the_uri_of_each() {
    let server = |name: &str| {
        Script::friendly()
            .set("resources", r#"[{"uri":"x://a","name":"a"}]"#)
            .set(
                "reads",
                format!(r#"{{"x://a":{{"result":{{"contents":[{{"uri":"x://a","text":"{name}"}}]}}}}}}"#),
            )
            .tool("link", r#"{"result":{"content":[{"type":"resource_link","uri":"x://a","name":"l"}]}}"#)
    };
    let workspace = Workspace::new();
    let host = crate::open(&workspace, &[("b", server("b"))], &["b__link"]);
    let read = |uri: &str| {
        let id = host.request("resources/read", &format!(r#"{{"uri":"{uri}"}}"#));
        host.expect_response(id).result_value()["contents"][0]["text"].clone()
    };
    assert_eq!(read("x://a"), "b", "nobody else has it");
    workspace.write_config(&workspace.config(&[("a", server("a")), ("b", server("b"))]));
    host.await_tools(&["a__link", "b__link"]);
    let link = host.call("b__link", "{}").result_value()["content"][0]["uri"].clone();
    let id = host.request("resources/read", &format!(r#"{{"uri":{link}}}"#));
    let message = host.expect_response(id).failure();
    assert!(message.contains("plugbay://a/x://a, plugbay://b/x://a"), "{message}");
    assert_eq!((read("plugbay://a/x://a"), read("plugbay://b/x://a")), ("a".into(), "b".into()));
    host.finish();
}
