//! Reads and writes files for plugbay: only regular files, always as a whole, and its own only for their
//! owner.
//!
//! plugbay's own files are in [`own`]: caches, logins, tokens, logs. All other files belong to the user or a
//! program. They may be reached through symbolic links, and keep their permissions.

mod draft;
pub mod own;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

pub use draft::{is_abandoned, sweep};

/// Limit of links that lead to a file; more would be a cycle.
const MOST_LINKS: usize = 40;

/// The longest file of certificates that is read.
pub const LARGEST_CA_FILE: u64 = 16 * 1024 * 1024;

/// The content of a regular file, following symbolic links. A longer file is an error.
pub fn read(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    whole(&regular(OpenOptions::new().read(true), path, OFlags::empty())?, longest)
}

/// Like [`read`], for a file of text.
pub fn read_text(path: &Path, longest: u64) -> io::Result<String> {
    text(read(path, longest)?)
}

/// Replaces the content of a file: a reader, or a crash, finds either the old or the new content.
///
/// A new file is readable only by its owner; an existing one keeps its permissions. A symbolic link is kept,
/// and its target is replaced. Missing folders are created for their owner only.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = &destination(path)?;
    create_folder(folder_of(path))?;
    let permissions = fs::metadata(path).ok().map(|existing| existing.permissions());
    draft::replace(path, content, permissions, draft::Sync::Yes).map(drop)
}

/// Creates a folder, and those above it, for their owner only. An existing folder stays unchanged.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The folder of a file.
pub fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The file that `path` leads to if it is a link, or a link to a link. It need not exist.
pub fn destination(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("its symbolic links form a circle"))
}

/// Opens a regular file only: a pipe could block, and a device has no end.
fn regular(options: &mut OpenOptions, path: &Path, flags: OFlags) -> io::Result<File> {
    let not_regular = || io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file");
    // Some devices act when they are opened.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(not_regular());
    }
    // Checked again, because there may be another file at the path by now.
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn whole(mut file: &File, longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Read::take(&mut file, longest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        let size = if longest >= 1 << 20 {
            format!("{} MiB", longest >> 20)
        } else {
            format!("{} KiB", longest >> 10)
        };
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("the file is larger than {size}")));
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "this is not UTF-8 text"))
}

#[cfg(test)]
mod tests;
