//! Notices when a configuration file changes.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::{sync::mpsc, time::timeout};

/// Editors write a file in several steps: wait until they have been still for this long.
const STILL: Duration = Duration::from_millis(100);
/// A file that is never still is read all the same.
const RESTLESS: Duration = Duration::from_secs(2);

/// Watches folders rather than files, because most editors replace a file instead of writing to it.
pub struct Watch {
    /// `None` where the system cannot watch: then a change needs a restart.
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    events: mpsc::UnboundedReceiver<PathBuf>,
}

impl Watch {
    pub fn new(files: &[PathBuf]) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if let Ok(event) = event
                && !event.kind.is_access()
            {
                for path in event.paths {
                    let _ = sender.send(path);
                }
            }
        });
        let watcher = watcher.map_err(|error| tracing::warn!("changes are not watched: {error}")).ok();
        let mut watch = Self { watcher, folders: BTreeSet::new(), files: BTreeSet::new(), events };
        watch.follow(files);
        watch
    }

    /// Watches these files from now on, also those that do not exist yet.
    pub fn follow(&mut self, files: &[PathBuf]) {
        // Where a link leads to counts as well: people keep such files in a repository of their own.
        let targets = files.iter().filter_map(|file| file.canonicalize().ok());
        self.files = files.iter().cloned().chain(targets).collect();
        let Some(watcher) = &mut self.watcher else { return };
        for folder in self.files.iter().filter_map(|file| file.parent()).map(Path::to_owned) {
            if !self.folders.contains(&folder) && watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok()
            {
                self.folders.insert(folder);
            }
        }
    }

    /// Waits until one of the files has changed, and then until it is still.
    pub async fn changed(&mut self) {
        self.touched().await;
        let restless = async { while timeout(STILL, self.touched()).await.is_ok() {} };
        let _ = timeout(RESTLESS, restless).await;
    }

    async fn touched(&mut self) {
        loop {
            match self.events.recv().await {
                Some(path) if self.files.contains(&path) => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}
