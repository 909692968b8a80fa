//! Ranks search hits with a model. If the model fails or is slow, the local order stands.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    mem::{Discriminant, discriminant},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use plugbay_core::{
    model::{Model, ModelError, Prompt},
    name::ServerName,
    search::{EmbeddingTable, Hit, ranking},
    surface::{Found, Snapshot, ToolIndex},
};
use tokio::time::{Instant, timeout};

use crate::remembered_searches::RememberedSearches;

/// Limit of cached answers for each catalog.
const CACHED_ANSWERS: usize = 256;
/// Backoff after a failure of the model, unless the failure names its own.
const BACKOFF: Duration = Duration::from_secs(60);
/// Longest backoff: short enough to be added to any clock.
const LONGEST_BACKOFF: Duration = Duration::from_secs(365 * 24 * 3600);

/// The ranking model and its deadline.
#[derive(Debug, Clone)]
pub struct Choice {
    pub model: Chosen,
    pub deadline: Duration,
}

#[derive(Debug, Clone)]
pub enum Chosen {
    Model(Arc<dyn Model>),
    /// The host's model, through sampling.
    Host,
}

/// A search to rank.
#[derive(Debug, Clone)]
pub struct RankRequest {
    pub query: String,
    pub server: Option<ServerName>,
    pub limit: usize,
}

impl RankRequest {
    fn may_be(&self, found: &Found) -> bool {
        found.is_for_model() && self.server.as_ref().is_none_or(|server| found.target.server == *server)
    }
}

/// Search hits, best first. A tool that only the model named has no score.
#[derive(Debug)]
pub struct Ranked<'a> {
    pub hits: Vec<(&'a Found, Option<f32>)>,
    /// The first hit is clearly the best: the model named it alone, or the local engine is sure.
    pub clear: bool,
    /// No hit fits well, and the model named none.
    pub poor: bool,
}

/// The ranking model with its cache, shared by all sessions.
#[derive(Debug, Default)]
pub struct Ranker {
    // A std mutex: held for look-ups, never across an await.
    state: Mutex<State>,
    /// What each search led to, for the user's own hosts.
    pub searches: Arc<RememberedSearches>,
}

#[derive(Debug, Default)]
struct State {
    choice: Option<Choice>,
    /// One for each catalog in use: hosts may know the same tools by different names.
    caches: Vec<AnswerCache>,
    /// End of the backoff for each model: hosts have separate models.
    backoff: HashMap<ModelOwner, Instant>,
    /// The last failure that was logged, so that it is logged once.
    last_logged: Option<Discriminant<ModelError>>,
}

/// The model's answers about one catalog.
#[derive(Debug)]
struct AnswerCache {
    /// Identifies the catalog; the cache is dropped with it.
    tool_index: Weak<ToolIndex>,
    answers: HashMap<Key, Arc<[String]>>,
    /// Oldest first.
    order: VecDeque<Key>,
}

/// The host that a model belongs to; `None` for the configured model.
pub(crate) type ModelOwner = Option<[u8; 32]>;

/// Normalised query, server, limit and owner of the model: one host's answers are not used for another.
type Key = (String, Option<ServerName>, usize, ModelOwner);

impl Ranker {
    pub fn remembering(searches: &Arc<RememberedSearches>) -> Self {
        Self { state: Mutex::default(), searches: Arc::clone(searches) }
    }

    /// Sets the ranking model.
    pub fn choose(&self, choice: Option<Choice>) {
        *self.lock() = State { choice, ..State::default() };
    }

    pub fn choice(&self) -> Option<Choice> {
        self.lock().choice.clone()
    }

    /// The cached answer of the model.
    pub(crate) fn cached(
        &self,
        request: &RankRequest,
        owner: ModelOwner,
        tool_index: &Arc<ToolIndex>,
    ) -> Option<Arc<[String]>> {
        self.lock().cache(tool_index).answers.get(&key(request, owner)).cloned()
    }

    pub(crate) fn is_backing_off(&self, owner: ModelOwner) -> bool {
        self.lock().backoff.get(&owner).is_some_and(|until| Instant::now() < *until)
    }

    /// Caches an answer, or starts a backoff after a failure.
    pub(crate) fn record(
        &self,
        request: &RankRequest,
        owner: ModelOwner,
        tool_index: &Arc<ToolIndex>,
        answer: Result<Vec<String>, ModelError>,
    ) -> Option<Arc<[String]>> {
        let mut state = self.lock();
        match answer {
            Ok(names) => {
                let names: Arc<[String]> = names.into();
                state.cache(tool_index).keep(key(request, owner), Arc::clone(&names));
                state.last_logged = None;
                Some(names)
            }
            Err(trouble) => {
                let pause = match &trouble {
                    // These failures concern one query only.
                    ModelError::Refused(_) | ModelError::Malformed(_) => None,
                    ModelError::RateLimited { retry_after: Some(pause), .. } => Some(*pause),
                    _ => Some(BACKOFF),
                };
                if let Some(pause) = pause {
                    state.back_off(owner, pause);
                }
                if state.last_logged.replace(discriminant(&trouble)) != Some(discriminant(&trouble)) {
                    tracing::warn!("search goes on without the model: {trouble}");
                }
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing can panic half-way through a change, so a poisoned state is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn back_off(&mut self, owner: ModelOwner, pause: Duration) {
        let now = Instant::now();
        self.backoff.retain(|_, until| now < *until);
        let until = self.backoff.entry(owner).or_insert(now);
        *until = (*until).max(now + pause.min(LONGEST_BACKOFF));
    }

    fn cache(&mut self, tool_index: &Arc<ToolIndex>) -> &mut AnswerCache {
        self.caches.retain(|cache| cache.tool_index.strong_count() > 0);
        let tool_index = Arc::downgrade(tool_index);
        let known = self.caches.iter().position(|cache| cache.tool_index.ptr_eq(&tool_index));
        let at = known.unwrap_or_else(|| {
            self.caches.push(AnswerCache { tool_index, answers: HashMap::new(), order: VecDeque::new() });
            self.caches.len() - 1
        });
        &mut self.caches[at]
    }
}

impl AnswerCache {
    fn keep(&mut self, key: Key, names: Arc<[String]>) {
        if self.answers.insert(key.clone(), names).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > CACHED_ANSWERS
            && let Some(oldest) = self.order.pop_front()
        {
            self.answers.remove(&oldest);
        }
    }
}

/// Asks the model for the names of fitting tools. Dropping the future cancels the request.
pub async fn ask(
    model: &dyn Model,
    deadline: Duration,
    request: &RankRequest,
    snapshot: &Snapshot,
    table: fn() -> Option<Arc<EmbeddingTable>>,
) -> Result<Vec<String>, ModelError> {
    let prompt = prompt(request, snapshot, table);
    let reply = timeout(deadline, model.ask(prompt, None)).await;
    let reply = reply.unwrap_or(Err(ModelError::Timeout { after: deadline }))?;
    let names = ranking::names(&reply.text)
        .ok_or_else(|| ModelError::Malformed("there is no list of names in it".to_owned()))?;
    // The length of a cached answer must not depend on the model.
    let mut known = Vec::new();
    for name in names.into_iter().filter(|name| snapshot.names.get(name).is_some()) {
        if known.len() < request.limit && !known.contains(&name) {
            known.push(name);
        }
    }
    Ok(known)
}

/// Merges the model's names, first, with the local hits.
pub fn merge<'a>(
    request: &RankRequest,
    snapshot: &'a Snapshot,
    names: &[String],
    local: &[(&'a Found, Hit)],
) -> Ranked<'a> {
    let lead = local.first().filter(|(_, hit)| hit.is_clear()).map(|(found, _)| &found.exposed);
    let chosen =
        names.iter().filter_map(|name| snapshot.names.get(name)).filter(|found| request.may_be(found));
    let chosen: Vec<(&Found, Option<f32>)> = chosen
        .map(|found| {
            let known = local.iter().find(|(other, _)| other.exposed == found.exposed);
            (found, known.map(|(_, hit)| hit.score))
        })
        .collect();
    let alone = chosen.len() == 1;
    let poor = chosen.is_empty() && local.first().is_some_and(|(_, hit)| hit.is_poor());
    let local = local.iter().map(|(found, hit)| (*found, Some(hit.score)));
    let same = |one: &(&Found, _), other: &(&Found, _)| one.0.exposed == other.0.exposed;
    let hits = ranking::merged(chosen, local, request.limit, same);
    let clear = alone || hits.first().is_some_and(|(first, _)| Some(&first.exposed) == lead);
    Ranked { hits, clear, poor }
}

/// The prompt, with all tools that may be meant, the likely ones first.
fn prompt(request: &RankRequest, snapshot: &Snapshot, table: fn() -> Option<Arc<EmbeddingTable>>) -> Prompt {
    let likely =
        snapshot.tool_index.candidates(&request.query, ranking::CANDIDATES, request.server.as_ref(), table);
    let likely: Vec<&Found> = likely.into_iter().map(|(found, _)| found).collect();
    let known: HashSet<&str> = likely.iter().map(|found| found.exposed.as_str()).collect();
    let others = snapshot.names.iter().filter(|found| request.may_be(found));
    let others = others.filter(|found| !known.contains(found.exposed.as_str()));
    let tools = likely.iter().copied().chain(others);
    ranking::prompt(&request.query, request.limit, tools.map(|found| (found.exposed.as_str(), &found.tool)))
}

fn key(request: &RankRequest, owner: ModelOwner) -> Key {
    (ranking::normalised(&request.query), request.server.clone(), request.limit, owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::snapshot;

    #[tokio::test(start_paused = true)]
    async fn ranking_backs_off_for_each_host_separately() {
        let (ranker, tool_index) = (Ranker::default(), snapshot(&["a"], true).tool_index);
        let request = RankRequest { query: "x".to_owned(), server: None, limit: 1 };
        let (one, other) = (Some([1; 32]), Some([2; 32]));
        ranker.record(&request, one, &tool_index, Err(ModelError::Unaskable("declined".to_owned())));
        assert_eq!([one, other, None].map(|owner| ranker.is_backing_off(owner)), [true, false, false]);
        tokio::time::advance(BACKOFF).await;
        assert!(!ranker.is_backing_off(one));
    }
}
