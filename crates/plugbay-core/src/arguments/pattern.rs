//! Patterns, as far as all programming languages read them alike.

use std::{cell::RefCell, collections::HashMap, sync::OnceLock};

use regex::bytes::{Regex, RegexBuilder};

/// Limits in bytes: a longer pattern, one that takes more memory, and a longer text are left to the server.
const LONGEST: usize = 4 << 10;
const SIZE: usize = 64 << 10;
const LONGEST_TEXT: usize = 64 << 10;
/// A pattern that takes no more memory than this is matched in few steps, and any other in many.
const SMALL: usize = 4 << 10;
/// Costs in steps: of compiling a pattern, in addition for each of its bytes, and of matching a byte of a
/// text, with a small and with a large pattern.
const COMPILED: usize = 500;
const COMPILED_BYTE: usize = 8;
const MATCHED: usize = 8;
const MATCHED_LARGE: usize = 128;

/// The patterns of a schema that were needed: for a list of a thousand texts, a pattern is compiled once.
#[derive(Debug, Default)]
pub(super) struct Patterns(RefCell<HashMap<String, Option<Matcher>>>);

/// A compiled pattern.
#[derive(Debug)]
struct Matcher {
    regex: Regex,
    /// The cost of a byte of a text, in steps.
    cost: usize,
}

impl Patterns {
    /// Whether a text matches. `None`: the server may decide otherwise than we do, or no steps are left.
    pub(super) fn matches(&self, pattern: &str, text: &str, step: impl Fn(usize) -> bool) -> Option<bool> {
        if !is_matchable(text) {
            return None;
        }
        let mut ready = self.0.borrow_mut();
        if !ready.contains_key(pattern) {
            if !step(compile_cost(pattern)) {
                return None;
            }
            ready.insert(pattern.to_owned(), compile(pattern));
        }
        let matcher = ready.get(pattern)?.as_ref()?;
        step(matcher.cost * text.len()).then(|| matcher.regex.is_match(text.as_bytes()))
    }
}

/// The pattern of one compiled schema, compiled when it is first used.
#[derive(Debug)]
pub(super) struct Pattern {
    source: Box<str>,
    ready: OnceLock<Option<Matcher>>,
}

impl Pattern {
    pub(super) fn new(source: &str) -> Self {
        Self { source: source.into(), ready: OnceLock::new() }
    }

    /// Whether a text matches. `None`: the server may decide otherwise.
    pub(super) fn matches(&self, text: &str) -> Option<bool> {
        Some(self.matcher(text)?.regex.is_match(text.as_bytes()))
    }

    /// The cost of a match, in steps.
    pub(super) fn cost(&self, text: &str) -> usize {
        let unready = if self.ready.get().is_some() { 0 } else { compile_cost(&self.source) };
        unready + self.matcher(text).map_or(0, |matcher| matcher.cost * text.len())
    }

    fn matcher(&self, text: &str) -> Option<&Matcher> {
        is_matchable(text).then(|| self.ready.get_or_init(|| compile(&self.source)).as_ref()).flatten()
    }
}

/// Whether a text can be matched here: outside of ASCII, languages differ in what letters and digits are.
fn is_matchable(text: &str) -> bool {
    text.len() <= LONGEST_TEXT && text.is_ascii()
}

fn compile_cost(pattern: &str) -> usize {
    COMPILED + COMPILED_BYTE * pattern.len().min(LONGEST)
}

fn compile(pattern: &str) -> Option<Matcher> {
    if pattern.len() > LONGEST || !reads_alike(pattern) {
        return None;
    }
    let build = |size: usize| {
        RegexBuilder::new(pattern).unicode(false).size_limit(size).dfa_size_limit(SIZE).build().ok()
    };
    let small = build(SMALL).map(|regex| Matcher { regex, cost: MATCHED });
    small.or_else(|| Some(Matcher { regex: build(SIZE)?, cost: MATCHED_LARGE }))
}

/// Whether all languages read a pattern alike: some escapes and brackets mean other things, or letters.
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
            (&"a".repeat(LONGEST + 1), "b", None),
            ("^(a+)+$", &"a".repeat(LONGEST_TEXT + 1), None),
            ("^(a+)+$", &format!("{}!", "a".repeat(LONGEST_TEXT - 1)), Some(false)),
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
        for _ in 0..10 {
            assert_eq!(patterns.matches("^a+$", "aaa", step), Some(true));
        }
        assert_eq!(paid.get(), compile_cost("^a+$") + 10 * MATCHED * 3);
        assert_eq!(patterns.matches("^b+$", "b", step), None, "a second one is one too many");
    }
}
