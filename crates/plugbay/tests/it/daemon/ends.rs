//! The daemon is killed, stopped or unused: every call has exactly one answer, and no process is left.

use std::{
    env,
    io::{self, Write as _},
    thread,
    time::{Duration, Instant},
};

use plugbay_testkit::{Host, Process, Script, Signal, patience, wait_until_gone};

use super::{command, daemon, opened, told, until, window, workspace};
use crate::gateway;

/// Within this time a window works again after its daemon was killed, on an otherwise idle machine.
const BACK: Duration = Duration::from_secs(2);
/// The same beside many other tests.
const BACK_UNDER_LOAD: Duration = Duration::from_secs(30);
/// Least time between rounds: a bridge gives up daemons that end more often.
const ROUND: Duration = Duration::from_secs(1);

fn slow() -> Script {
    Script::friendly().tool("hang", r#"{"hang":true}"#).tool("env", r#"{"env":true}"#)
}

/// The rounds and the time limit. With `PLUGBAY_ROUNDS=100` the test measures.
fn rounds() -> (usize, Duration) {
    let set = env::var("PLUGBAY_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    set.map_or((12, BACK_UNDER_LOAD), |rounds| (rounds, BACK))
}

#[test]
fn every_call_has_one_answer_when_the_daemon_is_killed_and_every_window_goes_on() {
    let workspace = workspace(&slow(), "shared");
    let hosts = [window(&workspace), window(&workspace), window(&workspace)];
    let (mut slowest, (rounds, limit)) = (Duration::ZERO, rounds());
    for round in 0..rounds {
        let server: u32 = told(&hosts[0], "s__pid").parse().expect("a pid");
        let server = Process::of(server).expect("it runs");
        let before = workspace.count_log("s", "\"hang\"");
        let calls: Vec<(usize, u64)> = (0..hosts.len())
            .flat_map(|host| [0, 1].map(|_| (host, hosts[host].start_call("s__hang", "{}"))))
            .collect();
        workspace.await_log("s", "\"hang\"", before + calls.len());
        let killed = daemon(&workspace);
        killed.signal(Signal::KILL);
        let since = Instant::now();
        for (host, call) in &calls {
            let answer = hosts[*host].expect_response(call);
            assert!(answer.text().contains("may have had an effect"), "round {round}: {answer:?}");
        }
        let pids: Vec<String> = hosts.iter().map(|host| told(host, "s__pid")).collect();
        slowest = slowest.max(since.elapsed());
        assert!(pids.iter().all(|pid| *pid == pids[0]), "round {round}: {pids:?}");
        // A call that was sent is never sent twice.
        assert_eq!(workspace.count_log("s", "\"hang\""), before + calls.len(), "round {round}");
        wait_until_gone(&[killed, server]);
        daemon(&workspace);
        thread::sleep(ROUND.saturating_sub(since.elapsed()));
    }
    let _ = writeln!(io::stderr(), "{rounds} rounds, slowest {slowest:?}");
    assert!(slowest < patience(limit), "{slowest:?}");
    for host in hosts {
        host.finish();
    }
}

#[test]
fn a_stopped_daemon_ends_its_servers_and_the_next_message_starts_another() {
    let workspace = workspace(&slow(), "shared");
    let host = window(&workspace);
    let server = Process::of(told(&host, "s__pid").parse().expect("a pid")).expect("it runs");
    let first = daemon(&workspace);
    assert_eq!(command(&workspace, "stop")["done"], "stopped");
    wait_until_gone(&[first.clone(), server]);
    assert_eq!(command(&workspace, "stop")["done"], "nothing");
    assert!(workspace.daemons().is_empty());
    told(&host, "s__pid");
    assert_ne!(daemon(&workspace), first);
    host.finish();
}

#[test]
fn a_daemon_without_windows_ends_by_itself_and_leaves_no_process() {
    let workspace = workspace(&slow(), "shared");
    let mut serve = workspace.command(&gateway());
    let host = opened(Host::spawn(serve.env("PLUGBAY_DAEMON_IDLE", "1s")));
    let all =
        [daemon(&workspace), Process::of(told(&host, "s__pid").parse().expect("a pid")).expect("it runs")];
    host.finish();
    wait_until_gone(&all);
    until("no process to be left", || workspace.processes().is_empty());
    assert!(!workspace.path().join("state/plugbay/daemon/daemon.sock").exists());
}

#[test]
fn a_terminated_daemon_drains_and_its_windows_go_on() {
    let workspace = workspace(&slow(), "shared");
    let host = window(&workspace);
    let first = daemon(&workspace);
    let cut = host.start_call("s__hang", "{}");
    workspace.await_log("s", "\"hang\"", 1);
    first.signal(Signal::TERM);
    // Some calls reach the daemon that is ending, the others the next one.
    let calls: Vec<u64> = (0..20).map(|_| host.start_call("s__pid", "{}")).collect();
    for call in calls {
        assert!(host.expect_response(call).result().contains("text"));
    }
    assert!(host.expect_response(cut).text().contains("may have had an effect"));
    wait_until_gone(&[first]);
    told(&host, "s__pid");
    host.finish();
}

#[test]
fn a_stopped_daemon_tells_the_calls_in_flight_and_the_user_that_they_were_cut() {
    let workspace = workspace(&slow(), "shared");
    let host = window(&workspace);
    let first = daemon(&workspace);
    let cut = host.start_call("s__hang", "{}");
    workspace.await_log("s", "\"hang\"", 1);
    let report = command(&workspace, "stop");
    assert_eq!((&report["done"], &report["cut"]), (&"stopped".into(), &1.into()), "{report:#}");
    assert!(host.expect_response(cut).text().contains("may have had an effect"));
    wait_until_gone(&[first]);
    assert!(workspace.daemons().is_empty());
    told(&host, "s__pid");
    host.finish();
}
