//! Remembers which searches led to which successful calls, for the user whose hosts these are.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use plugbay_core::{
    name::ServerName,
    observe::SessionMark,
    search::memory::{Followed, SearchMemory, ToolPlace, remembered_words},
    surface::Found,
};
use tokio::time::Instant;

/// Limit of searches that wait for a call, in all sessions; the oldest is dropped.
const MOST_WAITING: usize = 64;
/// A later call does not count as the answer to a search.
const LATEST: Duration = Duration::from_secs(15 * 60);
/// Limit of uses that wait to be saved.
const MOST_UNSAVED: usize = 256;
/// How many tools of a reply count as shown, including those that it only names.
const MOST_SHOWN: usize = 16;
/// The weight of an earlier query with some of the words, and how long before the successful one it may have been
/// made.
const EARLIER: f32 = 0.5;
const JUST_BEFORE: Duration = Duration::from_secs(2 * 60);

/// The memory of searches of one project. Without a file it lasts as long as the gateway.
#[derive(Debug, Default)]
pub struct RememberedSearches {
    // A std mutex: held for look-ups, never across an await.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_on: bool,
    memory: Arc<SearchMemory>,
    waiting: VecDeque<Waiting>,
    unsaved: Vec<Followed>,
}

/// A search that no call has followed yet.
#[derive(Debug)]
struct Waiting {
    session: SessionMark,
    words: Vec<String>,
    shown: Vec<ToolPlace>,
    since: Instant,
    /// A later search of the session was answered.
    is_passed: bool,
    /// The tool that was called after it in other words has its words already.
    is_reworded: bool,
}

impl RememberedSearches {
    /// Begins with this memory, or remembers nothing.
    pub fn begin(&self, memory: Option<SearchMemory>) {
        let is_on = memory.is_some();
        *self.lock() = State { is_on, memory: Arc::new(memory.unwrap_or_default()), ..State::default() };
    }

    /// The memory, and today's date.
    pub fn recall(&self) -> (Arc<SearchMemory>, u32) {
        (Arc::clone(&self.lock().memory), today())
    }

    /// The searches that led to calls since this was last called.
    pub fn take_unsaved(&self) -> Vec<Followed> {
        std::mem::take(&mut self.lock().unsaved)
    }

    /// Replaces the memory by the saved one, which other gateways of the project may have changed.
    pub fn saved(&self, memory: SearchMemory) {
        let mut state = self.lock();
        if state.is_on {
            state.memory = Arc::new(memory);
        }
    }

    /// Notes that a session was shown these tools for a query.
    pub(crate) fn searched<'a>(
        &self,
        session: SessionMark,
        query: &str,
        shown: impl Iterator<Item = &'a Found>,
    ) {
        let mut state = self.lock();
        if !state.is_on {
            return;
        }
        let place = |found: &Found| ToolPlace {
            server: found.target.server.clone(),
            tool: found.target.tool.clone(),
        };
        let shown = shown.take(MOST_SHOWN).map(place).collect();
        state.waiting.retain(Waiting::may_count);
        if state.waiting.len() == MOST_WAITING {
            state.waiting.pop_front();
        }
        let (words, since) = (remembered_words(query), Instant::now());
        state.waiting.push_back(Waiting {
            session,
            words,
            shown,
            since,
            is_passed: false,
            is_reworded: false,
        });
    }

    /// Whether a call of this tool may be the answer to a search.
    pub(crate) fn awaits(&self, session: SessionMark, server: &ServerName, tool: &str) -> bool {
        let state = self.lock();
        state.is_on && state.waiting.iter().any(|search| search.is_for(session, server, tool))
    }

    /// Notes that a call of this tool was successful: it answers the latest search that showed the tool.
    /// `definition` is the hash of the tool's definition.
    pub(crate) fn called(&self, session: SessionMark, server: &ServerName, tool: &str, definition: u64) {
        let mut state = self.lock();
        let Some(at) = state.waiting.iter().rposition(|search| search.is_for(session, server, tool)) else {
            return;
        };
        let Some(Waiting { words, mut shown, since, .. }) = state.waiting.remove(at) else { return };
        let Some(place) = shown.iter().position(|shown| shown.is(server, tool)) else { return };
        shown.truncate(place + 1);
        let Some(called) = shown.pop() else { return };
        // All others that showed the tool are earlier, and have led to nothing.
        let mut later = state.waiting.split_off(at);
        state.waiting.retain(|search| !search.is_for(session, server, tool));
        let earlier = state.reworded(session, &words, since);
        state.waiting.append(&mut later);
        state.learn(Followed { words, called: called.clone(), definition, passed_over: shown, weight: 1.0 });
        if let Some(words) = earlier {
            let passed_over = Vec::new();
            state.learn(Followed { words, called, definition, passed_over, weight: EARLIER });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn learn(&mut self, followed: Followed) {
        Arc::make_mut(&mut self.memory).learn(&followed, today());
        if self.unsaved.len() < MOST_UNSAVED {
            self.unsaved.push(followed);
        }
    }

    /// The words of the last search that was made in vain before one with some of its words: its purpose was
    /// probably the same. Earlier searches wait only a moment longer, for calls of the tools that they showed.
    fn reworded(&mut self, session: SessionMark, words: &[String], since: Instant) -> Option<Vec<String>> {
        let is_reworded = |search: &&mut Waiting| {
            let has_common = search.words.iter().any(|word| words.contains(word)) && search.words != words;
            has_common && !search.is_reworded && since - search.since <= JUST_BEFORE
        };
        let mut of_session: Vec<&mut Waiting> =
            self.waiting.iter_mut().filter(|search| search.session == session).collect();
        for search in &mut of_session {
            search.is_passed = true;
        }
        let search = of_session.into_iter().rev().find(is_reworded)?;
        search.is_reworded = true;
        Some(search.words.clone())
    }
}

impl Waiting {
    /// Whether a call may still be the answer to it, or it may still be reworded.
    fn may_count(&self) -> bool {
        let latest = if self.is_passed || self.shown.is_empty() { JUST_BEFORE } else { LATEST };
        self.since.elapsed() <= latest
    }

    fn is_for(&self, session: SessionMark, server: &ServerName, tool: &str) -> bool {
        self.session == session && self.may_count() && self.shown.iter().any(|shown| shown.is(server, tool))
    }
}

/// Days since 1970, as saved in files.
pub fn today() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs() / (24 * 3600)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::snapshot;

    const ONE: SessionMark = SessionMark([1; 8]);
    const OTHER: SessionMark = SessionMark([2; 8]);

    fn remembering() -> RememberedSearches {
        let searches = RememberedSearches::default();
        searches.begin(Some(SearchMemory::default()));
        searches
    }

    fn call(searches: &RememberedSearches, session: SessionMark, tool: &Found) {
        searches.called(session, &tool.target.server, &tool.target.tool, 1);
    }

    fn words(all: &str) -> Vec<String> {
        all.split(' ').map(str::to_owned).collect()
    }

    fn learned(searches: &RememberedSearches) -> Vec<(String, Vec<String>)> {
        let (memory, _) = searches.recall();
        memory.tools().iter().map(|tool| (tool.tool.clone(), tool.words.keys().cloned().collect())).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_is_remembered_when_its_own_session_calls_a_tool_that_it_showed() {
        let names = snapshot(&["a", "b"], true).names;
        let tools: Vec<Found> = names.for_model().take(2).cloned().collect();
        let [a, b] = &tools[..] else { panic!("two tools") };
        let searches = remembering();
        let call = |session, tool| call(&searches, session, tool);
        searches.searched(ONE, "find homestays", [a].into_iter());
        call(OTHER, a);
        call(ONE, b);
        assert_eq!(learned(&searches), [], "another session, and a tool that was not shown");
        assert!(searches.awaits(ONE, &a.target.server, &a.target.tool));
        call(ONE, a);
        call(ONE, a);
        let words = vec!["find".to_owned(), "homestay".to_owned()];
        assert_eq!(learned(&searches), [(a.target.tool.clone(), words)]);
        assert_eq!(searches.take_unsaved().len(), 1, "a search counts once");
        searches.searched(ONE, "lodging with breakfast", [a].into_iter());
        searches.searched(ONE, "lodging rooms", [b].into_iter());
        searches.searched(OTHER, "elsewhere", [b].into_iter());
        tokio::time::advance(JUST_BEFORE + Duration::from_secs(1)).await;
        searches.searched(ONE, "lodging", [b].into_iter());
        call(ONE, b);
        assert_eq!(learned(&searches)[1].1, ["lodg"], "the others were too early");
        call(OTHER, b);
        assert_eq!(learned(&searches)[1].1, ["elsewher", "lodg"], "another session goes on");
        searches.searched(ONE, "vacation lodging", [].into_iter());
        searches.searched(ONE, "lodging", [a].into_iter());
        call(ONE, a);
        let first = &learned(&searches)[0].1;
        assert!(first.contains(&"vacat".to_owned()) && !first.contains(&"room".to_owned()), "{first:?}");
        searches.searched(ONE, "lodging", [b].into_iter());
        tokio::time::advance(LATEST + Duration::from_secs(1)).await;
        call(ONE, b);
        let calls = searches.take_unsaved().len();
        call(ONE, b);
        assert_eq!((calls, searches.take_unsaved().len()), (4, 0), "too late");
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_in_vain_shares_only_the_call_after_a_search_with_one_of_its_words() {
        let names = snapshot(&["list_directory"], true).names;
        let tool = names.for_model().next().unwrap();
        let searches = remembering();
        for _ in 0..3 {
            searches.searched(ONE, "book flight", [].into_iter());
            searches.searched(ONE, "list directory", [tool].into_iter());
            call(&searches, ONE, tool);
        }
        assert_eq!(learned(&searches), [("list_directory".to_owned(), words("directori list"))]);
        searches.searched(ONE, "folder content", [].into_iter());
        searches.searched(ONE, "list folder", [tool].into_iter());
        call(&searches, ONE, tool);
        assert_eq!(learned(&searches)[0].1, words("content directori folder list"), "in other words");
        searches.searched(ONE, "list folder", [tool].into_iter());
        call(&searches, ONE, tool);
        assert_eq!(searches.take_unsaved().len(), 6, "a search in vain shares one call");
    }

    #[tokio::test(start_paused = true)]
    async fn searches_learn_their_own_calls_in_whatever_order_these_come() {
        let names = snapshot(&["convert_time", "get_sum"], true).names;
        let tools: Vec<Found> = names.for_model().take(2).cloned().collect();
        let [time, sum] = &tools[..] else { panic!("two tools") };
        let searches = remembering();
        searches.searched(ONE, "convert time", [time].into_iter());
        searches.searched(ONE, "add numbers", [sum].into_iter());
        call(&searches, ONE, sum);
        call(&searches, ONE, time);
        let both = [("get_sum", "add number"), ("convert_time", "convert time")];
        let both = both.map(|(tool, all)| (tool.to_owned(), words(all)));
        assert_eq!(learned(&searches), both);
        searches.searched(ONE, "what hour", [time].into_iter());
        searches.searched(ONE, "total", [sum].into_iter());
        tokio::time::advance(JUST_BEFORE + Duration::from_secs(1)).await;
        call(&searches, ONE, sum);
        call(&searches, ONE, time);
        assert!(!learned(&searches)[1].1.contains(&"hour".to_owned()), "long after a later search");
    }

    #[tokio::test(start_paused = true)]
    async fn searches_are_not_remembered_if_the_user_does_not_want_it() {
        let names = snapshot(&["a"], true).names;
        let a = names.for_model().next().unwrap().clone();
        let searches = RememberedSearches::default();
        searches.begin(None);
        searches.searched(ONE, "find homestays", [&a].into_iter());
        assert!(!searches.awaits(ONE, &a.target.server, &a.target.tool));
        call(&searches, ONE, &a);
        assert!(learned(&searches).is_empty() && searches.take_unsaved().is_empty());
        let many = remembering();
        (0..1000).for_each(|_| many.searched(ONE, "x", [&a].into_iter()));
        assert_eq!(many.lock().waiting.len(), MOST_WAITING);
    }
}
