//! The kind of value that a parameter takes, in as few characters as possible.

use std::borrow::Cow;

use super::node::{Node, Schema};
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
/// How many branches, or types, of one schema are compared, in its order.
const KINDS: usize = 32;
/// A longer name of a type is that of no type, even if each of its letters is escaped.
const LONGEST_TYPE: usize = 64;
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
    let mut kinds = Kinds { found: Vec::new(), needed };
    kinds.read(schema, depth, LEVELS);
    let mut kind = join(&kinds.found);
    if kind.len() > LONGEST_KIND {
        kind.truncate(kind.floor_char_boundary(LONGEST_KIND));
        kind.push('…');
    }
    kind
}

/// The kinds that a value may have, each once.
struct Kinds {
    found: Vec<String>,
    needed: bool,
}

impl Kinds {
    /// Whether there are more of them than are shown.
    fn are_enough(&self) -> bool {
        self.found.len() > BRANCHES
    }

    fn add(&mut self, kind: String) {
        if (self.needed || kind != "null") && !self.found.contains(&kind) {
            self.found.push(kind);
        }
    }

    fn read(&mut self, schema: &Node<'_>, depth: u32, levels: u32) {
        if levels == 0 {
            return self.add("any".to_owned());
        }
        let schema = schema.schema();
        if let Some(only) = schema.get("const") {
            return self.add(only.raw(LONGEST_KIND + 1).to_owned());
        }
        if schema.get("enum").is_some() {
            return self.add(choices(&schema));
        }
        for branches in ["anyOf", "oneOf", "allOf"] {
            let mut has_any = false;
            for branch in schema.list(branches).take(KINDS) {
                has_any = true;
                self.read(&branch, depth, levels - 1);
                if self.are_enough() {
                    return;
                }
            }
            if has_any {
                return;
            }
        }
        let mut is_typed = false;
        for name in types(&schema).take(KINDS) {
            is_typed = true;
            self.add(typed(&name, &schema, depth));
            if self.are_enough() {
                return;
            }
        }
        if !is_typed {
            self.add(untyped(&schema, depth));
        }
    }
}

/// The names at `type`, each once. It is one name or a list of them.
fn types<'a>(schema: &Schema<'a>) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
    let one = schema.get("type").and_then(|name| name.text(LONGEST_TYPE));
    let list = schema.list("type").map(|name| name.text(LONGEST_TYPE).unwrap_or_default());
    let mut seen = Vec::new();
    one.into_iter().chain(list).filter(move |name| {
        let is_new = !seen.contains(name);
        if is_new {
            seen.push(name.clone());
        }
        is_new
    })
}

fn choices(schema: &Schema<'_>) -> String {
    let mut values = schema.list("enum");
    let mut shown: Vec<String> = values.by_ref().take(CHOICES).map(|value| short(&value)).collect();
    if values.next().is_some() {
        shown.push("…".to_owned());
    }
    shown.join("|")
}

fn short(value: &Node<'_>) -> String {
    let raw = value.raw(4 * (LONGEST_CHOICE + 1));
    if raw.chars().nth(LONGEST_CHOICE).is_some() { "\"…\"".to_owned() } else { raw.to_owned() }
}

fn typed(name: &str, schema: &Schema<'_>, depth: u32) -> String {
    match name {
        "integer" => "int".to_owned(),
        "boolean" => "bool".to_owned(),
        "array" => array(schema, depth),
        "object" => object(schema, depth),
        known @ ("string" | "number" | "null") => known.to_owned(),
        _ => "any".to_owned(),
    }
}

fn untyped(schema: &Schema<'_>, depth: u32) -> String {
    if schema.get("properties").is_some() {
        object(schema, depth)
    } else if schema.get("items").is_some() {
        array(schema, depth)
    } else {
        "any".to_owned()
    }
}

fn array(schema: &Schema<'_>, depth: u32) -> String {
    let Some(items) = schema.get("items").filter(Node::is_object) else {
        return "array".to_owned();
    };
    let item = if depth == 0 { "object".to_owned() } else { told(&items, true, depth - 1) };
    if item.contains('|') { format!("({item})[]") } else { format!("{item}[]") }
}

fn object(schema: &Schema<'_>, depth: u32) -> String {
    if depth == 0 {
        return "object".to_owned();
    }
    let mut members: Vec<_> = schema.members("properties").take(MEMBERS + 1).collect();
    let has_more = members.len() > MEMBERS;
    members.truncate(MEMBERS);
    if members.is_empty() {
        return "object".to_owned();
    }
    let mut needed = [false; MEMBERS];
    for name in schema.list("required").filter_map(|name| name.text(usize::MAX)) {
        for (needed, (member, _)) in needed.iter_mut().zip(&members) {
            *needed |= *member == name;
        }
    }
    let mut shown: Vec<String> = Vec::new();
    for ((name, own), needed) in members.iter().zip(needed) {
        let mark = if needed { "" } else { "?" };
        // Inside an object most values are text, so that is not shown; further inside, names are enough.
        let kind = if depth < DEPTH { String::new() } else { told(own, needed, depth - 1) };
        let kind = if kind.is_empty() || kind == "string" { String::new() } else { format!(": {kind}") };
        shown.push(format!("{}{mark}{kind}", word(name)));
    }
    if has_more {
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
