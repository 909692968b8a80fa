//! A server's process and the group that it leads: first seen, then signalled, then reaped.

use std::{io, time::Duration};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, test_kill_process_group, waitid,
    waitpgid,
};
use tokio::{
    process::{Child, Command},
    signal::unix::{self, SignalKind},
    time::{Instant, sleep},
};

use super::{Exit, Guard, guard::Registration};

/// After KILL only the kernel can still hold a process up, for at most this long.
pub(super) const LAST_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Tree {
    /// If this is dropped unreaped, tokio reaps it in the background.
    pub(super) leader: Child,
    /// The leader's process id and the group's id.
    id: Pid,
    exit: Option<Exit>,
    stage: Stage,
    /// Wakes on SIGCHLD. tokio's own `wait` would reap too early, and so give the group's id away.
    exits: unix::Signal,
    /// Whether the exit was looked for since the last signal.
    looked: bool,
    /// Last: the guard forgets the group after everything above is done.
    _registration: Registration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The leader runs or is a zombie: the id is ours.
    Led,
    /// The leader is reaped: the id is ours while the group has members.
    Leaderless,
    /// The id may already belong to another group.
    Gone,
}

impl Tree {
    /// Starts the process. `command` must ask for a process group of its own.
    pub(super) fn plant(mut command: Command, guard: &Guard) -> io::Result<Self> {
        let exits = unix::signal(SignalKind::child())?;
        // The helper comes first: if we are killed between the two lines, it finds the child by its marker.
        guard.keep_watch();
        let leader = command.spawn()?;
        let id = leader.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or(io::ErrorKind::NotFound)?;
        let registration = guard.register(id);
        Ok(Self {
            leader,
            id,
            exit: None,
            stage: Stage::Led,
            exits,
            looked: false,
            _registration: registration,
        })
    }

    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Waits for the leader's exit and leaves it a zombie. May be dropped and called again.
    pub(super) async fn leader_exit(&mut self) -> Exit {
        loop {
            // One look per signal: this is polled with every message, and each look is a system call.
            if !self.looked
                && let Some(exit) = self.seen_exit()
            {
                return exit;
            }
            self.looked = true;
            // The signal stream is older than the process, so no exit is missed between the look and this.
            self.exits.recv().await;
            self.looked = false;
        }
    }

    fn seen_exit(&mut self) -> Option<Exit> {
        if self.exit.is_none() {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            self.exit = match waitid(WaitId::Pid(self.id), look) {
                Ok(status) => status.map(Exit::from),
                Err(rustix::io::Errno::INTR) => None,
                Err(_) => Some(Exit::Unknown),
            };
        }
        self.exit
    }

    /// Signals every member of the group.
    pub(super) fn signal(&self, signal: Signal) {
        if self.stage == Stage::Gone {
            return;
        }
        // "No such process" counts as done.
        _ = kill_process_group(self.id, signal);
        if signal == Signal::TERM {
            // A stopped process acts on TERM only after CONT.
            _ = kill_process_group(self.id, Signal::CONT);
        }
    }

    /// Ends the processes that the leader left behind, and reaps the leader.
    pub(super) async fn end_rest(&mut self, grace: Duration) {
        if self.seen_exit().is_none() {
            return;
        }
        self.signal(Signal::TERM);
        self.reap_leader();
        if !self.emptied_within(grace).await {
            self.signal(Signal::KILL);
            self.emptied_within(LAST_PATIENCE).await;
        }
        self.stage = Stage::Gone;
    }

    fn reap_leader(&mut self) {
        // An error means that nothing is left to reap.
        _ = self.leader.try_wait();
        self.stage = Stage::Leaderless;
    }

    async fn emptied_within(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut pause = Duration::from_millis(1);
        while !self.is_empty() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        true
    }

    /// Whether the group has no members. Only for a group without its leader: a zombie counts as a member.
    fn is_empty(&self) -> bool {
        // As process 1 of a container we inherit the members, and nobody else would reap them.
        while let Ok(Some(_)) = waitpgid(self.id, WaitOptions::NOHANG) {}
        // A refused permission counts as empty: we may end none of its members.
        test_kill_process_group(self.id).is_err()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.stage == Stage::Leaderless && self.is_empty() {
            self.stage = Stage::Gone;
        }
        self.signal(Signal::KILL);
    }
}
