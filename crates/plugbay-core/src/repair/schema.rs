//! A tool's schema: references followed, spellings of the drafts made one.

use serde_json::Value;

/// How many references may lead to one another.
const HOPS: usize = 16;

#[derive(Debug)]
pub(super) struct Schema {
    root: Value,
}

impl Schema {
    pub(super) fn read(json: &[u8]) -> Self {
        Self { root: serde_json::from_slice(json).unwrap_or(Value::Bool(true)) }
    }

    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    /// What a schema says, behind its references. One that leads nowhere says nothing.
    pub(super) fn resolve<'a>(&'a self, mut schema: &'a Value) -> &'a Value {
        for _ in 0..HOPS {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return schema };
            let found = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            match found {
                Some(found) => schema = found,
                None => return &Value::Bool(true),
            }
        }
        &Value::Bool(true)
    }
}

/// The types that a schema allows by name; none if it does not say.
pub(super) fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ if schema.get("properties").is_some() || schema.get("required").is_some() => vec!["object"],
        _ if schema.get("items").is_some() || schema.get("prefixItems").is_some() => vec!["array"],
        _ => Vec::new(),
    }
}

/// `anyOf` and `oneOf`. That no more than one may match is left to the server: branches often differ in
/// a pattern or a format only, which is not looked at here.
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
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
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
