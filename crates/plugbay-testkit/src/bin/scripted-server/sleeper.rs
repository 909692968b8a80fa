//! A grandchild like those that package runners leave behind: it holds the pipes and ignores the end of
//! input.

use std::{
    env,
    process::{Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

pub(crate) const FLAG: &str = "--sleeper";

/// How long a sleeper lives, so that a failed test does not leave it for ever.
pub(crate) const LIFETIME: Duration = Duration::from_secs(600);

/// Starts `count` sleepers. `mark` only serves to find them by their command lines.
#[expect(clippy::zombie_processes, reason = "they are to outlive us unless someone ends the whole tree")]
pub(crate) fn spawn(count: usize, mark: &str) {
    let own = env::current_exe().expect("own path");
    for _ in 0..count {
        Command::new(&own).args([FLAG, mark]).stdin(Stdio::null()).spawn().expect("sleeper");
    }
}

pub(crate) fn run(_mark: Option<&str>) -> ExitCode {
    thread::sleep(LIFETIME);
    ExitCode::SUCCESS
}
