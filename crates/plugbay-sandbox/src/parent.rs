//! The sandbox for the gateway: it takes a job and returns its outcome.

mod process;
mod run;
mod spare;

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::Semaphore;

pub use self::run::Run;
use self::{process::Process, spare::Spare};
#[cfg(fuzzing)]
pub use self::{process::outcome_of, run::Conversation};
use crate::protocol::{Confinement, Job, Landlock};

/// Longest filter, in bytes.
const FILTER: usize = 64 * 1024;

/// How children are started, and how many may run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program, which must call [`crate::child_main`] if its first argument is [`crate::COMMAND`].
    pub program: PathBuf,
    /// Limit of jq filters at a time; others wait.
    pub jobs: usize,
    /// Limit of scripts at a time; others wait. Scripts may wait long for their calls, so they do not count
    /// as filters.
    pub runs: usize,
    /// How long an idle child waits for the next job before it is ended. Zero: none is kept.
    pub spare: Duration,
}

impl Settings {
    pub fn new(program: PathBuf) -> Self {
        Self { program, jobs: 2, runs: 32, spare: Duration::from_secs(60) }
    }
}

/// The limits of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limit for the duration of the job, and for the wait for its turn.
    pub deadline: Duration,
    /// Limit of memory in bytes, including the input.
    pub memory: u64,
    /// Limit of output in bytes.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(5), memory: 256 * 1024 * 1024, output: 1024 * 1024 }
    }
}

/// The result of a job that ended, or whose output was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// JSON values, each followed by a newline. If the output was cut, the last one may be incomplete.
    pub output: Bytes,
    /// Number of complete values in `output`.
    pub values: usize,
    /// Set if the output was larger than its limit.
    pub cut: Option<Cut>,
    /// How the child was confined.
    pub confinement: Confinement,
}

/// The size of an output that was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Number of bytes that the filter produced.
    pub bytes: u64,
    /// Whether counting was stopped, so that there may be more.
    pub at_least: bool,
}

impl Outcome {
    /// The whole values, as JSON text.
    pub fn whole(&self) -> impl Iterator<Item = Bytes> {
        self.output.split(|byte| *byte == b'\n').take(self.values).map(|line| self.output.slice_ref(line))
    }
}

/// The reason why a job has no result. Each text is for the author of the filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxFailure {
    #[error("the jq filter is wrong: {0}")]
    Filter(String),
    #[error("the jq filter failed: {0}")]
    Runtime(String),
    #[error("jq cannot read its input: {0}")]
    Input(String),
    #[error("the jq filter took longer than {} s", .0.as_secs_f32())]
    TooSlow(Duration),
    #[error("the jq filter needs more than {} MiB of memory", .0 / 1024 / 1024)]
    OutOfMemory(u64),
    #[error("the jq filter, or one of its values, nests too deep")]
    TooDeep,
    #[error("other jq filters are running, and none of them ended in time; try again")]
    Busy,
    /// The program cannot be started, or is no longer ours.
    #[error("jq filters cannot run here: {0}")]
    Unavailable(String),
    /// The child ended in a way that no filter should be able to cause.
    #[error("the process of the jq filter ended: {0}")]
    Crashed(String),
}

impl SandboxFailure {
    /// Whether another filter or another input would help, rather than another time or machine.
    pub fn is_about_the_filter(&self) -> bool {
        !matches!(self, Self::Busy | Self::Unavailable(_) | Self::Crashed(_))
    }
}

/// Runs jobs in confined child processes. A cheap handle: clones share the limit of jobs and the spare child.
///
/// Its functions must be called inside a tokio runtime with I/O and time enabled. A job ends with its future.
#[derive(Debug, Clone)]
pub struct Sandbox {
    settings: Arc<Settings>,
    turns: Arc<Semaphore>,
    runs: Arc<Semaphore>,
    spare: Arc<Spare>,
}

impl Sandbox {
    pub fn new(settings: Settings) -> Self {
        let turns = Arc::new(Semaphore::new(settings.jobs.max(1)));
        let runs = Arc::new(Semaphore::new(settings.runs.max(1)));
        Self { settings: Arc::new(settings), turns, runs, spare: Arc::default() }
    }

    /// Starts a child unless one is already waiting, so that the next job need not wait for its start.
    pub fn prepare(&self) {
        // Without a spare the next job starts a child itself, and reports why it cannot.
        self.spare.fill(&self.settings);
    }

    /// Applies a jq filter to one JSON value.
    pub async fn jq(&self, filter: &str, input: Bytes, limits: Limits) -> Result<Outcome, SandboxFailure> {
        self.run(Job::Jq { filter: checked(filter)?, input }, limits).await
    }

    /// Checks that a jq filter compiles. If not, its tool need not be called, because the result would be
    /// lost.
    pub async fn check(&self, filter: &str) -> Result<(), SandboxFailure> {
        self.run(Job::Check { filter: checked(filter)? }, Limits::default()).await.map(drop)
    }

    async fn run(&self, job: Job, limits: Limits) -> Result<Outcome, SandboxFailure> {
        let turn = Arc::clone(&self.turns).acquire_owned();
        let Ok(Ok(turn)) = tokio::time::timeout(limits.deadline, turn).await else {
            return Err(SandboxFailure::Busy);
        };
        let mut process = self.process()?;
        let outcome = process.run(job, limits).await;
        process.end(turn);
        self.refill();
        outcome
    }

    /// An idle child.
    fn process(&self) -> Result<Process, SandboxFailure> {
        self.spare.take().map_or_else(|| Process::start(&self.settings.program), Ok)
    }

    /// Starts a child for the next job, if an idle one should be kept.
    fn refill(&self) {
        if !self.settings.spare.is_zero() {
            self.prepare();
        }
    }

    /// The parts of the confinement that work on this system.
    pub async fn confinement(&self) -> Result<Confinement, SandboxFailure> {
        let outcome = self.jq(".", Bytes::from_static(b"null"), Limits::default()).await?;
        Ok(outcome.confinement)
    }
}

fn checked(filter: &str) -> Result<String, SandboxFailure> {
    let length = filter.len();
    if length > FILTER {
        return Err(SandboxFailure::Filter(format!("it has {length} bytes; the limit is {FILTER}")));
    }
    Ok(filter.to_owned())
}

impl fmt::Display for Confinement {
    /// The working parts, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let landlock = match self.landlock {
            Landlock::Absent => None,
            Landlock::Partial => Some("Landlock in part"),
            Landlock::Full => Some("Landlock"),
        };
        let parts = [
            Some("no environment"),
            self.limits.then_some("resource limits"),
            self.no_new_privileges.then_some("no new privileges"),
            landlock,
            self.system_calls.then_some("seccomp"),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_an_outcome_are_its_whole_lines() {
        let outcome = Outcome {
            output: Bytes::from_static(b"1\n[2]\n{\"a"),
            values: 2,
            cut: Some(Cut { bytes: 20, at_least: false }),
            confinement: Confinement::default(),
        };
        assert_eq!(outcome.whole().collect::<Vec<_>>(), ["1", "[2]"]);
    }

    #[test]
    fn failures_read_like_sentences() {
        let slow = SandboxFailure::TooSlow(Duration::from_millis(2500));
        assert_eq!(slow.to_string(), "the jq filter took longer than 2.5 s");
        assert_eq!(
            SandboxFailure::OutOfMemory(256 << 20).to_string(),
            "the jq filter needs more than 256 MiB of memory"
        );
        assert_eq!(
            Confinement { limits: true, ..Confinement::default() }.to_string(),
            "no environment, resource limits"
        );
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_told() {
        let sandbox = Sandbox::new(Settings::new("/nowhere/plugbay".into()));
        sandbox.prepare();
        let failure = sandbox.jq(".", Bytes::from_static(b"1"), Limits::default()).await.unwrap_err();
        assert!(
            matches!(&failure, SandboxFailure::Unavailable(reason) if reason.contains("/nowhere")),
            "{failure}"
        );
    }

    #[tokio::test]
    async fn a_program_that_is_none_of_ours_is_told() {
        let sandbox = Sandbox::new(Settings::new("/bin/cat".into()));
        let failure = sandbox.jq(".", Bytes::from_static(b"1"), Limits::default()).await.unwrap_err();
        assert!(matches!(failure, SandboxFailure::Unavailable(_)), "{failure}");
    }
}
