//! Processes that left their group. They are found by the marker in their environment, by their parents, and
//! by cgroup.
//!
//! Only Linux shows these, under `/proc`. Elsewhere none are found, and the groups must do.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{cgroup::Cgroup, environment::MARKER};

#[derive(Debug)]
pub(super) struct Strays {
    /// `NAME=value`, as in an environment.
    marker: String,
    cgroup: Option<Cgroup>,
    /// Strays found so far, with their start times: their parents may have ended since.
    known: HashMap<Pid, u64>,
    /// Processes that got a TERM. To many programs a second one means "at once", so each gets only one.
    asked: HashSet<Pid>,
}

impl Strays {
    pub(super) fn of(instance: &str) -> Self {
        let (known, asked) = (HashMap::new(), HashSet::new());
        Self { marker: format!("{MARKER}={instance}"), cgroup: Cgroup::find(instance), known, asked }
    }

    /// Signals all strays; true if there are any. Members of `groups` get the signal with their group.
    pub(super) fn signal(&mut self, signal: Signal, groups: &HashSet<Pid>) -> bool {
        let strays = self.find(groups);
        if let Some(cgroup) = self.cgroup.as_ref().filter(|_| signal == Signal::KILL) {
            cgroup.kill();
        }
        for &stray in &strays {
            if signal != Signal::TERM || self.asked.insert(stray) {
                _ = kill_process(stray, signal);
            }
        }
        !strays.is_empty()
    }

    /// The processes outside of these groups that belong to the gateway.
    pub(super) fn find(&mut self, groups: &HashSet<Pid>) -> Vec<Pid> {
        let inside = self.cgroup.as_ref().map(Cgroup::members).unwrap_or_default();
        let all: Vec<Stat> = processes().filter_map(Stat::read).collect();
        let is_known = |process: &Stat| self.known.get(&process.pid) == Some(&process.started);
        let is_ours = |process: &Stat| {
            groups.contains(&process.group)
                || inside.contains(&process.pid)
                || is_known(process)
                || carries(process.pid, self.marker.as_bytes())
        };
        self.known = with_descendants(&all, is_ours);
        let outside = all.iter().filter(|process| !groups.contains(&process.group));
        outside.map(|process| process.pid).filter(|pid| self.known.contains_key(pid)).collect()
    }
}

/// A running process, as `/proc/PID/stat` shows it.
struct Stat {
    pid: Pid,
    parent: Pid,
    group: Pid,
    started: u64,
}

impl Stat {
    /// Reads a process; `None` also for zombies, which cannot be ended.
    fn read(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
        // The name, which ends with the last parenthesis, may contain anything.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let number = |field: usize| fields.get(field)?.parse().ok().and_then(Pid::from_raw);
        let is_zombie = matches!(fields.first(), Some(&("Z" | "X")));
        let started = fields.get(19)?.parse().ok()?;
        (!is_zombie).then_some(Self { pid, parent: number(1)?, group: number(2)?, started })
    }
}

/// The processes that match, and all their descendants, with their start times.
fn with_descendants(all: &[Stat], is_one: impl Fn(&Stat) -> bool) -> HashMap<Pid, u64> {
    let mut found: HashMap<Pid, u64> = HashMap::new();
    loop {
        let before = found.len();
        for process in all {
            if found.contains_key(&process.parent) || before == 0 && is_one(process) {
                found.insert(process.pid, process.started);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn processes() -> impl Iterator<Item = Pid> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
}

/// Whether the process carries the marker. False also if we may not read it.
fn carries(pid: Pid, marker: &[u8]) -> bool {
    fs::read(format!("/proc/{}/environ", pid.as_raw_pid()))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == marker))
}
