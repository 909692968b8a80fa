//! Servers that hosts still start themselves.

use std::{fs, process::Stdio};

use serde_json::{Value, json};

use super::clinic::{Clinic, Finding, serve, shell};
use crate::harness::{Run, program, sample};

/// A clinic in which plugbay has `it`, and Claude Code starts plugbay and these servers.
fn claude(servers: &Value) -> Clinic {
    let mut servers = servers.clone();
    servers["plugbay"] = json!({ "command": program(), "args": ["serve"] });
    let file = json!({ "mcpServers": servers }).to_string();
    Clinic::of(&sample("calc")).file(".claude.json", &file)
}

fn codes(run: &Run) -> Vec<String> {
    let report = run.json();
    let findings = report["findings"].as_array().expect("findings").iter();
    findings.map(|finding| finding["code"].as_str().expect("a code").to_owned()).collect()
}

#[test]
fn a_server_that_a_host_still_starts_is_named_with_its_reason() {
    let clinic = claude(&json!({ "github": shell("echo boom >&2; exit 1") }));
    let before = fs::read_to_string(clinic.path(".claude.json")).unwrap();
    let finding = clinic.finds("left-in-host").about("server", "github").seen("boom");
    let finding = finding.says("Claude Code").says("(server-failed)").remedy("then run `plugbay setup`");
    assert_eq!(finding.0.get("fix"), None);
    assert_eq!(fs::read_to_string(clinic.path(".claude.json")).unwrap(), before);
    assert!(!clinic.text().contains("github"), "{}", clinic.text());
}

#[test]
fn a_variable_that_a_server_in_a_host_lacks_is_named() {
    let mut entry = shell(&serve());
    entry["env"] = json!({ "KEY": "${NO_SUCH_KEY}" });
    let clinic = claude(&json!({ "github": entry }));
    clinic.finds("left-in-host").says("NO_SUCH_KEY is not set. (unset-variable)").remedy("set NO_SUCH_KEY");
}

#[test]
fn a_server_in_a_host_that_works_can_be_moved() {
    let clinic = claude(&json!({ "sums": shell(&serve()) }));
    clinic.finds("left-in-host").says("It works with plugbay, too").remedy("run `plugbay setup`");
    let run = clinic.run(&["sums"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("sums works: 6 tools"), "{}", run.out);
}

#[test]
fn a_server_that_only_a_host_has_is_examined_when_it_is_named() {
    let clinic = claude(&json!({ "github": shell("echo boom >&2; exit 1"), "other": shell("exit 1") }));
    let run = clinic.run(&["github", "--json"]);
    assert_eq!((run.code, codes(&run)), (Some(1), vec!["server-failed".into(), "left-in-host".into()]));
    let run = clinic.run(&["githb"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("did you mean github?"), "{}", run.err);
}

#[test]
fn a_server_of_a_host_that_does_not_start_plugbay_is_examined_when_it_is_named() {
    let file = json!({ "mcpServers": { "github": shell("exit 1") } }).to_string();
    let clinic = Clinic::of(&sample("calc")).file(".claude.json", &file);
    clinic.finds("no-host");
    let run = clinic.run(&["github", "--json"]);
    assert_eq!((run.code, codes(&run)), (Some(1), vec!["server-failed".into(), "left-in-host".into()]));
}

#[test]
fn a_name_that_only_a_host_has_leads_to_plugbays_server() {
    let clinic = claude(&json!({ "theirs": shell("exit 1") }));
    let servers = json!({ "ours": shell("exit 1"), "calc": sample("calc") });
    clinic.harness.configure(&json!({ "mcpServers": servers }).to_string());
    let run = clinic.run(&["theirs", "--json"]);
    assert_eq!((run.code, codes(&run)), (Some(1), vec!["server-failed".to_owned()]), "{run:?}");
    assert_eq!(run.json()["findings"][0]["about"]["name"], "ours");
}

#[test]
fn a_server_of_a_project_file_is_named_and_not_started() {
    let clinic = claude(&json!({}));
    let marker = clinic.path("started");
    let script = format!("touch '{}'; {}", marker.display(), serve());
    let project = json!({ "mcpServers": { "theirs": shell(&script) } }).to_string();
    let clinic = clinic.file("repo/.mcp.json", &project);
    for names in [&[][..], &["theirs"]] {
        let mut command = clinic.harness.command(&[&["doctor", "--json"], names].concat());
        command.current_dir(clinic.path("repo")).stdin(Stdio::null());
        let run = Run::of(command.output().unwrap());
        assert_eq!((run.code, codes(&run)), (Some(0), vec!["left-in-host".to_owned()]), "{run:?}");
        let finding = Finding(run.json()["findings"][0].clone()).about("server", "theirs");
        finding.says(".mcp.json").remedy("plugbay approve");
        assert!(!marker.exists(), "plugbay started a server that nobody has approved");
    }
}
