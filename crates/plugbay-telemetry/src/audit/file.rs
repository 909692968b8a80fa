//! A file of lines that is put aside when it is too large. Only its owner can read it.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::AuditSettings;

pub(super) struct RotatedFile {
    settings: Arc<Mutex<AuditSettings>>,
    open: Option<File>,
    /// Whether the last write failed. A problem is logged only once until a write succeeds again.
    is_broken: bool,
}

impl RotatedFile {
    /// All settings except the file may change between two lines.
    pub(super) fn new(settings: Arc<Mutex<AuditSettings>>) -> Self {
        Self { settings, open: None, is_broken: false }
    }

    /// Writes one line. Returns false if that failed.
    pub(super) fn write(&mut self, line: &str) -> bool {
        let written = self.try_write(line);
        if let Err(error) = &written {
            self.open = None; // at the next line, the disk may be another one or have room again
            if !std::mem::replace(&mut self.is_broken, true) {
                tracing::error!(
                    "{} cannot be written, so audit lines are lost: {error}",
                    self.settings().file.display()
                );
            }
        } else {
            self.is_broken = false;
        }
        written.is_ok()
    }

    fn try_write(&mut self, line: &str) -> io::Result<()> {
        let settings = self.settings();
        let length = line.len() as u64 + 1;
        let mut file = self.current(&settings.file)?;
        let metadata = file.metadata()?;
        let size = if metadata.is_file() { metadata.len() } else { 0 };
        // Several processes may write the same file; only one of them puts it aside.
        if size > 0 && size + length > settings.rotate && file.try_lock().is_ok() {
            if is_at(&file, &settings.file) {
                put_aside(&settings)?;
            }
            file = self.current(&settings.file)?;
        }
        file.write_all(format!("{line}\n").as_bytes())?;
        self.open = Some(file);
        Ok(())
    }

    /// The file that is at the path now: another program may have put aside the one that was open.
    fn current(&mut self, path: &Path) -> io::Result<File> {
        match self.open.take().filter(|file| is_at(file, path)) {
            Some(file) => Ok(file),
            None => open(path),
        }
    }

    fn settings(&self) -> AuditSettings {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// `audit.jsonl` becomes `audit.jsonl.1`, which becomes `audit.jsonl.2`; the oldest is removed.
fn put_aside(AuditSettings { file, keep, .. }: &AuditSettings) -> io::Result<()> {
    if *keep == 0 {
        return absent_is_fine(fs::remove_file(file));
    }
    for number in (1..*keep).rev() {
        absent_is_fine(fs::rename(numbered(file, number), numbered(file, number + 1)))?;
    }
    absent_is_fine(fs::rename(file, numbered(file, 1)))
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(0o600);
        let file = options.open(path)?;
        if file.metadata()?.is_file() {
            // The file may have existed before, readable by others.
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path)
}

/// Whether the path still leads to this file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (open, there) = (file.metadata().map(id), fs::metadata(path).map(id));
    matches!((open, there), (Ok(open), Ok(there)) if open == there)
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    name.into()
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
