//! Scalars at one place in a few words: `int 0..40`, `"open" 311, "closed" 893`, `string ≤53`.

use super::super::{page::count, sample};
use crate::shape::profile::{Node, Numbers, Strings};

/// How many distinct strings are shown, and how much of each.
const VALUES: usize = 6;
const VALUE: usize = 40;

/// The description; empty if there are only arrays and objects.
pub(super) fn describe(node: &Node) -> String {
    let is_one = node.count() == 1;
    let mut parts = Vec::new();
    match (node.trues, node.falses) {
        (0, 0) => {}
        (trues, 0) => parts.push(times("true", trues, is_one)),
        (0, falses) => parts.push(times("false", falses, is_one)),
        (trues, falses) => parts.push(format!("true {}, false {}", count(trues), count(falses))),
    }
    if node.numbers.count() > 0 {
        parts.push(numbers(&node.numbers, is_one));
    }
    if node.strings.count > 0 {
        parts.push(strings(&node.strings));
    }
    if node.nulls > 0 {
        parts.push(times("null", node.nulls, node.nulls == node.count()));
    }
    parts.join(" | ")
}

fn times(word: &str, number: usize, alone: bool) -> String {
    if alone { word.to_owned() } else { format!("{word} {}", count(number)) }
}

fn numbers(numbers: &Numbers, is_one: bool) -> String {
    let (least, greatest) = (short(numbers.least), short(numbers.greatest));
    let kind = if numbers.others == 0 { "int" } else { "number" };
    if is_one {
        least
    } else if least == greatest {
        format!("always {least}")
    } else {
        format!("{kind} {least}..{greatest}")
    }
}

/// A number: integers in full, others with four figures.
fn short(number: f64) -> String {
    if number.is_nan() {
        "?".to_owned()
    } else if number.fract() == 0.0 && number.abs() < 1e15 {
        format!("{number:.0}")
    } else if (1e-3..1e15).contains(&number.abs()) {
        let text = format!("{number:.4}");
        text.trim_end_matches('0').to_owned()
    } else {
        format!("{number:.3e}")
    }
}

fn strings(strings: &Strings) -> String {
    let values = strings.distinct.as_deref().unwrap_or_default();
    match values {
        [(only, 1)] => return sample::string(only, VALUE),
        [(only, _)] => return format!("always {}", sample::string(only, VALUE)),
        [] => {}
        few if few.len() <= 3 || few.len() * 2 <= strings.count => return distinct(few),
        _ => {}
    }
    if let Some((first, last)) = strings.dates.as_ref().filter(|_| strings.format.is_date()) {
        let (first, last) = (String::from_utf8_lossy(first), String::from_utf8_lossy(last));
        return format!("{} {first} to {last}", strings.format.as_str());
    }
    format!("{} ≤{}", strings.format.as_str(), count(strings.longest))
}

/// Values with their counts, the most frequent first.
fn distinct(values: &[(Box<[u8]>, usize)]) -> String {
    let mut values: Vec<_> = values.iter().collect();
    values.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let shown = values
        .iter()
        .take(VALUES)
        .map(|(value, times)| format!("{} {}", sample::string(value, VALUE), count(*times)));
    let mut shown: Vec<String> = shown.collect();
    if values.len() > VALUES {
        shown.push(format!("{} others", values.len() - VALUES));
    }
    shown.join(", ")
}
