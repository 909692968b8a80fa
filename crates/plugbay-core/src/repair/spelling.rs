//! Keys that are spelt otherwise than their schema has them. Few schemas forbid keys that they do not name, and
//! few servers tell of them: a misspelt one is lost in silence, and with it what was asked for.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    name::folded,
    raw::{self, Entry, Kind},
    schema::{self, Schema},
};

/// Shorter names differ in a letter because they are different names.
const NEAR: usize = 4;

/// All that schemas say of one and the same value, in whatever part or alternative they say it.
pub(super) struct Level<'a> {
    all: Vec<&'a Value>,
    /// Other keys than the named ones are welcome.
    pub(super) open: bool,
}

/// Which of the named keys a stranger may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stranger<'a> {
    /// This one, spelt in another way; nothing else is called so, and it is not there yet.
    Is(&'a str),
    /// One of these, or almost.
    MayBe(Vec<&'a str>),
    Unknown,
}

impl<'a> Level<'a> {
    pub(super) fn of(schema: &'a Schema, at: &[&'a Value]) -> Self {
        let mut level = Self { all: Vec::new(), open: false };
        for at in at {
            level.add(schema, at);
        }
        level
    }

    fn add(&mut self, schema: &'a Schema, at: &'a Value) {
        if self.all.iter().any(|known| std::ptr::eq(*known, at)) {
            return;
        }
        self.all.push(at);
        let rest = at.get("additionalProperties");
        self.open |=
            rest.is_some_and(|rest| rest != &Value::Bool(false)) || at.get("patternProperties").is_some();
        if let Some((Some(target), _)) = schema.target(at) {
            self.add(schema, target);
        }
        for branch in ["anyOf", "oneOf"].iter().filter_map(|key| at.get(*key)?.as_array()).flatten() {
            self.open |= takes_any_object(branch);
            self.add(schema, branch);
        }
        let consequences = ["then", "else"].iter().filter_map(|key| at.get(*key));
        for part in schema::parts(at).iter().chain(consequences) {
            self.add(schema, part);
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.all.iter().flat_map(|at| schema::properties(at)).map(|(key, _)| key.as_str())
    }

    /// The same in their order, each once.
    pub(super) fn listed(&self) -> Vec<&'a str> {
        self.names().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// What is said of the value of a key.
    pub(super) fn property(&self, key: &str) -> Vec<&'a Value> {
        self.all.iter().filter_map(|at| schema::property(at, key)).collect()
    }

    fn child(&self, get: impl Fn(&'a Value) -> Option<&'a Value>) -> Vec<&'a Value> {
        self.all.iter().filter_map(|at| get(at)).collect()
    }

    /// What a key may be that stands among these.
    pub(super) fn stranger(&self, key: &str, among: &[Entry<'_>]) -> Stranger<'a> {
        if self.open || self.names().any(|name| name == key) {
            return Stranger::Unknown;
        }
        let own = folded(key);
        let mut alike: Vec<&str> =
            self.names().filter(|name| folded(name) == own && !own.is_empty()).collect();
        alike.sort_unstable();
        alike.dedup();
        if let [only] = alike.as_slice() {
            // Two keys that mean the same would be one too many.
            let alone = among.iter().filter(|entry| folded(&entry.key) == own).count() == 1;
            return if alone { Stranger::Is(only) } else { Stranger::MayBe(alike) };
        }
        let absent = |name: &&str| !among.iter().any(|entry| entry.key == *name);
        let near = |name: &&str| own.len().min(folded(name).len()) >= NEAR && is_slip(&own, &folded(name));
        if alike.is_empty() {
            alike.extend(self.names().filter(absent).filter(near));
        }
        if alike.is_empty() { Stranger::Unknown } else { Stranger::MayBe(alike) }
    }
}

/// Is every key in a value, at any depth, either named or nothing like a name?
pub(super) fn is_clean(schema: &Schema, at: &[&Value], json: &[u8]) -> bool {
    let level = match Kind::of(json) {
        Kind::Object | Kind::Array if !at.is_empty() => Level::of(schema, at),
        _ => return true,
    };
    if Kind::of(json) == Kind::Array {
        let item = |number| level.child(|at| schema::item(at, number));
        return raw::list(json)
            .iter()
            .enumerate()
            .all(|(number, json)| is_clean(schema, &item(number), json));
    }
    let entries = raw::entries(json);
    entries.iter().all(|entry| {
        let mut own = level.property(&entry.key);
        if own.is_empty() {
            own = level.child(|at| at.get("additionalProperties"));
        }
        level.stranger(&entry.key, &entries) == Stranger::Unknown && is_clean(schema, &own, &entry.value)
    })
}

/// `{}` or `{"type": "object"}` among alternatives: whatever the others name, this takes anything.
fn takes_any_object(branch: &Value) -> bool {
    let object = ["properties", "required", "$ref", "allOf", "anyOf", "oneOf", "not", "const", "enum"]
        .iter()
        .all(|key| branch.get(*key).is_none());
    let types = schema::types(branch);
    object && branch != &Value::Bool(false) && (types.is_empty() || types.contains(&"object"))
}

/// One letter too many, too few, wrong, or two in the wrong order.
fn is_slip(one: &str, other: &str) -> bool {
    one.len().abs_diff(other.len()) <= 4 && strsim::damerau_levenshtein(one, other) == 1
}
