//! Makes what a server said safe to show: no escape sequence, no control character, and nothing
//! invisible that makes a text read differently from what it says.

use std::{iter::Peekable, str::Chars};

/// Keeps the line breaks of a text.
pub fn clean(text: &str) -> String {
    let mut chars = text.chars().peekable();
    let mut cleaned = String::with_capacity(text.len());
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            '\n' | '\t' => cleaned.push(char),
            // A line that was redrawn on the spot would hide what it said before.
            '\r' if chars.peek() != Some(&'\n') => cleaned.push('\n'),
            _ if char.is_control() || is_invisible(char) => {}
            _ => cleaned.push(char),
        }
    }
    cleaned
}

/// One line, whatever the text was: for tables and messages.
pub fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Like [`clean`], for JSON and command lines: blanks inside strings stay.
pub fn clean_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// Shows what [`clean`] would drop: for what must be read in full before it is trusted.
pub(super) fn visible(text: &str) -> String {
    let show = |char: char| match char {
        _ if char.is_control() || is_invisible(char) => char.escape_unicode().to_string(),
        _ => char.to_string(),
    };
    text.chars().map(show).collect()
}

fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.next() {
        Some('[') => skip_control_sequence(chars),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(chars),
        // Intermediate characters: the sequence goes on until a final one.
        Some(' '..='/') => while chars.next().is_some_and(|char| matches!(char, ' '..='/')) {},
        _ => {}
    }
}

/// Parameters, then one final character.
fn skip_control_sequence(chars: &mut Peekable<Chars<'_>>) {
    while chars.next().is_some_and(|char| matches!(char, ' '..='?')) {}
}

/// A title, a link and the like: up to BEL or `ESC \`, but never past the end of the line.
fn skip_string(chars: &mut Peekable<Chars<'_>>) {
    while let Some(char) = chars.next_if(|char| *char != '\n') {
        match char {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' if chars.next_if_eq(&'\\').is_some() => return,
            _ => {}
        }
    }
}

/// Direction marks, tags, fillers. Joiners stay: several scripts cannot be written without them.
fn is_invisible(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_server_says_can_steer_a_terminal() {
        let cases = [
            ("plain\n\ttext", "plain\n\ttext"),
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x07 end", "link end"),
            ("\x1b]0;title never ends\nnext", "\nnext"),
            ("\x1b(Bcharset \x1b7saved", "charset saved"),
            ("\u{9b}2Jc1 \u{9d}title\u{9c}.", "c1 ."),
            ("a\u{202e}b\u{e0041}c\u{200b}d\u{2066}e", "abcde"),
            ("bell\x07 back\x08 null\0", "bell back null"),
            ("windows\r\nline", "windows\nline"),
            ("safe\rrm -rf", "safe\nrm -rf"),
            ("a\u{200d}b", "a\u{200d}b"),
            ("cut off \x1b[", "cut off "),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected, "{text:?}");
        }
        assert_eq!(one_line(" two\n\n  words\t"), "two words");
        assert_eq!(visible("a\u{1b}[2K\u{202e}b"), "a\\u{1b}[2K\\u{202e}b");
        assert_eq!(clean_line("{\"a\":  1}\n"), "{\"a\":  1} ");
    }
}
