//! From text to terms: identifiers taken apart, endings cut off, little words left out.

use std::{borrow::Cow, ops::Range};

use rust_stemmers::{Algorithm, Stemmer};

/// A word of more bytes than this is ignored: it is no real word, and the time to cut off an ending grows
/// with the square of the length.
const LONGEST_WORD: usize = 64;

/// Cuts texts into words and words into terms.
pub(super) struct Words {
    stemmer: Stemmer,
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Words")
    }
}

impl Default for Words {
    fn default() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English) }
    }
}

impl Clone for Words {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Words {
    /// The term that stands for a word in the index; `None` for a word that says nothing about a tool.
    pub(super) fn term<'a>(&self, word: &'a str) -> Option<Cow<'a, str>> {
        if STOP_WORDS.binary_search(&word).is_ok() {
            return None;
        }
        let ascii = word.bytes().all(|byte| byte.is_ascii_lowercase());
        Some(if ascii && word.len() > 2 { self.stemmer.stem(word) } else { Cow::Borrowed(word) })
    }
}

/// The words that say nothing about a tool.
pub(super) fn little_words() -> impl Iterator<Item = &'static str> {
    STOP_WORDS.iter().copied()
}

/// How a word was made of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It stands there between blanks, marks or separators.
    Written,
    /// A part of a word in camel case: `git` of `GitHub`.
    Hump,
    /// Several parts, with the separators between them left out.
    Joined,
}

/// A mistyped word, and the words that were meant.
#[derive(Debug)]
pub(super) struct Correction {
    pub(super) typed: String,
    pub(super) meant: Vec<String>,
}

/// The words of a text, with how they came about.
pub(super) struct WordList {
    text: String,
    words: Vec<(Range<usize>, Origin)>,
}

impl WordList {
    pub(super) fn of(text: &str) -> Self {
        let mut list = Self { text: String::with_capacity(text.len()), words: Vec::new() };
        each(text, |word, origin| list.push(word, origin));
        list
    }

    /// The same with the words that were meant.
    pub(super) fn corrected(self, corrections: &[Correction]) -> Self {
        if corrections.is_empty() {
            return self;
        }
        let mut list = Self { text: String::with_capacity(self.text.len()), words: Vec::new() };
        for (word, origin) in self.iter() {
            match corrections.iter().find(|correction| correction.typed == word) {
                Some(Correction { meant, .. }) => meant.iter().for_each(|word| list.push(word, origin)),
                None => list.push(word, origin),
            }
        }
        list
    }

    fn push(&mut self, word: &str, origin: Origin) {
        let start = self.text.len();
        self.text.push_str(word);
        self.words.push((start..self.text.len(), origin));
    }

    pub(super) fn get(&self, at: usize) -> Option<(&str, Origin)> {
        let (range, origin) = self.words.get(at)?;
        Some((&self.text[range.clone()], *origin))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Origin)> {
        self.words.iter().map(|(range, origin)| (&self.text[range.clone()], *origin))
    }

    /// The words as they were written, without parts of words and joined ones.
    pub(super) fn written(&self) -> impl Iterator<Item = &str> {
        self.iter().filter(|(_, origin)| *origin == Origin::Written).map(|(word, _)| word)
    }
}

/// Calls `found` with each word of a text in small letters: the parts of an identifier and the whole of
/// it, pairs of neighbours where a script has no spaces. Words that are too long are left out.
pub(super) fn each(text: &str, mut found: impl FnMut(&str, Origin)) {
    let mut found = |word: &str, origin| {
        if word.len() <= LONGEST_WORD {
            found(word, origin);
        }
    };
    let mut lower = String::new();
    let joins = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let mut rest = text;
    while !rest.is_empty() {
        // Nearly every word of nearly every text is plain small letters, and needs no more than this.
        let bytes = rest.as_bytes();
        let end = bytes.iter().position(|byte| !joins(*byte)).unwrap_or(bytes.len());
        if end == bytes.len() || bytes[end].is_ascii() {
            let chunk = &rest[..end];
            if !is_plain(chunk) {
                identifier(chunk, &mut lower, &mut found);
            } else if bytes[0].is_ascii_uppercase() {
                to_lower(chunk, &mut lower);
                found(&lower, Origin::Written);
            } else {
                found(chunk, Origin::Written);
            }
            rest = rest.get(end + 1..).unwrap_or_default();
            continue;
        }
        let end = rest.find(|c: char| !is_word(c) && c != '_' && c != '-').unwrap_or(rest.len());
        let (chunk, behind) = rest.split_at(end);
        rest = &behind[behind.chars().next().map_or(0, char::len_utf8)..];
        if chunk.chars().any(is_ideographic) {
            chunk.split(['_', '-']).for_each(|run| ideographic(run, &mut lower, &mut found));
        } else {
            identifier(chunk, &mut lower, &mut found);
        }
    }
}

/// Whether this is one word, whose first letter may be a capital.
fn is_plain(chunk: &str) -> bool {
    let small = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    matches!(chunk.as_bytes(), [first, rest @ ..] if first.is_ascii_alphanumeric() && rest.iter().all(small))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c)
}

/// Whether this is a vowel sign or the like: words of some scripts would fall apart at it.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{900}'..='\u{dff}' | '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}')
        && !c.is_whitespace()
}

/// Whether this is of a script that has no spaces between words.
pub(super) fn is_ideographic(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{e00}'..='\u{e7f}' | '\u{20000}'..='\u{3ffff}')
}

fn ideographic(run: &str, lower: &mut String, found: &mut impl FnMut(&str, Origin)) {
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        let same = |c: char| is_ideographic(c) == is_ideographic(first);
        let end = rest.find(|c| !same(c)).unwrap_or(rest.len());
        let (stretch, after) = rest.split_at(end);
        rest = after;
        if !is_ideographic(first) {
            identifier(stretch, lower, found);
            continue;
        }
        let starts: Vec<usize> = stretch.char_indices().map(|(at, _)| at).collect();
        if starts.len() == 1 {
            found(stretch, Origin::Written);
        }
        for pair in starts.windows(2) {
            let end = stretch[pair[1]..].chars().next().map_or(stretch.len(), |c| pair[1] + c.len_utf8());
            found(&stretch[pair[0]..end], Origin::Written);
        }
    }
}

/// Splits an identifier: `getHTMLPage_v2` is `get`, `html`, `page`, `v2`, and `gethtmlpagev2`.
fn identifier(chunk: &str, lower: &mut String, found: &mut impl FnMut(&str, Origin)) {
    let parts = chunk.split(['_', '-']).filter(|part| !part.is_empty());
    // `GitHub` is a word of its own; `getUser_name` is not.
    let one = parts.clone().nth(1).is_none();
    let camel = one && parts.clone().any(|part| CamelCase(part).nth(1).is_some());
    let (piece, whole) =
        if camel { (Origin::Hump, Origin::Written) } else { (Origin::Written, Origin::Joined) };
    let mut count = 0;
    for part in parts.clone() {
        for word in CamelCase(part) {
            count += 1;
            to_lower(word, lower);
            found(lower, piece);
        }
    }
    if count > 1 {
        lower.clear();
        parts.for_each(|part| push_lower(part, lower));
        found(lower, whole);
    }
}

fn to_lower(word: &str, lower: &mut String) {
    lower.clear();
    push_lower(word, lower);
}

fn push_lower(word: &str, lower: &mut String) {
    if word.is_ascii() {
        let start = lower.len();
        lower.push_str(word);
        lower[start..].make_ascii_lowercase();
    } else {
        lower.extend(word.chars().flat_map(char::to_lowercase));
    }
}

/// The words of `camelCase` and `HTMLPage`.
struct CamelCase<'a>(&'a str);

impl<'a> Iterator for CamelCase<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0;
        let mut chars = text.char_indices().peekable();
        let (_, mut before) = chars.next()?;
        let mut end = text.len();
        while let Some((at, c)) = chars.next() {
            let next_is_lower = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
            let starts =
                c.is_uppercase() && (before.is_lowercase() || before.is_uppercase() && next_is_lower);
            if starts {
                end = at;
                break;
            }
            before = c;
        }
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        Some(word)
    }
}

/// Words of sentences and requests that say nothing about what is wanted.
const STOP_WORDS: &[&str] = &[
    "a", "about", "above", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at",
    "be", "because", "been", "before", "being", "both", "but", "by", "can", "could", "d", "did", "do",
    "does", "doing", "each", "for", "from", "had", "has", "have", "having", "he", "help", "her", "here",
    "hers", "hey", "hi", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "kindly",
    "know", "let", "like", "ll", "m", "may", "me", "might", "mine", "more", "most", "must", "my", "need",
    "no", "nor", "not", "now", "of", "off", "on", "once", "only", "or", "other", "our", "ours", "out",
    "over", "own", "please", "re", "s", "same", "she", "should", "so", "some", "such", "t", "tell", "than",
    "thank", "thanks", "that", "the", "their", "theirs", "them", "then", "there", "these", "they", "this",
    "those", "through", "to", "too", "under", "until", "up", "us", "use", "used", "using", "ve", "very",
    "via", "want", "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom", "whose",
    "why", "will", "with", "within", "without", "would", "you", "your", "yours",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each(text, |word, _| words.push(word.to_owned()));
        words
    }

    #[test]
    fn identifiers_are_taken_apart_and_kept() {
        assert_eq!(words("getHTMLPage"), ["get", "html", "page", "gethtmlpage"]);
        assert_eq!(words("create_issue now"), ["create", "issue", "createissue", "now"]);
        assert_eq!(words("k8s-pods.list"), ["k8s", "pods", "k8spods", "list"]);
    }

    #[test]
    fn scripts_without_spaces_become_pairs() {
        assert_eq!(words("天气预报"), ["天气", "气预", "预报"]);
        assert_eq!(words("PDF文件"), ["pdf", "文件"]);
        assert_eq!(words("雨"), ["雨"]);
    }

    #[test]
    fn other_scripts_are_not_lost() {
        assert_eq!(words("Погода в Москве"), ["погода", "в", "москве"]);
        assert_eq!(words("हिन्दी में"), ["हिन्दी", "में"]);
    }

    #[test]
    fn words_that_are_too_long_are_left_out() {
        let long = "y".repeat(1 << 20);
        assert_eq!(words(&format!("a {long} b {long}_c")), ["a", "b", "c"]);
        assert_eq!(words(&"y".repeat(LONGEST_WORD)).len(), 1);
    }

    #[test]
    fn endings_and_little_words_do_not_count() {
        let words = Words::default();
        assert_eq!(words.term("repositories"), words.term("repository"));
        assert_eq!(words.term("please"), None);
        assert_eq!(words.term("v2").as_deref(), Some("v2"));
    }
}
