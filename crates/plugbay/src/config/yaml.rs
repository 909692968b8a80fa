//! Parses YAML into the syntax tree of JSONC, so that everything else treats both alike.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use jsonc_parser::{
    ast::{Array, BooleanLit, NullKeyword, NumberLit, Object, ObjectProp, ObjectPropName, StringLit, Value},
    common::{Range, Ranged},
};

use super::scan::Secrecy;

/// Limit of nesting. The tree's readers recurse, so depth needs stack; no configuration needs more.
const DEEPEST: usize = 64;
/// Limit of values: more than any configuration has. Aliases of aliases could create far more.
const MOST_VALUES: usize = 100_000;

/// A problem in a file, with its place.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: Range,
    pub(super) message: String,
    pub(super) help: &'static str,
}

/// The file as a tree; `None` if it has no value.
pub(super) fn parse(text: &str) -> Result<Option<Value<'_>>, Fault> {
    let mut reader =
        Reader { text, events: Parser::new_from_str(text), anchors: HashMap::new(), values: 0, depth: 0 };
    let mut root = None;
    while let Some((event, span)) = reader.next()? {
        match event {
            Event::DocumentStart(..) if root.is_some() => {
                let help = "keep one of them, without `---` in between";
                return Err(fault(range(&span), "the file has several documents", help));
            }
            Event::DocumentStart(..) => root = reader.value()?,
            _ => {}
        }
    }
    Ok(root.filter(|root| !matches!(root, Value::NullKeyword(_))))
}

/// The ranges of secret values, in order. In a broken file, everything after the last readable event counts
/// as such a value.
pub(super) fn secrets(source: &str) -> Vec<Range> {
    let mut secrets = Vec::new();
    let mut open: Vec<Level> = Vec::new();
    let mut done = 0;
    for event in Parser::new_from_str(source) {
        let Ok((event, span)) = event else {
            secrets.extend(values_behind(source, done));
            return secrets;
        };
        let at = range(&span);
        done = done.max(at.end);
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                let secret = open.last_mut().is_some_and(|level| level.next_value() == Secrecy::Secret);
                open.push(Level { secret, mapping: matches!(event, Event::MappingStart(..)), key: None });
            }
            Event::MappingEnd | Event::SequenceEnd => drop(open.pop()),
            Event::Scalar(text, style, ..) => match open.last_mut() {
                Some(level) if level.mapping && level.key.is_none() => level.key = Some(Secrecy::of(&text)),
                Some(level) => secrets.extend(level.next_value().hidden(source, within_quotes(at, style))),
                None => {}
            },
            Event::Alias(_) => _ = open.last_mut().map(Level::next_value),
            _ => {}
        }
    }
    secrets
}

/// An open collection.
#[derive(Debug)]
struct Level {
    /// Whether all its values are secret.
    secret: bool,
    mapping: bool,
    /// The key whose value comes next.
    key: Option<Secrecy>,
}

impl Level {
    /// Notes that the next value is read.
    fn next_value(&mut self) -> Secrecy {
        let key = self.key.take().unwrap_or_default();
        if self.secret { Secrecy::Secret } else { key }
    }
}

fn within_quotes(at: Range, style: ScalarStyle) -> Range {
    match style {
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted if at.start + 2 <= at.end => {
            Range::new(at.start + 1, at.end - 1)
        }
        _ => at,
    }
}

/// The values on the lines from this byte on, as far as lines show them.
fn values_behind(text: &str, from: usize) -> impl Iterator<Item = Range> {
    let first = part(text, 0..from.min(text.len())).rfind('\n').map_or(0, |newline| newline + 1);
    let mut start = first;
    text[first..].split_inclusive('\n').filter_map(move |line| {
        let value = line.find(": ").map_or_else(|| line.len() - line.trim_start().len(), |colon| colon + 2);
        let range = Range::new(start + value, start + line.trim_end().len());
        start += line.len();
        (range.start < range.end).then_some(range)
    })
}

struct Reader<'t, P: Iterator<Item = Result<(Event<'t>, Span), ScanError>>> {
    text: &'t str,
    events: P,
    anchors: HashMap<usize, Value<'t>>,
    /// The number of values so far.
    values: usize,
    depth: usize,
}

impl<'t, P: Iterator<Item = Result<(Event<'t>, Span), ScanError>>> Reader<'t, P> {
    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, Fault> {
        self.events.next().transpose().map_err(|error| {
            let start = error.marker().byte_offset().unwrap_or_default();
            let length = part(self.text, start..self.text.len()).chars().next().map_or(1, char::len_utf8);
            fault(Range::new(start, start + length), &error.info(), "the file is YAML, as its name says")
        })
    }

    /// The next value; `None` at the end of a collection or of the document.
    fn value(&mut self) -> Result<Option<Value<'t>>, Fault> {
        Ok(self.value_or_end()?.ok())
    }

    /// The next value, or the position where the collection or the document ends.
    fn value_or_end(&mut self) -> Result<Result<Value<'t>, usize>, Fault> {
        while let Some((event, span)) = self.next()? {
            let at = range(&span);
            let (value, anchor) = match event {
                Event::Scalar(text, style, anchor, tag) => {
                    let is_plain = style == ScalarStyle::Plain && tag.is_none();
                    let literal = StringLit { range: at, value: text };
                    (if is_plain { self.plain(literal) } else { Value::StringLit(literal) }, anchor)
                }
                Event::SequenceStart(_, anchor, _) => (self.within(at, Self::sequence)?, anchor),
                Event::MappingStart(_, anchor, _) => (self.within(at, Self::mapping)?, anchor),
                Event::Alias(anchor) => (self.alias(anchor, at)?, 0),
                Event::SequenceEnd | Event::MappingEnd | Event::DocumentEnd | Event::StreamEnd => {
                    return Ok(Err(at.end));
                }
                _ => continue,
            };
            self.count(1, at)?;
            if anchor > 0 {
                self.anchors.insert(anchor, value.clone());
            }
            return Ok(Ok(value));
        }
        Ok(Err(self.text.len()))
    }

    /// Reads a collection that begins at `at`.
    fn within(
        &mut self,
        at: Range,
        read: fn(&mut Self, Range) -> Result<Value<'t>, Fault>,
    ) -> Result<Value<'t>, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(fault(at, "nested too deeply", "no more than 64 levels may be open at a time"));
        }
        let read = read(self, at)?;
        self.depth -= 1;
        Ok(read)
    }

    fn sequence(&mut self, at: Range) -> Result<Value<'t>, Fault> {
        let mut elements = Vec::new();
        loop {
            match self.value_or_end()? {
                Ok(element) => elements.push(element),
                Err(end) => return Ok(Value::Array(Array { range: spanning(at, end), elements })),
            }
        }
    }

    fn mapping(&mut self, at: Range) -> Result<Value<'t>, Fault> {
        let (mut properties, mut merged) = (Vec::new(), Vec::new());
        let end = loop {
            let key = match self.value_or_end()? {
                Ok(key) => self.key(key)?,
                Err(end) => break end,
            };
            let value = self.value()?.unwrap_or(Value::NullKeyword(NullKeyword { range: key.range }));
            if key.value == "<<" && matches!(value, Value::Object(_) | Value::Array(_)) {
                merged.push(value);
                continue;
            }
            let range = spanning(key.range, value.range().end);
            properties.push(ObjectProp { range, name: ObjectPropName::String(key), value });
        };
        merge(&mut properties, merged);
        Ok(Value::Object(Object { range: spanning(at, end), properties }))
    }

    /// The text of a key. Keys such as `1` or `true` are also text.
    fn key(&self, key: Value<'t>) -> Result<StringLit<'t>, Fault> {
        let range = key.range();
        match key {
            Value::StringLit(key) => Ok(key),
            Value::Object(_) | Value::Array(_) => {
                Err(fault(range, "a key must be a text", "write `key: value`"))
            }
            _ => Ok(StringLit { range, value: part(self.text, range.start..range.end).trim().into() }),
        }
    }

    fn alias(&mut self, anchor: usize, at: Range) -> Result<Value<'t>, Fault> {
        let help = "write the value out";
        let value = self.anchors.get(&anchor).cloned();
        let value = value.ok_or_else(|| fault(at, "an alias stands for a value that contains it", help))?;
        self.count(size(&value), at)?;
        Ok(value)
    }

    fn count(&mut self, values: usize, at: Range) -> Result<(), Fault> {
        self.values += values;
        if self.values > MOST_VALUES {
            return Err(fault(at, "the file has too many values", "check the path, and the aliases"));
        }
        Ok(())
    }

    /// A scalar without quotes, by YAML 1.2: `yes`, `off` and `1_000` are text.
    fn plain(&self, literal: StringLit<'t>) -> Value<'t> {
        let range = literal.range;
        match &*literal.value {
            "" | "~" | "null" | "Null" | "NULL" => Value::NullKeyword(NullKeyword { range }),
            "true" | "True" | "TRUE" => Value::BooleanLit(BooleanLit { range, value: true }),
            "false" | "False" | "FALSE" => Value::BooleanLit(BooleanLit { range, value: false }),
            text if is_number(text) => {
                Value::NumberLit(NumberLit { range, value: part(self.text, range.start..range.end).trim() })
            }
            _ => Value::StringLit(literal),
        }
    }
}

/// Adds the members of `<<`, except those that the mapping has itself.
fn merge<'t>(properties: &mut Vec<ObjectProp<'t>>, merged: Vec<Value<'t>>) {
    let merged = merged.into_iter().flat_map(|value| match value {
        Value::Array(list) => list.elements,
        value => vec![value],
    });
    for value in merged {
        let Value::Object(object) = value else { continue };
        for property in object.properties {
            let is_same = |known: &ObjectProp<'_>| known.name.as_str() == property.name.as_str();
            if !properties.iter().any(is_same) {
                properties.push(property);
            }
        }
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && text.parse::<f64>().is_ok()
}

fn size(value: &Value<'_>) -> usize {
    1 + match value {
        Value::Array(list) => list.elements.iter().map(size).sum(),
        Value::Object(object) => object.properties.iter().map(|property| size(&property.value)).sum(),
        _ => 0,
    }
}

/// The text in a parser's range; empty if the range is not one of whole characters.
fn part(text: &str, at: std::ops::Range<usize>) -> &str {
    text.get(at).unwrap_or_default()
}

fn fault(at: Range, message: &str, help: &'static str) -> Fault {
    Fault { at, message: message.to_owned(), help }
}

fn range(span: &Span) -> Range {
    span.byte_range().map_or(Range::new(0, 0), |bytes| Range::new(bytes.start, bytes.end))
}

fn spanning(from: Range, end: usize) -> Range {
    Range::new(from.start, end.max(from.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_values_stand_where_the_file_has_them() {
        let text = "ä: 1\nservers:\n  web:\n    args: [a, \"b c\"]\n    on: true\n    n: 1.50\n    off:\n";
        let parsed = parse(text).unwrap().unwrap();
        let web = parsed.as_object().unwrap().get_object("servers").unwrap().get_object("web").unwrap();
        let at = |value: &Value<'_>| text[value.range().start..value.range().end].to_owned();
        let shown: Vec<_> =
            web.properties.iter().map(|property| (property.name.as_str(), at(&property.value))).collect();
        let expected = [("args", "[a, \"b c\"]"), ("on", "true"), ("n", "1.50"), ("off", "")];
        let expected = expected.map(|(key, value)| (key, value.to_owned()));
        assert_eq!(shown[..3], expected[..3]);
        assert!(matches!(web.get("off").unwrap().value, Value::NullKeyword(_)));
    }

    #[test]
    fn yaml_aliases_and_merged_mappings_are_filled_in() {
        let text = "base: &b { x: 1, y: 2 }\nc: { <<: *b, y: 3 }\nd: { <<: [*b, { z: 4 }] }\n";
        let parsed = parse(text).unwrap().unwrap();
        let keys = |name: &str| -> Vec<String> {
            let object = parsed.as_object().unwrap().get_object(name).unwrap();
            object.properties.iter().map(|property| property.name.as_str().to_owned()).collect()
        };
        assert_eq!(
            (keys("c"), keys("d")),
            (vec!["y".into(), "x".into()], vec!["x".into(), "y".into(), "z".into()])
        );
    }

    #[test]
    fn a_yaml_file_that_grows_without_end_or_is_unclear_is_rejected() {
        let line = |n: usize| format!("k{n}: &k{n} [{}]\n", vec![format!("*k{}", n - 1); 9].join(","));
        let bomb = (1..12).fold("k0: &k0 [x]\n".to_owned(), |text, n| text + &line(n));
        let deep = "[".repeat(5000);
        for text in [bomb.as_str(), &deep, "a: &a [*a]", "a: 1\n---\na: 2\n", "a: [1", "? [a]\n: 1\n"] {
            assert!(parse(text).is_err(), "{}", &text[..5]);
        }
        assert!(parse("").unwrap().is_none() && parse("# nothing\n").unwrap().is_none());
    }

    #[test]
    fn yaml_secrets_are_found_also_in_a_broken_file() {
        let shown = |text: &str| -> Vec<String> {
            secrets(text).iter().map(|at| text[at.start..at.end].to_owned()).collect()
        };
        assert_eq!(
            shown("a: b\nenv: { A: x, B: [y] }\nurl: 'https://k@h'\nname: env\nargs: [z]\n"),
            ["x", "y", "k@"]
        );
        assert_eq!(shown("token: \"${T}\"\n"), ["${T}"], "without the quotes");
        let broken = shown("env:\n  A: hunter2\n  B: \"hunter3\n");
        assert!(broken.concat().contains("hunter2") && broken.concat().contains("hunter3"), "{broken:?}");
    }
}
