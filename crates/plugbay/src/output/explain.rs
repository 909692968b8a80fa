//! Errors, and what to do about them.

use std::path::Path;

use serde::Serialize;

use super::{Style, clean, one_line, table};
use crate::{
    config::{Diagnostic, Severity},
    error::{CommandError, Detail, StartFailure},
};

/// Width of the labels `stderr` and `try`, which precede the text.
const LABEL_WIDTH: usize = 8;
const HINT_INDENT: usize = 2;
/// The label before the help of a problem in a file.
const HELP: &str = "= help: ";
/// Narrowest width to which text is wrapped.
const NARROWEST: usize = 40;

pub(super) fn error(error: &CommandError, style: Style) -> String {
    let label = style.bad("error:");
    let mut lines =
        vec![format!("{label} {}\n", wrapped(&error.message, HINT_INDENT, "error: ".len(), style))];
    lines.extend(error.details.iter().map(|detail| match detail {
        Detail::Hint(hint) => format!("  {}\n", wrapped(hint, HINT_INDENT, HINT_INDENT, style)),
        Detail::Example(example) => block(example, 4),
        Detail::StartFailure(reason) => trouble(reason, 2, style),
    }));
    lines.concat()
}

/// The lines of a text, wrapped between words at the width of the terminal. The first line begins at column
/// `first`, the others at `indent`.
fn wrapped(text: &str, indent: usize, first: usize, style: Style) -> String {
    let Some(width) = style.width else { return clean(text) };
    let room = width.saturating_sub(indent.max(first)).max(NARROWEST);
    let text = clean(text);
    let lines = text.lines().flat_map(|line| table::wrap(line, room));
    lines.collect::<Vec<_>>().join(&format!("\n{:indent$}", ""))
}

/// An error for programs.
#[derive(Debug, Serialize)]
pub(super) struct ErrorJson<'a> {
    message: &'a str,
    /// The hints in order, examples included.
    hints: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a StartFailure>,
}

pub(super) fn error_json(error: &CommandError) -> ErrorJson<'_> {
    let hints = error.details.iter().filter_map(|detail| match detail {
        Detail::Hint(text) | Detail::Example(text) => Some(text.as_str()),
        Detail::StartFailure(_) => None,
    });
    let failure = error.details.iter().find_map(|detail| match detail {
        Detail::StartFailure(failure) => Some(failure),
        Detail::Hint(_) | Detail::Example(_) => None,
    });
    ErrorJson { message: &error.message, hints: hints.collect(), failure }
}

/// The reasons why a server does not work, on lines that begin at the given column.
pub(super) fn trouble(trouble: &StartFailure, indent: usize, style: Style) -> String {
    let label = |word: &str| format!("{}{}", style.dim(word), " ".repeat(LABEL_WIDTH - word.len()));
    let labelled = |label: &str, text: &str| {
        let room = style.width.map(|width| width.saturating_sub(indent + LABEL_WIDTH).max(NARROWEST));
        let lines = table::wrap(&one_line(text), room.unwrap_or(usize::MAX));
        format!("{label}{}\n", lines.join(&format!("\n{}", " ".repeat(LABEL_WIDTH))))
    };
    let room = style.width.map(|width| width.saturating_sub(indent).max(NARROWEST));
    let reason = table::wrap(&one_line(&trouble.reason), room.unwrap_or(usize::MAX)).join("\n");
    let said = |word: &'static str, lines: &[String]| -> Vec<String> {
        let labels = [word].into_iter().chain(std::iter::repeat(""));
        lines.iter().zip(labels).map(|(line, word)| labelled(&label(word), line)).collect()
    };
    let said = [said("stderr", &trouble.stderr), said("stdout", &trouble.stdout)].concat();
    let remedy = trouble.remedy.iter().map(|remedy| labelled(&label("try"), remedy));
    let parts: Vec<String> = [reason, "\n".to_owned()].into_iter().chain(said).chain(remedy).collect();
    block(&parts.concat(), indent)
}

pub(super) fn diagnostic(diagnostic: &Diagnostic, style: Style) -> String {
    let text = diagnostic.to_string();
    let word = diagnostic.severity.to_string();
    let painted = match diagnostic.severity {
        Severity::Error => style.bad(&word),
        Severity::Warning => style.warn(&word),
    };
    let text = within(&text, style.width);
    text.strip_prefix(&word).map_or(text.clone(), |rest| format!("{painted}{rest}"))
}

/// Wraps the message and the help of a problem between words. Its place and its snippet stay unchanged.
fn within(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let lines = text.lines().enumerate().map(|(number, line)| {
        let indent = match line.find(HELP) {
            Some(at) if line[..at].trim().is_empty() => at + HELP.len(),
            _ if number == 0 => HINT_INDENT,
            _ => return line.to_owned(),
        };
        // The first line has no indentation.
        let (label, rest) = if number == 0 { ("", line) } else { line.split_at(indent) };
        let room = width.saturating_sub(indent).max(NARROWEST);
        format!("{label}{}", table::wrap(rest, room).join(&format!("\n{:indent$}", "")))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A problem of the configuration for programs.
#[derive(Debug, Serialize)]
pub(super) struct DiagnosticJson<'a> {
    severity: String,
    message: &'a str,
    file: &'a Path,
    line: Option<usize>,
    column: Option<usize>,
    help: Option<&'a str>,
}

pub(super) fn diagnostic_json(diagnostic: &Diagnostic) -> DiagnosticJson<'_> {
    let Diagnostic { severity, file, position, message, help, .. } = diagnostic;
    DiagnosticJson {
        severity: severity.to_string(),
        message,
        file,
        line: position.map(|at| at.line),
        column: position.map(|at| at.column),
        help: help.as_deref(),
    }
}

/// The lines of a text, indented.
fn block(text: &str, indent: usize) -> String {
    let margin = " ".repeat(indent);
    text.lines().flat_map(|line| [&margin, line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_why_and_what_next() {
        let down = plugbay_core::failure::Failure::new(
            "exited with code 1 before it answered",
            vec!["starting".into(), "\u{202e}ModuleNotFoundError: no mcp".into()],
        );
        let text = error(&CommandError::down("time", &down).hint("hint").example("{\n}"), Style::PLAIN);
        let expected = "\
error: server time does not work
  exited with code 1 before it answered
  stderr  starting
          ModuleNotFoundError: no mcp
  try     install the missing Python package in the environment of this command
  hint
    {
    }
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_help_of_a_problem_is_broken_between_words_and_its_snippet_is_not() {
        let text = "error: the variable `NOT_SET_ANYWHERE` is not set\n 7 | a line of the file that is longer than \
                    the terminal is\n   = help: set it where plugbay is started, or give a default";
        let expected = "error: the variable `NOT_SET_ANYWHERE` is not\n  set\n 7 | a line of the file that is longer \
                        than the terminal is\n   = help: set it where plugbay is started, or give\n           a default";
        assert_eq!(within(text, Some(50)), expected);
        assert_eq!(within(text, None), text);
    }

    #[test]
    fn long_reasons_are_broken_between_words() {
        let reason = StartFailure {
            reason: "a reason that goes on for longer than the terminal is wide".to_owned(),
            stderr: vec![],
            stdout: vec![],
            remedy: Some("a remedy that is not much shorter than that".to_owned()),
            ..StartFailure::default()
        };
        let text = trouble(&reason, 2, Style { colour: false, width: Some(50) });
        let expected = "  a reason that goes on for longer than the\n  terminal is wide\n\
            \x20 try     a remedy that is not much shorter than\n          that\n";
        assert_eq!(text, expected);
    }
}
