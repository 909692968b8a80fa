//! `plugbay list`.

use std::fs;

use serde_json::json;

use crate::harness::{Harness, program, sample, samples};

#[test]
fn the_list_shows_every_server_and_its_tokens() {
    let run = Harness::with(&samples()).run(&["list"]);
    let lines: Vec<Vec<&str>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["SERVER", "STATE", "TOOLS", "TOKENS", "ERA"]);
    assert_eq!((lines[1][0], lines[1][1], lines[1][2], lines[1][4]), ("calc", "ready", "6", "legacy"));
    assert_eq!(lines[4][..2], ["total", "19"]);
    assert_eq!((run.code, run.err.lines().count()), (Some(0), 3), "{}", run.err);
    assert!(run.err.lines().all(|line| line.starts_with("✓ ") && line.contains(" tools  ")), "{}", run.err);
    assert!(!run.out.contains('\x1b'), "no colour in a pipe");
}

#[test]
fn a_server_that_fails_is_explained_and_the_others_are_shown() {
    let servers = json!({
        "bad": sample("broken"), "calc": sample("calc"), "gone": { "command": "no-such-program" },
        "odd": { "args": [] }, "off": { "command": "x", "disabled": true },
    });
    let harness = Harness::with(&servers);
    let run = harness.run(&["list"]);
    assert_eq!(run.code, Some(1));
    let explanation = "\nbad
  exit code 3 before it answered
  stderr  broken: reading the settings
          broken: cannot connect to the database at 127.0.0.1:5433: ECONNREFUSED
  try     start the service that this server wants to reach
";
    assert!(run.out.contains(explanation), "{}", run.out);
    assert!(run.out.contains("\ncalc    ready      6"), "{}", run.out);
    assert!(
        run.out.contains("\ngone\n  command not found: `no-such-program` is in none of the folders"),
        "{}",
        run.out
    );
    assert!(!run.out.contains("has no `command`"), "stderr says it: {}", run.out);
    assert!(run.out.ends_with("\ndisabled: off\n"), "{}", run.out);
    assert!(run.err.starts_with("error: server `odd` has no `command`\n --> "), "{}", run.err);

    let json = harness.run(&["list", "--json"]).json();
    let states: Vec<_> =
        json["servers"].as_array().unwrap().iter().map(|row| row["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["error", "ready", "error", "error"]);
    assert_eq!(json["servers"][0]["stderr"][0], "broken: reading the settings");
    assert_eq!((&json["tools"], &json["disabled"]), (&json!(6), &json!(["off"])));
    harness.wait_for_processes();
}

#[test]
fn tools_of_a_server_that_worked_once_are_still_counted() {
    let harness = Harness::empty();
    let script = harness.path().join("server.sh");
    fs::write(&script, format!("#!/bin/sh\nexec {} __sample calc\n", program())).unwrap();
    let entry = json!({ "calc": { "command": "sh", "args": [script] } });
    harness.configure(&json!({ "mcpServers": entry }).to_string());
    assert_eq!(harness.run(&["list"]).code, Some(0));
    fs::write(&script, "exit 7\n").unwrap();
    let run = harness.run(&["list"]);
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("calc    error      6"), "{}", run.out);
    assert!(run.out.contains("  hosts still see the 6 tools of its last run\n"), "{}", run.out);
}

#[test]
fn without_a_configuration_every_command_names_the_ways_to_get_one() {
    let harness = Harness::empty();
    let run = harness.run(&["list"]);
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""));
    let path = harness.user_file();
    let expected =
        format!("error: there is no configuration file yet\n  plugbay looked for {}\n", path.display());
    assert!(run.err.starts_with(&expected), "{}", run.err);
    assert!(run.err.contains("\n  `plugbay setup` moves the servers of your hosts here\n"), "{}", run.err);
    let commands: [&[&str]; 6] =
        [&["tokens"], &["hosts"], &["tools"], &["search", "x"], &["call", "x.y"], &["get", "x"]];
    for command in commands {
        let other = harness.run(command);
        assert_eq!((other.code, &other.err), (Some(1), &run.err), "{command:?}");
    }

    harness.configure("{}");
    assert!(harness.run(&["list"]).err.contains("config.jsonc contains no servers"));
    harness.configure("{ nonsense");
    let run = harness.run(&["list"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.ends_with("error: no server can be used\n  fix the problems above, then try again\n"));
}

#[test]
fn a_gateway_that_starts_itself_comes_to_an_end() {
    let harness = Harness::with(&json!({ "calc": sample("calc") }));
    for (depth, works) in [("3", true), ("4", false)] {
        let run = harness.command(&["list", "--json"]).env("PLUGBAY_DEPTH", depth).output().unwrap();
        let told = String::from_utf8(run.stdout).unwrap();
        assert_eq!(told.contains("remove plugbay itself"), !works, "{told}");
    }
}
