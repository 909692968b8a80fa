//! Words that are used for the same thing in the names of tools.

use rustc_hash::FxHashMap;

use super::{dictionary::TermId, index::Index};

/// One group per line.
const GROUPS: &str = include_str!("synonyms.txt");

#[derive(Debug, Default)]
pub(super) struct Synonyms {
    known: FxHashMap<TermId, Vec<TermId>>,
    /// For words that no tool has, by their stems: the terms that tools use instead.
    unknown: FxHashMap<Box<str>, Vec<TermId>>,
}

impl Synonyms {
    pub(super) fn new(index: &Index) -> Self {
        let mut synonyms = Self::default();
        for group in GROUPS.lines() {
            let words = || group.split(' ');
            let terms: Vec<TermId> = words().filter_map(|word| index.term(word)).collect();
            for one in &terms {
                let others = synonyms.known.entry(*one).or_default();
                others.extend(terms.iter().filter(|other| *other != one));
            }
            for stem in words().filter(|word| index.term(word).is_none()).filter_map(|word| index.stem(word))
            {
                synonyms.unknown.entry(stem.into()).or_default().extend(&terms);
            }
        }
        synonyms
    }

    /// The synonyms of these terms, without the terms themselves.
    pub(super) fn of(&self, terms: &[TermId]) -> Vec<TermId> {
        let known = terms.iter().filter_map(|term| self.known.get(term));
        let mut related: Vec<TermId> = known.flatten().copied().collect();
        related.sort_unstable();
        related.dedup();
        related.retain(|term| !terms.contains(term));
        related
    }

    /// The terms that tools use instead of a word that none has.
    pub(super) fn of_unknown(&self, index: &Index, word: &str) -> Vec<TermId> {
        let stem = index.stem(word);
        stem.and_then(|stem| self.unknown.get(&*stem)).cloned().unwrap_or_default()
    }
}
