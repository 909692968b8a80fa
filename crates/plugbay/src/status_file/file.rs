//! One status file on disk: it is replaced as a whole, and locked as long as its gateway lives.
//!
//! A file that can be locked was left behind, however its gateway ended and whichever process has its pid
//! now.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

use super::GatewayStatus;
use crate::files::{self, own};

const EXTENSION: &str = "json";
/// Size limit: more than the status of any gateway needs.
const LARGEST: u64 = 64 * 1024 * 1024;

/// A status file, removed on drop.
#[derive(Debug)]
pub(super) struct StatusFile {
    path: PathBuf,
    /// The file as last written, locked.
    file: Option<File>,
}

impl StatusFile {
    /// A file that is not written yet.
    pub(super) fn new(folder: &Path) -> Self {
        // No other process ever has the same name.
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self { path: folder.join(format!("{}-{moment}.{EXTENSION}", process::id())), file: None }
    }

    /// Writes the status. If that fails, the file is removed, because an outdated one would be worse.
    pub(super) fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            read(files::folder_of(&self.path))?; // which also removes files that others left behind
        }
        // It is locked before it is moved into place.
        let replaced = own::replace_unsynced(&self.path, text);
        if replaced.is_err() {
            self.remove();
        }
        self.file = Some(replaced?);
        Ok(())
    }

    fn remove(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for StatusFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Every running gateway, or the path of its status file if that cannot be parsed. Files of gateways that no longer
/// run are removed.
pub fn read(folder: &Path) -> io::Result<Vec<Result<GatewayStatus, PathBuf>>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found = Vec::new();
    for path in paths {
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            let text = text_if_alive(&path).unwrap_or_default();
            found.extend(text.map(|text| serde_json::from_slice(&text).map_err(|_| path)));
        }
    }
    files::sweep(folder);
    Ok(found)
}

/// Every running gateway whose status file can be parsed; unlike [`read`], this removes nothing.
pub fn running(folder: &Path) -> Vec<GatewayStatus> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let status = |path: PathBuf| {
        let is_alive = matches!(own::open(&path).ok()?.try_lock_shared(), Err(TryLockError::WouldBlock));
        serde_json::from_slice(&own::read(&path, LARGEST).ok()?).ok().filter(|_| is_alive)
    };
    paths.filter(|path| path.extension().is_some_and(|end| end == EXTENSION)).filter_map(status).collect()
}

/// Status files of gateways that no longer run; unlike [`read`], this removes nothing.
pub fn left_behind(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_dead = |path: &PathBuf| {
        let is_status = path.extension().is_some_and(|extension| extension == EXTENSION);
        let is_free = || own::open(path).is_ok_and(|file| file.try_lock_shared().is_ok());
        if is_status { is_free() } else { files::is_abandoned(path) }
    };
    paths.filter(is_dead).collect()
}

/// The text of a status file; `None` if its gateway is dead, and then the file is removed.
fn text_if_alive(path: &Path) -> io::Result<Option<Vec<u8>>> {
    loop {
        let file = own::open(path)?;
        // A shared lock, so that two readers do not mistake each other for the gateway.
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let mut text = Vec::new();
                file.take(LARGEST).read_to_end(&mut text)?;
                return Ok(Some(text));
            }
            Err(TryLockError::Error(error)) => return Err(error),
            // Left behind, unless its gateway has just replaced it.
            Ok(()) if fs::metadata(path)?.ino() == file.metadata()?.ino() => {
                fs::remove_file(path)?;
                return Ok(None);
            }
            Ok(()) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::status_file::Transport;

    fn gateway(pid: u32) -> GatewayStatus {
        GatewayStatus {
            pid,
            since: 1,
            transport: Transport::Http { address: "http://127.0.0.1:1/mcp".to_owned() },
            folder: "/f".to_owned(),
            config: None,
            without_daemon: None,
            remotes: Vec::new(),
            profile: None,
            hosts: Vec::new(),
            servers: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn text(pid: u32) -> Vec<u8> {
        serde_json::to_vec(&gateway(pid)).unwrap()
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_status_file_exists_for_as_long_as_it_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("deep/down");
        assert!(read(&folder).unwrap().is_empty());
        let mut file = StatusFile::new(&folder);
        for pid in [1, 2] {
            file.write(&text(pid)).unwrap();
            assert_eq!(read(&folder).unwrap(), [Ok(gateway(pid))]);
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&file.path)), (0o700, 0o600));
        drop(file);
        assert_eq!(names(&folder), 0);
    }

    #[test]
    fn a_status_file_that_was_left_behind_is_removed_by_the_next_reader() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path();
        let leave = || {
            fs::write(folder.join("7-1.json"), text(7)).unwrap();
            File::create(folder.join(".plugbay-draft-7")).unwrap();
        };
        leave();
        assert!(read(folder).unwrap().is_empty());
        assert_eq!(names(folder), 0);
        leave();
        let mut file = StatusFile::new(folder);
        file.write(&text(8)).unwrap();
        assert_eq!(names(folder), 1);
    }

    #[test]
    fn a_status_file_that_cannot_be_parsed_is_reported_and_kept() {
        let root = tempfile::tempdir().unwrap();
        let mut file = StatusFile::new(root.path());
        file.write(b"{\"of\":\"another version\"}").unwrap();
        fs::write(root.path().join("notes.txt"), "").unwrap();
        let draft = File::create(root.path().join(".plugbay-draft-9")).unwrap();
        draft.lock().unwrap(); // its gateway is about to finish it
        assert_eq!(read(root.path()).unwrap(), [Err(file.path.clone())]);
        assert_eq!(names(root.path()), 3);
    }

    #[test]
    fn a_status_file_that_cannot_be_replaced_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let mut file = StatusFile::new(root.path());
        file.write(&text(1)).unwrap();
        fs::remove_file(&file.path).unwrap();
        fs::create_dir(&file.path).unwrap();
        assert!(file.write(&text(2)).is_err());
        assert!(read(root.path()).unwrap().is_empty());
        fs::remove_dir(&file.path).unwrap();
        file.write(&text(3)).unwrap();
        assert_eq!(read(root.path()).unwrap(), [Ok(gateway(3))]);
    }

    /// One process writes while others read, and the file always exists.
    #[test]
    fn a_status_file_in_use_is_never_taken_for_one_left_behind() {
        let root = tempfile::tempdir().unwrap();
        let mut file = StatusFile::new(root.path());
        file.write(&text(0)).unwrap();
        let path = file.path.clone();
        std::thread::scope(|scope| {
            let look = || (0..500).all(|_| matches!(text_if_alive(&path), Ok(Some(_))));
            let readers = [scope.spawn(look), scope.spawn(look)];
            while !readers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                file.write(&text(1)).unwrap();
            }
            assert!(readers.into_iter().all(|reader| reader.join().unwrap()));
        });
    }
}
