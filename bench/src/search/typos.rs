//! Typing mistakes, the same for the same query on every machine.

use super::halves::hash;

/// Words with fewer letters are not mistyped, because hardly anything of them would be left.
const SHORTEST: usize = 4;
/// From this length on, every other word gets two mistakes.
const LONG: usize = 8;
/// Neighbouring keys.
const ROWS: [&str; 3] = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];

/// A query with a mistake in one word, which differs in each sample; `None` if it has no suitable word.
pub(super) fn mistyped(query: &str, sample: u64) -> Option<String> {
    let is_word = |word: &&str| word.len() >= SHORTEST && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let words: Vec<&str> = query.split(' ').filter(is_word).collect();
    let mut dice = Dice(hash(query).wrapping_add(sample));
    let word = *words.get(dice.below(words.len().max(1)))?;
    let mut wrong = mistake(word, &mut dice);
    if word.len() >= LONG && dice.below(2) == 0 {
        wrong = mistake(&wrong, &mut dice);
    }
    let mut done = false;
    let replaced = query.split(' ').map(|other| {
        if other == word && !std::mem::replace(&mut done, true) { wrong.as_str() } else { other }
    });
    Some(replaced.collect::<Vec<_>>().join(" ")).filter(|text| text != query)
}

/// A mistake in a word. The first letter is mostly right.
fn mistake(word: &str, dice: &mut Dice) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let first = usize::from(dice.below(10) > 0);
    let at = first + dice.below(letters.len() - first);
    match dice.below(5) {
        0 => {
            letters.remove(at);
        }
        1 => letters.insert(at, letters[at]),
        2 => letters[at] = beside(letters[at], dice),
        3 => letters.insert(at, beside(letters[at], dice)),
        _ => {
            let other = if at + 1 < letters.len() { at + 1 } else { at - 1 };
            letters.swap(at, other);
        }
    }
    letters.into_iter().collect()
}

fn beside(letter: char, dice: &mut Dice) -> char {
    let row = ROWS.iter().find(|row| row.contains(letter)).unwrap_or(&ROWS[0]).as_bytes();
    let at = row.iter().position(|key| char::from(*key) == letter).unwrap_or_default();
    let other = if at == 0 || at + 1 < row.len() && dice.below(2) == 0 { at + 1 } else { at - 1 };
    char::from(row[other])
}

/// Pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % limit as u64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_is_mistyped_and_always_in_the_same_way() {
        let clean = "create a pull request in the repository";
        let typo = mistyped(clean, 0).unwrap();
        assert_eq!(mistyped(clean, 0), Some(typo.clone()));
        let differing = clean.split(' ').zip(typo.split(' ')).filter(|(a, b)| a != b).count();
        assert_eq!(differing, 1, "{typo}");
        assert_eq!(mistyped("ls -a", 0), None);
    }
}
