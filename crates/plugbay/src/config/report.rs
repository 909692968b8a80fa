//! Collects the problems of one file while it is read.

use jsonc_parser::common::Range;

use super::{
    diagnostic::{Diagnostic, Kind, Severity, quote},
    source::Source,
};

/// Limit of problems: each needs its place to be counted out, so a hostile file must not have endlessly many.
const MOST_PROBLEMS: usize = 100;

#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) source: &'a Source,
    diagnostics: Vec<Diagnostic>,
    /// The first error inside the innermost [`Report::watch`], on one line.
    first_error: Option<String>,
    /// The key whose value is being read; messages begin with it.
    key: Option<String>,
}

impl<'a> Report<'a> {
    pub(super) fn new(source: &'a Source) -> Self {
        Self { source, diagnostics: Vec::new(), first_error: None, key: None }
    }

    pub(super) fn finish(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    pub(super) fn error(&mut self, at: Range, message: impl Into<String>, help: impl Into<String>) {
        self.add(Severity::Error, at, message.into(), Some(help.into()));
    }

    pub(super) fn warning(&mut self, at: Range, message: impl Into<String>, help: impl Into<String>) {
        self.add(Severity::Warning, at, message.into(), Some(help.into()));
    }

    /// Sets the kind of the problem that was reported last.
    pub(super) fn was(&mut self, kind: Kind) {
        if let Some(last) = self.diagnostics.last_mut() {
            last.kind = kind;
        }
    }

    /// An error in the value of the key that is being read.
    pub(super) fn invalid(&mut self, at: Range, message: &str, help: impl Into<String>) {
        let key = self.key.as_ref().map(|key| format!("{}: ", quote(key))).unwrap_or_default();
        self.error(at, format!("{key}{message}"), help);
    }

    /// Runs `read` while `key` counts as the key being read.
    pub(super) fn under<T>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.key.replace(key.to_owned());
        let result = read(self);
        self.key = outer;
        result
    }

    /// Runs `work` and returns its first error on one line, if it reported any. An outer watch sees the error
    /// too.
    pub(super) fn watch<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, Option<String>) {
        let outer = self.first_error.take();
        let result = work(self);
        let inner = self.first_error.take();
        self.first_error = outer.or(inner.clone());
        (result, inner)
    }

    fn add(&mut self, severity: Severity, at: Range, message: String, help: Option<String>) {
        if self.diagnostics.len() >= MOST_PROBLEMS {
            // It is still a failure of the value being read, but without its place.
            if severity == Severity::Error {
                self.first_error.get_or_insert(message);
            }
            return;
        }
        let diagnostic = self.source.diagnostic(severity, at, message, help);
        if severity == Severity::Error {
            self.first_error.get_or_insert_with(|| diagnostic.one_line());
        }
        self.diagnostics.push(diagnostic);
        if self.diagnostics.len() + 1 == MOST_PROBLEMS {
            let message = format!("more than {} problems; the rest are not shown", MOST_PROBLEMS - 2);
            let path = &self.source.path;
            self.diagnostics.push(Diagnostic::of_file(Severity::Warning, path, message, "fix these first"));
        }
    }
}
