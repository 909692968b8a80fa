//! Lists: pages followed, filters and names applied, and changes announced only if there are any.

use plugbay_testkit::{Script, Workspace};
use serde_json::json;

use crate::{LIST_CHANGED, gateway, open, open_with, warm};

#[test]
fn pages_of_tools_list_are_followed() {
    let workspace = Workspace::new();
    let script = Script::new().set("tools", 95).set("page_size", 10);
    let host = open(&workspace, &[("s", script)], &["s__tool_0", "s__tool_94"]);
    assert_eq!(host.list_tools().len(), 95);
    host.finish();
}

#[test]
fn list_changed_is_sent_only_if_the_tool_list_differs() {
    let workspace = Workspace::new();
    let script = Script::new()
        .tool("same", r#"{"change_tools":["grow","same"]}"#)
        .tool("grow", r#"{"change_tools":["grow","same","new"]}"#)
        .set("tools", r#"["grow","same"]"#);
    let config = workspace.config(&[("s", script)]);
    warm(&workspace, &config, &["s__same"]);
    // From here on the cache has what the server will list.
    let host = workspace.serve(&gateway());
    host.initialize();
    host.list_tools();
    host.call("s__same", "{}");
    let listed = workspace.count_log("s", "listed");
    host.call("s__same", "{}");
    workspace.await_log("s", "listed", listed + 1);
    host.call("s__grow", "{}");
    host.expect_notification(LIST_CHANGED);
    host.await_tools(&["s__new"]);
    let ended = host.finish();
    let changes = ended.messages.iter().filter(|m| m.method().as_deref() == Some(LIST_CHANGED)).count();
    assert_eq!(changes, 1);
}

#[test]
fn allow_and_deny_hold_for_lists_and_calls() {
    let workspace = Workspace::new();
    let script = Script::new().set("tools", r#"["get_a","get_b","get_secret","set_a"]"#);
    let config = workspace
        .config(&[("s", script.clone()), ("open", script)])
        .options("s", json!({"allow": ["get_*"], "deny": ["*secret*"]}));
    let host = open_with(&workspace, &config, &["s__get_a", "open__set_a"]);
    let names = host.tool_names();
    let of_s: Vec<&String> = names.iter().filter(|name| name.starts_with("s__")).collect();
    assert_eq!(of_s, ["s__get_a", "s__get_b"]);
    assert_eq!(names.len(), 6);
    host.call("s__get_b", "{}").result();
    host.call("s__get_secret", "{}").failure();
    host.call("s__set_a", "{}").failure();
    assert_eq!(workspace.count_log("s", r#""tools/call""#), 1, "a denied call does not reach the server");
    host.finish();
}

#[test]
fn tools_can_be_renamed_and_described() {
    let workspace = Workspace::new();
    let script = Script::friendly();
    let options = json!({"rename": {"echo": "say-it"}, "describe": {"echo": "Says \"it\" back: é"}});
    let config = workspace.config(&[("s", script)]).options("s", options);
    let host = open_with(&workspace, &config, &["s__say-it"]);
    let tools = host.list_tools();
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().len(), 2);
    let tool = tools.iter().find(|tool| tool.name == "s__say-it").unwrap().value();
    assert_eq!(tool["description"], "Says \"it\" back: é");
    assert_eq!(host.call("s__say-it", "{}").content_text(), r#"{"name":"echo","arguments":{}}"#);
    host.call("s__echo", "{}").failure();
    host.finish();
}

#[test]
fn long_tool_names_are_shortened_distinctly_and_stably() {
    let workspace = Workspace::new();
    let long = "x".repeat(80);
    let names = json!([format!("{long}a"), format!("{long}b"), "with space", "with_space", "dot.ted"]);
    let script = Script::new().set("tools", names).tool("*", r#"{"echo":true}"#);
    let config = workspace.config(&[("server", script)]);
    let mut runs = Vec::new();
    for _ in 0..2 {
        let host = open_with(&workspace, &config, &["server__dot.ted"]);
        let tools = host.list_tools();
        for tool in &tools {
            assert!(tool.name.len() <= 64 && tool.name.starts_with("server__"), "{}", tool.name);
            let seen = host.call(&tool.name, "{}").content_text();
            let own: serde_json::Value = serde_json::from_str(&seen).unwrap();
            assert!(tool.raw.contains(own["name"].as_str().unwrap()), "{} called {seen}", tool.raw);
        }
        runs.push(tools);
        host.finish();
    }
    assert_eq!(runs[0], runs[1]);
    let mut names: Vec<&String> = runs[0].iter().map(|tool| &tool.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 5);
}

#[test]
fn the_order_of_the_tool_list_is_the_same_in_every_run() {
    let servers: Vec<(String, Script)> = (0..6)
        .map(|n| {
            // The later a server is in the file, the sooner it answers.
            let script = Script::new().set("tools", 9).set("start_delay_ms", (5 - n) * 60);
            (format!("server{n}"), script)
        })
        .collect();
    let servers: Vec<(&str, Script)> = servers.iter().map(|(name, s)| (name.as_str(), s.clone())).collect();
    let all: Vec<String> = (0..6).map(|n| format!("server{n}__tool_8")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut results = Vec::new();
    // Twice with an empty cache, twice with a full one.
    for _ in 0..2 {
        let workspace = Workspace::new();
        for _ in 0..2 {
            let host = open(&workspace, &servers, &all);
            let id = host.request("tools/list", "{}");
            results.push(host.expect_response(id).result().to_owned());
            host.finish();
        }
    }
    assert!(results.iter().all(|result| *result == results[0]));
}
