//! Unknown words: they are split into two that the catalog has, or corrected to one that it has.

use super::{dictionary::TermId, words::little_words};
use crate::name::{Table, is_slip};

/// Words of fewer letters are not corrected: too many others are near them.
const SHORTEST: usize = 4;
/// Shorter words, down to this many letters, are corrected to one that stands beside another of the query in
/// some tool.
const SHORTEST_BESIDE: usize = 3;
/// Words of more letters are ignored.
const LONGEST: usize = 24;
/// Words of at least this many letters may have two mistakes, others one.
const TWO_MISTAKES: usize = 8;
/// Each part of a split word has at least this many letters.
const PART: usize = 3;
/// Little words that people write between two others: `texttospeech`.
const BETWEEN: [&str; 4] = ["to", "of", "and", "in"];

/// How much likelier a mistake in the order or the doubling of letters is than others.
const SAME_LETTERS: usize = 4;

/// How many words of one first letter and length are compared: no catalog of real tools has as many.
const OF_A_KIND: usize = 4096;
/// With how many words of nearly the same letters a word is compared letter by letter. Among the 26,000 tools of
/// all catalogs that we have, no mistyped word has more than 551.
const COMPARED: usize = 1024;
/// How many of the commonest candidates are looked up beside the other words of the query.
const ASKED: usize = 8;

const LETTERS: usize = 26;

/// What spelling asks of a catalog.
pub(super) trait Words {
    /// The term of a word that stands in some tool in exactly this spelling.
    fn exact(&self, word: &str) -> Option<TermId>;
    /// How many tools have a term.
    fn count(&self, term: TermId) -> usize;
    /// Whether some tool has a term beside another word of the query.
    fn is_beside(&self, term: TermId) -> bool;
}

/// How likely a word that no tool has is mistyped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    Likely,
    /// It is a word of the language, or a name.
    Unlikely,
}

/// A word of the catalog that was probably meant by a mistyped one.
struct Corrected {
    word: String,
    /// Some tool has it beside another word of the query.
    is_beside: bool,
    /// The mistake is only in the order or the doubling of letters.
    has_same_letters: bool,
}

/// The words of a catalog by their first letter and their length.
#[derive(Debug, Default)]
pub(super) struct Spelling {
    buckets: Vec<Bucket>,
}

/// Words of one length, one after the other, and their terms.
#[derive(Debug, Default, Clone)]
struct Bucket {
    letters: Vec<u8>,
    terms: Vec<TermId>,
}

impl Spelling {
    /// Words of other letters than those of English are left out.
    pub(super) fn new(each_word: impl FnOnce(&mut dyn FnMut(&str, TermId))) -> Self {
        let mut buckets = vec![Bucket::default(); LETTERS * (LONGEST + 1)];
        each_word(&mut |word, term| {
            if (SHORTEST..=LONGEST).contains(&word.len()) && is_plain(word) {
                let bucket = &mut buckets[place(word.as_bytes()[0], word.len())];
                if bucket.terms.len() == OF_A_KIND {
                    return;
                }
                bucket.letters.extend_from_slice(word.as_bytes());
                bucket.terms.push(term);
            }
        });
        for bucket in &mut buckets {
            bucket.letters.shrink_to_fit();
            bucket.terms.shrink_to_fit();
        }
        Self { buckets }
    }

    /// The words that were meant by a word: one that differs by one mistake, two that were written as one, or
    /// one that differs by two mistakes. A very short word, or one that is [`Doubt::Unlikely`] to be
    /// mistyped, is corrected only if the other words of the query speak for it.
    pub(super) fn meant(&self, word: &str, doubt: Doubt, words: &impl Words) -> Option<Vec<String>> {
        if !(SHORTEST_BESIDE..=LONGEST).contains(&word.len()) || !is_plain(word) {
            return None;
        }
        let one = |corrected: Option<String>| corrected.map(|word| vec![word]);
        let mut room = COMPARED;
        let thing = self.corrected(word, 1, words, &mut room);
        if doubt == Doubt::Unlikely {
            return one(thing.filter(|found| found.is_beside).map(|found| found.word));
        }
        let thing = thing.filter(|thing| word.len() >= SHORTEST || thing.is_beside);
        one(either(word, thing, little(word))).or_else(|| {
            if word.len() < SHORTEST {
                return None;
            }
            split(word, words).or_else(|| {
                let two_mistakes = || self.corrected(word, 2, words, &mut room).map(|found| found.word);
                one((word.len() >= TWO_MISTAKES).then(two_mistakes).flatten())
            })
        })
    }

    /// A word that differs by at most so many mistakes: preferably one that some tool has beside another word
    /// of the query, and of several the one that the most tools have. `room`: how many words are still compared.
    fn corrected(
        &self,
        word: &str,
        mistakes: usize,
        words: &impl Words,
        room: &mut usize,
    ) -> Option<Corrected> {
        let mut found: Vec<(usize, &[u8], TermId)> = Vec::new();
        let mut of_other_letters: Vec<(Vec<u8>, TermId)> = Vec::new();
        let (typed, mut table) = (word.as_bytes(), Table::default());
        let letters = letters(typed);
        let commonness = |candidate: &[u8], term: TermId| {
            let likely = if self::letters(candidate) == letters { SAME_LETTERS } else { 1 };
            words.count(term) * likely
        };
        for length in typed.len() - mistakes..=(typed.len() + mistakes).min(LONGEST) {
            let bucket = &self.buckets[place(typed[0], length)];
            for (candidate, term) in bucket.letters.chunks_exact(length.max(1)).zip(&bucket.terms) {
                let differing = (letters ^ self::letters(candidate)).count_ones() as usize;
                if differing > 2 * mistakes || *room == 0 {
                    continue;
                }
                *room -= 1;
                if table.distance(typed, candidate, mistakes).is_some() {
                    found.push((commonness(candidate, *term), candidate, *term));
                }
            }
        }
        if mistakes == 1 {
            first_letter_mistaken(typed, |candidate| {
                let term = std::str::from_utf8(candidate).ok().and_then(|candidate| words.exact(candidate));
                of_other_letters.extend(term.map(|term| (candidate.to_vec(), term)));
            });
            let others = of_other_letters.iter();
            found.extend(others.map(|(word, term)| (commonness(word, *term), word.as_slice(), *term)));
        }
        // Equally common words stand in the order of the alphabet.
        found.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
        let beside = found.iter().take(ASKED).position(|(_, _, term)| words.is_beside(*term));
        let (_, word, _) = found.get(beside.unwrap_or_default())?;
        let has_same_letters = self::letters(word) == letters;
        let word = String::from_utf8_lossy(word).into_owned();
        Some(Corrected { word, is_beside: beside.is_some(), has_same_letters })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let of = |bucket: &Bucket| bucket.letters.capacity() + bucket.terms.capacity() * size_of::<TermId>();
        self.buckets.capacity() * size_of::<Bucket>() + self.buckets.iter().map(of).sum::<usize>()
    }
}

/// The two words that a word splits into: of several pairs, the one whose rarer word the most tools have.
fn split(word: &str, words: &impl Words) -> Option<Vec<String>> {
    let mut best: Option<(usize, Vec<String>)> = None;
    for at in PART..=word.len().saturating_sub(PART) {
        let (first, rest) = word.split_at(at);
        let Some(one) = words.exact(first) else { continue };
        let shorter = BETWEEN.iter().filter_map(|little| rest.strip_prefix(little));
        for second in [rest].into_iter().chain(shorter).filter(|second| second.len() >= PART) {
            let Some(other) = words.exact(second) else { continue };
            let count = words.count(one).min(words.count(other));
            if best.as_ref().is_none_or(|(most, _)| count > *most) {
                best = Some((count, vec![first.to_owned(), second.to_owned()]));
            }
        }
    }
    best.map(|(_, parts)| parts)
}

/// The little word that differs from a word by one mistake, and whether the mistake is only in the order of
/// letters. One with the same letters is preferred, then one with a letter more.
fn little(word: &str) -> Option<(String, bool)> {
    let has_same_letters = |little: &str| letters(little.as_bytes()) == letters(word.as_bytes());
    // In a very short word, the first letter must be right.
    let may_be = |little: &&str| {
        little.len() >= SHORTEST && (word.len() >= SHORTEST || word.as_bytes()[..1] == little.as_bytes()[..1])
    };
    let near = little_words().filter(may_be).filter(|little| are_one_mistake_apart(word, little));
    let nearest =
        near.min_by_key(|little| (!has_same_letters(little), little.len() <= word.len(), *little))?;
    Some((nearest.to_owned(), has_same_letters(nearest)))
}

/// Decides between a word of the catalog and a little word. Short words are more likely little ones.
fn either(typed: &str, thing: Option<Corrected>, little: Option<(String, bool)>) -> Option<String> {
    match (thing, little) {
        (Some(thing), Some((little, is_order))) => {
            let is_thing = if typed.len() > SHORTEST {
                thing.is_beside && (thing.has_same_letters || !is_order)
            } else {
                thing.has_same_letters && !is_order
            };
            Some(if is_thing { thing.word } else { little })
        }
        (Some(thing), None) => Some(thing.word),
        (None, little) => little.map(|(little, _)| little),
    }
}

/// Calls `found` with the words that differ from the typed one only in the first letter.
fn first_letter_mistaken(typed: &[u8], mut found: impl FnMut(&[u8])) {
    let mut candidate = typed.to_vec();
    candidate.swap(0, 1);
    found(&candidate);
    found(&typed[1..]);
    candidate.copy_from_slice(typed);
    for letter in b'a'..=b'z' {
        candidate[0] = letter;
        found(&candidate);
    }
    candidate.insert(0, 0);
    candidate[1] = typed[0];
    for letter in b'a'..=b'z' {
        candidate[0] = letter;
        found(&candidate);
    }
}

/// Whether two words differ by one mistake; words that are short or long are not compared.
pub(super) fn is_one_mistake(one: &str, other: &str) -> bool {
    one.len().min(other.len()) >= SHORTEST && are_one_mistake_apart(one, other)
}

fn are_one_mistake_apart(one: &str, other: &str) -> bool {
    let comparable = |word: &str| word.len() <= LONGEST && is_plain(word);
    let differing = || (letters(one.as_bytes()) ^ letters(other.as_bytes())).count_ones();
    one.len().abs_diff(other.len()) < 2
        && comparable(one)
        && comparable(other)
        && differing() <= 2
        && is_slip(one, other)
}

fn is_plain(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn place(first: u8, length: usize) -> usize {
    usize::from(first - b'a') * (LONGEST + 1) + length
}

/// The letters of a word as a set: words that differ in more than a few are not compared.
fn letters(word: &[u8]) -> u32 {
    word.iter().fold(0, |set, letter| set | 1 << (letter - b'a'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The word that some tool has beside another of the query.
    const BESIDE: &str = "helm";

    /// Words with the number of tools that have them.
    struct Catalog(Vec<(&'static str, usize)>);

    impl Words for Catalog {
        fn exact(&self, word: &str) -> Option<TermId> {
            self.0.iter().zip(0..).find(|((known, _), _)| *known == word).map(|(_, at)| at)
        }

        fn count(&self, term: TermId) -> usize {
            self.0[term as usize].1
        }

        fn is_beside(&self, term: TermId) -> bool {
            self.0[term as usize].0 == BESIDE
        }
    }

    fn meant(word: &str) -> Vec<String> {
        meant_as(word, false)
    }

    fn meant_as(word: &str, is_word: bool) -> Vec<String> {
        let catalog = Catalog(vec![
            ("issue", 9),
            ("issues", 4),
            ("repository", 5),
            ("repositories", 2),
            ("pie", 1),
            ("chart", 8),
            ("text", 3),
            ("speech", 2),
            ("files", 4),
            ("fields", 9),
            ("helm", 1),
            ("them", 9),
        ]);
        let spelling =
            Spelling::new(|found| catalog.0.iter().zip(0..).for_each(|((word, _), at)| found(word, at)));
        let doubt = if is_word { Doubt::Unlikely } else { Doubt::Likely };
        spelling.meant(word, doubt, &catalog).unwrap_or_default()
    }

    #[test]
    fn mistyped_words_are_corrected_and_joined_ones_split() {
        for (typed, expected) in [
            ("isue", &["issue"][..]),
            ("issuse", &["issue"]),
            ("sisue", &["issue"]),
            ("ossue", &["issue"]),
            ("ssue", &["issue"]),
            ("repostiory", &["repository"]),
            ("rpeostory", &["repository"]),
            ("repositroes", &["repositories"]),
            ("piechart", &["pie", "chart"]),
            ("texttospeech", &["text", "speech"]),
            ("isseu", &["issue"]),
            ("isxxe", &[]),
            ("pei", &[]),
            ("wiith", &["with"]),
            ("wth", &["with"]),
            ("whre", &["where"]),
            ("waht", &["what"]),
            ("liek", &["like"]),
            ("fiels", &["files"]),
            ("zebra", &[]),
            ("größe", &[]),
        ] {
            assert_eq!(meant(typed), expected, "{typed}");
        }
        assert_eq!(meant(&"issue".repeat(1000)), Vec::<String>::new());
    }

    #[test]
    fn a_word_beside_others_of_the_query_is_meant_rather_than_a_common_one() {
        assert_eq!(meant("thelm"), ["helm"], "one letter from `them` too, which is more common");
        assert_eq!((meant("hem"), meant_as("heal", true)), (vec!["helm".to_owned()], Vec::new()));
        assert_eq!(meant_as("help", true), ["helm"], "a word of the language, but not of the catalog");
        assert_eq!(meant_as("isue", true), Vec::<String>::new());
    }

    #[test]
    fn a_mistyped_word_is_compared_with_few_words_of_the_same_letters() {
        let spelling = Spelling::new(|found| (0..9_000).for_each(|at| found("ahgfedcb", at)));
        let mut room = COMPARED;
        let mut left_after = |mistakes| {
            assert!(spelling.corrected("abcdefgh", mistakes, &Catalog(Vec::new()), &mut room).is_none());
            room
        };
        assert_eq!([left_after(1), left_after(2)], [0, 0], "all of the room, and no more");
    }

    proptest! {
        #[test]
        fn spelling_of_arbitrary_words_ends(word in "\\PC{0,30}") {
            meant(&word);
        }
    }
}
