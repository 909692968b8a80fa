//! Notices when a configuration file changes.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher, event::ModifyKind};
use tokio::{sync::mpsc, time::timeout};

/// Editors write a file in several steps: wait until they have been still for this long.
const STILL: Duration = Duration::from_millis(100);
/// A file that is never still is read all the same.
const RESTLESS: Duration = Duration::from_secs(2);

/// Watches folders rather than files, because most editors replace a file instead of writing to it.
pub struct Watch {
    /// `None` where the system cannot watch: then a change needs a restart.
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    /// What comes or goes in these counts as well.
    folders: BTreeSet<PathBuf>,
    events: mpsc::UnboundedReceiver<Touch>,
}

struct Touch {
    path: PathBuf,
    /// It has come, gone or got another name, rather than changed.
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
        let watcher = watcher.map_err(|error| tracing::warn!("changes are not watched: {error}")).ok();
        let none = BTreeSet::new();
        let mut watch = Self { watcher, watched: none.clone(), files: none.clone(), folders: none, events };
        watch.follow(files, folders);
        watch
    }

    /// Watches these files from now on, also those that do not exist yet, and these folders. Says whether
    /// there are new ones to watch: then something may have happened in them that nobody has noticed.
    pub fn follow(&mut self, files: &[PathBuf], folders: &[PathBuf]) -> bool {
        // Where a link leads to counts as well: people keep such files in a repository of their own.
        let targets = files.iter().filter_map(|file| file.canonicalize().ok());
        self.files = files.iter().cloned().chain(targets).collect();
        self.folders = folders.iter().cloned().collect();
        let Some(watcher) = &mut self.watcher else { return false };
        // One that is gone is watched no longer by the system either, and may come back.
        self.watched.retain(|folder| folder.is_dir());
        let before = self.watched.len();
        let parents = self.files.iter().filter_map(|file| file.parent());
        for folder in parents.chain(self.folders.iter().map(PathBuf::as_path)).map(Path::to_owned) {
            if !self.watched.contains(&folder) && watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok()
            {
                self.watched.insert(folder);
            }
        }
        self.watched.len() > before
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
                Some(touch) if self.concerns(&touch) => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    fn concerns(&self, Touch { path, came_or_went }: &Touch) -> bool {
        let is_listed = || path.parent().is_some_and(|folder| self.folders.contains(folder));
        self.files.contains(path) || *came_or_went && is_listed()
    }
}
