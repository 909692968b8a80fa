//! Where the elements of an array begin, as far as samples of them need it.

use super::Id;
use crate::wire::Span;

/// So many beginnings are kept of one array.
const KEPT: usize = 32;

/// An array, or an object used as a map, whose elements are worth samples.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) node: Id,
    pub(crate) span: Span,
    pub(crate) count: usize,
    /// Its elements are members: key and value.
    pub(crate) is_map: bool,
    /// The first, one in the middle and the last: which it is, and where it begins.
    pub(crate) samples: Vec<(usize, usize)>,
}

impl Rows {
    pub(super) fn is_in(&self, outer: &Self) -> bool {
        outer.span.start < self.span.start && self.span.end < outer.span.end
    }
}

/// Beginnings of elements while an array is read: every n-th, and n doubles when they become many.
pub(super) struct Starts {
    begin: usize,
    pub(super) count: usize,
    every: usize,
    kept: Vec<usize>,
    first: usize,
    last: usize,
}

impl Starts {
    pub(super) fn new(begin: usize) -> Self {
        Self { begin, count: 0, every: 1, kept: Vec::new(), first: 0, last: 0 }
    }

    pub(super) fn note(&mut self, start: usize) {
        if self.count == 0 {
            self.first = start;
        } else if self.count % self.every == 0 {
            if self.kept.len() == KEPT {
                self.thin();
            }
            if self.count % self.every == 0 {
                self.kept.push(start);
            }
        }
        self.last = start;
        self.count += 1;
    }

    /// Those of every 2n-th element stay: the kept ones are n, 2n, 3n and so on.
    fn thin(&mut self) {
        self.every *= 2;
        let mut place = 0;
        self.kept.retain(|_| {
            place += 1;
            place % 2 == 0
        });
    }

    pub(super) fn rows(self, node: Id, end: usize) -> Rows {
        let mut samples = Vec::new();
        if self.count > 0 {
            samples.push((0, self.first));
        }
        let middle = (self.count / 2 / self.every).max(1);
        if let Some(start) = self.kept.get(middle - 1).filter(|_| self.count > 2) {
            samples.push((middle * self.every, *start));
        }
        if self.count > 1 {
            samples.push((self.count - 1, self.last));
        }
        Rows { node, span: self.begin..end, count: self.count, is_map: false, samples }
    }

    pub(super) fn members(self, node: Id, end: usize) -> Rows {
        Rows { is_map: true, ..self.rows(node, end) }
    }
}
