//! A file of lines that is put aside when it is large. Only its owner can read it.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use super::AuditSettings;

pub(super) struct RotatedFile {
    settings: AuditSettings,
    open: Option<(File, u64)>,
    /// A problem is logged once, until a line is written again.
    is_broken: bool,
}

impl RotatedFile {
    pub(super) fn new(settings: AuditSettings) -> Self {
        Self { settings, open: None, is_broken: false }
    }

    /// Writes one line. `false`: it could not be written.
    pub(super) fn write(&mut self, line: &str) -> bool {
        let written = self.try_write(line);
        if let Err(error) = &written {
            self.open = None; // the disk may be another one, or have room, at the next line
            if !std::mem::replace(&mut self.is_broken, true) {
                tracing::error!(
                    "{} cannot be written, so audit lines are lost: {error}",
                    self.settings.file.display()
                );
            }
        } else {
            self.is_broken = false;
        }
        written.is_ok()
    }

    fn try_write(&mut self, line: &str) -> io::Result<()> {
        let length = line.len() as u64 + 1;
        let full =
            self.open.as_ref().is_some_and(|(_, size)| *size > 0 && size + length > self.settings.rotate);
        if full {
            self.open = None;
            self.put_aside()?;
        }
        let (file, size) = match &mut self.open {
            Some(open) => open,
            none => none.insert(open(&self.settings.file)?),
        };
        file.write_all(format!("{line}\n").as_bytes())?;
        *size += length;
        Ok(())
    }

    /// `audit.jsonl` becomes `audit.jsonl.1`, which becomes `audit.jsonl.2`; the oldest is removed.
    fn put_aside(&self) -> io::Result<()> {
        let AuditSettings { file, keep, .. } = &self.settings;
        if *keep == 0 {
            return absent_is_fine(fs::remove_file(file));
        }
        for number in (1..*keep).rev() {
            absent_is_fine(fs::rename(numbered(file, number), numbered(file, number + 1)))?;
        }
        absent_is_fine(fs::rename(file, numbered(file, 1)))
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    Ok((file, if metadata.is_file() { metadata.len() } else { 0 }))
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
