//! Runs models' code where it can do no harm: jq filters and scripts, in a child process of our own program.
//!
//! A child does one job and ends. It has no environment, no descriptors except its pipes, little memory and
//! little time, and the system denies it files, sockets and processes as far as the kernel can.
//!
//! A filter has one input and one output. A script asks for calls while it runs, and the gateway decides
//! whether to answer them: the child itself can reach nothing.
//!
//! - [`protocol`]: the messages between the two processes.
//! - [`child`]: confines itself and does the job.
//! - [`code`]: scripts from the gateway's side.
//! - [`parent`]: starts children, and reports the outcomes of jobs.

pub mod child;
pub mod code;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod parent;
pub mod protocol;

pub use self::{
    child::{COMMAND, main as child_main},
    code::{Answer, Call, CallKind, CodeFailure, Event, Reach, Reading, RunLimits, Script},
    parent::{Cut, Limits, Outcome, Run, Sandbox, SandboxFailure, Settings},
    protocol::{Confinement, Landlock},
};
