//! A query: its terms and its embedding, whole and sentence by sentence.

use super::{
    dictionary::TermId,
    embeddings::{Embedding, Embeddings},
    explain::Relation,
    index::Index,
    reader::Reader,
    synonyms::Synonyms,
    typed, words,
};
use crate::size_limit;

/// How many sentences of a long request are also read one by one, because it may ask for several things.
const SENTENCES: usize = 8;
/// How many different terms are looked up.
pub(super) const TERMS: usize = 128;

/// A query as the index understands it.
pub(super) struct Query {
    pub(super) whole: Part,
    /// The sentences with at least two terms, if there are several.
    pub(super) sentences: Vec<Part>,
    pub(super) reading: Reading,
    /// Its script separates words, so their number says something.
    has_words: bool,
    /// It has few words, including little ones.
    pub(super) is_brief: bool,
}

/// What the words of a query are, and what they say together.
#[derive(Clone, Default)]
pub(super) struct Reading {
    /// The words, as far as tools have them.
    pub(super) asked: Vec<Asked>,
    /// How many of the words no tool has.
    pub(super) unknown: f32,
    /// There is a name that no tool has, such as that of a product or of a person.
    pub(super) has_unknown_name: bool,
    /// The last word, names and numbers left out, is one that tools have.
    pub(super) ends_known: bool,
    /// The query begins with a command that no tool can run, though some tools do something similar.
    pub(super) lacks_command: bool,
}

/// A word of a query. Any of its terms answers it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    /// What was typed, as far as tools have it.
    pub(super) typed: Vec<TermId>,
    /// What it was read as, besides or instead of that.
    pub(super) read: Vec<TermId>,
}

impl Asked {
    /// Whether it is only a reading: of a command, a phrase, or a word that no tool has.
    pub(super) fn is_guess(&self) -> bool {
        self.typed.is_empty()
    }
}

/// A query, or one of its sentences.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) terms: Vec<WeightedTerm>,
    pub(super) embedding: Option<Embedding>,
}

/// A term of a query, and how it came into it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WeightedTerm {
    pub(super) id: TermId,
    pub(super) weight: f32,
    pub(super) relation: Relation,
}

impl WeightedTerm {
    /// Whether it is a word of the query or a reading of one, and not only near one.
    pub(super) fn is_said(&self) -> bool {
        matches!(self.relation, Relation::Said | Relation::Read)
    }

    fn outweighs(&self, other: &Self) -> bool {
        self.is_said() && (!other.is_said() || self.weight > other.weight)
    }
}

impl Query {
    pub(super) fn read(
        query: &str,
        index: &Index,
        synonyms: &Synonyms,
        embeddings: Option<&Embeddings>,
    ) -> Self {
        let query = &query[..query.floor_char_boundary(size_limit::QUERY)];
        let mut reader = Reader::new(query, index, synonyms, embeddings);
        let mut whole = Part::default();
        let mut sentences = Vec::new();
        let mut sum = reader.nothing();
        for (number, text) in self::sentences(query).filter(|text| !text.is_empty()).enumerate() {
            let (part, sum_of_part) = reader.sentence(text, number == 0);
            whole.merge(&part);
            for (sum, value) in sum.iter_mut().zip(sum_of_part) {
                *sum += value;
            }
            if part.terms.iter().filter(|term| term.is_said()).count() > 1 && sentences.len() < SENTENCES {
                sentences.push(part);
            }
        }
        whole.embedding = Embedding::of(&sum);
        if sentences.len() < 2 {
            sentences.clear();
        }
        let Reader { reading, is_brief, .. } = reader;
        Self { whole, sentences, reading, has_words: !query.chars().any(words::is_ideographic), is_brief }
    }

    /// How many words it has, without little ones; `None` in a script that does not separate words.
    pub(super) fn word_count(&self) -> Option<f32> {
        #[expect(clippy::cast_precision_loss, reason = "a small number of words")]
        self.has_words.then_some(self.reading.asked.len() as f32 + self.reading.unknown)
    }
}

/// The sentences of a query, without the marks at their ends.
fn sentences(query: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(query);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.char_indices().find(|(at, c)| typed::ends_sentence(*c, &text[at + c.len_utf8()..]));
        let (sentence, behind) = match end {
            Some((at, mark)) => (&text[..at], Some(&text[at + mark.len_utf8()..])),
            None => (text, None),
        };
        rest = behind;
        Some(sentence)
    })
}

impl Part {
    /// Adds a term, each only once; one that is said counts as said.
    pub(super) fn add(&mut self, new: WeightedTerm) {
        match self.terms.iter().position(|term| term.id == new.id) {
            Some(at) if new.outweighs(&self.terms[at]) => self.terms[at] = new,
            None if self.terms.len() < TERMS => self.terms.push(new),
            _ => {}
        }
    }

    fn merge(&mut self, other: &Self) {
        for term in &other.terms {
            self.add(*term);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_inside_a_word_ends_no_sentence() {
        let all = |text| sentences(text).collect::<Vec<_>>();
        assert_eq!(all("read a.txt. Then go?"), ["read a.txt", " Then go", ""]);
        assert_eq!(all("天气。明天"), ["天气", "明天"]);
    }
}
