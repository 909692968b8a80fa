//! The outline of a text that is no JSON: its kind, detected from the beginning, and the lines that matter.

mod diff;
mod headings;
pub(super) mod listing;
mod plain;
mod table;

use super::{Kind, page::Page};

/// From how many lines at the beginning the kind is detected.
const PROBED: usize = 60;
/// How much of a line is read to detect the kind, in bytes.
const PROBED_LINE: usize = 4096;

/// Writes the outline. When in doubt, a text is plain.
pub(super) fn write(page: &mut Page, text: &str, size: &str) -> Kind {
    let probe: Vec<&str> = text.lines().take(PROBED).map(start).collect();
    let lines = Lines::new(text);
    if headings::is_html(text) {
        headings::write_html(page, &lines, size);
        return Kind::Html;
    }
    if let Some(files) = diff::read(text, &probe) {
        diff::write(page, &files, &lines, size);
        return Kind::Diff;
    }
    if let Some(listing) = listing::read(text, &probe) {
        listing::write(page, &listing, &lines, size);
        return Kind::Listing;
    }
    if let Some(columns) = table::columns(&probe) {
        table::write(page, &columns, &lines, size);
        return Kind::Table;
    }
    let headings = if headings::may_be_markdown(text) { headings::markdown(text) } else { Vec::new() };
    if headings::is_markdown(&headings) {
        headings::write_markdown(page, &headings, &lines, size);
        return Kind::Markdown;
    }
    plain::write(page, &lines, size);
    Kind::Text
}

fn start(line: &str) -> &str {
    &line[..line.floor_char_boundary(PROBED_LINE)]
}

/// A text and the places of its lines, which are numbered from 1.
pub(super) struct Lines<'a> {
    pub(super) text: &'a str,
    pub(super) count: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let unfinished = !text.is_empty() && !text.ends_with('\n');
        Self { text, count: breaks + usize::from(unfinished) }
    }

    /// Lines from a number on; the last ones are found from the end.
    pub(super) fn from(&self, number: usize) -> impl Iterator<Item = (usize, &'a str)> {
        let at = match number {
            0 | 1 => Some(0),
            _ if number > self.count => None,
            _ if number > self.count / 2 => {
                let body = self.text.strip_suffix('\n').unwrap_or(self.text).as_bytes();
                memchr::memrchr_iter(b'\n', body).nth(self.count - number).map(|at| at + 1)
            }
            _ => memchr::memchr_iter(b'\n', self.text.as_bytes()).nth(number - 2).map(|at| at + 1),
        };
        let text = &self.text[at.unwrap_or(self.text.len())..];
        text.lines().enumerate().map(move |(at, line)| (number.max(1) + at, line))
    }

    pub(super) fn get(&self, number: usize) -> Option<&'a str> {
        self.from(number).next().map(|(_, line)| line)
    }
}
