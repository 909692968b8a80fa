//! Reads files that others write, and writes files so that a reader, or a crash, finds the old content or the new one.

use std::{
    fs, io,
    io::{Read as _, Write as _},
    path::{Component, Path, PathBuf},
    time::Duration,
};

use tempfile::NamedTempFile;

/// The name of a draft begins so.
const DRAFT: &str = ".tmp";
/// A draft that is older was left behind.
const LONGEST_WRITE: Duration = Duration::from_secs(60);
/// Links that lead to a file; more of them are a circle.
const MOST_LINKS: usize = 40;

/// More than any host's file has.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The bytes of a file that a host or a repository has written.
///
/// Only a regular file is read, behind its symbolic links: a pipe could block, and a device has no end.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than 16 MiB"));
    }
    Ok(bytes)
}

/// Like [`read`], for a file of text.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "this is not UTF-8 text"))
}

/// Replaces the content of a file.
///
/// A new file is readable by its owner alone; an existing one keeps its permissions. A symbolic link stays one: the
/// file that it leads to is replaced. Folders on the way are created for their owner alone.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = &destination(path)?;
    let draft = draft(path, content)?;
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    // Without this, a crash of the machine could undo the rename. Some file systems cannot do it.
    let _ = fs::File::open(folder_of(path)).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Like [`replace`], without waiting for the disk: for content that a crash of the machine may take.
pub fn replace_unsynced(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = &destination(path)?;
    draft(path, content)?.persist(path)?;
    Ok(())
}

/// Creates a folder, and those above it, for their owner alone. A folder that exists stays as it is.
#[cfg(unix)]
pub fn create_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
pub fn create_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// The folder of a file.
pub fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The file itself, behind every symbolic link on the way to it. It need not exist, nor the folders above it.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let path = destination(path)?;
    let known = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, resolved)) = known else { return Ok(path) };
    let rest = path.strip_prefix(above).unwrap_or(&path);
    if rest.components().any(|part| part == Component::ParentDir) {
        return Err(io::Error::other("its symbolic link leads through a folder that does not exist"));
    }
    Ok(if rest.as_os_str().is_empty() { resolved } else { resolved.join(rest) })
}

/// Whether this is a draft whose writer was interrupted.
pub fn is_abandoned(path: &Path) -> bool {
    let is_draft = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DRAFT));
    let written = fs::metadata(path).and_then(|metadata| metadata.modified());
    is_draft && written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= LONGEST_WRITE))
}

/// The content in a temporary file beside `path`, with the permissions that `path` has or should have.
fn draft(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    create_folder(folder_of(path))?;
    let mut draft = tempfile::Builder::new().prefix(DRAFT).tempfile_in(folder_of(path))?; // readable by its owner alone
    if let Ok(existing) = fs::metadata(path) {
        draft.as_file().set_permissions(existing.permissions())?;
    }
    draft.write_all(content)?;
    Ok(draft)
}

/// The file itself, behind all links that lead to it. It need not exist.
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

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_new_file_and_its_folders_are_for_their_owner_alone() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("deep/down/file");
        replace(&file, b"one").unwrap();
        let modes = [root.path().join("deep"), root.path().join("deep/down"), file].map(|path| mode(&path));
        assert_eq!(modes, [0o700, 0o700, 0o600]);
    }

    #[test]
    fn a_replaced_file_keeps_its_permissions_and_leaves_no_draft() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        replace(&file, b"new").unwrap();
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"new".to_vec(), 0o644));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_device_a_folder_and_a_huge_file_are_not_read() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        symlink("/dev/zero", path("device")).unwrap();
        fs::File::create(path("huge")).unwrap().set_len(LARGEST + 1).unwrap();
        fs::File::create(path("large")).unwrap().set_len(LARGEST).unwrap();
        fs::write(path("latin"), b"\xe9").unwrap();
        let problem = |name: &str| read_text(&path(name)).unwrap_err().to_string();
        assert_eq!([problem("device"), problem(".")], ["this is not a regular file"; 2]);
        assert_eq!(problem("huge"), "the file is larger than 16 MiB");
        assert_eq!(problem("latin"), "this is not UTF-8 text");
        assert_eq!(read(&path("large")).unwrap().len() as u64, LARGEST);
        assert_eq!(read(&path("absent")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_symbolic_link_stays_a_link_to_the_replaced_file() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir(path("dotfiles")).unwrap();
        symlink("dotfiles/there", path("link")).unwrap();
        symlink(path("link"), path("link to the link")).unwrap();
        for content in ["first: the link leads to no file yet", "second"] {
            replace(&path("link to the link"), content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(path("dotfiles/there")).unwrap(), content);
        }
        assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
        symlink(path("circle"), path("circle")).unwrap();
        assert!(replace(&path("circle"), b"").is_err());
    }
}
