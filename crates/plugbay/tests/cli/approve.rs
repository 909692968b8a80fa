//! `plugbay approve`.

use std::fs;

use serde_json::json;

use crate::harness::{Harness, sample};

#[test]
fn a_project_file_is_used_once_it_is_approved() {
    let harness = Harness::with(&json!({ "calc": sample("calc") }));
    let file = harness.path().join("plugbay.jsonc");
    let mut entry = sample("clock");
    entry["env"] = json!({ "TOKEN": "${SECRET}" });
    fs::write(&file, json!({ "mcpServers": { "clock": entry } }).to_string()).unwrap();
    let mut command = harness.command(&["approve"]);
    let run = command.env("SECRET", "hunter2").stdin(std::process::Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap());
    assert_eq!(run.status.code(), Some(1));
    assert!(out.contains("  clock  ") && out.contains("__sample clock  (with TOKEN)\n"), "{out}");
    assert!(!out.contains("hunter2"));
    assert!(err.contains("plugbay approve --yes"), "{err}");
    assert_eq!(harness.run(&["list", "--json"]).json()["servers"].as_array().unwrap().len(), 1);

    let run = harness.run(&["approve", "--yes"]);
    assert_eq!(run.code, Some(0));
    assert!(run.err.starts_with("note: approved "), "{}", run.err);
    let mut command = harness.command(&["list", "--json"]);
    let run = command.env("SECRET", "hunter2").output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(json["servers"].as_array().unwrap().len(), 2);
}

#[test]
fn approve_shows_which_model_gets_a_key_and_what_needs_no_consent() {
    let harness = Harness::empty();
    let model =
        |host: &str| json!({ "provider": "openai", "model": "m", "baseUrl": format!("https://{host}/v1/") });
    let mut told = model("b.example");
    told["apiKeyCommand"] = json!(["op", "read", "op://my vault"]);
    let agents = json!({ "model": told, "allowDestructive": true });
    let config = json!({ "search": { "model": model("a.example") }, "naturalLanguage": agents });
    fs::write(harness.path().join("plugbay.jsonc"), config.to_string()).unwrap();
    let run = harness.run(&["approve", "--yes"]);
    let expected = "plugbay.jsonc starts nothing
It also
  sends search queries to https://a.example/v1, with the key in OPENAI_API_KEY
  sends what natural_language reads to https://b.example/v1, with the key that `op read \"op://my vault\"` prints
  lets natural_language change and delete things without asking
";
    assert!(run.out.ends_with(expected), "{}", run.out);
}

#[test]
fn without_a_project_file_there_is_nothing_to_approve() {
    let run = Harness::empty().run(&["approve"]);
    assert_eq!(run.code, Some(1));
    assert!(run.err.starts_with("error: there is no project file in this folder"), "{}", run.err);
    let run = Harness::empty().run(&["approve", "other.jsonc", "--yes"]);
    assert!(run.err.contains("other.jsonc contains nothing to approve"), "{}", run.err);
}

#[test]
fn approve_does_not_ask_for_a_remote() {
    let harness = Harness::empty();
    let file = harness.path().join("servers-config.json");
    fs::write(&file, json!({ "remoteTools": ["x"], "localServers": { "calc": sample("calc") } }).to_string())
        .unwrap();
    let run = harness.run(&["approve", "--yes"]);
    assert!(run.code == Some(0) && !run.err.contains("there is no remote"), "{run:?}");
}
