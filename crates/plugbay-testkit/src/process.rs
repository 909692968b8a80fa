//! Processes seen through `/proc`: who descends from whom, who is still alive, and signals.

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

/// A process, told apart from a later one of the same number by its start time.
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
    /// `None` if there is no such process any more; one that is dead but not reaped counts as gone.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is a name in parentheses that may hold anything; the rest follows the last one.
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

/// Children, grandchildren and so on, of this moment.
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

/// Every process whose command line mentions something below `folder`, wherever it hangs in the tree. Below it:
/// `test-1` is the beginning of `test-10`, too.
pub fn mentioning(folder: &Path) -> Vec<Process> {
    let mark = format!("{}/", folder.display());
    all().into_iter().filter(|process| process.command.contains(&mark)).collect()
}

/// Whether other threads outlive the first one. They keep the files of a dead process open, for a moment.
fn has_threads(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() > 1)
}

/// Waits until none of `processes` is left; panics with those that are.
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
