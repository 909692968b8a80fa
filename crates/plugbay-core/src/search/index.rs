//! The index: which tools contain a term, and the score it gives them.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{
    document::{FIELDS, Field, Text, each_text},
    lexicon::Lexicon,
    words::{self, Origin, Words},
};
use crate::catalog::Tool;

pub(super) type TermId = u32;

/// How soon more of the same word stops counting.
const SATURATION: f32 = 1.2;

/// Terms by word, tools by term.
#[derive(Debug, Default)]
pub(super) struct Index {
    tools: u32,
    words: Words,
    /// Every word that stands in some tool, as it stands there.
    lexicon: Lexicon<Word>,
    terms: FxHashMap<Box<str>, TermId>,
    rarity: Vec<f32>,
    /// The score that each term gives to the tools that have it.
    postings: Postings,
    /// The share that each term has in the names of tools, and of their servers.
    names: Postings,
    servers: Postings,
}

/// A word of the catalog: its number, and its term unless it is a little word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) number: u32,
    pub(super) term: Option<TermId>,
}

/// A word of a tool, with the field it stands in.
pub(super) type WordInField<'a> = (Field, &'a str, Word, Origin);

/// A number for each tool that has a term, all in one block.
#[derive(Debug, Default)]
pub(super) struct Postings {
    /// For each term, where its tools begin; one more at the end.
    starts: Vec<u32>,
    entries: Vec<Posting>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) tool: u32,
    pub(super) value: f32,
}

/// The terms of all tools while the index is being built.
#[derive(Default)]
struct Counts {
    tools: Vec<ToolCounts>,
    /// The terms of one tool after those of another.
    terms: Vec<(TermId, [u16; FIELDS])>,
    /// For each term, the tool that had it last, and where that is counted.
    last: Vec<(u32, u32)>,
    /// The terms in names, with their tools; and those in the names of their servers.
    names: Vec<(u32, TermId)>,
    servers: Vec<(u32, TermId)>,
}

/// The terms of texts that many tools share, as parameters do: each is read and taken apart once.
#[derive(Default)]
struct TermCache<'a> {
    places: FxHashMap<Text<'a>, Range<usize>>,
    terms: Vec<TermId>,
}

/// What was counted of one tool.
struct ToolCounts {
    /// Where its terms end.
    end: usize,
    lengths: [u32; FIELDS],
}

impl Index {
    /// Calls `on_word` with each word of names and descriptions, and with `None` at the end of each tool.
    pub(super) fn build(tools: &[(&str, &Tool)], mut on_word: impl FnMut(Option<WordInField<'_>>)) -> Self {
        let mut index = Self { tools: number(tools.len()), ..Self::default() };
        let mut counts = Counts::default();
        let mut cache = TermCache::default();
        for (number, (server, tool)) in (0..).zip(tools) {
            let mut lengths = [0; FIELDS];
            each_text(server, tool, &mut |field, text| {
                let mut count = |term| {
                    lengths[field as usize] += 1;
                    counts.add(number, field, term);
                };
                if matches!(field, Field::Parameter | Field::Detail) {
                    return cache.terms(text, &mut index).iter().copied().for_each(count);
                }
                words::each(&text.searched(), |text, origin| {
                    let word = index.intern(text);
                    on_word(Some((field, text, word, origin)));
                    word.term.into_iter().for_each(&mut count);
                });
            });
            counts.tools.push(ToolCounts { end: counts.terms.len(), lengths });
            on_word(None);
        }
        index.weigh(&counts);
        index
    }

    /// How many tools there are.
    pub(super) fn len(&self) -> usize {
        self.tools as usize
    }

    pub(super) fn count(&self) -> u32 {
        self.tools
    }

    /// The term of a word, if some tool has it.
    pub(super) fn term(&self, word: &str) -> Option<TermId> {
        match self.lexicon.get(word) {
            Some(word) => word.term,
            None => self.terms.get(&*self.words.term(word)?).copied(),
        }
    }

    /// Is a word too common to search for?
    pub(super) fn is_little(&self, word: &str) -> bool {
        self.words.term(word).is_none()
    }

    /// All words that stand in some tool, with their terms.
    pub(super) fn each_word(&self, mut found: impl FnMut(&str, TermId)) {
        self.lexicon.each(|text, word| word.term.into_iter().for_each(|term| found(text, term)));
    }

    /// A term as text: slow, for explanations.
    pub(super) fn spelling(&self, term: TermId) -> &str {
        self.terms.iter().find(|(_, id)| **id == term).map_or("", |(text, _)| text)
    }

    /// The weight of a term: the fewer tools have it, the more.
    pub(super) fn rarity(&self, term: TermId) -> f32 {
        self.rarity[term as usize]
    }

    /// The weight of a term that no tool has.
    pub(super) fn rarest(&self) -> f32 {
        rarity(self.tools, 0)
    }

    /// The scores that a term gives to those of the tools that have it.
    pub(super) fn postings(&self, term: TermId, within: &Range<u32>) -> &[Posting] {
        self.postings.of(term, within)
    }

    /// The share of their names that a term is, for those of the tools that have it there.
    pub(super) fn names(&self, term: TermId, within: &Range<u32>) -> &[Posting] {
        self.names.of(term, within)
    }

    /// The same of the names of their servers.
    pub(super) fn servers(&self, term: TermId, within: &Range<u32>) -> &[Posting] {
        self.servers.of(term, within)
    }

    pub(super) fn has(&self, tool: u32, term: TermId) -> bool {
        !self.postings(term, &(tool..tool + 1)).is_empty()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let texts: usize = self.terms.keys().map(|word| word.len()).sum();
        let lexicon = self.lexicon.heap_bytes();
        let terms = self.terms.capacity() * size_of::<(Box<str>, TermId)>();
        let rarity = self.rarity.capacity() * size_of::<f32>();
        texts
            + lexicon
            + terms
            + rarity
            + self.postings.heap_bytes()
            + self.names.heap_bytes()
            + self.servers.heap_bytes()
    }

    fn intern(&mut self, text: &str) -> Word {
        if let Some(word) = self.lexicon.get(text) {
            return word;
        }
        let term = self.words.term(text).map(|stem| {
            if let Some(term) = self.terms.get(&*stem) {
                return *term;
            }
            let next = number(self.terms.len());
            self.terms.insert(stem.into(), next);
            next
        });
        let word = Word { number: number(self.lexicon.len()), term };
        self.lexicon.insert(text, word);
        word
    }

    fn weigh(&mut self, counts: &Counts) {
        let mut with = vec![0u32; self.terms.len()];
        for (term, _) in &counts.terms {
            with[*term as usize] += 1;
        }
        self.rarity = with.iter().map(|with| rarity(self.tools, *with)).collect();

        let average = counts.average_lengths();
        let mut said = Vec::with_capacity(counts.terms.len());
        let mut start = 0;
        for (tool, counted) in (0..).zip(&counts.tools) {
            let weights = weights(&counted.lengths, &average);
            for (term, in_fields) in &counts.terms[start..counted.end] {
                let each = in_fields.iter().zip(&weights);
                let count: f32 = each.map(|(count, weight)| f32::from(*count) * weight).sum();
                let value = self.rarity(*term) * count / (SATURATION + count);
                said.push((*term, Posting { tool, value }));
            }
            start = counted.end;
        }
        self.postings = Postings::new(self.terms.len(), &said);

        self.names = self.shares(&counts.names);
        self.servers = self.shares(&counts.servers);
    }

    /// How much of what stands for a tool each term is.
    fn shares(&self, standing: &[(u32, TermId)]) -> Postings {
        let mut whole = vec![0.0f32; self.len()];
        for (tool, term) in standing {
            whole[*tool as usize] += self.rarity(*term);
        }
        let share = |(tool, term): &(u32, TermId)| {
            let value = self.rarity(*term) / whole[*tool as usize].max(f32::MIN_POSITIVE);
            (*term, Posting { tool: *tool, value })
        };
        let shares: Vec<_> = standing.iter().map(share).collect();
        Postings::new(self.terms.len(), &shares)
    }
}

impl<'a> TermCache<'a> {
    fn terms(&mut self, text: Text<'a>, index: &mut Index) -> &[TermId] {
        if let Some(place) = self.places.get(&text) {
            return &self.terms[place.clone()];
        }
        let start = self.terms.len();
        words::each(&text.searched(), |said, _| self.terms.extend(index.intern(said).term));
        self.places.insert(text, start..self.terms.len());
        &self.terms[start..]
    }
}

impl Counts {
    fn add(&mut self, tool: u32, field: Field, term: TermId) {
        if self.last.len() <= term as usize {
            self.last.resize(term as usize + 1, (u32::MAX, 0));
        }
        let last = &mut self.last[term as usize];
        if last.0 != tool {
            *last = (tool, number(self.terms.len()));
            self.terms.push((term, [0; FIELDS]));
        }
        let count = &mut self.terms[last.1 as usize].1[field as usize];
        *count = count.saturating_add(1);
        match field {
            Field::Name => self.names.push((tool, term)),
            Field::Server => self.servers.push((tool, term)),
            _ => {}
        }
    }

    fn average_lengths(&self) -> [f32; FIELDS] {
        let mut average = [0.0; FIELDS];
        for (field, average) in average.iter_mut().enumerate() {
            let sum: u64 = self.tools.iter().map(|tool| u64::from(tool.lengths[field])).sum();
            *average = (float(sum) / float(self.tools.len() as u64)).max(1.0);
        }
        average
    }
}

impl Postings {
    /// Counted first, then filled: sorting would cost more.
    fn new(terms: usize, all: &[(TermId, Posting)]) -> Self {
        let mut starts = vec![0u32; terms + 1];
        for (term, _) in all {
            starts[*term as usize + 1] += 1;
        }
        for term in 1..starts.len() {
            starts[term] += starts[term - 1];
        }
        let mut next = starts.clone();
        let mut entries = vec![Posting { tool: 0, value: 0.0 }; all.len()];
        for (term, posting) in all {
            let place = &mut next[*term as usize];
            entries[*place as usize] = *posting;
            *place += 1;
        }
        Self { starts, entries }
    }

    fn of(&self, term: TermId, within: &Range<u32>) -> &[Posting] {
        let term = term as usize;
        let entries = &self.entries[self.starts[term] as usize..self.starts[term + 1] as usize];
        // They stand in the order of their tools.
        let start = if within.start == 0 { 0 } else { entries.partition_point(|e| e.tool < within.start) };
        let entries = &entries[start..];
        match entries.last() {
            Some(last) if last.tool >= within.end => {
                &entries[..entries.partition_point(|e| e.tool < within.end)]
            }
            _ => entries,
        }
    }

    fn heap_bytes(&self) -> usize {
        self.starts.capacity() * size_of::<u32>() + self.entries.capacity() * size_of::<Posting>()
    }
}

/// What a word in each field of a tool counts: by where it stands, and less in a longer text.
fn weights(lengths: &[u32; FIELDS], average: &[f32; FIELDS]) -> [f32; FIELDS] {
    Field::ALL.map(|field| {
        let at = field as usize;
        let length = float(u64::from(lengths[at])) / average[at];
        let against = field.length_counts();
        field.weight() / (1.0 - against + against * length)
    })
}

/// How much a term tells that so many of all tools have.
fn rarity(tools: u32, with: u32) -> f32 {
    let (all, with) = (float(u64::from(tools)), float(u64::from(with)));
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "counts of words and tools")]
fn float(count: u64) -> f32 {
    count as f32
}
