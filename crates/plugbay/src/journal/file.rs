//! Reads and replaces files of other programs: a reader sees the old text or the new one, never a part.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

/// New files may hold keys, so only their owner reads them.
const PRIVATE: u32 = 0o600;

/// The bytes of a file; `None` if there is none.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts `bytes` in the place of the file, or of the file that a link leads to. Its mode stays.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = &followed(path);
    let mode = match fs::metadata(path) {
        Ok(found) if found.permissions().readonly() => {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
        }
        Ok(found) => found.permissions().mode() & 0o7777,
        Err(error) if is_absent(&error) => PRIVATE,
        Err(error) => return Err(error),
    };
    let folder = folder_of(path);
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    draft.write_all(bytes)?;
    draft.as_file().set_permissions(Permissions::from_mode(mode))?;
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    File::open(folder)?.sync_all()
}

/// Removes a file or a link; an absent one is no error.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if !is_absent(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Puts a link to `target` in the place of whatever file or link is there.
pub fn link(path: &Path, target: &Path) -> io::Result<()> {
    let folder = tempfile::TempDir::new_in(folder_of(path))?;
    let draft = folder.path().join("link");
    symlink(target, &draft)?;
    fs::rename(&draft, path)
}

/// Creates the folders that are missing above `path`, and returns them, the outermost first.
pub fn create_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(folder_of(path))
}

/// The folders above `path` that do not exist, the outermost first.
pub fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let above = folder_of(path).ancestors().take_while(|folder| !folder.exists());
    let mut missing: Vec<PathBuf> = above.map(Path::to_path_buf).collect();
    missing.reverse();
    missing
}

/// A folder that only its owner can enter.
pub fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The file that a chain of links leads to, whether it exists or not.
fn followed(path: &Path) -> PathBuf {
    const LONGEST_CHAIN: usize = 40;
    let mut path = path.to_path_buf();
    for _ in 0..LONGEST_CHAIN {
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => break,
        }
    }
    path
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_mode_and_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, alias) = (folder.path().join("real"), folder.path().join("alias"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
        symlink("real", &alias).unwrap();
        replace(&alias, b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&alias).unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);

        replace(&folder.path().join("fresh"), b"x").unwrap();
        let mode = fs::metadata(folder.path().join("fresh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no draft is left behind");
    }

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
        create_folders(&file).unwrap();
        assert!(missing_folders(&file).is_empty());
    }
}
