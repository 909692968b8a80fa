//! How similar two names are, at a bounded cost: strangers choose one of them, and how many there are.

use super::split;

/// A name of more characters than this is similar to no other.
const LONGEST: usize = 256;
/// How many cells of distance tables are filled for one list of suggestions.
const CELLS: usize = 1 << 20;
/// At most this many names are suggested.
const SUGGESTED: usize = 3;

/// Up to three of the known names that are most similar to one that does not exist, the most similar first.
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let Some(mut search) = Search::new(wanted) else { return Vec::new() };
    let mut scored: Vec<(usize, &str)> = Vec::new();
    for name in known {
        scored.extend(search.distance(name).map(|distance| (distance, name)));
    }
    scored.sort_unstable();
    scored.into_iter().take(SUGGESTED).map(|(_, name)| name).collect()
}

/// Whether two names differ by one letter too many, too few or wrong, or by two in the wrong order.
pub fn is_slip(one: &str, other: &str) -> bool {
    if one.len().abs_diff(other.len()) > 4 {
        return false; // the bytes of one character
    }
    let (one, other) = (one.chars().collect::<Vec<_>>(), other.chars().collect::<Vec<_>>());
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    let same = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    match (&one[..one.len() - same], &other[..other.len() - same]) {
        ([_], [] | [_]) | ([], [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

/// A name that is compared with others.
struct Search {
    /// In small letters.
    wanted: Vec<char>,
    letters: u64,
    /// The other name, in small letters.
    other: Vec<char>,
    table: Table,
    /// Cells of tables that may still be filled.
    cells: usize,
}

impl Search {
    /// `None` for a name that is similar to no other.
    fn new(wanted: &str) -> Option<Self> {
        let wanted: Vec<char> = wanted.chars().flat_map(char::to_lowercase).take(LONGEST + 1).collect();
        let letters = letters(&wanted);
        let (other, table) = (Vec::new(), Table::default());
        (wanted.len() <= LONGEST).then_some(Self { wanted, letters, other, table, cells: CELLS })
    }

    /// How far another name is away; `None` if that is too far, or if too much was compared before.
    fn distance(&mut self, name: &str) -> Option<usize> {
        // The tool's name without its server is as near as one with a single mistake.
        let tool = split(name).map(|(_, tool)| tool.chars().flat_map(char::to_lowercase));
        if tool.is_some_and(|tool| tool.eq(self.wanted.iter().copied())) {
            return Some(1);
        }
        self.other.clear();
        self.other.extend(name.chars().flat_map(char::to_lowercase).take(LONGEST + 1));
        let (wanted, other) = (&self.wanted, &self.other);
        let most = (wanted.len().max(other.len()) / 3).max(1);
        // Each edit adds or removes one letter at most.
        let letters = letters(other);
        let missing = (self.letters & !letters).count_ones().max((letters & !self.letters).count_ones());
        let is_far = missing as usize > most || wanted.len().abs_diff(other.len()) > most;
        if other.len() > LONGEST || is_far {
            return None;
        }
        self.cells = self.cells.checked_sub(wanted.len() * (2 * most + 1))?;
        self.table.distance(wanted, other, most)
    }
}

/// One bit for each letter in a name; some letters share one.
fn letters(name: &[char]) -> u64 {
    name.iter().fold(0, |letters, c| letters | 1 << (u32::from(*c) % 64))
}

/// The last three rows of a table of edit distances.
#[derive(Default)]
pub(crate) struct Table([Vec<usize>; 3]);

impl Table {
    /// How many letters must be inserted, left out, replaced, or swapped with their neighbours, if no more than `most`.
    /// Only cells that can lead to so few are filled.
    pub(crate) fn distance<T: PartialEq>(&mut self, one: &[T], other: &[T], most: usize) -> Option<usize> {
        const FAR: usize = usize::MAX / 2;
        if one.len().abs_diff(other.len()) > most {
            return None;
        }
        let [before, last, row] = &mut self.0;
        for row in [&mut *before, &mut *last, &mut *row] {
            row.clear();
            row.resize(other.len() + 1, FAR);
        }
        for (at, cell) in last.iter_mut().enumerate().take(most + 1) {
            *cell = at;
        }
        for at in 1..=one.len() {
            let (first, end) = (at.saturating_sub(most).max(1), other.len().min(at + most));
            row[first - 1] = if first == 1 { at } else { FAR };
            for to in first..=end {
                let is_same = one[at - 1] == other[to - 1];
                let mut fewest =
                    (last[to - 1] + usize::from(!is_same)).min(last[to] + 1).min(row[to - 1] + 1);
                if at > 1 && to > 1 && one[at - 1] == other[to - 2] && one[at - 2] == other[to - 1] {
                    fewest = fewest.min(before[to - 2] + 1);
                }
                row[to] = fewest;
            }
            if let Some(behind) = row.get_mut(end + 1) {
                *behind = FAR;
            }
            std::mem::swap(before, last);
            std::mem::swap(last, row);
        }
        Some(last[other.len()]).filter(|distance| *distance <= most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn suggestions_are_the_names_that_were_meant() {
        let known = ["git__status", "git__commit", "calc__list_units"];
        assert_eq!(nearest("Git_comit", known), ["git__commit"]);
        assert_eq!(nearest("git__commti", known), ["git__commit"]);
        assert_eq!(nearest("status", known), ["git__status"]);
        assert!(nearest("weather__now", known).is_empty());
        assert_eq!(nearest("git__комmit", known), nearest("git__xxxmit", known));
        assert_eq!(nearest("天気__予报", ["天気__予報"]), ["天気__予報"], "characters, not bytes");
    }

    #[test]
    fn suggestions_for_names_of_any_length_cost_little() {
        for piece in ["x", "天", "é\u{301}", "_", "İ"] {
            let endless = piece.repeat((4 << 20) / piece.len());
            assert!(nearest(&endless, [endless.as_str(), "git__status"]).is_empty());
            assert!(nearest("git__statuz", [endless.as_str(), "git__status"]) == ["git__status"]);
            assert!(
                is_slip(&endless, &endless[piece.chars().next().unwrap().len_utf8()..])
                    || piece == "é\u{301}"
            );
        }
    }

    #[test]
    fn suggestions_end_with_their_budget() {
        let mut search = Search::new(&"ab".repeat(100)).unwrap();
        let like = "ba".repeat(100);
        let compared = (0..1_000_000).take_while(|_| search.distance(&like).is_some()).count();
        assert!((10..200).contains(&compared), "{compared}");
    }

    proptest! {
        #[test]
        fn distances_are_those_of_a_whole_table(one in "[abc]{0,12}", other in "[abc]{0,12}", most in 1usize..13) {
            let whole = strsim::osa_distance(&one, &other);
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let distance = Table::default().distance(&chars(&one), &chars(&other), most);
            prop_assert_eq!(distance, Some(whole).filter(|whole| *whole <= most));
            prop_assert_eq!(is_slip(&one, &other), whole == 1);
            let letters = [&one, &other].map(|name| letters(&chars(name)));
            prop_assert!((letters[0] & !letters[1]).count_ones() as usize <= whole);
        }
    }
}
