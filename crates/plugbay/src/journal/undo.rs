//! Undoes recorded changes, the newest first.

use std::{
    cmp::Reverse,
    io,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    BEFORE, Change, ChangeError, Journal, Part, State, copies, copy, file, forget, place, remove_folders,
};

/// The state of a file, compared with a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    Before,
    After,
    /// Somebody has changed it since the change.
    Other,
    Unreadable,
}

/// The outcome of undoing one change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undone {
    pub path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(flatten)]
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum Outcome {
    /// The file is as before, byte for byte.
    Restored,
    /// plugbay had created the file; it was removed.
    Removed,
    /// The file was already as before.
    Unchanged,
    /// The file had been changed since: plugbay's part was removed, and the later changes stay.
    Merged,
    /// The change could not be undone, and stays in the journal.
    Failed { reason: String },
}

/// Makes the text of a file without plugbay's part, from the change and the texts before, after and now.
pub type Merge<'a> = &'a dyn Fn(&Change, Texts<'_>) -> Result<String, String>;

/// The content of a file at three times; empty if there was no file.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    pub before: &'a str,
    pub after: &'a str,
    pub now: &'a str,
}

impl Change {
    pub fn present(&self) -> Present {
        let Ok(now) = State::of(self.part, &self.path) else { return Present::Unreadable };
        if now == self.before {
            Present::Before
        } else if self.after.as_ref() == Some(&now) {
            Present::After
        } else {
            Present::Other
        }
    }

    /// Whether somebody has deleted the file.
    fn is_gone(&self) -> bool {
        let found = self.place().and_then(|place| place.symlink_metadata());
        found.is_err_and(|error| file::is_absent(&error))
    }

    fn place(&self) -> io::Result<PathBuf> {
        place(self.part, &self.path)
    }
}

impl Journal {
    /// Undoes the wanted changes, the newest first, and forgets those that are undone.
    ///
    /// plugbay's own configuration comes last. It stays as long as a host's list of servers could not be
    /// undone: the servers that were moved out of it may be nowhere else.
    pub fn undo(
        &mut self,
        wanted: impl Fn(&Change) -> bool,
        merge: Merge<'_>,
    ) -> Result<Vec<Undone>, ChangeError> {
        let mut changes: Vec<Change> = self.changes.iter().filter(|change| wanted(change)).cloned().collect();
        changes.sort_by_key(|change| (change.part == Part::Configuration, Reverse(change.number)));
        let mut undone = Vec::new();
        let mut stuck: Option<PathBuf> = None;
        for change in changes {
            let outcome = match &stuck {
                Some(file) if change.part == Part::Configuration => needed(file),
                _ => self.undo_one(&change, merge),
            };
            if !matches!(outcome, Outcome::Failed { .. }) {
                self.undone(&change)?;
            } else if change.part == Part::Servers {
                stuck = Some(change.path.clone());
            }
            undone.push(Undone { path: change.path, host: change.host, outcome });
        }
        Ok(undone)
    }

    /// Forgets a change that is undone.
    fn undone(&mut self, change: &Change) -> Result<(), ChangeError> {
        remove_folders(&change.folders);
        self.changes.retain(|other| other.number != change.number);
        self.save()?;
        forget(&self.folder, change.number);
        Ok(())
    }

    fn undo_one(&self, change: &Change, merge: Merge<'_>) -> Outcome {
        let done = match change.present() {
            Present::Before => return Outcome::Unchanged,
            Present::After => self.restore(change),
            // Somebody has deleted the file, and with it the only record of its servers.
            Present::Other if change.is_gone() => self.restore(change),
            Present::Other if change.part == Part::Skill => {
                Err("it is not plugbay's link any more".to_owned())
            }
            Present::Other => self.merge(change, merge).map(|()| Outcome::Merged),
            Present::Unreadable => Err("it cannot be read".to_owned()),
        };
        done.unwrap_or_else(|reason| Outcome::Failed { reason: self.with_backup(change, reason) })
    }

    /// The reason, with the place of the old content.
    fn with_backup(&self, change: &Change, reason: String) -> String {
        let backup = copy(&self.folder, change.number, BEFORE);
        if backup.exists() {
            format!("{reason}; its content before plugbay is in {}", backup.display())
        } else {
            reason
        }
    }

    fn restore(&self, change: &Change) -> Result<Outcome, String> {
        let result = match &change.before {
            State::Absent => return remove(change).map(|()| Outcome::Removed),
            State::Link { target } => file::link(&change.path, target),
            State::File { .. } => {
                let (before, _) = copies(&self.folder, change);
                let bytes = before.ok_or_else(|| "its backup is gone".to_owned())?;
                // Written in the place of a link, not through it.
                let unlinked = if change.part == Part::Skill { file::remove(&change.path) } else { Ok(()) };
                unlinked.and_then(|()| file::replace(&change.path, &bytes))
            }
        };
        result.map(|()| Outcome::Restored).map_err(|error| error.to_string())
    }

    fn merge(&self, change: &Change, merge: Merge<'_>) -> Result<(), String> {
        let now = file::read(&change.path).map_err(|error| error.to_string())?;
        let (before, after) = copies(&self.folder, change);
        if before.is_none() && change.before != State::Absent {
            return Err("its backup is gone".to_owned());
        }
        let text = |bytes: Option<Vec<u8>>| {
            String::from_utf8(bytes.unwrap_or_default()).map_err(|_| "it is not UTF-8".to_owned())
        };
        let (before, after, now) = (text(before)?, text(after)?, text(now)?);
        let merged = merge(change, Texts { before: &before, after: &after, now: &now })?;
        if merged == now {
            return Ok(());
        }
        if merged.is_empty() && change.before == State::Absent {
            return remove(change);
        }
        file::replace(&change.path, merged.as_bytes()).map_err(|error| error.to_string())
    }
}

/// Removes what was created. If a link led nowhere, that is the file it now leads to.
fn remove(change: &Change) -> Result<(), String> {
    change.place().and_then(|place| file::remove(&place)).map_err(|error| error.to_string())
}

fn needed(file: &Path) -> Outcome {
    let reason = format!("{} still needs it: its servers are nowhere else", file.display());
    Outcome::Failed { reason }
}
