//! A query: its terms and its embedding, whole and sentence by sentence.

use super::{
    dictionary::TermId,
    embeddings::{Embedding, Embeddings},
    index::Index,
    words::{self, Origin},
};
use crate::size_limit;

/// A long request is also read sentence by sentence, because it may ask for several things.
const SENTENCES: usize = 8;
const ENDS: [char; 8] = ['.', '?', '!', ';', '\n', '。', '？', '！'];
/// More different terms than this are not looked up.
const TERMS: usize = 128;
/// So many words that no tool has are compared with those that tools have.
const COMPARED: usize = 8;

/// A query as the index understands it.
pub(super) struct Query {
    pub(super) whole: Part,
    /// The sentences with at least two terms, if there are several.
    pub(super) sentences: Vec<Part>,
    /// How many of its words no tool has.
    pub(super) unknown: f32,
}

/// A query, or one of its sentences.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) terms: Vec<WeightedTerm>,
    pub(super) embedding: Option<Embedding>,
}

/// A term of a query. `said`: it stands in the query, and is not only near a word that does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WeightedTerm {
    pub(super) id: TermId,
    pub(super) weight: f32,
    pub(super) said: bool,
}

impl Query {
    pub(super) fn read(query: &str, index: &Index, embeddings: Option<&Embeddings>) -> Self {
        let query = &query[..query.floor_char_boundary(size_limit::QUERY)];
        let mut whole = Part::default();
        let mut sentences = Vec::new();
        let mut missing = 0.0;
        let mut compared: Vec<(String, Vec<(TermId, f32)>)> = Vec::new();
        let mut sum = embeddings.map(Embeddings::nothing).unwrap_or_default();
        for text in query.split(ENDS).filter(|text| !text.is_empty()) {
            let mut part = Part::default();
            let mut part_sum = vec![0.0; sum.len()];
            let mut unknown: Vec<String> = Vec::new();
            words::each(text, |word, origin| {
                if let Some(embeddings) = embeddings.filter(|_| origin == Origin::Written) {
                    embeddings.add(word, &mut part_sum);
                }
                match index.term(word) {
                    Some(id) => part.say(id),
                    None if index.is_little(word) => {}
                    None => {
                        // A part of a word, or several in one, are no words more.
                        missing += f32::from(u8::from(origin == Origin::Written));
                        unknown.push(word.to_owned());
                    }
                }
            });
            // A word that no tool contains may have a neighbour that some do: rain, weather.
            for word in unknown {
                let Some(embeddings) = embeddings else { break };
                if !compared.iter().any(|(known, _)| *known == word) && compared.len() < COMPARED {
                    let near = embeddings.neighbours(&word);
                    compared.push((word.clone(), near));
                }
                let near = compared.iter().find(|(known, _)| *known == word);
                for (id, cosine) in near.into_iter().flat_map(|(_, near)| near) {
                    part.add(WeightedTerm { id: *id, weight: *cosine, said: false });
                }
            }
            whole.merge(&part);
            for (sum, value) in sum.iter_mut().zip(&part_sum) {
                *sum += value;
            }
            part.embedding = Embedding::of(&part_sum);
            if part.terms.iter().filter(|term| term.said).count() > 1 && sentences.len() < SENTENCES {
                sentences.push(part);
            }
        }
        whole.embedding = Embedding::of(&sum);
        if sentences.len() < 2 {
            sentences.clear();
        }
        Self { whole, sentences, unknown: missing }
    }
}

impl Part {
    fn say(&mut self, id: TermId) {
        self.add(WeightedTerm { id, weight: 1.0, said: true });
    }

    /// Each term once; one that is said counts as said.
    fn add(&mut self, new: WeightedTerm) {
        match self.terms.iter().position(|term| term.id == new.id) {
            Some(at) if new.said => self.terms[at] = new,
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
