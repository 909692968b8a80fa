//! The words of a catalog, and the terms that they become. It only grows, so that parts of an index outlive a change.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::{lexicon::Lexicon, words::Words};

pub(super) type TermId = u32;

/// Terms by word.
#[derive(Debug, Clone, Default)]
pub(super) struct Dictionary {
    words: Words,
    /// Every word that stands in some tool, or did, as it is written there.
    lexicon: Lexicon<Word>,
    terms: FxHashMap<Box<str>, TermId>,
    /// How many words [`Dictionary::intern`] still adds.
    room: usize,
}

/// A word of the catalog: its number, and its term unless it is a little word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) number: u32,
    pub(super) term: Option<TermId>,
}

impl Dictionary {
    /// How many terms there are.
    pub(super) fn len(&self) -> usize {
        self.terms.len()
    }

    /// The term of a word.
    pub(super) fn term(&self, word: &str) -> Option<TermId> {
        match self.lexicon.get(word) {
            Some(word) => word.term,
            None => self.terms.get(&*self.words.term(word)?).copied(),
        }
    }

    /// The term of a word that stands somewhere in exactly this spelling.
    pub(super) fn exact(&self, word: &str) -> Option<TermId> {
        self.lexicon.get(word)?.term
    }

    /// The term of a word whose ending was cut off.
    pub(super) fn of_stem(&self, stem: &str) -> Option<TermId> {
        self.terms.get(stem).copied()
    }

    /// The stem of a word; `None` for a little word.
    pub(super) fn stem<'a>(&self, word: &'a str) -> Option<Cow<'a, str>> {
        self.words.term(word)
    }

    /// Whether a word is too common to search for.
    pub(super) fn is_little(&self, word: &str) -> bool {
        self.words.term(word).is_none()
    }

    /// All words with their terms.
    pub(super) fn each_word(&self, mut found: impl FnMut(&str, TermId)) {
        self.lexicon.each(|text, word| word.term.into_iter().for_each(|term| found(text, term)));
    }

    /// A term as text: slow, for explanations.
    pub(super) fn spelling(&self, term: TermId) -> &str {
        self.terms.iter().find(|(_, id)| **id == term).map_or("", |(text, _)| text)
    }

    /// Lets [`Self::intern`] add at most so many words from now on.
    pub(super) fn limit_new_words(&mut self, count: usize) {
        self.room = count;
    }

    /// The word with this spelling, which is added if there is room.
    pub(super) fn intern(&mut self, text: &str) -> Option<Word> {
        if let Some(word) = self.lexicon.get(text) {
            return Some(word);
        }
        self.room = self.room.checked_sub(1)?;
        let term = self.words.term(text).map(|stem| intern_term(&mut self.terms, &stem));
        let word = Word { number: number(self.lexicon.len()), term };
        self.lexicon.insert(text, word);
        Some(word)
    }

    pub(super) fn intern_term(&mut self, term: &str) -> TermId {
        intern_term(&mut self.terms, term)
    }

    /// Takes a word whose term is known.
    pub(super) fn learn(&mut self, text: &str, term: TermId) {
        self.take(text, Some(term));
    }

    fn take(&mut self, text: &str, term: Option<TermId>) {
        if self.lexicon.get(text).is_none() {
            let number = number(self.lexicon.len());
            self.lexicon.insert(text, Word { number, term });
        }
    }

    /// All terms as text, in the order of their numbers.
    pub(super) fn terms_in_order(&self) -> Vec<&str> {
        let mut terms: Vec<(TermId, &str)> = self.terms.iter().map(|(text, id)| (*id, &**text)).collect();
        terms.sort_unstable();
        terms.into_iter().map(|(_, text)| text).collect()
    }

    /// Takes the words of another one, in their order. Returns the terms here by the terms there.
    pub(super) fn absorb(&mut self, other: &Self) -> Vec<TermId> {
        let here: Vec<TermId> =
            other.terms_in_order().into_iter().map(|text| self.intern_term(text)).collect();
        other.lexicon.each(|text, word| self.take(text, word.term.map(|term| here[term as usize])));
        here
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let texts: usize = self.terms.keys().map(|word| word.len()).sum();
        let terms = self.terms.capacity() * size_of::<(Box<str>, TermId)>();
        texts + terms + self.lexicon.heap_bytes()
    }
}

fn intern_term(terms: &mut FxHashMap<Box<str>, TermId>, stem: &str) -> TermId {
    if let Some(term) = terms.get(stem) {
        return *term;
    }
    let next = number(terms.len());
    terms.insert(stem.into(), next);
    next
}

pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_takes_no_more_new_words_than_it_has_room_for() {
        let mut dictionary = Dictionary::default();
        dictionary.limit_new_words(2);
        assert!(["mail", "issue", "mail"].iter().all(|word| dictionary.intern(word).is_some()));
        assert!(dictionary.intern("branch").is_none() && dictionary.intern("issue").is_some());
        dictionary.limit_new_words(1);
        assert!(dictionary.intern("branch").is_some());
        assert_eq!(dictionary.len(), 3);
    }
}
