//! Moves on in JSON without a look at what is passed, 64 bytes at a time: to the end of a string, or over elements.
//!
//! Nothing is validated. Text that is no JSON ends somewhere, and the strict cursor behind it says so.

use super::masks::Block;

/// The end of the string that begins at `at`, behind its closing quote.
pub(crate) fn string_end(json: &[u8], at: usize) -> Option<usize> {
    let mut strings = Strings::default();
    let mut found = None;
    blocks(json, at + 1, |base, block| {
        let quotes = strings.quotes(block);
        found = (quotes != 0).then(|| base + quotes.trailing_zeros() as usize + 1);
        found.is_some()
    });
    found.filter(|end| *end <= json.len())
}

/// Elements of an array that were passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) count: usize,
    /// The comma before the next element, or the end of the array.
    pub(crate) next: usize,
    /// Where the last of them begins, or blanks before it.
    pub(crate) last: usize,
}

/// Passes up to `count` elements of an array, of which one begins at `at`.
pub(crate) fn elements(json: &[u8], at: usize, count: usize) -> Passed {
    let mut strings = Strings::default();
    let mut depth = 0u32;
    let mut passed = Passed { count: 0, next: json.len(), last: at };
    blocks(json, at, |base, block| {
        let quotes = strings.quotes(block);
        let outside = !strings.inside(quotes);
        let opens = block.folded(b'{') & outside;
        let closes = block.folded(b'}') & outside;
        let commas = block.equal(b',') & outside;
        // Commas count between brackets of elements only.
        let mut marks = opens | closes | if depth == 0 || closes != 0 { commas } else { 0 };
        while marks != 0 {
            let bit = marks & marks.wrapping_neg();
            let place = base + marks.trailing_zeros() as usize;
            marks ^= bit;
            if opens & bit != 0 {
                depth += 1;
                // No comma counts before the next bracket.
                let brackets = (opens | closes) & marks;
                marks &= !(brackets & brackets.wrapping_neg()).wrapping_sub(1) | opens | closes;
            } else if closes & bit != 0 {
                let Some(outer) = depth.checked_sub(1) else {
                    passed = Passed { count: passed.count + 1, next: place, ..passed };
                    return true;
                };
                depth = outer;
            } else if depth == 0 {
                passed.count += 1;
                if passed.count == count {
                    passed.next = place;
                    return true;
                }
                passed.last = place + 1;
            }
        }
        false
    });
    passed
}

/// The end of the value that begins at `at`, in an object or array.
pub(crate) fn value_end(json: &[u8], at: usize) -> usize {
    let next = elements(json, at, 1).next;
    at + json[at..next].trim_ascii_end().len()
}

/// Calls for each 64 bytes, the last ones filled up with blanks, until the answer is yes.
fn blocks(json: &[u8], at: usize, mut is_end: impl FnMut(usize, Block) -> bool) {
    let (whole, rest) = json[at.min(json.len())..].as_chunks::<64>();
    for (number, bytes) in whole.iter().enumerate() {
        if is_end(at + number * 64, Block::of(bytes)) {
            return;
        }
    }
    let mut last = [b' '; 64];
    last[..rest.len()].copy_from_slice(rest);
    is_end(at + whole.len() * 64, Block::of(&last));
}

/// Between two blocks. Each number is one bit or all bits.
#[derive(Default)]
struct Strings {
    in_string: u64,
    /// The next byte is escaped.
    escape: u64,
}

impl Strings {
    /// Quotes that are not escaped.
    fn quotes(&mut self, block: Block) -> u64 {
        let (quotes, backslashes) = (block.equal(b'"'), block.equal(b'\\'));
        if backslashes | self.escape == 0 { quotes } else { quotes & !self.escaped(backslashes) }
    }

    /// In a run of backslashes every other one escapes; a sum finds the end of each run that begins at an odd place.
    fn escaped(&mut self, backslashes: u64) -> u64 {
        const EVEN: u64 = u64::MAX / 3;
        let escapes = backslashes & !self.escape;
        let follows = escapes << 1 | self.escape;
        let odd = escapes & !EVEN & !follows;
        let (ends, carry) = odd.overflowing_add(escapes);
        self.escape = u64::from(carry);
        (EVEN ^ ends << 1) & follows
    }

    /// The bytes in strings, with the quotes that open them.
    fn inside(&mut self, quotes: u64) -> u64 {
        let mut bits = quotes;
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
        let inside = bits ^ self.in_string;
        self.in_string = 0u64.wrapping_sub(inside >> 63);
        inside
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::Cursor;

    proptest! {
        #[test]
        fn skipped_elements_end_where_the_cursor_says(
            texts in prop::collection::vec(r#"[a-z\\\\"{}\[\], ]{0,40}"#, 1..30),
            count in 1usize..40,
        ) {
            let value = |text: &String| serde_json::json!([text, {"k": [1, text], "l": {}}]);
            let json = serde_json::Value::from(texts.iter().map(value).collect::<Vec<_>>()).to_string();
            let mut cursor = Cursor::new(json.as_bytes(), 1);
            let mut spans = Vec::new();
            for _ in 0..count.min(texts.len()) {
                spans.push(cursor.value(1).unwrap());
                let _ = cursor.expect(b',');
            }
            let last = spans.last().unwrap();
            let expected = Passed { count: spans.len(), next: last.end, last: last.start };
            prop_assert_eq!(elements(json.as_bytes(), 1, count), expected);
        }

        #[test]
        fn strings_end_where_the_cursor_says(text in r#"[a-zé\\\\"]{0,200}"#) {
            let json = format!(" {} ", serde_json::Value::from(text));
            let mut cursor = Cursor::new(json.as_bytes(), 1);
            prop_assert_eq!(string_end(json.as_bytes(), 1), Some(cursor.string().unwrap().0.end));
        }
    }
}
