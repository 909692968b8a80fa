//! Takes from this process what a computation does not need.
//!
//! Each part is tried by itself, and the parent is told which of them hold: an old kernel, a container or another
//! system may lack some. Nothing here can be undone by the process.

#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))),
    path = "confinement/calls_elsewhere.rs"
)]
mod calls;
#[cfg_attr(not(target_os = "linux"), path = "confinement/files_elsewhere.rs")]
mod files;
mod limits;

pub use self::calls::Calls;
use crate::protocol::{Confinement, Landlock};

/// The part of the confinement that holds before there is a job.
#[derive(Debug)]
pub struct Begun {
    no_new_privileges: bool,
    landlock: Landlock,
}

/// Denies files, sockets and other processes. Threads that start afterwards inherit it, so the caller has none yet.
pub fn begin() -> Begun {
    limits::no_core_dump();
    Begun { no_new_privileges: files::no_new_privileges(), landlock: files::deny() }
}

impl Begun {
    /// Sets the limits of the job, and denies all system calls but those of a computation, to all threads.
    pub fn finish(self, calls: &Calls, memory: u64, cpu: u64) -> Confinement {
        let limits = limits::set(memory, cpu);
        let system_calls = calls.deny_others();
        let Self { no_new_privileges, landlock } = self;
        Confinement { limits, no_new_privileges, landlock, system_calls }
    }
}
