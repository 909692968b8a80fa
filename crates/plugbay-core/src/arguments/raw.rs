//! JSON values as they were written.

use std::{borrow::Cow, collections::HashSet};

use crate::wire::{Cursor, Member, Members, Walk, elements, key_value, string_value};

/// The six kinds of JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

/// A member of an object: its key decoded and as written, its value as written.
#[derive(Debug, Clone)]
pub(super) struct Entry<'a> {
    pub(super) key: String,
    pub(super) quoted: Cow<'a, [u8]>,
    pub(super) value: Cow<'a, [u8]>,
}

impl Kind {
    /// The kind of a value that is known to be JSON.
    pub(super) fn of(json: &[u8]) -> Self {
        json.first().map_or(Self::Null, |first| Self::at(*first))
    }

    /// The kind of a value that begins with this byte.
    pub(super) fn at(first: u8) -> Self {
        match first {
            b'{' => Self::Object,
            b'[' => Self::Array,
            b'"' => Self::String,
            b't' | b'f' => Self::Boolean,
            b'n' => Self::Null,
            _ => Self::Number,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "a list",
            Self::Object => "an object",
        }
    }
}

/// Whether this is one value, without blanks around it, and not nested too deep to be searched.
pub(super) fn is_json(json: &[u8]) -> bool {
    let whole = || Cursor::new(json, 0).value(1).is_ok_and(|span| span == (0..json.len()));
    simdutf8::basic::from_utf8(json).is_ok() && whole()
}

/// Whether a value contains more than `most` values, at any depth.
pub(super) fn has_more_values(json: &[u8], most: usize) -> bool {
    // Each value but the first of a list or an object has a comma before it. Commas in texts count too, so a
    // large number is checked by an exact count.
    let marks = memchr::memchr3_iter(b',', b'[', b'{', json);
    marks.take(most + 1).count() > most && count_values(&mut Cursor::new(json, 0), most).is_none()
}

/// How many values there are, if no more than `most`. Keeps none of them.
fn count_values(cursor: &mut Cursor<'_>, most: usize) -> Option<usize> {
    let mut left = most;
    let mut walks: Vec<(u8, Walk)> = Vec::new();
    loop {
        left = left.checked_sub(1)?;
        match cursor.peek().ok()? {
            open @ (b'{' | b'[') => walks.push((open, Walk::open(cursor, open, 0).ok()?)),
            _ => {
                cursor.value(0).ok()?;
            }
        }
        loop {
            let Some((open, walk)) = walks.last_mut() else { return Some(most - left) };
            if walk.advance(cursor).ok()? {
                if *open == b'{' {
                    cursor.string().ok()?;
                    cursor.expect(b':').ok()?;
                }
                break;
            }
            walks.pop();
        }
    }
}

pub(super) fn text(json: &[u8]) -> Option<Cow<'_, str>> {
    string_value(json)
}

pub(super) fn list(json: &[u8]) -> Vec<&[u8]> {
    elements(json, &(0..json.len())).into_iter().map(|span| &json[span]).collect()
}

pub(super) fn entries(json: &[u8]) -> Vec<Entry<'_>> {
    let entry = |member: Member<'_>| Entry {
        key: member.key.into_owned(),
        quoted: Cow::Borrowed(&json[member.key_span]),
        value: Cow::Borrowed(&json[member.value]),
    };
    Members::of(json, &(0..json.len())).flatten().map(entry).collect()
}

/// A key that stands twice in one object, at any depth: readers differ in its meaning. Reads each byte once.
pub(super) fn doubled(json: &[u8]) -> Option<String> {
    let mut cursor = Cursor::new(json, 0);
    let mut open: Vec<(Walk, Option<HashSet<Cow<'_, str>>>)> = Vec::new();
    loop {
        match cursor.peek().ok()? {
            b'{' => open.push((Walk::open(&mut cursor, b'{', 0).ok()?, Some(HashSet::new()))),
            b'[' => open.push((Walk::open(&mut cursor, b'[', 0).ok()?, None)),
            _ => {
                cursor.value(0).ok()?;
            }
        }
        loop {
            let (walk, keys) = open.last_mut()?;
            if !walk.advance(&mut cursor).ok()? {
                open.pop();
                continue;
            }
            if let Some(keys) = keys {
                let (key, _) = cursor.string().ok()?;
                cursor.expect(b':').ok()?;
                let key = key_value(&json[key]);
                if keys.contains(&key) {
                    return Some(key.into_owned());
                }
                keys.insert(key);
            }
            break;
        }
    }
}

pub(super) fn object<'e>(entries: impl IntoIterator<Item = &'e Entry<'e>>) -> Vec<u8> {
    let mut json = vec![b'{'];
    for (at, entry) in entries.into_iter().enumerate() {
        if at > 0 {
            json.push(b',');
        }
        json.extend_from_slice(&entry.quoted);
        json.push(b':');
        json.extend_from_slice(&entry.value);
    }
    json.push(b'}');
    json
}

pub(super) fn array<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> Vec<u8> {
    let mut json = vec![b'['];
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            json.push(b',');
        }
        json.extend_from_slice(value);
    }
    json.push(b']');
    json
}

pub(super) fn quote(text: &str) -> Vec<u8> {
    serde_json::Value::from(text).to_string().into_bytes()
}
