//! Exits are seen, and nothing survives a shutdown or a drop.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::timeout;

use super::{gone, is_alive, read_line, read_pids, sh, within};
use crate::process::{Exit, Process};

/// A grace for processes that use it up.
const SHORT: Duration = Duration::from_millis(200);
/// A grace for processes that use up the first one, but must end within the second.
const FAIR: Duration = Duration::from_secs(5);
/// A grace for processes that must not use it up.
const LONG: Duration = Duration::from_secs(60);

fn leader(process: &Process) -> Pid {
    Pid::from_raw(process.pid()).expect("a process id")
}

#[tokio::test]
async fn a_process_exit_has_its_code_and_last_stderr() {
    let mut process = sh("echo last words >&2; exit 3");

    let exit = within(process.wait()).await;

    assert_eq!((exit, exit.to_string().as_str()), (Exit::Code(3), "exit code 3"));
    assert_eq!(process.stderr.tail(1), ["last words"]);
    assert_eq!(within(process.wait()).await, exit);
    assert_eq!(within(process.shutdown(LONG)).await, exit);
}

#[tokio::test]
async fn a_process_exit_names_its_signal() {
    let mut process = sh("kill -KILL $$");

    assert_eq!(within(process.wait()).await.to_string(), "killed by SIGKILL");
}

#[tokio::test]
async fn waiting_for_a_process_exit_can_be_resumed() {
    let mut process = sh("read line; exit 7");

    assert!(timeout(Duration::from_millis(20), process.wait()).await.is_err());
    process.stdin = None;

    assert_eq!(within(process.wait()).await, Exit::Code(7));
}

#[tokio::test]
async fn a_process_that_ends_with_its_stdin_ends_at_once() {
    let process = sh("cat; exit 5");
    let pid = leader(&process);
    let start = Instant::now();

    assert_eq!(within(process.shutdown(LONG)).await, Exit::Code(5));

    assert!(start.elapsed() < LONG / 2);
    assert!(super::state(pid).is_none(), "it is reaped, not a zombie");
}

#[tokio::test]
async fn a_process_that_ignores_its_stdin_gets_sigterm() {
    let mut process = sh("trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done");
    read_line(process.stdout.as_mut().expect("stdout")).await;

    assert_eq!(within(process.shutdown(FAIR)).await, Exit::Code(9));
}

#[tokio::test]
async fn a_stopped_process_is_continued_to_end() {
    let process = sh("cat");
    kill_process(leader(&process), Signal::STOP).expect("it is ours");

    assert_eq!(within(process.shutdown(FAIR)).await.to_string(), "killed by SIGTERM");
}

#[tokio::test]
async fn a_process_that_ignores_sigterm_is_killed_with_its_group() {
    let mut process = sh("trap '' TERM; sh -c 'echo $$; while :; do sleep 1000; done' & \
        echo $$; while :; do sleep 1000; done");
    let pids = read_pids(process.stdout.as_mut().expect("stdout"), 2).await;
    let start = Instant::now();

    assert_eq!(within(process.shutdown(SHORT)).await.to_string(), "killed by SIGKILL");

    assert!(start.elapsed() < LONG);
    assert!(!pids.iter().any(|pid| is_alive(*pid)));
}

#[tokio::test]
async fn child_processes_that_a_server_leaves_are_ended() {
    let mut process = sh("trap '' TERM; sh -c 'echo $$; while :; do sleep 1000; done' & \
        trap - TERM; sleep 1000 & echo $!; exit 0");
    let pids = read_pids(process.stdout.as_mut().expect("stdout"), 2).await;

    assert_eq!(within(process.wait()).await, Exit::Code(0));
    assert_eq!(within(process.shutdown(SHORT)).await, Exit::Code(0));

    assert!(!pids.iter().any(|pid| is_alive(*pid)));
}

#[tokio::test]
async fn dropping_a_process_kills_its_group_and_leaves_no_zombie() {
    let mut process = sh("trap '' TERM; sleep 1000 & echo $!; while :; do sleep 1000; done");
    let mut pids = read_pids(process.stdout.as_mut().expect("stdout"), 1).await;
    let pid = leader(&process);
    pids.push(pid);

    drop(process);

    gone(&pids).await;
    within(async {
        while super::state(pid).is_some() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn dropping_a_shutdown_kills_the_process_group() {
    let mut process = sh("trap '' TERM; echo $$; while :; do sleep 1000; done");
    let pids = read_pids(process.stdout.as_mut().expect("stdout"), 1).await;

    assert!(timeout(Duration::from_millis(20), process.shutdown(LONG)).await.is_err());

    gone(&pids).await;
}
