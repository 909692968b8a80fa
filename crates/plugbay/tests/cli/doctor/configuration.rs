//! Broken configurations.

use std::fs;

use serde_json::json;

use super::clinic::{Clinic, shell};
use crate::harness::{program, sample};

#[test]
fn a_missing_configuration_is_found() {
    let clinic = Clinic::new(&json!({}));
    fs::remove_file(clinic.harness.user_file()).unwrap();
    clinic.finds("no-configuration").about("file", clinic.harness.user_file()).remedy("plugbay setup");
}

#[test]
fn a_configuration_with_broken_syntax_is_found_with_its_place() {
    let clinic = Clinic::new(&json!({}));
    clinic.harness.configure("{ \"mcpServers\": {\n  \"a\": { \"command\": \"x\" \n}");
    clinic.finds("broken-file").about("file", clinic.harness.user_file()).seen("config.jsonc:");
}

#[test]
fn a_misspelt_key_of_the_servers_is_corrected() {
    let clinic = Clinic::new(&json!({}));
    let text = json!({ "mcpServer": { "calc": sample("calc") } }).to_string();
    clinic.harness.configure(&format!("// mine\n{text}"));
    clinic.mends("unknown-key").says("`mcpServer`").remedy("did you mean `mcpServers`?");
    assert!(clinic.text().starts_with("// mine\n{\"mcpServers\":"), "{}", clinic.text());
}

#[test]
fn a_misspelt_key_of_an_entry_is_corrected() {
    let mut entry = sample("calc");
    entry["enviroment"] = json!({ "A": "1" });
    Clinic::of(&entry).mends("unknown-key").about("server", "it").remedy("`environment`");
}

#[test]
fn a_foreign_key_is_found() {
    let mut entry = sample("calc");
    entry["colour"] = "red".into();
    Clinic::of(&entry).finds("unknown-key").says("`colour`").remedy("remove it");
}

#[test]
fn a_key_that_belongs_into_the_plugbay_object_is_moved() {
    let mut entry = sample("calc");
    entry["deny"] = json!(["evaluate"]);
    let clinic = Clinic::of(&entry);
    clinic.mends("misplaced-key").about("server", "it");
    assert!(clinic.text().contains("plugbay"), "{}", clinic.text());
}

#[test]
fn an_unset_variable_is_found() {
    let entry = json!({ "command": "sh", "env": { "KEY": "${NO_SUCH_KEY}" } });
    Clinic::of(&entry).finds("unset-variable").about("server", "it").says("`NO_SUCH_KEY` is not set");
}

#[test]
fn a_variable_of_another_program_is_found() {
    let entry = json!({ "command": "sh", "env": { "KEY": "${input:key}" } });
    Clinic::of(&entry).finds("foreign-variable").says("${input:key}").remedy("${VAR}");
}

#[test]
fn an_invalid_value_is_found() {
    let mut entry = sample("calc");
    entry["plugbay"] = json!({ "timeout": "2 hours" });
    Clinic::of(&entry).finds("invalid-value").about("server", "it").says("is not a duration");
}

#[test]
fn a_doubtful_value_is_found() {
    let clinic = Clinic::new(&json!({}));
    let entry = sample("calc");
    let text =
        format!("{{ \"mode\": \"all\", \"mode\": \"search\", \"mcpServers\": {{ \"it\": {entry} }} }}");
    clinic.harness.configure(&text);
    clinic.finds("doubtful-value").says("`mode` is given twice");
}

#[test]
fn an_unapproved_project_file_is_shown_and_never_approved_by_yes() {
    let project = json!({ "mcpServers": { "theirs": sample("clock") } }).to_string();
    let clinic = Clinic::of(&sample("calc")).file("plugbay.jsonc", &project);
    let shown = clinic.run(&["--fix"]);
    assert!(shown.out.contains("__sample clock"), "the proposal is shown: {}", shown.out);
    assert_eq!(shown.code, Some(1));
    let run = clinic.run(&["--fix", "--yes"]);
    assert!(run.err.contains("--yes does not cover unapproved-file: run `plugbay approve`"), "{}", run.err);
    clinic.finds("unapproved-file").about("file", clinic.path("plugbay.jsonc"));
}

#[test]
fn an_approved_project_file_stays_approved_when_it_is_mended() {
    let mut entry = sample("clock");
    entry["deny"] = json!(["nothing"]);
    let clinic = Clinic::of(&sample("calc"))
        .file("plugbay.jsonc", &json!({ "mcpServers": { "theirs": entry } }).to_string());
    assert_eq!(clinic.harness.run(&["approve", "--yes"]).code, Some(0));
    clinic.mends("misplaced-key").about("server", "theirs");
}

#[test]
fn an_entry_with_command_and_url_loses_the_one_that_is_not_used() {
    let mut entry = sample("calc");
    entry["url"] = "http://127.0.0.1:9/mcp".into();
    entry["type"] = "stdio".into();
    let clinic = Clinic::of(&entry);
    clinic.mends("command-and-url").says("plugbay uses \"command\"");
    assert!(!clinic.text().contains("127.0.0.1"));
}

#[test]
fn a_whole_command_line_is_split_into_command_and_args() {
    let clinic = Clinic::of(&json!({ "command": format!("{} __sample calc", program()) }));
    clinic.mends("command-line").about("server", "it").seen("__sample calc");
    assert!(clinic.text().contains(r#"["__sample", "calc"]"#), "{}", clinic.text());
}

#[test]
fn an_entry_that_runs_plugbay_itself_is_removed() {
    let clinic =
        Clinic::new(&json!({ "calc": sample("calc"), "me": { "command": program(), "args": ["serve"] } }));
    clinic.mends("runs-itself").about("server", "me");
    assert!(clinic.text().contains("calc") && !clinic.text().contains("serve"));
}

#[test]
fn a_disabled_server_is_named_with_the_way_to_enable_it() {
    let mut entry = sample("calc");
    entry["disabled"] = true.into();
    Clinic::of(&entry).finds("disabled").remedy("plugbay enable it");
}

#[test]
fn a_server_whose_tools_are_all_denied_is_found() {
    let mut entry = sample("calc");
    entry["plugbay"] = json!({ "allow": ["no_such_*"] });
    Clinic::of(&entry).finds("tools-hidden").says("hide all of them");
}

#[test]
fn a_server_without_tools_is_found() {
    let script = plugbay_testkit::Script::new().text();
    let entry = json!({ "command": plugbay_testkit::scripted_server_path(), "args": [script] });
    Clinic::of(&entry).finds("no-tools").about("server", "it");
}

#[test]
fn a_secret_of_an_entry_is_never_shown() {
    let mut entry = shell("exit 1");
    entry["env"] = json!({ "TOKEN": "hunter2" });
    entry["colour"] = "red".into();
    let clinic = Clinic::of(&entry);
    for arguments in [&[][..], &["--json"], &["--fix", "--yes"]] {
        let run = clinic.run(arguments);
        assert!(!run.out.contains("hunter2") && !run.err.contains("hunter2"), "{run:?}");
    }
}

#[test]
fn a_mistake_in_a_yaml_configuration_is_found_once() {
    let clinic = Clinic::new(&json!({}));
    let file = clinic.harness.path().join("servers.yaml");
    let entry = "servers:\n  web:\n    command: web\n    env: { KEY: \"${NOT_SET_ANYWHERE}\" }\n";
    fs::write(&file, entry).unwrap();
    let run = clinic.harness.run(&["--config", file.to_str().unwrap(), "doctor", "--json"]);
    let findings = run.json()["findings"].take();
    let errors: Vec<_> =
        findings.as_array().unwrap().iter().filter(|finding| finding["severity"] == "error").collect();
    assert_eq!(errors.len(), 1, "{findings}");
    assert_eq!(errors[0]["about"], json!({ "kind": "server", "name": "web" }));
}

#[test]
fn a_server_name_that_cannot_be_used_is_found_once() {
    let clinic = Clinic::new(&json!({ "my server!": sample("calc") }));
    let findings = clinic.run(&["--json"]).json()["findings"].take();
    let errors = findings.as_array().unwrap().iter().filter(|finding| finding["severity"] == "error");
    assert_eq!(errors.count(), 1, "{findings}");
    clinic.finds("invalid-value").about("server", "my-server").says("`my server!`").remedy("rename it");
}

#[test]
fn a_key_of_a_server_at_the_top_level_is_found_with_its_place() {
    let clinic = Clinic::new(&json!({}));
    clinic.harness.configure(&json!({ "results": {}, "mcpServers": { "it": sample("calc") } }).to_string());
    let finding = clinic.finds("misplaced-key").about("file", clinic.harness.user_file());
    finding.says("`results`").remedy("move it into `defaults`, or into the `plugbay` object of a server");
}

#[test]
fn a_misspelt_scheme_of_an_address_is_found() {
    let entry = json!({ "url": "htps://mcp.example/mcp" });
    Clinic::of(&entry).finds("invalid-value").about("server", "it").remedy("`https://` or `http://`");
}
