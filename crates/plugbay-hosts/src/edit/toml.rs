//! Edits of TOML. Tables are removed and added as text: rewriting a parsed document would change its line
//! breaks.

use std::ops::Range;

use serde_json::Value;
use toml_edit::{Document, InlineTable, Item, Key, Table};

use super::{
    EditError, Own,
    braced::{Braced, Comments, First, Layout},
    splice,
};
use crate::read::tree::toml_reason;
use crate::{
    known::{Format, Members},
    read::tree::Tree,
};

type File<'a> = Document<&'a str>;

/// Adds plugbay's entry as a table at the end of the file.
pub(super) fn insert(text: &str, own: &Own<'_>) -> Result<String, EditError> {
    let key = [own.container.to_owned(), own.name.to_owned()];
    let text = remove(text, &key)?.unwrap_or_else(|| text.to_owned());
    add(&text, own.container, own.name, &own.members)
}

/// Removes the entry at these keys; `None` if there is none.
pub(super) fn remove(text: &str, key: &[String]) -> Result<Option<String>, EditError> {
    let [container, name] = key else { return Ok(None) };
    let file = parse(text)?;
    match container_of(&file, container)? {
        Container::None => Ok(None),
        Container::Inline(table) => {
            let Some(index) = table.iter().position(|(key, _)| key == name) else { return Ok(None) };
            Ok(Some(splice::apply(text, braced(table)?.remove(text, index, Comments::Hash))))
        }
        Container::Table(table) => {
            let Some(parts) = parts_of(text, table, name) else { return Ok(None) };
            let splices = parts.into_iter().map(|part| (with_blank_lines(text, part), String::new()));
            Ok(Some(splice::apply(text, splices.collect())))
        }
    }
}

/// Removes plugbay's entry, with the empty line that [`insert`] put before it.
pub(super) fn remove_own(text: &str, container: &str, name: &str) -> Result<String, EditError> {
    let key = [container.to_owned(), name.to_owned()];
    let file = parse(text)?;
    let parts = match container_of(&file, container)? {
        Container::Table(table) => parts_of(text, table, name),
        Container::Inline(table) => return remove_inline(text, table, name),
        Container::None => None,
    };
    match parts.as_deref() {
        // The whole table is in one place, as `insert` wrote it.
        Some([part]) if text[part.clone()].trim_start().starts_with('[') => {
            let at_end = part.end == text.len();
            let breaks = if at_end && !text.ends_with('\n') { 2 } else { 1 };
            let start = (0..breaks).fold(part.start, |start, _| before_break(text, start));
            // In the middle of a file only an empty line may be removed: the line break before it belongs to
            // the table above.
            let is_ours = at_end || text[..start].is_empty() || text[..start].ends_with('\n');
            let start = if is_ours { start } else { part.start };
            Ok(splice::apply(text, vec![(start..part.end, String::new())]))
        }
        _ => Ok(remove(text, &key)?.unwrap_or_else(|| text.to_owned())),
    }
}

/// Restores the entry at these keys from `original`.
pub(super) fn put_back(text: &str, original: &str, key: &[String]) -> Result<String, EditError> {
    let [container, name] = key else { return Ok(text.to_owned()) };
    let text = remove(text, key)?.unwrap_or_else(|| text.to_owned());
    let source = parse(original)?;
    let is_inline = matches!(container_of(&parse(&text)?, container)?, Container::Inline(_));
    if let Container::Table(table) = container_of(&source, container)?
        && table.get(name).is_some_and(|item| item.as_table().is_some_and(|table| !table.is_dotted()))
        && let Some(parts) = parts_of(original, table, name)
        && !is_inline
    {
        let raw: String = parts.into_iter().map(|part| &original[part]).collect();
        return Ok(at_end(&text, &raw));
    }
    let tree = Tree::parse(Format::Toml, original)?;
    let members = tree.get(container).and_then(|servers| servers.get(name)).and_then(Tree::members);
    let members: Members =
        members.unwrap_or_default().iter().map(|(key, value)| (key.clone(), value.to_value())).collect();
    add(&text, container, name, &members)
}

fn remove_inline(text: &str, table: &InlineTable, name: &str) -> Result<String, EditError> {
    let Some(index) = table.iter().position(|(key, _)| key == name) else { return Ok(text.to_owned()) };
    let around = braced(table)?;
    let splices = match around.only(text) {
        Some(only) => vec![(around.inside.clone(), only.after.to_owned())],
        None => around.remove(text, index, Comments::Hash),
    };
    Ok(splice::apply(text, splices))
}

fn add(text: &str, container: &str, name: &str, members: &Members) -> Result<String, EditError> {
    let file = parse(text)?;
    if let Container::Inline(table) = container_of(&file, container)? {
        let layout = Layout { newline: splice::newline(text), unit: "  ", comments: Comments::Hash };
        let write = |_: Option<&str>| format!("{} = {}", key_text(name), table_in_line(members));
        return Ok(splice::apply(text, braced(table)?.append(text, layout, First::InLine, &write)));
    }
    let newline = splice::newline(text);
    let head = format!("[{}.{}]{newline}", key_text(container), key_text(name));
    let members = members.iter().filter(|(_, value)| !value.is_null());
    let lines = members.map(|(key, value)| format!("{} = {}{newline}", key_text(key), in_line(value)));
    let body: String = [head].into_iter().chain(lines).collect();
    Ok(at_end(text, &body))
}

/// The text with tables at its end, after an empty line. The result ends with a line break if the text does
/// or is empty, and else with none: [`remove_own`] relies on this.
fn at_end(text: &str, body: &str) -> String {
    let newline = splice::newline(text);
    let body = body.strip_suffix('\n').map_or(body, |body| body.strip_suffix('\r').unwrap_or(body));
    match text {
        "" => format!("{body}{newline}"),
        text if text.ends_with('\n') => format!("{text}{newline}{body}{newline}"),
        text => format!("{text}{newline}{newline}{body}"),
    }
}

enum Container<'t> {
    None,
    Table(&'t Table),
    Inline(&'t InlineTable),
}

fn container_of<'f>(file: &'f File<'_>, key: &str) -> Result<Container<'f>, EditError> {
    match file.as_table().get(key) {
        None => Ok(Container::None),
        Some(Item::Table(table)) => Ok(Container::Table(table)),
        Some(Item::Value(toml_edit::Value::InlineTable(table))) => Ok(Container::Inline(table)),
        Some(_) => Err(EditError::Shape(key.to_owned())),
    }
}

fn parse(text: &str) -> Result<File<'_>, EditError> {
    let parsed = Document::parse(text);
    parsed.map_err(|error| EditError::Syntax { format: "TOML", message: toml_reason(text, &error) })
}

/// The lines of an entry of this table, as ranges in the order of the file; `None` if there is no such entry.
fn parts_of(text: &str, table: &Table, name: &str) -> Option<Vec<Range<usize>>> {
    let mut parts = Vec::new();
    collect(text, table, name, table.get(name)?, &mut parts);
    parts.sort_by_key(|part| part.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for part in parts {
        match merged.last_mut() {
            // Only blanks and the entry's own comments may be between its tables.
            Some(last) if text[last.end.min(part.start)..part.start].trim().is_empty() => {
                last.end = last.end.max(part.end);
            }
            _ => merged.push(part),
        }
    }
    Some(merged)
}

fn collect(text: &str, parent: &Table, name: &str, item: &Item, parts: &mut Vec<Range<usize>>) {
    match item {
        Item::Table(table) if table.is_dotted() => {
            table.iter().for_each(|(key, item)| collect(text, table, key, item, parts));
        }
        Item::Table(table) => collect_table(text, table, parts),
        Item::ArrayOfTables(tables) => tables.iter().for_each(|table| collect_table(text, table, parts)),
        item => {
            let key = parent.key(name).and_then(Key::span);
            if let (Some(key), Some(value)) = (key, item.span()) {
                parts.push(splice::line_start(text, key.start)..splice::line_end(text, value.end));
            }
        }
    }
}

/// Collects the range of a table, from its header to its last value; the tables below it follow separately.
fn collect_table(text: &str, table: &Table, parts: &mut Vec<Range<usize>>) {
    if let Some(header) = table.span() {
        let end = last_value(table).unwrap_or(header.end).max(header.end);
        parts.push(splice::line_start(text, header.start)..splice::line_end(text, end));
    }
    let below = table.iter().filter(|(_, item)| match item {
        Item::Table(table) => !table.is_dotted(),
        Item::ArrayOfTables(_) => true,
        _ => false,
    });
    below.for_each(|(key, item)| collect(text, table, key, item, parts));
}

/// The end of the last value among a table's own lines.
fn last_value(table: &Table) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(table) if table.is_dotted() => last_value(table),
        _ => None,
    });
    ends.max()
}

/// The lines with the empty lines after them, if an empty line also precedes them.
fn with_blank_lines(text: &str, part: Range<usize>) -> Range<usize> {
    let above = &text[..part.start];
    let is_apart = above.is_empty() || above.ends_with("\n\n") || above.ends_with("\n\r\n");
    let mut end = part.end;
    while is_apart && end < text.len() {
        let next = splice::line_end(text, end);
        if !text[end..next].trim().is_empty() {
            break;
        }
        end = next;
    }
    part.start..end
}

/// The place before the line break that ends here.
fn before_break(text: &str, at: usize) -> usize {
    let above = &text[..at];
    above.strip_suffix('\n').map_or(at, |line| line.strip_suffix('\r').unwrap_or(line).len())
}

fn braced(table: &InlineTable) -> Result<Braced, EditError> {
    let unclear = || EditError::Unsafe("an inline table has no place".to_owned());
    let span = table.span().ok_or_else(unclear)?;
    let mut members = Vec::new();
    for (name, value) in table {
        let key = table.key(name).and_then(Key::span).ok_or_else(unclear)?;
        let value = value.span().filter(|value| value.start > key.end).ok_or_else(unclear)?;
        members.push(key.start..value.end);
    }
    Ok(Braced { inside: span.start + 1..span.end - 1, members })
}

fn key_text(key: &str) -> String {
    Key::new(key).to_string()
}

fn in_line(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(in_line).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members: Members = members.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            table_in_line(&members)
        }
        Value::String(text) => toml_edit::Value::from(text.as_str()).to_string(),
        scalar => scalar.to_string(),
    }
}

fn table_in_line(members: &Members) -> String {
    let members = members.iter().filter(|(_, value)| !value.is_null());
    let members: Vec<_> =
        members.map(|(key, value)| format!("{} = {}", key_text(key), in_line(value))).collect();
    if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) }
}
