//! A pass over a file's tokens before it is parsed: whether it is safe to parse, and where its secrets are.
//!
//! It also works on broken files, so that even the excerpt of a syntax error shows no key.

use jsonc_parser::{Scanner, ScannerOptions, common::Range, tokens::Token};
use plugbay_core::name;

/// Limit of nesting. The parser recurses, so depth needs stack; no configuration needs more.
const DEEPEST: usize = 64;

/// Keys whose values, or all values below them, may hold credentials.
const SECRET_KEYS: [&str; 5] = ["env", "environment", "envs", "headers", "http_headers"];
/// The last words of keys with one secret, in any spelling.
const SECRET_WORDS: [&str; 6] = ["token", "apikey", "secret", "password", "authorization", "credentials"];
/// Keys of addresses, parts of which may hold credentials.
const ADDRESS_KEYS: [&str; 6] = ["url", "serverUrl", "uri", "httpUrl", "baseUrl", "base_url"];

/// How much of a key's value may be shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Secrecy {
    #[default]
    Open,
    Address,
    Secret,
}

impl Secrecy {
    pub(super) fn of(key: &str) -> Self {
        let folded = name::folded(key);
        if SECRET_KEYS.contains(&key) || SECRET_WORDS.iter().any(|word| folded.ends_with(word)) {
            Self::Secret
        } else if ADDRESS_KEYS.contains(&key) {
            Self::Address
        } else {
            Self::Open
        }
    }

    /// The parts of a value to hide. `at` is its place in the text, without quotes.
    pub(super) fn hidden(self, text: &str, at: Range) -> Vec<Range> {
        match self {
            Self::Open => Vec::new(),
            Self::Secret => vec![at],
            Self::Address => {
                let parts = secret_parts(&text[at.start..at.end]).into_iter();
                parts.map(|(from, to)| Range::new(at.start + from, at.start + to)).collect()
            }
        }
    }
}

/// All of an address except its scheme and host: many services have the key in the path.
fn secret_parts(address: &str) -> Vec<(usize, usize)> {
    let Some(place) = address.find("://").map(|colon| colon + 3) else { return vec![(0, address.len())] };
    let end = address[place..].find(['/', '?', '#']).map_or(address.len(), |length| place + length);
    let host = address[place..end].rfind('@').map_or(place, |length| place + length + 1);
    [(place, host), (end, address.len())].into_iter().filter(|(from, to)| from < to).collect()
}

#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The content of secret strings without quotes, in order.
    pub(super) secrets: Vec<Range>,
    /// A problem because of which the file must not be parsed.
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
    let mut secrecy = Secrecy::Open;
    loop {
        let token = match scanner.scan() {
            Ok(Some(token)) => token,
            Ok(None) => return scan,
            Err(_) => {
                // The parser will report the error. An unclosed string may be an unclosed secret.
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
                    secret: level.secret || secrecy == Secrecy::Secret && after_colon,
                    array: token == Token::OpenBracket,
                });
                if open.len() > DEEPEST {
                    scan.problem = Some(Problem { at, ..TOO_DEEP });
                    return scan;
                }
            }
            Token::CloseBrace | Token::CloseBracket => drop(open.pop()),
            Token::Colon => {
                secrecy = last_string.as_deref().map(Secrecy::of).unwrap_or_default();
            }
            Token::String(_) => {
                let literal = &text[at.start..at.end];
                if let Some(length) = literal.find('\n') {
                    let at = Range::new(at.start, at.start + length);
                    scan.secrets.push(Range::new(at.start + 1, at.end));
                    scan.problem = Some(Problem { at, ..UNCLOSED });
                    return scan;
                }
                let value = Range::new(at.start + 1, at.end - 1);
                match (after_colon, level) {
                    (true, Level { secret: true, .. }) | (false, Level { secret: true, array: true }) => {
                        scan.secrets.push(value);
                    }
                    (true, _) => scan.secrets.extend(secrecy.hidden(text, value)),
                    (false, _) => {}
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

/// JSON has no line breaks in strings. The parser accepts them, and would report an error much further down.
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
        check(r#"{"url" : "https://k@h", "name": "env"}"#, &["k@"], None);
        check(r#"{"token": "t", "gemini_api_key": "k", "bearer_token_env_var": "V"}"#, &["t", "k"], None);
        check(r#"{"env": 1, "b": "c", "d": ["e"]}"#, &[], None);
    }

    #[test]
    fn addresses_hide_all_but_scheme_and_host() {
        check(r#"{"url": "http://h.example:8080"}"#, &[], None);
        check(r#"{"url": "https://me:pw@h/k3y/mcp?key=1#x"}"#, &["me:pw@", "/k3y/mcp?key=1#x"], None);
        check(r#"{"url": "h.example/k3y"}"#, &["h.example/k3y"], None);
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
