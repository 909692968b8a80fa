//! Meaning as a direction: the mean of the vectors of a text's words, from a small table.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{
    document::{Field, each_text},
    index::TermId,
    words,
};
use crate::catalog::Tool;

/// A table of word pieces and their vectors.
pub struct Table {
    dimensions: usize,
    scales: Vec<f32>,
    /// One row of signed bytes per word piece.
    rows: &'static [u8],
    vocabulary: FxHashMap<&'static str, u32>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("pieces", &self.scales.len()).finish_non_exhaustive()
    }
}

impl Table {
    /// `TVEC`, the numbers of rows and columns, a scale per row, the rows, and a word piece per line.
    pub fn read(bytes: &'static [u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(b"TVEC")?;
        let (rows, rest) = rest.split_first_chunk()?;
        let (dimensions, rest) = rest.split_first_chunk()?;
        let (rows, dimensions) =
            (u32::from_le_bytes(*rows) as usize, u32::from_le_bytes(*dimensions) as usize);
        let (scales, rest) = rest.split_at_checked(rows.checked_mul(4)?)?;
        let scales = scales.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let (table, pieces) = rest.split_at_checked(rows.checked_mul(dimensions)?)?;
        let pieces = std::str::from_utf8(pieces).ok()?;
        let vocabulary = pieces.lines().zip(0..).take(rows).collect();
        Some(Self { dimensions, scales, rows: table, vocabulary })
    }

    /// The memory that this holds beside the bytes it reads from.
    pub fn heap_bytes(&self) -> usize {
        self.scales.capacity() * size_of::<f32>() + self.vocabulary.capacity() * size_of::<(&str, u32)>()
    }

    /// Adds the vectors of a text's words.
    fn add(&self, text: &str, weight: f32, sum: &mut [f32]) {
        let (mut word, mut piece) = (String::new(), String::new());
        for part in text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()) {
            word.clear();
            word.extend(part.chars().flat_map(char::to_lowercase));
            self.add_word(&word, weight, &mut piece, sum);
        }
    }

    /// A word is spelt with the longest pieces that are known, from its beginning on.
    fn add_word(&self, word: &str, weight: f32, piece: &mut String, sum: &mut [f32]) {
        let mut start = 0;
        while start < word.len() {
            let mut end = word.len();
            let row = loop {
                if end == start {
                    return; // the rest cannot be spelt
                }
                if word.is_char_boundary(end) {
                    piece.clear();
                    piece.push_str(if start == 0 { "" } else { "##" });
                    piece.push_str(&word[start..end]);
                    if let Some(row) = self.vocabulary.get(piece.as_str()) {
                        break *row as usize;
                    }
                }
                end -= 1;
            };
            let scale = self.scales[row] * weight;
            let row = &self.rows[row * self.dimensions..][..self.dimensions];
            for (sum, value) in sum.iter_mut().zip(row) {
                *sum += scale * f32::from(value.cast_signed());
            }
            start = end;
        }
    }
}

/// What is kept of the meaning of a catalogue.
#[derive(Debug)]
pub(super) struct Meaning {
    table: Arc<Table>,
    pub(super) tools: Directions,
    /// The words of the catalogue that the table knows whole; none if there are too many to compare.
    words: Directions,
    terms: Vec<TermId>,
}

/// With more words than this, one that is unknown is too rarely helped to pay for the search.
const COMPARED_WORDS: usize = 6_000;
/// From this cosine on, one word can stand for another.
const AKIN: f32 = 0.5;
const NEIGHBOURS: usize = 4;
/// What a server's name says of a tool is said of its neighbours too.
const SERVER: f32 = 0.5;

impl Meaning {
    pub(super) fn build<'w>(
        table: Arc<Table>,
        tools: &[(&str, &Tool)],
        catalogue: impl Iterator<Item = (&'w str, TermId)>,
    ) -> Self {
        let mut directions = Directions::new(&table);
        let mut sum = vec![0.0; table.dimensions];
        for (server, tool) in tools {
            sum.fill(0.0);
            each_text(server, tool, |field, text| match field {
                Field::Server => table.add(text, SERVER, &mut sum),
                Field::Name => words::each(text, |word| table.add(word, 1.0, &mut sum)),
                Field::Description => table.add(text, 1.0, &mut sum),
                Field::Parameter | Field::Detail => {}
            });
            directions.push(&sum);
        }
        let known: Vec<(&str, TermId)> =
            catalogue.filter(|(word, _)| table.vocabulary.contains_key(word)).collect();
        let (mut words, mut terms) = (Directions::new(&table), Vec::new());
        if known.len() <= COMPARED_WORDS {
            for (word, term) in known {
                sum.fill(0.0);
                table.add(word, 1.0, &mut sum);
                words.push(&sum);
                terms.push(term);
            }
        }
        Self { table, tools: directions, words, terms }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let terms = self.terms.capacity() * size_of::<TermId>();
        self.tools.bytes.capacity() + self.words.bytes.capacity() + terms
    }

    /// The direction of a text; `None` if no word of it is known.
    pub(super) fn direction(&self, text: &str) -> Option<Vec<i8>> {
        let mut sum = vec![0.0; self.table.dimensions];
        self.table.add(text, 1.0, &mut sum);
        sum.iter().any(|value| *value != 0.0).then(|| unit(&sum).collect())
    }

    /// The terms of the catalogue that are nearest to a word in meaning, with their cosine.
    pub(super) fn neighbours(&self, word: &str) -> Vec<(TermId, f32)> {
        if self.terms.is_empty() || !self.table.vocabulary.contains_key(word) {
            return Vec::new();
        }
        let Some(direction) = self.direction(word) else { return Vec::new() };
        let near = self.terms.iter().enumerate().map(|(at, term)| (*term, self.words.cosine(at, &direction)));
        let mut near: Vec<_> = near.filter(|(_, cosine)| *cosine > AKIN).collect();
        near.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near.truncate(NEIGHBOURS);
        near
    }
}

/// Directions of length one, a byte per dimension.
#[derive(Debug)]
pub(super) struct Directions {
    dimensions: usize,
    bytes: Vec<i8>,
}

/// What a coordinate of one is in a byte.
const ONE: f32 = 127.0;

impl Directions {
    fn new(table: &Table) -> Self {
        Self { dimensions: table.dimensions, bytes: Vec::new() }
    }

    fn push(&mut self, sum: &[f32]) {
        self.bytes.extend(unit(sum));
    }

    /// The cosine of the angle between one of them and another.
    pub(super) fn cosine(&self, at: usize, other: &[i8]) -> f32 {
        let row = &self.bytes[at * self.dimensions..][..self.dimensions];
        let product: i32 = row.iter().zip(other).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        #[expect(clippy::cast_precision_loss, reason = "at most a million or so")]
        let product = product as f32;
        product / (ONE * ONE)
    }
}

fn unit(sum: &[f32]) -> impl Iterator<Item = i8> {
    let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    #[expect(clippy::cast_possible_truncation, reason = "between -127 and 127")]
    sum.iter().map(move |value| (value / length * ONE).round() as i8)
}
