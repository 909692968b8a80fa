//! JSON values as they were written.

use std::{borrow::Cow, collections::HashSet};

use serde_json::value::RawValue;

use crate::wire::{DEPTH_LIMIT, Members, elements, string_value};

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
    /// Of a value that is known to be JSON.
    pub(super) fn of(json: &[u8]) -> Self {
        match json.first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number,
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

/// Is this one value, without blanks around it, and not too deep to be looked through?
pub(super) fn is_json(json: &[u8]) -> bool {
    let whole = serde_json::from_slice::<&RawValue>(json).is_ok_and(|raw| raw.get().len() == json.len());
    whole && depth(json) < DEPTH_LIMIT as usize
}

/// How deep lists and objects are nested.
fn depth(json: &[u8]) -> usize {
    let (mut now, mut deepest) = (0usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                now += 1;
                deepest = deepest.max(now);
            }
            b'}' | b']' if !in_string => now = now.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

pub(super) fn text(json: &[u8]) -> Option<Cow<'_, str>> {
    string_value(json)
}

pub(super) fn list(json: &[u8]) -> Vec<&[u8]> {
    elements(json, &(0..json.len())).into_iter().map(|span| &json[span]).collect()
}

pub(super) fn entries(json: &[u8]) -> Vec<Entry<'_>> {
    let mut at = 0;
    let mut found = Vec::new();
    for member in Members::of(json, &(0..json.len())).flatten() {
        // Before the value stand the key and a colon; before the key, a brace or a comma.
        let before = &json[at..member.value.start];
        let quote = |byte: &u8| *byte == b'"';
        let quoted = match (before.iter().position(quote), before.iter().rposition(quote)) {
            (Some(first), Some(last)) => &before[first..=last],
            _ => &[],
        };
        at = member.value.end;
        found.push(Entry {
            key: member.key.into_owned(),
            quoted: Cow::Borrowed(quoted),
            value: Cow::Borrowed(&json[member.value]),
        });
    }
    found
}

/// A key that stands twice in one object, at any depth: what it means depends on who reads it.
pub(super) fn doubled(json: &[u8]) -> Option<String> {
    match Kind::of(json) {
        Kind::Object => {
            let entries = entries(json);
            let mut seen = HashSet::new();
            let twice = entries.iter().find(|entry| !seen.insert(&entry.key)).map(|entry| entry.key.clone());
            twice.or_else(|| entries.iter().find_map(|entry| doubled(&entry.value)))
        }
        Kind::Array => list(json).into_iter().find_map(doubled),
        _ => None,
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
