//! The treatment of known hosts, recognised by their name, their version, and their environment.

use std::process::Command;

use plugbay_testkit::{DEADLINE, Host, Script, Workspace, dress, wait_until};
use serde_json::{Value, json};

use crate::gateway;

/// Forty tools of two servers, one of which has a name that is no identifier.
fn servers() -> Vec<(&'static str, Script)> {
    let typed = r#"{"name":"read.me","description":"Reads","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":123456789012345678901}}}}"#;
    let words = "a description of some length that a model has to read in every turn ".repeat(8);
    let more = (0..39).map(|number| {
        json!({ "name": format!("tool_{number}"), "description": words, "inputSchema": { "type": "object" } })
    });
    let tools: Vec<String> = more.map(|tool| tool.to_string()).chain([typed.to_owned()]).collect();
    let result =
        r#"{"content":[{"type":"text","text":"1"}],"structuredContent":{"n":123456789012345678901}}"#;
    let docs = Script::new().set("tools", format!("[{}]", tools.join(","))).result("read.me", result);
    vec![("my-docs", docs), ("other", Script::friendly())]
}

fn open(host: &Host, name: &str, version: &str) -> Value {
    let info = json!({ "name": name, "version": version });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    let id = host.request("initialize", &params.to_string());
    let opened = host.expect_response(id).result_value();
    host.notify("notifications/initialized", "{}");
    opened
}

fn serve(workspace: &Workspace, args: &[&str], variables: &[(&str, &str)]) -> Host {
    workspace.write_config(&workspace.config(&servers()).top("mode", json!("auto")));
    Host::spawn(workspace.command(&gateway()).args(args).envs(variables.iter().copied()))
}

/// The names of its tools, once all servers have listed theirs.
fn names(host: &Host) -> Vec<String> {
    host.await_list("a list that is decided", |tools| tools.len() > 1)
        .into_iter()
        .map(|tool| tool.name)
        .collect()
}

/// Whether every tool is listed.
fn lists_all(host: &Host) -> bool {
    names(host).iter().any(|name| name.ends_with("__tool_0"))
}

#[test]
fn a_host_that_runs_code_gets_every_tool_typed_and_named_as_a_function() {
    let workspace = Workspace::new();
    let host = serve(&workspace, &[], &[]);
    assert_eq!(
        open(&host, "codex-mcp-client", "0.166.0").get("instructions"),
        None,
        "none in every description"
    );
    let tools = host.await_tools(&["my_docs__read_me", "other__echo"]);
    for tool in &tools {
        assert!(tool.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{}", tool.name);
    }
    let read = tools.iter().find(|tool| tool.name == "my_docs__read_me").expect("listed");
    assert!(read.raw.contains(r#""maximum":123456789012345678901"#), "{}", read.raw);
    assert_eq!(read.value()["title"], "my-docs read.me");
    let result = host.call("my_docs__read_me", "{}");
    assert!(result.result().contains(r#""structuredContent":{"n":123456789012345678901}"#));
    host.finish();
}

#[test]
fn a_variant_is_told_by_the_environment_of_the_host_also_through_the_daemon() {
    for with_daemon in [false, true] {
        let workspace = if with_daemon { Workspace::new().with_daemon() } else { Workspace::new() };
        for (variables, all) in [(&[][..], false), (&[("OPENCODE_EXPERIMENTAL_CODE_MODE", "1")][..], true)] {
            let host = serve(&workspace, &[], variables);
            open(&host, "opencode", "1.18.33");
            assert_eq!(lists_all(&host), all, "daemon: {with_daemon}, {variables:?}");
            host.finish();
        }
    }
}

#[test]
fn a_variant_is_told_by_version_and_environment_together() {
    let elsewhere = [("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")];
    for (version, profile) in [("2.1.197", "claude-code/eager"), ("2.1.325", "claude-code")] {
        let workspace = Workspace::new();
        let host = serve(&workspace, &[], &elsewhere);
        open(&host, "claude-code", version);
        names(&host);
        let known = || shown_status(&workspace).contains(&format!("\"profile\":\"{profile}\""));
        wait_until(&format!("{version} is {profile}"), DEADLINE, || known().then_some(()));
        host.finish();
    }
}

fn shown_status(workspace: &Workspace) -> String {
    let mut command = Command::new(gateway());
    command
        .args(["status", "--json"])
        .current_dir(workspace.path())
        .env_clear()
        .envs(workspace.environment());
    let shown = String::from_utf8(command.output().expect("plugbay runs").stdout).expect("text");
    shown.split_whitespace().collect()
}

#[test]
fn what_cannot_be_seen_can_be_said_on_the_command_line() {
    let workspace = Workspace::new();
    let host = serve(&workspace, &["--host", "codex/plain"], &[]);
    assert!(open(&host, "codex-mcp-client", "0.166.0").get("instructions").is_some());
    assert!(!lists_all(&host));
    host.finish();
}

#[test]
fn a_host_that_works_better_in_the_legacy_era_is_opened_in_it() {
    for (name, answered) in [("goose-cli", false), ("copilot-cli", false), ("claude-code", true)] {
        let workspace = Workspace::new();
        let host = serve(&workspace, &[], &[]);
        let meta = format!(
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"{name}","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}"#
        );
        let id = host.request("server/discover", &dress("{}", &meta));
        let answer = host.expect_response(id);
        if answered {
            assert!(answer.result_value().get("supportedVersions").is_some(), "{name}");
        } else {
            assert!(answer.error().contains("-32601"), "{name}: {}", answer.error());
            assert_eq!(open(&host, name, "1")["protocolVersion"], "2025-11-25");
            names(&host);
        }
        host.finish();
    }
}
