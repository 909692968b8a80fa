//! The index: which tools contain a term, and how much it says about them.

use rustc_hash::FxHashMap;

use super::{
    document::{FIELDS, Field, each_text},
    words::{self, Words},
};
use crate::catalog::Tool;

pub(super) type TermId = u32;

/// Terms by word, tools by term.
#[derive(Debug, Default)]
pub(super) struct Index {
    words: Words,
    /// A word as it stands in a text → its term; `None` for a stop word.
    lexicon: FxHashMap<Box<str>, Option<TermId>>,
    terms: FxHashMap<Box<str>, TermId>,
    rarity: Vec<f32>,
    /// For each term, where its postings begin; one more at the end.
    starts: Vec<u32>,
    postings: Vec<Posting>,
    /// For each tool, where the terms of its name begin; one more at the end.
    name_starts: Vec<u32>,
    name_terms: Vec<TermId>,
}

/// A term in a tool: its weighted and length-corrected count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) tool: u32,
    pub(super) count: f32,
}

/// A term of a query. `said`: it stands there, and is not only akin to something that does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighted {
    pub(super) id: TermId,
    pub(super) weight: f32,
    pub(super) said: bool,
}

/// A tool while the index is being built.
struct Counted {
    terms: Vec<(TermId, [u16; FIELDS])>,
    lengths: [u32; FIELDS],
}

impl Index {
    pub(super) fn build(tools: &[(&str, &Tool)]) -> Self {
        let mut index = Self { name_starts: vec![0], ..Self::default() };
        let mut scratch = FxHashMap::default();
        let counted: Vec<Counted> =
            tools.iter().map(|(server, tool)| index.count(server, tool, &mut scratch)).collect();
        index.invert(&counted);
        index
    }

    /// How many tools there are.
    pub(super) fn len(&self) -> usize {
        self.name_starts.len() - 1
    }

    /// The term of a word, if some tool has it.
    pub(super) fn term(&self, word: &str) -> Option<TermId> {
        match self.lexicon.get(word) {
            Some(term) => *term,
            None => self.terms.get(&*self.words.term(word)?).copied(),
        }
    }

    /// All words that stand in some tool, with their terms.
    pub(super) fn words(&self) -> impl Iterator<Item = (&str, TermId)> {
        self.lexicon.iter().filter_map(|(word, term)| Some((&**word, (*term)?)))
    }

    /// The terms of a query, each once.
    pub(super) fn weighted(&self, query: &str) -> Vec<Weighted> {
        let mut found: Vec<Weighted> = Vec::new();
        words::each(query, |word| {
            if let Some(id) = self.term(word)
                && !found.iter().any(|term| term.id == id)
            {
                found.push(Weighted { id, weight: 1.0, said: true });
            }
        });
        found
    }

    /// How much a term tells: more if few tools have it.
    pub(super) fn rarity(&self, term: TermId) -> f32 {
        self.rarity[term as usize]
    }

    pub(super) fn postings(&self, term: TermId) -> &[Posting] {
        let term = term as usize;
        &self.postings[self.starts[term] as usize..self.starts[term + 1] as usize]
    }

    /// The share of a tool's name that these terms name.
    pub(super) fn name_coverage(&self, tool: u32, terms: &[TermId]) -> f32 {
        let tool = tool as usize;
        let name = &self.name_terms[self.name_starts[tool] as usize..self.name_starts[tool + 1] as usize];
        let (mut covered, mut whole) = (0.0, 0.0);
        for term in name {
            let rarity = self.rarity(*term);
            whole += rarity;
            covered += if terms.contains(term) { rarity } else { 0.0 };
        }
        if whole > 0.0 { covered / whole } else { 0.0 }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let texts: usize = self.lexicon.keys().chain(self.terms.keys()).map(|word| word.len()).sum();
        let lexicon = self.lexicon.capacity() * size_of::<(Box<str>, Option<TermId>)>();
        let terms = self.terms.capacity() * size_of::<(Box<str>, TermId)>();
        let numbers = self.rarity.capacity()
            + self.starts.capacity()
            + self.name_starts.capacity()
            + self.name_terms.capacity();
        let postings = self.postings.capacity() * size_of::<Posting>();
        texts + lexicon + terms + postings + numbers * size_of::<u32>()
    }

    fn count(
        &mut self,
        server: &str,
        tool: &Tool,
        scratch: &mut FxHashMap<TermId, [u16; FIELDS]>,
    ) -> Counted {
        let mut lengths = [0; FIELDS];
        each_text(server, tool, |field, text| {
            words::each(text, |word| {
                let Some(term) = self.intern(word) else { return };
                let counts = scratch.entry(term).or_default();
                counts[field as usize] = counts[field as usize].saturating_add(1);
                lengths[field as usize] += 1;
                if field == Field::Name {
                    self.name_terms.push(term);
                }
            });
        });
        self.name_starts.push(number(self.name_terms.len()));
        Counted { terms: scratch.drain().collect(), lengths }
    }

    fn intern(&mut self, word: &str) -> Option<TermId> {
        if let Some(term) = self.lexicon.get(word) {
            return *term;
        }
        let term = self.words.term(word).map(|stem| {
            let next = number(self.terms.len());
            match self.terms.get(&*stem) {
                Some(term) => *term,
                None => *self.terms.entry(stem.into()).or_insert(next),
            }
        });
        self.lexicon.insert(word.into(), term);
        term
    }

    fn invert(&mut self, tools: &[Counted]) {
        let mut average = [0.0; FIELDS];
        for (field, average) in average.iter_mut().enumerate() {
            let sum: u64 = tools.iter().map(|tool| u64::from(tool.lengths[field])).sum();
            *average = (float(sum) / float(tools.len() as u64)).max(1.0);
        }
        // Counted first, then filled: all postings lie in one block.
        let mut starts = vec![0u32; self.terms.len() + 1];
        for (term, _) in tools.iter().flat_map(|tool| &tool.terms) {
            starts[*term as usize + 1] += 1;
        }
        let all = float(tools.len() as u64);
        let rarity = |count: &u32| {
            let with = float(u64::from(*count));
            (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
        };
        self.rarity = starts[1..].iter().map(rarity).collect();
        for term in 1..starts.len() {
            starts[term] += starts[term - 1];
        }
        let mut next = starts.clone();
        self.postings = vec![Posting { tool: 0, count: 0.0 }; starts.last().map_or(0, |end| *end as usize)];
        for (tool, counted) in (0..).zip(tools) {
            for (term, counts) in &counted.terms {
                let place = &mut next[*term as usize];
                self.postings[*place as usize] = Posting { tool, count: weigh(counts, counted, &average) };
                *place += 1;
            }
        }
        self.starts = starts;
    }
}

/// A word counts by where it stands, and less in a longer text.
fn weigh(counts: &[u16; FIELDS], tool: &Counted, average: &[f32; FIELDS]) -> f32 {
    let each = Field::ALL.into_iter().filter(|field| counts[*field as usize] > 0);
    each.map(|field| {
        let at = field as usize;
        let length = float(u64::from(tool.lengths[at])) / average[at];
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
