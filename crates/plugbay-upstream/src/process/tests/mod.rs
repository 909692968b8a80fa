//! Real processes: started, blocked, flooded and killed.

mod guard;
mod lifecycle;
mod start;
mod stderr;

use std::{collections::BTreeMap, future::Future, time::Duration};

use rustix::process::Pid;
use tokio::{io::AsyncReadExt, net::unix::pipe, time::timeout};

use super::{Guard, Process, StderrRing, spawn};
use crate::spec::{Framing, StdioSpec};

/// Far longer than anything here takes, even on a machine at ten times its load.
const DEADLINE: Duration = Duration::from_secs(120);

fn spec(command: &str, args: &[&str]) -> StdioSpec {
    StdioSpec {
        command: command.to_owned(),
        args: args.iter().map(ToString::to_string).collect(),
        env: BTreeMap::new(),
        pass_env: Vec::new(),
        cwd: None,
        framing: Framing::default(),
        origin: crate::spec::Origin::default(),
        references: plugbay_core::secret::KnownSecrets::default(),
    }
}

fn sh(script: &str) -> Process {
    spawn(&spec("/bin/sh", &["-c", script]), &Guard::disabled(), StderrRing::default())
        .expect("/bin/sh starts")
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future).await.expect("done before the deadline")
}

async fn read_all(process: &mut Process) -> String {
    let mut text = String::new();
    let mut stdout = process.stdout.take().expect("stdout is there");
    within(stdout.read_to_string(&mut text)).await.expect("stdout can be read");
    text
}

async fn read_line(stdout: &mut pipe::Receiver) -> String {
    let mut line = String::new();
    loop {
        match within(stdout.read_u8()).await.expect("a whole line") {
            b'\n' => return line,
            byte => line.push(char::from(byte)),
        }
    }
}

async fn read_pids(stdout: &mut pipe::Receiver, count: usize) -> Vec<Pid> {
    let mut pids = Vec::new();
    while pids.len() < count {
        pids.push(pid(&read_line(stdout).await));
    }
    pids
}

fn pid(text: &str) -> Pid {
    text.trim().parse().ok().and_then(Pid::from_raw).expect("a process id")
}

async fn gone(pids: &[Pid]) {
    within(async {
        while pids.iter().any(|pid| is_alive(*pid)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Whether a process is alive. A zombie that waits for process 1 counts as dead.
fn is_alive(pid: Pid) -> bool {
    let exists = rustix::process::test_kill_process(pid).is_ok();
    exists && !state(pid).is_some_and(|state| state == 'Z' || state == 'X')
}

fn state(pid: Pid) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
