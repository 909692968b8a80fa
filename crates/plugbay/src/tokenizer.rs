//! Counts tokens with o200k, the vocabulary that published measurements use.
//!
//! Unpacking it takes a third of a second and some 50 MB, so only commands that show counts use it.

use std::thread;

pub fn count(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}

/// Unpacks the vocabulary in the background, for a command that must wait for something else anyway.
pub fn prepare() {
    thread::spawn(tiktoken_rs::o200k_base_singleton);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples from a public cookbook that distinguish o200k from its predecessors.
    #[test]
    fn counts_as_published() {
        let counts = ["antidisestablishmentarianism", "2 + 2 = 4", "お誕生日おめでとう", ""].map(count);
        assert_eq!(counts, [6, 7, 8, 0]);
    }
}
