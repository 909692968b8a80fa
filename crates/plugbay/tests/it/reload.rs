//! A changed config takes effect while the host stays connected, and touches only what changed.

use std::fs;

use plugbay_testkit::{Host, Script, Workspace, wait_until_gone};
use serde_json::json;

use crate::{LIST_CHANGED, open_with};

#[track_caller]
fn pid(host: &Host, server: &str) -> String {
    host.call(&format!("{server}__pid"), "{}").content_text()
}

#[test]
fn servers_come_go_stay_and_restart() {
    let workspace = Workspace::new();
    let names = ["changed", "gone", "kept"];
    let config = workspace.config(&names.map(|name| (name, Script::friendly())));
    let host = open_with(&workspace, &config, &["changed__pid", "gone__pid", "kept__pid"]);
    let (kept, changed) = (pid(&host, "kept"), pid(&host, "changed"));
    pid(&host, "gone");
    let gone = workspace.server_process("gone");
    host.barrier();
    while host.take_now(|m| m.method().as_deref() == Some(LIST_CHANGED)).is_some() {}

    let mut entry = config.value()["mcpServers"]["changed"].clone();
    entry["env"] = json!({"NEW": "1"});
    let next =
        config.without("gone").entry("changed", entry).server(&workspace, "added", &Script::friendly());
    workspace.write_config(&next);

    host.expect_notification(LIST_CHANGED);
    host.await_list("the new list", |tools| {
        let has = |name: &str| tools.iter().any(|tool| tool.name == name);
        has("added__pid") && !has("gone__pid") && has("kept__pid") && has("changed__pid")
    });
    wait_until_gone(&[gone]);
    host.call("gone__pid", "{}").failure();
    pid(&host, "added");
    assert_eq!(pid(&host, "kept"), kept, "an unchanged server stays");
    assert_ne!(pid(&host, "changed"), changed, "a changed one is started anew");
    assert_eq!(workspace.starts("kept").len(), 1);
    host.finish();
}

#[test]
fn calls_of_an_unchanged_server_survive_a_reload() {
    let workspace = Workspace::new();
    let script = Script::friendly().tool("slow", r#"{"delay_ms":3000,"echo":true}"#);
    let config = workspace.config(&[("s", script)]);
    let host = open_with(&workspace, &config, &["s__slow"]);
    let id = host.start_call("s__slow", r#"{"patient":1}"#);
    workspace.await_log("s", r#""slow""#, 1);
    workspace.write_config(&config.server(&workspace, "added", &Script::friendly()));
    host.await_tools(&["added__echo"]);
    assert!(host.expect_response(id).content_text().contains("patient"));
    host.finish();
}

#[test]
fn a_broken_config_leaves_everything_as_it_was() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly())]);
    let host = open_with(&workspace, &config, &["s__pid"]);
    let before = pid(&host, "s");
    fs::write(workspace.config_path(), "{ this is no config").unwrap();
    // The next good one proves that the broken one was seen or passed over by then.
    assert_eq!(pid(&host, "s"), before);
    workspace.write_config(&config.clone().server(&workspace, "added", &Script::friendly()));
    host.await_tools(&["s__pid", "added__pid"]);
    assert_eq!(pid(&host, "s"), before);
    host.finish();
}

#[test]
fn a_new_filter_needs_no_restart() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly())]);
    let host = open_with(&workspace, &config, &["s__pid", "s__echo"]);
    let before = pid(&host, "s");
    workspace.write_config(&config.options("s", json!({"deny": ["echo"]})));
    host.await_list("the list without echo", |tools| tools.len() == 1);
    host.call("s__echo", "{}").failure();
    assert_eq!(pid(&host, "s"), before);
    host.finish();
}
