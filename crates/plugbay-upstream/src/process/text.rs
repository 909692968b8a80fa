//! Makes a line of a foreign program safe to show in a terminal, a log or an error message.

use plugbay_core::{
    text::stripped,
    wire::{Members, Span, string_value},
};

/// Longest line in bytes: enough for any message, and short enough to repeat in an answer.
const LONGEST: usize = 4096;

/// Decodes a line lossily and drops escape sequences and other hidden characters. If it was redrawn with
/// carriage returns, the last state that shows something is kept.
pub(crate) fn clean(line: &[u8]) -> String {
    line.rsplit(|byte| *byte == b'\r').map(clean_segment).find(|text| !text.is_empty()).unwrap_or_default()
}

/// The message of a JSON-RPC error, or the whole error if it has none.
pub(crate) fn error_text(message: &[u8], error: &Span) -> String {
    let text = Members::find(message, error, "message").and_then(|span| string_value(&message[span]));
    clean(text.as_deref().map_or(&message[error.clone()], str::as_bytes))
}

fn clean_segment(bytes: &[u8]) -> String {
    // A line may consist mostly of escape sequences, but a long one not entirely.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * LONGEST)]);
    let mut cleaned = stripped(&text).replace('\t', " ");
    if cleaned.len() > LONGEST {
        cleaned.truncate(cleaned.floor_char_boundary(LONGEST));
        cleaned.push('…');
    }
    cleaned.truncate(cleaned.trim_end().len());
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_removed_from_shown_text() {
        let cases: &[(&[u8], &str)] = &[
            (b"plain", "plain"),
            (b"\x1b[1;31merror:\x1b[0m no\tport", "error: no port"),
            (b"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x07 end", "link end"),
            (b"\x1b]0;title never ends", ""),
            (b"\x1b(Bcharset \x1b7saved", "charset saved"),
            (b"bell\x07 back\x08 null\0", "bell back null"),
            ("\u{9b}2Jc1".as_bytes(), "c1"),
            ("a\u{202e}b\u{e0041}c".as_bytes(), "abc"),
            (b"bad \xff byte", "bad \u{fffd} byte"),
            (b"windows line\r", "windows line"),
            (b"10%\r55%\r100%", "100%"),
            (b"the error\r\x1b[K", "the error"),
            (b"cut off \x1b[", "cut off"),
            (b"cut off \x1b", "cut off"),
        ];
        for (line, expected) in cases {
            assert_eq!(clean(line), *expected, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn long_lines_are_cut_in_shown_text() {
        let cleaned = clean(&[b'x'; 3 * LONGEST]);

        assert!(cleaned.ends_with("x…") && cleaned.len() < LONGEST + 8);
    }
}
