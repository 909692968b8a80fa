//! Words that are used for the same thing in the names of tools.

use rustc_hash::FxHashMap;

use super::dictionary::TermId;

/// One group per line.
const GROUPS: &str = include_str!("synonyms.txt");

#[derive(Debug, Default)]
pub(super) struct Synonyms(FxHashMap<TermId, Vec<TermId>>);

impl Synonyms {
    /// `term` tells the term of a word that some tool has.
    pub(super) fn new(term: impl Fn(&str) -> Option<TermId>) -> Self {
        let mut related: FxHashMap<TermId, Vec<TermId>> = FxHashMap::default();
        for group in GROUPS.lines() {
            let group: Vec<TermId> = group.split(' ').filter_map(&term).collect();
            for one in &group {
                let others = related.entry(*one).or_default();
                others.extend(group.iter().filter(|other| *other != one));
            }
        }
        Self(related)
    }

    /// The terms that stand for one of these, without them.
    pub(super) fn of(&self, terms: &[TermId]) -> Vec<TermId> {
        let mut related: Vec<TermId> =
            terms.iter().filter_map(|term| self.0.get(term)).flatten().copied().collect();
        related.sort_unstable();
        related.dedup();
        related.retain(|term| !terms.contains(term));
        related
    }
}
