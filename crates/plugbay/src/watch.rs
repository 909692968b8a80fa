//! Notices when a configuration file changes.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher, event::ModifyKind};
use tokio::{sync::mpsc, time::timeout};

/// Editors write a file in several steps, so wait until no event has come for this time.
const STILL: Duration = Duration::from_millis(100);
/// A file that keeps changing is read after this time.
const RESTLESS: Duration = Duration::from_secs(2);

/// Watches the folders of files, because most editors replace a file instead of writing to it.
pub struct Watch {
    /// `None` if the system cannot watch: then a change needs a restart.
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    /// Folders in which files that appear or disappear also matter.
    folders: BTreeSet<PathBuf>,
    /// Folders that do not exist yet and lead to a file: if they appear, so may the file.
    awaited: BTreeSet<PathBuf>,
    events: mpsc::UnboundedReceiver<Touch>,
}

struct Touch {
    path: PathBuf,
    /// Whether the file was created, removed or renamed, instead of changed.
    came_or_went: bool,
}

impl Watch {
    pub fn new(files: &[PathBuf], folders: &[PathBuf]) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if let Ok(event) = event
                && !event.kind.is_access()
            {
                let came_or_went = matches!(
                    event.kind,
                    EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
                );
                for path in event.paths {
                    let _ = sender.send(Touch { path, came_or_went });
                }
            }
        });
        let watcher = watcher
            .map_err(|error| {
                tracing::warn!(
                    "plugbay cannot watch the configuration files, so a change needs a restart: {error}"
                );
            })
            .ok();
        let none = BTreeSet::new();
        let mut watch = Self {
            watcher,
            watched: none.clone(),
            files: none.clone(),
            folders: none.clone(),
            awaited: none,
            events,
        };
        watch.follow(files, folders);
        watch
    }

    /// Watches these files, including those that do not exist yet, and these folders. Returns whether it
    /// watches new folders: changes in them before this call were not noticed.
    pub fn follow(&mut self, files: &[PathBuf], folders: &[PathBuf]) -> bool {
        // The targets of links are watched too: people keep such files in a repository.
        let targets = files.iter().filter_map(|file| file.canonicalize().ok());
        self.files = files.iter().cloned().chain(targets).collect();
        self.folders = folders.iter().cloned().collect();
        let Some(watcher) = &mut self.watcher else { return false };
        // The system no longer watches a removed folder, which may come back.
        self.watched.retain(|folder| folder.is_dir());
        let before = self.watched.len();
        self.awaited.clear();
        let parents = self.files.iter().filter_map(|file| file.parent());
        for wanted in parents.chain(self.folders.iter().map(PathBuf::as_path)) {
            let Some(folder) = nearest_existing(wanted) else { continue };
            self.awaited
                .extend(wanted.ancestors().take_while(|missing| *missing != folder).map(Path::to_owned));
            if !self.watched.contains(folder) && watcher.watch(folder, RecursiveMode::NonRecursive).is_ok() {
                self.watched.insert(folder.to_owned());
            }
        }
        self.watched.len() > before
    }

    /// Waits until one of the files has changed, and then until no more changes come.
    pub async fn changed(&mut self) {
        self.touched().await;
        let restless = async { while timeout(STILL, self.touched()).await.is_ok() {} };
        let _ = timeout(RESTLESS, restless).await;
    }

    /// Waits until one of the files has changed.
    pub async fn touched(&mut self) {
        loop {
            match self.events.recv().await {
                Some(touch) if self.concerns(&touch) => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    fn concerns(&self, Touch { path, came_or_went }: &Touch) -> bool {
        let is_listed = || path.parent().is_some_and(|folder| self.folders.contains(folder));
        self.files.contains(path) || *came_or_went && (self.awaited.contains(path) || is_listed())
    }
}

/// The folder itself, or the nearest existing one above it.
fn nearest_existing(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn a_watch_notices_a_file_in_folders_that_did_not_exist() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().canonicalize().unwrap();
        let files = [folder.join("config/plugbay/config.jsonc")];
        let mut watch = Watch::new(&files, &[]);
        for step in ["config", "config/plugbay"] {
            fs::create_dir(folder.join(step)).unwrap();
            timeout(Duration::from_secs(30), watch.changed()).await.expect("a change");
            assert!(watch.follow(&files, &[]), "{step} is watched");
        }
        fs::write(&files[0], "{}").unwrap();
        timeout(Duration::from_secs(30), watch.changed()).await.expect("a change");
        assert!(!watch.follow(&files, &[]));
    }
}
