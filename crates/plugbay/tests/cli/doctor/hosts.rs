//! Hosts: their files, their processes, and the gateways that they run.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use plugbay_testkit::{DEADLINE, wait_until, write_program};
use serde_json::{Value, json};

use super::clinic::{Clinic, Finding, serve, shell};
use crate::harness::{program, sample};

/// A clinic with Claude Code, which has these servers.
fn claude(servers: &Value) -> Clinic {
    let file = json!({ "numStartups": 1, "mcpServers": servers }).to_string();
    Clinic::of(&sample("calc")).file(".claude.json", &file)
}

fn own() -> Value {
    json!({ "type": "stdio", "command": program(), "args": ["serve"] })
}

fn servers_of(file: &Path) -> Value {
    serde_json::from_str::<Value>(&fs::read_to_string(file).unwrap()).unwrap()["mcpServers"].clone()
}

#[test]
fn a_wired_host_is_no_finding() {
    claude(&json!({ "plugbay": own() })).is_quiet();
}

#[test]
fn hosts_that_do_not_start_plugbay_are_named() {
    let clinic = claude(&json!({ "other": { "command": "x" } }));
    clinic.finds("no-host").about("host", "Claude Code").remedy("run `plugbay setup`");
}

#[test]
fn a_host_file_that_cannot_be_parsed_is_found() {
    let clinic = claude(&json!({ "plugbay": own() })).file(".gemini/settings.json", "{ \"mcpServers\": ");
    clinic.finds("host-file-broken").about("host", "Gemini CLI").says("settings.json");
}

#[test]
fn a_host_entry_that_starts_a_missing_plugbay_is_corrected() {
    let clinic = claude(&json!({ "plugbay": { "command": "/no/such/plugbay", "args": ["serve"] } }));
    clinic.mends("host-program-missing").about("host", "Claude Code").says("/no/such/plugbay");
    assert_eq!(servers_of(&clinic.path(".claude.json"))["plugbay"]["command"], json!(program()));
}

#[test]
fn a_server_that_a_host_also_starts_itself_is_removed_there() {
    let clinic = claude(&json!({ "plugbay": own(), "sums": shell(&serve()) }));
    clinic.harness.configure(&json!({ "mcpServers": { "it": shell(&serve()) } }).to_string());
    clinic.mends("double-entry").about("host", "Claude Code").says("plugbay serves it as it");
    let file = clinic.path(".claude.json");
    assert_eq!(servers_of(&file), json!({ "plugbay": own() }));
}

/// Expects that the host keeps `sums`, although plugbay has `entry`, which starts the same program.
#[track_caller]
fn keeps_its_server(sums: &Value, entry: &Value, message: &str, remedy: &str) {
    let clinic = claude(&json!({ "plugbay": own(), "sums": sums }));
    clinic.harness.configure(&json!({ "mcpServers": { "it": entry } }).to_string());
    let report = clinic.run(&["--json"]).json();
    let findings = report["findings"].as_array().unwrap();
    let double = findings.iter().find(|finding| finding["code"] == "double-entry").expect("a finding");
    assert_eq!(double.get("fix"), None, "{double}");
    Finding(double.clone()).says(message).remedy(remedy);
    clinic.run(&["--fix", "--yes"]);
    assert_eq!(&servers_of(&clinic.path(".claude.json"))["sums"], sums);
}

#[test]
fn a_host_keeps_a_server_that_does_not_work_behind_plugbay() {
    let broken = shell("exit 1");
    keeps_its_server(&broken, &broken, "but it does not work", "`plugbay doctor it`");
    let mut unset = shell(&serve());
    unset["env"] = json!({ "KEY": "${NO_SUCH_KEY}" });
    keeps_its_server(&unset, &unset, "but it does not work", "`plugbay doctor it`");
}

#[test]
fn a_host_keeps_a_server_with_other_variables_than_plugbays() {
    let with_key = |key: &str| {
        let mut entry = shell(&serve());
        entry["env"] = json!({ "KEY": key });
        entry
    };
    keeps_its_server(&with_key("mine"), &with_key("YOUR_TOKEN"), "other variables", "`plugbay get it`");
    keeps_its_server(&with_key("${HOME}"), &shell(&serve()), "other variables", "`plugbay get it`");
}

#[test]
fn a_host_keeps_a_server_that_only_a_project_of_plugbay_has() {
    let clinic = claude(&json!({ "plugbay": own(), "sums": shell(&serve()) }));
    let project = json!({ "mcpServers": { "it": shell(&serve()) } }).to_string();
    let clinic = clinic.file(".plugbay.jsonc", &project);
    clinic.harness.configure("{}");
    let approval = clinic.harness.command(&["approve", "--yes"]).output().unwrap();
    assert!(approval.status.success(), "{approval:?}");
    let finding = clinic.finds("double-entry");
    assert_eq!(finding.0.get("fix"), None, "{finding:?}");
}

#[test]
fn a_fix_of_a_host_is_in_the_journal_and_undone_with_setup() {
    let clinic = claude(&json!({ "plugbay": own(), "sums": shell(&serve()) }));
    let mut entry = shell(&serve());
    entry["deny"] = json!(["evaluate"]);
    let ours = json!({ "mcpServers": { "it": entry } }).to_string();
    clinic.harness.configure(&ours);
    let before = fs::read_to_string(clinic.path(".claude.json")).unwrap();
    assert_eq!(clinic.run(&["--fix", "--yes"]).code, Some(0));
    assert_eq!(servers_of(&clinic.path(".claude.json")), json!({ "plugbay": own() }));
    assert_ne!(clinic.text(), ours);
    let names = fs::read_dir(clinic.path("")).unwrap().map(|file| file.unwrap().file_name());
    let copies: Vec<_> = names.filter(|name| name.to_string_lossy().contains("before")).collect();
    assert!(copies.is_empty(), "{copies:?}");
    let shown = clinic.harness.run(&["setup", "--show"]);
    assert!(shown.out.contains(".claude.json") && shown.out.contains("plugbay doctor"), "{shown:?}");
    let undone = clinic.harness.run(&["setup", "--undo"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(fs::read_to_string(clinic.path(".claude.json")).unwrap(), before);
    assert_eq!(clinic.text(), ours);
}

#[test]
fn a_second_entry_for_plugbay_is_removed() {
    let clinic = claude(&json!({ "gateway": own(), "plugbay": own() }));
    clinic.mends("two-gateways").says("gateway and plugbay");
}

#[test]
fn a_mode_with_a_search_of_its_own_does_not_fit_a_host_that_defers() {
    let clinic = claude(&json!({ "plugbay": own() }));
    let config = json!({ "mode": "search", "mcpServers": { "it": sample("calc") } });
    clinic.harness.configure(&config.to_string());
    clinic.finds("double-search").about("host", "Claude Code").remedy("\"auto\"");
}

fn codex(args: &str) -> Clinic {
    let toml = format!("[mcp_servers.plugbay]\ncommand = \"{}\"\nargs = {args}\n", program());
    Clinic::of(&sample("calc")).file(".codex/config.toml", &toml)
}

#[test]
fn a_host_that_may_be_of_another_kind_is_told_how_to_say_so() {
    let clinic = codex(r#"["serve"]"#);
    clinic.finds("unseen-variant").about("host", "Codex").says("codex/plain if its model").remedy("`--host`");
    codex(r#"["serve", "--host=codex/plain"]"#).is_quiet();
}

#[test]
fn activation_does_not_fit_a_host_that_ignores_list_changes() {
    let clinic = codex(r#"["serve", "--host", "codex"]"#);
    let config = json!({ "mode": "activate", "mcpServers": { "it": sample("calc") } });
    clinic.harness.configure(&config.to_string());
    clinic.finds("ignores-changes").about("host", "Codex");
}

#[test]
fn claude_code_without_tool_search_loads_all_tools() {
    let clinic = claude(&json!({ "plugbay": own() })).variable("ENABLE_TOOL_SEARCH", "false");
    clinic.finds("loads-all-tools").says("ENABLE_TOOL_SEARCH=false").remedy("\"search\"");
    let settings = json!({ "env": { "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS": "1" } }).to_string();
    let clinic = claude(&json!({ "plugbay": own() })).file(".claude/settings.json", &settings);
    clinic.finds("loads-all-tools").says("EXPERIMENTAL_BETAS");
}

#[test]
fn claude_code_with_another_base_url_may_load_all_tools() {
    let settings = json!({ "env": { "ANTHROPIC_BASE_URL": "https://u:hunter2@proxy.example" } }).to_string();
    let clinic = claude(&json!({ "plugbay": own() })).file(".claude/settings.json", &settings);
    let finding =
        clinic.finds("loads-all-tools").says("ANTHROPIC_BASE_URL").remedy("ENABLE_TOOL_SEARCH=true");
    assert!(!finding.0.to_string().contains("hunter2"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_host_that_was_not_restarted_is_found() {
    let clinic = claude(&json!({ "plugbay": own() })).program("claude", "read line");
    let mut host = Command::new(clinic.path("bin/claude"));
    let host =
        Ending(host.env_clear().env("HOME", clinic.harness.path()).stdin(Stdio::piped()).spawn().unwrap());
    // The process has another name until it has started.
    let line = format!("/proc/{}/cmdline", host.0.id());
    wait_until("the host to start", DEADLINE, || {
        fs::read_to_string(&line).unwrap().contains("claude").then_some(())
    });
    let finding = clinic.finds("host-not-restarted").about("host", "Claude Code");
    finding.says(&host.0.id().to_string());
}

#[test]
#[cfg(target_os = "linux")]
fn a_gateway_whose_program_was_replaced_is_found() {
    let clinic = Clinic::of(&sample("calc"));
    let copy = clinic.path("bin/plugbay");
    // Another process writes the copy, so that the file is not open for writing here when it starts.
    assert!(Command::new("cp").arg(program()).arg(&copy).status().unwrap().success());
    let gateway = clinic.harness.command(&["serve"]);
    let environment: Vec<_> =
        gateway.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    let mut gateway = Command::new(&copy);
    gateway.arg("serve").current_dir(clinic.path("")).env_clear();
    gateway.envs(environment.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let gateway = gateway.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let gateway = Ending(gateway);
    let running = clinic.path("state/plugbay/running");
    wait_until("a status file", DEADLINE, || {
        let files = fs::read_dir(&running).ok()?.flatten();
        files
            .map(|file| file.path())
            .find(|path| path.extension().is_some_and(|extension| extension == "json"))
    });
    clinic.is_quiet();
    write_program(&clinic.path("bin/new"), &format!("#!/bin/sh\n{}\n", serve()));
    fs::rename(clinic.path("bin/new"), &copy).unwrap();
    clinic.finds("outdated-gateway").says(&gateway.0.id().to_string()).remedy("restart the host");
}

/// A child process that ends with the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
