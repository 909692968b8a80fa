//! Excerpts of a large text within a budget of tokens: lines, matches, pages; each says what remains.

use std::ops::Range;

use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};

use super::{
    page::{self, cost, count, counted},
    text::Lines,
};
use crate::tokens::estimate;

/// The largest compiled pattern, in bytes.
const PATTERN: usize = 256 << 10;
/// How many bytes around a match are shown of a very long line.
const AROUND: usize = 200;
const LONG_LINE: usize = 1000;
/// The smallest budget of an excerpt, in tokens.
const LEAST: usize = 32;

/// Part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The part as it is in the text; matches have their line numbers before them.
    pub text: String,
    /// `lines 1-120 of 4,310; next: lines 121-`.
    pub note: String,
    /// The line or page to go on with.
    pub next: Option<usize>,
}

/// Lines from `from` to `to`, both counted from 1 and included, as far as they fit.
pub fn lines(text: &str, from: usize, to: Option<usize>, tokens: usize) -> Excerpt {
    let lines = Lines::new(text);
    let from = from.max(1);
    let last = to.unwrap_or(lines.count).min(lines.count);
    if from > last {
        let note = format!(
            "no lines {from}-{}: there are {}",
            to.unwrap_or(from),
            counted(lines.count, "line", "lines")
        );
        return Excerpt { text: String::new(), note, next: None };
    }
    let (mut out, mut left, mut shown, mut cut) = (String::new(), tokens.max(LEAST), from - 1, "");
    for (number, line) in lines.from(from).take(last + 1 - from) {
        if number == from && cost(line) > left {
            // Otherwise nothing would ever get past a line that is too long.
            out.push_str(page::prefix(line, left - 1));
            (shown, cut) = (number, " (cut; page reads it whole)");
            break;
        }
        if cost(line) > left {
            break;
        }
        left -= cost(line);
        out.push_str(line);
        out.push('\n');
        shown = number;
    }
    let next = (shown < last).then_some(shown + 1);
    let rest = next.map_or(String::new(), |next| format!("; next: lines {next}-{last}"));
    let note = format!("lines {from}-{shown} of {}{cut}{rest}", count(lines.count));
    Excerpt { text: out, note, next }
}

/// Lines that match a pattern, with lines around them, as far as they fit. An error says what is wrong with a pattern.
pub fn grep(text: &str, pattern: &str, context: usize, tokens: usize) -> Result<Excerpt, String> {
    let wanted = Wanted::new(pattern)?;
    let mut out = Matches { text: String::new(), left: tokens.max(LEAST), next: None, last: 0 };
    let (mut matches, mut shown) = (0, 0);
    let mut before: Vec<(usize, &str)> = Vec::new();
    let mut behind = 0;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        if let Some(found) = wanted.find(line) {
            matches += 1;
            if out.next.is_none() && out.all(&before, number, line, &found) {
                shown += 1;
            }
            before.clear();
            behind = context;
        } else if behind > 0 {
            behind -= 1;
            out.one(number, '-', line);
        } else if context > 0 {
            if before.len() == context {
                before.remove(0);
            }
            before.push((number, line));
        }
    }
    let rest = out.next.map_or(String::new(), |next| {
        format!("; shown: the first {}; next match: line {next}", count(shown))
    });
    let note = format!("{} of {pattern:?}{rest}", counted(matches, "match", "matches"));
    Ok(Excerpt { text: out.text, note, next: out.next })
}

/// A plain string, or a regular expression.
enum Wanted {
    Plain(Box<memmem::Finder<'static>>),
    Pattern(Regex),
}

impl Wanted {
    fn new(pattern: &str) -> Result<Self, String> {
        if !pattern.contains(['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$']) {
            return Ok(Self::Plain(Box::new(memmem::Finder::new(pattern.as_bytes()).into_owned())));
        }
        let regex =
            RegexBuilder::new(pattern).unicode(false).size_limit(PATTERN).dfa_size_limit(PATTERN).build();
        regex.map(Self::Pattern).map_err(|error| error.to_string())
    }

    fn find(&self, line: &str) -> Option<Range<usize>> {
        match self {
            Self::Plain(finder) => finder.find(line.as_bytes()).map(|at| at..at + finder.needle().len()),
            Self::Pattern(regex) => regex.find(line.as_bytes()).map(|found| found.range()),
        }
    }
}

struct Matches {
    text: String,
    left: usize,
    /// The first match that did not fit.
    next: Option<usize>,
    last: usize,
}

impl Matches {
    /// Adds a match with the lines before it, or nothing at all.
    fn all(&mut self, before: &[(usize, &str)], number: usize, line: &str, found: &Range<usize>) -> bool {
        let (length, left, last) = (self.text.len(), self.left, self.last);
        let mut fits = before.iter().all(|(number, line)| self.one(*number, '-', line));
        fits = fits && self.one(number, ':', &around(line, found));
        if !fits {
            self.text.truncate(length);
            (self.left, self.last, self.next) = (left, last, Some(number));
        }
        fits
    }

    fn one(&mut self, number: usize, mark: char, line: &str) -> bool {
        if self.next.is_some() {
            return false;
        }
        let gap = if self.last > 0 && self.last + 1 < number { "--\n" } else { "" };
        let line = if line.len() > LONG_LINE { around(line, &(0..0)) } else { line.to_owned() };
        let text = format!("{gap}{number}{mark} {line}");
        let fits = cost(&text) <= self.left;
        if fits {
            self.left -= cost(&text);
            self.text.push_str(&text);
            self.text.push('\n');
            self.last = number;
        }
        fits
    }
}

/// A line, or the part of a very long one in which a match is.
fn around(line: &str, found: &Range<usize>) -> String {
    if line.len() <= LONG_LINE {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(found.start.saturating_sub(AROUND));
    let end = line.floor_char_boundary((found.end.min(found.start + LONG_LINE) + AROUND).min(line.len()));
    let before = if start > 0 { "…" } else { "" };
    let behind = if end < line.len() { "…" } else { "" };
    format!("{before}{}{behind}", &line[start..end])
}

/// One page of a text, counted from 1. Pages end with a line, or in a long one after a JSON element or word.
pub fn page(text: &str, number: usize, tokens: usize) -> Excerpt {
    let tokens = tokens.max(LEAST);
    let number = number.max(1);
    let (mut start, mut pages, mut found) = (0, 0, 0..0);
    while start < text.len() {
        let end = start + page_length(&text[start..], tokens);
        pages += 1;
        if pages == number {
            found = start..end;
        }
        start = end;
    }
    if number > pages {
        let note = format!("no page {number}: there are {}", counted(pages, "page", "pages"));
        return Excerpt { text: String::new(), note, next: None };
    }
    let next = (number < pages).then_some(number + 1);
    let rest = next.map_or(String::new(), |next| format!("; next: page {next}"));
    let line = 1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..found.start]).count();
    let note = format!("page {number} of {}, from line {}{rest}", count(pages), count(line));
    Excerpt { text: text[found].to_owned(), note, next }
}

/// The length of a page: at least one character. Only the beginning of the text is read.
fn page_length(text: &str, tokens: usize) -> usize {
    // A page of more bytes has plenty of blanks, and may just as well end.
    let window = &text[..text.floor_char_boundary(tokens.saturating_mul(10))];
    let (mut end, mut left) = (0, tokens);
    for line in window.split_inclusive('\n') {
        let is_whole = line.ends_with('\n') || window.len() == text.len();
        if !is_whole {
            break;
        }
        let price = estimate(line) + 1;
        if price > left {
            break;
        }
        left -= price;
        end += line.len();
    }
    if end > 0 {
        return end;
    }
    let most = page::prefix(window, tokens);
    let line = &most[..most.find('\n').map_or(most.len(), |at| at + 1)];
    let late = line.floor_char_boundary(line.len() / 2);
    let behind = |mark: &str| line[late..].rfind(mark).map(|at| late + at + mark.len());
    let length = ["},", "],", ", ", ",", " "].into_iter().find_map(behind).unwrap_or(line.len());
    length.max(text.chars().next().map_or(1, char::len_utf8))
}
