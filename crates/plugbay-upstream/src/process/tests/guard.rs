//! The orphan guard. This test program plays the gateway that is killed, and its helper too.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::AsyncWriteExt as _;

use super::{gone, is_alive, pid, read_line, read_pids, spec, within};
use crate::process::{Exit, Guard, Process, StderrRing, guard_main, spawn};

const ROLE: &str = "PLUGBAY_TEST_ROLE";
const GRACE: Duration = Duration::from_secs(60);

/// A server that ignores the end of its input and, with all its children, TERM.
const STUBBORN: &str = "trap '' TERM; sleep 1000 & echo $!; echo $$; while :; do sleep 1000; done";
/// A server that is as stubborn, with a grandchild in its own session and without the environment.
#[cfg(target_os = "linux")]
const DETACHED: &str = "trap '' TERM; env -i setsid sh -c 'echo $$; while :; do sleep 1000; done' & \
    sleep 1000 & echo $!; while :; do sleep 1000; done";
/// A server that starts a daemon on request: only the cgroup shows who started it.
#[cfg(target_os = "linux")]
const DAEMON: &str = "read order; (env -i setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done' &); \
    sleep 1000 & echo $!; while :; do sleep 1000; done";
#[cfg(not(target_os = "linux"))]
const DETACHED: &str = STUBBORN;

fn arguments(test: &str) -> Vec<String> {
    ["--exact", &format!("process::tests::guard::{test}"), "--nocapture"].map(str::to_owned).into()
}

fn guard() -> Guard {
    Guard::new(std::env::current_exe().expect("this program"), arguments("play_helper"))
}

fn start(guard: &Guard, script: &str) -> Process {
    spawn(&spec("/bin/sh", &["-c", script]), guard, StderrRing::default()).expect("/bin/sh starts")
}

/// Not a test: the helper, started when a guard runs this program with an instance as the last argument.
#[test]
fn play_helper() {
    let instance = std::env::args().next_back().unwrap_or_default();
    if instance.len() == 32 && instance.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        guard_main(&instance);
    }
}

/// Not a test: the gateway. It starts servers, prints their ids and waits to be killed.
#[test]
fn play_gateway() {
    let scripts: &[&str] = match std::env::var(ROLE).as_deref() {
        Ok("gateway") => &[STUBBORN, DETACHED],
        #[cfg(target_os = "linux")]
        Ok("gateway of a daemon") => &[DAEMON],
        _ => return,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let guard = guard();
        let mut servers = Vec::new();
        for script in scripts {
            let mut server = start(&guard, script);
            if script.starts_with("read order") {
                server.stdin.as_mut().expect("stdin").write_all(b"go\n").await.expect("the server reads");
            }
            let pids = read_pids(server.stdout.as_mut().expect("stdout"), 2).await;
            servers.push(server);
            for pid in pids {
                writeln!(std::io::stdout(), "pid {}", pid.as_raw_pid()).expect("the test listens");
            }
        }
        let helper = guard.helper_pid().expect("a helper");
        writeln!(std::io::stdout(), "pid {}\nall", helper.as_raw_pid()).expect("the test listens");
        std::future::pending::<()>().await;
    });
}

/// Not a test: the gateway, which starts one server after the other until it is killed.
#[test]
fn play_starting_gateway() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let guard = guard();
        writeln!(std::io::stdout(), "instance {}", guard.instance()).expect("the test listens");
        let _servers: Vec<Process> = (0..500).map(|_| start(&guard, "sleep 1000 & sleep 1000")).collect();
        std::future::pending::<()>().await;
    });
}

struct Gateway {
    process: Child,
    /// The processes of two servers with their children, and the helper.
    pids: Vec<Pid>,
}

/// Starts this program in the role of a gateway.
fn play(test: &str, role: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(arguments(test))
        .env(ROLE, role)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the gateway starts")
}

impl Gateway {
    fn start() -> Self {
        Self::start_as("gateway")
    }

    fn start_as(role: &str) -> Self {
        let mut process = play("play_gateway", role);
        let lines = BufReader::new(process.stdout.take().expect("stdout")).lines().map_while(Result::ok);
        let mut pids = Vec::new();
        for line in lines {
            // The test harness prints lines of its own, and may leave one unfinished.
            pids.extend(line.split_once("pid ").map(|(_, number)| pid(number)));
            if line.contains("all") {
                break;
            }
        }
        Self { process, pids }
    }

    async fn nothing_left_after_kill(&mut self, kill: impl FnOnce(Pid)) {
        assert!(self.pids.iter().all(|pid| is_alive(*pid)));

        kill(pid(&self.process.id().to_string()));
        self.process.wait().expect("the gateway is dead");

        gone(&self.pids).await;
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

#[tokio::test]
async fn no_orphan_after_kill_9() {
    let mut gateway = Gateway::start();
    assert_eq!(gateway.pids.len(), 5);
    gateway.nothing_left_after_kill(|gateway| kill_process(gateway, Signal::KILL).expect("killed")).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_daemon_of_a_server_is_left_after_kill_9() {
    use crate::process::cgroup::Cgroup;

    // Without a cgroup, nothing shows that the daemon is ours.
    if Cgroup::create("test").is_none() {
        return;
    }
    let mut gateway = Gateway::start_as("gateway of a daemon");
    assert_eq!(gateway.pids.len(), 3);
    gateway.nothing_left_after_kill(|gateway| kill_process(gateway, Signal::KILL).expect("killed")).await;
}

/// Like a host that ends the group it started, with a helper that was asked to end first.
#[tokio::test]
async fn no_orphan_after_kill_9_of_the_group() {
    let mut gateway = Gateway::start();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        kill_process(gateway.pids[4], signal).expect("sent");
    }
    gateway.nothing_left_after_kill(|group| kill_process_group(group, Signal::KILL).expect("killed")).await;
}

/// The kill may come at any point: before the helper, between a start and its registration, and so on.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_orphan_when_killed_while_servers_start() {
    use std::collections::HashSet;

    use crate::process::strays::Strays;

    for delay in [0, 3, 8, 20, 50].map(Duration::from_millis) {
        let mut gateway = play("play_starting_gateway", "gateway");
        let stdout = BufReader::new(gateway.stdout.take().expect("stdout"));
        let instance = stdout
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("instance ").map(|(_, instance)| instance.to_owned()))
            .expect("the gateway says who it is");

        tokio::time::sleep(delay).await;
        gateway.kill().and_then(|()| gateway.wait()).expect("the gateway is dead");

        let mut strays = Strays::of(&instance);
        within(async {
            // Twice: a process that is just starting may not show its marker yet.
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                while !strays.find(&HashSet::new()).is_empty() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        })
        .await;
    }
}

#[tokio::test]
async fn the_guard_helper_exits_with_the_gateway() {
    let guard = guard();
    let mut server = start(&guard, "echo ready; cat");
    read_line(server.stdout.as_mut().expect("stdout")).await;
    let helper = guard.helper_pid().expect("a helper");
    assert!(is_alive(helper));

    assert_eq!(within(server.shutdown(GRACE)).await, Exit::Code(0));
    drop(guard);

    gone(&[helper]).await;
}

/// Such as a browser that a login opened.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_left_its_group_survives_a_regular_exit() {
    let guard = guard();
    let mut server = start(&guard, "setsid sh -c 'echo $$; exec sleep 1000' & cat");
    let detached = read_pids(server.stdout.as_mut().expect("stdout"), 1).await[0];
    let helper = guard.helper_pid().expect("a helper");

    within(server.shutdown(GRACE)).await;
    drop(guard);
    gone(&[helper]).await;

    assert!(is_alive(detached));
    kill_process(detached, Signal::KILL).expect("it is ours");
}

#[tokio::test]
async fn a_killed_guard_helper_is_replaced() {
    let guard = guard();
    let _first = start(&guard, "cat");
    let helper = guard.helper_pid().expect("a helper");

    kill_process(helper, Signal::KILL).expect("it is ours");
    within(async {
        while guard.helper_pid().is_none_or(|replacement| replacement == helper) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;

    assert!(!is_alive(helper) && guard.helper_pid().is_some_and(is_alive));
}

#[tokio::test]
async fn processes_start_without_a_guard_helper_too() {
    let guard = Guard::new("/no/such/helper".into(), Vec::new());

    let server = start(&guard, "exit 4");

    assert!(guard.helper_pid().is_none());
    assert_eq!(within(server.shutdown(GRACE)).await, Exit::Code(4));
}

/// A child that held the guard's pipe would hide our death; one that held another child's, the end of its
/// input.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_inherits_no_pipe_of_the_gateway() {
    let guard = guard();
    let other = start(&guard, "cat");
    let mut server = start(&guard, "ls -l /proc/$$/fd; exit");
    let helper = guard.helper_pid().expect("a helper").as_raw_pid();

    let listing = super::read_all(&mut server).await;

    assert_eq!(listing.matches("pipe:").count().min(3), 3, "{listing}");
    for process in [helper, other.pid()] {
        let pipe = std::fs::read_link(format!("/proc/{process}/fd/0")).expect("its input");
        assert!(!listing.contains(&pipe.display().to_string()), "{listing}");
    }
}
