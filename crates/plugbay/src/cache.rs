//! The cache of server offers on disk: with it, the first list needs no server.
//!
//! One file per launch identity, so a changed command never shows another program's tools, and
//! processes that share the folder overwrite only the offers that they have just received. A file is
//! replaced as a whole, by rename, under a lock.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Dialect, Item, ItemKind, Items, Offer, ServerCapabilities, Tool},
    extension::Extensions,
    name::ServerName,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::files;

const LOCK: &str = ".lock";
const FORMAT: u32 = 4;
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// The cache folder, and the thread that writes to it.
#[derive(Debug)]
pub struct Cache {
    /// `None`: no folder is known, so nothing is cached.
    folder: Option<PathBuf>,
    writer: Option<Writer>,
}

/// What the cache has of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachedOffer {
    /// The server has never connected.
    Absent,
    /// The server was started before and never answered: not worth waiting for.
    NoAnswer,
    Offer {
        offer: Arc<Offer>,
        /// When the server last confirmed it, in seconds since 1970.
        confirmed: u64,
    },
}

#[derive(Debug)]
struct Writer {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
}

struct Job {
    path: PathBuf,
    content: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Stored<'a> {
    format: u32,
    server: String,
    /// Absent in files of earlier versions.
    #[serde(default)]
    confirmed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dialect: Option<Dialect>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    info: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    /// Absent for a server that never answered.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    capabilities: ServerCapabilities,
    /// An object with the members of the server's `capabilities` that hold extensions.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    extensions: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    resources: Vec<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    templates: Vec<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    prompts: Vec<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    skills: Vec<&'a RawValue>,
}

impl Cache {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, writer: None }
    }

    /// A file that cannot be parsed is moved aside and logged; it is never overwritten.
    pub fn load(&self, identity: &str) -> CachedOffer {
        let Some(path) = self.path(identity) else { return CachedOffer::Absent };
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return CachedOffer::Absent,
            Err(error) => {
                tracing::warn!(path = %path.display(), "the cache cannot be read: {error}");
                return CachedOffer::Absent;
            }
        };
        parse(&text).unwrap_or_else(|| {
            let aside = path.with_extension("json.corrupt");
            let outcome = fs::rename(&path, &aside);
            tracing::warn!(path = %path.display(), aside = %aside.display(), ?outcome, "moved a damaged cache file aside");
            CachedOffer::Absent
        })
    }

    /// Writes in the background; [`Cache::finish`] waits for it.
    pub fn save(&mut self, server: &ServerName, identity: &str, cached: &CachedOffer) {
        let Some(path) = self.path(identity) else { return };
        let Some(content) = render(server, cached) else { return };
        let writer = self.writer.get_or_insert_with(Writer::start);
        let _ = writer.jobs.send(Job { path, content });
    }

    pub fn finish(&mut self) {
        if let Some(Writer { jobs, thread }) = self.writer.take() {
            drop(jobs);
            let _ = thread.join();
        }
    }

    fn path(&self, identity: &str) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("servers").join(format!("{identity}.json")))
    }
}

/// The state of the files in the cache folder, found without changing any.
#[derive(Debug, Default)]
pub struct Inspection {
    /// Cache files that cannot be parsed.
    pub damaged: Vec<PathBuf>,
    /// Drafts of writers that no longer run.
    pub left_behind: Vec<PathBuf>,
    /// Another process holds the lock for longer than a writer waits.
    pub locked: Option<PathBuf>,
}

/// Reads every file in the cache folder.
pub fn inspect(folder: &Path) -> Inspection {
    let folder = folder.join("servers");
    let mut found = Inspection::default();
    for path in fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|extension| extension == "json") {
            if fs::read(&path).is_ok_and(|text| parse(&text).is_none()) {
                found.damaged.push(path);
            }
        } else if files::is_abandoned(&path) {
            found.left_behind.push(path);
        }
    }
    let lock = folder.join(LOCK);
    if File::open(&lock).is_ok_and(|file| lock_soon(&file).is_err()) {
        found.locked = Some(lock);
    }
    found
}

impl Writer {
    /// Writes in a thread of its own, because syncing a file can take long.
    fn start() -> Self {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let thread = std::thread::spawn(move || {
            for job in inbox {
                if let Err(error) = write(&job) {
                    tracing::warn!(path = %job.path.display(), "the cache cannot be written: {error}");
                    return; // the next cannot be written either
                }
            }
        });
        Self { jobs, thread }
    }
}

fn write(job: &Job) -> io::Result<()> {
    if fs::read(&job.path).is_ok_and(|content| content == job.content.as_bytes()) {
        return Ok(());
    }
    let folder = files::folder_of(&job.path);
    files::create_folder(folder)?;
    let lock =
        File::options().create(true).truncate(false).write(true).mode(0o600).open(folder.join(LOCK))?;
    lock_soon(&lock)?;
    files::replace(&job.path, job.content.as_bytes())
}

/// Another process may hold the lock for ever, and plugbay must be able to exit. Without the write, the next start
/// has no cached offer.
fn lock_soon(lock: &File) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds its lock"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn parse(text: &[u8]) -> Option<CachedOffer> {
    let stored: Stored<'_> = serde_json::from_slice(text).ok()?;
    if stored.format != FORMAT {
        return Some(CachedOffer::Absent); // of another version; it is replaced when the server next lists
    }
    let (Some(dialect), Some(tools)) = (stored.dialect, stored.tools) else {
        return Some(CachedOffer::NoAnswer);
    };
    let bytes = |raw: &RawValue| Bytes::copy_from_slice(raw.get().as_bytes());
    let tools = tools.into_iter().map(|raw| Tool::parse(bytes(raw))).collect::<Option<Vec<_>>>()?;
    let items = |raw: Vec<&RawValue>, item_kind| {
        raw.into_iter().map(|raw| Item::parse(bytes(raw), item_kind)).collect::<Option<Vec<_>>>()
    };
    let stock = Items {
        resources: items(stored.resources, ItemKind::Resource)?,
        templates: items(stored.templates, ItemKind::Template)?,
        prompts: items(stored.prompts, ItemKind::Prompt)?,
        skills: items(stored.skills, ItemKind::Skill)?,
    };
    let offer = Offer::new(dialect, stored.info.map(bytes), stored.instructions, tools);
    let declared = stored.extensions.map(|raw| raw.get().as_bytes());
    let extensions = declared.map(|text| Extensions::read(text, &(0..text.len()))).unwrap_or_default();
    let offer = Arc::new(offer.with_items(stored.capabilities, stock).extended(extensions));
    Some(CachedOffer::Offer { offer, confirmed: stored.confirmed })
}

fn render(server: &ServerName, cached: &CachedOffer) -> Option<String> {
    let server = server.to_string();
    let extensions;
    let stored = match cached {
        CachedOffer::Absent => return None,
        CachedOffer::NoAnswer => Stored { format: FORMAT, server, ..Stored::default() },
        CachedOffer::Offer { offer, confirmed } => {
            extensions = offer.extensions.added_to("{}".to_owned());
            Stored {
                format: FORMAT,
                server,
                confirmed: *confirmed,
                dialect: Some(offer.dialect),
                info: offer.info.as_deref().and_then(raw),
                instructions: offer.instructions.clone(),
                tools: Some(offer.tools.iter().filter_map(|tool| raw(&tool.definition)).collect()),
                capabilities: offer.capabilities,
                extensions: raw(extensions.as_bytes()).filter(|_| offer.extensions != Extensions::default()),
                resources: definitions(&offer.resources),
                templates: definitions(&offer.templates),
                prompts: definitions(&offer.prompts),
                skills: definitions(&offer.skills),
            }
        }
    };
    serde_json::to_string(&stored).ok()
}

fn definitions(items: &[Item]) -> Vec<&RawValue> {
    items.iter().filter_map(|item| raw(&item.definition)).collect()
}

fn raw(json: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice(json).ok()
}

#[cfg(test)]
mod tests {
    use plugbay_core::era::Era;

    use super::*;

    fn offer() -> CachedOffer {
        let definition = Bytes::from_static(br#"{"name":"a", "x":1.0,"big":123456789012345678901234567890}"#);
        let tools = vec![Tool::parse(definition).unwrap()];
        let info = Some(Bytes::from_static(br#"{"name":"s"}"#));
        let declared = br#"{"extensions":{"a/b":{"n":1.0}}}"#;
        let extensions = Extensions::read(declared, &(0..declared.len()));
        let offer = Offer::new(Era::Modern, info, Some("be kind".to_owned()), tools);
        CachedOffer::Offer { offer: Arc::new(offer.extended(extensions)), confirmed: 1_800_000_000 }
    }

    #[test]
    fn cached_tool_definitions_keep_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        let name = ServerName::parse("s").unwrap();
        let mut cache = Cache::new(Some(folder.path().join("deep/down")));
        assert_eq!(cache.load("one"), CachedOffer::Absent);
        cache.save(&name, "one", &offer());
        cache.save(&name, "two", &CachedOffer::NoAnswer);
        cache.finish();
        assert_eq!(cache.load("one"), offer());
        assert_eq!(cache.load("two"), CachedOffer::NoAnswer);
        assert_eq!(cache.load("three"), CachedOffer::Absent);
    }

    #[test]
    fn a_damaged_cache_file_is_moved_aside_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("servers")).unwrap();
        let path = folder.path().join("servers/x.json");
        fs::write(&path, "{\"format\":1,").unwrap();
        let cache = Cache::new(Some(folder.path().to_owned()));
        assert_eq!(cache.load("x"), CachedOffer::Absent);
        assert_eq!(fs::read_to_string(path.with_extension("json.corrupt")).unwrap(), "{\"format\":1,");
    }
}
