//! Runs code of models where it can do no harm: jq filters, in a child process of our own program.
//!
//! A child gets one job and ends. It has no environment, no descriptors but its pipes, little memory and
//! little time, and the system denies it files, sockets and processes as far as the kernel can.
//!
//! - [`protocol`]: the messages between the two processes.
//! - [`child`]: confines itself and does the job.
//! - [`parent`]: starts children, and tells what became of a job.

pub mod child;
pub mod parent;
pub mod protocol;

pub use self::{
    child::{COMMAND, main as child_main},
    parent::{Cut, Limits, Outcome, Sandbox, SandboxFailure, Settings},
    protocol::{Confinement, Landlock},
};
