//! The logins of the user on disk: one file per server, for its owner alone, changed under a lock.
//!
//! The file tells every process what there is. If the system has a keychain, the secrets are there and the file has
//! the rest. A lock belongs to an open file, so it ends with the process that holds it, however that ends.

#[cfg(test)]
mod keychain_tests;
mod record;
mod secrets;

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use plugbay_core::credentials::Placement;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

pub use self::record::{Login, Logins, Tokens};
use crate::random;

/// A holder of the lock waits for an authorization server at most 30 s; one that takes longer is stuck.
const LOCK_PATIENCE: Duration = Duration::from_secs(45);
const LOCK_RETRY: Duration = Duration::from_millis(20);
/// More than any file of logins has.
const LARGEST: u64 = 1024 * 1024;

/// Which server a file is for: its name and its URL. Tokens for one URL are never sent to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerKey {
    pub name: String,
    pub url: String,
}

/// Keeps secrets elsewhere than in files. A call blocks, for a few seconds at most.
pub trait Keychain: Send + Sync + std::fmt::Debug {
    fn put(&self, entry: &str, secret: &str) -> io::Result<()>;
    fn get(&self, entry: &str) -> io::Result<Option<String>>;
    fn remove(&self, entry: &str) -> io::Result<()>;
}

/// The folder with the logins of the user. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    keychain: Option<Arc<dyn Keychain>>,
    placement: Placement,
}

/// Why logins cannot be read or written.
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
    #[error("{0} {1}")]
    Unsafe(PathBuf, &'static str),
    #[error("the keychain: {0}")]
    Keychain(io::Error),
    #[error("another process has held {0} for a long time")]
    Locked(PathBuf),
}

impl StoreError {
    /// Whether nobody can write there now, so that there is nothing to lock either.
    pub fn is_read_only(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let Self::Write(_, error) = self else { return false };
        matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | StorageFull | QuotaExceeded)
    }
}

/// When a file was written; another one has another stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    #[cfg(unix)]
    inode: u64,
}

/// The right to change the logins of one server. It ends when this is dropped.
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

    /// What is known of a server now; nothing, if there is no file.
    pub fn load(&self, key: &ServerKey) -> Result<Logins, StoreError> {
        let mut stamp = self.stamp(key);
        loop {
            let mut logins = self.read(key)?;
            let is_complete = self.reveal(key, &mut logins)?;
            // Another process may have moved the secrets out of the keychain just now.
            let now = self.stamp(key);
            if is_complete || now == stamp {
                return Ok(logins);
            }
            stamp = now;
        }
    }

    /// Replaces what is known of a server. The caller holds the lock.
    pub fn save(&self, key: &ServerKey, logins: &Logins) -> Result<(), StoreError> {
        let path = self.path(key);
        let failed = |error| StoreError::Write(path.clone(), error);
        self.prepare_folder()?;
        let before = self.read(key).unwrap_or_default();
        let mut written = logins.clone();
        self.hide(key, &mut written)?;
        let text = record::write(key, &written);
        if text.len() as u64 >= LARGEST {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        let mut draft = tempfile::Builder::new().prefix(".tmp").tempfile_in(&self.folder).map_err(failed)?; // for its owner alone
        draft.write_all(text.as_bytes()).and_then(|()| draft.as_file().sync_all()).map_err(failed)?;
        draft.persist(&path).map_err(|error| failed(error.error))?;
        // Some file systems cannot do it.
        let _ = File::open(&self.folder).and_then(|folder| folder.sync_all());
        self.discard(key, &before, &written);
        Ok(())
    }

    /// Forgets everything about a server. The caller holds the lock. If the keychain fails, only the file is gone.
    pub fn remove(&self, key: &ServerKey) -> Result<(), StoreError> {
        let path = self.path(key);
        let before = self.read(key).unwrap_or_default();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::Write(path, error)),
            _ => self.remove_secrets(key, &before),
        }
    }

    /// Tells whether the logins may have changed, without reading them.
    pub fn stamp(&self, key: &ServerKey) -> Option<Stamp> {
        let metadata = fs::metadata(self.path(key)).ok()?;
        Some(Stamp {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&metadata),
        })
    }

    /// Waits for the lock of one server, of all processes of the user.
    pub async fn lock(&self, key: &ServerKey) -> Result<Lock, StoreError> {
        self.prepare_folder()?;
        let path = self.path(key).with_extension("lock");
        let failed = |error| StoreError::Write(path.clone(), error);
        let file = lock_file(&path).map_err(failed)?;
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

    /// The file as it is, without secrets that are in the keychain.
    fn read(&self, key: &ServerKey) -> Result<Logins, StoreError> {
        let path = self.path(key);
        let stamp = self.stamp(key);
        if stamp.is_some() {
            self.check_folder()?;
        }
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Logins::default()),
            Err(error) => return Err(StoreError::Read(path, error)),
        };
        match record::parse(&text) {
            Ok(logins) => Ok(logins),
            Err(record::ParseError::Newer) => Err(StoreError::Newer(path)),
            // Another process may have written a good one meanwhile.
            Err(record::ParseError::Malformed) if self.stamp(key) != stamp => self.read(key),
            Err(record::ParseError::Malformed) => Err(set_aside(path)),
        }
    }

    fn prepare_folder(&self) -> Result<(), StoreError> {
        create_folder(&self.folder).map_err(|error| StoreError::Write(self.folder.clone(), error))?;
        self.check_folder()
    }

    /// The folder is for its owner alone, and no other user can have put it there.
    fn check_folder(&self) -> Result<(), StoreError> {
        let failed = |error| StoreError::Write(self.folder.clone(), error);
        let metadata = fs::symlink_metadata(&self.folder).map_err(failed)?;
        if metadata.is_symlink() {
            return Err(StoreError::Unsafe(self.folder.clone(), "is a symbolic link; remove it"));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
            if metadata.uid() != rustix::process::geteuid().as_raw() {
                return Err(StoreError::Unsafe(self.folder.clone(), "belongs to another user; remove it"));
            }
            if metadata.mode() & 0o077 != 0 {
                fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700)).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<String> {
    use std::io::Read as _;
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(LARGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// Keeps a file that cannot be read, beside its place.
fn set_aside(path: PathBuf) -> StoreError {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let aside = path.with_extension(format!("broken-{seconds}"));
    match fs::rename(&path, &aside) {
        Ok(()) => StoreError::Corrupt(path, aside),
        Err(error) => StoreError::Read(path, error),
    }
}

fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn create_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}
