//! What is known of the values at one place of a JSON text.

use rustc_hash::FxHashMap;

use super::Id;
use crate::shape::Format;

/// Keys of one object that are kept.
pub(super) const MOST_KEYS: usize = 64;
/// Keys up to here are compared one by one.
const FEW_KEYS: usize = 8;
/// How many distinct strings are counted, and the longest of them, in bytes.
const DISTINCT: usize = 12;
const LONGEST_DISTINCT: usize = 48;

/// All values at one place.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) nulls: usize,
    pub(crate) trues: usize,
    pub(crate) falses: usize,
    pub(crate) numbers: Numbers,
    pub(crate) strings: Strings,
    pub(crate) arrays: Arrays,
    pub(crate) objects: Objects,
    /// The object of which this is a member, or an element of a member, and the place of its key.
    pub(super) via: Option<(Id, usize)>,
    /// The array of which this is an element.
    pub(super) array: Option<Id>,
}

impl Node {
    /// A bit for each kind but null.
    pub(crate) fn kinds(&self) -> u8 {
        let kinds = [
            self.trues + self.falses,
            self.numbers.count(),
            self.strings.count,
            self.arrays.count,
            self.objects.count,
        ];
        kinds.into_iter().fold(0, |bits, count| bits << 1 | u8::from(count > 0))
    }

    /// How many values there are.
    pub(crate) fn count(&self) -> usize {
        let scalars = self.nulls + self.trues + self.falses + self.numbers.count() + self.strings.count;
        scalars + self.arrays.count + self.objects.count
    }

    /// Adds what is known of another node, without what is inside of it.
    pub(super) fn add(&mut self, other: Self) {
        self.nulls += other.nulls;
        self.trues += other.trues;
        self.falses += other.falses;
        self.numbers.add(&other.numbers);
        self.strings.add(other.strings);
        self.arrays.add(&other.arrays);
        self.objects.count += other.objects.count;
        self.objects.members += other.objects.members;
        self.objects.passed += other.objects.passed;
        self.objects.more += other.objects.more;
    }
}

#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) integers: usize,
    /// How many numbers have a fraction or an exponent.
    pub(crate) others: usize,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

impl Numbers {
    pub(crate) fn count(&self) -> usize {
        self.integers + self.others
    }

    pub(super) fn note(&mut self, json: &[u8]) {
        let (value, is_integer) = if let Some(value) = small_integer(json) {
            (value, true)
        } else {
            let value = std::str::from_utf8(json).ok().and_then(|text| text.parse().ok());
            (value.unwrap_or(f64::NAN), json.iter().all(|byte| !matches!(byte, b'.' | b'e' | b'E')))
        };
        let first = self.count() == 0;
        *(if is_integer { &mut self.integers } else { &mut self.others }) += 1;
        self.range(first, value, value);
    }

    fn range(&mut self, first: bool, least: f64, greatest: f64) {
        (self.least, self.greatest) =
            if first { (least, greatest) } else { (self.least.min(least), self.greatest.max(greatest)) };
    }

    fn add(&mut self, other: &Self) {
        if other.count() > 0 {
            self.range(self.count() == 0, other.least, other.greatest);
        }
        self.integers += other.integers;
        self.others += other.others;
    }
}

/// An integer of few digits, which a float holds exactly.
#[expect(clippy::cast_precision_loss, reason = "at most 15 digits")]
fn small_integer(json: &[u8]) -> Option<f64> {
    let digits = json.strip_prefix(b"-").unwrap_or(json);
    if digits.len() > 15 {
        return None;
    }
    let mut value = 0i64;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    Some(if digits.len() < json.len() { -value } else { value } as f64)
}

/// A string as written, without its quotes.
type Raw = Box<[u8]>;

#[derive(Debug)]
pub(crate) struct Strings {
    pub(crate) count: usize,
    /// The longest length, in bytes as written: at least as many as characters.
    pub(crate) longest: usize,
    pub(crate) format: Format,
    /// The values, while they are few and short; each as written, with how often it came.
    pub(crate) distinct: Option<Vec<(Raw, usize)>>,
    /// The place of the last value among them.
    last: usize,
    /// The first and the last date, if all are dates.
    pub(crate) dates: Option<(Raw, Raw)>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { count: 0, longest: 0, format: Format::Text, distinct: Some(Vec::new()), last: 0, dates: None }
    }
}

impl Strings {
    pub(super) fn note(&mut self, text: &[u8], escaped: bool) {
        self.count += 1;
        self.longest = self.longest.max(text.len());
        if self.count == 1 {
            self.format = if escaped { Format::Text } else { Format::of(text) };
        } else if self.format != Format::Text {
            self.format = if escaped { Format::Text } else { self.format.common(Format::of(text)) };
        }
        if self.format.is_date() {
            self.note_dates(text, text);
        }
        if self.distinct.is_some() {
            self.note_value(text, 1);
        }
    }

    fn note_dates(&mut self, first: &[u8], last: &[u8]) {
        match &mut self.dates {
            None => self.dates = Some((first.into(), last.into())),
            Some((earliest, latest)) => {
                if *first < **earliest {
                    *earliest = first.into();
                }
                if *last > **latest {
                    *latest = last.into();
                }
            }
        }
    }

    fn note_value(&mut self, text: &[u8], count: usize) {
        let Some(values) = &mut self.distinct else { return };
        if let Some(known) = values.get_mut(self.last).filter(|(value, _)| **value == *text) {
            known.1 += count;
            return;
        }
        match values.iter().position(|(value, _)| **value == *text) {
            Some(place) => {
                values[place].1 += count;
                self.last = place;
            }
            // A single long value is kept: nothing else is known of it.
            None if values.len() == DISTINCT || text.len() > LONGEST_DISTINCT => self.distinct = None,
            None => values.push((text.into(), count)),
        }
    }

    fn add(&mut self, other: Self) {
        if other.count == 0 {
            return;
        }
        self.format = if self.count == 0 { other.format } else { self.format.common(other.format) };
        self.count += other.count;
        self.longest = self.longest.max(other.longest);
        if let Some((first, last)) = other.dates {
            self.note_dates(&first, &last);
        }
        match other.distinct {
            Some(values) => values.iter().for_each(|(value, count)| self.note_value(value, *count)),
            None => self.distinct = None,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Arrays {
    pub(crate) count: usize,
    pub(crate) elements: usize,
    pub(crate) fewest: usize,
    pub(crate) most: usize,
    /// Elements that were counted but not read.
    pub(crate) passed: usize,
    pub(crate) item: Option<Id>,
}

impl Arrays {
    pub(super) fn note(&mut self, elements: usize) {
        self.add(&Self { count: 1, elements, fewest: elements, most: elements, passed: 0, item: None });
    }

    fn add(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.fewest = if self.count == 0 { other.fewest } else { self.fewest.min(other.fewest) };
        self.most = self.most.max(other.most);
        self.count += other.count;
        self.elements += other.elements;
        self.passed += other.passed;
    }
}

#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) count: usize,
    /// Members in all.
    pub(crate) members: usize,
    /// Members of a map that were counted but not read.
    pub(crate) passed: usize,
    pub(crate) keys: Vec<Known>,
    /// The places of keys, once they are many.
    places: Option<FxHashMap<Box<[u8]>, usize>>,
    /// Members whose keys were not kept.
    pub(crate) more: usize,
    /// The one node of all members of a map.
    pub(crate) map: Option<Id>,
}

#[derive(Debug)]
pub(crate) struct Known {
    /// The key as written, without quotes.
    pub(crate) raw: Box<[u8]>,
    pub(crate) node: Option<Id>,
    pub(crate) count: usize,
}

impl Objects {
    /// The place of a key; most come in the same order as before.
    pub(super) fn find(&self, key: &[u8], expected: usize) -> Option<usize> {
        if self.keys.get(expected).is_some_and(|known| *known.raw == *key) {
            return Some(expected);
        }
        match &self.places {
            Some(places) => places.get(key).copied(),
            None => self.keys.iter().position(|known| *known.raw == *key),
        }
    }

    pub(super) fn insert(&mut self, key: &[u8], node: Option<Id>) {
        let place = self.keys.len();
        self.keys.push(Known { raw: key.into(), node, count: 1 });
        match &mut self.places {
            Some(places) => _ = places.insert(key.into(), place),
            None if place == FEW_KEYS => {
                let places = self.keys.iter().enumerate().map(|(place, known)| (known.raw.clone(), place));
                self.places = Some(places.collect());
            }
            None => {}
        }
    }

    pub(super) fn take_keys(&mut self) -> Vec<Known> {
        self.places = None;
        std::mem::take(&mut self.keys)
    }
}
