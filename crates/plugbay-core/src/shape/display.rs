//! A shape as one line: `{id: int, title, labels: {name, color?}[], user: {login}|null}`.

use std::fmt::{self, Write};

use super::{Format, Key, Number, Object, Shape};
use crate::tokens::estimate;

/// Levels of detail, the most first: how deep objects are shown, and how many keys of each.
const LEVELS: [(usize, usize); 7] = [(8, 64), (4, 32), (3, 24), (3, 12), (2, 8), (2, 4), (1, 3)];

impl Shape {
    /// One line of at most `tokens` tokens: what does not fit is left out as `…`.
    pub fn line(&self, tokens: usize) -> String {
        let fits = |(depth, keys)| Some(self.written(depth, keys)).filter(|line| estimate(line) <= tokens);
        LEVELS.into_iter().find_map(fits).unwrap_or_else(|| "…".to_owned())
    }

    fn written(&self, depth: usize, keys: usize) -> String {
        let mut out = String::new();
        Writer { out: &mut out, keys }.shape(self, depth);
        out
    }
}

impl fmt::Display for Shape {
    /// The complete shape.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(usize::MAX, usize::MAX))
    }
}

struct Writer<'a> {
    out: &'a mut String,
    keys: usize,
}

impl Writer<'_> {
    fn shape(&mut self, shape: &Shape, depth: usize) {
        let start = self.out.len();
        let part = |out: &mut String| {
            if out.len() > start {
                out.push('|');
            }
        };
        if let Some(object) = &shape.object {
            part(self.out);
            self.object(object, depth);
        }
        if let Some(item) = &shape.array {
            part(self.out);
            self.array(item, depth);
        }
        if let Some(format) = shape.string {
            part(self.out);
            self.out.push_str(format.as_str());
        }
        if let Some(number) = shape.number {
            part(self.out);
            self.out.push_str(if number == Number::Integer { "int" } else { "number" });
        }
        for (is, word) in [(shape.boolean, "bool"), (shape.null, "null"), (shape.recursive, "…")] {
            if is {
                part(self.out);
                self.out.push_str(word);
            }
        }
        if self.out.len() == start {
            self.out.push_str("any");
        }
    }

    fn array(&mut self, item: &Shape, depth: usize) {
        if item.is_unknown() {
            return self.out.push_str("array");
        }
        let start = self.out.len();
        self.shape(item, depth.saturating_sub(1));
        if item.kinds() > 1 {
            self.out.insert(start, '(');
            self.out.push(')');
        }
        self.out.push_str("[]");
    }

    fn object(&mut self, object: &Object, depth: usize) {
        match object {
            _ if depth == 0 => self.out.push_str("{…}"),
            Object::Keys { keys, more: true } if keys.is_empty() => self.out.push_str("{…}"),
            Object::Map(value) => {
                self.out.push_str("{[key]: ");
                self.shape(value, depth - 1);
                self.out.push('}');
            }
            Object::Keys { keys, more } => {
                self.out.push('{');
                for (place, key) in keys.iter().take(self.keys).enumerate() {
                    self.out.push_str(if place == 0 { "" } else { ", " });
                    self.key(key, depth);
                }
                match keys.len().saturating_sub(self.keys) {
                    0 if *more => self.out.push_str(", …"),
                    0 => {}
                    left => _ = write!(self.out, ", +{left}"),
                }
                self.out.push('}');
            }
        }
    }

    /// Writes a key with its type, unless that is text, the usual one. Null is left out if a key may be
    /// missing.
    fn key(&mut self, key: &Key, depth: usize) {
        self.out.push_str(&key_text(&key.name));
        self.out.push_str(if key.optional { "?" } else { "" });
        let null = key.shape.null && !(key.optional && key.shape.kinds() > 1);
        let shape = Shape { null, ..key.shape.clone() };
        if shape != (Shape { string: Some(Format::Text), ..Shape::default() }) {
            self.out.push_str(": ");
            self.shape(&shape, depth - 1);
        }
    }
}

impl Shape {
    fn kinds(&self) -> usize {
        let kinds = [
            self.object.is_some(),
            self.array.is_some(),
            self.string.is_some(),
            self.number.is_some(),
            self.boolean,
            self.null,
            self.recursive,
        ];
        kinds.into_iter().filter(|is| *is).count()
    }
}

/// A key, quoted unless it is a valid name.
pub(crate) fn key_text(key: &str) -> String {
    if is_name(key) { key.to_owned() } else { serde_json::Value::from(key).to_string() }
}

/// Whether `jq` takes a key without quotes.
pub(crate) fn is_name(key: &str) -> bool {
    let mut bytes = key.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
