//! Keys that are spelt otherwise than in their schema. Few schemas forbid keys that they do not name, and few
//! servers report them: a misspelt one is silently lost, and with it what was asked for.

use std::{
    cell::OnceCell,
    collections::{BTreeSet, HashMap, HashSet},
};

use serde_json::Value;

use super::{
    raw::{self, Entry, Kind},
    schema::{self, Schema},
};
use crate::name::{folded, is_slip};

/// How many bytes can be read in the time of a step.
const READ: usize = 64;
/// The shortest name that may be misspelt by a letter: shorter ones are different names.
const NEAR: usize = 4;
/// Keywords that name keys by a pattern, or in a place that is not looked up.
const ELSEWHERE: [&str; 3] = ["patternProperties", "$dynamicRef", "$recursiveRef"];

/// All schemas for one and the same value, in whatever part or alternative they stand.
pub(super) struct Level<'a> {
    schema: &'a Schema,
    all: Vec<&'a Value>,
    /// Keys other than the named ones are allowed.
    pub(super) open: bool,
    /// The names of keys by their folded form.
    folded: OnceCell<HashMap<String, BTreeSet<&'a str>>>,
}

/// The keys of one object, for questions about each of them.
pub(super) struct Keys<'k> {
    all: HashSet<&'k str>,
    /// How many keys there are of each folded form; only needed if a key is spelt otherwise.
    folded: OnceCell<HashMap<String, usize>>,
}

impl<'k> Keys<'k> {
    pub(super) fn of(entries: &'k [Entry<'_>]) -> Self {
        Self { all: entries.iter().map(|entry| entry.key.as_str()).collect(), folded: OnceCell::new() }
    }

    /// How many of them are this one, however spelt.
    fn count(&self, own: &str) -> usize {
        let folded = self.folded.get_or_init(|| {
            let mut counts = HashMap::new();
            for key in &self.all {
                *counts.entry(folded(key)).or_default() += 1;
            }
            counts
        });
        folded.get(own).copied().unwrap_or_default()
    }
}

/// The schema's key that may be meant by one that the schema does not name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UnnamedKey<'a> {
    /// This one, spelt in another way; no other has this spelling, and it is not present yet.
    Is(&'a str),
    /// One of these, or almost.
    MayBe(Vec<&'a str>),
    Unknown,
}

impl<'a> Level<'a> {
    pub(super) fn of(schema: &'a Schema, at: &[&'a Value]) -> Self {
        let mut level = Self { schema, all: Vec::new(), open: false, folded: OnceCell::new() };
        let mut seen = HashSet::new();
        let mut found: Vec<_> = at.iter().rev().copied().collect();
        // No recursion: schemas may lead to each other in circles and long chains.
        while let Some(at) = found.pop() {
            if !seen.insert(std::ptr::from_ref(at)) {
                continue;
            }
            let before = found.len();
            level.add(at, &mut found);
            found[before..].reverse();
            if !schema.step(1 + found.len() - before + schema::properties(at).count()) {
                level.open = true;
                break;
            }
        }
        level
    }

    /// Adds a schema, and collects the others for the same value.
    fn add(&mut self, at: &'a Value, others: &mut Vec<&'a Value>) {
        self.all.push(at);
        let mut more =
            ["additionalProperties", "unevaluatedProperties"].iter().filter_map(|key| at.get(*key));
        let target = self.schema.target(at);
        self.open |= more.any(|more| more != &Value::Bool(false))
            || ELSEWHERE.iter().any(|key| at.get(*key).is_some())
            || matches!(target, Some((None, _)));
        others.extend(target.and_then(|(found, _)| found));
        for branch in ["anyOf", "oneOf"].iter().filter_map(|key| at.get(*key)?.as_array()).flatten() {
            self.open |= takes_any_object(branch);
            others.push(branch);
        }
        others.extend(schema::parts(at));
        others.extend(["then", "else"].iter().filter_map(|key| at.get(*key)));
        let dependent =
            ["dependentSchemas", "dependencies"].iter().filter_map(|key| at.get(*key)?.as_object());
        others.extend(dependent.flat_map(|all| all.values()));
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.all.iter().flat_map(|at| schema::properties(at)).map(|(key, _)| key.as_str())
    }

    /// The names in their order, each once.
    pub(super) fn listed(&self) -> Vec<&'a str> {
        self.names().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The schemas for the value of a key.
    pub(super) fn property(&self, key: &str) -> Vec<&'a Value> {
        self.child(|at| schema::property(at, key))
    }

    fn child(&self, get: impl Fn(&'a Value) -> Option<&'a Value>) -> Vec<&'a Value> {
        let looked_at = if self.schema.step(self.all.len()) { self.all.as_slice() } else { &[] };
        looked_at.iter().filter_map(|at| get(at)).collect()
    }

    /// Whether a key is named, however it is spelt.
    pub(super) fn names_alike(&self, key: &str) -> bool {
        self.folded().contains_key(&folded(key))
    }

    fn folded(&self) -> &HashMap<String, BTreeSet<&'a str>> {
        self.folded.get_or_init(|| {
            let mut names: HashMap<String, BTreeSet<&str>> = HashMap::new();
            for name in self.names() {
                names.entry(folded(name)).or_default().insert(name);
            }
            names
        })
    }

    /// The schema's key that may be meant by `key`, which stands `among` these.
    pub(super) fn unnamed_key(&self, key: &str, among: &Keys<'_>) -> UnnamedKey<'a> {
        if self.open || !self.property(key).is_empty() || !self.schema.step(1 + key.len() / 8) {
            return UnnamedKey::Unknown;
        }
        let own = folded(key);
        let alike: Vec<&str> =
            self.folded().get(&own).filter(|_| !own.is_empty()).into_iter().flatten().copied().collect();
        if let [only] = alike.as_slice() {
            // There must not be two keys that mean the same.
            return if among.count(&own) == 1 { UnnamedKey::Is(only) } else { UnnamedKey::MayBe(alike) };
        }
        if !alike.is_empty() {
            return UnnamedKey::MayBe(alike);
        }
        // Each name is compared, which takes time by its length.
        if own.len() < NEAR || !self.schema.step(self.folded().len() * (1 + own.len() / 8)) {
            return UnnamedKey::Unknown;
        }
        let near = self.folded().iter().filter(|(name, _)| name.len() >= NEAR && is_slip(&own, name));
        let near: BTreeSet<&str> = near.flat_map(|(_, names)| names).copied().collect();
        let absent: Vec<&str> = near.into_iter().filter(|name| !among.all.contains(name)).collect();
        if absent.is_empty() { UnnamedKey::Unknown } else { UnnamedKey::MayBe(absent) }
    }
}

/// The place of a key within the value at `place`.
pub(super) fn join(place: &str, key: &str) -> String {
    if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") }
}

/// Whether every key in a value, at any depth, is either named or nothing like a name.
pub(super) fn is_clean(schema: &Schema, at: &[&Value], json: &[u8]) -> bool {
    let level = match Kind::of(json) {
        // The value is read again at each level of its parts.
        Kind::Object | Kind::Array if !at.is_empty() && schema.step(1 + json.len() / READ) => {
            Level::of(schema, at)
        }
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
    let keys = Keys::of(&entries);
    entries.iter().all(|entry| {
        let mut own = level.property(&entry.key);
        if own.is_empty() {
            own = level.child(|at| at.get("additionalProperties"));
        }
        level.unnamed_key(&entry.key, &keys) == UnnamedKey::Unknown && is_clean(schema, &own, &entry.value)
    })
}

/// Whether an alternative is `{}` or `{"type": "object"}`: whatever the others name, it accepts any object.
fn takes_any_object(branch: &Value) -> bool {
    let object = ["properties", "required", "$ref", "allOf", "anyOf", "oneOf", "not", "const", "enum"]
        .iter()
        .all(|key| branch.get(*key).is_none());
    let types = schema::types(branch);
    object && branch != &Value::Bool(false) && (types.is_empty() || types.contains(&"object"))
}
