//! Which servers start with the gateway, depending on their `warm`, their cached list, and the mode.

use std::fs;

use plugbay_testkit::{Config, Host, Script, Workspace};
use serde_json::{Value, json};

use crate::{LIST_CHANGED, gateway, open_with, warm};

/// One server for each policy, and one whose tools are called.
fn servers(workspace: &Workspace) -> Config {
    let names = ["always", "fresh", "never", "used"];
    let config = workspace.config(&names.map(|name| (name, Script::friendly())));
    ["always", "fresh", "never"]
        .iter()
        .fold(config, |config, name| config.options(name, json!({ "warm": name })))
}

/// Sets the age of every cached list, in hours.
fn age_cache(workspace: &Workspace, hours: u64) {
    for file in
        workspace.files("cache").iter().filter(|file| file.extension().is_some_and(|end| end == "json"))
    {
        let stored = fs::read_to_string(file).unwrap();
        let (first, rest) = stored.split_once('\n').expect("a first line");
        let mut first: Value = serde_json::from_str(first).unwrap();
        let (head, tools) = rest.split_at(usize::try_from(first["head"].as_u64().unwrap()).unwrap());
        let mut head: Value = serde_json::from_str(head).unwrap();
        for list in head["lists"].as_array_mut().into_iter().flatten() {
            let confirmed = list["offer"]["confirmed"].as_u64().expect("a time");
            list["offer"]["confirmed"] = json!(confirmed - hours * 3600);
        }
        let head = head.to_string();
        first["head"] = json!(head.len());
        fs::write(file, format!("{first}\n{head}{tools}")).unwrap();
    }
}

/// A second run, after the servers that start with the gateway have started.
fn second_run(workspace: &Workspace) -> Host {
    let host = workspace.serve(&gateway());
    host.initialize();
    assert_eq!(host.list_tools().len(), 8, "all tools, from the cache");
    workspace.await_log("always", "listed", 2);
    host
}

fn starts(workspace: &Workspace) -> [usize; 4] {
    ["always", "fresh", "never", "used"].map(|server| workspace.starts(server).len())
}

const ALL: [&str; 4] = ["always__echo", "fresh__echo", "never__echo", "used__echo"];

#[test]
fn a_server_with_a_fresh_list_starts_at_its_first_call_and_lists_again() {
    let workspace = Workspace::new();
    warm(&workspace, &servers(&workspace), &ALL);
    assert_eq!(starts(&workspace), [1; 4]);
    workspace.write_script("used", &Script::friendly().tool("new", "{}"));
    let host = second_run(&workspace);
    assert_eq!(starts(&workspace), [2, 1, 1, 1]);
    host.call("used__echo", "{}").result();
    host.expect_notification(LIST_CHANGED);
    assert!(host.tool_names().contains(&"used__new".to_owned()), "listed behind the call");
    assert_eq!(starts(&workspace), [2, 1, 1, 2]);
    host.finish();
}

#[test]
fn a_server_with_a_stale_list_starts_unless_it_shall_never() {
    let workspace = Workspace::new();
    warm(&workspace, &servers(&workspace), &ALL);
    age_cache(&workspace, 25);
    let host = second_run(&workspace);
    workspace.await_log("fresh", "listed", 2);
    workspace.await_log("used", "listed", 2);
    host.finish();
    assert_eq!(starts(&workspace), [2, 2, 1, 2]);
    // The lists were confirmed, so they are fresh again.
    let host = workspace.serve(&gateway());
    host.initialize();
    host.list_tools();
    workspace.await_log("always", "listed", 3);
    host.finish();
    assert_eq!(starts(&workspace), [3, 2, 1, 2]);
}

#[test]
fn mode_activate_keeps_every_server_warm() {
    let workspace = Workspace::new();
    let config = servers(&workspace);
    warm(&workspace, &config, &ALL);
    let host = open_with(&workspace, &config.top("mode", json!("activate")), &["gateway_activate"]);
    for server in ["always", "fresh", "never", "used"] {
        workspace.await_log(server, "listed", 2);
    }
    host.finish();
}

#[test]
fn a_server_that_never_answered_is_tried_again_whatever_its_policy() {
    let workspace = Workspace::new();
    let dead = Script::new().set("exit", r#"{"code":1}"#);
    let config = workspace.config(&[("dead", dead), ("used", Script::friendly())]);
    let config = config.options("dead", json!({ "warm": "never" }));
    warm(&workspace, &config, &["used__echo"]);
    workspace.await_log("dead", "start ", 1);
    workspace.write_script("dead", &Script::friendly());
    open_with(&workspace, &config, &["dead__echo"]).finish();
}
