//! The journal of changes: plugbay's changes to files of hosts, with everything needed to undo them.
//!
//! A change is recorded before it is made. If plugbay is killed in between, the file still has its old
//! content, and undoing the change has no effect.

pub mod file;
mod reverse;
mod undo;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    clock,
    {
        config::hex_digest,
        files::{self, own},
    },
};
pub use reverse::reverse;
pub use undo::{Outcome, Present, Texts, Undone};

const JOURNAL: &str = "journal.json";
const LOCK: &str = "lock";

/// The recorded changes. While it is open, no other process can open it.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    changes: Vec<Change>,
    _lock: File,
}

/// One file that plugbay changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The number of the change, which also names its backups.
    pub number: u64,
    /// The time, in seconds since 1970.
    pub at: u64,
    /// The command that made it, such as `plugbay setup`.
    pub command: String,
    /// The host that the file belongs to; `None` for plugbay's own files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub part: Part,
    pub path: PathBuf,
    pub before: State,
    /// `None` while a host's program makes the change, because its result is not known yet.
    pub after: Option<State>,
    /// The folders that were created for it, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<PathBuf>,
}

/// The purpose of a changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// plugbay's own configuration.
    Configuration,
    /// A host's list of servers.
    Servers,
    /// A host's permission rules.
    Permissions,
    Skill,
}

/// The content at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Absent,
    File { sha256: String },
    Link { target: PathBuf },
}

/// The reason why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("{} has changed since it was shown", .0.display())]
    Moved(PathBuf),
    #[error("cannot change {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write the journal in {}: {source}", folder.display())]
    Journal { folder: PathBuf, source: io::Error },
    #[error("{0}")]
    Program(String),
}

/// The reason why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("another plugbay is changing the files of hosts at this moment")]
    Busy,
    #[error("{}: the journal cannot be parsed: {reason}", file.display())]
    Garbled { file: PathBuf, reason: String },
    #[error("{}: {source}", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
}

/// A file to change, with the host and command behind the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub command: &'static str,
    pub host: Option<String>,
    pub part: Part,
    pub path: PathBuf,
}

impl Journal {
    /// Opens the journal of this folder and locks it.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let problem = |source| OpenError::Folder { folder: folder.to_owned(), source };
        let lock = own::try_lock(&folder.join(LOCK)).map_err(problem)?.ok_or(OpenError::Busy)?;
        Ok(Self { folder: folder.to_owned(), changes: read(folder)?, _lock: lock })
    }

    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Writes `bytes` to a file, if it still has the content `expected`. Returns whether anything was
    /// written.
    pub fn write(
        &mut self,
        target: Target,
        expected: Option<&[u8]>,
        bytes: &[u8],
    ) -> Result<bool, ChangeError> {
        if expected == Some(bytes) {
            return Ok(false);
        }
        let path = target.path.clone();
        unmoved(&path, expected)?;
        let number = self.record(target, Some(State::of_bytes(bytes)))?;
        self.keep(number, AFTER, Some(bytes))?;
        let written = file::replace(&path, bytes);
        self.made(number, &path, written)
    }

    /// Creates a link to `to` at a path. Returns whether it was not there yet.
    pub fn link(&mut self, target: Target, to: &Path) -> Result<bool, ChangeError> {
        let path = target.path.clone();
        let wanted = State::Link { target: to.to_owned() };
        if State::of(target.part, &path).is_ok_and(|state| state == wanted) {
            return Ok(false);
        }
        let number = self.record(target, Some(wanted))?;
        let linked = file::link(&path, to);
        self.made(number, &path, linked)
    }

    /// Lets a program of the host change its file.
    pub fn by_program(
        &mut self,
        target: Target,
        expected: Option<&[u8]>,
        run: impl FnOnce() -> Result<(), String>,
    ) -> Result<bool, ChangeError> {
        let path = target.path.clone();
        unmoved(&path, expected)?;
        let number = self.record(target, None)?;
        let ran = run();
        let written = |source| ChangeError::Write { path: path.clone(), source };
        let after = file::read(&path).map_err(written)?;
        self.keep(number, AFTER, after.as_deref())?;
        let state = after.map_or(State::Absent, |bytes| State::of_bytes(&bytes));
        if let Some(change) = self.changes.iter_mut().find(|change| change.number == number) {
            change.after = Some(state);
        }
        self.forget_if_unmade(number);
        self.save()?;
        ran.map(|()| true).map_err(ChangeError::Program)
    }

    /// Records a change and saves the current content, before anything is changed.
    fn record(&mut self, target: Target, after: Option<State>) -> Result<u64, ChangeError> {
        let Target { command, host, part, path } = target;
        let write = |source| ChangeError::Write { path: path.clone(), source };
        let before = State::of(part, &path).map_err(write)?;
        let bytes = match before {
            State::File { .. } => file::read(&path).map_err(write)?,
            State::Link { .. } | State::Absent => None,
        };
        let number = self.changes.iter().map(|change| change.number + 1).max().unwrap_or(1);
        self.keep(number, BEFORE, bytes.as_deref())?;
        let folders = file::missing_folders(&place(part, &path).map_err(write)?);
        let command = command.to_owned();
        self.changes.push(Change {
            number,
            at: clock::now(),
            command,
            host,
            part,
            path,
            before,
            after,
            folders,
        });
        self.save()?;
        Ok(number)
    }

    /// Finishes a change. One that failed left the file unchanged, so it is forgotten.
    fn made(&mut self, number: u64, path: &Path, result: io::Result<()>) -> Result<bool, ChangeError> {
        let Err(source) = result else { return Ok(true) };
        self.forget_if_unmade(number);
        self.save()?;
        Err(ChangeError::Write { path: path.to_owned(), source })
    }

    fn forget_if_unmade(&mut self, number: u64) {
        let folder = self.folder.clone();
        self.changes.retain(|change| {
            let unmade = change.number == number && change.present() == Present::Before;
            if unmade {
                remove_folders(&change.folders);
                forget(&folder, number);
            }
            !unmade
        });
    }

    /// Keeps a copy of a file beside the journal.
    fn keep(&self, number: u64, which: &str, bytes: Option<&[u8]>) -> Result<(), ChangeError> {
        let Some(bytes) = bytes else { return Ok(()) };
        own::replace(&copy(&self.folder, number, which), bytes).map_err(|source| self.problem(source))
    }

    fn save(&self) -> Result<(), ChangeError> {
        let text = serde_json::to_vec_pretty(&self.changes).unwrap_or_default();
        own::replace(&self.folder.join(JOURNAL), &text).map_err(|source| self.problem(source))
    }

    fn problem(&self, source: io::Error) -> ChangeError {
        ChangeError::Journal { folder: self.folder.clone(), source }
    }
}

const BEFORE: &str = "before";
const AFTER: &str = "after";

/// The changes recorded in this folder; changes nothing.
pub fn read(folder: &Path) -> Result<Vec<Change>, OpenError> {
    let file = folder.join(JOURNAL);
    let bytes =
        file::read_own(&file).map_err(|source| OpenError::Folder { folder: folder.to_owned(), source })?;
    let parsed = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
    Ok(parsed.map_err(|error| OpenError::Garbled { file, reason: error.to_string() })?.unwrap_or_default())
}

/// The content of a file before a change, and after it.
pub fn copies(folder: &Path, change: &Change) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let kept = |which| file::read_own(&copy(folder, change.number, which)).ok().flatten();
    (kept(BEFORE), kept(AFTER))
}

impl State {
    /// The current state at a path. plugbay's skill is a link; for any other file links are followed.
    fn of(part: Part, path: &Path) -> io::Result<Self> {
        match fs::read_link(path) {
            Ok(target) if part == Part::Skill => Ok(Self::Link { target }),
            _ => Ok(file::read(path)?.map_or(Self::Absent, |bytes| Self::of_bytes(&bytes))),
        }
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Self::File { sha256: hex_digest(bytes) }
    }
}

/// The file that a change is made to: the target of all links, except for plugbay's skill, which is a link
/// itself.
fn place(part: Part, path: &Path) -> io::Result<PathBuf> {
    if part == Part::Skill { Ok(path.to_owned()) } else { files::destination(path) }
}

/// Fails if a file has other content than the user was shown.
fn unmoved(path: &Path, expected: Option<&[u8]>) -> Result<(), ChangeError> {
    let found = file::read(path).map_err(|source| ChangeError::Write { path: path.to_owned(), source })?;
    if found.as_deref() == expected { Ok(()) } else { Err(ChangeError::Moved(path.to_owned())) }
}

fn copy(folder: &Path, number: u64, which: &str) -> PathBuf {
    folder.join(format!("{number:04}.{which}"))
}

fn forget(folder: &Path, number: u64) {
    for which in [BEFORE, AFTER] {
        let _ = file::remove(&copy(folder, number, which));
    }
}

/// Removes those folders that are empty, the innermost first.
fn remove_folders(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

#[cfg(test)]
mod tests;
