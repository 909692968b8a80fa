//! Undoes recorded changes, the newest first.

use std::path::PathBuf;

use serde::Serialize;

use super::{Change, Journal, Part, State, copies, file, forget, remove_folders};
use crate::journal::ChangeError;

/// How a file is now, compared with a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    Before,
    After,
    /// Somebody has changed it since.
    Other,
    Unreadable,
}

/// What became of one change.
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
    /// The file is as it was before, byte for byte.
    Restored,
    /// plugbay had created it; it is gone.
    Removed,
    /// It was as before already.
    Unchanged,
    /// It had been changed since: plugbay's part is gone, the later changes stay.
    Merged,
    /// It could not be undone, and stays in the journal.
    Failed { reason: String },
}

/// The text of a file without plugbay's part: from the change and the texts before, after and now.
pub type Merge<'a> = &'a dyn Fn(&Change, Texts<'_>) -> Result<String, String>;

/// The content of a file at three moments; empty where there was no file.
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
}

impl Journal {
    /// Undoes the wanted changes, the newest first, and forgets those that are undone.
    pub fn undo(
        &mut self,
        wanted: impl Fn(&Change) -> bool,
        merge: Merge<'_>,
    ) -> Result<Vec<Undone>, ChangeError> {
        let mut numbers: Vec<u64> =
            self.changes.iter().filter(|change| wanted(change)).map(|change| change.number).collect();
        numbers.sort_unstable_by(|one, two| two.cmp(one));
        let mut undone = Vec::new();
        for number in numbers {
            let Some(index) = self.changes.iter().position(|change| change.number == number) else {
                continue;
            };
            let change = self.changes[index].clone();
            let outcome = self.undo_one(&change, merge);
            let failed = matches!(outcome, Outcome::Failed { .. });
            if !failed {
                remove_folders(&change.folders);
                self.changes.remove(index);
                self.save()?;
                forget(&self.folder, number);
            }
            undone.push(Undone { path: change.path, host: change.host, outcome });
        }
        Ok(undone)
    }

    fn undo_one(&self, change: &Change, merge: Merge<'_>) -> Outcome {
        let done = match change.present() {
            Present::Before => return Outcome::Unchanged,
            Present::After => self.restore(change),
            Present::Other if change.part == Part::Skill => {
                Err("it is not plugbay's link any more".to_owned())
            }
            Present::Other => self.merge(change, merge).map(|()| Outcome::Merged),
            Present::Unreadable => Err("it cannot be read".to_owned()),
        };
        done.unwrap_or_else(|reason| Outcome::Failed { reason })
    }

    fn restore(&self, change: &Change) -> Result<Outcome, String> {
        let result = match &change.before {
            State::Absent => return remove(change).map(|()| Outcome::Removed),
            State::Link { target } => file::link(&change.path, target),
            State::File { .. } => {
                let (before, _) = copies(&self.folder, change);
                let bytes = before.ok_or_else(|| "its backup is gone".to_owned())?;
                // In the place of a link, not in that of the file which the link leads to.
                let unlinked = if change.part == Part::Skill { file::remove(&change.path) } else { Ok(()) };
                unlinked.and_then(|()| file::replace(&change.path, &bytes))
            }
        };
        result.map(|()| Outcome::Restored).map_err(|error| error.to_string())
    }

    fn merge(&self, change: &Change, merge: Merge<'_>) -> Result<(), String> {
        let now = file::read(&change.path).map_err(|error| error.to_string())?;
        // Somebody has deleted the file: nothing of plugbay's is in it.
        let Some(now) = now else { return Ok(()) };
        let (before, after) = copies(&self.folder, change);
        let text = |bytes: Option<Vec<u8>>| {
            String::from_utf8(bytes.unwrap_or_default()).map_err(|_| "it is not UTF-8".to_owned())
        };
        let (before, after, now) = (text(before)?, text(after)?, text(Some(now))?);
        let merged = merge(change, Texts { before: &before, after: &after, now: &now })?;
        if merged == now {
            return Ok(());
        }
        file::replace(&change.path, merged.as_bytes()).map_err(|error| error.to_string())
    }
}

fn remove(change: &Change) -> Result<(), String> {
    file::remove(&change.path).map_err(|error| error.to_string())
}
