//! The first sentence of a description.

/// The first sentence of a text on one line, or its first paragraph if that has no end.
pub fn first_sentence(text: &str) -> String {
    let paragraph = text.trim_start().split("\n\n").next().unwrap_or_default();
    let paragraph = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let ends = paragraph.match_indices(['.', '!', '?', '。']).map(|(at, mark)| at + mark.len());
    let end = ends.into_iter().find(|end| {
        let (before, behind) = paragraph.split_at(*end);
        let word = before.rsplit([' ', '(']).next().unwrap_or_default();
        let follows = behind.starts_with(' ') || before.ends_with('。');
        follows && !["e.g.", "i.e.", "etc.", "vs.", "cf."].contains(&word)
    });
    paragraph[..end.unwrap_or(paragraph.len())].to_owned()
}
