//! A file with headers.

use std::{fmt, fs, path::PathBuf, time::SystemTime};

use plugbay_core::{failure::Failure, secret::Secret};

use super::headers;

/// A longer file holds no headers.
const LONGEST: u64 = 64 * 1024;

pub(super) struct HeadersFile {
    path: PathBuf,
}

/// Identifies the state of a file: it changes when the file is written or replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    length: u64,
    changed: Option<SystemTime>,
    inode: u64,
}

impl HeadersFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn stamp(&self) -> Option<Stamp> {
        let about = fs::metadata(&self.path).ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&about);
        #[cfg(not(unix))]
        let inode = 0;
        Some(Stamp { length: about.len(), changed: about.modified().ok(), inode })
    }

    pub(super) fn read(&self) -> Result<Vec<(String, Secret)>, Failure> {
        let failed = |why: String| Failure::new(format!("{self} cannot be used: {why}"), Vec::new());
        let text =
            plugbay_files::read_text(&self.path, LONGEST).map_err(|error| failed(error.to_string()))?;
        headers::of_text(&text).map_err(failed)
    }

    pub(super) fn remedy(&self) -> String {
        format!(
            "put headers that the server accepts into {}: a JSON object, or lines `Name: value`",
            self.path.display()
        )
    }
}

impl fmt::Display for HeadersFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the file {}", self.path.display())
    }
}
