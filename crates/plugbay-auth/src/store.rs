//! The logins of the user on disk: one file per server, for its owner alone, changed under a lock.
//!
//! The file tells every process what there is. If the system has a keychain, it holds the secrets and the
//! file the rest. A lock belongs to an open file, so it ends with the process that holds it, in whatever way.

#[cfg(test)]
mod keychain_tests;
mod record;
mod secrets;

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use plugbay_core::credentials::Placement;
use plugbay_files::own;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

pub use self::record::{Login, Logins, Tokens};
use crate::random;

/// Patience for the lock. Its holder waits at most 30 s for an authorization server; one that takes longer
/// hangs.
const LOCK_PATIENCE: Duration = Duration::from_secs(45);
const LOCK_RETRY: Duration = Duration::from_millis(20);
/// Size limit: more than any file of logins needs.
const LARGEST: u64 = 1024 * 1024;

/// The server that a file is for: its name and its URL. Tokens for one URL are never sent to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerKey {
    pub name: String,
    pub url: String,
}

/// A store of secrets outside of files. A call blocks, but only for a few seconds.
pub trait Keychain: Send + Sync + std::fmt::Debug {
    fn put(&self, entry: &str, secret: &str) -> io::Result<()>;
    fn get(&self, entry: &str) -> io::Result<Option<String>>;
    fn remove(&self, entry: &str) -> io::Result<()>;
}

/// The folder with the user's logins. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    keychain: Option<Arc<dyn Keychain>>,
    placement: Placement,
}

/// The reason why logins cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{0} cannot be read: {1}")]
    Read(PathBuf, io::Error),
    #[error("{0} cannot be written: {1}")]
    Write(PathBuf, io::Error),
    #[error("{0} is not a file of logins; plugbay has moved it to {1}")]
    Corrupt(PathBuf, PathBuf),
    #[error("{0} is written by a newer plugbay")]
    Newer(PathBuf),
    #[error("the keychain: {0}")]
    Keychain(io::Error),
    #[error("another process has held {0} for a long time")]
    Locked(PathBuf),
}

impl StoreError {
    /// Whether the folder is not writable now, so that no lock is needed either.
    pub fn is_read_only(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let Self::Write(_, error) = self else { return false };
        matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | StorageFull | QuotaExceeded)
    }
}

/// Identifies a written version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    #[cfg(unix)]
    inode: u64,
}

/// The right to change the logins of one server, until this is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Store {
    pub fn new(folder: PathBuf, keychain: Option<Arc<dyn Keychain>>) -> Self {
        Self { folder, keychain, placement: Placement::default() }
    }

    #[must_use]
    pub fn with_placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The current logins at a server; empty if there is no file.
    pub fn load(&self, key: &ServerKey) -> Result<Logins, StoreError> {
        let mut stamp = self.stamp(key);
        loop {
            let mut logins = self.read(key)?;
            let is_complete = self.reveal(key, &mut logins)?;
            // Another process may just have moved the secrets out of the keychain.
            let now = self.stamp(key);
            if is_complete || now == stamp {
                return Ok(logins);
            }
            stamp = now;
        }
    }

    /// Replaces the logins at a server. The caller holds the lock.
    pub fn save(&self, key: &ServerKey, logins: &Logins) -> Result<(), StoreError> {
        let path = self.path(key);
        let failed = |error| StoreError::Write(path.clone(), error);
        own::create_folder(&self.folder).map_err(failed)?;
        let before = self.read(key).unwrap_or_default();
        let mut written = logins.clone();
        self.hide(key, &mut written)?;
        let text = record::write(key, &written);
        if text.len() as u64 >= LARGEST {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        own::replace(&path, text.as_bytes()).map_err(failed)?;
        self.discard(key, &before, &written);
        Ok(())
    }

    /// Removes all logins at a server. The caller holds the lock. If the keychain fails, only the file is
    /// removed.
    pub fn remove(&self, key: &ServerKey) -> Result<(), StoreError> {
        let path = self.path(key);
        let before = self.read(key).unwrap_or_default();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::Write(path, error)),
            _ => self.remove_secrets(key, &before),
        }
    }

    /// The stamp of the file, which shows without reading it whether the logins may have changed.
    pub fn stamp(&self, key: &ServerKey) -> Option<Stamp> {
        let metadata = fs::metadata(self.path(key)).ok()?;
        Some(Stamp {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&metadata),
        })
    }

    /// Waits for the lock of one server, which all processes of the user respect.
    pub async fn lock(&self, key: &ServerKey) -> Result<Lock, StoreError> {
        let path = self.path(key).with_extension("lock");
        let failed = |error| StoreError::Write(path.clone(), error);
        let file = own::lock_file(&path).map_err(failed)?;
        let end = Instant::now() + LOCK_PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) if Instant::now() >= end => {
                    return Err(StoreError::Locked(path));
                }
                Err(TryLockError::WouldBlock) => sleep(LOCK_RETRY).await,
            }
        }
    }

    fn path(&self, key: &ServerKey) -> PathBuf {
        let digest = Sha256::digest(&key.url);
        let digest = random::hex(&digest[..8]);
        self.folder.join(format!("{}-{digest}.json", key.name))
    }

    /// The content of the file, without secrets that are in the keychain.
    fn read(&self, key: &ServerKey) -> Result<Logins, StoreError> {
        let path = self.path(key);
        let stamp = self.stamp(key);
        let text = match own::read_text(&path, LARGEST) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Logins::default()),
            Err(error) => return Err(StoreError::Read(path, error)),
        };
        match record::parse(&text) {
            Ok(logins) => Ok(logins),
            Err(record::ParseError::Newer) => Err(StoreError::Newer(path)),
            // Another process may have written a valid one in the meantime.
            Err(record::ParseError::Malformed) if self.stamp(key) != stamp => self.read(key),
            Err(record::ParseError::Malformed) => Err(set_aside(path)),
        }
    }
}

/// Moves a file that cannot be read aside.
fn set_aside(path: PathBuf) -> StoreError {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let aside = path.with_extension(format!("broken-{seconds}"));
    match fs::rename(&path, &aside) {
        Ok(()) => StoreError::Corrupt(path, aside),
        Err(error) => StoreError::Read(path, error),
    }
}
