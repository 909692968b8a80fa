//! One file: from the bytes on disk to typed values.

use std::{io, path::Path};

use jsonc_parser::{CollectOptions, ParseOptions, ast::Value, common::Range, parse_to_ast};

use super::{
    diagnostic::{Diagnostic, Kind, Severity},
    raw::ConfigFile,
    read::{Read, mismatch},
    report::Report,
    scan::Problem,
    source::{Source, Syntax},
    yaml::{self, Fault},
};

/// Size limit: far more than any configuration needs.
const LARGEST: u64 = 1024 * 1024;

/// A file that could be parsed, with the problems found in it.
#[derive(Debug)]
pub(super) struct Document<T = ConfigFile> {
    pub(super) source: Source,
    pub(super) config: T,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl<T> Document<T> {
    pub(super) fn map<U>(self, turn: impl FnOnce(T) -> U) -> Document<U> {
        let Self { source, config, diagnostics } = self;
        Document { source, config: turn(config), diagnostics }
    }
}

/// The file's bytes; `None` when there is no such file.
pub(super) fn bytes(path: &Path) -> Result<Option<Vec<u8>>, Box<Diagnostic>> {
    let problem = |message: String, help: &str| {
        Box::new(Diagnostic::of_file(Severity::Error, path, message, help).of_kind(Kind::Unreadable))
    };
    let unreadable =
        |error: io::Error| problem(format!("cannot be read: {error}"), "check the path and its permissions");
    match plugbay_files::read(path, LARGEST) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            Err(problem("larger than 1 MiB".into(), "check the path: a configuration file is smaller"))
        }
        Err(error) => Err(unreadable(error)),
    }
}

/// Parses a file. `Err` says why nothing in it can be used. An empty file gets an error diagnostic: commands
/// fill it.
pub(super) fn parse<T: Read + Default>(path: &Path, bytes: &[u8]) -> Result<Document<T>, Vec<Diagnostic>> {
    let source = Source::new(path, bytes).map_err(|problem| vec![*problem])?;
    let mut report = Report::new(&source);
    let config = tree(&source, &mut report);
    let diagnostics = report.finish();
    match config {
        Some(config) => Ok(Document { source, config, diagnostics }),
        None => Err(diagnostics),
    }
}

fn tree<T: Read + Default>(source: &Source, report: &mut Report<'_>) -> Option<T> {
    let parsed = match source.syntax {
        Syntax::Jsonc => jsonc(source),
        Syntax::Yaml => yaml::parse(&source.text),
    };
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(Fault { at, message, help }) => {
            report.error(at, message, help);
            report.was(Kind::Unreadable);
            return None;
        }
    };
    match &parsed {
        Some(value @ Value::Object(_)) => T::read(value, report),
        Some(value) => {
            mismatch(value, "an object", report);
            None
        }
        None => {
            let help = match source.syntax {
                Syntax::Jsonc => "a start: { \"mcpServers\": {} }",
                Syntax::Yaml => "a start: `servers: {}`",
            };
            report.error(Range::new(0, 0), "the file is empty", help);
            report.was(Kind::Unreadable);
            Some(T::default())
        }
    }
}

fn jsonc(source: &Source) -> Result<Option<Value<'_>>, Fault> {
    if let Some(Problem { at, message, help }) = source.scan.problem {
        return Err(Fault { at, message: message.to_owned(), help });
    }
    let parsed = parse_to_ast(&source.text, &CollectOptions::default(), &JSONC);
    parsed.map(|parsed| parsed.value).map_err(|error| Fault {
        at: error.range(),
        message: uncapitalised(&error.kind().to_string()),
        help: "the file is JSON, with comments and trailing commas allowed",
    })
}

/// JSON with comments and trailing commas, and nothing else that the parser would accept, because an editor's
/// schema support rejects the rest too.
const JSONC: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn uncapitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect()
}
