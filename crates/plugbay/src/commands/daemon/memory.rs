//! The memory of processes, on systems that show it in `/proc`.

use std::{collections::HashMap, fs};

/// All processes at one moment.
#[derive(Debug, Default)]
pub(super) struct Processes(HashMap<u32, Process>);

#[derive(Debug)]
struct Process {
    parent: u32,
    /// Resident memory in bytes.
    resident: u64,
}

impl Processes {
    /// Reads all processes; empty if there is no `/proc`.
    pub(super) fn read() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let process = |entry: fs::DirEntry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, Process::parse(&fs::read_to_string(entry.path().join("status")).ok()?)?))
        };
        Self(entries.filter_map(process).collect())
    }

    /// The resident memory of one process, in bytes.
    pub(super) fn of(&self, pid: u32) -> Option<u64> {
        Some(self.0.get(&pid)?.resident)
    }

    /// The same, including all its descendants.
    pub(super) fn of_tree(&self, pid: u32) -> Option<u64> {
        let mut total = self.of(pid)?;
        let mut parents = vec![pid];
        while let Some(parent) = parents.pop() {
            for (child, process) in self.0.iter().filter(|(_, process)| process.parent == parent) {
                total += process.resident;
                parents.push(*child);
            }
        }
        Some(total)
    }
}

impl Process {
    /// Parses a status; `None` for a kernel thread, which has no memory of its own.
    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let resident = field("VmRSS:")? * 1024;
        Some(Self { parent: u32::try_from(field("PPid:")?).ok()?, resident })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_server_counts_its_children() {
        let process = |parent, kb: u64| {
            Process::parse(&format!("Name:\tx\nPPid:\t{parent}\nVmRSS:\t {kb} kB\n")).unwrap()
        };
        let processes = Processes(HashMap::from([
            (10, process(1, 5)),
            (11, process(10, 3)),
            (12, process(11, 2)),
            (13, process(1, 9)),
        ]));
        assert_eq!((processes.of(10), processes.of_tree(10)), (Some(5 * 1024), Some(10 * 1024)));
        assert_eq!(processes.of_tree(99), None);
        assert!(Process::parse("Name:\tkthreadd\nPPid:\t0\n").is_none());
    }
}
