//! A tool's schema, with references followed and the spellings of several drafts unified.

use std::{borrow::Cow, cell::Cell, sync::Arc};

use serde_json::{Value, json};

use super::pattern::Patterns;

/// How many steps a check may take for a call, in addition for each byte of its arguments, and at most in
/// all: schemas may lead to themselves, and multiply on their way. After that nothing more is checked.
const STEPS: (usize, usize, usize) = (100_000, 2, 200_000);
/// How many steps it takes to put two schemas together, and how many bytes of the whole schema add one more.
const MERGED: (usize, usize) = (100, 16);
/// Problems are explained with parts of the schema until those have this many bytes together.
const EXPLAINED: usize = 1 << 18;
/// How many names of types are read: there are only seven types.
const TYPES: usize = 16;
/// How deep references to references and parts of parts are followed; anything deeper is ignored.
const DEPTH: u32 = 64;

/// A schema as JSON.
#[derive(Debug)]
pub(super) struct Parsed {
    root: Value,
    /// How many bytes it has.
    length: usize,
    /// Whether keywords beside `$ref` count. In drafts before 2019 they do not.
    siblings: bool,
}

impl Parsed {
    /// Reads a schema. Arguments are an object, whether their schema says so or not.
    pub(super) fn read(json: &[u8]) -> Self {
        let mut root =
            serde_json::from_slice(json).ok().filter(Value::is_object).unwrap_or_else(|| json!({}));
        if root.get("type").is_none() {
            root["type"] = json!("object");
        }
        let draft = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let siblings = !draft.contains("/draft-0");
        Self { root, length: json.len(), siblings }
    }

    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    /// The target of a reference, and whether the keywords beside it count. `Some(None)`: it leads nowhere.
    pub(super) fn target(&self, at: &Value) -> Option<(Option<&Value>, bool)> {
        let reference = at.get("$ref")?.as_str()?;
        let found = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        Some((found, self.siblings))
    }
}

/// A schema during one check of arguments.
#[derive(Debug)]
pub(super) struct Schema {
    parsed: Arc<Parsed>,
    /// Steps that are left.
    steps: Cell<usize>,
    /// Bytes of the schema that may still be shown in explanations.
    explained: Cell<usize>,
    pub(super) patterns: Patterns,
}

impl Schema {
    pub(super) fn read(json: &[u8]) -> Self {
        Self::new(Arc::new(Parsed::read(json)))
    }

    pub(super) fn new(parsed: Arc<Parsed>) -> Self {
        let (steps, explained) = (Cell::new(STEPS.0), Cell::new(EXPLAINED));
        Self { parsed, steps, explained, patterns: Patterns::default() }
    }

    /// Begins a new check, for arguments of this length.
    pub(super) fn look_at(&self, length: usize) {
        self.steps.set((STEPS.0 + STEPS.1 * length).min(STEPS.2));
    }

    /// Whether another problem may be explained by a part of this schema, which may be all of it.
    pub(super) fn explain(&self) -> bool {
        let left = self.explained.get().checked_sub(self.parsed.length + 256);
        self.explained.set(left.unwrap_or_default());
        left.is_some()
    }

    /// Whether two parts of this schema may be put together.
    fn merge_step(&self) -> bool {
        self.step(MERGED.0 + self.parsed.length / MERGED.1)
    }

    /// Whether another step may be taken.
    pub(super) fn step(&self, cost: usize) -> bool {
        let left = self.steps.get().saturating_sub(cost);
        self.steps.set(left);
        left > 0
    }

    pub(super) fn root(&self) -> &Value {
        self.parsed.root()
    }

    pub(super) fn target(&self, at: &Value) -> Option<(Option<&Value>, bool)> {
        self.parsed.target(at)
    }

    /// All that a schema says of one value without alternatives, including the targets of its references and
    /// the parts of `allOf`. A reference that leads nowhere says nothing.
    ///
    /// If two of them have the same keyword, the latter is taken: this guides a repair, it is not the check.
    pub(super) fn whole<'a>(&'a self, at: &'a Value) -> Cow<'a, Value> {
        self.whole_within(at, DEPTH)
    }

    fn whole_within<'a>(&'a self, at: &'a Value, depth: u32) -> Cow<'a, Value> {
        let target = self.target(at);
        if target.is_none() && parts(at).is_empty() {
            return Cow::Borrowed(at);
        }
        if depth == 0 || !self.merge_step() {
            return Cow::Owned(Value::Bool(true));
        }
        if let Some((found, siblings)) = target
            && (!siblings || at.as_object().is_some_and(|all| all.len() == 1))
        {
            return found.map_or(Cow::Owned(Value::Bool(true)), |found| self.whole_within(found, depth - 1));
        }
        let mut whole = json!({});
        for part in target.and_then(|(found, _)| found).into_iter().chain(parts(at)) {
            merge(&mut whole, &self.whole_within(part, depth - 1), &[]);
        }
        merge(&mut whole, at, &["$ref", "allOf"]);
        Cow::Owned(whole)
    }

    /// A whole schema with its `then` if the condition holds, else with its `else`; `None`: with neither.
    pub(super) fn consequence(&self, whole: &Value, holds: Option<bool>) -> Value {
        if !self.merge_step() {
            return Value::Bool(true);
        }
        let mut merged = json!({});
        merge(&mut merged, whole, &["if", "then", "else"]);
        if let Some(following) = holds.and_then(|holds| whole.get(if holds { "then" } else { "else" })) {
            merge(&mut merged, &self.whole(following), &[]);
        }
        merged
    }

    /// One of the alternatives of a whole schema, with the keywords that apply to all of them.
    pub(super) fn alternative(&self, whole: &Value, branch: &Value) -> Value {
        if !self.merge_step() {
            return Value::Bool(true);
        }
        let mut merged = json!({});
        merge(&mut merged, whole, &[if whole.get("anyOf").is_some() { "anyOf" } else { "oneOf" }]);
        merge(&mut merged, &self.whole(branch), &[]);
        merged
    }
}

fn merge(into: &mut Value, from: &Value, without: &[&str]) {
    let (Value::Object(own), Value::Object(other)) = (&mut *into, from) else {
        if from != &Value::Bool(true) {
            *into = from.clone();
        }
        return;
    };
    for (key, value) in other.iter().filter(|(key, _)| !without.contains(&key.as_str())) {
        match (key.as_str(), own.get_mut(key)) {
            ("properties", Some(Value::Object(properties))) => {
                for (name, schema) in value.as_object().into_iter().flatten() {
                    merge(properties.entry(name).or_insert(Value::Bool(true)), schema, &[]);
                }
            }
            ("required", Some(Value::Array(names))) => {
                names.extend(value.as_array().cloned().unwrap_or_default());
            }
            (_, Some(old)) => *old = value.clone(),
            (_, None) => {
                own.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The names of the types that a schema allows; none if it does not name any.
pub(super) fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => {
            let mut types: Vec<&str> = Vec::new();
            for name in several.iter().filter_map(Value::as_str) {
                if types.len() < TYPES && !types.contains(&name) {
                    types.push(name);
                }
            }
            types
        }
        _ if schema.get("properties").is_some() || schema.get("required").is_some() => vec!["object"],
        _ if schema.get("items").is_some() || schema.get("prefixItems").is_some() => vec!["array"],
        _ => Vec::new(),
    }
}

/// The alternatives of a schema: `anyOf`, or `oneOf`.
pub(super) fn branches(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()
}

pub(super) fn parts(schema: &Value) -> &[Value] {
    schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn property<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(key)
}

pub(super) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

pub(super) fn required(schema: &Value) -> impl Iterator<Item = &str> {
    names(schema.get("required"))
}

/// The keys that are required if this key is present. Drafts before 2019 say so in `dependencies`.
pub(super) fn needed_with<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    let own = ["dependentRequired", "dependencies"].into_iter().filter_map(|word| schema.get(word)?.get(key));
    own.flat_map(|list| names(Some(list))).collect::<Vec<_>>().into_iter()
}

fn names(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The schema of a list's element. Drafts before 2020-12 write a tuple into `items`.
pub(super) fn item(schema: &Value, at: usize) -> Option<&Value> {
    let tuple = schema.get("prefixItems").or_else(|| schema.get("items")).and_then(Value::as_array);
    if let Some(own) = tuple.and_then(|tuple| tuple.get(at)) {
        return Some(own);
    }
    let rest =
        if tuple.is_some() && schema.get("prefixItems").is_none() { "additionalItems" } else { "items" };
    schema.get(rest).filter(|rest| !rest.is_array())
}

/// The values that are allowed, if only some are.
pub(super) fn choices(schema: &Value) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(only), _) => Some(vec![only]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}
