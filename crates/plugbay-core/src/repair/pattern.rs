//! Patterns, as far as all languages read them alike.

use regex::bytes::RegexBuilder;

/// A pattern that takes more memory than this is left to the server.
const SIZE: usize = 256 << 10;

/// Does a text match? `None`: the server may see it otherwise than we do.
///
/// What letters and digits are beyond ASCII differs by language, so only texts within it are looked at.
pub(super) fn matches(pattern: &str, text: &str) -> Option<bool> {
    if !text.is_ascii() || !reads_alike(pattern) {
        return None;
    }
    let pattern =
        RegexBuilder::new(pattern).unicode(false).size_limit(SIZE).dfa_size_limit(SIZE).build().ok()?;
    Some(pattern.is_match(text.as_bytes()))
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
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
