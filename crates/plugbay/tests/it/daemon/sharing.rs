//! Which windows share a server, and what each keeps to itself.

use std::{collections::BTreeSet, fs, thread};

use plugbay_testkit::{Config, Host, Script, Workspace};
use serde_json::json;

use super::{command, config, daemon, opened, told, until, window, window_of, workspace};
use crate::{gateway, shared_instances};

fn friendly() -> Script {
    Script::friendly().tool("env", r#"{"env":true}"#)
}

#[test]
fn five_windows_share_one_server_process_and_keep_their_modes_and_filters() {
    let workspace = workspace(&friendly(), "shared");
    let plain = window(&workspace);
    let [filtered, search] = [
        Config::new().options_of(&workspace, json!({ "scope": "shared", "deny": ["echo"] })),
        Config::new().options_of(&workspace, json!({ "scope": "shared" })).top("mode", json!("search")),
    ]
    .map(|config| config.value().to_string());
    let files = [("filtered.json", filtered), ("search.json", search)];
    let hosts: Vec<Host> = files
        .iter()
        .map(|(name, text)| {
            let file = workspace.path().join(name);
            fs::write(&file, text).expect("a configuration");
            let mut serve = std::process::Command::new(gateway());
            serve.args(["serve", "--config"]).arg(file).current_dir(workspace.path());
            let host = Host::spawn(serve.env_clear().envs(workspace.environment()));
            host.initialize();
            host
        })
        .collect();
    let others = [window(&workspace), window(&workspace)];
    hosts[0].await_tools(&["s__pid"]);
    assert!(!hosts[0].tool_names().contains(&"s__echo".to_owned()));
    hosts[1].await_tools(&["search_tools"]);
    assert!(!hosts[1].tool_names().contains(&"s__pid".to_owned()));
    let all = [&plain, &others[0], &others[1], &hosts[0]];
    let pids: BTreeSet<String> = all.iter().map(|host| told(host, "s__pid")).collect();
    assert_eq!((pids.len(), shared_instances(&workspace, "s")), (1, 1), "{pids:?}");
    assert_eq!(told(&hosts[0], "s__env").len(), told(&plain, "s__env").len());

    let status = command(&workspace, "status");
    let windows = status["daemon"]["windows"].as_array().expect("windows");
    assert_eq!(windows.len(), 5, "{status:#}");
    let modes: Vec<_> = windows.iter().filter_map(|window| window["host"]["mode"].as_str()).collect();
    assert_eq!(modes.iter().filter(|mode| **mode == "search").count(), 1, "{status:#}");
    let server = &status["daemon"]["servers"][0];
    assert_eq!((&server["scope"], &server["instances"]), (&json!("shared"), &json!(1)), "{status:#}");
    plain.finish();
}

#[test]
fn each_window_has_its_own_process_of_a_session_server_which_ends_with_its_bridge() {
    let workspace = workspace(&friendly(), "session");
    let (one, two) = (window(&workspace), window(&workspace));
    let pids = [told(&one, "s__pid"), told(&two, "s__pid")].map(|pid| pid.parse::<u32>().expect("a pid"));
    assert_ne!(pids[0], pids[1]);
    let left = plugbay_testkit::Process::of(pids[0]).expect("it runs");
    drop(one); // killed with SIGKILL
    until("the server of the killed window to end", || !left.is_alive());
    assert_eq!(told(&two, "s__pid"), pids[1].to_string());
    until("one window", || {
        command(&workspace, "status")["daemon"]["windows"].as_array().map(Vec::len) == Some(1)
    });
}

#[test]
fn the_limit_of_instances_of_a_session_server_counts_the_windows_of_all_folders() {
    let workspace = Workspace::new().with_daemon();
    let config = config(&workspace, &friendly(), "session");
    workspace.write_config(&config.options("s", json!({ "scope": "session", "instances": 2 })));
    let windows = ["a", "b", "c"].map(|name| {
        let folder = workspace.path().join(name);
        fs::create_dir(&folder).expect("a folder");
        window_of(&workspace, &folder, &[])
    });
    let pids = windows.each_ref().map(|host| told(host, "s__pid").parse::<u32>().expect("a pid"));
    let alive = || pids.iter().filter(|pid| plugbay_testkit::Process::of(**pid).is_some()).count();
    until("two processes", || alive() == 2);
    until("a status with their sum", || {
        command(&workspace, "status")["daemon"]["servers"][0]["instances"] == json!(2)
    });
}

#[test]
fn the_environment_and_folder_of_a_window_reach_its_own_servers_alone() {
    let workspace = workspace(&friendly(), "project");
    let mut passing = config(&workspace, &friendly(), "project").value();
    passing["mcpServers"]["s"]["env"] = json!({ "KEY": "${WINDOW_KEY:-none}" });
    fs::write(workspace.config_path(), passing.to_string()).expect("a configuration");
    let folders = ["a", "b"].map(|name| {
        let folder = workspace.path().join(name);
        fs::create_dir(&folder).expect("a folder");
        folder
    });
    let hosts = [
        window_of(&workspace, &folders[0], &[("WINDOW_KEY", "canary-a"), ("SECRET", "canary-s")]),
        window_of(&workspace, &folders[1], &[("WINDOW_KEY", "canary-b")]),
        window_of(&workspace, &folders[1], &[("LANG", "xx")]),
    ];
    let environments = [0, 1, 2].map(|index| told(&hosts[index], "s__env"));
    assert!(environments[0].contains("canary-a") && !environments[0].contains("canary-b"));
    assert!(environments[1].contains("canary-b") && !environments[1].contains("canary-a"));
    assert!(!environments[2].contains("canary") && environments[2].contains("xx"));
    assert!(!environments[0].contains("canary-s"));
    for (host, folder) in hosts.iter().zip([&folders[0], &folders[1], &folders[1]]) {
        let cwd = fs::read_link(format!("/proc/{}/cwd", told(host, "s__pid"))).expect("a folder");
        assert_eq!(cwd, folder.canonicalize().expect("a path"));
    }
    daemon(&workspace);
}

#[test]
fn a_window_whose_variable_the_changed_configuration_names_leaves_the_environment_of_the_other() {
    let workspace = workspace(&friendly(), "shared");
    let folder = workspace.path().to_owned();
    let hosts = ["canary-a", "canary-b"].map(|key| window_of(&workspace, &folder, &[("LATER_KEY", key)]));
    assert_eq!(told(&hosts[0], "s__pid"), told(&hosts[1], "s__pid"));
    let mut changed = config(&workspace, &friendly(), "shared").value();
    changed["mcpServers"]["s"]["env"] = json!({ "KEY": "${LATER_KEY}" });
    fs::write(workspace.config_path(), changed.to_string()).expect("a configuration");
    for (host, own, other) in [(&hosts[0], "canary-a", "canary-b"), (&hosts[1], "canary-b", "canary-a")] {
        // A call that the old instance has not answered ends with an error.
        until("the server to have the variable", || host.call("s__env", "{}").text().contains(own));
        assert!(!told(host, "s__env").contains(other));
    }
}

#[test]
fn a_window_that_opens_while_the_configuration_is_broken_gets_no_environment_of_another() {
    let workspace = workspace(&friendly(), "shared");
    let mut passing = config(&workspace, &friendly(), "shared").value();
    passing["mcpServers"]["s"]["env"] = json!({ "KEY": "${WINDOW_KEY}" });
    fs::write(workspace.config_path(), passing.to_string()).expect("a configuration");
    let folder = workspace.path().to_owned();
    let one = window_of(&workspace, &folder, &[("WINDOW_KEY", "canary-a")]);
    assert!(told(&one, "s__env").contains("canary-a"));
    fs::write(workspace.config_path(), r#"{ "mcpServers": { oops"#).expect("a configuration");
    let log = folder.join("state/plugbay/logs/gateway.log");
    until("the daemon to read the broken file", || {
        fs::read_to_string(&log).is_ok_and(|log| log.contains("all servers stay as they were"))
    });
    let two = Host::spawn(workspace.command(&gateway()).env("WINDOW_KEY", "canary-b"));
    two.initialize();
    assert!(!two.tool_names().contains(&"s__env".to_owned()));
    assert!(told(&one, "s__env").contains("canary-a"), "it keeps its servers");
    fs::write(workspace.config_path(), passing.to_string()).expect("a configuration");
    two.await_tools(&["s__env"]);
    let environment = told(&two, "s__env");
    assert!(environment.contains("canary-b") && !environment.contains("canary-a"));
    assert!(told(&one, "s__env").contains("canary-a"));
}

#[test]
fn ten_windows_that_open_at_once_start_one_daemon() {
    let workspace = workspace(&friendly(), "shared");
    let hosts: Vec<Host> = thread::scope(|scope| {
        let open = || opened(Host::spawn(&mut workspace.command(&gateway())));
        let opening: Vec<_> = (0..10).map(|_| scope.spawn(open)).collect();
        opening.into_iter().map(|window| window.join().expect("a window")).collect()
    });
    daemon(&workspace);
    let pids: BTreeSet<String> = hosts.iter().map(|host| told(host, "s__pid")).collect();
    assert_eq!(pids.len(), 1);
}

#[test]
fn a_window_is_served_without_a_daemon_if_there_can_be_none_and_says_so() {
    let workspace = workspace(&friendly(), "shared");
    fs::create_dir_all(workspace.path().join("state/plugbay")).expect("a folder");
    fs::write(workspace.path().join("state/plugbay/daemon"), "in the way").expect("a file");
    let host = Host::spawn(&mut workspace.command(&gateway()));
    let opening = host.initialize();
    assert!(opening.text().contains("without its daemon"), "{opening:?}");
    host.await_tools(&["s__pid"]);
    assert!(workspace.daemons().is_empty());
    host.finish();
}

trait Options {
    fn options_of(self, workspace: &plugbay_testkit::Workspace, options: serde_json::Value) -> Self;
}

impl Options for Config {
    /// The same server with these options.
    fn options_of(self, workspace: &plugbay_testkit::Workspace, options: serde_json::Value) -> Self {
        self.server(workspace, "s", &friendly()).options("s", options)
    }
}
