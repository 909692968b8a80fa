//! Reasons why a server's program could not be started, with a remedy for the user.

use std::{io, path::PathBuf};

use rustix::io::Errno;
use thiserror::Error;

/// The reason why a program could not be started. `Display` says what is wrong, [`SpawnError::remedy`] what
/// to do.
#[derive(Debug, Error)]
pub enum SpawnError {
    #[error("this plugbay was started by a plugbay, which was too, and so on")]
    TooDeep,

    #[error("the command is empty")]
    NoCommand,

    #[error("the working directory {} cannot be used ({reason})", path.display())]
    WorkingDirectory { path: PathBuf, reason: io::Error },

    #[error("command not found: `{command}` is in none of the folders of PATH")]
    NotInPath { command: String },

    #[error("command not found: there is no file {}", path.display())]
    NoSuchFile { path: PathBuf },

    #[error("{} is a folder, not a program", path.display())]
    Folder { path: PathBuf },

    #[error("{} may not be executed", path.display())]
    NotExecutable { path: PathBuf },

    #[error("{} exists, but the interpreter or loader it asks for does not", path.display())]
    NoInterpreter { path: PathBuf },

    #[error("{} is no program this machine can run", path.display())]
    NotAProgram { path: PathBuf },

    #[error("{} could not be started ({reason})", path.display())]
    Other { path: PathBuf, reason: io::Error },
}

impl SpawnError {
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::TooDeep => "remove plugbay itself from the servers of its configuration",
            Self::NoCommand => "name the server's program in \"command\"",
            Self::WorkingDirectory { .. } => "create the folder, or correct \"cwd\"",
            Self::NotInPath { .. } => {
                "install it, write its full path in \"command\", or set PATH in the server's \"env\""
            }
            Self::NoSuchFile { .. } => "install the program, or correct \"command\"",
            Self::Folder { .. } => "name the program within it in \"command\"",
            Self::NotExecutable { .. } => {
                "make it executable (chmod +x), or start it through its interpreter"
            }
            Self::NoInterpreter { .. } => "install what its first line names, or a build for this system",
            Self::NotAProgram { .. } => "check its architecture, or give a script a `#!` line",
            Self::Other { .. } => "try the same command in a terminal",
        }
    }

    /// The meaning of the system's error for a program that was found and looked executable.
    pub(super) fn from_start(path: PathBuf, reason: io::Error) -> Self {
        match Errno::from_io_error(&reason) {
            // The file and the working directory existed a moment ago, so the interpreter is missing.
            Some(Errno::NOENT) if path.exists() => Self::NoInterpreter { path },
            Some(Errno::NOENT) => Self::NoSuchFile { path },
            Some(Errno::ACCESS | Errno::PERM) => Self::NotExecutable { path },
            Some(Errno::NOEXEC) => Self::NotAProgram { path },
            _ => Self::Other { path, reason },
        }
    }
}
