//! Suite mode with real processes: a server is started by its first call, not before.

use plugbay_testkit::{Script, Workspace};
use serde_json::json;

use crate::{gateway, warm};

#[test]
fn a_server_that_is_known_is_started_by_its_first_call() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly()), ("b", Script::friendly())]);
    let config = config.top("mode", json!("suite"));
    warm(&workspace, &config, &["a_suite", "b_suite"]);
    let starts = |server| workspace.starts(server).len();
    let before = (starts("a"), starts("b"));
    let host = workspace.serve(&gateway());
    host.initialize();
    assert_eq!(host.tool_names(), ["a_suite", "b_suite"]);
    let told = host.call("a_suite", r#"{"action":"introspect"}"#).content_text();
    assert!(told.contains("echo("), "{told}");
    assert_eq!((starts("a"), starts("b")), before, "asked, and told from the catalog");
    let arguments = r#"{"action":"call","subtool":"pid","args":{}}"#;
    let pid = host.call("a_suite", arguments).content_text();
    assert_eq!(host.call("a_suite", arguments).content_text(), pid, "reused");
    assert_eq!((starts("a"), starts("b")), (before.0 + 1, before.1));
    host.finish();
}
