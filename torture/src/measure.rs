//! Measurements of a process from the system, and figures in readable form.

use std::{fs, time::Duration};

/// Memory, descriptors and threads of a process at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Use {
    /// Resident memory in bytes.
    pub(crate) memory: u64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
}

pub(crate) fn use_of(pid: u32) -> Use {
    let count = |folder: &str| fs::read_dir(format!("/proc/{pid}/{folder}")).map_or(0, Iterator::count);
    Use { memory: status(pid, "VmRSS:"), descriptors: count("fd"), threads: count("task") }
}

/// The peak memory of a process so far.
pub(crate) fn peak(pid: u32) -> u64 {
    status(pid, "VmHWM:")
}

/// The processor time of a gateway's event loop, which is its first thread.
pub(crate) fn loop_time(pid: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat")).unwrap_or_default();
    let nanoseconds = text.split_ascii_whitespace().next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn status(pid: u32, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

pub(crate) fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// The time that 99 of 100 do not exceed, and the longest.
pub(crate) fn spread(times: &[Duration]) -> (Duration, Duration) {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = (times.len() * 99 / 100).min(times.len().saturating_sub(1));
    (times.get(at).copied().unwrap_or_default(), times.last().copied().unwrap_or_default())
}
