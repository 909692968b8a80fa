//! The problems of arguments, in words.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Problem,
    raw::Entry,
    schema::{self, Schema},
    shape::shown,
    spelling::{Level, join},
};
use crate::{
    name,
    text::{listed, quoted},
};

/// How many keys that a schema does not name are reported beside those that are missing.
const UNNAMED: usize = 5;

/// The keys that are required and not there. Beside them, keys that the schema does not name: one of these may be what
/// was meant.
pub(super) fn missing(schema: &Schema, at: &Value, entries: &[Entry<'_>], place: &str) -> Vec<Problem> {
    let dependent = entries.iter().flat_map(|entry| schema::needed_with(at, &entry.key));
    let mut present: HashSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    let absent = schema::required(at).chain(dependent).filter(|key| present.insert(key));
    let mut problems: Vec<Problem> = absent
        .map(|key| {
            let (own, place) = (schema::property(at, key).unwrap_or(&Value::Bool(true)), join(place, key));
            Problem::of(schema, own, &place, format!("{} is missing", quoted(&place)))
        })
        .collect();
    if !problems.is_empty() {
        problems.extend(unnamed(schema, at, entries, place));
    }
    problems
}

/// The keys that a schema neither names nor forbids.
fn unnamed(schema: &Schema, at: &Value, entries: &[Entry<'_>], place: &str) -> Vec<Problem> {
    let level = Level::of(schema, &[at]);
    if level.open || at.get("additionalProperties").is_some() {
        return Vec::new();
    }
    let unnamed = entries.iter().filter(|entry| level.property(&entry.key).is_empty());
    unnamed.take(UNNAMED).map(|entry| unknown(schema, &level, &entry.key, &[], place)).collect()
}

/// A value that does not fit its schema.
pub(super) fn mismatch(schema: &Schema, at: &Value, json: &[u8], place: &str) -> Problem {
    whole(schema, at, place, &misfit(json, place))
}

/// What [`mismatch`] says of a value.
fn misfit(json: &[u8], place: &str) -> String {
    let why = if place.is_empty() { "do not fit: they are" } else { "does not fit: it is" };
    format!("{why} {}", shown(json))
}

/// Whether a problem says only that the whole value at a place does not fit.
pub(super) fn is_misfit(problem: &Problem, json: &[u8], place: &str) -> bool {
    problem.place == place && problem.message.ends_with(&misfit(json, place))
}

/// A problem of the value at a place; `what` follows its name.
pub(super) fn whole(schema: &Schema, at: &Value, place: &str, what: &str) -> Problem {
    let who = if place.is_empty() { "the arguments".to_owned() } else { quoted(place) };
    Problem::of(schema, at, place, format!("{who} {what}"))
}

/// A key that is not one of the schema's, and the one of `near` or the others that it may be.
pub(super) fn unknown(schema: &Schema, level: &Level<'_>, key: &str, near: &[&str], place: &str) -> Problem {
    let inside = join(place, key);
    if !schema.explain() {
        let message = format!("{} is not a parameter", quoted(&inside));
        return Problem { place: inside, message, fragment: None, example: None };
    }
    let known = level.listed();
    let nearest = name::nearest(key, known.iter().copied());
    let near = near.first().or(nearest.first()).copied();
    let message = no_parameter(&inside, near, &known);
    match near.and_then(|near| level.property(near).into_iter().next()) {
        Some(own) => Problem::of(schema, own, &inside, message),
        None => Problem { place: inside, message, fragment: None, example: None },
    }
}

/// The sentence about a key that means nothing: the known one that it may be, or all that there are.
fn no_parameter(place: &str, near: Option<&str>, known: &[&str]) -> String {
    let hint = match (near, known) {
        (Some(near), _) => format!(", but {} is", quoted(near)),
        (None, []) => "; it takes none".to_owned(),
        (None, [_]) => format!("; there is {}", listed(known.iter().copied())),
        (None, _) => format!("; there are {}", listed(known.iter().copied())),
    };
    format!("{} is not a parameter{hint}", quoted(place))
}

/// The sentences about keys of a call of which plugbay's own tools know none, one on each line.
pub fn no_parameters<'a>(keys: impl IntoIterator<Item = &'a str>, known: &[&str]) -> String {
    let sentence = |key| no_parameter(key, name::nearest(key, known.iter().copied()).first().copied(), known);
    keys.into_iter().take(UNNAMED).map(sentence).collect::<Vec<_>>().join("\n")
}
