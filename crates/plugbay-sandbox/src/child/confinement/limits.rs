//! Resource limits, which every Unix has.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Linux counts private memory exactly. Address space would include the program and the allocator's arenas.
#[cfg(target_os = "linux")]
const MEMORY: Resource = Resource::Data;
#[cfg(not(target_os = "linux"))]
const MEMORY: Resource = Resource::As;

/// Time between the signal that ends a job for its processor time and the one that cannot be caught.
const CPU_GRACE: u64 = 1;

/// Disables core dumps, which would write the memory of a job to the disk.
pub(super) fn no_core_dump() {
    _ = limit(Resource::Core, 0, 0);
}

/// Sets all limits. Returns whether all of them work.
pub(super) fn set(memory: u64, cpu: u64) -> bool {
    let limits = [
        limit(MEMORY, memory, 0),
        limit(Resource::Cpu, cpu, CPU_GRACE),
        // Open descriptors stay open, but no others can be opened.
        limit(Resource::Nofile, 0, 0),
        limit(Resource::Fsize, 0, 0),
        limit(Resource::Nproc, 0, 0),
    ];
    limits.into_iter().all(|set| set)
}

fn limit(resource: Resource, current: u64, grace: u64) -> bool {
    // A hard limit that the user has already set may be lower.
    let hard = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let maximum = current.saturating_add(grace).min(hard);
    let new = Rlimit { current: Some(current.min(maximum)), maximum: Some(maximum) };
    setrlimit(resource, new).is_ok()
}
