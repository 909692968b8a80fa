//! plugbay's own files: only for their owner, in folders that no other user can have created.
//!
//! They are never reached through a symbolic link. A folder of another user, and one that is a link, is refused.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
    time::{Duration, Instant},
};

use rustix::{fs::OFlags, process::geteuid};

use crate::{
    draft::{self, Sync},
    folder_of, regular, text, whole,
};

/// The name of the folders that contain all of plugbay's own folders.
const ROOT: &str = "plugbay";
/// Number of folders from a file up to that root.
const DEEPEST: usize = 3;
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// Creates a folder, or makes an existing one private.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    match check_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            crate::create_folder(folder)?;
            check_folder(folder)
        }
        checked => checked,
    }
}

/// Checks that a folder is safe. One that others can use is made private, with plugbay's own folders above
/// it.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    let is_root = |above: &Path| above.file_name().is_some_and(|name| name == ROOT);
    let root = folder.ancestors().take(DEEPEST).position(is_root).unwrap_or(0);
    folder.ancestors().take(root + 1).try_for_each(check_one)
}

fn check_one(folder: &Path) -> io::Result<()> {
    let refused = |why: &str| refused(format!("the folder {} {why}; remove it", folder.display()));
    let found = fs::symlink_metadata(folder)?;
    if found.is_symlink() {
        return Err(refused("is a symbolic link"));
    }
    if !found.is_dir() {
        return Err(refused("is not a folder"));
    }
    if found.uid() != geteuid().as_raw() {
        return Err(refused("belongs to another user"));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// The content of a file. A longer file is an error, and so is one in an unsafe folder.
pub fn read(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    whole(&open(path)?, longest)
}

/// Like [`read`], for a file of text.
pub fn read_text(path: &Path, longest: u64) -> io::Result<String> {
    text(read(path, longest)?)
}

/// Replaces a file: a reader, or a crash, finds either the old or the new content.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    create_folder(folder_of(path))?;
    draft::replace(path, content, None, Sync::Yes).map(drop)
}

/// Like [`replace`], but does not wait for the disk: for content that may be lost if the machine crashes. The
/// returned file is locked.
pub fn replace_unsynced(path: &Path, content: &[u8]) -> io::Result<File> {
    create_folder(folder_of(path))?;
    draft::replace(path, content, None, Sync::No)
}

/// A file to read from.
pub fn open(path: &Path) -> io::Result<File> {
    opened(path, OpenOptions::new().read(true))
}

/// A file to append to. It is created if necessary, with its folder.
pub fn append(path: &Path) -> io::Result<File> {
    made(path, OpenOptions::new().append(true))
}

/// A file that is used for its lock, and perhaps its content. It is created if necessary, with its folder.
pub fn lock_file(path: &Path) -> io::Result<File> {
    made(path, OpenOptions::new().read(true).write(true))
}

/// Takes the lock of a file, held until the file is closed; `None` if another process holds it.
pub fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = lock_file(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Like [`try_lock`], but waits. Another process may hold the lock for ever, so the wait has a limit.
pub fn lock(path: &Path, patience: Duration) -> io::Result<File> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(file) = try_lock(path)? {
            return Ok(file);
        }
        if Instant::now() >= deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds its lock"));
        }
        std::thread::sleep(LOCK_RETRY);
    }
}

fn made(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    create_folder(folder_of(path))?;
    opened(path, options.create(true).mode(0o600))
}

/// Opens a file of this user: others could have put theirs into a folder that was open to them.
fn opened(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    check_folder(folder_of(path))?;
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err(refused("it is a symbolic link; remove it".to_owned()));
    }
    let file = regular(options, path, OFlags::NOFOLLOW)?;
    let found = file.metadata()?;
    if found.uid() != geteuid().as_raw() {
        return Err(refused("it belongs to another user; remove it".to_owned()));
    }
    if found.mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

fn refused(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}
