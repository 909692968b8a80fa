//! The index: which tools contain a term, and how much it says about them.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{
    document::{FIELDS, Field, each_text},
    words::{self, Origin, Words},
};
use crate::catalog::Tool;

pub(super) type TermId = u32;

/// How soon more of the same word stops counting.
const SATURATION: f32 = 1.2;

/// Terms by word, tools by term.
#[derive(Debug, Default)]
pub(super) struct Index {
    tools: usize,
    words: Words,
    /// Every word that stands in some tool, as it stands there.
    lexicon: FxHashMap<Box<str>, Word>,
    terms: FxHashMap<Box<str>, TermId>,
    rarity: Vec<f32>,
    /// What each term says about the tools that have it.
    postings: Postings,
    /// The share that each term has in the names of tools.
    names: Postings,
}

/// A word of the catalogue: its number, and its term unless it is a little word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) number: u32,
    pub(super) term: Option<TermId>,
}

/// A word where it stands.
pub(super) type Said<'a> = (Field, &'a str, Word, Origin);

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
    tools: Vec<Counted>,
    /// The terms of one tool after those of another.
    terms: Vec<(TermId, [u16; FIELDS])>,
    /// For each term, the tool that had it last, and where that is counted.
    last: Vec<(u32, u32)>,
    /// The terms in names, with their tools.
    names: Vec<(u32, TermId)>,
}

/// The terms of texts that many tools share, as parameters do: each is taken apart once.
#[derive(Default)]
struct Known {
    places: FxHashMap<Box<str>, Range<usize>>,
    terms: Vec<TermId>,
}

struct Counted {
    /// Where its terms end.
    end: usize,
    lengths: [u32; FIELDS],
}

impl Index {
    /// `heard` is told each word of names and descriptions as it is met, and `None` at the end of each tool.
    pub(super) fn build(tools: &[(&str, &Tool)], mut heard: impl FnMut(Option<Said<'_>>)) -> Self {
        let mut index = Self { tools: tools.len(), ..Self::default() };
        let mut counts = Counts::default();
        let mut known = Known::default();
        for (number, (server, tool)) in (0..).zip(tools) {
            let mut lengths = [0; FIELDS];
            each_text(server, tool, &mut |field, text| {
                let mut met = |term| {
                    lengths[field as usize] += 1;
                    counts.add(number, field, term);
                };
                if matches!(field, Field::Parameter | Field::Detail) {
                    return known.terms(text, &mut index).iter().copied().for_each(met);
                }
                words::each(text, |said, origin| {
                    let word = index.intern(said);
                    heard(Some((field, said, word, origin)));
                    word.term.into_iter().for_each(&mut met);
                });
            });
            counts.tools.push(Counted { end: counts.terms.len(), lengths });
            heard(None);
        }
        index.weigh(&counts);
        index
    }

    /// How many tools there are.
    pub(super) fn len(&self) -> usize {
        self.tools
    }

    /// The term of a word, if some tool has it.
    pub(super) fn term(&self, word: &str) -> Option<TermId> {
        match self.lexicon.get(word) {
            Some(word) => word.term,
            None => self.terms.get(&*self.words.term(word)?).copied(),
        }
    }

    /// Says a word nothing about what is wanted?
    pub(super) fn is_little(&self, word: &str) -> bool {
        self.words.term(word).is_none()
    }

    /// All words that stand in some tool, with their terms.
    pub(super) fn words(&self) -> impl Iterator<Item = (&str, TermId)> {
        self.lexicon.iter().filter_map(|(text, word)| Some((&**text, word.term?)))
    }

    /// A term as text: slow, for explanations.
    pub(super) fn spelling(&self, term: TermId) -> &str {
        self.terms.iter().find(|(_, id)| **id == term).map_or("", |(text, _)| text)
    }

    /// How much a term tells: more if few tools have it.
    pub(super) fn rarity(&self, term: TermId) -> f32 {
        self.rarity[term as usize]
    }

    /// What a term says about the tools that have it.
    pub(super) fn postings(&self, term: TermId) -> &[Posting] {
        self.postings.of(term)
    }

    /// The share of their names that a term is, for the tools that have it there.
    pub(super) fn names(&self, term: TermId) -> &[Posting] {
        self.names.of(term)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let texts: usize = self.lexicon.keys().chain(self.terms.keys()).map(|word| word.len()).sum();
        let lexicon = self.lexicon.capacity() * size_of::<(Box<str>, Word)>();
        let terms = self.terms.capacity() * size_of::<(Box<str>, TermId)>();
        let rarity = self.rarity.capacity() * size_of::<f32>();
        texts + lexicon + terms + rarity + self.postings.heap_bytes() + self.names.heap_bytes()
    }

    fn intern(&mut self, text: &str) -> Word {
        if let Some(word) = self.lexicon.get(text) {
            return *word;
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
        self.lexicon.insert(text.into(), word);
        word
    }

    fn weigh(&mut self, counts: &Counts) {
        let all = float(self.tools as u64);
        let mut with = vec![0u32; self.terms.len()];
        for (term, _) in &counts.terms {
            with[*term as usize] += 1;
        }
        let rarity = |count: &u32| {
            let with = float(u64::from(*count));
            (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
        };
        self.rarity = with.iter().map(rarity).collect();

        let average = counts.average_lengths();
        let mut said = Vec::with_capacity(counts.terms.len());
        let mut start = 0;
        for (tool, counted) in (0..).zip(&counts.tools) {
            for (term, in_fields) in &counts.terms[start..counted.end] {
                let count = weighted(in_fields, &counted.lengths, &average);
                let value = self.rarity(*term) * count / (SATURATION + count);
                said.push((*term, Posting { tool, value }));
            }
            start = counted.end;
        }
        self.postings = Postings::new(self.terms.len(), &said);

        let mut whole = vec![0.0f32; self.tools];
        for (tool, term) in &counts.names {
            whole[*tool as usize] += self.rarity(*term);
        }
        let share = |(tool, term): &(u32, TermId)| {
            let value = self.rarity(*term) / whole[*tool as usize].max(f32::MIN_POSITIVE);
            (*term, Posting { tool: *tool, value })
        };
        let shares: Vec<_> = counts.names.iter().map(share).collect();
        self.names = Postings::new(self.terms.len(), &shares);
    }
}

impl Known {
    fn terms(&mut self, text: &str, index: &mut Index) -> &[TermId] {
        if let Some(place) = self.places.get(text) {
            return &self.terms[place.clone()];
        }
        let start = self.terms.len();
        words::each(text, |said, _| self.terms.extend(index.intern(said).term));
        self.places.insert(text.into(), start..self.terms.len());
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
        if field == Field::Name {
            self.names.push((tool, term));
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

    fn of(&self, term: TermId) -> &[Posting] {
        let term = term as usize;
        &self.entries[self.starts[term] as usize..self.starts[term + 1] as usize]
    }

    fn heap_bytes(&self) -> usize {
        self.starts.capacity() * size_of::<u32>() + self.entries.capacity() * size_of::<Posting>()
    }
}

/// A word counts by where it stands, and less in a longer text.
fn weighted(counts: &[u16; FIELDS], lengths: &[u32; FIELDS], average: &[f32; FIELDS]) -> f32 {
    let each = Field::ALL.into_iter().filter(|field| counts[*field as usize] > 0);
    each.map(|field| {
        let at = field as usize;
        let length = float(u64::from(lengths[at])) / average[at];
        let against = field.length_counts();
        field.weight() * f32::from(counts[at]) / (1.0 - against + against * length)
    })
    .sum()
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "counts of words and tools")]
fn float(count: u64) -> f32 {
    count as f32
}
