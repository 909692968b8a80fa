//! Embeddings of texts: the mean of the vectors of their words, from a small table.

use std::sync::Arc;

use super::{
    dictionary::{TermId, Word},
    document::Field,
    index::Index,
    segment::WordInField,
    words::Origin,
};

/// A table of word pieces and their vectors, read in place.
pub struct EmbeddingTable {
    dimensions: usize,
    /// A factor per row.
    scales: &'static [[u8; 4]],
    /// One row of signed bytes per word piece.
    rows: &'static [u8],
    /// One piece per line, in the order of their bytes: a binary search finds them, without a map.
    pieces: &'static [u8],
    /// Where the lines begin; one more at the end.
    lines: Vec<u32>,
    /// The first bytes of each piece: mostly nothing else has to be compared.
    heads: Vec<u64>,
    /// The lines by their first bytes: of pieces that begin a word, and of those that continue one.
    beginning: Vec<u32>,
    continuing: Vec<u32>,
}

/// The prefix of a piece that continues a word.
const CONTINUING: &str = "##";

impl std::fmt::Debug for EmbeddingTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddingTable").field("pieces", &self.scales.len()).finish_non_exhaustive()
    }
}

impl EmbeddingTable {
    /// Reads `TVEC`, the numbers of rows and columns, a scale per row, the rows, and a word piece per line,
    /// in order.
    pub fn read(bytes: &'static [u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(b"TVEC")?;
        let (rows, rest) = rest.split_first_chunk()?;
        let (dimensions, rest) = rest.split_first_chunk()?;
        let (rows, dimensions) =
            (u32::from_le_bytes(*rows) as usize, u32::from_le_bytes(*dimensions) as usize);
        let (scales, rest) = rest.split_at_checked(rows.checked_mul(4)?)?;
        let (table, pieces) = rest.split_at_checked(rows.checked_mul(dimensions)?)?;
        std::str::from_utf8(pieces).ok()?;
        let ends = memchr::memchr_iter(b'\n', pieces).take(rows);
        let mut lines = Vec::with_capacity(rows + 1);
        lines.push(0);
        for end in ends {
            lines.push(u32::try_from(end + 1).ok()?);
        }
        if lines.len() != rows + 1 {
            return None;
        }
        let scales = scales.as_chunks().0;
        let (heads, beginning, continuing) = (Vec::new(), Vec::new(), Vec::new());
        let mut table = Self { dimensions, scales, rows: table, pieces, lines, heads, beginning, continuing };
        let whole = |row| table.line(row).strip_prefix(CONTINUING.as_bytes()).unwrap_or(table.line(row));
        table.heads = (0..rows).map(|row| head(whole(row))).collect();
        table.beginning = table.first_bytes("");
        table.continuing = table.first_bytes(CONTINUING);
        Some(table)
    }

    /// For each byte, the first line that has it or a later one after `before`; one more at the end.
    fn first_bytes(&self, before: &str) -> Vec<u32> {
        let mut wanted = before.as_bytes().to_vec();
        wanted.push(0);
        let mut starts: Vec<u32> = (0..=u8::MAX)
            .map(|byte| {
                if let Some(last) = wanted.last_mut() {
                    *last = byte;
                }
                self.first_from(&wanted)
            })
            .collect();
        // No line that begins with `before` is greater than this.
        let end = [before.as_bytes(), &[u8::MAX, u8::MAX]].concat();
        starts.push(self.first_from(&end));
        starts
    }

    fn first_from(&self, wanted: &[u8]) -> u32 {
        let count = self.lines.len() - 1;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.line(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        u32::try_from(low).unwrap_or(u32::MAX)
    }

    /// The memory that this holds beside the bytes it reads from.
    pub fn heap_bytes(&self) -> usize {
        let numbers = self.lines.capacity() + self.beginning.capacity() + self.continuing.capacity();
        numbers * size_of::<u32>() + self.heads.capacity() * size_of::<u64>()
    }

    fn line(&self, row: usize) -> &'static [u8] {
        &self.pieces[self.lines[row] as usize..self.lines[row + 1] as usize - 1]
    }

    /// The row of a piece that begins a word, or continues one.
    fn find(&self, piece: &str, continues: bool) -> Option<usize> {
        let piece = piece.as_bytes();
        let (starts, before) =
            if continues { (&self.continuing, CONTINUING.len()) } else { (&self.beginning, 0) };
        let first = usize::from(*piece.first()?);
        let (mut low, mut high) = (starts[first] as usize, starts[first + 1] as usize);
        let wanted = head(piece);
        while low < high {
            let middle = usize::midpoint(low, high);
            let rest = || self.line(middle)[before..].cmp(piece);
            match self.heads[middle].cmp(&wanted).then_with(rest) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// The longest piece that a text begins with: its row and its length.
    ///
    /// Of the pieces that do not sort after the text, the last shares the most with it. If the text does
    /// not begin with that piece, it can only begin with one within the shared part.
    fn longest(&self, text: &str, continues: bool) -> Option<(usize, usize)> {
        let mut text = text.as_bytes();
        let (starts, before) =
            if continues { (&self.continuing, CONTINUING.len()) } else { (&self.beginning, 0) };
        let first = usize::from(*text.first()?);
        let (start, mut end) = (starts[first] as usize, starts[first + 1] as usize);
        loop {
            let (mut low, mut high) = (start, end);
            let wanted = head(text);
            while low < high {
                let middle = usize::midpoint(low, high);
                let rest = || self.line(middle)[before..].cmp(text);
                if self.heads[middle].cmp(&wanted).then_with(rest).is_le() {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            let row = low.checked_sub(1).filter(|row| *row >= start)?;
            let piece = &self.line(row)[before..];
            let shared = piece.iter().zip(text).take_while(|(a, b)| a == b).count();
            if shared == piece.len() {
                return Some((row, shared));
            }
            (text, end) = (&text[..shared], row);
        }
    }

    /// Adds the vector of a word in small letters, put together from the longest known pieces, from its
    /// beginning on.
    fn add(&self, word: &str, sum: &mut [f32]) {
        let mut start = 0;
        while start < word.len() {
            // A piece consists of whole characters, so the rest does too.
            let Some((row, length)) = self.longest(&word[start..], start > 0) else { return };
            self.add_row(row, sum);
            start += length;
        }
    }

    fn add_row(&self, row: usize, sum: &mut [f32]) {
        let scale = f32::from_le_bytes(self.scales[row]);
        let row = &self.rows[row * self.dimensions..][..self.dimensions];
        for (sum, value) in sum.iter_mut().zip(row) {
            *sum += scale * f32::from(value.cast_signed());
        }
    }
}

/// The first bytes of a piece as one number, to be compared at once.
fn head(piece: &[u8]) -> u64 {
    let mut head = [0; 8];
    let length = piece.len().min(head.len());
    head[..length].copy_from_slice(&piece[..length]);
    u64::from_be_bytes(head)
}

/// The embeddings of the words of a catalog; those of its tools are in the segments of the index.
#[derive(Debug)]
pub(super) struct Embeddings {
    table: Arc<EmbeddingTable>,
    /// The words of the catalog that the table has as one piece; none if there are too many to compare.
    words: EmbeddingList,
    terms: Vec<TermId>,
}

/// With more words than this, neighbours of unknown words are not searched: they help too rarely.
const COMPARED_WORDS: usize = 6_000;
/// From this cosine on, one word can stand for another.
const AKIN: f32 = 0.5;
const NEIGHBOURS: usize = 4;
/// The weight of a server's name, which its other tools share.
const SERVER: f32 = 0.5;

/// Builds the embeddings of tools word by word.
pub(super) struct EmbeddingsBuilder {
    table: Arc<EmbeddingTable>,
    tools: EmbeddingList,
    /// The sum for the tool whose words are being added.
    sum: Vec<f32>,
    /// The vectors of the words so far, in the order in which they were first needed.
    vectors: Vec<f32>,
    /// The place of each word's vector, by the word's number.
    places: Vec<Option<usize>>,
}

impl EmbeddingsBuilder {
    pub(super) fn new(table: Arc<EmbeddingTable>) -> Self {
        let sum = vec![0.0; table.dimensions];
        Self { tools: EmbeddingList::new(&table), sum, vectors: Vec::new(), places: Vec::new(), table }
    }

    /// Ends a tool: all its words have been added.
    pub(super) fn finish_tool(&mut self) {
        self.tools.push(&self.sum);
        self.sum.fill(0.0);
    }

    /// The embeddings of the tools so far. The words are kept for the next ones.
    pub(super) fn take(&mut self) -> EmbeddingList {
        let next = EmbeddingList::new(&self.table);
        let mut tools = std::mem::replace(&mut self.tools, next);
        tools.bytes.shrink_to_fit();
        tools
    }

    /// Adds a word of a tool.
    pub(super) fn add_word(&mut self, (field, text, word, origin): WordInField<'_>) {
        let weight = match field {
            Field::Name => 1.0,
            Field::Server if origin == Origin::Written => SERVER,
            Field::Description if origin == Origin::Written => 1.0,
            _ => return,
        };
        let start = self.place(text, word);
        let vector = &self.vectors[start..][..self.sum.len()];
        for (sum, value) in self.sum.iter_mut().zip(vector) {
            *sum += weight * value;
        }
    }

    fn place(&mut self, text: &str, word: Word) -> usize {
        let number = word.number as usize;
        if self.places.len() <= number {
            self.places.resize(number + 1, None);
        }
        *self.places[number].get_or_insert_with(|| {
            let start = self.vectors.len();
            self.vectors.resize(start + self.sum.len(), 0.0);
            self.table.add(text, &mut self.vectors[start..]);
            start
        })
    }
}

impl Embeddings {
    pub(super) fn new(table: Arc<EmbeddingTable>, index: &Index) -> Self {
        let mut known: Vec<(usize, TermId)> = Vec::new();
        index.each_word(|word, term| {
            if known.len() <= COMPARED_WORDS {
                known.extend(table.find(word, false).map(|row| (row, term)));
            }
        });
        let (mut words, mut terms) = (EmbeddingList::new(&table), Vec::new());
        if known.len() <= COMPARED_WORDS {
            known.sort_unstable();
            let mut sum = vec![0.0; table.dimensions];
            for (row, term) in known {
                sum.fill(0.0);
                table.add_row(row, &mut sum);
                words.push(&sum);
                terms.push(term);
            }
        }
        Self { table, words, terms }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let terms = self.terms.capacity() * size_of::<TermId>();
        self.words.heap_bytes() + terms
    }

    /// An empty sum, to which the words of a text are added.
    pub(super) fn nothing(&self) -> Vec<f32> {
        vec![0.0; self.table.dimensions]
    }

    pub(super) fn add(&self, word: &str, sum: &mut [f32]) {
        self.table.add(word, sum);
    }

    /// Whether the table has a word as one piece: then it is a word of some language.
    pub(super) fn has(&self, word: &str) -> bool {
        self.table.find(word, false).is_some()
    }

    /// The terms of the catalog that are nearest to a word, with their cosine.
    pub(super) fn neighbours(&self, word: &str) -> Vec<(TermId, f32)> {
        let Some(row) = self.table.find(word, false).filter(|_| !self.terms.is_empty()) else {
            return Vec::new();
        };
        let mut sum = self.nothing();
        self.table.add_row(row, &mut sum);
        let Some(embedding) = Embedding::of(&sum) else { return Vec::new() };
        let near = self.terms.iter().enumerate().map(|(at, term)| (*term, self.words.cosine(at, &embedding)));
        let mut near: Vec<_> = near.filter(|(_, cosine)| *cosine > AKIN).collect();
        near.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near.truncate(NEIGHBOURS);
        near
    }
}

/// A list of embeddings of length one, a byte per dimension.
#[derive(Debug)]
pub(super) struct EmbeddingList {
    dimensions: usize,
    bytes: Vec<i8>,
}

/// An embedding to compare with others, in numbers wide enough to be multiplied directly.
#[derive(Debug)]
pub(super) struct Embedding(Vec<i16>);

/// The byte for a coordinate of one.
const ONE: f32 = 127.0;

impl Embedding {
    /// `None` for a text of which no word is known.
    pub(super) fn of(sum: &[f32]) -> Option<Self> {
        sum.iter().any(|value| *value != 0.0).then(|| Self(unit(sum).map(i16::from).collect()))
    }
}

impl EmbeddingList {
    fn new(table: &EmbeddingTable) -> Self {
        Self { dimensions: table.dimensions, bytes: Vec::new() }
    }

    /// Embeddings from the bytes that [`Self::bytes`] gave.
    pub(super) fn of_bytes(dimensions: usize, bytes: &[u8]) -> Self {
        Self { dimensions, bytes: bytes.iter().map(|byte| byte.cast_signed()).collect() }
    }

    pub(super) fn bytes(&self) -> impl Iterator<Item = u8> {
        self.bytes.iter().map(|byte| byte.cast_unsigned())
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    fn push(&mut self, sum: &[f32]) {
        self.bytes.extend(unit(sum));
    }

    /// The cosine of the angle between one of them and another.
    #[inline]
    pub(super) fn cosine(&self, at: usize, other: &Embedding) -> f32 {
        let row = &self.bytes[at * self.dimensions..][..self.dimensions];
        let product = row.iter().zip(&other.0).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>();
        #[expect(clippy::cast_precision_loss, reason = "at most a million or so")]
        let product = product as f32;
        product / (ONE * ONE)
    }
}

fn unit(sum: &[f32]) -> impl Iterator<Item = i8> {
    let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    // Rounded by hand: without newer instructions, `round` is a call for each coordinate.
    #[expect(clippy::cast_possible_truncation, reason = "between -127 and 127")]
    sum.iter().map(move |value| (value / length * ONE + 0.5f32.copysign(*value)) as i8)
}
