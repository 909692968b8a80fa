//! The kind of value that a parameter takes, in as few characters as possible.

use std::borrow::Cow;

use super::node::Node;
use crate::text::{escaped_json, word};

/// How deep objects are shown, and how much of them.
const DEPTH: u32 = 2;
const MEMBERS: usize = 6;
/// How many values of a list of allowed ones are shown.
const CHOICES: usize = 6;
const BRANCHES: usize = 4;
const LONGEST_CHOICE: usize = 24;
/// How deep branches within branches are read: a schema can have endlessly many.
const LEVELS: u32 = 4;
/// How many kinds are compared, in the order of the schema.
const KINDS: usize = 32;
/// A kind is cut here, in bytes: names and constants can be of any length.
const LONGEST_KIND: usize = 400;

/// The kind of a value. Null is not shown if a parameter can be left out.
pub(super) fn kind(schema: &Node<'_>, needed: bool) -> String {
    on_one_line(told(schema, needed, DEPTH))
}

/// A kind on one line: a server's constants may have several lines and hidden characters, and a kind is shown as a
/// part of a line.
fn on_one_line(kind: String) -> String {
    let kind = if kind.contains(char::is_control) { kind.replace(char::is_control, " ") } else { kind };
    match escaped_json(&kind) {
        Cow::Owned(escaped) => escaped,
        Cow::Borrowed(_) => kind,
    }
}

fn told(schema: &Node<'_>, needed: bool, depth: u32) -> String {
    let mut kinds = kinds(schema, depth, LEVELS);
    if !needed {
        kinds.retain(|kind| kind != "null");
    }
    let mut kind = join(&kinds);
    if kind.len() > LONGEST_KIND {
        kind.truncate(kind.floor_char_boundary(LONGEST_KIND));
        kind.push('…');
    }
    kind
}

/// All kinds that a value may have, each once.
fn kinds(schema: &Node<'_>, depth: u32, levels: u32) -> Vec<String> {
    if levels == 0 {
        return vec!["any".to_owned()];
    }
    let schema = schema.resolved();
    let mut found = Vec::new();
    if let Some(only) = schema.get("const") {
        let raw = only.raw();
        found.push(raw[..raw.floor_char_boundary(LONGEST_KIND + 1)].to_owned());
    } else if schema.get("enum").is_some() {
        found.push(choices(&schema));
    } else if let Some(branches) = branches(&schema) {
        for branch in branches.iter().take(KINDS) {
            found.extend(kinds(branch, depth, levels - 1));
        }
    } else {
        let mut types = match schema.get("type").and_then(|name| name.text()) {
            Some(one) => vec![one],
            None => schema.texts("type"),
        };
        types.truncate(KINDS);
        found.extend(types.iter().map(|name| typed(name, &schema, depth)));
        if types.is_empty() {
            found.push(untyped(&schema, depth));
        }
    }
    found.truncate(KINDS);
    let mut seen = Vec::new();
    found.retain(|kind| {
        !seen.contains(kind) && {
            seen.push(kind.clone());
            true
        }
    });
    found
}

fn branches<'a>(schema: &Node<'a>) -> Option<Vec<Node<'a>>> {
    ["anyOf", "oneOf", "allOf"].iter().map(|key| schema.list(key)).find(|branches| !branches.is_empty())
}

fn choices(schema: &Node<'_>) -> String {
    let values = schema.list("enum");
    let mut shown: Vec<String> = values.iter().take(CHOICES).map(short).collect();
    if values.len() > CHOICES {
        shown.push("…".to_owned());
    }
    shown.join("|")
}

fn short(value: &Node<'_>) -> String {
    let raw = value.raw();
    if raw.chars().nth(LONGEST_CHOICE).is_some() { "\"…\"".to_owned() } else { raw.to_owned() }
}

fn typed(name: &str, schema: &Node<'_>, depth: u32) -> String {
    match name {
        "integer" => "int".to_owned(),
        "boolean" => "bool".to_owned(),
        "array" => array(schema, depth),
        "object" => object(schema, depth),
        known @ ("string" | "number" | "null") => known.to_owned(),
        _ => "any".to_owned(),
    }
}

fn untyped(schema: &Node<'_>, depth: u32) -> String {
    if schema.get("properties").is_some() {
        object(schema, depth)
    } else if schema.get("items").is_some() {
        array(schema, depth)
    } else {
        "any".to_owned()
    }
}

fn array(schema: &Node<'_>, depth: u32) -> String {
    let Some(items) = schema.get("items").filter(|items| items.raw().starts_with('{')) else {
        return "array".to_owned();
    };
    let item = if depth == 0 { "object".to_owned() } else { told(&items, true, depth - 1) };
    if item.contains('|') { format!("({item})[]") } else { format!("{item}[]") }
}

fn object(schema: &Node<'_>, depth: u32) -> String {
    let members = schema.members("properties");
    if depth == 0 || members.is_empty() {
        return "object".to_owned();
    }
    let needed = schema.texts("required");
    let mut shown: Vec<String> = Vec::new();
    for (name, own) in members.iter().take(MEMBERS) {
        let needed = needed.contains(name);
        let mark = if needed { "" } else { "?" };
        // Inside an object most values are text, so that is not shown; further inside, names are enough.
        let kind = if depth < DEPTH { String::new() } else { told(own, needed, depth - 1) };
        let kind = if kind.is_empty() || kind == "string" { String::new() } else { format!(": {kind}") };
        shown.push(format!("{}{mark}{kind}", word(name)));
    }
    if members.len() > MEMBERS {
        shown.push("…".to_owned());
    }
    format!("{{{}}}", shown.join(", "))
}

fn join(kinds: &[String]) -> String {
    match kinds {
        [] => "any".to_owned(),
        few if few.len() <= BRANCHES => few.join("|"),
        many => format!("{}|…", many[..BRANCHES].join("|")),
    }
}
