//! A part of the index: the words of some neighbouring tools. It stays as it is while other tools change.

mod stored;

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{
    Join,
    dictionary::{Dictionary, TermId, Word, number},
    document::{FIELDS, Field, Text, each_text},
    embeddings::{EmbeddingList, EmbeddingsBuilder},
    words::{self, Origin},
};
use crate::catalog::Tool;

pub use self::stored::{INDEX_VERSION, StoredIndex};

/// A word of a tool, with the field it stands in.
pub(super) type WordInField<'a> = (Field, &'a str, Word, Origin);

/// How many words one server may add to a dictionary: real ones have some thousands. A search does
/// not find others.
const WORDS_OF_A_SERVER: usize = 1 << 17;

/// How often a term stands in each field of a tool.
pub(super) type FieldCounts = [u16; FIELDS];

/// The tools that contain each term, and how often. Tools are numbered from zero.
#[derive(Debug)]
pub struct Segment {
    /// The terms that stand in some tool, in order.
    terms: Vec<TermId>,
    /// For each term, how many tools have it.
    with: Vec<u32>,
    /// For each term, where its entries begin; one more at the end.
    starts: Vec<u32>,
    /// For each tool that has the term: how far it is from the one before, and the term's counts.
    entries: Vec<u8>,
    /// How many terms each field of each tool has.
    pub(super) lengths: Vec<[u32; FIELDS]>,
    /// The terms in the name of each tool, and in that of its server.
    pub(super) names: TermLists,
    pub(super) servers: TermLists,
    /// For each tool, the first of the same server with the same name.
    pub(super) twins: Vec<u32>,
    /// The tools' embeddings, if there is a table.
    pub(super) embeddings: Option<EmbeddingList>,
}

/// A list of terms for each tool.
#[derive(Debug, Default)]
pub(super) struct TermLists {
    ends: Vec<u32>,
    terms: Vec<TermId>,
}

impl TermLists {
    fn finish_tool(&mut self) {
        self.ends.push(number(self.terms.len()));
    }

    pub(super) fn of(&self, tool: usize) -> &[TermId] {
        let start = tool.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.terms[start as usize..self.ends[tool] as usize]
    }

    fn heap_bytes(&self) -> usize {
        (self.ends.capacity() + self.terms.capacity()) * size_of::<u32>()
    }
}

/// The flag of an entry whose counts are one each.
const ONES: u8 = 1 << FIELDS;

/// For each set of fields, a count of one for each of them: most entries are read without a branch.
static ONE_EACH: [FieldCounts; 1 << FIELDS] = {
    let mut sets = [[0; FIELDS]; 1 << FIELDS];
    let mut set = 0;
    while set < sets.len() {
        let mut field = 0;
        while field < FIELDS {
            sets[set][field] = if set & (1 << field) == 0 { 0 } else { 1 };
            field += 1;
        }
        set += 1;
    }
    sets
};

impl Segment {
    pub(super) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Calls `found` with the tools that have a term, in their order, and with the counts of the term in their fields.
    pub(super) fn each(&self, term: TermId, mut found: impl FnMut(u32, &FieldCounts)) {
        let Ok(at) = self.terms.binary_search(&term) else { return };
        let mut entries = Entries(&self.entries[self.starts[at] as usize..self.starts[at + 1] as usize]);
        let (mut tool, all) = (0u32, number(self.len()));
        while let Some((distance, counts)) = entries.next_entry() {
            tool = tool.saturating_add(distance);
            // A stored segment may be damaged in spite of the checks.
            if tool >= all {
                return;
            }
            found(tool, &counts);
        }
    }

    /// Calls `found` with each term, and with how many tools have it.
    pub(super) fn each_term(&self, mut found: impl FnMut(TermId, u32)) {
        for (term, with) in self.terms.iter().zip(&self.with) {
            found(*term, *with);
        }
    }

    /// The same with other numbers for the terms.
    fn renumbered(mut self, terms: &[TermId]) -> Self {
        let here = |term: &TermId| terms[*term as usize];
        let mut order: Vec<(TermId, usize)> = self.terms.iter().map(here).zip(0..).collect();
        order.sort_unstable();
        let mut starts = Vec::with_capacity(self.starts.len());
        starts.push(0);
        let mut entries = Vec::with_capacity(self.entries.len());
        let with = order.iter().map(|(_, at)| self.with[*at]).collect();
        for (_, at) in &order {
            let range = self.starts[*at] as usize..self.starts[*at + 1] as usize;
            entries.extend_from_slice(&self.entries[range]);
            starts.push(number(entries.len()));
        }
        for lists in [&mut self.names, &mut self.servers] {
            lists.terms.iter_mut().for_each(|term| *term = here(term));
        }
        Self { terms: order.into_iter().map(|(term, _)| term).collect(), with, starts, entries, ..self }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let of_terms = self.terms.capacity() + self.with.capacity() + self.starts.capacity();
        let numbers = of_terms + self.twins.capacity();
        numbers * size_of::<u32>()
            + self.entries.capacity()
            + self.lengths.capacity() * size_of::<[u32; FIELDS]>()
            + self.names.heap_bytes()
            + self.servers.heap_bytes()
            + self.embeddings.as_ref().map_or(0, EmbeddingList::heap_bytes)
    }
}

/// Reads the entries of one term.
struct Entries<'a>(&'a [u8]);

impl Entries<'_> {
    #[inline]
    fn next_entry(&mut self) -> Option<(u32, FieldCounts)> {
        if self.0.is_empty() {
            return None;
        }
        let distance = self.number();
        let fields = self.byte();
        let mut counts = ONE_EACH[usize::from(fields & (ONES - 1))];
        if fields & ONES == 0 {
            for count in counts.iter_mut().filter(|count| **count > 0) {
                *count = u16::try_from(self.number()).unwrap_or(u16::MAX);
            }
        }
        Some((distance, counts))
    }

    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    /// A number with seven bits a byte, the lowest first.
    fn number(&mut self) -> u32 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u32::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift > 28 {
                return number;
            }
        }
    }
}

fn put_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn put_entry(out: &mut Vec<u8>, distance: u32, counts: &FieldCounts) {
    put_number(out, distance);
    let mut fields = if counts.iter().all(|count| *count <= 1) { ONES } else { 0 };
    for (field, _) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        fields |= 1 << field;
    }
    out.push(fields);
    if fields & ONES == 0 {
        counts.iter().filter(|count| **count > 0).for_each(|count| put_number(out, u32::from(*count)));
    }
}

/// The fields of a segment that are ordered by term.
struct ByTerm {
    terms: Vec<TermId>,
    with: Vec<u32>,
    starts: Vec<u32>,
    entries: Vec<u8>,
}

/// Makes segments, one after the other.
pub(super) struct SegmentBuilder<'a> {
    pub(super) dictionary: Dictionary,
    embeddings: Option<EmbeddingsBuilder>,
    cache: TermCache<'a>,
    /// The number of the next tool, over all segments.
    next: u32,
    /// For each term, the tool that had it last, and the place of its counts.
    last: Vec<(u32, u32)>,
    /// For each term, its place among those of the segment that is being made, if it is one of them.
    slots: Vec<u32>,
}

/// The terms of texts that many tools share, such as those of parameters: each is read and taken apart once.
#[derive(Default)]
struct TermCache<'a> {
    places: FxHashMap<Text<'a>, Range<usize>>,
    terms: Vec<TermId>,
}

const NOWHERE: u32 = u32::MAX;

impl<'a> SegmentBuilder<'a> {
    pub(super) fn new(dictionary: Dictionary, embeddings: Option<EmbeddingsBuilder>) -> Self {
        let cache = TermCache::default();
        Self { dictionary, embeddings, cache, next: 0, last: Vec::new(), slots: Vec::new() }
    }

    /// Makes a segment of these tools, each given with the name of its server.
    pub(super) fn build(&mut self, tools: &[(&'a str, &'a Tool)]) -> Segment {
        let mut names = TermLists::default();
        let mut servers = TermLists::default();
        let mut lengths = Vec::with_capacity(tools.len());
        let mut ends = Vec::with_capacity(tools.len());
        let mut counted: Vec<(TermId, FieldCounts)> = Vec::new();
        let mut before = None;
        for (server, tool) in tools {
            if before.replace(server) != Some(server) {
                self.dictionary.limit_new_words(WORDS_OF_A_SERVER);
            }
            let mut length = [0; FIELDS];
            let Self { dictionary, embeddings, cache, next, last, .. } = self;
            each_text(server, tool, &mut |field, text| {
                let mut count = |term: TermId| {
                    length[field as usize] += 1;
                    count_term(&mut counted, last, *next, field, term);
                    match field {
                        Field::Name => names.terms.push(term),
                        Field::Server => servers.terms.push(term),
                        _ => {}
                    }
                };
                if matches!(field, Field::Parameter | Field::Detail) {
                    return cache.terms(text, dictionary).iter().copied().for_each(count);
                }
                words::each(&text.searched(), |text, origin| {
                    let Some(word) = dictionary.intern(text) else { return };
                    if let Some(embeddings) = embeddings {
                        embeddings.add_word((field, text, word, origin));
                    }
                    word.term.into_iter().for_each(&mut count);
                });
            });
            lengths.push(length);
            ends.push(counted.len());
            names.finish_tool();
            servers.finish_tool();
            if let Some(embeddings) = &mut self.embeddings {
                embeddings.finish_tool();
            }
            self.next += 1;
        }
        let embeddings = self.embeddings.as_mut().map(EmbeddingsBuilder::take);
        let ByTerm { terms, with, starts, entries } = self.by_term(&counted, &ends);
        names.terms.shrink_to_fit();
        servers.terms.shrink_to_fit();
        Segment { terms, with, starts, entries, lengths, names, servers, twins: twins(tools), embeddings }
    }

    /// Reorders counts by term instead of by tool. It counts first, then fills: sorting would cost more.
    fn by_term(&mut self, counted: &[(TermId, FieldCounts)], ends: &[usize]) -> ByTerm {
        self.slots.resize(self.dictionary.len(), NOWHERE);
        let mut terms: Vec<TermId> = Vec::new();
        for (term, _) in counted {
            let slot = &mut self.slots[*term as usize];
            if *slot == NOWHERE {
                *slot = 0;
                terms.push(*term);
            }
        }
        terms.sort_unstable();
        for (slot, term) in (0..).zip(&terms) {
            self.slots[*term as usize] = slot;
        }
        let mut places = vec![0u32; terms.len() + 1];
        for (term, _) in counted {
            places[self.slots[*term as usize] as usize + 1] += 1;
        }
        for at in 1..places.len() {
            places[at] += places[at - 1];
        }
        let mut next = places.clone();
        // The tool and the place of its counts, for one term after the other.
        let mut by_term = vec![(0u32, 0u32); counted.len()];
        let mut start = 0;
        for (tool, end) in (0..).zip(ends) {
            for (at, (term, _)) in (number(start)..).zip(&counted[start..*end]) {
                let place = &mut next[self.slots[*term as usize] as usize];
                by_term[*place as usize] = (tool, at);
                *place += 1;
            }
            start = *end;
        }
        let (mut starts, mut entries) = (Vec::with_capacity(terms.len() + 1), Vec::new());
        starts.push(0);
        for range in places.windows(2) {
            let mut before = 0;
            for (tool, at) in &by_term[range[0] as usize..range[1] as usize] {
                put_entry(&mut entries, tool - before, &counted[*at as usize].1);
                before = *tool;
            }
            starts.push(number(entries.len()));
        }
        for term in &terms {
            self.slots[*term as usize] = NOWHERE;
        }
        entries.shrink_to_fit();
        terms.shrink_to_fit();
        let with = places.windows(2).map(|range| range[1] - range[0]).collect();
        ByTerm { terms, with, starts, entries }
    }
}

impl<'a> TermCache<'a> {
    fn terms(&mut self, text: Text<'a>, dictionary: &mut Dictionary) -> &[TermId] {
        if let Some(place) = self.places.get(&text) {
            return &self.terms[place.clone()];
        }
        let start = self.terms.len();
        words::each(&text.searched(), |said, _| {
            self.terms.extend(dictionary.intern(said).and_then(|word| word.term));
        });
        self.places.insert(text, start..self.terms.len());
        &self.terms[start..]
    }
}

fn count_term(
    counted: &mut Vec<(TermId, FieldCounts)>,
    last: &mut Vec<(u32, u32)>,
    tool: u32,
    field: Field,
    term: TermId,
) {
    if last.len() <= term as usize {
        last.resize(term as usize + 1, (NOWHERE, 0));
    }
    let last = &mut last[term as usize];
    if last.0 != tool {
        *last = (tool, number(counted.len()));
        counted.push((term, [0; FIELDS]));
    }
    let count = &mut counted[last.1 as usize].1[field as usize];
    *count = count.saturating_add(1);
}

fn twins(tools: &[(&str, &Tool)]) -> Vec<u32> {
    let mut first: FxHashMap<(&str, String), u32> = FxHashMap::default();
    let numbered = (0..).zip(tools);
    numbered
        .map(|(number, (server, tool))| *first.entry((server, tool.name.to_lowercase())).or_insert(number))
        .collect()
}

/// Tools that become one segment each, with the name of their server.
pub(super) type Group<'a> = &'a [(&'a str, &'a Tool)];

/// Makes a segment of each group, and adds its words to the dictionary. With many tools, each half is a job
/// of its own.
pub(super) fn build_all<'a>(
    dictionary: Dictionary,
    groups: &[Group<'a>],
    embeddings: impl Fn() -> Option<EmbeddingsBuilder> + Sync,
    join: Join,
) -> (Dictionary, Vec<Segment>) {
    let make = |dictionary, groups: &[Group<'a>]| {
        let mut builder = SegmentBuilder::new(dictionary, embeddings());
        let segments: Vec<Segment> = groups.iter().map(|group| builder.build(group)).collect();
        (builder.dictionary, segments)
    };
    let all: usize = groups.iter().map(|group| group.len()).sum();
    let mut before = 0;
    let middle = groups.iter().take_while(|group| {
        before += group.len();
        before <= all / 2
    });
    let (first, second) = groups.split_at(middle.count());
    if all < MANY || first.is_empty() {
        return make(dictionary, groups);
    }
    let (mut known, mut here, mut there) = (Some(dictionary), None, None);
    join(&mut || here = known.take().map(|known| make(known, first)), &mut || {
        there = Some(make(Dictionary::default(), second));
    });
    let ((mut dictionary, mut segments), (other, more)) =
        (here.unwrap_or_default(), there.unwrap_or_default());
    let terms = dictionary.absorb(&other);
    segments.extend(more.into_iter().map(|segment| segment.renumbered(&terms)));
    (dictionary, segments)
}

/// From this many tools on, the work is shared by two jobs.
const MANY: usize = 2_000;
