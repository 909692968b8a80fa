//! The text of one file: the place of a byte, and the safe display of its line.

use std::path::{Path, PathBuf};

use jsonc_parser::common::Range;

use super::{
    diagnostic::{Diagnostic, Kind, Position, Severity, Snippet, printable},
    scan::{self, Scan},
    yaml,
};

/// Widest line that is shown whole, in characters; of a longer one only the part around the problem is shown.
const WIDEST: usize = 100;
/// Characters kept before the problem when a line is cut.
const LEAD: usize = 30;

#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) scan: Scan,
    pub(super) syntax: Syntax,
}

/// The syntax of a file, determined by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Jsonc,
    Yaml,
}

impl Syntax {
    pub(super) fn of(path: &Path) -> Self {
        let extension = path.extension().unwrap_or_default();
        let is_yaml = ["yaml", "yml"].iter().any(|yaml| extension.eq_ignore_ascii_case(yaml));
        if is_yaml { Self::Yaml } else { Self::Jsonc }
    }

    fn scan(self, text: &str) -> Scan {
        match self {
            Self::Jsonc => scan::scan(text),
            Self::Yaml => Scan { secrets: yaml::secrets(text), problem: None },
        }
    }
}

impl Source {
    pub(super) fn new(path: &Path, bytes: &[u8]) -> Result<Self, Box<Diagnostic>> {
        // Windows editors put a byte order mark in front; it is not part of the text.
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let text = String::from_utf8_lossy(bytes).into_owned();
        let syntax = Syntax::of(path);
        let source = Self { path: path.into(), scan: syntax.scan(&text), text, syntax };
        let Err(error) = std::str::from_utf8(bytes) else {
            return Ok(source);
        };
        let start = error.valid_up_to();
        let at = Range::new(start, start + char::REPLACEMENT_CHARACTER.len_utf8());
        let help = Some("save the file as UTF-8".into());
        let problem = source.diagnostic(Severity::Error, at, "this is not UTF-8 text".into(), help);
        Err(Box::new(problem.of_kind(Kind::Unreadable)))
    }

    /// The range of `needle` inside `within`, else `within` itself.
    pub(super) fn locate(&self, within: Range, needle: &str) -> Range {
        let within = self.whole(within);
        let found = self.part(within).find(needle);
        found.map_or(within, |at| Range::new(within.start + at, within.start + at + needle.len()))
    }

    /// The text at a range.
    pub(super) fn part(&self, at: Range) -> &str {
        let at = self.whole(at);
        &self.text[at.start..at.end]
    }

    /// The range, extended to whole characters, whatever a parser says.
    fn whole(&self, at: Range) -> Range {
        let start = self.text.floor_char_boundary(at.start);
        Range::new(start, self.text.ceil_char_boundary(at.end).max(start))
    }

    /// The number of the line that contains this byte, counted from one.
    pub(super) fn line(&self, byte: usize) -> usize {
        self.text.bytes().take(byte).filter(|byte| *byte == b'\n').count() + 1
    }

    pub(super) fn diagnostic(
        &self,
        severity: Severity,
        at: Range,
        message: String,
        help: Option<String>,
    ) -> Diagnostic {
        let at = self.whole(at);
        let start = at.start;
        let line_start = self.text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |length| start + length);
        let before = self.text[line_start..start].chars().count();
        let line = self.line(line_start);
        let marked = self.text[start..at.end.clamp(start, line_end)].trim_end().chars().count();

        let whole = &self.text[line_start..line_end];
        let skipped = if whole.chars().count() > WIDEST { before.saturating_sub(LEAD) } else { 0 };
        let window = whole.trim_end().char_indices().skip(skipped).take(WIDEST);
        let indent = before - skipped;
        let snippet = Snippet {
            line: window.map(|(offset, c)| self.shown(line_start + offset, c, at)).collect(),
            indent,
            width: marked.min(WIDEST.saturating_sub(indent)).max(1),
        };
        Diagnostic {
            severity,
            kind: Kind::default(),
            file: self.path.clone(),
            position: Some(Position { line, column: before + 1 }),
            message,
            help,
            snippet: Some(Box::new(snippet)),
        }
    }

    /// Masks secrets character by character, so that columns stay correct. A marked part inside a secret
    /// stays readable: it is the `${VAR}` that the message is about.
    fn shown(&self, offset: usize, c: char, marked: Range) -> char {
        let after = self.scan.secrets.partition_point(|secret| secret.start <= offset);
        let secret = after.checked_sub(1).map(|before| self.scan.secrets[before]);
        let Some(secret) = secret.filter(|secret| offset < secret.end) else {
            return printable(c);
        };
        let is_reference = secret.start <= marked.start && marked.end <= secret.end;
        if is_reference && (marked.start..marked.end).contains(&offset) { printable(c) } else { '*' }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, marked: &str, expected_line: &str, expected_place: (usize, usize)) {
        let source = Source::new(Path::new("f"), text.as_bytes()).unwrap();
        let start = source.text.find(marked).unwrap();
        let at = Range::new(start, start + marked.len());
        let diagnostic = source.diagnostic(Severity::Error, at, String::new(), None);
        let snippet = diagnostic.snippet.unwrap();
        let position = diagnostic.position.unwrap();
        assert_eq!(snippet.line, expected_line);
        assert_eq!((position.line, position.column), expected_place);
        assert_eq!(snippet.width, marked.chars().count());
    }

    #[test]
    fn places_count_characters_and_take_no_notice_of_line_ends() {
        check("{\r\n\t\"ä\": 1, \"b\": 2\r\n}", "\"b\"", " \"ä\": 1, \"b\": 2", (2, 10));
        check("\u{FEFF}{ \"a\": 1 }", "1", "{ \"a\": 1 }", (1, 8));
    }

    #[test]
    fn a_long_line_is_cut_around_the_problem() {
        let long = format!("[{}7{}]", "1,".repeat(500), ",1".repeat(500));
        let shown = format!("{}7{}", "1,".repeat(15), ",1".repeat(34) + ",");
        check(&long, "7", &shown, (1, 1002));
    }

    #[test]
    fn secrets_are_masked_but_not_the_reference_in_question() {
        let text = r#"{"env": {"A": "hunter2", "B": "key ${X}"}, "c": 1}"#;
        check(text, "1", r#"{"env": {"A": "*******", "B": "********"}, "c": 1}"#, (1, 49));
        check(text, "${X}", r#"{"env": {"A": "*******", "B": "****${X}"}, "c": 1}"#, (1, 36));
    }

    #[test]
    fn any_range_has_a_place_in_the_file() {
        let source = Source::new(Path::new("f"), "a\nbäc€".as_bytes()).unwrap();
        let place = |start, end| {
            let problem = source.diagnostic(Severity::Error, Range { start, end }, String::new(), None);
            let position = problem.position.unwrap();
            (position.line, position.column, problem.snippet.unwrap().width)
        };
        assert_eq!(place(2, 4), (2, 1, 2), "a range ends within `ä`");
        assert_eq!(place(4, 5), (2, 2, 1), "a range begins within `ä`");
        assert_eq!(place(5, 2), (2, 3, 1));
        assert_eq!(place(99, 100), (2, 5, 1));
        for (start, end) in (0..12).flat_map(|start| (0..12).map(move |end| (start, end))) {
            place(start, end);
            source.locate(Range { start, end }, "c");
        }
    }
}
