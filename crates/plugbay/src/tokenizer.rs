//! Counts tokens with o200k, the vocabulary that published measurements use.
//!
//! It takes a third of a second and some 50 MB to unpack, so only commands that show counts come here.

use std::thread;

pub fn count(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}

/// Unpacks the vocabulary behind, for a command that has something else to wait for.
pub fn prepare() {
    thread::spawn(tiktoken_rs::o200k_base_singleton);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of a public cookbook that tell o200k from its predecessors.
    #[test]
    fn counts_as_published() {
        let counts = ["antidisestablishmentarianism", "2 + 2 = 4", "お誕生日おめでとう", ""].map(count);
        assert_eq!(counts, [6, 7, 8, 0]);
    }
}
