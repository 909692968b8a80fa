//! Everyday words: the reading of a shell command, a phrase or a plain word, if tools use other words for it.

use std::{
    hash::{Hash, Hasher},
    sync::OnceLock,
};

use rustc_hash::FxHasher;

use super::{spelling::is_one_mistake, words::Words};

/// The lists. Their own comments say how a line is written.
const LISTS: &str = include_str!("everyday.txt");
const COMMAND: &str = "= ";

/// How far after its verb a particle may stand: `turn the machine off`.
const FAR: usize = 4;
const PARTICLES: [&str; 7] = ["away", "back", "down", "off", "on", "out", "up"];

/// A word of a query, with a hash of its stem.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stemmed<'a> {
    text: &'a str,
    stem_hash: u64,
}

impl<'a> Stemmed<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, stem_hash: stem_hash(text, &lists().stemmer) }
    }

    pub(super) fn text(self) -> &'a str {
        self.text
    }
}

/// The readings of the command that a query begins with, and how many words the command has.
pub(super) fn command(query: &[Stemmed<'_>]) -> Option<(&'static str, usize)> {
    [2, 1].into_iter().find_map(|count| {
        let words = query.get(..count)?;
        let (command, readings) = lists().commands.get(words)?;
        is_written(command, words).then_some((readings, count))
    })
}

/// The readings of a word together with a later one: the next word, or a particle that stands apart.
pub(super) fn phrase(words: &[Stemmed<'_>]) -> Option<&'static str> {
    let (first, behind) = words.split_first()?;
    let mut seconds = behind.iter().take(FAR).enumerate();
    seconds.find_map(|(at, second)| {
        let is_one = at == 0 || PARTICLES.contains(&second.text);
        is_one.then(|| lists().phrases.get(&[*first, *second])).flatten().map(|(_, readings)| readings)
    })
}

/// The readings of a plain word.
pub(super) fn reading(word: Stemmed<'_>) -> Option<&'static str> {
    lists().plain.get(&[word]).map(|(_, readings)| readings)
}

/// The everyday word that was probably meant by a mistyped one whose first letter is right.
pub(super) fn meant(word: &str) -> Option<&'static str> {
    let keys = lists().by_letter.get(usize::from(word.bytes().next()?.checked_sub(b'a')?))?;
    let may_be = |key: &&&'static str| key.len().abs_diff(word.len()) < 2 && is_one_mistake(word, key);
    keys.iter().filter(may_be).min().copied()
}

/// Reads the lists, so that no search has to.
pub(super) fn prepare() {
    lists();
}

struct Lists {
    stemmer: Words,
    commands: List,
    phrases: List,
    plain: List,
    /// Commands of a single word, and plain words, by their first letters.
    by_letter: [Vec<&'static str>; 26],
}

fn lists() -> &'static Lists {
    static READ: OnceLock<Lists> = OnceLock::new();
    READ.get_or_init(|| Lists::read(LISTS))
}

impl Lists {
    fn read(text: &'static str) -> Self {
        let mut lists = Self {
            stemmer: Words::default(),
            commands: List::default(),
            phrases: List::default(),
            plain: List::default(),
            by_letter: Default::default(),
        };
        for (key, readings) in entries(text) {
            let (list, key) = match key.strip_prefix(COMMAND) {
                Some(command) => (&mut lists.commands, command),
                None if key.contains(' ') => (&mut lists.phrases, key),
                None => (&mut lists.plain, key),
            };
            list.add(key, readings, &lists.stemmer);
            let place =
                key.bytes().next().filter(|_| !key.contains(' ')).and_then(|first| first.checked_sub(b'a'));
            if let Some(keys) = place.and_then(|place| lists.by_letter.get_mut(usize::from(place))) {
                keys.push(key);
            }
        }
        for list in [&mut lists.commands, &mut lists.phrases, &mut lists.plain] {
            list.by_stems.sort_unstable();
        }
        lists
    }
}

fn entries(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(": "))
}

/// Entries of one kind.
#[derive(Default)]
struct List {
    /// One or two words, and how they are read.
    entries: Vec<(&'static str, &'static str)>,
    /// A hash of the stems of each entry, and its place.
    by_stems: Vec<(u64, u32)>,
}

impl List {
    fn add(&mut self, key: &'static str, readings: &'static str, stemmer: &Words) {
        let place = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.by_stems.push((together(key.split(' ').map(|word| stem_hash(word, stemmer))), place));
        self.entries.push((key, readings));
    }

    /// The entry with the same stems: of several, the one that is spelled exactly so, or else the first.
    fn get(&self, words: &[Stemmed<'_>]) -> Option<(&'static str, &'static str)> {
        let stems = together(words.iter().map(|word| word.stem_hash));
        let start = self.by_stems.partition_point(|(other, _)| *other < stems);
        let same = self.by_stems[start..].iter().take_while(|(other, _)| *other == stems);
        let mut same = same.map(|(_, place)| self.entries[*place as usize]);
        let first = same.clone().next()?;
        Some(same.find(|(key, _)| is_written(key, words)).unwrap_or(first))
    }
}

/// Whether an entry is spelled as the words are.
fn is_written(key: &str, words: &[Stemmed<'_>]) -> bool {
    key.split(' ').eq(words.iter().map(|word| word.text))
}

fn stem_hash(word: &str, stemmer: &Words) -> u64 {
    let mut hasher = FxHasher::default();
    stemmer.term(word).as_deref().unwrap_or(word).hash(&mut hasher);
    hasher.finish()
}

fn together(stems: impl Iterator<Item = u64>) -> u64 {
    let mut hasher = FxHasher::default();
    stems.for_each(|stem| stem.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn typed<'a>(words: &[&'a str]) -> Vec<Stemmed<'a>> {
        words.iter().map(|word| Stemmed::new(word)).collect()
    }

    #[test]
    fn every_line_of_the_lists_is_an_entry_and_none_comes_twice() {
        let lines = LISTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(lines.count(), entries(LISTS).count());
        let mut seen = HashSet::new();
        for (key, readings) in entries(LISTS) {
            assert!(seen.insert(key), "{key} stands there twice");
            let plain = key.strip_prefix(COMMAND).unwrap_or(key);
            let is_word = |word: &str| {
                !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            };
            assert!(plain.split(' ').all(is_word) && plain.split(' ').count() <= 2, "{key}");
            let readings: Vec<&str> = readings.split(' ').collect();
            assert!(readings.iter().all(|word| is_word(word)) && readings.len() <= 6, "{key}: {readings:?}");
            assert!(key == "= whoami" || !readings.contains(&plain), "{key} is read as itself");
            assert_eq!(readings.iter().collect::<HashSet<_>>().len(), readings.len(), "{key}: {readings:?}");
        }
    }

    #[test]
    fn a_command_has_one_word_or_two() {
        assert_eq!(command(&typed(&["ls"])), Some(("list directory", 1)));
        assert_eq!(command(&typed(&["git", "stash", "pop"])).map(|(_, count)| count), Some(2));
        assert_eq!(command(&typed(&["zebra"])), None);
        assert_eq!(command(&typed(&["cats"])), None, "it is typed just so");
        assert_eq!(command(&[]), None);
    }

    #[test]
    fn only_particles_of_a_phrase_stand_apart() {
        let phrase = |words: &[&str]| phrase(&typed(words));
        assert_eq!(phrase(&["call", "off"]), Some("cancel"));
        assert_eq!(phrase(&["calling", "the", "show", "off"]), Some("cancel"), "endings do not matter");
        assert_eq!(phrase(&["call", "me"]), None);
        assert_eq!(phrase(&["go", "there", "to"]), None);
    }

    #[test]
    fn a_plain_word_is_read_with_any_ending() {
        assert_eq!(reading(Stemmed::new("folder")), Some("directory"));
        assert_eq!(reading(Stemmed::new("mailing")), reading(Stemmed::new("mail")));
        assert_eq!(reading(Stemmed::new("mails")), Some("emails messages inbox list"), "written just so");
        assert_eq!(meant("foldr"), Some("folder"));
        assert!(meant("zebra").is_none() && meant("gitstash").is_none(), "one word stands for one word");
    }
}
