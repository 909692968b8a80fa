//! The cache of server offers on disk: with it, the first list needs no server.
//!
//! One file per launch identity, so a changed command never shows another program's tools. It holds the lists that the
//! server has for several kinds of hosts; processes that share the folder replace only those that they have just
//! received. A file is replaced as a whole, by rename, under a lock. A file of a newer plugbay is left alone.

mod writer;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Dialect, Item, ItemKind, Items, KnownList, Offer, ServerCapabilities, Tool, Variants},
    declaration::Declaration,
    extension::Extensions,
    name::ServerName,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use self::writer::Writer;
use crate::files::{self, own};

const LOCK: &str = ".lock";
const FORMAT: u32 = 5;
/// The format before there were lists for several kinds of hosts.
const ONE_LIST: u32 = 4;
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
/// A larger file is not read.
const LARGEST: u64 = 256 * 1024 * 1024;

/// The cache folder, and the thread that writes to it.
#[derive(Debug)]
pub struct Cache {
    /// `None`: no folder is known, so nothing is cached.
    folder: Option<PathBuf>,
    writer: Option<Writer<Job>>,
}

/// What the cache has of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachedLists {
    /// The server has never connected.
    Absent,
    /// The server was started before and never answered: not worth waiting for.
    NoAnswer,
    /// At least one; the one that was saved last is the last. A list of an earlier version has no kind of host.
    Lists(Vec<KnownList>),
}

/// What is saved of a server.
#[derive(Debug, Clone)]
pub enum Saved {
    /// It does not answer; lists that it has made before stay.
    NoAnswer,
    /// What it lists for hosts that declare this, and when it confirmed that, in seconds since 1970.
    List { declared: Declaration, offer: Arc<Offer>, confirmed: u64 },
}

#[derive(Debug)]
struct Job {
    path: PathBuf,
    server: String,
    saved: Saved,
}

#[derive(Default, Serialize, Deserialize)]
struct Stored<'a> {
    format: u32,
    server: String,
    /// Empty for a server that never answered.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    lists: Vec<StoredList<'a>>,
}

#[derive(Serialize, Deserialize)]
struct StoredList<'a> {
    /// The client capabilities and extensions of the hosts that it is for.
    #[serde(borrow, default)]
    declared: Vec<&'a RawValue>,
    /// Absent in files of earlier versions.
    #[serde(default)]
    confirmed: u64,
    dialect: Dialect,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    info: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
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
    pub fn load(&self, identity: &str) -> CachedLists {
        let Some(path) = self.path(identity) else { return CachedLists::Absent };
        let text = match own::read(&path, LARGEST) {
            Ok(text) if is_newer(&text) => {
                tracing::warn!(path = %path.display(), "a newer plugbay has written this cache file; it is not used");
                return CachedLists::Absent;
            }
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return CachedLists::Absent,
            Err(error) => {
                tracing::warn!(path = %path.display(), "the cache cannot be read: {error}");
                return CachedLists::Absent;
            }
        };
        parse(&text).unwrap_or_else(|| {
            let aside = path.with_extension("json.corrupt");
            let outcome = fs::rename(&path, &aside);
            tracing::warn!(path = %path.display(), aside = %aside.display(), ?outcome, "moved a damaged cache file aside");
            CachedLists::Absent
        })
    }

    /// Writes in the background; [`Cache::finish`] waits for it.
    pub fn save(&mut self, server: &ServerName, identity: &str, saved: Saved) {
        let Some(path) = self.path(identity) else { return };
        let writer = self.writer.get_or_insert_with(|| Writer::start(write));
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
            if own::read(&path, LARGEST).is_ok_and(|text| !is_newer(&text) && parse(&text).is_none()) {
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

/// Adds what is saved to what is there. Another process may have saved lists for other hosts meanwhile.
fn write(job: &Job) -> io::Result<()> {
    let _lock = own::lock(&files::folder_of(&job.path).join(LOCK), LOCK_PATIENCE)?;
    let before = own::read(&job.path, LARGEST).unwrap_or_default();
    if is_newer(&before) {
        return Ok(());
    }
    let lists = match parse(&before) {
        Some(CachedLists::Lists(lists)) => lists,
        _ => Vec::new(),
    };
    let Some(content) = render(&job.server, &merged(lists, &job.saved)) else { return Ok(()) };
    if content.as_bytes() == before {
        return Ok(());
    }
    own::replace(&job.path, content.as_bytes())
}

fn merged(lists: Vec<KnownList>, saved: &Saved) -> Vec<KnownList> {
    let mut variants = Variants::new(false, lists);
    if let Saved::List { declared, offer, confirmed } = saved {
        variants.learn(declared, offer, *confirmed);
    }
    variants.lists().to_vec()
}

/// Whether a newer version of plugbay has written this. Nobody knows its shape but for the number of its format.
fn is_newer(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Numbered {
        format: u32,
    }
    serde_json::from_slice::<Numbered>(text).is_ok_and(|stored| stored.format > FORMAT)
}

fn parse(text: &[u8]) -> Option<CachedLists> {
    let stored: Stored<'_> = serde_json::from_slice(text).ok()?;
    let lists = match stored.format {
        FORMAT => stored.lists.into_iter().map(known_list).collect::<Option<Vec<_>>>()?,
        // Its members stand where those of one list stand now. A server that never answered has none.
        ONE_LIST => serde_json::from_slice(text).ok().and_then(known_list).into_iter().collect(),
        // Of another version: replaced when the server next lists.
        _ => return Some(CachedLists::Absent),
    };
    Some(if lists.is_empty() { CachedLists::NoAnswer } else { CachedLists::Lists(lists) })
}

fn known_list(stored: StoredList<'_>) -> Option<KnownList> {
    let bytes = |raw: &RawValue| Bytes::copy_from_slice(raw.get().as_bytes());
    let tools = stored.tools.into_iter().map(|raw| Tool::parse(bytes(raw))).collect::<Option<Vec<_>>>()?;
    let items = |raw: Vec<&RawValue>, item_kind| {
        raw.into_iter().map(|raw| Item::parse(bytes(raw), item_kind)).collect::<Option<Vec<_>>>()
    };
    let stock = Items {
        resources: items(stored.resources, ItemKind::Resource)?,
        templates: items(stored.templates, ItemKind::Template)?,
        prompts: items(stored.prompts, ItemKind::Prompt)?,
        skills: items(stored.skills, ItemKind::Skill)?,
    };
    let offer = Offer::new(stored.dialect, stored.info.map(bytes), stored.instructions, tools);
    let read = |raw: &RawValue| (raw.get().as_bytes().to_vec(), 0..raw.get().len());
    let declared = stored.declared.into_iter().map(|raw| {
        let (text, object) = read(raw);
        Declaration::read(&text, &object)
    });
    let extensions = stored.extensions.map(|raw| {
        let (text, object) = read(raw);
        Extensions::read(&text, &object)
    });
    let offer = offer.with_items(stored.capabilities, stock).extended(extensions.unwrap_or_default());
    Some(KnownList { declared: declared.collect(), offer: Arc::new(offer), confirmed: stored.confirmed })
}

fn render(server: &str, lists: &[KnownList]) -> Option<String> {
    let texts: Vec<(Vec<String>, String)> = lists
        .iter()
        .map(|list| {
            let declared = list.declared.iter().map(Declaration::kind).collect();
            (declared, list.offer.extensions.added_to("{}".to_owned()))
        })
        .collect();
    let lists =
        lists.iter().zip(&texts).map(|(KnownList { offer, confirmed, .. }, (declared, extensions))| {
            StoredList {
                declared: declared.iter().filter_map(|kind| raw(kind.as_bytes())).collect(),
                confirmed: *confirmed,
                dialect: offer.dialect,
                info: offer.info.as_deref().and_then(raw),
                instructions: offer.instructions.clone(),
                tools: offer.tools.iter().filter_map(|tool| raw(&tool.definition)).collect(),
                capabilities: offer.capabilities,
                extensions: raw(extensions.as_bytes()).filter(|_| offer.extensions != Extensions::default()),
                resources: definitions(&offer.resources),
                templates: definitions(&offer.templates),
                prompts: definitions(&offer.prompts),
                skills: definitions(&offer.skills),
            }
        });
    let stored = Stored { format: FORMAT, server: server.to_owned(), lists: lists.collect() };
    serde_json::to_string(&stored).ok()
}

#[cfg(fuzzing)]
pub(crate) fn rewritten(text: &[u8]) -> Option<String> {
    match parse(text)? {
        CachedLists::Lists(lists) => render("", &lists),
        CachedLists::Absent | CachedLists::NoAnswer => None,
    }
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

    const POOR: &str = "{}";
    const RICH: &str = r#"{"sampling":{},"extensions":{"a/b":{"n":1}}}"#;

    fn kind(text: &str) -> Declaration {
        Declaration::read(text.as_bytes(), &(0..text.len()))
    }

    fn offer(tool: &'static str) -> Arc<Offer> {
        let tools = vec![Tool::parse(Bytes::from_static(tool.as_bytes())).unwrap()];
        let info = Some(Bytes::from_static(br#"{"name":"s"}"#));
        let declared = br#"{"extensions":{"a/b":{"n":1.0}}}"#;
        let extensions = Extensions::read(declared, &(0..declared.len()));
        let offer = Offer::new(Era::Modern, info, Some("be kind".to_owned()), tools);
        Arc::new(offer.extended(extensions))
    }

    const BIG: &str = r#"{"name":"a", "x":1.0,"big":123456789012345678901234567890}"#;

    fn list(host: &str, tool: &'static str, confirmed: u64) -> Saved {
        Saved::List { declared: kind(host), offer: offer(tool), confirmed }
    }

    /// The kinds of hosts and the definition of the tool of each list.
    fn lists(cached: CachedLists) -> Vec<(Vec<String>, Bytes)> {
        let CachedLists::Lists(lists) = cached else { panic!("{cached:?}") };
        let one = |list: KnownList| {
            (list.declared.iter().map(Declaration::kind).collect(), list.offer.tools[0].definition.clone())
        };
        lists.into_iter().map(one).collect()
    }

    #[test]
    fn cached_tool_definitions_keep_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        let name = ServerName::parse("s").unwrap();
        let mut cache = Cache::new(Some(folder.path().join("deep/down")));
        assert_eq!(cache.load("one"), CachedLists::Absent);
        cache.save(&name, "one", list(POOR, BIG, 1_800_000_000));
        cache.save(&name, "two", Saved::NoAnswer);
        cache.finish();
        let confirmed = 1_800_000_000;
        let known = KnownList { declared: vec![kind(POOR)], offer: offer(BIG), confirmed };
        assert_eq!(cache.load("one"), CachedLists::Lists(vec![known]));
        assert_eq!(cache.load("two"), CachedLists::NoAnswer);
        assert_eq!(cache.load("three"), CachedLists::Absent);
    }

    #[test]
    fn two_processes_save_the_lists_for_their_kinds_of_hosts_in_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let name = ServerName::parse("s").unwrap();
        let save = |saved: Saved| {
            let mut cache = Cache::new(Some(folder.path().to_owned()));
            cache.save(&name, "x", saved);
            cache.finish();
            lists(cache.load("x"))
        };
        save(list(POOR, BIG, 1));
        let rich_kind = kind(RICH).kind();
        assert_eq!(
            save(list(RICH, BIG, 2)),
            [(vec![POOR.to_owned(), rich_kind.clone()], Bytes::from(BIG))],
            "an equal list is kept once"
        );
        let more = r#"{"name":"more"}"#;
        assert_eq!(save(list(RICH, more, 3)).len(), 1, "another version of the server");
        let both = save(list(POOR, BIG, 4));
        let expected = [(vec![rich_kind], Bytes::from(more)), (vec![POOR.to_owned()], Bytes::from(BIG))];
        assert_eq!(both, expected);
        assert_eq!(save(Saved::NoAnswer), expected, "lists stay when the server does not answer");
    }

    #[test]
    fn cache_files_of_the_version_before_are_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("servers")).unwrap();
        let cache = Cache::new(Some(folder.path().to_owned()));
        let load = |text: &str| {
            fs::write(folder.path().join("servers/x.json"), text).unwrap();
            let cached = cache.load("x");
            assert!(folder.path().join("servers/x.json").exists(), "it is not damaged");
            cached
        };
        let old = format!(
            r#"{{"format":4,"server":"s","confirmed":7,"dialect":{{"era":"modern","framing":"newline"}},"tools":[{BIG}],"capabilities":{{"tools":true}}}}"#
        );
        assert_eq!(lists(load(&old)), [(Vec::new(), Bytes::from(BIG))]);
        assert_eq!(
            load(r#"{"format":4,"server":"s","confirmed":0,"capabilities":{}}"#),
            CachedLists::NoAnswer
        );
    }

    #[test]
    fn a_cache_file_of_a_newer_version_is_neither_used_nor_moved_nor_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("servers")).unwrap();
        let path = folder.path().join("servers/x.json");
        let newer = format!(r#"{{"format":{},"lists":"in another way"}}"#, FORMAT + 1);
        fs::write(&path, &newer).unwrap();
        let mut cache = Cache::new(Some(folder.path().to_owned()));
        assert_eq!(cache.load("x"), CachedLists::Absent);
        cache.save(&ServerName::parse("s").unwrap(), "x", list(POOR, BIG, 1));
        cache.finish();
        assert_eq!(fs::read_to_string(path).unwrap(), newer);
        let found = inspect(folder.path());
        assert!(found.damaged.is_empty(), "{found:?}");
    }

    #[test]
    fn a_pipe_or_device_in_the_place_of_a_cache_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let servers = folder.path().join("servers");
        fs::create_dir(&servers).unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(servers.join("pipe.json")).status();
        assert!(pipe.unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", servers.join("device.json")).unwrap();
        let name = ServerName::parse("s").unwrap();
        let mut cache = Cache::new(Some(folder.path().to_owned()));
        for identity in ["pipe", "device"] {
            assert_eq!(cache.load(identity), CachedLists::Absent);
            cache.save(&name, identity, list(POOR, BIG, 1));
        }
        assert!(inspect(folder.path()).damaged.is_empty());
        cache.finish();
        assert_eq!(lists(cache.load("pipe")), lists(cache.load("device")));
    }

    #[test]
    fn a_list_is_not_cached_while_another_process_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers/x.json");
        let lock = own::lock(&folder.path().join("servers").join(LOCK), Duration::ZERO).unwrap();
        let job = Job { path, server: "s".to_owned(), saved: list(POOR, BIG, 1) };
        assert_eq!(write(&job).unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(lock);
        write(&job).unwrap();
        assert_eq!(lists(Cache::new(Some(folder.path().to_owned())).load("x")).len(), 1);
    }

    #[test]
    fn a_damaged_cache_file_is_moved_aside_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("servers")).unwrap();
        let path = folder.path().join("servers/x.json");
        fs::write(&path, "{\"format\":1,").unwrap();
        let cache = Cache::new(Some(folder.path().to_owned()));
        assert_eq!(cache.load("x"), CachedLists::Absent);
        assert_eq!(fs::read_to_string(path.with_extension("json.corrupt")).unwrap(), "{\"format\":1,");
    }
}
