//! The tools that a project uses most, saved on disk, so that every mode can list them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use plugbay_core::{
    name::ServerName,
    surface::{Learned, Snapshot},
    usage_counts::UsageCounts,
};
use tokio::sync::watch;

use crate::{
    config::hex_digest,
    files::{self, own},
    search_memory::MemoryFile,
};

/// The score of one use. Each later conversation reduces it by a tenth.
const USE: u32 = 100;
/// After this time without a call, uses belong to a new conversation.
const CONVERSATION: Duration = Duration::from_secs(3600);
/// Scores below this are dropped.
const FORGOTTEN: u32 = 10;

/// Maps each server and its own name of a tool to a score, in which recent uses count most.
type Scores = BTreeMap<String, BTreeMap<String, u32>>;

/// The uses of tools in one project.
#[derive(Debug)]
pub struct Usage {
    /// Absent if there is no cache folder.
    file: Option<PathBuf>,
    pub counts: Arc<UsageCounts>,
    pub search_memory: MemoryFile,
    /// When older scores were last reduced.
    aged: Mutex<Option<Instant>>,
}

impl Usage {
    pub fn of(project: &Path, folder: Option<&Path>) -> Self {
        let name = hex_digest(project.as_os_str().as_encoded_bytes());
        let file = folder.map(|folder| folder.join("usage").join(format!("{name}.json")));
        let search_memory = MemoryFile::of(project, folder);
        Self { file, counts: Arc::default(), search_memory, aged: Mutex::default() }
    }

    /// The most used tools, for a new conversation.
    pub fn learned(
        self: Arc<Self>,
        snapshots: watch::Receiver<Snapshot>,
    ) -> Arc<dyn Fn() -> Arc<Learned> + Send + Sync> {
        Arc::new(move || {
            let layout = Arc::clone(&snapshots.borrow().layout);
            let may = |server: &ServerName, tool: &str| {
                layout.exposures.get(server).is_some_and(|exposure| exposure.policy.may(tool))
            };
            Arc::new(self.favourites(layout.settings.learn, may))
        })
    }

    /// The most used of the allowed tools, up to this number.
    pub fn favourites(&self, most: usize, may: impl Fn(&ServerName, &str) -> bool) -> Learned {
        if most == 0 {
            return Learned::new();
        }
        self.save();
        let mut all: Vec<(u32, ServerName, &str)> = Vec::new();
        let scores = scores(self.file.as_deref());
        for (server, tools) in &scores {
            let Ok(server) = ServerName::parse(server) else { continue };
            let allowed = tools.iter().filter(|(tool, _)| may(&server, tool));
            all.extend(allowed.map(|(tool, score)| (*score, server.clone(), &**tool)));
        }
        all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| (&a.1, a.2).cmp(&(&b.1, b.2))));
        let mut favourites = Learned::new();
        for (_, server, tool) in all.into_iter().take(most) {
            favourites.entry(server).or_default().insert(tool.to_owned());
        }
        favourites
    }

    /// Adds the counts to the file, which other gateways of the project may have changed. Also saves what
    /// searches led to.
    pub fn save(&self) {
        self.search_memory.save();
        let used = self.counts.take();
        let Some(file) = self.file.as_ref().filter(|_| !used.is_empty()) else { return };
        let mut scores = scores(Some(file));
        if self.is_another_conversation() {
            age(&mut scores);
        }
        for (server, tools) in used {
            let known = scores.entry(server.to_string()).or_default();
            for (tool, count) in tools {
                let score = known.entry(tool).or_default();
                *score = score.saturating_add(count.saturating_mul(USE));
            }
        }
        let text = serde_json::to_vec(&scores).unwrap_or_default();
        if let Err(error) = own::replace_unsynced(file, &text) {
            tracing::warn!("the counted uses of tools cannot be saved: {error}");
        }
    }

    /// Whether a new conversation has begun since the last call.
    fn is_another_conversation(&self) -> bool {
        let mut aged = self.aged.lock().unwrap_or_else(PoisonError::into_inner);
        let another = aged.is_none_or(|at| at.elapsed() >= CONVERSATION);
        if another {
            *aged = Some(Instant::now());
        }
        another
    }
}

fn age(scores: &mut Scores) {
    for tools in scores.values_mut() {
        for score in tools.values_mut() {
            *score -= *score / 10;
        }
        tools.retain(|_, score| *score >= FORGOTTEN);
    }
    scores.retain(|_, tools| !tools.is_empty());
}

/// The saved scores; none if the file cannot be read. A file that cannot be parsed is moved aside and logged,
/// and never overwritten.
fn scores(file: Option<&Path>) -> Scores {
    let Some((file, text)) = file.and_then(|file| Some((file, files::read_own(file).ok()?))) else {
        return Scores::new();
    };
    serde_json::from_slice(&text).unwrap_or_else(|error| {
        files::move_aside(file, "the uses of tools", &error);
        Scores::new()
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_damaged_usage_file_is_moved_aside_and_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let usage = Usage::of(Path::new("/p"), Some(folder.path()));
        let server = ServerName::parse("s").unwrap();
        usage.counts.used(&server, "x");
        usage.save();
        let file = usage.file.clone().unwrap();
        fs::write(&file, "{garbage").unwrap();
        usage.counts.used(&server, "x");
        usage.save();
        assert_eq!(fs::read_to_string(file.with_extension("json.corrupt")).unwrap(), "{garbage");
        assert_eq!(scores(Some(&file))["s"]["x"], USE);
    }

    #[test]
    fn the_most_and_latest_used_tools_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let server = |name: &str| ServerName::parse(name).unwrap();
        let usage = |project: &str| Usage::of(Path::new(project), Some(folder.path()));
        let use_often = |tool: &str, times: u32| {
            let usage = usage("/p");
            (0..times).for_each(|_| usage.counts.used(&server("s"), tool));
            usage.save();
        };
        use_often("old", 10);
        use_often("new", 9);
        let any = |_: &ServerName, _: &str| true;
        assert_eq!(usage("/p").favourites(1, any), [(server("s"), ["new".to_owned()].into())].into());
        assert_eq!(usage("/p").favourites(9, any)[&server("s")].len(), 2);
        let denied = |_: &ServerName, tool: &str| tool != "new";
        assert_eq!(usage("/p").favourites(1, denied), [(server("s"), ["old".to_owned()].into())].into());
        assert!(usage("/other").favourites(9, any).is_empty());
        (0..80).for_each(|_| use_often("later", 1));
        let kept = usage("/p").favourites(9, any);
        assert_eq!(kept, [(server("s"), ["later".to_owned()].into())].into(), "the rest is long ago");
        let often = usage("/often");
        for _ in 0..30 {
            often.counts.used(&server("s"), "x");
            often.save();
        }
        assert_eq!(
            scores(often.file.as_deref())["s"]["x"],
            30 * USE,
            "one conversation, however often it is saved"
        );
        let nowhere = Usage::of(Path::new("/p"), None);
        nowhere.counts.used(&server("s"), "x");
        nowhere.save();
        assert!(nowhere.favourites(9, any).is_empty());
    }
}
