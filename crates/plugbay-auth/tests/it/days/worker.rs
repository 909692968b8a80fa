//! One of the processes, from the simulation's side.

use std::{path::Path, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use super::child;
use crate::bench::Bench;

/// The report of a process about its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Done,
    Failed(String),
    NeedsLogin(String),
}

pub struct Worker {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts this test binary again as a process that takes commands.
    pub fn start(bench: &Bench, clock: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", child::TEST, "--nocapture"])
            .env(child::CLOCK, clock)
            .env(child::FOLDER, bench.logins())
            .env(child::URL, &bench.url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { process, input, output: BufReader::new(output).lines() }
    }

    pub async fn send(&mut self, command: &str) {
        self.input.write_all(format!("{command}\n").as_bytes()).await.unwrap();
    }

    pub async fn reply(&mut self) -> Reply {
        loop {
            let line = self.output.next_line().await.unwrap().expect("the process lives");
            // The test harness of the process writes to the same output.
            let Some((_, reply)) = line.split_once(child::MARK) else { continue };
            return match reply.split_once(' ').unwrap_or((reply, "")) {
                ("done", _) => Reply::Done,
                ("login", why) => Reply::NeedsLogin(why.to_owned()),
                (_, why) => Reply::Failed(why.to_owned()),
            };
        }
    }

    /// Kills the process with `kill -9`.
    pub async fn kill(mut self) {
        self.process.kill().await.unwrap();
    }
}
