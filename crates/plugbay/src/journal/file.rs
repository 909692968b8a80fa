//! Reads, replaces, links and removes the files of hosts.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use crate::files;

/// The bytes of a file; `None` if there is none.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if_there(files::read(path))
}

/// The same for a file of the journal.
pub fn read_own(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if_there(files::read_own(path))
}

fn if_there(read: io::Result<Vec<u8>>) -> io::Result<Option<Vec<u8>>> {
    match read {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the content of a file, unless its owner has made it read-only.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.permissions().readonly() => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"))
        }
        _ => files::replace(path, bytes),
    }
}

/// Removes a file or a link; an absent one is no error.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Replaces whatever file or link is at the path by a link to `target`.
pub fn link(path: &Path, target: &Path) -> io::Result<()> {
    files::create_folder(files::folder_of(path))?;
    let folder = tempfile::TempDir::new_in(files::folder_of(path))?;
    let draft = folder.path().join("link");
    symlink(target, &draft)?;
    fs::rename(&draft, path)
}

/// The folders above `path` that do not exist, the outermost first.
pub fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let above = files::folder_of(path).ancestors().take_while(|folder| !folder.exists());
    let mut missing: Vec<PathBuf> = above.map(Path::to_path_buf).collect();
    missing.reverse();
    missing
}

pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::{fs::Permissions, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_read_only_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
        let error = replace(&file, b"new").unwrap_err();
        assert_eq!(error.to_string(), "the file is read-only");
        assert_eq!(fs::read(&file).unwrap(), b"old");
    }

    #[test]
    fn the_missing_folders_above_a_path_come_outermost_first() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/b/file");
        assert_eq!(missing_folders(&file), [folder.path().join("a"), folder.path().join("a/b")]);
        replace(&file, b"").unwrap();
        assert!(missing_folders(&file).is_empty());
    }
}
