//! Approval of project files: a file may be used if the user has approved its exact content.
//!
//! A file in a repository can start any program, so opening a folder must not be enough to use it.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{document, identity::hex_digest, paths::Paths};
use crate::files::{self, own};

/// A file with the content that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub file: PathBuf,
    pub sha256: String,
}

impl Content {
    pub fn of(file: &Path, bytes: &[u8]) -> Self {
        Self { file: file.into(), sha256: hex_digest(bytes) }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    #[error("{}: {reason}", file.display())]
    Unreadable { file: PathBuf, reason: String },
    #[error("{} has changed since it was shown; nothing was approved", file.display())]
    Changed { file: PathBuf },
    #[error("{}: the path is not UTF-8", file.display())]
    OddPath { file: PathBuf },
    #[error("there is no folder for approvals; set HOME or XDG_STATE_HOME")]
    NoStateFolder,
    #[error("{}: not a list of approvals; remove it and approve again", file.display())]
    Garbled { file: PathBuf },
    #[error("{}: {source}", file.display())]
    Write { file: PathBuf, source: io::Error },
}

/// Approves these files, for as long as they keep the content that was read.
pub fn approve(paths: &Paths, contents: &[Content]) -> Result<(), ApproveError> {
    let approvals = paths.approvals().ok_or(ApproveError::NoStateFolder)?;
    let mut list = read(&approvals).map_err(|_| ApproveError::Garbled { file: approvals.clone() })?;
    for Content { file, sha256 } in contents {
        let unreadable = |reason: String| ApproveError::Unreadable { file: file.into(), reason };
        let present = document::bytes(file).map_err(|problem| unreadable(problem.message))?;
        if present.is_none_or(|bytes| hex_digest(&bytes) != *sha256) {
            return Err(ApproveError::Changed { file: file.into() });
        }
        let place = place(file).map_err(|error| unreadable(error.to_string()))?;
        let key = place.to_str().ok_or_else(|| ApproveError::OddPath { file: file.into() })?;
        list.0.insert(key.to_owned(), sha256.clone());
    }
    write(&approvals, &list).map_err(|source| ApproveError::Write { file: approvals, source })
}

/// Whether this content of the file may be used without asking again.
pub fn is_approved(paths: &Paths, file: &Path, content: &[u8]) -> bool {
    approval(paths.approvals().as_deref(), file, content) == Approval::Given
}

/// The approval of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Approval {
    Given,
    /// It was given for other content.
    Outdated,
    Missing,
}

/// Whether `content`, read from `file`, may be used. A list of approvals that cannot be read approves
/// nothing.
pub(super) fn approval(approvals: Option<&Path>, file: &Path, content: &[u8]) -> Approval {
    let list = approvals.and_then(|path| read(path).ok()).unwrap_or_default();
    let place = place(file).ok();
    match place.as_deref().and_then(Path::to_str).and_then(|key| list.0.get(key)) {
        Some(sha256) if *sha256 == hex_digest(content) => Approval::Given,
        Some(_) => Approval::Outdated,
        None => Approval::Missing,
    }
}

/// The file's name in its real folder. A file that is itself a link is not replaced by its target: its
/// servers start in the link's folder, where the same command may be another program.
fn place(file: &Path) -> io::Result<PathBuf> {
    Ok(files::folder_of(file).canonicalize()?.join(file.file_name().unwrap_or_default()))
}

/// Maps each place to the SHA-256 of its approved content.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Approvals(BTreeMap<String, String>);

fn read(path: &Path) -> io::Result<Approvals> {
    match files::read_own(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Approvals::default()),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, list: &Approvals) -> io::Result<()> {
    own::replace(path, &serde_json::to_vec_pretty(list)?)
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn approval_holds_for_one_content_at_one_place() {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str| root.path().join(name);
        let state_folder = Some(file("state/plugbay"));
        let paths = Paths { user_file: None, state_folder, home: None, start: root.path().into() };
        let approvals = paths.approvals().unwrap();
        fs::write(file("a"), "one").unwrap();
        fs::write(file("b"), "one").unwrap();
        fs::create_dir(file("elsewhere")).unwrap();
        std::os::unix::fs::symlink(file("a"), file("elsewhere/a")).unwrap();
        std::os::unix::fs::symlink(root.path(), file("here")).unwrap();
        let check = |name: &str, content: &[u8]| approval(Some(&approvals), &file(name), content);
        let approve = |name: &str, content: &str| {
            super::approve(&paths, &[Content::of(&file(name), content.as_bytes())])
        };

        assert_eq!(check("a", b"one"), Approval::Missing);
        assert!(matches!(approve("a", "shown"), Err(ApproveError::Changed { .. })));
        assert_eq!(check("a", b"one"), Approval::Missing);
        approve("here/a", "one").unwrap();
        assert_eq!(check("a", b"one"), Approval::Given);
        assert_eq!(check("here/a", b"one"), Approval::Given, "the folder is the same");
        assert_eq!(check("elsewhere/a", b"one"), Approval::Missing, "its servers start elsewhere");
        assert_eq!(check("a", b"two"), Approval::Outdated);
        assert_eq!(check("b", b"one"), Approval::Missing);
        assert_eq!(approval(None, &file("a"), b"one"), Approval::Missing);

        approve("b", "one").unwrap();
        assert_eq!(check("a", b"one"), Approval::Given, "earlier approvals stay");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&approvals), mode(approvals.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(approvals.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");

        fs::write(&approvals, "{").unwrap();
        assert_eq!(check("a", b"one"), Approval::Missing);
        assert!(matches!(approve("a", "one"), Err(ApproveError::Garbled { .. })));
        fs::remove_file(&approvals).unwrap();
        assert!(matches!(approve("c", "one"), Err(ApproveError::Changed { .. })), "it is not there");
    }
}
