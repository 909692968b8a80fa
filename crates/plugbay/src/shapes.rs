//! The shapes of results on disk, next to the cache of offers and with the same rules.
//!
//! There is one file per launch identity, replaced as a whole under a lock. A file of a newer plugbay is left
//! alone; one that cannot be parsed is moved aside. It contains names of fields and types, but no values.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plugbay_core::{
    learned_shapes::{self, LearnedShapes, Stored},
    name::ServerName,
};
use serde::{Deserialize, Serialize};

use crate::files::{self, own};

const VERSION: u32 = 1;
const LOCK: &str = ".lock";
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// The shapes that a gateway learns, with their files.
#[derive(Debug)]
pub struct Shapes {
    pub learned: Arc<LearnedShapes>,
    files: Arc<Files>,
}

/// The file of each server.
#[derive(Debug)]
struct Files {
    /// `None` if no folder is known: then nothing is saved.
    folder: Option<PathBuf>,
    /// The launch identity of each server that can be started. A std mutex: held for a look-up.
    identities: Mutex<BTreeMap<ServerName, String>>,
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    tools: Stored,
}

impl Shapes {
    pub fn new(cache_folder: Option<&Path>) -> Self {
        let folder = cache_folder.map(|folder| folder.join("shapes"));
        let files = Arc::new(Files { folder, identities: Mutex::default() });
        let of_server = Arc::clone(&files);
        let load =
            move |server: &ServerName| of_server.path(server).map(|path| read(&path)).unwrap_or_default();
        Self { learned: Arc::new(LearnedShapes::new(Box::new(load))), files }
    }

    /// Applies a new set of servers. Shapes are forgotten if their server is gone or now another program.
    pub fn configure<'a>(&self, servers: impl Iterator<Item = (&'a ServerName, &'a Option<String>)>) {
        let servers = servers.filter_map(|(name, identity)| Some((name.clone(), identity.clone()?)));
        let next: BTreeMap<ServerName, String> = servers.collect();
        self.save();
        let previous = std::mem::replace(&mut *self.files.identities(), next.clone());
        for (name, _) in previous.iter().filter(|(name, identity)| next.get(*name) != Some(*identity)) {
            self.learned.forget(name);
        }
    }

    /// Adds new shapes to the files, which other processes may have changed.
    pub fn save(&self) {
        for (server, new) in self.learned.take_changed() {
            let Some(path) = self.files.path(&server).filter(|_| !new.is_empty()) else { continue };
            if let Err(error) = add(&path, new) {
                tracing::warn!(path = %path.display(), "the shapes of results cannot be saved: {error}");
            }
        }
    }
}

impl Files {
    fn path(&self, server: &ServerName) -> Option<PathBuf> {
        let identities = self.identities();
        Some(self.folder.as_ref()?.join(format!("{}.json", identities.get(server)?)))
    }

    fn identities(&self) -> MutexGuard<'_, BTreeMap<ServerName, String>> {
        self.identities.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add(path: &Path, new: Stored) -> io::Result<()> {
    let _lock = own::lock(&files::folder_of(path).join(LOCK), LOCK_PATIENCE)?;
    let before = match content(path) {
        Kept::Newer => return Ok(()),
        Kept::Tools(tools) => tools,
    };
    let tools = learned_shapes::merged(before.clone(), new);
    if tools == before {
        return Ok(());
    }
    let content = serde_json::to_vec(&Content { version: VERSION, tools })?;
    own::replace_unsynced(path, &content).map(drop)
}

fn read(path: &Path) -> Stored {
    match content(path) {
        Kept::Newer => Stored::new(),
        Kept::Tools(tools) => tools,
    }
}

/// The content of a file.
enum Kept {
    /// A newer plugbay has written it.
    Newer,
    Tools(Stored),
}

fn content(path: &Path) -> Kept {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let Ok(text) = files::read_own(path) else { return Kept::Tools(Stored::new()) };
    if serde_json::from_slice(&text).is_ok_and(|Version { version }| version > VERSION) {
        return Kept::Newer;
    }
    let tools = serde_json::from_slice(&text).map(|Content { tools, .. }| tools);
    Kept::Tools(tools.unwrap_or_else(|error| {
        files::move_aside(path, "the shapes of results", &error);
        Stored::new()
    }))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use bytes::Bytes;
    use plugbay_core::{
        catalog::{Catalog, Change, Offer, Tool},
        era::Era,
    };

    use super::*;

    fn server() -> ServerName {
        ServerName::parse("s").unwrap()
    }

    fn offer() -> Arc<Offer> {
        let tool = Tool::parse(Bytes::from_static(br#"{"name":"list","inputSchema":{}}"#)).unwrap();
        Arc::new(Offer::new(Era::Legacy, None, None, vec![tool]))
    }

    fn shapes(folder: &Path, identity: &str) -> Shapes {
        let shapes = Shapes::new(Some(folder));
        shapes.configure([(&server(), &Some(identity.to_owned()))].into_iter());
        shapes
    }

    fn learn(shapes: &Shapes, value: &str) {
        for _ in 0..2 {
            shapes.learned.learn(&server(), &offer(), "list", value.as_bytes());
        }
    }

    fn line(shapes: &Shapes) -> Option<String> {
        let catalog = Catalog::default().apply(Change::Listed(server(), offer()));
        shapes.learned.line(&server(), &catalog, "list")
    }

    #[test]
    fn shapes_are_kept_by_launch_identity_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let first = shapes(folder.path(), "one");
        learn(&first, r#"[{"id": 1, "name": "alice"}]"#);
        first.save();
        let file = folder.path().join("shapes/one.json");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("name") && !text.contains("alice"), "{text}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let next = shapes(folder.path(), "one");
        assert_eq!(line(&next).as_deref(), Some("result: {id: int, name}[]"));
        assert_eq!(line(&shapes(folder.path(), "two")), None, "another program");
        next.configure([(&server(), &Some("two".to_owned()))].into_iter());
        assert_eq!(line(&next), None, "it has become another program");
    }

    #[test]
    fn two_processes_add_to_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (shapes(folder.path(), "x"), shapes(folder.path(), "x"));
        learn(&one, r#"{"id": 1, "a": 1}"#);
        learn(&two, r#"{"id": 1, "b": 1}"#);
        one.save();
        two.save();
        assert_eq!(line(&shapes(folder.path(), "x")).as_deref(), Some("result: {id: int, a?: int, b?: int}"));
    }

    #[test]
    fn a_damaged_file_is_moved_aside_and_a_newer_one_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shapes/x.json");
        let first = shapes(folder.path(), "x");
        learn(&first, r#"{"id": 1}"#);
        first.save();
        fs::write(&file, "{garbage").unwrap();
        assert_eq!(line(&shapes(folder.path(), "x")), None);
        assert_eq!(fs::read_to_string(file.with_extension("json.corrupt")).unwrap(), "{garbage");
        let newer = r#"{"version":99,"tools":"of another kind"}"#;
        fs::write(&file, newer).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let again = shapes(folder.path(), "x");
        assert_eq!(line(&again), None);
        learn(&again, r#"{"id": 1}"#);
        again.save();
        assert_eq!(fs::read_to_string(&file).unwrap(), newer);
    }
}
