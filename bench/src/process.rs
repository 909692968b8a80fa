//! The kernel's data about a gateway's own processes: which they are, their CPU time, their memory.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Memory in KiB, summed over processes.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) rss: u64,
    /// Pages that no other process has mapped: ending the process would free these.
    pub(crate) private: u64,
    /// Private pages, and one process's share of each shared page.
    pub(crate) pss: u64,
    /// Pages that belong to no file: heap and stacks, without the program itself.
    pub(crate) anonymous: u64,
    pub(crate) peak: u64,
}

/// The gateway's processes, and the number of stubs below them.
#[derive(Debug)]
pub(crate) struct Family {
    pids: Vec<u32>,
    pub(crate) stubs: usize,
}

impl Family {
    /// `root`, its descendants and the rest of its process group, without the stubs.
    pub(crate) fn of(root: u32) -> Self {
        Self::of_all(&[root])
    }

    /// The same for several roots.
    pub(crate) fn of_all(roots: &[u32]) -> Self {
        let everyone = everyone();
        let mut members = roots.to_vec();
        let mut next = 0;
        while let Some(parent) = members.get(next).copied() {
            next += 1;
            let more: Vec<u32> = everyone
                .iter()
                .filter(|one| one.parent == parent || roots.contains(&one.group))
                .map(|one| one.pid)
                .filter(|pid| !members.contains(pid))
                .collect();
            members.extend(more);
        }
        let (stubs, pids): (Vec<u32>, Vec<u32>) = members.into_iter().partition(|pid| is_stub(*pid));
        Self { pids, stubs: stubs.len() }
    }

    pub(crate) fn len(&self) -> usize {
        self.pids.len()
    }

    /// The run time of all threads in nanosecond precision; `/proc/PID/stat` counts in ticks of 10 ms. It
    /// does not include threads that have ended. `None` if the kernel keeps no such statistics.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        let mut total = 0;
        for pid in &self.pids {
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                // A thread may end between the listing and the reading.
                let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
                total += text.split(' ').next()?.parse::<u64>().ok()?;
            }
        }
        (total > 0).then(|| Duration::from_nanos(total))
    }

    pub(crate) fn memory(&self) -> Memory {
        let mut sum = Memory::default();
        for pid in &self.pids {
            let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            sum.rss += field(&rollup, "Rss:").unwrap_or(0);
            sum.private += field(&rollup, "Private_Clean:").unwrap_or(0);
            sum.private += field(&rollup, "Private_Dirty:").unwrap_or(0);
            sum.pss += field(&rollup, "Pss:").unwrap_or(0);
            sum.anonymous += field(&rollup, "Anonymous:").unwrap_or(0);
            sum.peak += field(&status, "VmHWM:").unwrap_or(0);
        }
        sum
    }
}

pub(crate) fn megabytes(kib: u64) -> f64 {
    f64::from(u32::try_from(kib).unwrap_or(u32::MAX)) * 1024.0 / 1e6
}

/// The private memory of one process, without the pages of files, in KiB.
pub(crate) fn private(pid: u32) -> Option<u64> {
    field(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Private_Dirty:")
}

/// The processor time of one process so far, including threads that have ended; in steps of 10 ms.
pub(crate) fn spent(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks()? + ticks()?) * 10))
}

/// The load averages over one, five and fifteen minutes, which show whether anything else ran.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    parent: u32,
    group: u32,
}

fn everyone() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit))
        .filter_map(|entry| parse_stat(&fs::read_to_string(entry.path().join("stat")).ok()?))
        .collect()
}

/// Parses `pid (name) state parent group …`; the name may contain blanks and parentheses.
fn parse_stat(stat: &str) -> Option<Process> {
    let (pid, _) = stat.split_once(' ')?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ').skip(1);
    Some(Process {
        pid: pid.parse().ok()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

/// The stubs that were started with this word among their arguments, anywhere in the process tree.
pub(crate) fn marked_stubs(mark: &str) -> Vec<u32> {
    let has_mark = |pid: u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
    };
    everyone().into_iter().map(|one| one.pid).filter(|pid| is_stub(*pid) && has_mark(*pid)).collect()
}

/// Whether the process is our own binary as a stub.
fn is_stub(pid: u32) -> bool {
    let program = |link: PathBuf| fs::read_link(link).ok();
    let ours = program("/proc/self/exe".into());
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    ours.is_some()
        && program(format!("/proc/{pid}/exe").into()) == ours
        && command.split(|byte| *byte == 0).nth(1) == Some(b"stub")
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_past_any_name() {
        let expected = Process { pid: 12, parent: 3, group: 4 };
        assert_eq!(parse_stat("12 (a) S 9 9 (b) S 3 4 5 0 -1"), Some(expected));
        assert_eq!(parse_stat("12"), None);
    }

    #[test]
    fn memory_fields_are_read_by_name() {
        let rollup = "Rss:                1604 kB\nPss:                 261 kB\nPss_Dirty:  112 kB\n";
        assert_eq!(field(rollup, "Pss:"), Some(261));
        assert_eq!(field(rollup, "Swap:"), None);
    }

    #[test]
    fn this_process_has_used_some_cpu_and_memory() {
        let family = Family::of(std::process::id());
        assert!(family.len() >= 1);
        assert!(family.memory().rss > 0);
    }
}
