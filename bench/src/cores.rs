//! The processor cores on which the measured processes run.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Outcome;

/// Keeps the process on one core until it is dropped; then it runs where it did before.
#[must_use = "the process leaves its one core when this is dropped"]
pub(crate) struct OneCore {
    before: CpuSet,
}

impl Drop for OneCore {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Keeps this process, and everything that it spawns, on one core.
///
/// By default, the scheduler puts two processes that talk to each other sometimes on one core, sometimes on
/// two. A wake-up across cores can cost several times the call itself, and the choice lasts for seconds. On
/// one core a call costs only the work and the switches of its route, and ratios are reproducible.
pub(crate) fn keep_one() -> Outcome<OneCore> {
    let before = sched_getaffinity(None)?;
    // The last one, because the first one serves most interrupts.
    let last = (0..CpuSet::MAX_CPU).rev().find(|core| before.is_set(*core)).ok_or("no core to run on")?;
    let mut one = CpuSet::new();
    one.set(last);
    sched_setaffinity(None, &one)?;
    Ok(OneCore { before })
}
