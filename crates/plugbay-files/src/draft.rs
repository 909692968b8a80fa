//! Drafts: the new content of a file, in a temporary file beside it until it is moved into place.
//!
//! The writer of a draft holds its lock. So a draft that can be locked was left behind by a process that has
//! ended. A process's first write to a folder removes such drafts.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, Permissions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use crate::{folder_of, regular};

const PREFIX: &str = ".plugbay-draft-";
/// How often a draft may be lost because another process takes it for abandoned before it is locked.
const ATTEMPTS: usize = 64;

/// Whether a write waits for the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    Yes,
    /// Does not wait: for content that may be lost if the machine crashes.
    No,
}

/// Replaces whatever is at `path`, even a link or a pipe, by a new file. Returns the file, locked.
pub(crate) fn replace(
    path: &Path,
    content: &[u8],
    permissions: Option<Permissions>,
    sync: Sync,
) -> io::Result<File> {
    let folder = folder_of(path);
    sweep_once(folder);
    let mut draft = locked(folder)?;
    if let Some(permissions) = permissions {
        draft.as_file().set_permissions(permissions)?;
    }
    draft.write_all(content)?;
    if sync == Sync::Yes {
        draft.as_file().sync_all()?;
    }
    let file = draft.persist(path)?;
    if sync == Sync::Yes {
        // Without this, a crash of the machine could undo the rename. Some file systems cannot do it.
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(file)
}

/// Whether this is a draft whose writer has ended.
pub fn is_abandoned(path: &Path) -> bool {
    lock_abandoned(path).is_some()
}

/// Locks a draft whose writer has ended. While this is held, no other process can take the draft.
fn lock_abandoned(path: &Path) -> Option<File> {
    let is_draft = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    let open = || regular(OpenOptions::new().read(true), path, OFlags::NOFOLLOW).ok();
    is_draft.then(open)?.filter(|file| file.try_lock().is_ok())
}

/// A new, empty file that only its owner can access.
fn locked(folder: &Path) -> io::Result<NamedTempFile> {
    for _ in 0..ATTEMPTS {
        let draft = tempfile::Builder::new().prefix(PREFIX).tempfile_in(folder)?;
        match draft.as_file().try_lock() {
            // Otherwise another process has locked and removed it before.
            Ok(()) if draft.as_file().metadata()?.nlink() > 0 => return Ok(draft),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            // On a file system without locks, nobody takes it for abandoned.
            Err(TryLockError::Error(_)) => return Ok(draft),
        }
    }
    Err(io::Error::other("other processes remove its temporary file"))
}

/// Removes abandoned drafts from a folder, once per process.
fn sweep_once(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    // The lock is held for a look-up.
    let is_first = SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
    if is_first {
        sweep(folder);
    }
}

/// Removes drafts whose writers have ended from a folder.
pub fn sweep(folder: &Path) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if let Some(_held) = lock_abandoned(&path) {
            let _ = fs::remove_file(path); // another process may have been faster
        }
    }
}
