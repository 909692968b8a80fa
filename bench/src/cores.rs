//! On how many cores the measured processes run.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Outcome;

/// While this lives, the process runs on one core; afterwards where it ran before.
#[must_use = "the process leaves its one core when this is dropped"]
pub(crate) struct OneCore {
    before: CpuSet,
}

impl Drop for OneCore {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Keeps this process, and so all that it spawns, on one core.
///
/// Left alone, the scheduler puts two processes that talk to each other now on one core, now on two; a wake-up
/// across cores can cost several times the call itself, and the choice sticks for seconds. On one core a call
/// costs the work and the switches that its route needs, and ratios repeat from run to run.
pub(crate) fn keep_one() -> Outcome<OneCore> {
    let before = sched_getaffinity(None)?;
    // The last: the first one serves most interrupts.
    let last = (0..CpuSet::MAX_CPU).rev().find(|core| before.is_set(*core)).ok_or("no core to run on")?;
    let mut one = CpuSet::new();
    one.set(last);
    sched_setaffinity(None, &one)?;
    Ok(OneCore { before })
}
