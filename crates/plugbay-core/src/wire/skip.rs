//! Skips parts of JSON without checking them, 64 bytes at a time.
//!
//! A message is checked once, by [`super::scan`]. Later passes look for a few members, and a large value between them
//! must not cost as much as the check. In text that is no JSON a skip ends somewhere, and the strict cursor
//! that goes on there reports the error.

#![expect(
    clippy::inline_always,
    reason = "only inlined code is compiled for the processor's own instructions"
)]

use fearless_simd::{Level, Simd, dispatch};
use memchr::memchr2;

use super::{
    masks::Block,
    scan::{bits, escaped, parity},
};

/// The end of the string that begins at `at`, after its closing quote.
pub(crate) fn string_end(json: &[u8], at: usize) -> Option<usize> {
    // Most strings are short and have no escapes.
    let near = json.get(at + 1..).map_or(&[][..], |text| &text[..text.len().min(64)]);
    if let Some(place) = memchr2(b'"', b'\\', near)
        && near[place] == b'"'
    {
        return Some(at + place + 2);
    }
    let mut string = StringEnd::default();
    pass(json, at + 1, &mut string);
    string.end.filter(|end| *end <= json.len())
}

/// The end of the object or array that begins at `at`. `None` if it has none.
pub(crate) fn container_end(json: &[u8], at: usize) -> Option<usize> {
    let mut container = ContainerEnd::default();
    pass(json, at, &mut container);
    container.end
}

/// Elements of an array that were skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) count: usize,
    /// The comma before the next element, or the end of the array.
    pub(crate) next: usize,
    /// The start of the last of them, or of blanks before it.
    pub(crate) last: usize,
}

/// Skips up to `count` elements of an array, from the one that begins at `at`.
pub(crate) fn elements(json: &[u8], at: usize, count: usize) -> Passed {
    let passed = Passed { count: 0, next: json.len(), last: at };
    let mut elements = Elements { passed, count, depth: 0, strings: Strings::default() };
    pass(json, at, &mut elements);
    elements.passed
}

/// The state of a search between two blocks.
trait Wanted {
    /// Searches the block that begins at `base`. `true`: found.
    fn is_in<S: Simd>(&mut self, base: usize, block: Block<S>) -> bool;
}

fn pass(json: &[u8], at: usize, wanted: &mut impl Wanted) {
    let rest = json.get(at..).unwrap_or_default();
    dispatch!(Level::new(), simd => all_blocks(simd, rest, at, wanted));
}

/// Searches block by block; the last one is filled up with blanks.
#[inline(always)]
fn all_blocks<S: Simd>(simd: S, text: &[u8], start: usize, wanted: &mut impl Wanted) {
    let (blocks, tail) = text.as_chunks::<64>();
    let mut last = [b' '; 64];
    last[..tail.len()].copy_from_slice(tail);
    for (number, block) in blocks.iter().chain([&last]).enumerate() {
        if wanted.is_in(start + number * 64, Block::of(simd, block)) {
            return;
        }
    }
}

/// The state of strings between two blocks.
#[derive(Default)]
struct Strings {
    /// All bits if the next block begins inside of a string.
    in_string: u64,
    /// The next byte is escaped.
    escape: u64,
}

impl Strings {
    /// The quotes that are not escaped.
    #[inline(always)]
    fn quotes<S: Simd>(&mut self, block: Block<S>) -> u64 {
        let (quotes, backslashes) = (block.equal(b'"'), block.equal(b'\\'));
        if backslashes | self.escape == 0 { quotes } else { quotes & !escaped(backslashes, &mut self.escape) }
    }

    /// The bytes that stand in no string.
    #[inline(always)]
    fn outside<S: Simd>(&mut self, block: Block<S>) -> u64 {
        let within = parity(self.quotes(block)) ^ self.in_string;
        self.in_string = 0u64.wrapping_sub(within >> 63);
        !within
    }
}

#[derive(Default)]
struct StringEnd {
    strings: Strings,
    end: Option<usize>,
}

impl Wanted for StringEnd {
    #[inline(always)]
    fn is_in<S: Simd>(&mut self, base: usize, block: Block<S>) -> bool {
        let quotes = self.strings.quotes(block);
        self.end = (quotes != 0).then(|| base + quotes.trailing_zeros() as usize + 1);
        self.end.is_some()
    }
}

#[derive(Default)]
struct ContainerEnd {
    strings: Strings,
    depth: u32,
    end: Option<usize>,
}

impl Wanted for ContainerEnd {
    #[inline(always)]
    fn is_in<S: Simd>(&mut self, base: usize, block: Block<S>) -> bool {
        let outside = self.strings.outside(block);
        let left = block.folded(b'{') & outside;
        let right = block.folded(b'}') & outside;
        // Too few brackets close for the outermost to be among them.
        if right.count_ones() < self.depth {
            self.depth = self.depth + left.count_ones() - right.count_ones();
            return false;
        }
        for at in bits(left | right) {
            if left >> at & 1 == 1 {
                self.depth += 1;
                continue;
            }
            self.depth = self.depth.saturating_sub(1);
            if self.depth == 0 {
                self.end = Some(base + at + 1);
                return true;
            }
        }
        false
    }
}

struct Elements {
    passed: Passed,
    /// At most this many are skipped.
    count: usize,
    depth: u32,
    strings: Strings,
}

impl Wanted for Elements {
    #[inline(always)]
    fn is_in<S: Simd>(&mut self, base: usize, block: Block<S>) -> bool {
        let outside = self.strings.outside(block);
        let opens = block.folded(b'{') & outside;
        let closes = block.folded(b'}') & outside;
        let commas = block.equal(b',') & outside;
        // Commas count only outside of the brackets of elements.
        let mut marks = opens | closes | if self.depth == 0 || closes != 0 { commas } else { 0 };
        while marks != 0 {
            let bit = marks & marks.wrapping_neg();
            let place = base + marks.trailing_zeros() as usize;
            marks ^= bit;
            if opens & bit != 0 {
                self.depth += 1;
                // Inside of an element, commas before the next bracket do not count.
                let brackets = (opens | closes) & marks;
                marks &= !(brackets & brackets.wrapping_neg()).wrapping_sub(1) | opens | closes;
            } else if closes & bit != 0 {
                let Some(outer) = self.depth.checked_sub(1) else {
                    self.passed.count += 1;
                    self.passed.next = place;
                    return true;
                };
                self.depth = outer;
            } else if self.depth == 0 {
                self.passed.count += 1;
                if self.passed.count == self.count {
                    self.passed.next = place;
                    return true;
                }
                self.passed.last = place + 1;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::wire::Cursor;

    /// Values with brackets, quotes and backslashes in their texts, over several blocks.
    fn values() -> impl Strategy<Value = Value> {
        let text = r#"[\[\]{}"\\a-zé ]{0,90}"#;
        let leaf = prop_oneof![any::<i32>().prop_map(Value::from), text.prop_map(Value::from)];
        leaf.prop_recursive(5, 40, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((text, inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_container_ends_where_it_was_written_to_end(value in values(), before in 0usize..70, after in 0usize..70) {
            let container = json!([value]).to_string();
            let text = format!("{}{container}{}", " ".repeat(before), "]},\"x\"".repeat(after));
            prop_assert_eq!(container_end(text.as_bytes(), before), Some(before + container.len()));
        }

        #[test]
        fn skipped_elements_end_where_the_cursor_says(
            texts in prop::collection::vec(r#"[a-z\\\\"{}\[\], ]{0,40}"#, 1..30),
            count in 1usize..40,
        ) {
            let value = |text: &String| json!([text, {"k": [1, text], "l": {}}]);
            let json = Value::from(texts.iter().map(value).collect::<Vec<_>>()).to_string();
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
            let json = format!(" {} ", Value::from(text));
            let mut cursor = Cursor::new(json.as_bytes(), 1);
            prop_assert_eq!(string_end(json.as_bytes(), 1), Some(cursor.string().unwrap().0.end));
        }
    }

    #[test]
    fn a_container_without_an_end_has_none() {
        for text in ["", "[", r#"{"a":"}"#, r#"["\\\"]"#, "[[]", "1"] {
            assert_eq!(container_end(text.as_bytes(), 0), None, "{text}");
        }
        assert_eq!(container_end(b"[]", 9), None);
    }
}
