//! Processes as `/proc` shows them: their descendants, whether they are alive, and signals.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, kill_process};

use crate::deadline::{DEADLINE, patience, wait_until};

pub use rustix::process::Signal;

/// A process. Its start time tells it from a later one with the same id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: u32,
    started: u64,
    pub(crate) parent: u32,
    state: char,
    /// Its command line, for messages.
    pub command: String,
}

impl Process {
    /// The process with this id; `None` if it is gone. A dead process that was not reaped counts as gone.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is a name in parentheses that may contain anything; the rest follows the last
        // parenthesis.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let state = fields.first()?.chars().next()?;
        let parent = fields.get(1)?.parse().ok()?;
        let started = fields.get(19)?.parse().ok()?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let is_dead = matches!(state, 'Z' | 'X') && !has_threads(pid);
        (!is_dead).then_some(Self { pid, started, parent, state, command })
    }

    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).is_some_and(|now| now.started == self.started)
    }

    /// Sends a signal, unless the process has gone.
    pub fn signal(&self, signal: Signal) {
        if !self.is_alive() {
            return;
        }
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).expect("a pid");
        let _ = kill_process(pid, signal);
    }

    /// Stops the process and waits until it has really stopped.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        wait_until("the process to stop", DEADLINE, || {
            Self::of(self.pid).is_some_and(|now| now.state == 'T').then_some(())
        });
    }

    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }
}

/// The current children, grandchildren and so on.
pub fn descendants(pid: u32) -> Vec<Process> {
    let mut by_parent: HashMap<u32, Vec<Process>> = HashMap::new();
    for process in all() {
        by_parent.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut next = vec![pid];
    while let Some(parent) = next.pop() {
        for child in by_parent.remove(&parent).unwrap_or_default() {
            next.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// All processes whose command line mentions something below `folder`, whatever their parents. The folder
/// alone is not enough: `test-1` is also the beginning of `test-10`.
pub fn mentioning(folder: &Path) -> Vec<Process> {
    let mark = format!("{}/", folder.display());
    all().into_iter().filter(|process| process.command.contains(&mark)).collect()
}

/// Whether other threads outlive the first one. For a moment, they keep the files of a dead process open.
fn has_threads(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() > 1)
}

/// Waits until none of `processes` is left; panics with the remaining ones.
#[track_caller]
pub fn wait_until_gone(processes: &[Process]) {
    let left = || processes.iter().filter(|process| process.is_alive()).collect::<Vec<_>>();
    let deadline = Instant::now() + patience(DEADLINE);
    while Instant::now() < deadline && !left().is_empty() {
        thread::sleep(Duration::from_millis(20));
    }
    let left = left();
    assert!(
        left.is_empty(),
        "{} of {} processes left after {DEADLINE:?}: {left:#?}",
        left.len(),
        processes.len()
    );
}

fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| Process::of(entry.file_name().to_str()?.parse().ok()?)).collect()
}
