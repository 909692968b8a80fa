//! Processes that left their group, found by the marker in their environment.
//!
//! Only Linux shows it, under `/proc`; elsewhere none are found and the groups must do.

use std::{collections::HashSet, fs};

use rustix::process::{Pid, Signal, getpgid, kill_process};

use super::environment::MARKER;

#[derive(Debug)]
pub(super) struct Strays {
    /// `NAME=value`, as it stands in an environment.
    marker: String,
    /// A second TERM means "at once" to many programs, so each gets one.
    asked: HashSet<Pid>,
}

impl Strays {
    pub(super) fn of(instance: &str) -> Self {
        Self { marker: format!("{MARKER}={instance}"), asked: HashSet::new() }
    }

    /// True if there are any. Members of `groups` have had their TERM with the group.
    pub(super) fn signal(&mut self, signal: Signal, groups: &HashSet<Pid>) -> bool {
        let strays = self.find();
        for &stray in &strays {
            if signal != Signal::TERM || self.first_asked(stray, groups) {
                _ = kill_process(stray, signal);
            }
        }
        !strays.is_empty()
    }

    pub(super) fn find(&self) -> Vec<Pid> {
        processes().filter(|pid| carries(*pid, self.marker.as_bytes())).collect()
    }

    fn first_asked(&mut self, stray: Pid, groups: &HashSet<Pid>) -> bool {
        let by_group = getpgid(Some(stray)).is_ok_and(|group| groups.contains(&group));
        !by_group && self.asked.insert(stray)
    }
}

fn processes() -> impl Iterator<Item = Pid> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
}

/// False also for what is not ours to read, and for zombies, whose environment is empty.
fn carries(pid: Pid, marker: &[u8]) -> bool {
    fs::read(format!("/proc/{}/environ", pid.as_raw_pid()))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == marker))
}
