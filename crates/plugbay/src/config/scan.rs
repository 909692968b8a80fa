//! One pass over a file's tokens before it is parsed: is it safe to parse, and where do secrets stand?
//!
//! It works on broken files too, so that even a syntax error does not show a key in its excerpt.

use jsonc_parser::{Scanner, ScannerOptions, common::Range, tokens::Token};

/// No configuration needs more; the parser recurses, so depth is stack.
const DEEPEST: usize = 64;

/// Keys whose values (or all values below them) may hold credentials.
pub(super) const SECRET_KEYS: [&str; 10] = [
    "env",
    "environment",
    "envs",
    "headers",
    "http_headers",
    "url",
    "serverUrl",
    "uri",
    "httpUrl",
    "bearer_token",
];

#[derive(Debug, Default)]
pub(super) struct Scan {
    /// What stands between the quotes of secret strings, in order.
    pub(super) secrets: Vec<Range>,
    /// What the parser must not be asked to read.
    pub(super) problem: Option<Problem>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Problem {
    pub(super) at: Range,
    pub(super) message: &'static str,
    pub(super) help: &'static str,
}

pub(super) fn scan(text: &str) -> Scan {
    let mut scan = Scan::default();
    let mut scanner = Scanner::new(text, &SCANNER);
    let mut open: Vec<Level> = Vec::new();
    let mut last_string = None;
    let mut after_colon = false;
    let mut secret_key = false;
    loop {
        let token = match scanner.scan() {
            Ok(Some(token)) => token,
            Ok(None) => return scan,
            Err(_) => {
                // The parser will say what is wrong. An unclosed string may be an unclosed secret.
                let start = (scanner.token_start() + 1).min(text.len());
                let length = text.get(start..).and_then(|rest| rest.find('\n'));
                scan.secrets.push(Range::new(start, length.map_or(text.len(), |length| start + length)));
                return scan;
            }
        };
        let at = Range::new(scanner.token_start(), scanner.token_end());
        let level = open.last().copied().unwrap_or_default();
        match &token {
            Token::CommentLine(_) | Token::CommentBlock(_) => continue,
            Token::OpenBrace | Token::OpenBracket => {
                open.push(Level {
                    secret: level.secret || secret_key && after_colon,
                    array: token == Token::OpenBracket,
                });
                if open.len() > DEEPEST {
                    scan.problem = Some(Problem { at, ..TOO_DEEP });
                    return scan;
                }
            }
            Token::CloseBrace | Token::CloseBracket => drop(open.pop()),
            Token::Colon => {
                secret_key = last_string.as_deref().is_some_and(|key: &str| SECRET_KEYS.contains(&key));
            }
            Token::String(_) => {
                let literal = &text[at.start..at.end];
                if let Some(length) = literal.find('\n') {
                    let at = Range::new(at.start, at.start + length);
                    scan.secrets.push(Range::new(at.start + 1, at.end));
                    scan.problem = Some(Problem { at, ..UNCLOSED });
                    return scan;
                }
                let is_value = after_colon || level.array;
                if is_value && (level.secret || secret_key && after_colon) {
                    scan.secrets.push(Range::new(at.start + 1, at.end - 1));
                }
            }
            _ => {}
        }
        after_colon = token == Token::Colon;
        last_string = if let Token::String(text) = token { Some(text) } else { None };
    }
}

#[derive(Clone, Copy, Default)]
struct Level {
    secret: bool,
    array: bool,
}

const SCANNER: ScannerOptions = ScannerOptions {
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const TOO_DEEP: Problem = Problem {
    at: Range { start: 0, end: 0 },
    message: "nested too deeply",
    help: "no more than 64 brackets may be open at a time",
};

/// JSON has no line breaks in strings; the parser takes them and would complain much further down.
const UNCLOSED: Problem = Problem {
    at: Range { start: 0, end: 0 },
    message: "this string is not closed on its line",
    help: "close it with `\"`, or write a line break as `\\n`",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, secrets: &[&str], problem: Option<&str>) {
        let scan = scan(text);
        let found: Vec<&str> = scan.secrets.iter().map(|range| &text[range.start..range.end]).collect();
        assert_eq!(found, secrets, "{text}");
        assert_eq!(scan.problem.map(|problem| problem.message), problem, "{text}");
    }

    #[test]
    fn finds_values_below_secret_keys() {
        check(r#"{"env": {"A": "x", /* c */ "B": ["y"]}, "args": ["z"]}"#, &["x", "y"], None);
        check(r#"{"url" : "https://k@h", "name": "env"}"#, &["https://k@h"], None);
        check(r#"{"env": 1, "b": "c", "d": ["e"]}"#, &[], None);
    }

    #[test]
    fn broken_files_hide_their_unclosed_string() {
        check("{\"env\": {\"A\": \"hunter2\n}", &["hunter2"], None);
        check("{\"env\": {\"A\": \"hunter2\n, \"B\": 1}", &["hunter2"], Some(UNCLOSED.message));
    }

    #[test]
    fn depth_is_limited_before_anything_recurses() {
        check(&("[".repeat(64) + &"]".repeat(64)), &[], None);
        check(&"[".repeat(10_000), &[], Some(TOO_DEEP.message));
        check(&"{\"a\":".repeat(10_000), &[], Some(TOO_DEEP.message));
    }
}
