//! The beginnings of an array's elements, as far as samples need them.

use super::Id;
use crate::wire::{Span, skip};

/// How many beginnings of one array are kept.
const KEPT: usize = 32;

/// An array, or an object used as a map, whose elements are worth samples.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) node: Id,
    pub(crate) span: Span,
    pub(crate) count: usize,
    /// Its elements are members: key and value.
    pub(crate) is_map: bool,
    /// The first element, one in the middle and the last: the number of each, and where it begins.
    pub(crate) samples: Vec<(usize, usize)>,
}

impl Rows {
    pub(super) fn is_in(&self, outer: &Self) -> bool {
        outer.span.start < self.span.start && self.span.end < outer.span.end
    }
}

/// Beginnings of elements while an array is read: every n-th, and n doubles when they become many.
#[derive(Debug, Default)]
pub(super) struct Starts {
    begin: usize,
    pub(super) count: usize,
    /// The bits that are zero in the numbers of kept elements.
    mask: usize,
    /// The numbers of kept elements, and where they begin.
    kept: Vec<(usize, usize)>,
    first: usize,
    last: usize,
    /// Elements that were counted but not read.
    pub(super) passed: usize,
}

impl Starts {
    /// Begins another array, and reuses the memory.
    pub(super) fn reset(&mut self, begin: usize) {
        self.kept.clear();
        (self.begin, self.count, self.mask, self.first, self.last, self.passed) = (begin, 0, 0, 0, 0, 0);
    }

    pub(super) fn note(&mut self, start: usize) {
        if self.count == 0 {
            self.first = start;
        } else if self.count & self.mask == 0 {
            self.keep(start);
        }
        self.last = start;
        self.count += 1;
    }

    /// Counts elements of which only the last one's beginning is known.
    pub(super) fn pass(&mut self, elements: usize, last: usize) {
        self.count += elements;
        self.passed += elements;
        self.last = last;
    }

    /// Keeps a beginning. When they become many, only those of every 2n-th element stay.
    fn keep(&mut self, start: usize) {
        if self.kept.len() == KEPT {
            self.mask = self.mask << 1 | 1;
            self.kept.retain(|(place, _)| place & self.mask == 0);
        }
        if self.count & self.mask == 0 {
            self.kept.push((self.count, start));
        }
    }

    pub(super) fn rows(&self, node: Id, end: usize) -> Rows {
        let mut samples = Vec::new();
        if self.count > 0 {
            samples.push((0, self.first));
        }
        let middle = self.kept.iter().min_by_key(|(place, _)| place.abs_diff(self.count / 2));
        samples.extend(middle.filter(|_| self.count > 2));
        if self.count > 1 {
            samples.push((self.count - 1, self.last));
        }
        Rows { node, span: self.begin..end, count: self.count, is_map: false, samples }
    }
}

impl Rows {
    /// Finds samples of a map, whose members were only counted.
    pub(super) fn find_members(&mut self, json: &[u8]) {
        let (first, middle) = (self.span.start + 1, self.count / 2);
        let before = skip::elements(json, first, middle);
        let rest = skip::elements(json, before.next + 1, self.count - middle);
        self.samples = vec![(0, first), (middle, before.next + 1), (self.count - 1, rest.last)];
    }
}
