//! Patterns, as far as all languages read them alike.

use std::{cell::RefCell, collections::HashMap, sync::OnceLock};

use regex::bytes::{Regex, RegexBuilder};

/// A pattern that takes more memory than this is left to the server.
const SIZE: usize = 64 << 10;
/// To make such a pattern ready takes as long as so many steps, and to match a byte of a text as these.
const COMPILED: usize = 500;
const MATCHED: usize = 4;

/// Those of a schema that were asked for: a list of a thousand texts makes its pattern ready once.
#[derive(Debug, Default)]
pub(super) struct Patterns(RefCell<HashMap<String, Option<Regex>>>);

impl Patterns {
    /// Does a text match? `None`: the server may see it otherwise than we do, or no more steps may be taken.
    ///
    /// What letters and digits are beyond ASCII differs by language, so only texts within it are looked at.
    pub(super) fn matches(&self, pattern: &str, text: &str, step: impl Fn(usize) -> bool) -> Option<bool> {
        if !text.is_ascii() || !step(MATCHED * text.len()) {
            return None;
        }
        let mut ready = self.0.borrow_mut();
        if !ready.contains_key(pattern) {
            if !step(COMPILED) {
                return None;
            }
            ready.insert(pattern.to_owned(), compile(pattern));
        }
        Some(ready.get(pattern)?.as_ref()?.is_match(text.as_bytes()))
    }
}

/// The pattern of one compiled schema, made ready when it is first used.
#[derive(Debug)]
pub(super) struct Pattern {
    source: Box<str>,
    ready: OnceLock<Option<Regex>>,
}

impl Pattern {
    pub(super) fn new(source: &str) -> Self {
        Self { source: source.into(), ready: OnceLock::new() }
    }

    /// Does a text match? `None`: the server may see it otherwise.
    pub(super) fn matches(&self, text: &str) -> Option<bool> {
        if !text.is_ascii() {
            return None;
        }
        let ready = self.ready.get_or_init(|| compile(&self.source)).as_ref()?;
        Some(ready.is_match(text.as_bytes()))
    }
}

fn compile(pattern: &str) -> Option<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    builder.unicode(false).size_limit(SIZE).dfa_size_limit(SIZE);
    builder.build().ok().filter(|_| reads_alike(pattern))
}

/// Escapes and brackets that mean one thing here may mean another, or mere letters, elsewhere.
fn reads_alike(pattern: &str) -> bool {
    const ESCAPES: &str = "dDwWsSnrtfvbBxu";
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                let known = |c: char| ESCAPES.contains(c) || c.is_ascii_punctuation() && c != '<' && c != '>';
                if !rest.next().is_some_and(known) {
                    return false;
                }
            }
            '[' if in_class => return false,
            '[' => {
                in_class = true;
                rest.next_if_eq(&'^');
                if rest.peek() == Some(&']') {
                    return false;
                }
            }
            ']' => in_class = false,
            '&' | '-' | '~' if in_class && rest.peek() == Some(&c) => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certain_is_told() {
        for (pattern, text, expected) in [
            ("^[0-9]+$", "12", Some(true)),
            ("^[0-9]+$", "abc", Some(false)),
            ("b", "abc", Some(true)),
            (r"^\d{3}-\d{4}$", "555-1234", Some(true)),
            (r"^https?:\/\/", "ftp://x", Some(false)),
            (r"^\w+$", "é", None),
            ("^(?=x)x", "y", None),
            (r"(a)\1", "b", None),
            ("[a-z&&[b]]", "a", None),
            ("[]a]", "b", None),
            (r"\<b", "b", None),
            ("a{", "b", None),
            ("((a{500}){500}){500}", "b", None),
        ] {
            assert_eq!(Patterns::default().matches(pattern, text, |_| true), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_is_made_ready_once_and_paid_for() {
        let (patterns, paid) = (Patterns::default(), std::cell::Cell::new(0));
        let step = |cost| {
            paid.set(paid.get() + cost);
            paid.get() < 2 * COMPILED
        };
        for _ in 0..20 {
            assert_eq!(patterns.matches("^a+$", "aaa", step), Some(true));
        }
        assert_eq!(paid.get(), COMPILED + 20 * MATCHED * 3);
        assert_eq!(patterns.matches("^b+$", "b", step), None, "a second one is one too many");
    }
}
