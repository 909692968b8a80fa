//! Takes everything from this process that a computation does not need.
//!
//! Each part is tried separately, and the parent is told which parts work: an old kernel, a container or
//! another system may lack some. The process cannot undo any of this.

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

/// The part of the confinement that is set up before there is a job.
#[derive(Debug)]
pub struct Begun {
    no_new_privileges: bool,
    landlock: Landlock,
}

/// Denies files, sockets and other processes. Later threads inherit this, so the caller must not have any
/// yet.
pub fn begin() -> Begun {
    limits::no_core_dump();
    Begun { no_new_privileges: files::no_new_privileges(), landlock: files::deny() }
}

impl Begun {
    /// Sets the limits of the job, and denies all threads all system calls except those of a computation.
    pub fn finish(self, calls: &Calls, memory: u64, cpu: u64) -> Confinement {
        let limits = limits::set(memory, cpu);
        let system_calls = calls.deny_others();
        let Self { no_new_privileges, landlock } = self;
        Confinement { limits, no_new_privileges, landlock, system_calls }
    }
}
