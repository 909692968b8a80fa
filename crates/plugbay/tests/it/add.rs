//! `plugbay add` beside a running gateway, and for a server over HTTP.

use std::{
    fs,
    process::{Command, Output},
};

use plugbay_testkit::{DEADLINE, HttpGateway, Script, Workspace, scripted_server_path, wait_until};

use crate::{gateway, open};

fn plugbay(workspace: &Workspace, words: &[&str]) -> Output {
    let mut command = Command::new(gateway());
    command.args(words).arg("--config").arg(workspace.config_path()).current_dir(workspace.path());
    command.env_clear().envs(workspace.environment()).output().expect("it runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_running_gateway_serves_a_server_that_was_added_until_it_is_removed() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("a", Script::friendly())], &["a__echo"]);
    wait_until("the gateway's status", DEADLINE, || {
        let status =
            Command::new(gateway()).args(["status", "--json"]).envs(workspace.environment()).output();
        text(&status.expect("it runs")).contains("\"pid\"").then_some(())
    });
    let script = workspace.write_script("b", &Script::friendly());
    let program = scripted_server_path().to_string_lossy();
    let mut add = Command::new(gateway());
    add.args(["--config"]).arg(workspace.config_path()).args(["add", "b", "--", &program, &script]);
    let added = add.env_clear().envs(workspace.environment()).output().expect("it runs");
    assert!(text(&added).contains("  b__echo ") && added.status.success(), "{added:?}");
    assert!(text(&added).ends_with("config.json\nthe running gateway reloads it\n"), "{added:?}");
    host.await_tools(&["a__echo", "b__echo"]);
    wait_until("the state of b", DEADLINE, || {
        text(&plugbay(&workspace, &["get", "b"])).contains(" in the gateway with pid ").then_some(())
    });
    assert!(plugbay(&workspace, &["remove", "b"]).status.success());
    host.await_list("the list without b", |tools| tools.iter().all(|tool| !tool.name.starts_with("b__")));
    host.finish();
}

#[test]
fn a_server_over_http_is_tried_before_its_entry_is_written() {
    let behind = Workspace::new();
    behind.write_config(&behind.config(&[("far", Script::friendly())]));
    let remote = HttpGateway::start(&mut behind.command(&gateway()));
    let workspace = Workspace::new();
    let url = format!("http://{}/mcp", remote.address());
    let added =
        plugbay(&workspace, &["add", "--transport", "http", "remote", &url, "-H", "X-Key: k", "X-Other: l"]);
    assert!(added.status.success() && text(&added).contains("  remote__far__echo "), "{added:?}");
    let written = fs::read_to_string(workspace.config_path()).unwrap();
    assert!(written.contains("\"type\": \"http\"") && written.contains("\"X-Other\": \"l\""), "{written}");
    drop(remote);
    let nothing = plugbay(&workspace, &["add", "gone", "http://127.0.0.1:1/mcp"]);
    assert_eq!(nothing.status.code(), Some(1), "{nothing:?}");
    assert_eq!(fs::read_to_string(workspace.config_path()).unwrap(), written);
}
