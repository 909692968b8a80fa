//! The bytes of a stored result: in memory, or in a file without a name.

use std::{
    fs::{File, create_dir_all},
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::Path,
    sync::Arc,
};

use bytes::Bytes;

/// The bytes of a stored result.
#[derive(Debug, Clone)]
pub(super) enum Body {
    Memory(Bytes),
    File(Arc<File>, usize),
}

impl Body {
    /// The result is copied: a slice of a message would keep the buffer into which the message was read, which may be
    /// much larger.
    pub(super) fn in_memory(result: &[u8]) -> Self {
        Self::Memory(Bytes::copy_from_slice(result))
    }

    /// The file is only for this user, and has no name: the system removes it when this process ends, however it ends.
    pub(super) fn in_file(result: &[u8], folder: &Path) -> io::Result<Self> {
        let make = || tempfile::tempfile_in(folder);
        let mut file = make().or_else(|_| create_dir_all(folder).and_then(|()| make()))?;
        file.write_all(result)?;
        Ok(Self::File(Arc::new(file), result.len()))
    }

    pub(super) fn read(&self) -> io::Result<Bytes> {
        match self {
            Self::Memory(result) => Ok(result.clone()),
            Self::File(file, length) => {
                let mut result = vec![0; *length];
                file.read_exact_at(&mut result, 0)?;
                Ok(result.into())
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Memory(result) => result.len(),
            Self::File(_, length) => *length,
        }
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self, Self::File(..))
    }
}
