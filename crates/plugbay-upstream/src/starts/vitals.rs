//! The system's data about a server that starts: the processor time of its processes, and how busy the
//! machine is.
//!
//! Only Linux has these data, under `/proc`; elsewhere they are unknown.

use std::{
    fs,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Data about processes and the machine. Tests script it.
pub trait Vitals: Send + Sync {
    /// The processor time of a process and all its descendants; `None` if the system does not report it.
    fn cpu(&self, pid: i32) -> Option<Duration>;
    /// The same for a server that has no process here.
    fn cpu_without_process(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }
    /// Whether no processor was free since the previous reading.
    fn is_saturated(&self) -> bool;
}

/// The unit in which Linux counts processor time, whatever its own clock is.
const TICK: Duration = Duration::from_millis(10);
/// Least time between two readings that are compared.
const LEAST_SPAN: Duration = Duration::from_millis(500);
/// A machine with a smaller unused share than this counts as saturated, in percent.
const LEAST_UNUSED: u64 = 10;
/// Limit of members up to which a process tree is followed.
const MOST_PROCESSES: usize = 256;

#[derive(Debug, Default)]
pub(super) struct SystemVitals {
    // A std mutex: held while one short file is read, never across an await.
    machine: Mutex<Machine>,
}

#[derive(Debug, Default)]
struct Machine {
    last: Option<(Instant, Load)>,
    saturated: bool,
}

/// The processor time of the whole machine, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    unused: u64,
    all: u64,
}

impl Vitals for SystemVitals {
    fn cpu(&self, pid: i32) -> Option<Duration> {
        let mut ticks = used(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
        let mut parents = vec![pid];
        let mut count = 0;
        while let Some(parent) = parents.pop().filter(|_| count < MOST_PROCESSES) {
            for child in children(parent) {
                let stat = fs::read_to_string(format!("/proc/{child}/stat"));
                ticks += stat.ok().as_deref().and_then(used).unwrap_or_default();
                parents.push(child);
                count += 1;
            }
        }
        Some(TICK * u32::try_from(ticks).unwrap_or(u32::MAX))
    }

    fn is_saturated(&self) -> bool {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if machine.last.is_some_and(|(at, _)| now - at < LEAST_SPAN) {
            return machine.saturated;
        }
        let Some(load) = fs::read_to_string("/proc/stat").ok().as_deref().and_then(load) else {
            return false;
        };
        let last = machine.last.replace((now, load));
        machine.saturated = last.is_some_and(|(_, last)| is_saturated(last, load));
        machine.saturated
    }
}

/// The children of all threads of a process.
fn children(pid: i32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The ticks in `/proc/PID/stat`: of the process, and of those children that it has waited for.
fn used(stat: &str) -> Option<u64> {
    // The name may contain spaces and parentheses; the third field comes after the last parenthesis.
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    let times: Vec<u64> = fields.skip(11).take(4).filter_map(|field| field.parse().ok()).collect();
    (times.len() == 4).then(|| times.iter().sum())
}

/// Parses the first line of `/proc/stat`. Waiting for a disk counts as unused; guests are already in user
/// time.
fn load(stat: &str) -> Option<Load> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let times: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
    let unused = times.get(3)? + times.get(4)?;
    Some(Load { unused, all: times.iter().sum() })
}

fn is_saturated(before: Load, now: Load) -> bool {
    let (unused, all) = (now.unused.saturating_sub(before.unused), now.all.saturating_sub(before.all));
    all > 0 && unused * 100 < all * LEAST_UNUSED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_any_process_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 12 3 40 5 20 0 1 0 100 1000 10";
        assert_eq!(used(stat), Some(60));
        assert_eq!(used("7 (short) S 1 7"), None);
    }

    #[test]
    fn a_machine_is_saturated_when_no_processor_time_is_left() {
        let before = load("cpu  100 0 100 1000 50 0 0 0 0 0\ncpu0 1 2 3").unwrap();
        assert_eq!(before, Load { unused: 1050, all: 1250 });
        let busy = Load { unused: 1055, all: 1350 };
        let free = Load { unused: 1090, all: 1350 };
        assert!(is_saturated(before, busy) && !is_saturated(before, free) && !is_saturated(before, before));
        assert_eq!(load("intr 5"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_processor_time_of_a_child_process_is_counted() {
        let vitals = SystemVitals::default();
        let own = std::process::id().cast_signed();
        let before = vitals.cpu(own).unwrap();
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let begun = Instant::now();
        let grown = loop {
            let child_alone = vitals.cpu(child.id().cast_signed()).unwrap();
            if child_alone >= 5 * TICK || begun.elapsed() > Duration::from_secs(60) {
                break vitals.cpu(own).unwrap().saturating_sub(before);
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(grown >= 5 * TICK, "{grown:?}");
    }
}
