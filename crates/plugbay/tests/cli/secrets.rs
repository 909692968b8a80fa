//! Secrets of the configuration, which no command prints.

use std::fs;

use serde_json::json;

use crate::harness::{Harness, Run};

const SECRET: &str = "canary-7f3a";

#[test]
fn values_of_variables_are_in_no_error_of_a_server() {
    let harness = Harness::with(&json!({
        "far": { "url": "http://127.0.0.1:9/${SECRET}/mcp?key=${SECRET}" },
        "near": { "command": "/nonexistent/${SECRET}" },
        "folder": { "command": "true", "cwd": "/nonexistent/${SECRET}" },
    }));
    for arguments in [&["list"][..], &["list", "--json"], &["doctor"], &["tools"], &["call", "near.x"]] {
        let run = Run::of(harness.command(arguments).env("SECRET", SECRET).output().expect("plugbay runs"));
        assert!(!run.out.contains(SECRET) && !run.err.contains(SECRET), "{arguments:?}: {run:?}");
    }
    let run = Run::of(harness.command(&["list"]).env("SECRET", SECRET).output().expect("plugbay runs"));
    for part in ["http://127.0.0.1:9: ", "no file /nonexistent/${SECRET}", "directory /nonexistent/${SECRET}"]
    {
        assert!(run.out.contains(part), "{part}: {}", run.out);
    }
}

#[test]
fn the_excerpt_of_a_file_holds_no_token_and_shows_the_host_of_an_address() {
    let harness = Harness::empty();
    let lines = [
        r#"{ "remotes": { "team": { "#.to_owned(),
        format!(r#""url": "http://127.0.0.1:9/{SECRET}", "tols": [],"#),
        format!(r#""token": "{SECRET}", "tolls": [] }} }} }}"#),
    ];
    harness.configure(&lines.join("\n"));
    let run = harness.run(&["list"]);
    assert!(
        run.err.contains("unknown key `tols`") && run.err.contains("\"http://127.0.0.1:9***"),
        "{}",
        run.err
    );
    assert!(!run.err.contains(SECRET) && !run.out.contains(SECRET), "{run:?}");
    let file = harness.path().join("servers.yaml");
    fs::write(&file, "servers:\n  web:\n    command: web\n    env:\n      KEY: \"${UNSET_KEY}\"\n").unwrap();
    let run = harness.run(&["--config", file.to_str().unwrap(), "list"]);
    assert!(run.err.contains("KEY: \"${UNSET_KEY}\""), "{}", run.err);
}
