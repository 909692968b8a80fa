//! Estimates how many tokens a text has, without a vocabulary: for budgets, never for figures that are shown.

/// A word of more letters than this is seldom one token.
const WORD: usize = 9;
const DIGITS: usize = 3;
const MARKS: usize = 2;

/// The likely number of tokens: words, numbers and marks are counted as o200k would most likely cut them.
pub fn estimate(text: &str) -> usize {
    let mut tokens = 0;
    let mut run = (Class::Blank, 0);
    let mut before = ' ';
    for c in text.chars() {
        let class = Class::of(c);
        // A capital letter begins a new piece, as in `camelCase`.
        let hump = c.is_ascii_uppercase() && before.is_ascii_lowercase();
        if class == run.0 && !hump {
            run.1 += 1;
        } else {
            tokens += cost(run);
            run = (class, 1);
        }
        before = c;
    }
    tokens + cost(run)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Mark,
    /// Part of the token of the word after it.
    Blank,
    Other,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Digit,
            ' ' | '_' => Self::Blank,
            '!'..='~' | '\n' => Self::Mark,
            _ => Self::Other,
        }
    }
}

fn cost((class, length): (Class, usize)) -> usize {
    match class {
        Class::Letter => length.div_ceil(WORD),
        Class::Digit => length.div_ceil(DIGITS),
        Class::Mark => length.div_ceil(MARKS),
        Class::Blank => usize::from(length > 1),
        Class::Other => length.div_ceil(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_weighed_roughly() {
        for (text, tokens) in [
            ("", 0),
            ("read the file", 3),
            ("files__read(path: string, limit?: int)", 12),
            (r#"{"type":"object","properties":{"a":1}}"#, 15),
            ("天气预报", 2),
        ] {
            assert_eq!(estimate(text), tokens, "{text}");
        }
    }
}
