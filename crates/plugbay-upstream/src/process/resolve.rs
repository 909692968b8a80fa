//! Resolves the configured command to one file, so that an error can say what was searched and where.
//!
//! The system's own "no such file" cannot tell a missing command from a missing working directory or
//! interpreter.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use super::SpawnError;

/// The path that the system itself searches if PATH is not set.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The configured folder as an absolute path.
pub(super) fn working_directory(cwd: Option<&Path>) -> Result<Option<PathBuf>, SpawnError> {
    let Some(cwd) = cwd else { return Ok(None) };
    match std::path::absolute(cwd).and_then(|absolute| Ok((absolute.metadata()?.is_dir(), absolute))) {
        Ok((true, absolute)) => Ok(Some(absolute)),
        Ok((false, path)) => {
            Err(SpawnError::WorkingDirectory { path, reason: io::ErrorKind::NotADirectory.into() })
        }
        Err(reason) => Err(SpawnError::WorkingDirectory { path: cwd.to_owned(), reason }),
    }
}

/// The file to execute, searched as the child would: with its PATH and its working directory.
pub(super) fn program(
    command: &str,
    path: Option<&OsStr>,
    cwd: Option<&Path>,
) -> Result<PathBuf, SpawnError> {
    if command.is_empty() {
        return Err(SpawnError::NoCommand);
    }
    let cwd = cwd.unwrap_or(Path::new(""));
    if command.contains('/') {
        return named_file(cwd.join(command));
    }
    search(command, path.unwrap_or(DEFAULT_PATH.as_ref()), cwd)
}

fn named_file(path: PathBuf) -> Result<PathBuf, SpawnError> {
    match judge(&path) {
        Verdict::Executable => Ok(path),
        Verdict::NotExecutable => Err(SpawnError::NotExecutable { path }),
        Verdict::Absent if path.is_dir() => Err(SpawnError::Folder { path }),
        Verdict::Absent => Err(SpawnError::NoSuchFile { path }),
    }
}

fn search(command: &str, path: &OsStr, cwd: &Path) -> Result<PathBuf, SpawnError> {
    let mut not_executable = None;
    // An empty entry would mean the working directory, where a repository could shadow any command.
    for folder in std::env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty()) {
        let candidate = cwd.join(folder).join(command);
        match judge(&candidate) {
            Verdict::Executable => return Ok(candidate),
            Verdict::NotExecutable => _ = not_executable.get_or_insert(candidate),
            Verdict::Absent => {}
        }
    }
    Err(match not_executable {
        Some(path) => SpawnError::NotExecutable { path },
        None => SpawnError::NotInPath { command: command.to_owned() },
    })
}

enum Verdict {
    Executable,
    NotExecutable,
    Absent,
}

fn judge(path: &Path) -> Verdict {
    match path.metadata() {
        Ok(found) if found.is_file() && access(path, Access::EXEC_OK).is_ok() => Verdict::Executable,
        Ok(found) if found.is_file() => Verdict::NotExecutable,
        _ => Verdict::Absent,
    }
}
