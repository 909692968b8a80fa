//! Replacements in a text, and the properties of its lines.

use std::ops::Range;

/// A part of a text and what replaces it.
pub(crate) type Splice = (Range<usize>, String);

/// The text with all replacements made; they must not overlap.
pub(crate) fn apply(text: &str, mut splices: Vec<Splice>) -> String {
    // A stable sort: of two insertions at one place, the first stays first.
    splices.sort_by_key(|(range, _)| (range.start, range.end));
    let mut out = String::with_capacity(text.len() + 256);
    let mut done = 0;
    for (range, new) in splices {
        out.push_str(&text[done..range.start]);
        out.push_str(&new);
        done = range.end;
    }
    out.push_str(&text[done..]);
    out
}

/// The line break that the text uses.
pub(crate) fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The start of the line that contains this place.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// The start of the line after this place; the end of the text for the last line.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// The blanks at the start of the line that contains this place.
pub(crate) fn indentation(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..at];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Whether only blanks precede this place on its line.
pub(crate) fn is_first_on_line(text: &str, at: usize) -> bool {
    text[line_start(text, at)..at].bytes().all(|byte| byte == b' ' || byte == b'\t')
}
