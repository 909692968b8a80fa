//! The words of a catalog: nearly all are short, and are compared without following a pointer.

use rustc_hash::FxHashMap;

/// A value for each word.
#[derive(Debug, Clone)]
pub(super) struct Lexicon<T> {
    short: FxHashMap<u128, T>,
    long: FxHashMap<Box<str>, T>,
}

impl<T> Default for Lexicon<T> {
    fn default() -> Self {
        Self { short: FxHashMap::default(), long: FxHashMap::default() }
    }
}

impl<T: Copy> Lexicon<T> {
    pub(super) fn get(&self, word: &str) -> Option<T> {
        match packed(word) {
            Some(packed) => self.short.get(&packed).copied(),
            None => self.long.get(word).copied(),
        }
    }

    pub(super) fn insert(&mut self, word: &str, value: T) {
        match packed(word) {
            Some(packed) => self.short.insert(packed, value),
            None => self.long.insert(word.into(), value),
        };
    }

    pub(super) fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    pub(super) fn each(&self, mut found: impl FnMut(&str, T)) {
        for (packed, value) in &self.short {
            found(unpacked(&packed.to_le_bytes()), *value);
        }
        for (word, value) in &self.long {
            found(word, *value);
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let texts: usize = self.long.keys().map(|word| word.len()).sum();
        let long = self.long.capacity() * size_of::<(Box<str>, T)>();
        texts + long + self.short.capacity() * size_of::<(u128, T)>()
    }
}

/// A short word and its length, as one number.
fn packed(word: &str) -> Option<u128> {
    let mut bytes = [0; 16];
    let (last, room) = bytes.split_last_mut()?;
    room.get_mut(..word.len())?.copy_from_slice(word.as_bytes());
    *last = u8::try_from(word.len()).ok()?;
    Some(u128::from_le_bytes(bytes))
}

fn unpacked(bytes: &[u8; 16]) -> &str {
    let word = bytes.get(..usize::from(bytes[15])).unwrap_or_default();
    std::str::from_utf8(word).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_length_are_kept_apart() {
        let words =
            ["", "a", "a\0", "天气", "fifteen-letters", "sixteen--letters", "more than sixteen letters"];
        let mut lexicon = Lexicon::default();
        for (number, word) in (0..).zip(words) {
            assert_eq!(lexicon.get(word), None);
            lexicon.insert(word, number);
        }
        let mut kept: Vec<(i32, String)> = Vec::new();
        lexicon.each(|word, number| kept.push((number, word.to_owned())));
        kept.sort();
        assert!(kept.iter().map(|(_, word)| word.as_str()).eq(words));
        assert!(words.iter().zip(0..).all(|(word, number)| lexicon.get(word) == Some(number)));
    }
}
