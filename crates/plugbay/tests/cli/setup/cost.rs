//! The modes and tokens in the output of `plugbay setup`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::home::Home;
use crate::harness::program;

/// Four hosts, one of which has so many tools that hosts get different modes.
fn many_tools() -> Home {
    let home = Home::new();
    let clock = |zone: &usize| json!({ "command": program(), "args": ["__sample", "clock"], "env": { "ZONE": zone.to_string() } });
    let clocks: BTreeMap<String, Value> =
        (0..7).map(|zone| (format!("clock-{zone}"), clock(&zone))).collect();
    home.put(".cursor/mcp.json", &json!({ "mcpServers": clocks }).to_string());
    home
}

/// Host, mode and tokens of every host in setup's output.
fn of_setup(report: &Value) -> BTreeMap<String, (Value, Value)> {
    let hosts = report["hosts"].as_array().unwrap().iter();
    hosts
        .map(|host| {
            let cost = &host["cost"];
            (host["id"].as_str().unwrap().to_owned(), (cost["mode"].clone(), cost["now"].clone()))
        })
        .collect()
}

#[test]
fn setup_and_tokens_name_the_same_mode_and_tokens_of_every_host() {
    let home = many_tools();
    let report = home.ok(&["setup", "--yes", "--json"]).json();
    let tokens = home.ok(&["tokens", "--json"]).json();
    let costs = of_setup(&report);
    let modes: Vec<&Value> = costs.values().map(|(mode, _)| mode).collect();
    assert!(modes.iter().any(|mode| *mode != modes[0]), "the hosts get different modes: {costs:?}");
    for (host, cost) in &costs {
        let row = tokens["hosts"].as_array().unwrap().iter().find(|row| row["host"] == **host).unwrap();
        let modes = row["modes"].as_array().unwrap();
        let counted = modes.iter().find(|mode| mode["mode"] == row["mode"]).unwrap();
        assert_eq!(*cost, (row["mode"].clone(), counted["tokens"].clone()), "{host}");
    }

    // plugbay answers each host as it will answer it later.
    let listed = |id: &str| {
        let host = report["hosts"].as_array().unwrap().iter().find(|host| host["id"] == id).unwrap();
        host["tools"].as_u64().unwrap()
    };
    assert_eq!(listed("claude-code"), 20 + 7 * 7, "Claude Code hides tools itself, and so gets all");
    assert_eq!(listed("cursor"), 3, "the tools of search mode");

    let again = home.ok(&["setup", "--yes", "--json"]).json();
    assert_eq!(again["stage"], "nothingToDo");
    let before = |report: &Value| -> Vec<Value> {
        report["hosts"].as_array().unwrap().iter().map(|host| host["cost"]["before"].clone()).collect()
    };
    assert_eq!(before(&again), before(&report), "what the hosts paid before the first setup");
}
