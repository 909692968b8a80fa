//! Edits of YAML. Lines are removed and added as text; the parser only says where they are.

use std::ops::Range;

use serde_json::Value;

use super::{
    EditError, Own,
    braced::{Braced, Comments, First, Layout},
    json, splice,
    yaml_nodes::{Mapping, Node, root},
};
use crate::{
    known::{Format, Members},
    read::tree::Tree,
};

/// The indentation in a new container.
const CREATED: usize = 2;
/// The indentation of the first entry below a key that had no value. It differs so that the two can be
/// distinguished.
const FILLED: usize = 4;

/// Adds plugbay's entry after the others.
pub(super) fn insert(text: &str, own: &Own<'_>) -> Result<String, EditError> {
    let key = [own.container.to_owned(), own.name.to_owned()];
    let text = remove(text, &key)?.unwrap_or_else(|| text.to_owned());
    add(&text, own.container, own.name, &Content::Members(&own.members))
}

/// Removes the entry at these keys; `None` if there is none.
pub(super) fn remove(text: &str, key: &[String]) -> Result<Option<String>, EditError> {
    let [container, name] = key else { return Ok(None) };
    let Some(root) = root(text)? else { return Ok(None) };
    let Some(Node::Mapping(servers)) = root.get(container) else { return Ok(None) };
    let Some(index) = servers.position(name) else { return Ok(None) };
    let splices = if servers.is_flow {
        braced(text, servers).remove(text, index, Comments::Hash)
    } else {
        vec![(lines(text, servers, index)?, String::new())]
    };
    Ok(Some(splice::apply(text, splices)))
}

/// Removes plugbay's entry, and the container if [`insert`] created it.
pub(super) fn remove_own(text: &str, container: &str, name: &str) -> Result<String, EditError> {
    let key = [container.to_owned(), name.to_owned()];
    let Some(whole) = root(text)? else { return Ok(text.to_owned()) };
    let Some(Node::Mapping(servers)) = whole.get(container) else { return Ok(text.to_owned()) };
    if servers.is_flow {
        return Ok(remove_own_flow(text, &whole, servers, &key));
    }
    let (Some(index), Some(place)) = (whole.position(container), servers.position(name)) else {
        return Ok(text.to_owned());
    };
    let entry = lines(text, servers, place)?;
    let above = whole.entries[index].key.clone();
    let column = |at: usize| at - splice::line_start(text, at);
    let is_only = servers.entries.len() == 1 && !whole.is_flow;
    let indent = column(servers.entries[place].key.start).saturating_sub(column(above.start));
    let header = &text[above.end..entry.start.max(above.end)];
    if is_only && indent == CREATED && header.trim() == ":" {
        let start = splice::line_start(text, above.start);
        return Ok(splice::apply(text, vec![(to_line_break(text, start..entry.end), String::new())]));
    }
    Ok(splice::apply(text, vec![(entry, String::new())]))
}

/// Restores the entry at these keys from `original`.
pub(super) fn put_back(text: &str, original: &str, key: &[String]) -> Result<String, EditError> {
    let [container, name] = key else { return Ok(text.to_owned()) };
    let text = remove(text, key)?.unwrap_or_else(|| text.to_owned());
    let tree = Tree::parse(Format::Yaml, original)?;
    let Some(value) = tree.get(container).and_then(|servers| servers.get(name)) else { return Ok(text) };
    let members: Members = match value {
        Tree::Object(members) => members.iter().map(|(key, value)| (key.clone(), value.to_value())).collect(),
        _ => return Err(EditError::Unsafe(format!("`{name}` is not a table"))),
    };
    let source = root(original)?;
    if let Some(Node::Mapping(servers)) = source.as_ref().and_then(|root| root.get(container))
        && let (false, Some(index)) = (servers.is_flow, servers.position(name))
    {
        let lines = lines_of(original, servers, index)?;
        let indent = splice::indentation(original, servers.entries[index].key.start);
        let raw = Content::Lines { lines: &original[lines], indent, members: &members };
        return add(&text, container, name, &raw);
    }
    add(&text, container, name, &Content::Members(&members))
}

/// An entry to add.
enum Content<'a> {
    Members(&'a Members),
    /// The original lines, with the key and its indentation.
    Lines {
        lines: &'a str,
        indent: &'a str,
        members: &'a Members,
    },
}

impl Content<'_> {
    fn members(&self) -> &Members {
        match self {
            Self::Members(members) | Self::Lines { members, .. } => members,
        }
    }

    /// The entry as lines, without the last line break.
    fn block(&self, name: &str, indent: &str, newline: &str) -> String {
        let lines: Vec<String> = match self {
            Self::Members(members) => {
                let head = format!("{indent}{}:", scalar(name));
                let members = members
                    .iter()
                    .map(|(key, value)| format!("{indent}  {}: {}", scalar(key), in_line(value)));
                [head].into_iter().chain(members).collect()
            }
            Self::Lines { lines, indent: old, .. } => {
                let moved = |line: &str| line.strip_prefix(old).map(|rest| format!("{indent}{rest}"));
                lines.trim_end().lines().map(|line| moved(line).unwrap_or_else(|| line.to_owned())).collect()
            }
        };
        lines.join(newline)
    }

    /// The entry between braces.
    fn flow(&self, name: &str) -> String {
        let members: Vec<_> = self
            .members()
            .iter()
            .map(|(key, value)| format!("{}: {}", json::quoted(key), json::in_line(value)))
            .collect();
        format!("{}: {{ {} }}", json::quoted(name), members.join(", "))
    }
}

fn add(text: &str, container: &str, name: &str, content: &Content<'_>) -> Result<String, EditError> {
    let newline = splice::newline(text);
    let created = |indent: &str| {
        let inner = format!("{indent}{}", " ".repeat(CREATED));
        format!("{indent}{}:{newline}{}", scalar(container), content.block(name, &inner, newline))
    };
    let layout = Layout { newline, unit: "  ", comments: Comments::Hash };
    let Some(root) = root(text)? else { return Ok(at(text, text.len(), &created(""))) };
    match root.get(container) {
        None if root.is_flow => {
            let write =
                |_: Option<&str>| format!("{}: {{ {} }}", json::quoted(container), content.flow(name));
            Ok(splice::apply(text, braced(text, &root).append(text, layout, First::InLine, &write)))
        }
        None => {
            let last = lines_of(text, &root, root.entries.len() - 1)?;
            let indent = splice::indentation(text, root.entries[0].key.start);
            Ok(at(text, last.end, &created(indent)))
        }
        Some(Node::Empty) if !root.is_flow => {
            let index = root.position(container).unwrap_or_default();
            let indent = splice::indentation(text, root.entries[index].key.start);
            let inner = format!("{indent}{}", " ".repeat(FILLED));
            let head = lines_of(text, &root, index)?;
            Ok(at(text, head.end, &content.block(name, &inner, newline)))
        }
        Some(Node::Mapping(servers)) if servers.is_flow => {
            let write = |_: Option<&str>| content.flow(name);
            Ok(splice::apply(text, braced(text, servers).append(text, layout, First::InLine, &write)))
        }
        Some(Node::Mapping(servers)) => {
            let last = lines_of(text, servers, servers.entries.len() - 1)?;
            let indent = splice::indentation(text, servers.entries[0].key.start);
            Ok(at(text, last.end, &content.block(name, indent, newline)))
        }
        Some(_) => Err(EditError::Shape(container.to_owned())),
    }
}

/// Adds lines at the start of a line. If they come at the end of a text without a last line break, they have
/// none either.
fn at(text: &str, place: usize, lines: &str) -> String {
    let newline = splice::newline(text);
    let above = &text[..place];
    let new = if above.is_empty() || above.ends_with('\n') {
        format!("{lines}{newline}")
    } else {
        format!("{newline}{lines}")
    };
    splice::apply(text, vec![(place..place, new)])
}

fn remove_own_flow(text: &str, root: &Mapping, servers: &Mapping, key: &[String; 2]) -> String {
    let [container, name] = key;
    let Some(index) = servers.position(name) else { return text.to_owned() };
    let around = braced(text, servers);
    let splices = match around.only(text) {
        None => around.remove(text, index, Comments::Hash),
        // A blank after the brace: the container is ours, inside another pair of braces.
        Some(only) if root.is_flow && only.before == " " && only.after == " " => {
            let whole = braced(text, root);
            match whole.only(text) {
                Some(only) => vec![(whole.inside.clone(), only.after.to_owned())],
                None => whole.remove(text, root.position(container).unwrap_or_default(), Comments::Hash),
            }
        }
        Some(only) => vec![(around.inside.clone(), only.after.to_owned())],
    };
    splice::apply(text, splices)
}

/// The lines of an entry to remove.
fn lines(text: &str, mapping: &Mapping, index: usize) -> Result<Range<usize>, EditError> {
    Ok(to_line_break(text, lines_of(text, mapping, index)?))
}

/// Extends lines at the end of a text without a last line break by the line break before them.
fn to_line_break(text: &str, lines: Range<usize>) -> Range<usize> {
    if lines.end < text.len() || text.ends_with('\n') {
        return lines;
    }
    let above = &text[..lines.start];
    let above = above.strip_suffix('\n').map_or(above, |line| line.strip_suffix('\r').unwrap_or(line));
    above.len()..lines.end
}

/// The lines of an entry, from its key to the end of its value.
fn lines_of(text: &str, mapping: &Mapping, index: usize) -> Result<Range<usize>, EditError> {
    let entry = &mapping.entries[index];
    if !splice::is_first_on_line(text, entry.key.start) {
        return Err(EditError::Unsafe(format!("`{}` does not begin its line", entry.name)));
    }
    let start = splice::line_start(text, entry.key.start);
    let end = entry.value.end(text).unwrap_or(entry.key.end).max(entry.key.end);
    let is_line_start = end > start && text[..end].ends_with('\n');
    Ok(start..if is_line_start { end } else { splice::line_end(text, end) })
}

fn braced(text: &str, mapping: &Mapping) -> Braced {
    let members = mapping.entries.iter().map(|entry| {
        let end = entry.value.end(text).unwrap_or(entry.key.end).max(entry.key.end);
        entry.key.start..end
    });
    Braced { inside: mapping.range.start + 1..mapping.range.end - 1, members: members.collect() }
}

/// A string without quotes if that is safe, otherwise in quotes.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let is_word = matches!(
        text.to_ascii_lowercase().as_str(),
        "true" | "false" | "yes" | "no" | "on" | "off" | "null" | "y" | "n"
    );
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_');
    if starts && !is_word && text.chars().all(is_plain) { text.to_owned() } else { json::quoted(text) }
}

fn in_line(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => format!("[{}]", items.iter().map(in_line).collect::<Vec<_>>().join(", ")),
        other => json::in_line(other),
    }
}
