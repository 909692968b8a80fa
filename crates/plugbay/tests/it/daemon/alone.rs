//! Windows without a usable daemon: they open anyway, and return to the daemon later.

use std::{
    fs::{self, File},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::Command,
};

use plugbay_testkit::{Host, Script, Signal, Workspace, wait_until_gone};
use serde_json::{Value, json};

use super::{command, config, daemon, opened, told, until, window, workspace};
use crate::gateway;

/// The folder of the daemon, before it exists.
fn folder(workspace: &Workspace) -> PathBuf {
    let folder = workspace.path().join("state/plugbay/daemon");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).expect("a folder");
    folder
}

#[test]
fn a_window_opens_at_a_daemon_while_another_process_holds_the_start_lock() {
    let workspace = workspace(&Script::friendly(), "shared");
    let lock = File::create(folder(&workspace).join("start.lock")).expect("a lock");
    lock.lock().expect("it is free");
    let host = window(&workspace);
    daemon(&workspace);
    told(&host, "s__pid");
    host.finish();
}

#[test]
fn a_window_alone_is_audited_and_goes_back_with_its_activated_servers() {
    let workspace = Workspace::new().with_daemon();
    let audit = workspace.path().join("audit.jsonl");
    let config = config(&workspace, &Script::friendly(), "shared").top("mode", json!("activate"));
    workspace.write_config(&config.top("audit", json!({ "file": audit })));
    // No daemon can listen there.
    let in_the_way = folder(&workspace).join("daemon.sock");
    fs::create_dir(&in_the_way).expect("a folder");
    let host = Host::spawn(workspace.command(&gateway()).env("PLUGBAY_DAEMON_RETURN", "100ms"));
    assert!(host.initialize().text().contains("without its daemon"));
    workspace.await_log("s", "listed", 1);
    host.call("gateway_activate", r#"{"name":"s.p*"}"#);
    host.await_tools(&["s__pid"]);
    let doctor = told_by(&workspace, &["doctor", "--json"]);
    let codes: Vec<_> = doctor["findings"].as_array().into_iter().flatten().map(|one| &one["code"]).collect();
    assert!(codes.contains(&&json!("without-daemon")), "{doctor:#}");
    let own = workspace.server_process("s");
    assert_eq!(told(&host, "s__pid"), own.pid.to_string());
    until("the call to be audited", || lines(&audit) == 1);
    assert!(workspace.daemons().is_empty());

    let before = host.count_notifications("notifications/tools/list_changed");
    fs::remove_dir(&in_the_way).expect("it is empty");
    until("the daemon to have the window", || {
        let status = command(&workspace, "status");
        status["daemon"]["windows"].as_array().is_some_and(|windows| !windows.is_empty())
    });
    until("the lists to change", || host.count_notifications("notifications/tools/list_changed") > before);
    let names = host.tool_names();
    assert!(names.contains(&"s__pid".to_owned()) && !names.contains(&"s__echo".to_owned()), "{names:?}");
    assert_ne!(told(&host, "s__pid"), own.pid.to_string());
    wait_until_gone(&[own]);
    until("the call to be audited", || lines(&audit) == 2);
    host.finish();
}

#[test]
fn a_window_with_its_own_audit_log_says_in_the_status_why_it_has_no_daemon() {
    let workspace = workspace(&Script::friendly(), "shared");
    let mut serve = workspace.command(&gateway());
    let host = opened(Host::spawn(serve.arg("--audit").arg(workspace.path().join("audit.jsonl"))));
    assert!(workspace.daemons().is_empty());
    until("the status to be written", || {
        let status = told_by(&workspace, &["status", "--json"]);
        status["gateways"][0]["withoutDaemon"].as_str().is_some_and(|reason| reason.contains("--audit"))
    });
    assert!(host.finish().stderr.contains("without its daemon"));
}

/// The JSON output of a command, whatever its exit code.
fn told_by(workspace: &Workspace, arguments: &[&str]) -> Value {
    let mut command = Command::new(gateway());
    command.args(arguments).current_dir(workspace.path()).env_clear().envs(workspace.environment());
    let output = command.output().expect("it runs");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn lines(file: &Path) -> usize {
    fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

#[test]
fn a_window_stays_at_the_daemon_when_many_restarts_hand_its_session_over() {
    let workspace = workspace(&Script::friendly(), "shared");
    let host = window(&workspace);
    for _ in 0..8 {
        assert_eq!(command(&workspace, "restart")["done"], "restarted");
        told(&host, "s__pid");
    }
    let status = command(&workspace, "status");
    assert_eq!(status["daemon"]["windows"].as_array().map(Vec::len), Some(1), "{status:#}");
    host.finish();
}

#[test]
fn a_window_whose_program_was_replaced_or_removed_keeps_its_session_at_a_daemon() {
    let workspace = workspace(&Script::friendly(), "shared");
    let program = workspace.path().join("plugbay");
    let install = || fs::hard_link(gateway(), &program).or_else(|_| fs::copy(gateway(), &program).map(drop));
    install().expect("a program");
    let host = opened(Host::spawn(&mut workspace.command(&program)));
    let kill = || {
        let daemon = daemon(&workspace);
        daemon.signal(Signal::KILL);
        wait_until_gone(&[daemon]);
        // Unlike a call, this may be sent twice: the pipe of a killed daemon may still be open.
        host.await_tools(&["s__pid"]);
    };
    fs::remove_file(&program).and_then(|()| install()).expect("an update");
    kill();
    told(&host, "s__pid");
    let running = fs::read_link(format!("/proc/{}/exe", daemon(&workspace).pid)).expect("its program");
    assert_eq!(running, program.canonicalize().expect("a path"));
    fs::remove_file(&program).expect("it is there");
    kill();
    told(&host, "s__pid");
    daemon(&workspace);
    host.finish();
}
