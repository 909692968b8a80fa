//! A host's own command for changing its file: a running host may write the file itself at any time.

use std::{
    io::{self, Read, Seek},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use plugbay_hosts::{
    edit::OwnEntry,
    known::{Host, OwnCommand},
    read::Found,
};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::settings;

/// The command of one host on this machine.
#[derive(Debug)]
pub struct HostProgram {
    host: &'static Host,
    command: &'static OwnCommand,
    path: PathBuf,
    /// The folder in which it runs for an entry of the user.
    folder: PathBuf,
    limit: Duration,
}

/// How long one run may take.
const LIMIT: Duration = Duration::from_secs(30);
/// How often plugbay checks whether a run has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// The reason why a host's program did not change its file.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("`{0}` does not answer")]
    Silent(String),
    #[error("{0}")]
    Other(String),
    #[error("{0}")]
    Wait(#[from] io::Error),
}

impl HostProgram {
    /// The command of a host; `None` if it has no such command, or its program is not on the search path.
    pub fn of(host: &'static Host, folder: &Path) -> Option<Self> {
        let command = host.command.as_ref()?;
        let path = settings::find_program(&command.program)?;
        Some(Self { host, command, path, folder: folder.to_owned(), limit: LIMIT })
    }

    /// The command as a user would type it, for messages.
    pub fn name(&self) -> String {
        format!("{} mcp", self.command.program)
    }

    /// Adds plugbay's entry, then removes the entries that move.
    pub fn wire(&self, own: Option<&OwnEntry>, moved: &[Found]) -> Result<(), Failure> {
        if let Some(own) = own {
            self.run(&self.command.add_args(self.host, own), &self.folder)?;
        }
        for found in moved {
            let mut args = self.command.remove_args(&found.entry.name);
            // The entries of a project have another scope, and the program finds the project by its working
            // directory.
            let folder = found.project.as_ref().map_or(self.folder.clone(), PathBuf::from);
            if found.project.is_some() {
                args.iter_mut().filter(|arg| *arg == "user").for_each(|arg| "local".clone_into(arg));
            }
            self.run(&args, &folder)?;
        }
        Ok(())
    }

    /// Removes one entry of the user.
    pub fn remove(&self, name: &str) -> Result<(), Failure> {
        self.run(&self.command.remove_args(name), &self.folder)
    }

    fn run(&self, args: &[String], folder: &Path) -> Result<(), Failure> {
        let mut command = Command::new(&self.path);
        command.args(args).current_dir(folder).stdin(Stdio::null()).process_group(0);
        let problem =
            |error: io::Error| Failure::Other(format!("cannot start {}: {error}", self.path.display()));
        // A file instead of a pipe: a process that outlives the program would keep a pipe open.
        let mut said = tempfile::tempfile().map_err(problem)?;
        command.stdout(said.try_clone().map_err(problem)?).stderr(said.try_clone().map_err(problem)?);
        let mut child = command.spawn().map_err(problem)?;
        if self.ended(&mut child)?.success() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        said.rewind().and_then(|()| said.read_to_end(&mut bytes)).map_err(problem)?;
        let said = String::from_utf8_lossy(&bytes);
        let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        Err(Failure::Other(format!("`{}` failed: {}", self.name(), line.trim())))
    }

    /// Waits for the end, and kills the program and its children if it takes too long.
    fn ended(&self, child: &mut Child) -> Result<ExitStatus, Failure> {
        let start = Instant::now();
        while start.elapsed() < self.limit {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(PAUSE);
        }
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        child.wait()?;
        Err(Failure::Silent(self.command.program.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use plugbay_hosts::known;

    use super::*;

    #[test]
    fn a_program_of_a_host_that_hangs_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("claude");
        fs::write(&path, "#!/bin/sh\nsleep 600\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let host = known::by_id("claude-code").unwrap();
        let command = host.command.as_ref().unwrap();
        let limit = Duration::from_millis(100);
        let program = HostProgram { host, command, path, folder: folder.path().to_owned(), limit };
        let failure = program.remove("calc").unwrap_err();
        assert_eq!(failure.to_string(), "`claude` does not answer");
        assert!(matches!(failure, Failure::Silent(_)));
    }
}
