//! The index of one server's tools as bytes: saved with the list, so that it need not be made anew at every start.
//!
//! Numbers have seven bits a byte. In their order: the terms; the words with their terms; how many tools have each term, and
//! its entries; of each tool the lengths of its fields, the terms of its name and of its server's, and its twin; the
//! embeddings.

use std::sync::Arc;

use super::{FIELDS, Segment, SegmentBuilder, TermLists, put_number};
use crate::{
    catalog::Tool,
    search::{
        dictionary::{Dictionary, TermId, number},
        embeddings::{EmbeddingList, EmbeddingTable, EmbeddingsBuilder},
    },
};

/// The version of stored indexes. A change of their form, of how texts become terms, or of the embedding
/// table needs a new one.
pub const INDEX_VERSION: u32 = 1;

/// An index that was read, with terms of its own.
#[derive(Debug)]
pub struct StoredIndex {
    terms: Texts,
    words: Texts,
    /// The term of each word.
    word_terms: Vec<TermId>,
    segment: Segment,
}

/// Several texts, one after the other.
#[derive(Debug)]
struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }
}

impl StoredIndex {
    /// The index of all tools of a server, to be saved.
    pub fn write(server: &str, tools: &[Tool], table: Option<Arc<EmbeddingTable>>) -> Vec<u8> {
        let tools: Vec<(&str, &Tool)> = tools.iter().map(|tool| (server, tool)).collect();
        let mut builder = SegmentBuilder::new(Dictionary::default(), table.map(EmbeddingsBuilder::new));
        let segment = builder.build(&tools);
        let dictionary = builder.dictionary;
        let mut words: Vec<(String, TermId)> = Vec::new();
        dictionary.each_word(|word, term| words.push((word.to_owned(), term)));
        words.sort_unstable();
        let mut out = Vec::new();
        put_texts(&mut out, dictionary.terms_in_order().into_iter());
        put_texts(&mut out, words.iter().map(|(word, _)| word.as_str()));
        for (_, term) in &words {
            put_number(&mut out, *term);
        }
        segment.put(&mut out);
        out
    }

    /// Reads an index; `None` if the bytes cannot be one.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let terms = rest.texts()?;
        let words = rest.texts()?;
        let known = number(terms.ends.len());
        let word_terms = rest.numbers_below(words.ends.len(), known)?;
        let segment = rest.segment(known)?;
        rest.0.is_empty().then_some(Self { terms, words, word_terms, segment })
    }

    /// How many tools it has.
    pub fn len(&self) -> usize {
        self.segment.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it was made with a table of embeddings.
    pub fn has_embeddings(&self) -> bool {
        self.segment.embeddings.is_some()
    }

    /// The segment for an index with this dictionary, which gets its words too.
    pub(in crate::search) fn placed(self, dictionary: &mut Dictionary) -> Segment {
        let here: Vec<TermId> = self.terms.iter().map(|term| dictionary.intern_term(term)).collect();
        for (word, term) in self.words.iter().zip(&self.word_terms) {
            dictionary.learn(word, here[*term as usize]);
        }
        self.segment.renumbered(&here)
    }
}

impl Segment {
    /// Writes a segment whose terms are all terms of its dictionary, numbered from zero.
    fn put(&self, out: &mut Vec<u8>) {
        for (with, range) in self.with.iter().zip(self.starts.windows(2)) {
            put_number(out, *with);
            put_number(out, range[1] - range[0]);
        }
        out.extend_from_slice(&self.entries);
        put_number(out, number(self.len()));
        for at in 0..self.len() {
            self.lengths[at].iter().for_each(|length| put_number(out, *length));
            for terms in [self.names.of(at), self.servers.of(at)] {
                put_number(out, number(terms.len()));
                for term in terms {
                    put_number(out, *term);
                }
            }
            put_number(out, self.twins[at]);
        }
        let embeddings = self.embeddings.as_ref();
        put_number(out, number(embeddings.map_or(0, EmbeddingList::dimensions)));
        out.extend(embeddings.into_iter().flat_map(EmbeddingList::bytes));
    }
}

fn put_texts<'a>(out: &mut Vec<u8>, texts: impl Iterator<Item = &'a str> + Clone) {
    put_number(out, number(texts.clone().count()));
    texts.clone().for_each(|text| put_number(out, number(text.len())));
    texts.for_each(|text| out.extend_from_slice(text.as_bytes()));
}

/// What is left to read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn number(&mut self) -> Option<u32> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u32::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Some(number);
            }
            shift += 7;
            if shift > 28 {
                return None;
            }
        }
    }

    /// A number of items of at least one byte each, so no memory is reserved for more than there can be.
    fn count(&mut self) -> Option<usize> {
        let count = self.number()? as usize;
        (count <= self.0.len()).then_some(count)
    }

    fn number_below(&mut self, limit: u32) -> Option<u32> {
        self.number().filter(|number| *number < limit)
    }

    fn numbers_below(&mut self, count: usize, limit: u32) -> Option<Vec<u32>> {
        (0..count).map(|_| self.number_below(limit)).collect()
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn texts(&mut self) -> Option<Texts> {
        let count = self.count()?;
        let mut end = 0usize;
        let next = |_| {
            end = end.checked_add(self.number()? as usize)?;
            Some(end)
        };
        let ends = (0..count).map(next).collect::<Option<Vec<usize>>>()?;
        let text = str::from_utf8(self.bytes(end)?).ok()?.to_owned();
        ends.iter().all(|end| text.is_char_boundary(*end)).then_some(Texts { text, ends })
    }

    fn segment(&mut self, terms: u32) -> Option<Segment> {
        let (mut with, mut starts) = (Vec::new(), vec![0]);
        let mut end = 0u32;
        for _ in 0..terms {
            with.push(self.number()?);
            end = end.checked_add(self.number()?)?;
            starts.push(end);
        }
        let entries = self.bytes(end as usize)?.to_vec();
        let count = self.count()?;
        let (mut names, mut servers) = (TermLists::default(), TermLists::default());
        let (mut lengths, mut twins) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for at in 0..number(count) {
            let mut length = [0; FIELDS];
            for length in &mut length {
                *length = self.number()?;
            }
            lengths.push(length);
            for lists in [&mut names, &mut servers] {
                for _ in 0..self.count()? {
                    lists.terms.push(self.number_below(terms)?);
                }
                lists.finish_tool();
            }
            twins.push(self.number_below(at + 1)?);
        }
        names.terms.shrink_to_fit();
        servers.terms.shrink_to_fit();
        let dimensions = self.number()? as usize;
        let embeddings = self.bytes(dimensions.checked_mul(count)?)?;
        let embeddings = (dimensions > 0).then(|| EmbeddingList::of_bytes(dimensions, embeddings));
        // No term is in more tools than there are, and a tool that has it takes two bytes.
        let is_possible =
            |(with, range): (&u32, &[u32])| *with as usize <= count && *with <= range[1] - range[0];
        let terms = (0..terms).collect();
        with.iter().zip(starts.windows(2)).all(is_possible).then_some(Segment {
            terms,
            with,
            starts,
            entries,
            lengths,
            names,
            servers,
            twins,
            embeddings,
        })
    }
}

#[cfg(test)]
mod tests;
