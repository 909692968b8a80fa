//! The sentences of a description.

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
