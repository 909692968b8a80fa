//! The page of one gateway: a file that is replaced whole, and locked for as long as its gateway lives.
//!
//! The lock tells what has been left behind, whatever ended its gateway, and whoever has its number now.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::Running;

const PAGE: &str = "json";
const DRAFT: &str = "draft";
/// A draft that is so old has been left behind.
const FORSAKEN: Duration = Duration::from_secs(60);

/// Taken away when it is dropped.
#[derive(Debug)]
pub(super) struct Page {
    path: PathBuf,
    /// What stands there, locked.
    file: Option<File>,
}

impl Page {
    /// Nothing is written yet.
    pub(super) fn new(folder: &Path) -> Self {
        // No other process ever has the same name.
        let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self { path: folder.join(format!("{}-{moment}.{PAGE}", process::id())), file: None }
    }

    /// What cannot be written leaves nothing, rather than what is no longer true.
    pub(super) fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            read(folder)?; // and clears what others have left
        }
        let draft = self.path.with_extension(DRAFT);
        let replaced = locked(&draft, text).and_then(|file| fs::rename(&draft, &self.path).map(|()| file));
        if replaced.is_err() {
            let _ = fs::remove_file(&draft);
            self.take_away();
        }
        self.file = Some(replaced?);
        Ok(())
    }

    fn take_away(&mut self) {
        if self.file.take().is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.take_away();
    }
}

/// A new file that is locked before anybody finds it in its place.
fn locked(path: &Path, text: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.try_lock()?;
    file.write_all(text)?;
    Ok(file)
}

/// Every gateway that runs; the path of its page where that cannot be understood. What gateways have left
/// that run no more is taken away.
pub fn read(folder: &Path) -> io::Result<Vec<Result<Running, PathBuf>>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found = Vec::new();
    for path in paths {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some(PAGE) => {
                let text = text_of_living(&path).unwrap_or_default();
                found.extend(text.map(|text| serde_json::from_slice(&text).map_err(|_| path)));
            }
            Some(DRAFT) if is_forsaken(&path) => {
                let _ = fs::remove_file(&path);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// `None` if its gateway is dead; then nothing is left of it.
fn text_of_living(path: &Path) -> io::Result<Option<Vec<u8>>> {
    loop {
        let mut file = File::open(path)?;
        // Shared, so that two who look do not take each other for the gateway.
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let mut text = Vec::new();
                file.read_to_end(&mut text)?;
                return Ok(Some(text));
            }
            Err(TryLockError::Error(error)) => return Err(error),
            // Left behind, unless its gateway has just put another in its place.
            Ok(()) if fs::metadata(path)?.ino() == file.metadata()?.ino() => {
                fs::remove_file(path)?;
                return Ok(None);
            }
            Ok(()) => {}
        }
    }
}

fn is_forsaken(draft: &Path) -> bool {
    let written = fs::metadata(draft).and_then(|metadata| metadata.modified());
    written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= FORSAKEN))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::status_file::Transport;

    fn running(pid: u32) -> Running {
        Running {
            pid,
            since: 1,
            transport: Transport::Http { address: "http://127.0.0.1:1/mcp".to_owned() },
            folder: "/f".to_owned(),
            config: None,
            hosts: Vec::new(),
            servers: Vec::new(),
        }
    }

    fn text(pid: u32) -> Vec<u8> {
        serde_json::to_vec(&running(pid)).unwrap()
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_page_is_there_for_as_long_as_it_is_kept() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("deep/down");
        assert!(read(&folder).unwrap().is_empty());
        let mut page = Page::new(&folder);
        for pid in [1, 2] {
            page.write(&text(pid)).unwrap();
            assert_eq!(read(&folder).unwrap(), [Ok(running(pid))]);
        }
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&page.path)), (0o700, 0o600));
        drop(page);
        assert_eq!(names(&folder), 0);
    }

    #[test]
    fn what_was_left_behind_is_cleared_by_whoever_comes_next() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path();
        let leave = || {
            fs::write(folder.join("7-1.json"), text(7)).unwrap();
            let draft = File::create(folder.join("7-2.draft")).unwrap();
            draft.set_modified(SystemTime::now() - 2 * FORSAKEN).unwrap();
        };
        leave();
        assert!(read(folder).unwrap().is_empty());
        assert_eq!(names(folder), 0);
        leave();
        let mut page = Page::new(folder);
        page.write(&text(8)).unwrap();
        assert_eq!(names(folder), 1);
    }

    #[test]
    fn what_is_not_understood_is_told_and_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let mut page = Page::new(root.path());
        page.write(b"{\"of\":\"another version\"}").unwrap();
        fs::write(root.path().join("notes.txt"), "").unwrap();
        File::create(root.path().join("9-9.draft")).unwrap(); // somebody is about to finish it
        assert_eq!(read(root.path()).unwrap(), [Err(page.path.clone())]);
        assert_eq!(names(root.path()), 3);
    }

    #[test]
    fn a_page_that_cannot_be_replaced_is_taken_away() {
        let root = tempfile::tempdir().unwrap();
        let mut page = Page::new(root.path());
        page.write(&text(1)).unwrap();
        let draft = page.path.with_extension(DRAFT);
        fs::create_dir(&draft).unwrap();
        assert!(page.write(&text(2)).is_err());
        assert!(read(root.path()).unwrap().is_empty());
        fs::remove_dir(&draft).unwrap();
        page.write(&text(3)).unwrap();
        assert_eq!(read(root.path()).unwrap(), [Ok(running(3))]);
    }

    /// One writes while others look: it is there all the time.
    #[test]
    fn a_living_page_is_never_taken_for_a_dead_one() {
        let root = tempfile::tempdir().unwrap();
        let mut page = Page::new(root.path());
        page.write(&text(0)).unwrap();
        let path = page.path.clone();
        std::thread::scope(|scope| {
            let look = || (0..500).all(|_| matches!(text_of_living(&path), Ok(Some(_))));
            let readers = [scope.spawn(look), scope.spawn(look)];
            while !readers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                page.write(&text(1)).unwrap();
            }
            assert!(readers.into_iter().all(|reader| reader.join().unwrap()));
        });
    }
}
