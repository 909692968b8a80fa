//! A parsed file of any format, with the members of its tables in the order of the file.

use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use serde_json::{Map, Value};
use toml_edit::{Document, Item, TableLike, TomlError, Value as TomlValue};

use super::{ReadError, yaml};
use crate::known::Format;

/// A value in a host's file. Members keep their order, and a repeated key occurs twice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Object(Vec<(String, Tree)>),
    Array(Vec<Tree>),
    Leaf(Value),
    /// A number, flag or time with its text in the file: a user who omits quotes may mean the text.
    Written {
        value: Value,
        text: String,
    },
}

impl Tree {
    /// The file as a tree; an empty file is an empty table.
    pub(crate) fn parse(format: Format, text: &str) -> Result<Self, ReadError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match format {
            Format::Json => json(text),
            Format::Toml => toml(text),
            Format::Yaml => yaml::parse(text),
        }
    }

    pub(crate) fn members(&self) -> Option<&[(String, Self)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    pub(super) fn into_members(self) -> Option<Vec<(String, Self)>> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The member with this key; if there are several, the last one, as for hosts.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.members()?.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(crate) fn to_value(&self) -> Value {
        self.convert(&|value, _| value.clone())
    }

    /// Like [`Tree::to_value`], with the text of every value that has one.
    pub(super) fn to_texts(&self) -> Value {
        self.convert(&|_, text| text.into())
    }

    /// The text of a key.
    pub(super) fn to_text(&self) -> String {
        match self.to_texts() {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }

    /// The number of values in this tree.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Object(members) => 1 + members.iter().map(|(_, value)| value.size()).sum::<usize>(),
            Self::Array(items) => 1 + items.iter().map(Self::size).sum::<usize>(),
            Self::Leaf(_) | Self::Written { .. } => 1,
        }
    }

    fn convert(&self, written: &dyn Fn(&Value, &str) -> Value) -> Value {
        match self {
            Self::Leaf(value) => value.clone(),
            Self::Written { value, text } => written(value, text),
            Self::Array(items) => Value::Array(items.iter().map(|item| item.convert(written)).collect()),
            Self::Object(members) => {
                let members = members.iter().map(|(key, value)| (key.clone(), value.convert(written)));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

fn syntax(format: &'static str, error: &dyn std::fmt::Display) -> ReadError {
    ReadError::Syntax { format, message: error.to_string() }
}

fn json(text: &str) -> Result<Tree, ReadError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default())
        .map_err(|error| syntax("JSON", &error))?;
    Ok(parsed.value.as_ref().map_or(Tree::Object(Vec::new()), json_value))
}

fn json_value(value: &ast::Value<'_>) -> Tree {
    match value {
        ast::Value::Object(object) => {
            let members = object.properties.iter();
            let members = members.map(|member| (member.name.as_str().to_owned(), json_value(&member.value)));
            Tree::Object(members.collect())
        }
        ast::Value::Array(array) => Tree::Array(array.elements.iter().map(json_value).collect()),
        ast::Value::StringLit(text) => Tree::Leaf(text.value.clone().into_owned().into()),
        ast::Value::BooleanLit(flag) => Tree::Leaf(flag.value.into()),
        ast::Value::NumberLit(number) => Tree::Leaf(number.value.parse().map_or(Value::Null, Value::Number)),
        ast::Value::NullKeyword(_) => Tree::Leaf(Value::Null),
    }
}

fn toml(text: &str) -> Result<Tree, ReadError> {
    let document = Document::parse(text).map_err(|error| syntax("TOML", &toml_reason(text, &error)))?;
    Ok(toml_table(text, document.as_table()))
}

/// The parser's error and its place, without the text of the file, which may hold secrets.
pub(crate) fn toml_reason(text: &str, error: &TomlError) -> String {
    let Some(place) = error.span().and_then(|span| text.get(..span.start)) else {
        return error.message().to_owned();
    };
    let line = place.matches('\n').count() + 1;
    let column = place.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {}", error.message().lines().next().unwrap_or_default())
}

fn toml_table(text: &str, table: &dyn TableLike) -> Tree {
    Tree::Object(table.iter().map(|(key, item)| (key.to_owned(), toml_item(text, item))).collect())
}

fn toml_item(text: &str, item: &Item) -> Tree {
    match item {
        Item::None => Tree::Leaf(Value::Null),
        Item::Value(value) => toml_value(text, value),
        Item::Table(table) => toml_table(text, table),
        Item::ArrayOfTables(tables) => {
            Tree::Array(tables.iter().map(|table| toml_table(text, table)).collect())
        }
    }
}

fn toml_value(text: &str, toml: &TomlValue) -> Tree {
    let value = match toml {
        TomlValue::String(text) => return Tree::Leaf(text.value().clone().into()),
        TomlValue::Array(items) => {
            return Tree::Array(items.iter().map(|item| toml_value(text, item)).collect());
        }
        TomlValue::InlineTable(table) => return toml_table(text, table),
        TomlValue::Integer(number) => (*number.value()).into(),
        TomlValue::Float(number) => (*number.value()).into(),
        TomlValue::Boolean(flag) => (*flag.value()).into(),
        TomlValue::Datetime(time) => time.value().to_string().into(),
    };
    match toml.span().and_then(|span| text.get(span)) {
        Some(text) => Tree::Written { value, text: text.to_owned() },
        None => Tree::Leaf(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_any_format_tells_the_place_and_no_content() {
        let broken = [
            (Format::Json, "{\n \"KEY\": \"sesame\" ] }"),
            (Format::Toml, "a = 1\nenv = { KEY = \"sesame\" TOKEN }\n"),
            (Format::Yaml, "a:\n  KEY: \"sesame\" x\n  TOKEN: sesame\n"),
        ];
        for (format, text) in broken {
            let message = Tree::parse(format, text).unwrap_err().to_string();
            assert!(message.contains("line 2") && !message.contains("sesame"), "{message}");
        }
    }
}
