//! A running server process: its pipes, its exit, and its end.

use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};

use rustix::process::Signal;
use tokio::{
    net::unix::pipe,
    process::Command,
    task::JoinHandle,
    time::{Instant, timeout, timeout_at},
};
use tracing::Instrument;

use super::{
    Exit, Guard, StderrRing,
    stderr::{drain, drain_now},
    tree::{LAST_PATIENCE, Tree},
};

/// How long plugbay waits for the rest of stderr after an exit: another process may keep the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// With a pipe of this size, a 5 MB result needs a quarter of the wake-ups. All pipes of a user share a quota
/// of 64 MiB, so only answers get more room, and no more than pays off.
#[cfg(target_os = "linux")]
const PIPE_SIZE: usize = 256 * 1024;

/// A server's process. Dropping it kills the whole process group at once; [`Process::shutdown`] asks first.
#[derive(Debug)]
pub struct Process {
    /// Taken by the connection. The server reads the end of its input when this is dropped.
    pub stdin: Option<pipe::Sender>,
    /// Taken by the connection.
    pub stdout: Option<pipe::Receiver>,
    pub stderr: StderrRing,
    tree: Tree,
    drain: Drain,
}

impl Process {
    pub(super) fn start(command: Command, guard: &Guard, ring: StderrRing) -> io::Result<Self> {
        let mut tree = Tree::plant(command, guard)?;
        let stdin = tree.leader.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.into_owned_fd()?;
        let stdout = tree.leader.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?.into_owned_fd()?;
        let stderr = tree.leader.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?.into_owned_fd()?;
        enlarge(&stdout);
        Ok(Self {
            stdin: Some(pipe::Sender::from_owned_fd(stdin)?),
            stdout: Some(pipe::Receiver::from_owned_fd(stdout)?),
            drain: Drain::start(pipe::Receiver::from_owned_fd(stderr)?, ring.clone()),
            stderr: ring,
            tree,
        })
    }

    /// The server's process id, which is also the id of its process group.
    pub fn pid(&self) -> i32 {
        self.tree.id().as_raw_pid()
    }

    /// Waits until the server's process has exited and the rest of its stderr is in the ring. The future may
    /// be dropped and called again. Processes that the server started may still run: [`Process::shutdown`]
    /// ends those too.
    pub async fn wait(&mut self) -> Exit {
        let exit = self.tree.leader_exit().await;
        self.drain.finish().await;
        exit
    }

    /// Closes stdin, then sends TERM after `grace`, then KILL after another `grace`; the same for what is
    /// left of the group without its leader. The caller must drop stdin if it was taken, and should go on
    /// reading stdout, so that a server which is flushing can finish.
    ///
    /// Dropping the future kills the group.
    pub async fn shutdown(mut self, grace: Duration) -> Exit {
        self.stdin = None;
        let exit = self.end_leader(grace).await;
        self.tree.end_rest(grace).await;
        self.drain.finish().await;
        exit
    }

    async fn end_leader(&mut self, grace: Duration) -> Exit {
        if let Ok(exit) = timeout(grace, self.tree.leader_exit()).await {
            return exit;
        }
        self.tree.signal(Signal::TERM);
        if let Ok(exit) = timeout(grace, self.tree.leader_exit()).await {
            return exit;
        }
        self.tree.signal(Signal::KILL);
        // A process that hangs in the kernel does not react even to KILL; tokio reaps it when it is gone.
        timeout(LAST_PATIENCE, self.tree.leader_exit()).await.unwrap_or(Exit::Unknown)
    }
}

/// Enlarges a pipe. The system or the user's quota may refuse; any size works.
#[cfg(target_os = "linux")]
fn enlarge(pipe: &OwnedFd) {
    _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
}

#[cfg(not(target_os = "linux"))]
fn enlarge(_: &OwnedFd) {}

/// The task that reads stderr. It ends with the process, even if a stray keeps the pipe open.
#[derive(Debug)]
struct Drain {
    task: JoinHandle<()>,
    pipe: Arc<pipe::Receiver>,
    ring: StderrRing,
    /// Set when the leader's exit was first seen, so that repeated waits do not add up.
    deadline: Option<Instant>,
}

impl Drain {
    fn start(pipe: pipe::Receiver, ring: StderrRing) -> Self {
        let pipe = Arc::new(pipe);
        let task = tokio::spawn(drain(Arc::clone(&pipe), ring.clone()).in_current_span());
        Self { task, pipe, ring, deadline: None }
    }

    async fn finish(&mut self) {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + LAST_WORDS);
        // A finished task must not be polled again.
        if !self.task.is_finished() && timeout_at(deadline, &mut self.task).await.is_err() {
            // On a busy machine the task may not have had its turn.
            drain_now(&self.pipe, &self.ring);
        }
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.task.abort();
    }
}
