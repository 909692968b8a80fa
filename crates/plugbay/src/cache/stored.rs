//! One cache file: a line that says the format, the head, and behind it the tools.
//!
//! `{"format":6,"head":LENGTH}`, a newline, a JSON object of that length, then for each list an index and definitions.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
    path::Path,
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{
    CachedLists, KnownList,
    head::{Head, StoredList, StoredOffer, Texts},
    older,
    stored_tools::{Body, ToolsPlace},
};

pub(super) const FORMAT: u32 = 6;
/// A file of up to so many bytes is read whole.
const SMALL: u64 = 64 << 10;
/// The first line is no longer than this.
const FIRST_LINE: usize = 64;

/// A cache file that was opened.
pub(super) struct Stored {
    /// The file, or its beginning.
    beginning: Bytes,
    /// If there is more of it.
    file: Option<File>,
}

impl Default for Stored {
    fn default() -> Self {
        Self { beginning: Bytes::new(), file: None }
    }
}

#[derive(Serialize, Deserialize)]
struct FirstLine {
    format: u32,
    head: usize,
}

impl Stored {
    /// Reads as much of the file as tells what it has.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        if length <= SMALL {
            return Self::whole(file, length);
        }
        let mut beginning = vec![0; FIRST_LINE];
        file.read_exact_at(&mut beginning, 0)?;
        let Some((start, FirstLine { head, .. })) = first_line(&beginning) else {
            return Self::whole(file, length);
        };
        let end = (start + head) as u64;
        if end > length {
            return Self::whole(file, length);
        }
        beginning.resize(start + head, 0);
        file.read_exact_at(&mut beginning, 0)?;
        Ok(Self { beginning: beginning.into(), file: Some(file) })
    }

    /// Reads the whole file.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Self::whole(file, length)
    }

    fn whole(mut file: File, length: u64) -> io::Result<Self> {
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
        file.read_to_end(&mut bytes)?;
        Ok(Self { beginning: bytes.into(), file: None })
    }

    /// What it has; `None` if it is damaged.
    pub(super) fn lists(&self, path: &Path) -> Option<CachedLists> {
        let Some((start, FirstLine { format, head })) = first_line(&self.beginning) else {
            return older::parse(&self.beginning);
        };
        if format != FORMAT {
            // Of another version: replaced when the server next lists.
            return Some(CachedLists::Absent);
        }
        let end = start.checked_add(head)?;
        let body = match &self.file {
            Some(file) => Body::Open { file: file.try_clone().ok()?, start: end as u64 },
            None => Body::Read(self.beginning.get(end..).map(|_| self.beginning.slice(end..))?),
        };
        let head: Head<'_> = serde_json::from_slice(self.beginning.get(start..end)?).ok()?;
        let known = |list: StoredList<'_>| list.offer.known_list(list.tools.tools(&body, path)?);
        let lists = head.lists.into_iter().map(known).collect::<Option<Vec<_>>>()?;
        Some(if lists.is_empty() { CachedLists::NoAnswer } else { CachedLists::Lists(lists) })
    }

    /// Whether a file that was read whole cannot be used.
    pub(super) fn is_damaged(&self) -> bool {
        let Some((start, FirstLine { format: FORMAT, head })) = first_line(&self.beginning) else {
            return self.lists(Path::new("")).is_none();
        };
        let is_whole = || {
            let end = start.checked_add(head)?;
            let body = Body::Read(self.beginning.get(end..).map(|_| self.beginning.slice(end..))?);
            let head: Head<'_> = serde_json::from_slice(self.beginning.get(start..end)?).ok()?;
            let read = |list: StoredList<'_>| list.offer.known_list(list.tools.read(&body)?.into());
            head.lists.into_iter().map(read).collect::<Option<Vec<_>>>()
        };
        is_whole().is_none()
    }

    /// Whether a file that was read whole has this content.
    pub(super) fn is(&self, content: &[u8]) -> bool {
        self.beginning == content
    }
}

/// The first line, and where the head begins. `None`: the file is of an earlier version, or damaged.
fn first_line(file: &[u8]) -> Option<(usize, FirstLine)> {
    let line = file[..file.len().min(FIRST_LINE)].split_inclusive(|byte| *byte == b'\n').next()?;
    Some((line.len(), serde_json::from_slice(line.strip_suffix(b"\n")?).ok()?))
}

/// The content of the file of a server.
pub(super) fn render(server: &str, lists: &[KnownList]) -> Option<Vec<u8>> {
    let texts: Vec<Texts> = lists.iter().map(Texts::of).collect();
    let mut body = Vec::new();
    let stored = lists.iter().zip(&texts).map(|(list, texts)| {
        let tools = ToolsPlace::write(&list.offer.tools, &mut body)?;
        Some(StoredList { tools, offer: StoredOffer::of(list, texts) })
    });
    let lists = stored.collect::<Option<Vec<_>>>()?;
    let head = serde_json::to_vec(&Head { server: server.to_owned(), lists }).ok()?;
    let mut content = serde_json::to_vec(&FirstLine { format: FORMAT, head: head.len() }).ok()?;
    content.push(b'\n');
    content.extend_from_slice(&head);
    content.extend_from_slice(&body);
    Some(content)
}
