//! The cache of server offers on disk: it makes the first list possible without a server.
//!
//! There is one file per launch identity, so a changed command never shows another program's tools. A file
//! holds the server's lists for several kinds of hosts. Processes that share the folder replace only the
//! lists that they have just received. A file is replaced as a whole, by rename, under a lock. Files of a
//! newer plugbay are left alone. Tools are read when they are needed.

mod head;
mod older;
mod stored;
mod stored_tools;
#[cfg(test)]
mod tests;
mod writer;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use plugbay_core::{
    catalog::{KnownList, Offer, Variants},
    declaration::Declaration,
    name::ServerName,
};

use self::{
    stored::Stored,
    writer::{Write, Writer},
};
use crate::files::{self, own};

const LOCK: &str = ".lock";
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// The cache folder, and the thread that writes to it.
#[derive(Debug)]
pub struct Cache {
    /// `None` if no folder is known: then nothing is cached.
    folder: Option<PathBuf>,
    writer: Option<Writer<Job>>,
}

/// The cached lists of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachedLists {
    /// The server has never connected.
    Absent,
    /// The server was started before but never answered, so it is not worth waiting for.
    NoAnswer,
    /// At least one list; the last one was saved last. A list of an earlier version has no kind of host.
    Lists(Vec<KnownList>),
}

/// An update of a server's file.
#[derive(Debug, Clone)]
pub enum Saved {
    /// The server does not answer. Its earlier lists stay.
    NoAnswer,
    /// The same content in the current format: the file is of an earlier version.
    Again,
    /// The server's lists for hosts with this declaration, and when it confirmed them, in seconds since 1970.
    List { declared: Declaration, offer: Arc<Offer>, confirmed: u64 },
}

#[derive(Debug)]
struct Job {
    path: PathBuf,
    server: String,
    saved: Saved,
}

impl Cache {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, writer: None }
    }

    /// Loads the lists of a server. A file that cannot be parsed is moved aside and logged, and never
    /// overwritten. One of an earlier version is rewritten in the background.
    pub fn load(&mut self, server: &ServerName, identity: &str) -> CachedLists {
        let Some(path) = self.path(identity) else { return CachedLists::Absent };
        let stored = match Stored::open(&path) {
            Ok(stored) if stored.is_newer() => {
                tracing::warn!(path = %path.display(), "a newer plugbay has written this cache file; it is not used");
                return CachedLists::Absent;
            }
            Ok(stored) => stored,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return CachedLists::Absent,
            Err(error) => {
                tracing::warn!(path = %path.display(), "the cache cannot be read: {error}");
                return CachedLists::Absent;
            }
        };
        let Some((lists, is_older)) = stored.lists_and_age(&path) else {
            files::move_aside(&path, "the lists of a server", &"it cannot be parsed");
            return CachedLists::Absent;
        };
        if is_older && !matches!(lists, CachedLists::Absent) {
            self.save(server, identity, Saved::Again);
        }
        lists
    }

    /// Writes in the background; [`Cache::finish`] waits for it.
    pub fn save(&mut self, server: &ServerName, identity: &str, saved: Saved) {
        let Some(path) = self.path(identity) else { return };
        let writer = self.writer.get_or_insert_with(Writer::start);
        writer.send(Job { path, server: server.to_string(), saved });
    }

    pub fn finish(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.finish();
        }
    }

    fn path(&self, identity: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("servers").join(format!("{identity}.json")))
    }
}

/// The state of the files in the cache folder, determined without changing any.
#[derive(Debug, Default)]
pub struct Inspection {
    /// Cache files that cannot be parsed.
    pub damaged: Vec<PathBuf>,
    /// Temporary files of writers that no longer run.
    pub left_behind: Vec<PathBuf>,
    /// The lock file, if another process has held it for longer than a writer waits.
    pub locked: Option<PathBuf>,
}

/// Reads every file in the cache folder.
pub fn inspect(folder: &Path) -> Inspection {
    let folder = folder.join("servers");
    let mut found = Inspection::default();
    for path in fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "json") {
            if Stored::read(&path).is_ok_and(|stored| !stored.is_newer() && stored.is_damaged()) {
                found.damaged.push(path);
            }
        } else if files::is_abandoned(&path) {
            found.left_behind.push(path);
        }
    }
    let lock = folder.join(LOCK);
    let is_held = |error: io::Error| error.kind() == io::ErrorKind::TimedOut;
    if lock.exists() && own::lock(&lock, LOCK_PATIENCE).is_err_and(is_held) {
        found.locked = Some(lock);
    }
    found
}

impl Write for Job {
    /// Merges the update into the file. Another process may have saved lists for other hosts meanwhile.
    fn write(&self) -> io::Result<()> {
        let _lock = own::lock(&files::folder_of(&self.path).join(LOCK), LOCK_PATIENCE)?;
        let before = Stored::read(&self.path).unwrap_or_default();
        if before.is_newer() {
            return Ok(());
        }
        let lists = match before.lists(&self.path) {
            Some(CachedLists::Lists(lists)) => lists,
            _ => Vec::new(),
        };
        let Some(content) = stored::render(&self.server, &merged(lists, &self.saved), &before) else {
            return Ok(());
        };
        if before.is(&content) {
            return Ok(());
        }
        own::replace(&self.path, &content)
    }

    fn supersedes(&self, earlier: &Self) -> bool {
        let is_same = match (&self.saved, &earlier.saved) {
            (Saved::List { declared, .. }, Saved::List { declared: before, .. }) => declared == before,
            (_, Saved::NoAnswer | Saved::Again) => true,
            (_, Saved::List { .. }) => false,
        };
        is_same && self.path == earlier.path
    }
}

fn merged(lists: Vec<KnownList>, saved: &Saved) -> Vec<KnownList> {
    let mut variants = Variants::new(false, lists);
    if let Saved::List { declared, offer, confirmed } = saved {
        variants.learn(declared, offer, *confirmed);
    }
    variants.lists().to_vec()
}

#[cfg(fuzzing)]
pub(crate) fn rewritten(content: &[u8]) -> Option<Vec<u8>> {
    match Stored::from(content.to_vec()).lists(Path::new(""))? {
        CachedLists::Lists(lists) => stored::render("", &lists, &Stored::default()),
        CachedLists::Absent | CachedLists::NoAnswer => None,
    }
}
