//! What a server's process inherits: an allow-list and what its entry names, nothing else.

use std::collections::BTreeMap;

use plugbay_testkit::{Host, Script, Workspace};
use serde_json::json;

use crate::gateway;

#[test]
fn only_allowed_and_named_environment_variables_reach_a_server() {
    let workspace = Workspace::new();
    let script = Script::new().tool("env", r#"{"env":true}"#);
    let mut config = workspace.config(&[("s", script)]);
    let mut entry = config.value()["mcpServers"]["s"].clone();
    entry["env"] = json!({"GIVEN": "from ${SECRET_OF_HOST}", "PLAIN": "p"});
    config = config.entry("s", entry);
    workspace.write_config(&config);
    let mut command = workspace.command(&gateway());
    let host =
        Host::spawn(command.env("SECRET_OF_HOST", "s3cret").env("OTHER_SECRET", "x").env("LANG", "C.UTF-8"));
    host.initialize();
    host.await_tools(&["s__env"]);
    let text = host.call("s__env", "{}").content_text();
    let seen: BTreeMap<String, String> = serde_json::from_str(&text).expect("environment");
    assert_eq!(seen.get("GIVEN").map(String::as_str), Some("from s3cret"));
    assert_eq!(seen.get("PLAIN").map(String::as_str), Some("p"));
    assert_eq!(seen.get("LANG").map(String::as_str), Some("C.UTF-8"));
    assert!(seen.contains_key("PATH") && seen.contains_key("HOME"), "{seen:?}");
    assert!(!seen.contains_key("SECRET_OF_HOST") && !seen.contains_key("OTHER_SECRET"), "{seen:?}");
    host.finish();
}
