//! On how many cores the measured processes run.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Outcome;

/// Keeps this process, and so all that it spawns, on one core.
///
/// Left alone, the scheduler puts two processes that talk to each other now on one core, now on two; a wake-up
/// across cores can cost several times the call itself, and the choice sticks for seconds. On one core a call
/// costs the work and the switches that its route needs, and ratios repeat from run to run.
pub(crate) fn keep_one() -> Outcome<()> {
    let allowed = sched_getaffinity(None)?;
    // The last: the first one serves most interrupts.
    let last = (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core)).ok_or("no core to run on")?;
    let mut one = CpuSet::new();
    one.set(last);
    Ok(sched_setaffinity(None, &one)?)
}
