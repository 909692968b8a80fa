//! The sentences of a description.

use crate::name::folded_chars;

/// The mark of a tool that only reads, in the lines of replies.
pub(crate) const READS: &str = "[reads]";
/// How long a mark of a server's own is at most, in bytes.
const MARK: usize = 40;

/// A description without plugbay's own marks at its beginning, however they are written: only plugbay marks tools.
pub(crate) fn without_marks(description: &str) -> &str {
    let mut rest = description;
    while let Some(behind) = behind_mark(rest) {
        let is_joint = |c: char| c.is_whitespace() || "*_`.,:;|>)-".contains(c);
        rest = behind.trim_start_matches(is_joint);
    }
    rest
}

/// The text behind a mark at its beginning, before which no word stands.
fn behind_mark(text: &str) -> Option<&str> {
    let start = text.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '[').strip_prefix('[')?;
    let end = start[..start.floor_char_boundary(MARK)].find(']')?;
    folded_chars(&start[..end]).eq(folded_chars(READS)).then(|| &start[end + 1..])
}

/// The first sentence of a text on one line, or its first paragraph if that has no end.
pub fn first_sentence(text: &str) -> String {
    let paragraph = text.trim_start().split("\n\n").next().unwrap_or_default();
    let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = sentence_ends(&paragraph).next();
    paragraph[..end.unwrap_or(paragraph.len())].to_owned()
}

/// The first sentences of a text, each on one line. The end of a paragraph also ends a sentence.
pub(super) fn first(text: &str, most: usize) -> Vec<String> {
    let mut found = Vec::new();
    for paragraph in text.split("\n\n") {
        let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut start = 0;
        for end in sentence_ends(&paragraph).chain([paragraph.len()]) {
            if found.len() == most {
                return found;
            }
            let sentence = paragraph[start..end].trim();
            found.extend((!sentence.is_empty()).then(|| sentence.to_owned()));
            start = end;
        }
    }
    found
}

/// Where the sentences of a line end, the last one only if it ends with a mark.
pub(crate) fn sentence_ends(line: &str) -> impl Iterator<Item = usize> {
    let ends = line.match_indices(['.', '!', '?', '。']).map(|(at, mark)| at + mark.len());
    ends.filter(|end| {
        let (before, behind) = line.split_at(*end);
        let follows = behind.is_empty() || behind.starts_with(' ') || before.ends_with('。');
        // Searched from the end: a word may be as long as the text.
        let is_last_word = |word: &&str| {
            let rest = before.strip_suffix(*word);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with([' ', '(']))
        };
        follows && !["e.g.", "i.e.", "etc.", "vs.", "cf."].iter().any(is_last_word)
    })
}
