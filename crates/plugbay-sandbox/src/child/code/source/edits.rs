//! Changes of a text that move nothing: blanked parts, other single characters, and a few insertions.

use std::collections::BTreeMap;

use oxc_span::Span;

#[derive(Debug, Default)]
pub(super) struct Edits {
    blanks: Vec<(usize, usize)>,
    replaced: BTreeMap<usize, char>,
    inserted: BTreeMap<usize, &'static str>,
}

impl Edits {
    pub(super) fn blank(&mut self, span: Span) {
        self.blank_range(span.start as usize, span.end as usize);
    }

    pub(super) fn blank_range(&mut self, start: usize, end: usize) {
        if start < end {
            self.blanks.push((start, end));
        }
    }

    pub(super) fn replace(&mut self, offset: usize, with: char) {
        self.replaced.insert(offset, with);
    }

    /// Inserts a text; returns the place and the width of the insertion.
    pub(super) fn insert(&mut self, offset: u32, text: &'static str) -> (usize, usize) {
        self.inserted.insert(offset as usize, text);
        (offset as usize, text.len())
    }

    /// The changed text. Each removed character leaves one space; line ends stay.
    pub(super) fn applied(&self, text: &str) -> String {
        let mut gone = vec![false; text.len()];
        for (start, end) in &self.blanks {
            gone[*start..*end].fill(true);
        }
        let mut changed = String::with_capacity(text.len() + 16);
        for (offset, char) in text.char_indices() {
            changed.extend(self.inserted.get(&offset).copied());
            let is_gone = gone[offset] && !matches!(char, '\n' | '\r' | '\u{2028}' | '\u{2029}');
            changed.push(match self.replaced.get(&offset) {
                Some(other) => *other,
                None if is_gone => ' ',
                None => char,
            });
        }
        changed.extend(self.inserted.range(text.len()..).map(|(_, text)| *text));
        changed
    }
}
