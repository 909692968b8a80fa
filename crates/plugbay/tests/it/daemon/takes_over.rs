//! A newer plugbay takes over from the running daemon, and no window loses a call.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use plugbay_testkit::{Host, Script, Workspace, wait_until_gone};

use super::{command, daemon, opened, told, window, workspace};
use crate::gateway;

fn slow() -> Script {
    Script::friendly().tool("slow", r#"{"delay_ms":700,"pid":true}"#)
}

/// A window of a plugbay that was built at this time.
fn built(workspace: &Workspace, nanoseconds: u64) -> Host {
    let mut serve = workspace.command(&gateway());
    opened(Host::spawn(serve.env("PLUGBAY_BUILT", nanoseconds.to_string())))
}

#[test]
fn a_newer_build_takes_over_under_load_and_no_call_is_lost() {
    let workspace = workspace(&slow(), "shared");
    let old = [built(&workspace, 1), built(&workspace, 1), built(&workspace, 1)];
    let first = daemon(&workspace);
    let in_flight: Vec<u64> = old.iter().map(|host| host.start_call("s__slow", "{}")).collect();
    workspace.await_log("s", "\"slow\"", old.len());
    let done = AtomicBool::new(false);
    // A host's parts are not shared between threads: each thread has its own window.
    let [one, two, three] = old;
    let load = |host: Host, slow: u64| {
        let mut calls = 0;
        while !done.load(Ordering::Relaxed) || calls < 20 {
            told(&host, "s__pid");
            calls += 1;
        }
        assert!(host.expect_response(slow).result().contains("text"));
        host
    };
    let hosts: Vec<Host> = thread::scope(|scope| {
        let load = &load;
        let running = [(one, in_flight[0]), (two, in_flight[1]), (three, in_flight[2])]
            .map(|(host, slow)| scope.spawn(move || load(host, slow)));
        let newer = built(&workspace, 2);
        told(&newer, "s__pid");
        done.store(true, Ordering::Relaxed);
        running.into_iter().map(|one| one.join().expect("no call lost")).chain([newer]).collect()
    });
    wait_until_gone(&[first]);
    daemon(&workspace);
    // An older window works with the newer daemon.
    told(&built(&workspace, 1), "s__pid");
    for host in hosts {
        host.finish();
    }
}

#[test]
fn a_restart_hands_every_window_over_and_keeps_what_a_call_in_flight_waits_for() {
    let workspace = workspace(&slow(), "shared");
    let host = window(&workspace);
    let first = daemon(&workspace);
    let call = host.start_call("s__slow", "{}");
    workspace.await_log("s", "\"slow\"", 1);
    let status = command(&workspace, "restart");
    assert_eq!(status["done"], "restarted");
    assert_ne!(status["daemon"]["pid"], first.pid);
    assert!(host.expect_response(call).result().contains("text"));
    wait_until_gone(&[first]);
    told(&host, "s__pid");
    host.finish();
}
