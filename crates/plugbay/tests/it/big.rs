//! Large messages: within the limit they pass; above it they are refused, and nobody waits for them.

use plugbay_testkit::{Script, Workspace};
use serde_json::json;

use crate::{mentions, open, open_with};

const FIFTY_MB: usize = 50_000_000;

#[test]
fn a_result_of_fifty_megabytes_passes_where_the_limit_allows() {
    let workspace = Workspace::new();
    let script = Script::friendly()
        .tool("big", format!(r#"{{"size":{FIFTY_MB}}}"#))
        .tool("too_big", r#"{"big_line":70}"#);
    let config = workspace
        .config(&[("s", script), ("other", Script::friendly())])
        .top("limits", json!({"message": "64MiB"}));
    let host = open_with(&workspace, &config, &["s__big", "other__echo"]);
    let text = host.call("s__big", "{}").content_text();
    assert!(text.len() == FIFTY_MB && text.bytes().all(|byte| byte == b'x'));

    let refused = host.start_call("s__too_big", "{}");
    for _ in 0..10 {
        host.call("other__echo", "{}");
    }
    let failure = host.expect_response(refused).failure();
    assert!(mentions(&failure, &["64", "limit", "large", "too big", "too long"]), "{failure}");
    assert!(host.call("s__echo", r#"{"still":1}"#).content_text().contains("still"));
    host.finish();
}

#[test]
fn a_large_request_reaches_the_server() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", Script::friendly())], &["s__echo"]);
    let bulk = "é".repeat(2_000_000);
    let text = host.call("s__echo", &format!(r#"{{"bulk":"{bulk}"}}"#)).content_text();
    assert!(text.contains(&bulk));
    host.finish();
}

#[test]
fn a_request_above_the_limit_is_refused_and_the_connection_goes_on() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly())]).top("limits", json!({"message": "1MiB"}));
    let host = open_with(&workspace, &config, &["s__echo"]);
    let bulk = "x".repeat(3 << 20);
    let id = host.start_call("s__echo", &format!(r#"{{"bulk":"{bulk}"}}"#));
    // Its id may not have been read.
    let id = id.to_string();
    let refused = host
        .expect("a refusal", |m| m.is_error() && m.id().is_none_or(|found| found == id || found == "null"));
    assert!(
        mentions(&refused.failure(), &["limit", "large", "too big", "too long", "1 mib", "1048576"]),
        "{refused:?}"
    );
    host.call("s__echo", "{}");
    host.finish();
}
