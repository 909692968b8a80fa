//! The index: the tools that contain a term, and the scores that it gives them.

use std::{
    borrow::Cow,
    iter,
    sync::{Arc, OnceLock},
};

use super::{
    dictionary::{Dictionary, TermId, number},
    document::{FIELDS, Field},
    embeddings::Embedding,
    postings::{Posting, TermPostings},
    segment::Segment,
    spelling::{Doubt, Spelling, Words},
};

/// A term that has more than this share of a name counts as all of it.
const WHOLE: f32 = 0.99;
/// How many tools with a term are checked for other words of the query, and for how many of those.
const BESIDE: usize = 64;
const SAID: usize = 16;
/// How soon more of the same word stops counting.
const SATURATION: f32 = 1.2;

/// Tools by term, in segments, and what depends on all of them.
#[derive(Debug, Default)]
pub(super) struct Index {
    dictionary: Arc<Dictionary>,
    segments: Vec<PlacedSegment>,
    /// How many tools have each term.
    with: Vec<u32>,
    rarity: Vec<f32>,
    tools: Vec<ToolWeights>,
    /// For each term that a query had: its entries in all segments, with their scores.
    postings: Vec<OnceLock<Box<TermPostings>>>,
    /// Made when a query first has an unknown word.
    spelling: OnceLock<Spelling>,
}

#[derive(Debug)]
struct PlacedSegment {
    /// The number of its first tool.
    start: u32,
    segment: Arc<Segment>,
}

/// The weights of the words of one tool.
#[derive(Debug)]
struct ToolWeights {
    fields: [f32; FIELDS],
    /// The rarity of all terms in its name, and in that of its server.
    name: f32,
    server: f32,
}

impl Index {
    /// `segments` has those of the tools in their order; their terms are those of the dictionary.
    pub(super) fn new(dictionary: Arc<Dictionary>, segments: Vec<Arc<Segment>>) -> Self {
        let mut with = vec![0u32; dictionary.len()];
        for segment in &segments {
            segment.each_term(|term, count| with[term as usize] += count);
        }
        let count = number(segments.iter().map(|segment| segment.len()).sum());
        let rarity: Vec<f32> = with.iter().map(|with| self::rarity(count, *with)).collect();
        let average = average_lengths(&segments);
        let sum = |terms: &[TermId]| terms.iter().fold(0.0, |sum, term| sum + rarity[*term as usize]);
        let weigh = |segment: &Arc<Segment>, at: usize| ToolWeights {
            fields: weights(&segment.lengths[at], &average),
            name: sum(segment.names.of(at)),
            server: sum(segment.servers.of(at)),
        };
        let tools = segments.iter().flat_map(|segment| (0..segment.len()).map(move |at| (segment, at)));
        let tools = tools.map(|(segment, at)| weigh(segment, at)).collect();
        let mut start = 0;
        let place = |segment: Arc<Segment>| {
            let placed = PlacedSegment { start, segment };
            start += number(placed.segment.len());
            placed
        };
        let segments = segments.into_iter().map(place).collect();
        let postings = iter::repeat_with(OnceLock::new).take(with.len()).collect();
        Self { dictionary, segments, with, rarity, tools, postings, spelling: OnceLock::new() }
    }

    pub(super) fn dictionary(&self) -> &Arc<Dictionary> {
        &self.dictionary
    }

    /// How many tools there are.
    pub(super) fn len(&self) -> usize {
        self.tools.len()
    }

    pub(super) fn count(&self) -> u32 {
        number(self.len())
    }

    /// The term of a word, if some tool has it.
    pub(super) fn term(&self, word: &str) -> Option<TermId> {
        self.dictionary.term(word).filter(|term| self.is_used(*term))
    }

    /// The stem that stands for a word in the index; `None` for a word that says nothing.
    pub(super) fn stem<'a>(&self, word: &'a str) -> Option<Cow<'a, str>> {
        self.dictionary.stem(word)
    }

    /// The words that were probably meant by a word that no tool has. `said`: other terms of the same query.
    pub(super) fn meant(&self, word: &str, doubt: Doubt, said: &[TermId]) -> Option<Vec<String>> {
        let spelling = self.spelling.get_or_init(|| Spelling::new(|found| self.each_word(found)));
        spelling.meant(word, doubt, &Context { index: self, said: &said[..said.len().min(SAID)] })
    }

    /// The term of a word that stands in some tool in exactly this spelling.
    pub(super) fn exact(&self, word: &str) -> Option<TermId> {
        self.dictionary.exact(word).filter(|term| self.is_used(*term))
    }

    fn is_used(&self, term: TermId) -> bool {
        self.with[term as usize] > 0
    }

    pub(super) fn is_outdated(&self) -> bool {
        let unused = self.with.iter().filter(|with| **with == 0).count();
        unused > self.with.len() / 2
    }

    /// Whether a word is too common to search for.
    pub(super) fn is_little(&self, word: &str) -> bool {
        self.dictionary.is_little(word)
    }

    /// All words that stand in some tool, with their terms.
    pub(super) fn each_word(&self, mut found: impl FnMut(&str, TermId)) {
        self.dictionary.each_word(|word, term| {
            if self.is_used(term) {
                found(word, term);
            }
        });
    }

    /// A term as text: slow, for explanations.
    pub(super) fn spelling(&self, term: TermId) -> &str {
        self.dictionary.spelling(term)
    }

    /// The weight of a term: the fewer tools have it, the greater.
    pub(super) fn rarity(&self, term: TermId) -> f32 {
        self.rarity[term as usize]
    }

    /// The weight of a term that no tool has.
    pub(super) fn rarest(&self) -> f32 {
        rarity(self.count(), 0)
    }

    /// The weight of a word without its ending, which may stand in no tool.
    pub(super) fn rarity_of(&self, stem: &str) -> f32 {
        let term = self.dictionary.of_stem(stem).filter(|term| self.is_used(*term));
        term.map_or_else(|| self.rarest(), |term| self.rarity(term))
    }

    /// The tools that have this name, written as one word, and whose server has these terms in its own.
    pub(super) fn tools_named(&self, server: &[TermId], name: &str) -> Vec<u32> {
        let Some(term) = self.exact(name) else { return Vec::new() };
        let names = self.postings(term).names(&(0..u32::MAX)).iter();
        let whole = names.filter(|name| name.value > WHOLE || self.is_joined_name(name.tool, term));
        let tools = whole.map(|name| name.tool);
        tools.filter(|tool| server.iter().all(|term| self.server(*tool).contains(term))).collect()
    }

    /// Whether a term is the last one of a name with several: the one that joins its parts.
    fn is_joined_name(&self, tool: u32, term: TermId) -> bool {
        let PlacedSegment { start, segment } = self.segment_of(tool);
        let terms = segment.names.of((tool - start) as usize);
        terms.len() > 2 && terms.last() == Some(&term)
    }

    /// The tools that have a term.
    pub(super) fn postings(&self, term: TermId) -> &TermPostings {
        self.postings[term as usize].get_or_init(|| Box::new(self.made_postings(term)))
    }

    fn made_postings(&self, term: TermId) -> TermPostings {
        let rarity = self.rarity(term);
        let mut scores = Vec::with_capacity(self.with[term as usize] as usize);
        let (mut names, mut servers) = (Vec::new(), Vec::new());
        let share = |tool, count: u16, whole: f32| Posting {
            tool,
            value: f32::from(count) * rarity / whole.max(f32::MIN_POSITIVE),
        };
        for PlacedSegment { start, segment } in &self.segments {
            segment.each(term, |at, counts| {
                let tool = start + at;
                let weights = &self.tools[tool as usize];
                let each = counts.iter().zip(&weights.fields);
                let count: f32 = each.map(|(count, weight)| f32::from(*count) * weight).sum();
                scores.push(Posting { tool, value: rarity * count / (SATURATION + count) });
                // Most terms stand in no name: they need no division.
                let of_name = Some(counts[Field::Name as usize]).filter(|count| *count > 0);
                names.extend(of_name.map(|count| share(tool, count, weights.name)));
                let of_server = Some(counts[Field::Server as usize]).filter(|count| *count > 0);
                servers.extend(of_server.map(|count| share(tool, count, weights.server)));
            });
        }
        TermPostings::new(scores, &names, &servers)
    }

    /// How many tools have a term.
    pub(super) fn count_with(&self, term: TermId) -> usize {
        self.with[term as usize] as usize
    }

    pub(super) fn has(&self, tool: u32, term: TermId) -> bool {
        !self.postings(term).scores(&(tool..tool + 1)).is_empty()
    }

    pub(super) fn has_in_name(&self, tool: u32, term: TermId) -> bool {
        !self.postings(term).names(&(tool..tool + 1)).is_empty()
    }

    /// The cosine of the angle between a tool and something else; `None` without a table.
    pub(super) fn cosine(&self, tool: u32, other: &Embedding) -> Option<f32> {
        self.cosines(other)(tool)
    }

    /// The same for many tools, one after the other: neighbours are mostly in the same segment.
    pub(super) fn cosines<'a>(&'a self, other: &'a Embedding) -> impl FnMut(u32) -> Option<f32> {
        let mut here: Option<&PlacedSegment> = None;
        move |tool| {
            let has = |placed: &&PlacedSegment| {
                tool.checked_sub(placed.start).is_some_and(|at| (at as usize) < placed.segment.len())
            };
            let placed = here.filter(has).unwrap_or_else(|| self.segment_of(tool));
            here = Some(placed);
            let embeddings = placed.segment.embeddings.as_ref()?;
            Some(embeddings.cosine((tool - placed.start) as usize, other))
        }
    }

    /// The first tool of the same server with the same name.
    pub(super) fn twin(&self, tool: u32) -> u32 {
        let PlacedSegment { start, segment } = self.segment_of(tool);
        start + segment.twins[(tool - start) as usize]
    }

    /// Whether two tools are copies: the same name, and equally many words in every field but the server's.
    pub(super) fn are_copies(&self, one: u32, other: u32) -> bool {
        let [one, other] = [one, other].map(|tool| {
            let PlacedSegment { start, segment } = self.segment_of(tool);
            let at = (tool - start) as usize;
            (segment.lengths[at], segment.names.of(at))
        });
        let is_same = |field: &Field| one.0[*field as usize] == other.0[*field as usize];
        one.1 == other.1 && Field::ALL.iter().filter(|field| **field != Field::Server).all(is_same)
    }

    /// The terms in the name of a tool's server.
    pub(super) fn server(&self, tool: u32) -> &[TermId] {
        let PlacedSegment { start, segment } = self.segment_of(tool);
        segment.servers.of((tool - start) as usize)
    }

    fn segment_of(&self, tool: u32) -> &PlacedSegment {
        let behind = self.segments.partition_point(|placed| placed.start <= tool);
        &self.segments[behind - 1]
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let numbers = self.with.capacity() * size_of::<u32>() + self.rarity.capacity() * size_of::<f32>();
        let segments: usize = self.segments.iter().map(|placed| placed.segment.heap_bytes()).sum();
        let made: usize = self.postings.iter().filter_map(OnceLock::get).map(|made| made.heap_bytes()).sum();
        let places = self.postings.capacity() * size_of::<OnceLock<Box<TermPostings>>>();
        let tools = self.tools.capacity() * size_of::<ToolWeights>();
        let spelling = self.spelling.get().map_or(0, Spelling::heap_bytes);
        self.dictionary.heap_bytes() + numbers + segments + tools + places + made + spelling
    }
}

/// A query, as the context in which its words are corrected.
struct Context<'a> {
    index: &'a Index,
    /// The terms of its other words.
    said: &'a [TermId],
}

impl Words for Context<'_> {
    fn exact(&self, word: &str) -> Option<TermId> {
        self.index.exact(word)
    }

    fn count(&self, term: TermId) -> usize {
        self.index.count_with(term)
    }

    /// The tool must have the term in its name or in that of its server.
    fn is_beside(&self, term: TermId) -> bool {
        let postings = self.index.postings(term);
        let all = 0..u32::MAX;
        let [names, servers] = [postings.names(&all), postings.servers(&all)];
        let mut tools = names.iter().take(BESIDE).chain(servers.iter().take(BESIDE));
        tools.any(|tool| self.said.iter().any(|said| *said != term && self.index.has(tool.tool, *said)))
    }
}

fn average_lengths(segments: &[Arc<Segment>]) -> [f32; FIELDS] {
    let count: usize = segments.iter().map(|segment| segment.len()).sum();
    let mut average = [0.0; FIELDS];
    for (field, average) in average.iter_mut().enumerate() {
        let lengths = segments.iter().flat_map(|segment| &segment.lengths);
        let sum: u64 = lengths.map(|lengths| u64::from(lengths[field])).sum();
        *average = (float(sum) / float(count as u64)).max(1.0);
    }
    average
}

/// The weight of a word in each field of a tool: it depends on the field, and is less in a longer text.
fn weights(lengths: &[u32; FIELDS], average: &[f32; FIELDS]) -> [f32; FIELDS] {
    Field::ALL.map(|field| {
        let at = field as usize;
        let length = float(u64::from(lengths[at])) / average[at];
        let against = field.length_counts();
        field.weight() / (1.0 - against + against * length)
    })
}

/// The weight of a term that `with` of all `tools` have.
fn rarity(tools: u32, with: u32) -> f32 {
    let (all, with) = (float(u64::from(tools)), float(u64::from(with)));
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

#[expect(clippy::cast_precision_loss, reason = "counts of words and tools")]
fn float(count: u64) -> f32 {
    count as f32
}
