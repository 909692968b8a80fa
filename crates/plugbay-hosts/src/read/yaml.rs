//! Parses YAML into a tree. Plain scalars keep their text in the file.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span};
use serde_json::Value;

use super::{ReadError, tree::Tree};

/// Limit of values: more than any host's file has. Aliases of aliases could create far more.
const MOST_VALUES: usize = 1_000_000;

/// The file as a tree; a file without any value is an empty table.
pub(super) fn parse(text: &str) -> Result<Tree, ReadError> {
    let mut reader = Reader {
        events: Parser::new_from_str(text),
        anchors: HashMap::new(),
        values: 0,
        place: Marker::default(),
    };
    let mut root = None;
    while let Some((event, span)) = reader.next()? {
        match event {
            Event::DocumentStart(..) if root.is_some() => {
                return Err(problem(&span.start, "the file has several documents"));
            }
            Event::DocumentStart(..) => root = reader.value()?,
            _ => {}
        }
    }
    Ok(root.filter(|root| *root != Tree::Leaf(Value::Null)).unwrap_or(Tree::Object(Vec::new())))
}

/// The parser's error and its place, without the text of the file, which may hold secrets.
pub(crate) fn reason(error: &ScanError) -> String {
    at(error.marker(), &error.info())
}

fn at(place: &Marker, reason: &str) -> String {
    format!("line {}, column {}: {reason}", place.line(), place.col() + 1)
}

fn problem(place: &Marker, reason: &str) -> ReadError {
    ReadError::Syntax { format: "YAML", message: at(place, reason) }
}

struct Reader<'t, P: Iterator<Item = Result<(Event<'t>, Span), ScanError>>> {
    events: P,
    anchors: HashMap<usize, Tree>,
    /// The number of values so far.
    values: usize,
    /// The start of the last event.
    place: Marker,
}

impl<'t, P: Iterator<Item = Result<(Event<'t>, Span), ScanError>>> Reader<'t, P> {
    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, ReadError> {
        let event = self.events.next().transpose();
        let event = event.map_err(|error| ReadError::Syntax { format: "YAML", message: reason(&error) })?;
        if let Some((_, span)) = &event {
            self.place = span.start;
        }
        Ok(event)
    }

    /// The next value; `None` at the end of a collection or of the document.
    fn value(&mut self) -> Result<Option<Tree>, ReadError> {
        while let Some((event, span)) = self.next()? {
            let (tree, anchor) = match event {
                Event::Scalar(text, style, anchor, tag) => {
                    let is_plain = style == ScalarStyle::Plain && tag.is_none();
                    let text = text.into_owned();
                    (if is_plain { plain(text) } else { Tree::Leaf(text.into()) }, anchor)
                }
                Event::SequenceStart(_, anchor, _) => (self.sequence()?, anchor),
                Event::MappingStart(_, anchor, _) => (self.mapping()?, anchor),
                Event::Alias(anchor) => (self.alias(anchor, &span.start)?, 0),
                Event::SequenceEnd | Event::MappingEnd | Event::DocumentEnd | Event::StreamEnd => {
                    return Ok(None);
                }
                _ => continue,
            };
            self.count(1, &span.start)?;
            if anchor > 0 {
                self.anchors.insert(anchor, tree.clone());
            }
            return Ok(Some(tree));
        }
        Ok(None)
    }

    fn sequence(&mut self) -> Result<Tree, ReadError> {
        let mut items = Vec::new();
        while let Some(item) = self.value()? {
            items.push(item);
        }
        Ok(Tree::Array(items))
    }

    fn mapping(&mut self) -> Result<Tree, ReadError> {
        let mut members: Vec<(String, Tree)> = Vec::new();
        let mut names = HashSet::new();
        let mut merged = Vec::new();
        while let Some(key) = self.value()? {
            if matches!(key, Tree::Array(_) | Tree::Object(_)) {
                // Converted to text, it would double with each level, because each adds quotes to escape.
                return Err(problem(&self.place, "a key must be a text"));
            }
            let name = key.to_text();
            let value = self.value()?.unwrap_or(Tree::Leaf(Value::Null));
            if name == "<<" && !matches!(value, Tree::Leaf(_)) {
                merged.push(value);
            } else if names.insert(name.clone()) {
                members.push((name, value));
            } else {
                let message = format!("`{name}` occurs twice");
                return Err(ReadError::Syntax { format: "YAML", message });
            }
        }
        let merged = merged.into_iter().flat_map(|value| match value {
            Tree::Array(items) => items,
            table => vec![table],
        });
        for (name, value) in merged.filter_map(Tree::into_members).flatten() {
            if names.insert(name.clone()) {
                members.push((name, value));
            }
        }
        Ok(Tree::Object(members))
    }

    fn alias(&mut self, anchor: usize, place: &Marker) -> Result<Tree, ReadError> {
        let tree = self.anchors.get(&anchor).cloned();
        let tree = tree.ok_or_else(|| problem(place, "an alias stands for a value that contains it"))?;
        self.count(tree.size(), place)?;
        Ok(tree)
    }

    fn count(&mut self, values: usize, place: &Marker) -> Result<(), ReadError> {
        self.values += values;
        if self.values > MOST_VALUES { Err(problem(place, "the file has too many values")) } else { Ok(()) }
    }
}

/// A scalar without quotes, by YAML 1.2: `yes`, `off` and `1_000` are text.
fn plain(text: String) -> Tree {
    let value = match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => return Tree::Leaf(Value::Null),
        "true" | "True" | "TRUE" => Some(true.into()),
        "false" | "False" | "FALSE" => Some(false.into()),
        text => number(text),
    };
    match value {
        Some(value) => Tree::Written { value, text },
        None => Tree::Leaf(text.into()),
    }
}

fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let whole = match (digits.strip_prefix("0x"), digits.strip_prefix("0o")) {
        (Some(hex), _) => i64::from_str_radix(hex, 16),
        (_, Some(octal)) => i64::from_str_radix(octal, 8),
        _ => text.parse(),
    };
    whole.map(Value::from).or_else(|_| text.parse::<f64>().map(Value::from)).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plain_yaml_scalar_keeps_its_text() {
        let tree =
            parse("{a: 1.10, b: 0123, c: 0x1F, d: 1e3, e: true, n: yes, off: ~, h: '1', i: 12:30}").unwrap();
        let texts = json!({ "a": "1.10", "b": "0123", "c": "0x1F", "d": "1e3", "e": "true", "n": "yes", "off": null,
            "h": "1", "i": "12:30" });
        assert_eq!(tree.to_texts(), texts);
        let values = json!({ "a": 1.1, "b": 123, "c": 31, "d": 1000.0, "e": true, "n": "yes", "off": null, "h": "1",
            "i": "12:30" });
        assert_eq!(tree.to_value(), values);
    }

    #[test]
    fn yaml_aliases_and_merged_tables_are_filled_in() {
        let tree = parse("base: &b { x: 1, y: 2 }\nc: { <<: *b, y: 3 }\nd: { <<: [*b, { z: 4 }] }\ne: *b\n")
            .unwrap();
        let base = json!({ "x": 1, "y": 2 });
        let expected =
            json!({ "base": base, "c": { "x": 1, "y": 3 }, "d": { "x": 1, "y": 2, "z": 4 }, "e": base });
        assert_eq!(tree.to_value(), expected);
    }

    #[test]
    fn a_yaml_file_that_grows_without_end_or_is_unclear_is_rejected() {
        let line = |n: usize| format!("k{n}: &k{n} [{}]\n", vec![format!("*k{}", n - 1); 9].join(","));
        let bomb = (1..12).fold("k0: &k0 [x]\n".to_owned(), |text, n| text + &line(n));
        let (nested_keys, deep) = ("- ? ".repeat(40), "[".repeat(20_000) + &"]".repeat(20_000));
        for text in [
            bomb.as_str(),
            nested_keys.as_str(),
            deep.as_str(),
            "a: &a [*a]",
            "a: 1\na: 2",
            "a: 1\n---\na: 2\n",
        ] {
            assert!(parse(text).is_err(), "{}", &text[..10]);
        }
    }
}
