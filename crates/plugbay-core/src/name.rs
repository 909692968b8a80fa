//! Server and tool names: the only place that joins and splits them.
//!
//! A tool is exposed as `{server}__{tool}`, or by its own name if the user wants it so. A server name never
//! contains `__` and never ends with `_`. So the first `__` of a joined name is always the joint, and the
//! mapping from (server, tool) to exposed name can be undone without guessing.

mod likeness;
mod prefixes;

use std::{borrow::Borrow, fmt, sync::Arc};

pub(crate) use likeness::Table;
pub use likeness::{is_slip, nearest};
pub use prefixes::ServerPrefixes;
use sha2::{Digest, Sha256};

/// The separator between server and tool in an exposed name.
pub const JOINT: &str = "__";

/// The longest exposed name that every measured host accepts.
pub const DEFAULT_NAME_LIMIT: usize = 64;

/// How many hexadecimal digits of a hash mark a shortened or cleaned name.
const HASH_DIGITS: usize = 8;

/// The registered name of a server: `[A-Za-z0-9_-]`, no `__`, no `_` at the end, at most 32 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

/// Why a string cannot be a server name, in words that complete "server name … ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("is empty")]
    Empty,
    #[error("is longer than {limit} characters")]
    TooLong { limit: usize },
    #[error("contains {0:?}; use letters, digits, '-' and single '_'")]
    Character(char),
    #[error("contains '__', which separates server and tool in exposed names; use a single '_'")]
    Joint,
    #[error("ends with '_', which would blur the '__' between server and tool")]
    TrailingUnderscore,
}

impl ServerName {
    pub const LIMIT: usize = 32;

    pub fn parse(name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.len() > Self::LIMIT {
            return Err(NameError::TooLong { limit: Self::LIMIT });
        }
        if let Some(odd) = name.chars().find(|c| !is_plain(*c)) {
            return Err(NameError::Character(odd));
        }
        if name.contains(JOINT) {
            return Err(NameError::Joint);
        }
        if name.ends_with('_') {
            return Err(NameError::TrailingUnderscore);
        }
        Ok(Self(name.into()))
    }

    /// The valid name nearest to a key of a host's config ("My Server" → `My-Server`).
    pub fn suggest(name: &str) -> Option<Self> {
        let mut plain: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
        while plain.contains(JOINT) {
            plain = plain.replace(JOINT, "_");
        }
        plain.truncate(Self::LIMIT);
        Self::parse(plain.trim_matches(['-', '_'])).ok()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// The name under which a host sees `tool` of `server`.
///
/// Characters that no host accepts are replaced, and an over-long name is cut. Both leave a mark made
/// of a hash of the original, so the result is stable and no two tools get the same name.
pub fn expose(server: &ServerName, tool: &str, limit: usize) -> String {
    fit(&before(server), tool, limit)
}

/// The exposed name of a tool without its server.
pub fn expose_bare(tool: &str, limit: usize) -> String {
    fit("", tool, limit)
}

fn fit(before: &str, tool: &str, limit: usize) -> String {
    let clean: String = tool.chars().map(|c| if is_plain(c) || c == '.' { c } else { '_' }).collect();
    let whole = format!("{before}{clean}");
    if clean == tool && whole.len() <= limit {
        return whole;
    }
    let mark = hash_digits(&format!("{before}{tool}"));
    let room = limit.saturating_sub(HASH_DIGITS + 1);
    let mut cut = whole;
    cut.truncate(room); // every character is ASCII by now
    format!("{cut}_{mark}")
}

/// A tool's name as the name of a function: `a-b__c.d` is `a_b__c_d`. Two names may become the same.
pub fn identifier(exposed: &str) -> String {
    let plain: String = exposed.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if plain.starts_with(|first: char| first.is_ascii_digit()) { format!("_{plain}") } else { plain }
}

/// The same with a mark, which no other name has.
pub fn marked_identifier(exposed: &str, limit: usize) -> String {
    let mut cut = identifier(exposed);
    cut.truncate(limit.saturating_sub(HASH_DIGITS + 1)); // every character is ASCII
    format!("{cut}_{}", hash_digits(exposed))
}

/// The prefix of everything of a server, in the names that a host sees.
pub fn before(server: &ServerName) -> String {
    format!("{server}{JOINT}")
}

/// Splits an exposed name at its joint. A name that was cut or cleaned does not contain the tool's own
/// name: look it up in the catalog's index instead.
pub fn split(exposed: &str) -> Option<(&str, &str)> {
    exposed.split_once(JOINT)
}

/// A tool's own name: without its server's, if it has one in front.
pub fn own(tool: &str) -> &str {
    split(tool).map_or(tool, |(_, own)| own)
}

/// A name without case and separators: `filePath`, `file_path` and `File-Path` are `filepath`.
pub fn folded(name: &str) -> String {
    folded_chars(name).collect()
}

/// The characters of [`folded`].
pub fn folded_chars(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// The one known name that is meant; `None` if there is none, or several could be.
pub fn only_match<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(wanted);
    let mut alike = known.filter(|name| folded(name) == wanted && !wanted.is_empty());
    let first = alike.next()?;
    alike.next().is_none().then_some(first)
}

/// A name without what hosts put before the names of a server: `mcp__plugbay__git__log`.
pub fn without_host(name: &str) -> &str {
    let ours = name.strip_prefix("mcp__").and_then(split);
    ours.map_or(name, |(_, rest)| rest)
}

/// Whether a name looks as if it was cut or cleaned: then it does not contain the tool's own name.
pub fn is_marked(exposed: &str) -> bool {
    let mark = exposed.rsplit_once('_').map(|(_, mark)| mark);
    mark.is_some_and(|mark| mark.len() == HASH_DIGITS && mark.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Whether hosts accept every character of a tool's name: then it is exposed unchanged, if not too long.
pub fn is_clean(tool: &str) -> bool {
    tool.chars().all(|c| is_plain(c) || c == '.')
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn hash_digits(text: &str) -> String {
    let digest = format!("{:x}", Sha256::digest(text.as_bytes()));
    digest[..HASH_DIGITS].to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn server(name: &str) -> ServerName {
        ServerName::parse(name).unwrap()
    }

    #[test]
    fn refuses_names_that_would_blur_the_joint() {
        assert_eq!(ServerName::parse("a__b"), Err(NameError::Joint));
        assert_eq!(ServerName::parse("a_"), Err(NameError::TrailingUnderscore));
        assert_eq!(ServerName::parse("a b"), Err(NameError::Character(' ')));
        assert_eq!(ServerName::parse(""), Err(NameError::Empty));
    }

    #[test]
    fn suggests_a_valid_name_for_a_hosts_key() {
        assert_eq!(ServerName::suggest("My Server").unwrap().as_str(), "My-Server");
        assert_eq!(ServerName::suggest("a__b_").unwrap().as_str(), "a_b");
        assert_eq!(ServerName::suggest("日本"), None);
    }

    #[test]
    fn a_name_is_told_however_it_is_written() {
        assert_eq!(folded("Git__create-Branch.v2"), folded("git/createBranchV2"));
        assert_eq!(without_host("mcp__plugbay__git__log"), "git__log");
        assert_eq!((without_host("git__log"), without_host("mcp__x")), ("git__log", "mcp__x"));
    }

    #[test]
    fn long_and_odd_names_are_marked_and_stay_apart() {
        let long = "x".repeat(80);
        let one = expose(&server("s"), &long, 64);
        assert_eq!(one.len(), 64);
        assert_ne!(one, expose(&server("s"), &format!("{long}y"), 64));
        assert_ne!(expose(&server("s"), "a b", 64), expose(&server("s"), "a_b", 64));
        assert!(is_marked(&one) && is_marked(&expose(&server("s"), "a b", 64)) && !is_marked("s__a_b"));
    }

    proptest! {
        #[test]
        fn plain_names_come_apart_as_they_were_joined(
            name in "[A-Za-z0-9-][A-Za-z0-9_-]{0,10}[A-Za-z0-9-]",
            tool in "[A-Za-z0-9_.-]{1,20}",
        ) {
            prop_assume!(!name.contains(JOINT));
            let exposed = expose(&server(&name), &tool, 64);
            prop_assert_eq!(split(&exposed), Some((name.as_str(), tool.as_str())));
        }
    }
}
