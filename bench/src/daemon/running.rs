//! The daemon of one sandbox: found with plugbay's own command, and stopped at the end.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Outcome;
use crate::sandbox::Sandbox;

pub(super) struct RunningDaemon {
    pub(super) pid: u32,
    binary: PathBuf,
    /// The command that stops it.
    stop: Command,
}

impl RunningDaemon {
    pub(super) fn find(binary: &Path, sandbox: &Sandbox) -> Outcome<Self> {
        let output = command(binary, sandbox, "status").output()?;
        let status: Value = serde_json::from_slice(&output.stdout)?;
        let pid = status["daemon"]["pid"].as_u64().ok_or("no daemon runs")?;
        let stop = command(binary, sandbox, "stop");
        Ok(Self { pid: u32::try_from(pid)?, binary: binary.to_owned(), stop })
    }
}

fn command(binary: &Path, sandbox: &Sandbox, action: &str) -> Command {
    let mut command = Command::new(binary);
    command.args(["daemon", action, "--json"]).current_dir(sandbox.path("home"));
    sandbox.confine(&mut command);
    command
}

impl Drop for RunningDaemon {
    fn drop(&mut self) {
        let stopped = self.stop.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !stopped.is_ok_and(|status| status.success()) {
            crate::output::complain(&format!("{} did not stop its daemon", self.binary.display()));
        }
    }
}
