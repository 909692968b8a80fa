//! Members between braces or brackets, separated by commas: JSON objects and lists, TOML inline tables, YAML
//! flow mappings.

use std::ops::Range;

use super::splice::{self, Splice};

/// An object in a text.
#[derive(Debug, Clone)]
pub(crate) struct Braced {
    /// The range between the braces.
    pub(crate) inside: Range<usize>,
    /// Each member, from its key to the end of its value.
    pub(crate) members: Vec<Range<usize>>,
}

/// The style of the surrounding text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout<'a> {
    pub(crate) newline: &'a str,
    /// One level of indentation.
    pub(crate) unit: &'a str,
    pub(crate) comments: Comments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comments {
    /// `// …` and `/* … */`
    Slashes,
    /// `# …`
    Hash,
}

/// How a first member is put between empty braces. Each way can be recognised in the result, so that it can
/// be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    /// On its own lines.
    OnLines,
    /// Directly after the brace, on several lines.
    Behind,
    /// Directly after the brace, on one line.
    InLine,
}

/// Writes a member: on several lines that begin with this indentation, or on one line.
pub(crate) type Write<'a> = &'a dyn Fn(Option<&str>) -> String;

impl Braced {
    /// Adds a member after the last one and after the comments on its line.
    pub(crate) fn append(
        &self,
        text: &str,
        layout: Layout<'_>,
        first: First,
        write: Write<'_>,
    ) -> Vec<Splice> {
        match self.members.len().checked_sub(1) {
            Some(last) => self.insert_after(text, last, layout, write),
            None => self.fill(text, layout, first, write),
        }
    }

    /// Adds a member after this one and after the comments on its line.
    pub(crate) fn insert_after(
        &self,
        text: &str,
        index: usize,
        layout: Layout<'_>,
        write: Write<'_>,
    ) -> Vec<Splice> {
        let member = &self.members[index];
        let after = self.members.get(index + 1).map_or(self.inside.end, |next| next.start);
        let gap = pieces(text, member.end..after, layout.comments);
        let comma = gap.iter().find(|piece| piece.kind == Kind::Comma).map(|piece| piece.range.end);
        let (at, in_comment) = behind_comments(text, &gap, comma.unwrap_or(member.end));
        let before = index.checked_sub(1).map_or(self.inside.start, |before| self.members[before].end);
        let new = if in_comment || text[before..member.start].contains('\n') {
            let indent = self.indent(text, member.start, layout);
            format!("{}{indent}{}", layout.newline, write(Some(&indent)))
        } else {
            format!(" {}", write(None))
        };
        match comma {
            Some(_) => vec![(at..at, format!("{new},"))],
            None => vec![(member.end..member.end, ",".to_owned()), (at..at, new)],
        }
    }

    /// Adds the first member.
    fn fill(&self, text: &str, layout: Layout<'_>, first: First, write: Write<'_>) -> Vec<Splice> {
        let Range { start, end } = self.inside;
        let base = splice::indentation(text, start).to_owned();
        let indent = format!("{base}{}", layout.unit);
        let on_lines = |indent: &str| format!("{}{indent}{}", layout.newline, write(Some(indent)));
        let gap = pieces(text, start..end, layout.comments);
        if let Some(comment) = gap.iter().rfind(|piece| piece.kind.is_comment()) {
            let at = comment.range.end;
            return vec![(at..at, on_lines(&indent))];
        }
        let blanks = &text[start..end];
        let new = match first {
            First::InLine => write(None),
            First::Behind => write(Some(&base)),
            First::OnLines if blanks.contains('\n') => format!(" {}", write(Some(&base))),
            First::OnLines if blanks.is_empty() => format!("{}{}{base}", on_lines(&indent), layout.newline),
            First::OnLines => on_lines(&indent),
        };
        vec![(start..start, new)]
    }

    /// Removes a member, with the blanks before it and one comma. Comments stay.
    pub(crate) fn remove(&self, text: &str, index: usize, comments: Comments) -> Vec<Splice> {
        if self.only(text).is_some() {
            return vec![(self.inside.clone(), String::new())];
        }
        let member = &self.members[index];
        let before = index.checked_sub(1).map_or(self.inside.start, |before| self.members[before].end);
        let after = self.members.get(index + 1).map_or(self.inside.end, |next| next.start);
        let gap_before = pieces(text, before..member.start, comments);
        let gap_after = pieces(text, member.end..after, comments);
        let mut splices = vec![(blanks_before(text, &gap_before, member), String::new())];
        let comma = gap_after.iter().find(|piece| piece.kind == Kind::Comma).or_else(|| {
            let is_last = index + 1 == self.members.len();
            gap_before.iter().find(|piece| is_last && index > 0 && piece.kind == Kind::Comma)
        });
        splices.extend(comma.map(|comma| (comma.range.clone(), String::new())));
        splices
    }

    /// The only member with its surroundings, if there is nothing else between the braces, not even comments.
    pub(crate) fn only<'t>(&self, text: &'t str) -> Option<Only<'t>> {
        let [member] = self.members.as_slice() else { return None };
        let before = &text[self.inside.start..member.start];
        let after = &text[member.end..self.inside.end];
        let is_blank = |text: &str| text.bytes().all(|byte| byte.is_ascii_whitespace());
        (is_blank(before) && is_blank(after)).then_some(Only { before, after })
    }

    /// The indentation of a member that begins a line, or else the one that it would have.
    fn indent(&self, text: &str, member: usize, layout: Layout<'_>) -> String {
        if splice::is_first_on_line(text, member) {
            return splice::indentation(text, member).to_owned();
        }
        format!("{}{}", splice::indentation(text, self.inside.start), layout.unit)
    }
}

/// The blanks around a member that is alone between its braces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Only<'t> {
    pub(crate) before: &'t str,
    pub(crate) after: &'t str,
}

impl<'t> Only<'t> {
    /// The blanks that were between the braces before [`First::OnLines`] put the member there.
    pub(crate) fn blanks(self) -> &'t str {
        if self.before.contains('\n') && self.after.contains('\n') { "" } else { self.after }
    }
}

/// A part of the text between two members.
#[derive(Debug, Clone)]
struct Piece {
    kind: Kind,
    range: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    LineComment,
    BlockComment,
    Comma,
    Other,
}

impl Kind {
    fn is_comment(self) -> bool {
        matches!(self, Self::LineComment | Self::BlockComment)
    }
}

fn pieces(text: &str, range: Range<usize>, comments: Comments) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let (kind, length) = piece(&text[at..range.end], comments);
        pieces.push(Piece { kind, range: at..at + length });
        at += length;
    }
    pieces
}

fn piece(rest: &str, comments: Comments) -> (Kind, usize) {
    let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
    let opens = |mark: &str| rest.starts_with(mark);
    match comments {
        Comments::Slashes if opens("//") => return (Kind::LineComment, line),
        Comments::Slashes if opens("/*") => {
            return (Kind::BlockComment, rest.find("*/").map_or(rest.len(), |end| end + 2));
        }
        Comments::Hash if opens("#") => return (Kind::LineComment, line),
        _ => {}
    }
    if opens(",") {
        return (Kind::Comma, 1);
    }
    match rest.len() - rest.trim_start().len() {
        0 => (Kind::Other, rest.chars().next().map_or(1, char::len_utf8)),
        blank => (Kind::Blank, blank),
    }
}

/// The place after the comments on the same line, and whether the last one extends to the end of the line.
fn behind_comments(text: &str, gap: &[Piece], from: usize) -> (usize, bool) {
    let mut at = from;
    for piece in gap.iter().filter(|piece| piece.range.start >= from) {
        match piece.kind {
            Kind::Blank if !text[piece.range.clone()].contains('\n') => {}
            Kind::BlockComment => at = piece.range.end,
            Kind::LineComment => return (piece.range.end, true),
            _ => break,
        }
    }
    (at, false)
}

/// The range of the member with the blanks before it; blanks that end a line comment stay.
fn blanks_before(text: &str, gap: &[Piece], member: &Range<usize>) -> Range<usize> {
    let (last, above) = match gap {
        [.., above, last] if last.kind == Kind::Blank => (Some(last), Some(above)),
        [last] if last.kind == Kind::Blank => (Some(last), None),
        _ => (None, gap.last()),
    };
    let ends_comment = above.is_some_and(|piece| piece.kind == Kind::LineComment);
    let rest = text[member.end..].trim_start_matches([' ', '\t', '\r', ',']);
    let start = match last {
        Some(blanks) if !ends_comment || rest.starts_with('\n') => blanks.range.start,
        _ => member.start,
    };
    start..member.end
}
