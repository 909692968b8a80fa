//! Whether a value fits a schema, by the keywords that tools use.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    keywords::{Bounds, Length, Types, canonical, same, weight},
    raw::{self, Kind},
    schema::{self, Schema},
};

/// How deep schemas are followed: they may lead to themselves.
const DEPTH: u32 = 96;
/// How many bytes can be read in the time of a step: fewer of lists and objects, whose parts are kept.
const READ: usize = 64;
const READ_PARTS: usize = 8;
/// The keywords that are checked, and those that say nothing of a value.
const KNOWN: &[&str] = &[
    "$ref",
    "$defs",
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "type",
    "nullable",
    "const",
    "enum",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];

/// Whether a value fits. One for which this is uncertain is not refused: its server checks again.
pub(super) fn fits(schema: &Schema, at: &Value, json: &[u8]) -> bool {
    Check { schema }.verdict(at, json, DEPTH) != Verdict::No
}

/// How a value fits a schema. In `oneOf`, two that say `Yes` rule each other out; `Yes` and `Unsure` do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    No,
    /// There is a keyword that is left to the server.
    Unsure,
    Yes,
}

impl Verdict {
    fn of(known: Option<bool>) -> Self {
        known.map_or(Self::Unsure, |fits| if fits { Self::Yes } else { Self::No })
    }
}

#[derive(Clone, Copy)]
struct Check<'a> {
    schema: &'a Schema,
}

impl Check<'_> {
    fn verdict(self, at: &Value, json: &[u8], depth: u32) -> Verdict {
        // The cost itself is only calculated as long as there are steps.
        if depth == 0 || !self.schema.step(1) || !self.schema.step(cost(at, json)) {
            return Verdict::Unsure;
        }
        let Value::Object(keywords) = at else {
            return Verdict::of(at.as_bool());
        };
        let inner = |schema: &Value| self.verdict(schema, json, depth - 1);
        let mut verdict = Verdict::Yes;
        if let Some((found, siblings)) = self.schema.target(at) {
            verdict = found.map_or(Verdict::Unsure, inner);
            if !siblings {
                return verdict;
            }
        }
        let kind = Kind::of(json);
        if kind == Kind::Null && at.get("nullable") == Some(&Value::Bool(true)) {
            return verdict; // as OpenAPI has it
        }
        if !Types::of(at).allow(kind, json)
            || schema::choices(at).is_some_and(|choices| !choices.iter().any(|choice| same(json, choice)))
        {
            return Verdict::No;
        }
        if keywords.keys().any(|key| !KNOWN.contains(&key.as_str())) {
            verdict = verdict.min(Verdict::Unsure);
        }
        for part in schema::parts(at) {
            verdict = verdict.min(inner(part));
        }
        verdict = verdict.min(self.alternatives(at, json, depth));
        if verdict == Verdict::No {
            return verdict;
        }
        verdict.min(match kind {
            Kind::Object => self.object(at, json, depth),
            Kind::Array => self.array(at, json, depth),
            Kind::String => self.text(at, json),
            Kind::Number => Verdict::of(Bounds::of(at).allow(json)),
            Kind::Null | Kind::Boolean => Verdict::Yes,
        })
    }

    fn alternatives(self, at: &Value, json: &[u8], depth: u32) -> Verdict {
        let inner = |schema: &Value| self.verdict(schema, json, depth - 1);
        let all = |key: &str| at.get(key).and_then(Value::as_array).filter(|branches| !branches.is_empty());
        let any = all("anyOf").map(|branches| branches.iter().map(inner).max());
        let one = all("oneOf").map(|branches| {
            let mut verdicts: Vec<Verdict> = branches.iter().map(inner).collect();
            verdicts.sort_unstable_by(|a, b| b.cmp(a));
            match verdicts.as_slice() {
                [Verdict::Yes, Verdict::Yes, ..] => Verdict::No,
                [first] | [first, Verdict::No, ..] => *first,
                _ => Verdict::Unsure,
            }
        });
        let denied = at.get("not").map(|denied| match inner(denied) {
            Verdict::Yes => Verdict::No,
            Verdict::Unsure => Verdict::Unsure,
            Verdict::No => Verdict::Yes,
        });
        let consequence = |key: &str| at.get(key).map_or(Verdict::Yes, inner);
        let condition = at.get("if").map(|condition| match inner(condition) {
            Verdict::Yes => consequence("then"),
            Verdict::Unsure => Verdict::Unsure,
            Verdict::No => consequence("else"),
        });
        [any.flatten(), one, denied, condition].into_iter().flatten().min().unwrap_or(Verdict::Yes)
    }

    fn object(self, at: &Value, json: &[u8], depth: u32) -> Verdict {
        let entries = raw::entries(json);
        let keys: HashSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        let present = |key: &str| keys.contains(key);
        let complete = schema::required(at).all(present)
            && entries.iter().all(|entry| schema::needed_with(at, &entry.key).all(present));
        if !complete || !Length::of(at, "minProperties", "maxProperties").allows(|| entries.len()) {
            return Verdict::No;
        }
        let open = at.get("patternProperties").is_some();
        let rest = at.get("additionalProperties").filter(|_| !open);
        let inner = entries.iter().filter_map(|entry| {
            let own = schema::property(at, &entry.key).or(rest)?;
            Some(self.verdict(own, &entry.value, depth - 1))
        });
        inner.min().unwrap_or(Verdict::Yes)
    }

    fn array(self, at: &Value, json: &[u8], depth: u32) -> Verdict {
        let items = raw::list(json);
        let unique = at.get("uniqueItems") == Some(&Value::Bool(true));
        if unique && !self.schema.step(json.len()) {
            return Verdict::Unsure;
        }
        let doubled = || {
            let mut seen = HashSet::new();
            !items.iter().all(|item| seen.insert(canonical(item)))
        };
        if !Length::of(at, "minItems", "maxItems").allows(|| items.len()) || unique && doubled() {
            return Verdict::No;
        }
        let inner = items
            .iter()
            .enumerate()
            .filter_map(|(number, item)| Some(self.verdict(schema::item(at, number)?, item, depth - 1)));
        inner.min().unwrap_or(Verdict::Yes)
    }

    fn text(self, at: &Value, json: &[u8]) -> Verdict {
        let text = raw::text(json).unwrap_or_default();
        if !Length::of(at, "minLength", "maxLength").allows(|| text.chars().count()) {
            return Verdict::No;
        }
        let matches = |pattern| self.schema.patterns.matches(pattern, &text, |cost| self.schema.step(cost));
        let pattern = at.get("pattern").and_then(Value::as_str);
        pattern.map_or(Verdict::Yes, |pattern| Verdict::of(matches(pattern)))
    }
}

/// The cost of a check, in steps: each keyword reads the value once.
fn cost(at: &Value, json: &[u8]) -> usize {
    let Value::Object(keywords) = at else { return 1 };
    let lists = ["type", "required"].iter().filter_map(|key| at.get(*key)?.as_array()).map(Vec::len);
    let choices = ["enum", "const"].iter().filter_map(|key| at.get(*key)).map(weight);
    let reference = at.get("$ref").and_then(Value::as_str).map_or(0, |reference| reference.len() / READ);
    let each = 1 + keywords.len() / 4 + lists.chain(choices).sum::<usize>() + reference;
    let read = if matches!(Kind::of(json), Kind::Array | Kind::Object) { READ_PARTS } else { READ };
    each * (1 + json.len() / READ) + json.len() / read
}
