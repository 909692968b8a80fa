//! A project that was set up for Switchboard, used unchanged.

use std::fs;

use plugbay_testkit::write_program;
use serde_json::{Value, json};

use crate::harness::{Harness, program};

/// A project as `switchboard init` leaves it: a configuration, and a folder for each server.
fn harness() -> Harness {
    let harness = Harness::empty();
    let config = json!({
        "discoverGlobs": [".switchboard/mcps/*/.mcp.json"],
        "suites": { "notes": { "expose": { "deny": ["delete_*"] } } },
        "timeouts": { "childSpawnMs": 80000, "rpcMs": 60000 },
        "introspection": { "mode": "summary", "summaryMaxChars": 160 }
    });
    fs::write(harness.path().join("switchboard.config.json"), config.to_string()).unwrap();
    let command = json!({ "cmd": program(), "args": ["__sample", "notes"], "env": { "LEVEL": "1" } });
    server(&harness, "notes", &command);
    // A program beside its description, because servers run in their own folders.
    server(&harness, "calc", &json!({ "cmd": "./run" }));
    let run = harness.path().join(".switchboard/mcps/calc/run");
    write_program(&run, &format!("#!/bin/sh\nexec '{}' __sample calc\n", program()));
    harness
}

fn server(harness: &Harness, name: &str, command: &Value) {
    let folder = harness.path().join(".switchboard/mcps").join(name);
    fs::create_dir_all(&folder).unwrap();
    let text = json!({
        "name": name, "description": format!("{name} MCP"),
        "switchboardDescription": format!("What {name} is for"), "command": command,
    });
    fs::write(folder.join(".mcp.json"), text.to_string()).unwrap();
}

#[test]
fn switchboard_servers_are_listed_and_their_tools_called() {
    let harness = harness();
    let explicit = ["--config", "switchboard.config.json"];
    let run = harness.run(&[&["list", "--json"][..], &explicit].concat());
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let rows = run.json()["servers"].clone();
    let names: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["calc", "notes"]);
    assert!(rows.as_array().unwrap().iter().all(|row| row["state"] == "ready"), "{rows}");

    let call = ["call", "calc.evaluate", "expression=6 * 7"];
    harness.run(&[&call[..], &explicit].concat()).check(0, "42\n", "");
}

#[test]
fn a_switchboard_project_needs_approval_of_each_server() {
    let harness = harness();
    let run = harness.run(&["list"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("this project file is not approved"), "{}", run.err);

    let run = harness.run(&["approve", "--yes"]);
    assert_eq!(run.code, Some(0));
    assert!(run.out.contains("\n  calc   ./run"), "{}", run.out);
    assert!(run.out.contains("\nIt includes\n") && run.out.contains("/notes/.mcp.json\n"), "{}", run.out);
    assert!(run.err.contains(" and the files that it includes, with their present content"), "{}", run.err);
    harness.run(&["call", "calc.evaluate", "expression=6 * 7"]).check(0, "42\n", "");

    server(&harness, "notes", &json!({ "cmd": "anything-else" }));
    let run = harness.run(&["list", "--json"]);
    assert_eq!(run.json()["servers"].as_array().unwrap().len(), 1);
    assert!(
        run.err.contains("this file has changed since it was approved; plugbay ignores it"),
        "{}",
        run.err
    );
    assert!(run.err.contains(".switchboard/mcps/notes/.mcp.json"), "{}", run.err);
}
