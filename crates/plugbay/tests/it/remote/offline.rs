//! A remote that goes away and comes back, while local servers go on.

use std::{
    net::TcpListener,
    process::Command,
    time::{Duration, Instant},
};

use plugbay_testkit::{DEADLINE, Host, HttpGateway, Script, Workspace, patience, wait_until};
use serde_json::json;

use crate::gateway;

const CLEAR_ERROR: Duration = Duration::from_secs(2);
const BACK: Duration = Duration::from_secs(5);

fn aggregator(workspace: &Workspace, address: &str) -> HttpGateway {
    HttpGateway::start_at(&mut workspace.command(&gateway()), address)
}

/// A wrapper with the local server `files`, and this remote.
fn wrapper(workspace: &Workspace, url: &str) -> Host {
    let config = workspace.config(&[("files", Script::friendly())]);
    workspace.write_config(&config.top("remotes", json!({ "team": { "url": url } })));
    let host = workspace.serve(&gateway());
    host.initialize();
    host
}

fn is_error(host: &Host, tool: &str) -> (bool, String) {
    let answer = host.call(tool, "{}");
    let text = answer.text().to_owned();
    (text.contains("\"error\"") || text.contains("\"isError\":true"), text)
}

#[test]
fn local_tools_work_while_the_remote_is_killed_and_remote_tools_come_back() {
    let (far, near) = (Workspace::new(), Workspace::new());
    far.write_config(&far.config(&[("memory", Script::friendly())]).top("mode", json!("search")));
    let gateway = aggregator(&far, "127.0.0.1:0");
    let address = gateway.address().to_owned();
    let host = wrapper(&near, &format!("http://{address}"));
    host.await_tools(&["files__echo", "memory__echo"]);
    assert!(!is_error(&host, "memory__echo").0);

    drop(gateway); // kill -9
    for _ in 0..5 {
        assert!(!is_error(&host, "files__echo").0, "local");
        let begun = Instant::now();
        let (failed, text) = is_error(&host, "memory__echo");
        assert!(failed && text.contains("team"), "{text}");
        assert!(begun.elapsed() < patience(CLEAR_ERROR), "{:?}", begun.elapsed());
    }
    let names = host.tool_names();
    assert!(
        names.contains(&"files__echo".to_owned()) && names.contains(&"memory__echo".to_owned()),
        "{names:?}"
    );

    let _gateway = aggregator(&far, &address);
    wait_until("the remote to work again", BACK, || (!is_error(&host, "memory__echo").0).then_some(()));
    let log = host.stderr();
    assert_eq!(log.matches("is back").count(), 1, "{log}");
    assert_eq!(log.matches("cannot be reached").count(), 1, "one line when it goes: {log}");
    host.finish();
}

#[test]
fn a_list_does_not_wait_for_a_remote_that_nobody_has_seen_and_gets_its_tools_later() {
    let (far, near) = (Workspace::new(), Workspace::new());
    far.write_config(&far.config(&[("memory", Script::friendly())]));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let host = wrapper(&near, &format!("http://{free}/mcp"));
    host.await_tools(&["files__echo"]);
    let begun = Instant::now();
    let (failed, text) = is_error(&host, "memory__echo");
    assert!(failed && text.contains("cannot be reached"), "{text}");
    assert!(begun.elapsed() < patience(CLEAR_ERROR));
    let _gateway = aggregator(&far, &free);
    host.expect_notification("notifications/tools/list_changed");
    host.await_tools(&["files__echo", "memory__echo"]);
    host.finish();
}

#[test]
fn plugbay_list_shows_a_remote_as_one() {
    let (far, near) = (Workspace::new(), Workspace::new());
    far.write_config(&far.config(&[("memory", Script::friendly())]));
    let gateway_far = aggregator(&far, "127.0.0.1:0");
    let url = format!("http://{}", gateway_far.address());
    let remotes = json!({ "team": { "url": url, "token": "canary-secret" } });
    near.write_config(&near.config(&[]).top("remotes", remotes));
    let mut command = Command::new(gateway());
    command.args(["list", "--json", "--config"]).arg(near.config_path());
    command.current_dir(near.path()).env_clear().envs(near.environment());
    let shown = wait_until("the tools of the remote", DEADLINE, || {
        let output = command.output().expect("plugbay runs");
        let shown = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        shown.contains("\"tools\": 2").then_some(shown)
    });
    assert!(shown.contains("\"kind\": \"remote\"") && !shown.contains("canary-secret"), "{shown}");
}
