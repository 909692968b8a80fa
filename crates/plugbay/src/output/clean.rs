//! Makes a server's text safe to show: without escape sequences, control characters, and invisible characters
//! that make a text read differently from what it says.

use plugbay_core::text;

/// Cleans a text but keeps its line breaks. Escape sequences are removed; other hidden characters are written
/// out.
pub fn clean(text: &str) -> String {
    text::shown(text).replace("\r\n", "\n")
}

/// Cleans a text and puts it on one line: for tables and messages.
pub fn one_line(text: &str) -> String {
    clean(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Like [`clean`], for JSON and command lines: spaces inside strings stay.
pub fn clean_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// Shows the characters that [`clean`] would remove, for text that must be read in full before it is trusted.
pub(super) fn visible(text: &str) -> String {
    text::visible(text).into_owned()
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
            ("a\u{202e}b\u{e0041}c\u{200b}d", "a\\u{202e}b\\u{e0041}c\\u{200b}d"),
            ("bell\x07 null\0", "bell\\u{7} null\\u{0}"),
            ("windows\r\nline", "windows\nline"),
            ("safe\rrm -rf", "safe\nrm -rf"),
            ("👨\u{200d}👩", "👨\u{200d}👩"),
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
