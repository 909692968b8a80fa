//! The reasons why a script has no result.

use std::time::Duration;

use super::CODE;

/// The reason why a script has no result. Each text is for the model that wrote the script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeFailure {
    /// The error with line and column in the author's code, and that line.
    #[error("the script does not parse: {0}")]
    Syntax(String),
    /// An uncaught exception.
    #[error("the script failed: {message}")]
    Thrown {
        /// Its name and message, and the lines of the author's code that led to it.
        message: String,
        /// The call that caused its `ToolError`.
        call: Option<u32>,
    },
    #[error(
        "the script computed for longer than {} s; let the tools filter and sort, or split the work into several runs",
        .0.as_secs_f32()
    )]
    TooSlow(Duration),
    #[error("the script needs more than {} MiB of memory; keep only the fields that you need", .0 / 1024 / 1024)]
    OutOfMemory(u64),
    #[error("the script, or one of its values, nests too deep; replace the recursion by a loop")]
    TooDeep,
    #[error(
        "the script's text and value have more than {0} bytes; return a summary or only the fields that you need"
    )]
    OutputTooLarge(usize),
    #[error("the script makes more than {0} calls; make fewer per run")]
    TooManyCalls(u32),
    /// The result contains something that JSON cannot represent; with its path and kind.
    #[error("the script's result is not JSON: {0}")]
    NotJson(String),
    /// No call is in flight, but the script still waits.
    #[error(
        "the script waits for a promise that nothing will ever settle; each `new Promise` must call its `resolve`"
    )]
    NeverEnds,
    #[error("the script is longer than {} KiB; put data into `input`", CODE / 1024)]
    TooLong,
    #[error("too many scripts are running, and none of them ended in time; try again")]
    Busy,
    /// The child ended in a way that no script should be able to cause.
    #[error("the process of the script ended: {0}")]
    Died(String),
    /// The program cannot be started, or is no longer ours.
    #[error("scripts cannot run here: {0}")]
    Unavailable(String),
}

impl CodeFailure {
    /// Whether another script would help, rather than another time or machine.
    pub fn is_about_the_script(&self) -> bool {
        !matches!(self, Self::Busy | Self::Died(_) | Self::Unavailable(_))
    }
}
