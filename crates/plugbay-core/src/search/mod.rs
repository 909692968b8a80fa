//! Search: finds tools by words, weighted by the field they stand in, and by embeddings from a small table.

mod choices;
mod dictionary;
mod document;
mod embeddings;
mod everyday;
mod explain;
mod index;
mod judge;
mod lexicon;
pub mod memory;
mod postings;
mod query;
pub mod ranking;
mod reader;
pub mod reply;
mod scratch;
mod segment;
mod siblings;
mod spelling;
mod synonyms;
mod typed;
mod words;

use std::{ops::Range, sync::Arc};

use rustc_hash::{FxHashMap, FxHashSet};

pub use document::Field;
pub use embeddings::EmbeddingTable;
pub use explain::{Explanation, Match, Relation};
pub use segment::{INDEX_VERSION, Segment, StoredIndex};

use self::{
    dictionary::{Dictionary, TermId},
    embeddings::{Embedding, Embeddings, EmbeddingsBuilder},
    index::Index,
    judge::ANSWERED,
    query::{Part, Query, WeightedTerm},
    scratch::Scratch,
    synonyms::Synonyms,
};
use crate::catalog::Tool;

/// The weight of a synonym, where a word of the query counts one.
const SYNONYM: f32 = 0.4;
/// The share by which a score grows if the query covers the tool's whole name.
const COVERED_NAME: f32 = 0.5;
/// The same for the whole name of its server: a user who names a server wants its tools.
const COVERED_SERVER: f32 = 0.2;
/// The share of embeddings in a score, in a catalog of up to `EMBEDDINGS_TOOLS` tools. In a larger one it is
/// less: more of its tools are near the query, while words still tell them apart.
const EMBEDDINGS_SHARE: f32 = 0.45;
const EMBEDDINGS_TOOLS: f32 = 4096.0;
const EMBEDDINGS_FADE: f32 = 0.4;
/// Words are measured against the best tool, and a little against a perfect one: where even the best
/// matches little of the query, embeddings count for more.
const PERFECTION: f32 = 0.25;
/// How many of the tools that are best by words are compared by embeddings; in a small catalog, all are.
const RESCORED: usize = 200;
const SMALL_CATALOG: usize = 1024;
/// The least cosine of a tool that shares no word with the query: `FAINT` if other tools do, else `STRONG`.
const FAINT: f32 = 0.25;
const STRONG: f32 = 0.4;
const CANDIDATES: usize = 50;
/// The weight of a remembered word, and how soon more uses of it stop counting.
const REMEMBERED: f32 = 0.6;
const REMEMBERED_SATURATION: f32 = 1.2;
/// If at least this share of a query's words once led to a call of one of its first hits, this hit fits.
const VOUCHED: f32 = 0.75;
/// How many words of a server's name may stand before that of a tool, and in how many bytes of a query.
const NAME_WORDS: usize = 4;
const LONGEST_NAME: usize = 256;
/// How many scores are added up for one part of a query. The terms that most tools have, and so tell the
/// least, are left out if they do not fit.
const SCORES: usize = 1 << 20;

/// A searchable catalog. A tool's number is its place in the order in which tools were given.
#[derive(Debug)]
pub struct Engine {
    index: Index,
    synonyms: Synonyms,
    embeddings: Option<Embeddings>,
}

/// Neighbouring tools, each with the name of its server.
pub enum ToolGroup<'a> {
    /// Tools with their segment of the engine before.
    Kept(Arc<Segment>),
    /// Tools with the index that was saved with them.
    Stored(Box<StoredIndex>),
    New(Vec<(&'a str, &'a Tool)>),
}

impl ToolGroup<'_> {
    /// Converts stored tools to the terms of a dictionary, which also learns theirs.
    fn place(&mut self, dictionary: &mut Dictionary) {
        *self = match std::mem::replace(self, Self::New(Vec::new())) {
            Self::Stored(stored) => Self::Kept(Arc::new(stored.placed(dictionary))),
            other => other,
        };
    }

    fn new_tools(&self) -> Option<segment::Group<'_>> {
        match self {
            Self::New(tools) => Some(tools),
            Self::Kept(_) | Self::Stored(_) => None,
        }
    }
}

/// Runs two jobs, at the same time if it can.
pub type Join = fn(&mut (dyn FnMut() + Send), &mut (dyn FnMut() + Send));

/// Runs two jobs, one after the other.
pub fn one_after_the_other(first: &mut (dyn FnMut() + Send), second: &mut (dyn FnMut() + Send)) {
    first();
    second();
}

/// About how many tools are indexed as one group; a server with at least as many is a group of its own. So a
/// change of one server costs little, and a search does not have too many segments to read.
pub const GROUP: usize = 2048;

/// A remembered word of a query, and a tool that was called after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    pub stem: String,
    pub tool: u32,
    /// How often it was called so; the latest uses count most.
    pub weight: f32,
}

/// A tool that a search found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub tool: u32,
    pub score: f32,
    pub verdict: Verdict,
}

/// How well the hits of a search fit its query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// This is the first hit, and clearly the right one.
    Clear,
    Likely,
    /// No hit fits well.
    Poor,
}

impl Hit {
    fn new(tool: u32, score: f32) -> Self {
        Self { tool, score, verdict: Verdict::Likely }
    }

    pub fn is_clear(&self) -> bool {
        self.verdict == Verdict::Clear
    }

    pub fn is_poor(&self) -> bool {
        self.verdict == Verdict::Poor
    }
}

impl Engine {
    /// Builds the index. Each tool comes with the name of its server.
    pub fn build(tools: &[(&str, &Tool)], table: Option<Arc<EmbeddingTable>>) -> Self {
        let mut groups: Vec<Vec<(&str, &Tool)>> = Vec::new();
        for of_servers in whole_servers(tools) {
            match groups.last_mut().filter(|group| group.len() < GROUP && of_servers.len() < GROUP) {
                Some(group) => group.extend(of_servers),
                None => groups.push(of_servers.to_vec()),
            }
        }
        Self::of_groups(groups.into_iter().map(ToolGroup::New).collect(), None, table, one_after_the_other).0
    }

    /// Builds the index, with new segments only for groups that are new: those that are kept come from the
    /// engine before. Returns a segment for each group.
    pub fn of_groups(
        mut groups: Vec<ToolGroup<'_>>,
        before: Option<&Self>,
        table: Option<Arc<EmbeddingTable>>,
        join: Join,
    ) -> (Self, Vec<Arc<Segment>>) {
        let mut dictionary = before.map(|before| Arc::clone(before.index.dictionary())).unwrap_or_default();
        let mut built = Vec::new();
        if groups.iter().any(|group| !matches!(group, ToolGroup::Kept(_))) {
            let mut grown = Dictionary::clone(&dictionary);
            for group in &mut groups {
                group.place(&mut grown);
            }
            let new: Vec<_> = groups.iter().filter_map(ToolGroup::new_tools).collect();
            let builder = || table.clone().map(EmbeddingsBuilder::new);
            let (grown, segments) = segment::build_all(grown, &new, builder, join);
            (dictionary, built) = (Arc::new(grown), segments);
        }
        let mut built = built.into_iter();
        let segment = |group: ToolGroup<'_>| match group {
            ToolGroup::Kept(segment) => Some(segment),
            ToolGroup::Stored(_) | ToolGroup::New(_) => built.next().map(Arc::new),
        };
        let segments: Vec<Arc<Segment>> = groups.into_iter().filter_map(segment).collect();
        let index = Index::new(dictionary, segments.clone());
        let synonyms = Synonyms::new(&index);
        everyday::prepare();
        let embeddings = table.map(|table| Embeddings::new(table, &index));
        (Self { index, synonyms, embeddings }, segments)
    }

    /// The best `limit` tools, best first; equal ones in the order of the catalog. Only tools `within` the
    /// range are considered. A search among all tools finds none if even the best ones hardly fit.
    pub fn search(&self, query: &str, limit: usize, within: Option<Range<u32>>) -> Vec<Hit> {
        self.search_recalling(query, limit, within, &[], None)
    }

    /// The same with what is remembered of the query's words, unless the query is the name of a tool; `exposed`
    /// is the tool whose exposed name is the query.
    pub fn search_recalling(
        &self,
        query: &str,
        limit: usize,
        within: Option<Range<u32>>,
        recalled: &[Recalled],
        exposed: Option<u32>,
    ) -> Vec<Hit> {
        let mut named = exposed.map_or_else(|| self.tools_named(query), |tool| vec![tool]);
        named.retain(|tool| within.as_ref().is_none_or(|within| within.contains(tool)));
        let recalled = if named.is_empty() { recalled } else { &[] };
        let of_all = within.is_none();
        let read = self.read(query);
        let mut hits = self.best(&read, limit.max(CANDIDATES), within, recalled);
        let is_vain = self.judge(&read, &mut hits);
        self.vouch(&read, &called_after(query, recalled), &mut hits);
        if of_all && is_vain {
            hits.retain(|hit| !hit.is_poor());
        }
        named_first(&named, &mut hits);
        hits.truncate(limit);
        hits
    }

    /// The best `limit` tools, even if they hardly fit: for a model that may know better.
    pub fn candidates(&self, query: &str, limit: usize, within: Option<Range<u32>>) -> Vec<Hit> {
        let mut hits = self.best(&self.read(query), limit.max(CANDIDATES), within, &[]);
        hits.truncate(limit);
        hits
    }

    fn best(
        &self,
        query: &Query,
        wanted: usize,
        within: Option<Range<u32>>,
        recalled: &[Recalled],
    ) -> Vec<Hit> {
        let mut scratch = Scratch::new(self.index.len());
        let within = within.unwrap_or(0..u32::MAX);
        for word in
            recalled.iter().filter(|word| within.contains(&word.tool) && word.tool < self.index.count())
        {
            scratch.add(word.tool, self.remembered(word));
        }
        let mut hits = self.rank(&query.whole, &within, &mut scratch);
        if !query.sentences.is_empty() {
            let mut scores: FxHashMap<u32, f32> = FxHashMap::default();
            for part in &query.sentences {
                let mut best = self.rank(part, &within, &mut scratch);
                keep_best(&mut best, wanted);
                for hit in best {
                    let best = scores.entry(hit.tool).or_default();
                    *best = best.max(hit.score);
                }
            }
            for hit in hits {
                *scores.entry(hit.tool).or_default() += hit.score;
            }
            hits = scores.into_iter().map(|(tool, score)| Hit::new(tool, score)).collect();
        }
        keep_best(&mut hits, wanted);
        hits.retain(|hit| hit.score > 0.0);
        hits.sort_unstable_by(best_first);
        self.one_of_each_first(&mut hits);
        hits
    }

    /// The score that a remembered word adds to a tool, as if it stood in a weak field.
    fn remembered(&self, Recalled { stem, weight, .. }: &Recalled) -> f32 {
        let count = REMEMBERED * weight;
        self.index.rarity_of(stem) * count / (REMEMBERED_SATURATION + count)
    }

    /// The tools whose name is the whole query: those with the name of their server first, then those without.
    /// Of tools that a server calls the same, one.
    fn tools_named(&self, query: &str) -> Vec<u32> {
        let mut typed: Vec<String> = Vec::new();
        words::each(&query[..query.floor_char_boundary(LONGEST_NAME)], |word, origin| {
            if origin == words::Origin::Written {
                typed.push(word.to_owned());
            }
        });
        let named = |start: usize| {
            let (server, name) = typed.split_at(start);
            let server: Option<Vec<TermId>> = server.iter().map(|word| self.index.term(word)).collect();
            server.map(|server| self.index.tools_named(&server, &name.concat())).unwrap_or_default()
        };
        let mut all = Vec::new();
        for tool in (0..typed.len().min(NAME_WORDS + 1)).rev().flat_map(named) {
            let is_twin = |other: &u32| self.index.twin(*other) == self.index.twin(tool);
            if !all.iter().any(is_twin) {
                all.push(tool);
            }
        }
        all
    }

    fn read(&self, query: &str) -> Query {
        Query::read(query, &self.index, &self.synonyms, self.embeddings.as_ref())
    }

    /// Those of the best `limit` tools that the query means, whatever the others are: each has enough of the
    /// query's words, and is near it.
    pub fn search_meant(&self, query: &str, limit: usize) -> Vec<Hit> {
        let hits = self.search(query, limit, None);
        let query = self.read(query);
        let is_meant =
            |hit: &Hit| self.answered(&query, hit.tool) >= ANSWERED && self.is_near(&query, hit.tool);
        hits.into_iter().filter(is_meant).collect()
    }

    /// Whether most of the words in here no longer stand in any tool: then no part of it should be kept.
    pub fn is_outdated(&self) -> bool {
        self.index.is_outdated()
    }

    /// The memory that this holds, beside the tools themselves and the table.
    pub fn heap_bytes(&self) -> usize {
        self.index.heap_bytes() + self.embeddings.as_ref().map_or(0, Embeddings::heap_bytes)
    }

    /// The best tools for one part of a query, in no order.
    fn rank(&self, part: &Part, within: &Range<u32>, scratch: &mut Scratch) -> Vec<Hit> {
        let has_recalled = scratch.has_scores();
        let mut hits = self.by_words(&part.terms, within, scratch);
        if let (Some(_), Some(embedding)) = (&self.embeddings, &part.embedding) {
            self.rescore(&mut hits, part, within, (embedding, has_recalled));
        }
        keep_best(&mut hits, RESCORED);
        hits
    }

    fn by_words(&self, terms: &[WeightedTerm], within: &Range<u32>, scratch: &mut Scratch) -> Vec<Hit> {
        let said: Vec<TermId> = terms.iter().filter(|term| term.is_said()).map(|term| term.id).collect();
        let related = self.synonyms.of(&said);
        let related = related.into_iter().map(|id| (id, SYNONYM));
        let mut all: Vec<(TermId, f32)> =
            terms.iter().map(|term| (term.id, term.weight)).chain(related).collect();
        let at_most = |(id, _): &(TermId, f32)| self.index.count_with(*id);
        let count = |id: TermId| self.index.postings(id).scores(within).len();
        if all.iter().map(at_most).sum::<usize>() > SCORES
            && all.iter().map(|(id, _)| count(*id)).sum::<usize>() > SCORES
        {
            let mut room = SCORES;
            all.sort_by_key(|(id, _)| count(*id));
            all.retain(|(id, _)| {
                room = room.saturating_sub(count(*id));
                room > 0
            });
        }
        for (id, weight) in all {
            for posting in self.index.postings(id).scores(within) {
                scratch.add(posting.tool, weight * posting.value);
            }
        }
        for id in said {
            let postings = self.index.postings(id);
            for posting in postings.names(within) {
                scratch.covered[posting.tool as usize] += COVERED_NAME * posting.value;
            }
            for posting in postings.servers(within) {
                scratch.covered[posting.tool as usize] += COVERED_SERVER * posting.value;
            }
        }
        scratch.take()
    }

    /// Adds embeddings to scores. `spoken`: hits have a word of the query, or one that is remembered of it.
    fn rescore(
        &self,
        hits: &mut Vec<Hit>,
        part: &Part,
        within: &Range<u32>,
        (embedding, spoken): (&Embedding, bool),
    ) {
        let spoken = !hits.is_empty() && (spoken || part.terms.iter().any(WeightedTerm::is_said));
        let enough = if spoken { FAINT } else { STRONG };
        let within = within.start..within.end.min(self.index.count());
        if within.len() <= SMALL_CATALOG {
            let mut scores = vec![0.0; within.len()];
            for hit in hits.iter() {
                scores[(hit.tool - within.start) as usize] = hit.score;
            }
            *hits = within.zip(scores).map(|(tool, score)| Hit::new(tool, score)).collect();
        } else {
            keep_best(hits, RESCORED);
        }
        let best = hits.iter().map(|hit| hit.score).fold(f32::MIN_POSITIVE, f32::max);
        let perfect: f32 = part.terms.iter().map(|term| term.weight * self.index.rarity(term.id)).sum();
        let whole = best.powf(1.0 - PERFECTION) * perfect.max(f32::MIN_POSITIVE).powf(PERFECTION);
        let share = embeddings_share(self.index.len());
        let mut cosine = self.index.cosines(embedding);
        hits.retain_mut(|hit| {
            let cosine = cosine(hit.tool).unwrap_or_default().max(0.0);
            let named = spoken && hit.score > 0.0;
            hit.score = (1.0 - share) * hit.score / whole + share * cosine;
            named || cosine >= enough
        });
    }
}

/// Puts the tools that the query names before all others. One alone is clearly right.
fn named_first(named: &[u32], hits: &mut Vec<Hit>) {
    if named.is_empty() {
        return;
    }
    let best = hits.iter().map(|hit| hit.score).reduce(f32::max).unwrap_or(1.0);
    hits.retain(|hit| !named.contains(&hit.tool));
    if let Some(first) = hits.first_mut().filter(|first| first.is_clear()) {
        first.verdict = Verdict::Likely;
    }
    let verdict = if named.len() == 1 { Verdict::Clear } else { Verdict::Likely };
    hits.splice(0..0, named.iter().map(|tool| Hit { tool: *tool, score: best, verdict }));
}

/// The tools that were called after queries with nearly all words of this one.
fn called_after(query: &str, recalled: &[Recalled]) -> FxHashSet<u32> {
    let mut weights: FxHashMap<u32, f32> = FxHashMap::default();
    for word in recalled {
        *weights.entry(word.tool).or_default() += word.weight.min(1.0);
    }
    let words = if weights.is_empty() { 0 } else { memory::remembered_words(query).len() };
    #[expect(clippy::cast_precision_loss, reason = "a few words")]
    let enough = VOUCHED * words as f32;
    weights.into_iter().filter(|(_, weight)| *weight >= enough).map(|(tool, _)| tool).collect()
}

/// Cuts tools into the smallest parts such that each has all tools of its servers.
fn whole_servers<'a, 't>(tools: &'a [(&'t str, &'t Tool)]) -> Vec<&'a [(&'t str, &'t Tool)]> {
    let last: FxHashMap<&str, usize> =
        tools.iter().enumerate().map(|(at, (server, _))| (*server, at)).collect();
    let (mut parts, mut start, mut end) = (Vec::new(), 0, 0);
    for (at, (server, _)) in tools.iter().enumerate() {
        end = end.max(last[server]);
        if at == end {
            parts.push(&tools[start..=at]);
            start = at + 1;
        }
    }
    parts
}

fn embeddings_share(tools: usize) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "a number of tools")]
    let tools = (tools as f32).max(EMBEDDINGS_TOOLS);
    EMBEDDINGS_SHARE * (EMBEDDINGS_TOOLS / tools).powf(EMBEDDINGS_FADE)
}

/// Keeps the best `limit` hits, in no order.
fn keep_best(hits: &mut Vec<Hit>, limit: usize) {
    if limit > 0 && hits.len() > limit {
        hits.select_nth_unstable_by(limit - 1, best_first);
    }
    hits.truncate(limit);
}

fn best_first(a: &Hit, b: &Hit) -> std::cmp::Ordering {
    b.score.total_cmp(&a.score).then(a.tool.cmp(&b.tool))
}

#[cfg(test)]
mod tests;
