//! The difference that a change makes to a file, with masked secrets.

use plugbay_hosts::Entry;
use serde::Serialize;
use similar::TextDiff;

use super::mask::Secrets;

/// Number of context lines around a change.
const AROUND: usize = 2;

/// A unified diff of one file, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diff {
    pub file: String,
    pub text: String,
}

impl Diff {
    /// A diff. `entries` are the servers of both texts: the values of their variables, headers and secret
    /// arguments are masked.
    pub fn new(file: impl Into<String>, old: &str, new: &str, entries: &[Entry]) -> Self {
        let secrets = Secrets::of(entries);
        let (old, new) = (secrets.mask(old), secrets.mask(new));
        let diff = TextDiff::from_lines(&old, &new);
        let text = diff.unified_diff().context_radius(AROUND).missing_newline_hint(false).to_string();
        Self { file: file.into(), text }
    }
}
