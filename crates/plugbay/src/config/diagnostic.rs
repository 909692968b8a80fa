//! A problem in a configuration file, shown with its place in the manner of a compiler.

use std::{fmt, path::PathBuf};

/// A problem in a configuration file: what, where, and how to fix it. Contains no expanded value, so it may be
/// logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub kind: Kind,
    /// Empty if no file causes the problem.
    pub file: PathBuf,
    /// Absent if the problem concerns the whole file.
    pub position: Option<Position>,
    pub message: String,
    pub help: Option<String>,
    pub(super) snippet: Option<Box<Snippet>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The part that it points at is not used.
    Error,
    /// Everything is used, but perhaps not as intended.
    Warning,
}

/// The kind of a problem, for a program that can fix it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Kind {
    /// A value that cannot be used, or a contradiction.
    #[default]
    Other,
    /// The file cannot be read or parsed.
    Unreadable,
    /// An unknown key, and the most similar known one.
    UnknownKey { key: String, near: Option<String> },
    /// A key that belongs into this neighbouring object, or elsewhere.
    Misplaced { key: String, inner: Option<String> },
    /// `${VAR}` without a value.
    Unset { variable: String },
    /// A reference that only another program can expand.
    Foreign,
    /// A project's file without the user's approval.
    Unapproved,
    /// Tools of a remote without a remote, which the environment may still provide.
    NoRemote,
}

/// Counted from one; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// The line that the problem is about, already masked, cut and made safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snippet {
    pub(super) line: String,
    /// Number of characters before the marked part.
    pub(super) indent: usize,
    /// Number of marked characters.
    pub(super) width: usize,
}

impl Diagnostic {
    /// A problem that concerns the whole file.
    pub(super) fn of_file(
        severity: Severity,
        file: impl Into<PathBuf>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        let (kind, help) = (Kind::default(), Some(help.into()));
        Self {
            severity,
            kind,
            file: file.into(),
            position: None,
            message: message.into(),
            help,
            snippet: None,
        }
    }

    pub(super) fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The whole diagnostic on one line, for places that show a server's failure.
    pub fn one_line(&self) -> String {
        let Self { message, .. } = self;
        let help = self.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        let place = self.place();
        let place = if place.is_empty() { place } else { format!(" ({place})") };
        format!("{message}{place}{help}")
    }

    /// The file, with line and column if it concerns only a part.
    pub(super) fn place(&self) -> String {
        let file = plain(&self.file.to_string_lossy());
        match self.position {
            Some(Position { line, column }) => format!("{file}:{line}:{column}"),
            None => file,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.position.map(|at| at.line.to_string()).unwrap_or_default();
        let gutter = " ".repeat(number.len());
        write!(f, "{}: {}\n{gutter}--> {}", self.severity, self.message, self.place())?;
        if let Some(Snippet { line, indent, width }) = self.snippet.as_deref() {
            let marks = "^".repeat(*width);
            write!(f, "\n{gutter} |\n{number} | {line}\n{gutter} | {:indent$}{marks}", "")?;
        }
        match &self.help {
            Some(help) => write!(f, "\n{gutter} = help: {help}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// Text of a file for a message: short, and without characters that would control a terminal.
pub(super) fn quote(text: &str) -> String {
    const LONGEST: usize = 60;
    let shown: String = text.chars().take(LONGEST).map(printable).collect();
    let rest = if text.chars().nth(LONGEST).is_some() { "…" } else { "" };
    format!("`{shown}{rest}`")
}

/// Replaces one character by one, so that columns stay correct.
pub(super) fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        '"' | '\'' | '\\' => c,
        c if c.escape_debug().len() > 1 => '\u{FFFD}',
        c => c,
    }
}

fn plain(text: &str) -> String {
    text.chars().map(printable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_like_a_compilers_message() {
        let diagnostic = Diagnostic {
            severity: Severity::Warning,
            kind: Kind::Other,
            file: "config.jsonc".into(),
            position: Some(Position { line: 12, column: 3 }),
            message: "unknown key `comand`".into(),
            help: Some("did you mean `command`?".into()),
            snippet: Some(Box::new(Snippet { line: "  \"comand\": 1".into(), indent: 2, width: 8 })),
        };
        let expected = "\
warning: unknown key `comand`
  --> config.jsonc:12:3
   |
12 |   \"comand\": 1
   |   ^^^^^^^^
   = help: did you mean `command`?";
        assert_eq!(diagnostic.to_string(), expected);
        assert_eq!(
            diagnostic.one_line(),
            "unknown key `comand` (config.jsonc:12:3); did you mean `command`?"
        );
    }

    #[test]
    fn quoted_text_is_short_and_cannot_steer_a_terminal() {
        assert_eq!(quote("a\u{1b}[31m\u{202e}b"), "`a\u{FFFD}[31m\u{FFFD}b`");
        assert_eq!(quote(&"x".repeat(1000)).chars().count(), 63);
    }
}
