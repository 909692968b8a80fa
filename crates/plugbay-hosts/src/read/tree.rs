//! A parsed file of any format, with the members of its tables in the order of the file.

use jsonc_parser::{CollectOptions, ParseOptions, ast, parse_to_ast};
use serde_json::{Map, Value};
use toml_edit::{Document, Item, TableLike, Value as TomlValue};

use super::ReadError;
use crate::known::Format;

/// A value of a host's file. Members keep their order, and a key that occurs twice is there twice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Object(Vec<(String, Tree)>),
    Array(Vec<Tree>),
    Leaf(Value),
}

impl Tree {
    /// The file as a tree; an empty file is an empty table.
    pub(crate) fn parse(format: Format, text: &str) -> Result<Self, ReadError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match format {
            Format::Json => json(text),
            Format::Toml => toml(text),
            Format::Yaml => yaml(text),
        }
    }

    pub(crate) fn members(&self) -> Option<&[(String, Self)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The member of this key; the last one, as hosts see it, if there are several.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.members()?.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Leaf(value) => value.clone(),
            Self::Array(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(members) => {
                let members = members.iter().map(|(key, value)| (key.clone(), value.to_value()));
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
    let document = Document::parse(text).map_err(|error| syntax("TOML", &error.message()))?;
    Ok(toml_table(document.as_table()))
}

fn toml_table(table: &dyn TableLike) -> Tree {
    Tree::Object(table.iter().map(|(key, item)| (key.to_owned(), toml_item(item))).collect())
}

fn toml_item(item: &Item) -> Tree {
    match item {
        Item::None => Tree::Leaf(Value::Null),
        Item::Value(value) => toml_value(value),
        Item::Table(table) => toml_table(table),
        Item::ArrayOfTables(tables) => Tree::Array(tables.iter().map(|table| toml_table(table)).collect()),
    }
}

fn toml_value(value: &TomlValue) -> Tree {
    match value {
        TomlValue::String(text) => Tree::Leaf(text.value().clone().into()),
        TomlValue::Integer(number) => Tree::Leaf((*number.value()).into()),
        TomlValue::Float(number) => Tree::Leaf((*number.value()).into()),
        TomlValue::Boolean(flag) => Tree::Leaf((*flag.value()).into()),
        TomlValue::Datetime(time) => Tree::Leaf(time.value().to_string().into()),
        TomlValue::Array(items) => Tree::Array(items.iter().map(toml_value).collect()),
        TomlValue::InlineTable(table) => toml_table(table),
    }
}

fn yaml(text: &str) -> Result<Tree, ReadError> {
    if text.trim().is_empty() {
        return Ok(Tree::Object(Vec::new()));
    }
    let tree: Option<YamlTree> = serde_saphyr::from_str(text).map_err(|error| syntax("YAML", &error))?;
    Ok(tree.map_or(Tree::Object(Vec::new()), |tree| tree.0))
}

/// Deserialised from YAML, whose mappings serde would put in another order.
struct YamlTree(Tree);

impl<'de> serde::Deserialize<'de> for YamlTree {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor).map(Self)
    }
}

struct YamlVisitor;

impl<'de> serde::de::Visitor<'de> for YamlVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf(Value::Null))
    }

    fn visit_some<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Tree, E> {
        Ok(Tree::Leaf(flag.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Tree, E> {
        Ok(Tree::Leaf(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Tree, E> {
        Ok(Tree::Leaf(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Tree, E> {
        Ok(Tree::Leaf(number.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Leaf(text.into()))
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut all = Vec::new();
        while let Some(YamlTree(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Tree::Array(all))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut members: A) -> Result<Tree, A::Error> {
        let mut all = Vec::new();
        while let Some((YamlTree(key), YamlTree(value))) = members.next_entry()? {
            let key = match key {
                Tree::Leaf(Value::String(key)) => key,
                other => other.to_value().to_string(),
            };
            all.push((key, value));
        }
        Ok(Tree::Object(all))
    }
}
