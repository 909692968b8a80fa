//! Finds the end of a value that has been checked before, 64 bytes at a time.
//!
//! A message is checked once, by [`super::scan`]. Later passes only look for a few members, and a large value between
//! them must not cost as much as the check.

use super::{
    masks::Block,
    scan::{bits, escaped, parity},
};

/// The place behind the object or array that begins at `start`. It must be JSON: only its brackets are counted.
/// `None` if it has no end.
pub(super) fn container_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut skip, mut at) = (Skip::default(), start);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let found = match rest.first_chunk::<64>() {
            Some(block) => skip.block(block),
            None => skip.block(&padded(rest)),
        };
        if let Some(offset) = found {
            return Some(at + offset + 1);
        }
        at += 64;
        if skip.is_in_text() {
            at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        }
    }
    None
}

/// The last bytes as a block.
fn padded(rest: &[u8]) -> [u8; 64] {
    let mut block = [b' '; 64];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// Between two blocks: how many brackets are open, and whether a string is.
#[derive(Default)]
struct Skip {
    depth: u32,
    /// All bits if the next block begins inside of a string.
    in_string: u64,
    /// The next byte is escaped.
    escape: u64,
}

impl Skip {
    /// Whether the next bytes are the middle of a string, up to a quote or a backslash.
    fn is_in_text(&self) -> bool {
        self.in_string != 0 && self.escape == 0
    }

    /// Where the last open bracket is closed, if in this block.
    fn block(&mut self, bytes: &[u8; 64]) -> Option<usize> {
        let block = Block::of(bytes);
        let (mut quotes, backslashes) = (block.equal(b'"'), block.equal(b'\\'));
        if backslashes | self.escape != 0 {
            quotes &= !escaped(backslashes, &mut self.escape);
        }
        let within_strings = parity(quotes) ^ self.in_string;
        self.in_string = 0u64.wrapping_sub(within_strings >> 63);
        let left = block.folded(b'{') & !within_strings;
        let right = block.folded(b'}') & !within_strings;
        // Too few brackets close for the last one to be among them.
        if right.count_ones() < self.depth {
            self.depth = self.depth + left.count_ones() - right.count_ones();
            return None;
        }
        for at in bits(left | right) {
            if left >> at & 1 == 1 {
                self.depth += 1;
                continue;
            }
            self.depth = self.depth.saturating_sub(1);
            if self.depth == 0 {
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

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
    }

    #[test]
    fn a_container_without_an_end_has_none() {
        for text in ["", "[", r#"{"a":"}"#, r#"["\\\"]"#, "[[]", "1"] {
            assert_eq!(container_end(text.as_bytes(), 0), None, "{text}");
        }
        assert_eq!(container_end(b"[]", 9), None);
    }
}
