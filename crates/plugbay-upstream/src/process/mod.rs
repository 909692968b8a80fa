//! The child process of a stdio server: started without a shell, watched, and never left behind.
//!
//! The id of a process group stays ours only while its leader is unreaped or the group has members. So a
//! leader's exit is first *seen* (it stays a zombie), then its group is signalled, and only then it is
//! reaped. After a `kill -9` of the gateway itself, the [`Guard`]'s helper process clears the rest.

mod cgroup;
mod child;
mod environment;
mod error;
mod exit;
mod guard;
mod helper;
mod resolve;
mod stderr;
mod strays;
pub(crate) mod text;
mod tree;

#[cfg(test)]
mod tests;

use std::{ffi::OsStr, path::PathBuf, process::Stdio};

use tokio::process::Command;

pub use self::{
    child::Process,
    environment::{inherited, is_inherited},
    error::SpawnError,
    exit::Exit,
    guard::Guard,
    helper::guard_main,
    stderr::{StderrRing, StderrSink},
};
use crate::spec::StdioSpec;

/// The program that [`spawn`] would start.
pub fn find_program(spec: &StdioSpec) -> Result<PathBuf, SpawnError> {
    let cwd = working_directory(spec)?;
    let environment = environment::for_child(spec.origin.variables(), &spec.env, "", 0);
    let path = environment.get(OsStr::new(environment::PATH)).map(AsRef::as_ref);
    resolve::program(&spec.command, path, cwd.as_deref())
}

/// A gateway may be a server of another gateway. More levels than this mean that a gateway starts itself.
const DEEPEST: usize = 4;

/// Starts the server's program. Must be called inside a tokio runtime with I/O and time enabled.
///
/// The ring keeps the end of its stderr. The child's stderr is logged under the current span.
pub fn spawn(spec: &StdioSpec, guard: &Guard, stderr: StderrRing) -> Result<Process, SpawnError> {
    let cwd = working_directory(spec)?;
    let variables = spec.origin.variables();
    let depth = environment::depth(variables.get(OsStr::new(environment::DEPTH)).map(AsRef::as_ref)) + 1;
    if depth > DEEPEST {
        return Err(SpawnError::TooDeep);
    }
    let environment = environment::for_child(variables, &spec.env, guard.instance(), depth);
    let path = environment.get(OsStr::new(environment::PATH)).map(AsRef::as_ref);
    let program = resolve::program(&spec.command, path, cwd.as_deref())?;

    let mut command = Command::new(&program);
    command
        .arg0(&spec.command)
        .args(&spec.args)
        .env_clear()
        .envs(&environment)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(cwd) = &cwd {
        command.current_dir(cwd);
    }
    Process::start(command, guard, stderr).map_err(|reason| SpawnError::from_start(program, reason))
}

/// The working directory of the server: its own, or that of its origin.
fn working_directory(spec: &StdioSpec) -> Result<Option<PathBuf>, SpawnError> {
    resolve::working_directory(spec.cwd.as_deref().or(spec.origin.folder.as_deref()))
}
