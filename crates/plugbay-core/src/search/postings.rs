//! The tools of one term with the scores it gives them: made when a query first has the term, and kept.

use std::ops::Range;

/// A number for a tool that has a term.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) tool: u32,
    pub(super) value: f32,
}

/// The tools that have a term: three lists in one block, each in the order of the tools.
#[derive(Debug, Default)]
pub(super) struct TermPostings {
    entries: Box<[Posting]>,
    /// The start of the shares in names, and of those in the names of servers.
    names: usize,
    servers: usize,
}

impl TermPostings {
    pub(super) fn new(scores: Vec<Posting>, names: &[Posting], servers: &[Posting]) -> Self {
        let (names_start, servers_start) = (scores.len(), scores.len() + names.len());
        let mut entries = scores;
        entries.reserve_exact(names.len() + servers.len());
        entries.extend_from_slice(names);
        entries.extend_from_slice(servers);
        Self { entries: entries.into_boxed_slice(), names: names_start, servers: servers_start }
    }

    /// The scores that the term gives to tools `within` the range.
    pub(super) fn scores(&self, within: &Range<u32>) -> &[Posting] {
        cut(&self.entries[..self.names], within)
    }

    /// The share of the term in the names of tools.
    pub(super) fn names(&self, within: &Range<u32>) -> &[Posting] {
        cut(&self.entries[self.names..self.servers], within)
    }

    /// The share of the term in the names of their servers.
    pub(super) fn servers(&self, within: &Range<u32>) -> &[Posting] {
        cut(&self.entries[self.servers..], within)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.entries.len() * size_of::<Posting>()
    }
}

/// The entries of tools `within` the range; all stand in the order of their tools.
fn cut<'a>(entries: &'a [Posting], within: &Range<u32>) -> &'a [Posting] {
    let start = if within.start == 0 { 0 } else { entries.partition_point(|e| e.tool < within.start) };
    let entries = &entries[start..];
    match entries.last() {
        Some(last) if last.tool >= within.end => &entries[..entries.partition_point(|e| e.tool < within.end)],
        _ => entries,
    }
}
