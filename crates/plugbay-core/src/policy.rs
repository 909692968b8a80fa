//! May this tool be used? One server request, asked once for a listing and once on every forward.

use std::fmt;

use globset::{Glob, GlobSet, GlobSetBuilder};

/// Which of a server's tools may be seen and called. `deny` wins over `allow`; an absent `allow`
/// allows everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    pub allow: Option<Patterns>,
    pub deny: Patterns,
}

impl Policy {
    pub fn may(&self, tool: &str) -> bool {
        !self.deny.matches(tool) && self.allow.as_ref().is_none_or(|allow| allow.matches(tool))
    }
}

/// A set of globs over tool names (`get_*`, `{read,list}_file`), compiled once.
#[derive(Clone, Default)]
pub struct Patterns {
    globs: Vec<String>,
    set: GlobSet,
}

/// The pattern that does not compile, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is not a valid pattern: {reason}")]
pub struct PatternError {
    pub pattern: String,
    pub reason: String,
}

impl Patterns {
    pub fn compile<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, PatternError> {
        let mut builder = GlobSetBuilder::new();
        let mut sources = Vec::new();
        for glob in globs {
            let glob = glob.as_ref();
            let error =
                |e: globset::Error| PatternError { pattern: glob.into(), reason: e.kind().to_string() };
            builder.add(Glob::new(glob).map_err(error)?);
            sources.push(glob.to_owned());
        }
        let set = builder
            .build()
            .map_err(|e| PatternError { pattern: sources.join(", "), reason: e.kind().to_string() })?;
        Ok(Self { globs: sources, set })
    }

    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    pub fn matches(&self, tool: &str) -> bool {
        self.set.is_match(tool)
    }
}

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        self.globs == other.globs
    }
}

impl Eq for Patterns {}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.globs.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_wins_and_an_absent_allow_allows() {
        let policy = Policy {
            allow: Some(Patterns::compile(["get_*", "list_issues"]).unwrap()),
            deny: Patterns::compile(["get_secret*"]).unwrap(),
        };
        let allowed = ["get_issue", "list_issues"].map(|tool| policy.may(tool));
        let denied = ["get_secrets", "delete_issue"].map(|tool| policy.may(tool));
        assert_eq!((allowed, denied), ([true; 2], [false; 2]));
        assert!(Policy::default().may("anything"));
    }

    #[test]
    fn an_empty_allow_list_allows_nothing() {
        let policy = Policy { allow: Some(Patterns::default()), deny: Patterns::default() };
        assert!(!policy.may("get_issue"));
    }

    #[test]
    fn a_broken_pattern_is_named() {
        assert_eq!(Patterns::compile(["ok", "[a"]).unwrap_err().pattern, "[a");
    }
}
