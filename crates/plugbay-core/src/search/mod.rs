//! Finds tools by what they are for: words, weighted by where they stand, and meaning from a small table.

mod dense;
mod document;
mod index;
pub mod reply;
mod synonyms;
mod words;

use std::sync::Arc;

use rustc_hash::FxHashMap;

pub use dense::Table;
pub use document::Field;

use self::{
    dense::{Directions, Meaning},
    index::{Index, TermId, Weighted},
    synonyms::Synonyms,
};
use crate::catalog::Tool;

/// What a synonym counts, in words of the query.
const SYNONYM: f32 = 0.4;
/// What a name adds that the query covers wholly.
const COVERED_NAME: f32 = 0.5;
/// How soon more of the same word stops counting.
const SATURATION: f32 = 1.2;
/// The share of meaning in a score.
const MEANING: f32 = 0.45;
/// Words are measured against the best tool, and a little against a perfect one: where even the best
/// matches little of the query, meaning gets more to say.
const PERFECTION: f32 = 0.25;
/// So many of the best by words are looked at for their meaning; in a small catalogue, all are.
const RESCORED: usize = 200;
const SMALL_CATALOGUE: usize = 1024;
/// A long request is also read sentence by sentence, because it may ask for several things.
const SENTENCES: usize = 8;
/// A tool with another's name scores like it; one of each comes first.
const TWIN: f32 = 0.8;
const CANDIDATES: usize = 50;

/// A searchable catalogue. Tools are known by their number in the order in which they were given.
#[derive(Debug)]
pub struct Engine {
    index: Index,
    synonyms: Synonyms,
    meaning: Option<Meaning>,
    /// For each tool, the first of the same server with the same name.
    twins: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub tool: u32,
    pub score: f32,
}

impl Engine {
    /// Each tool with the name of its server.
    pub fn build(tools: &[(&str, &Tool)], table: Option<Arc<Table>>) -> Self {
        let index = Index::build(tools);
        let synonyms = Synonyms::new(|word| index.term(word));
        let meaning = table.map(|table| Meaning::build(table, tools, index.words()));
        Self { synonyms, meaning, twins: twins(tools), index }
    }

    /// The best `limit` tools, best first; equal ones in the order of the catalogue.
    pub fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        let wanted = limit.max(CANDIDATES);
        let mut hits = self.rank(query);
        let sentences = self.sentences(query);
        if sentences.len() > 1 {
            let mut scores: FxHashMap<u32, f32> = FxHashMap::default();
            for part in sentences {
                for hit in self.rank(part).into_iter().take(wanted) {
                    let best = scores.entry(hit.tool).or_default();
                    *best = best.max(hit.score);
                }
            }
            for hit in hits {
                *scores.entry(hit.tool).or_default() += hit.score;
            }
            hits = scores.into_iter().map(|(tool, score)| Hit { tool, score }).collect();
        }
        keep_best(&mut hits, wanted);
        self.one_of_each_first(&mut hits);
        hits.truncate(limit);
        hits
    }

    /// The memory that this holds, beside the tools themselves and the table.
    pub fn heap_bytes(&self) -> usize {
        let twins = self.twins.capacity() * size_of::<u32>();
        self.index.heap_bytes() + self.meaning.as_ref().map_or(0, Meaning::heap_bytes) + twins
    }

    /// The sentences that say something.
    fn sentences<'q>(&self, query: &'q str) -> Vec<&'q str> {
        let ends = ['.', '?', '!', ';', '\n', '。', '？', '！'];
        let telling = |part: &&str| self.index.weighted(part).len() > 1;
        query.split(ends).filter(telling).take(SENTENCES).collect()
    }

    fn rank(&self, query: &str) -> Vec<Hit> {
        let mut terms = self.index.weighted(query);
        if let Some(meaning) = &self.meaning {
            self.add_neighbours(query, meaning, &mut terms);
        }
        let mut hits = self.by_words(&terms);
        if let Some(meaning) = &self.meaning
            && let Some(direction) = meaning.direction(query)
        {
            let perfect = terms.iter().map(|term| term.weight * self.index.rarity(term.id)).sum();
            self.rescore(&mut hits, perfect, &meaning.tools, &direction);
        }
        keep_best(&mut hits, RESCORED);
        hits
    }

    /// A word that no tool contains may have a neighbour that some do: rain, weather.
    fn add_neighbours(&self, query: &str, meaning: &Meaning, terms: &mut Vec<Weighted>) {
        words::each(query, |word| {
            if words::is_stop(word) || self.index.term(word).is_some() {
                return;
            }
            for (id, cosine) in meaning.neighbours(word) {
                if !terms.iter().any(|term| term.id == id) {
                    terms.push(Weighted { id, weight: cosine, said: false });
                }
            }
        });
    }

    fn by_words(&self, terms: &[Weighted]) -> Vec<Hit> {
        let said: Vec<TermId> = terms.iter().filter(|term| term.said).map(|term| term.id).collect();
        let related = self.synonyms.of(&said);
        let related = related.into_iter().map(|id| Weighted { id, weight: SYNONYM, said: false });
        let mut scores = vec![0.0f32; self.index.len()];
        let mut touched = Vec::new();
        for term in terms.iter().copied().chain(related) {
            let weight = term.weight * self.index.rarity(term.id);
            for posting in self.index.postings(term.id) {
                let score = &mut scores[posting.tool as usize];
                if *score == 0.0 {
                    touched.push(posting.tool);
                }
                *score += weight * posting.count / (SATURATION + posting.count);
            }
        }
        let hit = |tool: u32| {
            let covered = self.index.name_coverage(tool, &said);
            Hit { tool, score: scores[tool as usize] * (1.0 + COVERED_NAME * covered) }
        };
        touched.into_iter().map(hit).collect()
    }

    fn rescore(&self, hits: &mut Vec<Hit>, perfect: f32, tools: &Directions, direction: &[i8]) {
        if self.index.len() <= SMALL_CATALOGUE {
            let mut scores = vec![0.0; self.index.len()];
            for hit in hits.iter() {
                scores[hit.tool as usize] = hit.score;
            }
            *hits = (0..).zip(scores).map(|(tool, score)| Hit { tool, score }).collect();
        } else {
            keep_best(hits, RESCORED);
        }
        let best = hits.iter().map(|hit| hit.score).fold(f32::MIN_POSITIVE, f32::max);
        let whole = best.powf(1.0 - PERFECTION) * perfect.max(f32::MIN_POSITIVE).powf(PERFECTION);
        for hit in hits {
            let cosine = tools.cosine(hit.tool as usize, direction).max(0.0);
            hit.score = (1.0 - MEANING) * hit.score / whole + MEANING * cosine;
        }
    }

    /// Five hits should be five choices: what is nearly the same as a better hit goes behind the others.
    fn one_of_each_first(&self, hits: &mut Vec<Hit>) {
        let mut seen: Vec<Hit> = Vec::new();
        let mut again = Vec::new();
        for hit in hits.drain(..) {
            let same = |other: &Hit| self.twins[other.tool as usize] == self.twins[hit.tool as usize];
            if seen.iter().any(|other| same(other) && hit.score >= other.score * TWIN) {
                again.push(hit);
            } else {
                seen.push(hit);
            }
        }
        hits.extend(seen);
        hits.extend(again);
    }
}

fn twins(tools: &[(&str, &Tool)]) -> Vec<u32> {
    let mut first: FxHashMap<(&str, String), u32> = FxHashMap::default();
    let numbered = (0..).zip(tools);
    numbered
        .map(|(number, (server, tool))| *first.entry((server, tool.name.to_lowercase())).or_insert(number))
        .collect()
}

fn keep_best(hits: &mut Vec<Hit>, limit: usize) {
    let best_first = |a: &Hit, b: &Hit| b.score.total_cmp(&a.score).then(a.tool.cmp(&b.tool));
    if limit > 0 && hits.len() > limit {
        hits.select_nth_unstable_by(limit - 1, best_first);
    }
    hits.truncate(limit);
    hits.sort_unstable_by(best_first);
}

#[cfg(test)]
mod tests;
