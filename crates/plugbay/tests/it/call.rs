//! `plugbay call` with servers of every kind.

use std::process::{Command, Output};

use plugbay_testkit::{HttpGateway, Script, Workspace};
use serde_json::json;

use crate::{gateway, remote::plain_api};

fn call(workspace: &Workspace, arguments: &[&str]) -> Output {
    let mut command = Command::new(gateway());
    command.arg("--config").arg(workspace.config_path()).arg("call").args(arguments);
    command.current_dir(workspace.path()).env_clear().envs(workspace.environment());
    command.output().expect("plugbay runs")
}

#[track_caller]
fn check(workspace: &Workspace, arguments: &[&str], expected: &str) {
    let output = call(workspace, arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(expected), "{arguments:?}: {output:?}");
}

fn echo(era: &str) -> Script {
    Script::new().set("era", format!("\"{era}\"")).tool("echo", r#"{"echo":true}"#)
}

#[test]
fn the_call_command_sends_the_envelope_of_either_era() {
    let workspace = Workspace::new();
    let servers = ["legacy", "modern", "dual"].map(|era| (era, echo(era)));
    workspace.write_config(&workspace.config(&servers));
    for (era, _) in servers {
        check(&workspace, &[&format!("{era}.echo"), r#"{"canary":1}"#], "canary");
        let log = workspace.log(era);
        let sent = log.iter().find(|line| line.contains("tools/call")).expect("the call");
        assert_eq!(sent.matches("\"_meta\"").count(), 1, "{sent}");
        assert_eq!(sent.contains("protocolVersion"), era != "legacy", "{sent}");
    }
}

#[test]
fn the_call_command_takes_every_tool_name_of_a_remote() {
    let (far, near) = (Workspace::new(), Workspace::new());
    far.write_config(&far.config(&[("s", echo("legacy"))]));
    let remote = HttpGateway::start(&mut far.command(&gateway()));
    let url = format!("http://{}", remote.address());
    near.write_config(&near.config(&[]).top("remotes", json!({ "team": { "url": url } })));
    for name in ["echo", "s__echo", "s.echo", "team.s__echo", "team__s__echo"] {
        check(&near, &[name, r#"{"canary":1}"#], "canary");
    }
    let output = call(&near, &["s.ecko"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no server \"s\""), "{output:?}");
}

#[test]
fn the_call_command_takes_tool_names_of_a_plain_remote() {
    let workspace = Workspace::new();
    let remote = plain_api(&["web_search"]);
    let remotes = json!({ "team": { "url": remote.url() } });
    workspace.write_config(&workspace.config(&[]).top("remotes", remotes));
    check(&workspace, &["web_search"], "web_search");
}
