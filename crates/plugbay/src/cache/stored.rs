//! One cache file: a line with the format, then the head, then the tools.
//!
//! `{"format":6,"head":LENGTH}`, a newline, a JSON object of that length. Then for each list an index, the
//! definitions, and a search index if the list is long.

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
    stored_tools::{Body, SavedTools, ToolsPlace},
};
use crate::files::own;

pub(super) const FORMAT: u32 = 6;
/// A file of up to this many bytes is read whole.
pub(super) const SMALL: u64 = 64 << 10;
/// A file larger than this is not read.
const LARGEST: u64 = 256 << 20;
/// Longest first line, in bytes.
const FIRST_LINE: usize = 64;

/// A cache file that was opened.
#[derive(Default)]
pub(super) struct Stored {
    /// The file, or its beginning.
    beginning: Bytes,
    /// The open file, if there is more of it.
    file: Option<File>,
}

#[derive(Serialize, Deserialize)]
struct FirstLine {
    format: u32,
    head: usize,
}

impl Stored {
    /// Reads the beginning of the file, which shows what it contains.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let (file, length) = opened(path)?;
        if length <= SMALL {
            return Self::whole(&file);
        }
        let mut beginning = beginning(&file)?;
        if format(&beginning).is_some_and(|format| format > FORMAT) {
            return Ok(beginning.into());
        }
        check_length(length)?;
        let end = first_line(&beginning).and_then(|(start, line)| start.checked_add(line.head));
        let Some(end) = end.filter(|end| *end as u64 <= length) else { return Self::whole(&file) };
        beginning.resize(end, 0);
        file.read_exact_at(&mut beginning, 0)?;
        Ok(Self { beginning: beginning.into(), file: Some(file) })
    }

    /// Reads the whole file, unless a newer version has written it.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let (file, length) = opened(path)?;
        if length > LARGEST {
            let beginning = beginning(&file)?;
            if format(&beginning).is_some_and(|format| format > FORMAT) {
                return Ok(beginning.into());
            }
            check_length(length)?;
        }
        Self::whole(&file)
    }

    fn whole(file: &File) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }

    /// Whether a newer version of plugbay has written this. Only its first bytes are then understood.
    pub(super) fn is_newer(&self) -> bool {
        format(&self.beginning).is_some_and(|format| format > FORMAT)
    }

    /// Whether an earlier version has written this.
    pub(super) fn is_older(&self) -> bool {
        format(&self.beginning).is_some_and(|format| format < FORMAT)
    }

    /// The lists in it; `None` if it is damaged.
    pub(super) fn lists(&self, path: &Path) -> Option<CachedLists> {
        self.lists_and_age(path).map(|(lists, _)| lists)
    }

    /// The same, and whether an earlier version has written it, so that it should be rewritten.
    pub(super) fn lists_and_age(&self, path: &Path) -> Option<(CachedLists, bool)> {
        if first_line(&self.beginning).is_none() {
            return older::parse(&self.beginning).map(|lists| (lists, self.is_older()));
        }
        let (head, body) = self.parts()?;
        let lacks_index = head.lists.iter().any(|list| list.tools.lacks_index());
        let known = |list: StoredList<'_>| list.offer.known_list(list.tools.tools(&body, path)?);
        let lists = head.lists.into_iter().map(known).collect::<Option<Vec<_>>>()?;
        let lists = if lists.is_empty() { CachedLists::NoAnswer } else { CachedLists::Lists(lists) };
        Some((lists, lacks_index))
    }

    /// The head and the body; `None` if they are damaged.
    fn parts(&self) -> Option<(Head<'_>, Body)> {
        let (start, FirstLine { head, .. }) = first_line(&self.beginning)?;
        let end = start.checked_add(head)?;
        let body = match &self.file {
            Some(file) => Body::Open { file: file.try_clone().ok()?, start: end as u64 },
            None => Body::Read(self.beginning.get(end..).map(|_| self.beginning.slice(end..))?),
        };
        Some((serde_json::from_slice(self.beginning.get(start..end)?).ok()?, body))
    }

    /// Whether a file that was read whole cannot be used.
    pub(super) fn is_damaged(&self) -> bool {
        if first_line(&self.beginning).is_none() {
            return self.lists(Path::new("")).is_none();
        }
        let Some((head, body)) = self.parts() else { return true };
        let read = |list: StoredList<'_>| list.offer.known_list(list.tools.read(&body)?.into());
        head.lists.into_iter().map(read).collect::<Option<Vec<_>>>().is_none()
    }

    /// The tools in a file that is being replaced.
    fn saved_tools(&self) -> Vec<SavedTools> {
        let Some((head, body)) = self.parts() else { return Vec::new() };
        let saved =
            |list: StoredList<'_>| body.try_clone().ok().map(|body| SavedTools { place: list.tools, body });
        head.lists.into_iter().filter_map(saved).collect()
    }

    /// Whether a file that was read whole has this content.
    pub(super) fn is(&self, content: &[u8]) -> bool {
        self.beginning == content
    }
}

impl From<Vec<u8>> for Stored {
    fn from(content: Vec<u8>) -> Self {
        Self { beginning: content.into(), file: None }
    }
}

/// A file and its length.
fn opened(path: &Path) -> io::Result<(File, u64)> {
    let file = own::open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn check_length(length: u64) -> io::Result<()> {
    if length <= LARGEST {
        return Ok(());
    }
    let why = format!("the file is larger than {} MiB", LARGEST >> 20);
    Err(io::Error::new(io::ErrorKind::FileTooLarge, why))
}

/// The first bytes of a file that has at least that many.
fn beginning(file: &File) -> io::Result<Vec<u8>> {
    let mut beginning = vec![0; FIRST_LINE];
    file.read_exact_at(&mut beginning, 0)?;
    Ok(beginning)
}

/// The number of the format. Files of every version begin with it: `{"format":6`.
fn format(file: &[u8]) -> Option<u32> {
    let mut rest = file;
    for token in ["{", "\"format\"", ":"] {
        rest = rest.trim_ascii_start().strip_prefix(token.as_bytes())?;
    }
    let rest = rest.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = str::from_utf8(&rest[..digits]).ok().filter(|digits| !digits.is_empty())?;
    Some(digits.parse().unwrap_or(u32::MAX))
}

/// The first line, and where the head begins; `None` if the file is of another version or damaged.
fn first_line(file: &[u8]) -> Option<(usize, FirstLine)> {
    let line = file[..file.len().min(FIRST_LINE)].split_inclusive(|byte| *byte == b'\n').next()?;
    let first: FirstLine = serde_json::from_slice(line.strip_suffix(b"\n")?).ok()?;
    (first.format == FORMAT).then_some((line.len(), first))
}

/// The content of a server's file. Data derived from unchanged tools is copied from the previous file.
pub(super) fn render(server: &str, lists: &[KnownList], before: &Stored) -> Option<Vec<u8>> {
    let saved = before.saved_tools();
    let texts: Vec<Texts> = lists.iter().map(Texts::of).collect();
    let mut body = Vec::new();
    let stored = lists.iter().zip(&texts).map(|(list, texts)| {
        let tools = ToolsPlace::write(server, &list.offer.tools, &mut body, &saved)?;
        Some(StoredList { tools, offer: StoredOffer::of(list, texts) })
    });
    let lists = stored.collect::<Option<Vec<_>>>()?;
    let head = serde_json::to_vec(&Head { server: server.to_owned(), lists }).ok()?;
    let mut content = serde_json::to_vec(&FirstLine { format: FORMAT, head: head.len() }).ok()?;
    content.push(b'\n');
    content.extend_from_slice(&head);
    // Inserted in place: a second copy of a long list would need more memory than anything else here.
    body.splice(..0, content);
    Some(body)
}
