//! The memory of a project's searches on disk: which successful calls followed which queries. It stays on
//! this machine.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use plugbay_core::search::memory::SearchMemory;
use plugbay_downstream::remembered_searches::{RememberedSearches, today};

use crate::{
    config::hex_digest,
    files::{self, own},
};

/// The folder of these files, inside the cache folder.
const FOLDER: &str = "searches";

/// The file of one project, and the memory of the running gateway.
#[derive(Debug)]
pub struct MemoryFile {
    /// Absent if there is no cache folder.
    file: Option<PathBuf>,
    pub searches: Arc<RememberedSearches>,
}

impl MemoryFile {
    pub fn of(project: &Path, folder: Option<&Path>) -> Self {
        let name = hex_digest(project.as_os_str().as_encoded_bytes());
        let file = folder.map(|folder| folder.join(FOLDER).join(format!("{name}.json")));
        Self { file, searches: Arc::default() }
    }

    /// Starts or stops to remember. While stopped, nothing is read or written.
    pub fn remember(&self, wanted: bool) {
        self.searches.begin(wanted.then(|| self.read()));
    }

    /// The saved memory. A file that cannot be parsed is moved aside and logged, and never overwritten.
    pub fn read(&self) -> SearchMemory {
        let Some((file, text)) =
            self.file.as_ref().and_then(|file| Some((file, files::read_own(file).ok()?)))
        else {
            return SearchMemory::default();
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            files::move_aside(file, "remembered searches", &error);
            SearchMemory::default()
        })
    }

    /// Adds the learned uses to the file, which other gateways of the project, or the user, may have changed.
    pub fn save(&self) {
        let learned = self.searches.take_unsaved();
        let is_empty = learned.is_empty() && self.searches.recall().0.is_empty();
        if is_empty || self.file.is_none() {
            return;
        }
        let mut memory = self.read();
        if !learned.is_empty() {
            for followed in &learned {
                memory.learn(followed, today());
            }
            if let Err(error) = self.write(&memory) {
                tracing::warn!("remembered searches cannot be saved: {error}");
            }
        }
        self.searches.saved(memory);
    }

    /// Replaces the saved memory; an empty one has no file.
    pub fn write(&self, memory: &SearchMemory) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if memory.is_empty() {
            return match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        own::replace_unsynced(file, &serde_json::to_vec(memory)?).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use plugbay_core::{
        name::ServerName,
        search::memory::{Followed, ToolPlace, remembered_words},
    };

    use super::*;

    fn learned(query: &str) -> SearchMemory {
        let server = ServerName::parse("s").unwrap();
        let called = ToolPlace { server, tool: "t".to_owned() };
        let mut memory = SearchMemory::default();
        let words = remembered_words(query);
        let followed = Followed { words, called, definition: 1, passed_over: Vec::new(), weight: 1.0 };
        memory.learn(&followed, today());
        memory
    }

    #[test]
    fn projects_do_not_share_remembered_searches() {
        let folder = tempfile::tempdir().unwrap();
        let of = |project: &str| MemoryFile::of(Path::new(project), Some(folder.path()));
        of("/one").write(&learned("find homestays")).unwrap();
        assert_eq!(of("/one").read().tools().len(), 1);
        assert!(of("/two").read().is_empty());
        let file = of("/one").file.unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        of("/one").write(&SearchMemory::default()).unwrap();
        assert!(!file.exists());
        of("/one").write(&SearchMemory::default()).unwrap();
    }

    #[test]
    fn a_damaged_memory_is_moved_aside_and_what_a_user_forgot_stays_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let memory = MemoryFile::of(Path::new("/p"), Some(folder.path()));
        memory.write(&learned("find homestays")).unwrap();
        memory.remember(true);
        assert!(!memory.searches.recall().0.is_empty());
        memory.write(&SearchMemory::default()).unwrap();
        memory.save();
        assert!(memory.searches.recall().0.is_empty(), "forgotten by a command meanwhile");
        let file = memory.file.clone().unwrap();
        fs::write(&file, "{garbage").unwrap();
        assert!(memory.read().is_empty());
        assert_eq!(fs::read_to_string(file.with_extension("json.corrupt")).unwrap(), "{garbage");
        memory.write(&learned("find homestays")).unwrap();
        memory.remember(false);
        assert!(memory.searches.recall().0.is_empty());
    }
}
