//! Edits of JSON with comments.

use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use serde_json::Value;

use super::{
    EditError, Own,
    braced::{Braced, Comments, First, Layout},
    splice,
};

/// Adds plugbay's entry, or replaces its value in place.
pub(super) fn insert(text: &str, own: &Own<'_>) -> Result<String, EditError> {
    let file = File::parse(text)?;
    let layout = file.layout();
    let entry = |indent: Option<&str>| object(&own.members, indent, layout);
    let Some(root) = file.root()? else { return Ok(file.create(own)) };
    let Some(container) = child(root, own.container)? else {
        let write = |indent: Option<&str>| created(own, indent, layout);
        return Ok(splice::apply(text, braced(root).append(text, layout, First::Behind, &write)));
    };
    let container = as_object(container, own.container)?;
    if let Some(member) = find(container, own.name)? {
        let value = range(&member.value);
        let indent = splice::indentation(text, member.range.start);
        return Ok(splice::apply(text, vec![(value, entry(Some(indent)))]));
    }
    let write = |indent: Option<&str>| format!("{}: {}", quoted(own.name), entry(indent));
    Ok(splice::apply(text, braced(container).append(text, layout, First::OnLines, &write)))
}

/// Removes the member at these keys; `None` if there is none.
pub(super) fn remove(text: &str, key: &[String]) -> Result<Option<String>, EditError> {
    let file = File::parse(text)?;
    let (Some(root), Some((name, parents))) = (file.root()?, key.split_last()) else { return Ok(None) };
    let Some(parent) = descend(root, parents)? else { return Ok(None) };
    let Some(index) = position(parent, name)? else { return Ok(None) };
    Ok(Some(splice::apply(text, braced(parent).remove(text, index, Comments::Slashes))))
}

/// Removes plugbay's entry, and the container and the object around it if [`insert`] created them.
///
/// The style of [`insert`] shows this: in a container that it created the entry is on one line, in another
/// empty container it is not. A container that it put into an empty root stands directly after the brace.
pub(super) fn remove_own(text: &str, container: &str, name: &str) -> Result<String, EditError> {
    let file = File::parse(text)?;
    let Some(root) = file.root()? else { return Ok(text.to_owned()) };
    let Some(servers) = child(root, container)? else { return Ok(text.to_owned()) };
    let object = as_object(servers, container)?;
    let Some(index) = position(object, name)? else { return Ok(text.to_owned()) };
    let around = braced(object);
    let Some(only) = around.only(text) else {
        return Ok(splice::apply(text, around.remove(text, index, Comments::Slashes)));
    };
    if text[range(&object.properties[index].value)].contains('\n') {
        return Ok(splice::apply(text, vec![(around.inside.clone(), only.blanks().to_owned())]));
    }
    let whole = braced(root);
    match whole.only(text) {
        None => {
            let index = position(root, container)?.unwrap_or_default();
            Ok(splice::apply(text, whole.remove(text, index, Comments::Slashes)))
        }
        Some(only) if only.before.is_empty() => {
            Ok(splice::apply(text, vec![(whole.inside.clone(), only.after.to_owned())]))
        }
        Some(_) => Ok(without_root(text, root)),
    }
}

/// Restores the member at these keys from `original`.
pub(super) fn put_back(text: &str, original: &str, key: &[String]) -> Result<String, EditError> {
    let source = File::parse(original)?;
    let (Some(root), Some((name, parents))) = (source.root()?, key.split_last()) else {
        return Ok(text.to_owned());
    };
    let Some(member) = descend(root, parents)?.map(|parent| find(parent, name)).transpose()?.flatten() else {
        return Ok(text.to_owned());
    };
    let raw = &original[range(&member.value)];
    let file = File::parse(text)?;
    let Some(mut object) = file.root()? else { return Ok(format!("{text}{}", nested(key, raw))) };
    let mut missing = key;
    while let [key, rest @ ..] = missing {
        match (find(object, key)?, rest) {
            (Some(member), []) => {
                return Ok(splice::apply(text, vec![(range(&member.value), raw.to_owned())]));
            }
            (Some(member), _) => object = as_object(&member.value, key)?,
            (None, _) => break,
        }
        missing = rest;
    }
    let write = |_: Option<&str>| member_text(missing, raw);
    Ok(splice::apply(text, braced(object).append(text, file.layout(), First::OnLines, &write)))
}

pub(crate) struct File<'a> {
    text: &'a str,
    root: Option<ast::Value<'a>>,
    unit: String,
}

impl<'a> File<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, EditError> {
        let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default())
            .map_err(|error| EditError::Syntax { format: "JSON", message: error.to_string() })?;
        let first = parsed.value.as_ref().and_then(|root| root.as_object()?.properties.first());
        let first = first.map(|member| member.range.start).filter(|at| splice::is_first_on_line(text, *at));
        let unit = first.map(|at| splice::indentation(text, at)).filter(|unit| !unit.is_empty());
        let unit = unit.unwrap_or("  ").to_owned();
        Ok(Self { text, root: parsed.value, unit })
    }

    /// The root; `None` for a text without any value.
    pub(crate) fn root(&self) -> Result<Option<&ast::Object<'a>>, EditError> {
        self.root.as_ref().map(|root| as_object(root, "the file")).transpose()
    }

    pub(crate) fn layout(&self) -> Layout<'_> {
        Layout { newline: splice::newline(self.text), unit: &self.unit, comments: Comments::Slashes }
    }

    /// The text with a new root after its comments, if it has any.
    fn create(&self, own: &Own<'_>) -> String {
        let layout = self.layout();
        let Layout { newline, unit, .. } = layout;
        let root = format!("{{{newline}{unit}{}{newline}}}", created(own, Some(unit), layout));
        if self.text.is_empty() || self.text.ends_with('\n') {
            format!("{}{root}{newline}", self.text)
        } else {
            format!("{}{newline}{root}", self.text)
        }
    }
}

/// The text as it was before [`File::create`].
fn without_root(text: &str, root: &ast::Object<'_>) -> String {
    let (before, after) = (&text[..root.range.start], &text[root.range.end..]);
    match after {
        "" => before
            .strip_suffix('\n')
            .map_or(before, |line| line.strip_suffix('\r').unwrap_or(line))
            .to_owned(),
        "\n" | "\r\n" => before.to_owned(),
        _ => format!("{before}{after}"),
    }
}

/// A new container with plugbay's entry.
fn created(own: &Own<'_>, indent: Option<&str>, layout: Layout<'_>) -> String {
    let entry = object(&own.members, None, layout);
    let (container, name) = (quoted(own.container), quoted(own.name));
    match indent {
        None => format!("{container}: {{ {name}: {entry} }}"),
        Some(indent) => {
            let Layout { newline, unit, .. } = layout;
            format!("{container}: {{{newline}{indent}{unit}{name}: {entry}{newline}{indent}}}")
        }
    }
}

/// An object with each member on its own line, or all on one line.
fn object(members: &[(String, Value)], indent: Option<&str>, layout: Layout<'_>) -> String {
    let members: Vec<String> =
        members.iter().map(|(key, value)| format!("{}: {}", quoted(key), in_line(value))).collect();
    match indent {
        None => format!("{{ {} }}", members.join(", ")),
        Some(indent) => {
            let Layout { newline, unit, .. } = layout;
            let start = format!("{newline}{indent}{unit}");
            format!("{{{start}{}{newline}{indent}}}", members.join(&format!(",{start}")))
        }
    }
}

/// A value on one line, with the usual blanks.
pub(super) fn in_line(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(in_line).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().map(|(key, value)| format!("{}: {}", quoted(key), in_line(value))).collect();
            if members.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", members.join(", ")) }
        }
        scalar => scalar.to_string(),
    }
}

pub(crate) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A member whose value is the raw text, inside new objects for the keys above it.
fn member_text(key: &[String], raw: &str) -> String {
    match key {
        [] => raw.to_owned(),
        [name] => format!("{}: {raw}", quoted(name)),
        [name, rest @ ..] => format!("{}: {}", quoted(name), nested(rest, raw)),
    }
}

fn nested(key: &[String], raw: &str) -> String {
    format!("{{ {} }}", member_text(key, raw))
}

pub(crate) fn braced(object: &ast::Object<'_>) -> Braced {
    let members = object.properties.iter().map(|member| member.range.start..member.range.end);
    Braced { inside: object.range.start + 1..object.range.end - 1, members: members.collect() }
}

pub(crate) fn range(value: &ast::Value<'_>) -> std::ops::Range<usize> {
    let range = jsonc_parser::common::Ranged::range(value);
    range.start..range.end
}

fn descend<'o, 'a>(
    root: &'o ast::Object<'a>,
    keys: &[String],
) -> Result<Option<&'o ast::Object<'a>>, EditError> {
    let mut object = root;
    for key in keys {
        match child(object, key)? {
            Some(value) => object = as_object(value, key)?,
            None => return Ok(None),
        }
    }
    Ok(Some(object))
}

fn child<'o, 'a>(object: &'o ast::Object<'a>, key: &str) -> Result<Option<&'o ast::Value<'a>>, EditError> {
    Ok(find(object, key)?.map(|member| &member.value))
}

fn find<'o, 'a>(
    object: &'o ast::Object<'a>,
    key: &str,
) -> Result<Option<&'o ast::ObjectProp<'a>>, EditError> {
    Ok(position(object, key)?.map(|index| &object.properties[index]))
}

fn position(object: &ast::Object<'_>, key: &str) -> Result<Option<usize>, EditError> {
    let mut same = object.properties.iter().enumerate().filter(|(_, member)| member.name.as_str() == key);
    let first = same.next().map(|(index, _)| index);
    if same.next().is_some() { Err(EditError::Duplicate(key.to_owned())) } else { Ok(first) }
}

fn as_object<'o, 'a>(value: &'o ast::Value<'a>, key: &str) -> Result<&'o ast::Object<'a>, EditError> {
    value.as_object().ok_or_else(|| EditError::Shape(key.to_owned()))
}
