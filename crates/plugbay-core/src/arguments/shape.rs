//! The forms in which models write arguments as a whole: wrapped, bare, or empty.

use serde_json::Value;

use super::{
    literal,
    raw::{self, Entry, Kind},
    schema::{self, Schema},
    spelling::Level,
};
use crate::{name::folded, size_limit, text::escaped_json};

/// Names that models put around arguments.
pub(super) const WRAPPERS: [&str; 8] =
    ["arguments", "args", "params", "parameters", "input", "tool_input", "toolInput", "kwargs"];
/// Keys that may stand beside such a name; they are not sent, but reported.
const BESIDE: [&str; 6] = ["name", "tool", "tool_name", "toolName", "server", "type"];
/// The only parameter that is required.
pub(super) fn only_needed(root: &Value) -> Option<(&str, &Value)> {
    let mut needed = schema::required(root);
    let key = needed.next().filter(|_| needed.next().is_none())?;
    Some((key, schema::property(root, key)?))
}

pub(super) fn below(key: &str, json: &[u8]) -> Vec<u8> {
    raw::object([&Entry { key: key.to_owned(), quoted: raw::quote(key).into(), value: json.into() }])
}

/// Whether a text begins like the arguments of this tool, in whatever notation.
pub(super) fn begins(root: &Value, text: &str) -> bool {
    literal::begins(text, |word| {
        let own = if word.len() <= size_limit::NAME { folded(word) } else { return false };
        schema::properties(root).any(|(key, _)| folded(key) == own)
    })
}

/// The arguments below one of the names that models put around them, and the keys that stand beside it.
pub(super) fn wrapped(root: &Value, json: &[u8]) -> Option<(Vec<u8>, Vec<String>)> {
    let entries = raw::entries(json);
    let is_own = |entry: &Entry<'_>| schema::property(root, &entry.key).is_some();
    let mut around = entries.iter().filter(|entry| WRAPPERS.contains(&entry.key.as_str()) && !is_own(entry));
    let wrapper = around.next().filter(|_| around.next().is_none())?;
    let alone = entries
        .iter()
        .all(|entry| entry.key == wrapper.key || BESIDE.contains(&entry.key.as_str()) && !is_own(entry));
    let holds_object = match Kind::of(&wrapper.value) {
        Kind::Object => true,
        Kind::String => raw::text(&wrapper.value).is_some_and(|text| literal::inside(&text).is_some()),
        _ => false,
    };
    let beside = entries.iter().map(|entry| &entry.key).filter(|key| **key != wrapper.key);
    (alone && holds_object).then(|| (wrapper.value.to_vec(), beside.cloned().collect()))
}

/// Whether the parameters of a tool stand below a name that is none of its own. A tool that does not forbid
/// other keys would accept that, and not see the parameters.
pub(super) fn is_hidden(schema: &Schema, json: &[u8]) -> bool {
    let level = Level::of(schema, &[schema.root()]);
    if Kind::of(json) != Kind::Object || level.open {
        return false;
    }
    let Some((inner, _)) = wrapped(&schema.whole(schema.root()), json) else { return false };
    let inner = raw::text(&inner)
        .and_then(|text| literal::inside(&text).map(|(inner, _)| inner.into_owned()))
        .unwrap_or(inner);
    let entries = raw::entries(&inner);
    let named = |entry: &Entry<'_>| level.names_alike(&entry.key);
    !entries.is_empty() && entries.iter().all(named)
}

/// Whether a value is nothing: `null`, `""`, `[]`.
pub(super) fn is_nothing(json: &[u8]) -> bool {
    match Kind::of(json) {
        Kind::Null => true,
        Kind::String => raw::text(json).is_some_and(|text| text.trim().is_empty()),
        Kind::Array => raw::list(json).is_empty(),
        _ => false,
    }
}

fn is_broken(text: &str) -> bool {
    literal::begins(text, |_| false) && literal::inside(text).is_none()
}

/// A value as messages show it: its kind, and the value itself if it is short.
pub(super) fn shown(json: &[u8]) -> String {
    const SHORT: usize = 40;
    let kind = Kind::of(json);
    match std::str::from_utf8(json) {
        Ok("null") => "null".to_owned(),
        Ok(_) if raw::text(json).is_some_and(|text| is_broken(&text)) => {
            "a string that begins like JSON and cannot be read as such".to_owned()
        }
        // A line break can only stand between its parts.
        Ok(text) if text.len() <= SHORT => {
            let line = text.replace(['\n', '\r'], " ");
            format!("{} {}", kind.name(), escaped_json(&line))
        }
        _ => kind.name().to_owned(),
    }
}
