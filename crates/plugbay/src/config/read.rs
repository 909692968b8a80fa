//! From syntax tree to typed values, key by key, so that a bad value affects only itself.
//!
//! [`object!`] declares a struct together with the keys that fill it: the one list for reading, the schema
//! and "did you mean".

use std::{borrow::Cow, collections::BTreeMap};

use jsonc_parser::{
    ast::{Object, ObjectProp, ObjectPropName, Value},
    common::{Range, Ranged},
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::json;

use super::{
    diagnostic::{Kind, quote},
    report::Report,
    source::Syntax,
};

/// The keys that hold servers.
const SERVER_KEYS: [&str; 4] = ["mcpServers", "servers", "context_servers", "mcp_servers"];

/// A type that a value in a file can have. If reading returns `None`, the report says why.
pub(super) trait Read: Sized {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self>;
}

/// Settings that can be laid over others.
pub(super) trait Overlay {
    /// These settings, with `base` for everything that they leave open.
    fn over(self, base: Self) -> Self;
}

/// A value with its place, for later error messages.
#[derive(Debug, Clone)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) at: Range,
}

impl<T> At<T> {
    /// A value that is not in the file.
    pub(super) fn unwritten(value: T) -> Self {
        Self { value, at: Range::new(0, 0) }
    }

    pub(super) fn is_written(&self) -> bool {
        self.at.start < self.at.end
    }
}

/// Declares a struct whose fields are all optional, read from an object's keys:
/// `"key" | "alias" => field: Type`. Keys under `ignored` are accepted and not looked at; a key that
/// belongs one level deeper, in `inner`, is recognised as misplaced.
macro_rules! object {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $( $(#[$doc:meta])* $key:literal $(| $alias:literal)* => $field:ident: $type:ty, )*
        }
        ignored: [$($ignored:literal),* $(,)?]
        $(inner: $inner_key:literal, $inner:ident)?
        $(elsewhere: $elsewhere:ident, $place:literal)?
    ) => {
        #[derive(Debug, Clone, Default, schemars::JsonSchema)]
        $(#[$meta])*
        #[schemars(deny_unknown_fields, transform = $name::complete_schema)]
        $visibility struct $name {
            $( $(#[$doc])* #[schemars(rename = $key)] $visibility $field: Option<$type>, )*
        }

        impl $name {
            $visibility const KEYS: &[&str] = &[$($key, $($alias,)*)* $($ignored,)*];

            fn complete_schema(schema: &mut schemars::Schema) {
                $crate::config::read::add_keys(
                    schema,
                    &[$($(($alias, $key),)*)*],
                    &[$($ignored),*],
                );
            }
        }

        impl $crate::config::read::Overlay for $name {
            fn over(self, base: Self) -> Self {
                Self { $( $field: self.$field.or(base.$field), )* }
            }
        }

        impl $crate::config::read::Read for $name {
            fn read(
                value: &jsonc_parser::ast::Value<'_>,
                report: &mut $crate::config::report::Report<'_>,
            ) -> Option<Self> {
                let mut read = Self::default();
                for property in &$crate::config::read::as_object(value, report)?.properties {
                    match property.name.as_str() {
                        $( $key $(| $alias)* => $crate::config::read::set(&mut read.$field, property, report), )*
                        $( $ignored => {} )*
                        $( key if $inner::KEYS.contains(&key) => {
                            $crate::config::read::misplaced_key(property, $inner_key, report);
                        } )?
                        $( key if $elsewhere::KEYS.contains(&key) => {
                            $crate::config::read::key_of_another(property, $place, report);
                        } )?
                        _ => $crate::config::read::unknown_key(property, Self::KEYS, report),
                    }
                }
                Some(read)
            }
        }
    };
}
pub(super) use object;

/// The value as an object, or an error in the report.
pub(super) fn as_object<'v, 'a>(value: &'v Value<'a>, report: &mut Report<'_>) -> Option<&'v Object<'a>> {
    let Value::Object(object) = value else {
        mismatch(value, "an object", report);
        return None;
    };
    Some(object)
}

/// Fills one field of an [`object!`] struct. `null` means the same as an absent key.
pub(super) fn set<T: Read>(slot: &mut Option<T>, property: &ObjectProp<'_>, report: &mut Report<'_>) {
    if slot.is_some() {
        given_twice(property, report);
    }
    *slot = match &property.value {
        Value::NullKeyword(_) => None,
        value => report.under(property.name.as_str(), |report| T::read(value, report)),
    };
}

pub(super) fn given_twice(property: &ObjectProp<'_>, report: &mut Report<'_>) {
    let message = format!("{} is given twice", quote(property.name.as_str()));
    report.warning(key_range(property), message, "only the last one counts; remove the other");
}

pub(super) fn unknown_key(property: &ObjectProp<'_>, known: &[&str], report: &mut Report<'_>) {
    let key = property.name.as_str();
    let near = nearest(key, known);
    let help = match near {
        Some(near) => format!("did you mean {}?", quote(near)),
        None => "it has no effect; remove it".into(),
    };
    let message = format!("unknown key {}", quote(key));
    // With this key all servers of the file would be lost.
    if near.is_some_and(|near| SERVER_KEYS.contains(&near)) && matches!(property.value, Value::Object(_)) {
        report.error(key_range(property), message, help);
    } else {
        report.warning(key_range(property), message, help);
    }
    report.was(Kind::UnknownKey { key: key.to_owned(), near: near.map(str::to_owned) });
}

pub(super) fn misplaced_key(property: &ObjectProp<'_>, inner: &str, report: &mut Report<'_>) {
    let key = quote(property.name.as_str());
    let help = format!("move it into the {} object", quote(inner));
    report.warning(key_range(property), format!("{key} has no effect here"), help);
    report.was(Kind::Misplaced { key: property.name.as_str().to_owned(), inner: Some(inner.to_owned()) });
}

/// Reports a key that belongs to another place of the file, not to a neighbouring object.
pub(super) fn key_of_another(property: &ObjectProp<'_>, place: &str, report: &mut Report<'_>) {
    let key = property.name.as_str().to_owned();
    report.warning(
        key_range(property),
        format!("{} has no effect here", quote(&key)),
        format!("move it {place}"),
    );
    report.was(Kind::Misplaced { key, inner: None });
}

/// Reports that `value` is not what is `wanted`, with a hint if the fix is clear.
pub(super) fn mismatch(value: &Value<'_>, wanted: &str, report: &mut Report<'_>) {
    let (found, scalar) = match value {
        Value::StringLit(_) => ("a string", true),
        Value::NumberLit(_) => ("a number", true),
        Value::BooleanLit(_) => ("a boolean", true),
        Value::Object(_) => ("an object", false),
        Value::Array(_) => ("a list", false),
        Value::NullKeyword(_) => ("null", false),
    };
    let help = match wanted {
        "a string" if scalar => "put the value in quotes".into(),
        "a list" if scalar => "put the value in brackets: [ … ]".into(),
        "true or false" | "a number" if found == "a string" => "remove the quotes".into(),
        _ => format!("write {wanted} here, or remove the key"),
    };
    report.invalid(value.range(), &format!("expected {wanted}, found {found}"), help);
}

/// The word in `known` that `word` most likely means.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // Longer than any key with typing errors, so not worth comparing.
    if word.len() > 40 {
        return None;
    }
    let lower = word.to_lowercase();
    let distance = |key: &str| strsim::damerau_levenshtein(&lower, &key.to_lowercase());
    let (near, distance) =
        known.iter().map(|key| (*key, distance(key))).min_by_key(|(_, distance)| *distance)?;
    (distance <= (word.len() / 3).max(1)).then_some(near)
}

pub(super) fn key_range(property: &ObjectProp<'_>) -> Range {
    match &property.name {
        ObjectPropName::String(name) => name.range,
        ObjectPropName::Word(name) => name.range,
    }
}

/// Adds the other spellings of keys to a derived schema, and the keys without effect.
pub(super) fn add_keys(schema: &mut Schema, aliases: &[(&str, &str)], ignored: &[&str]) {
    let Some(properties) = schema.get_mut("properties").and_then(|value| value.as_object_mut()) else {
        return;
    };
    for (alias, key) in aliases {
        let mut same = properties[*key].clone();
        same["description"] = json!(format!("The same as `{key}`, as other programs write it."));
        properties.insert((*alias).into(), same);
    }
    for key in ignored {
        properties
            .insert((*key).into(), json!({ "description": "Accepted from other programs; has no effect." }));
    }
}

impl Read for String {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        match value {
            Value::StringLit(string) => Some(string.value.clone().into_owned()),
            // YAML needs no quotes, so `8080` may be meant as text.
            Value::NumberLit(_) | Value::BooleanLit(_) if report.source.syntax == Syntax::Yaml => {
                let at = value.range();
                Some(report.source.part(at).trim().to_owned())
            }
            _ => {
                mismatch(value, "a string", report);
                None
            }
        }
    }
}

impl Read for bool {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let Value::BooleanLit(boolean) = value else {
            mismatch(value, "true or false", report);
            return None;
        };
        Some(boolean.value)
    }
}

impl<T: Read> Read for At<T> {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        Some(Self { value: T::read(value, report)?, at: value.range() })
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let Value::Array(list) = value else {
            mismatch(value, "a list", report);
            return None;
        };
        Some(list.elements.iter().filter_map(|element| T::read(element, report)).collect())
    }
}

impl<T: Read> Read for BTreeMap<String, T> {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let mut map = Self::new();
        for property in &as_object(value, report)?.properties {
            let key = property.name.as_str();
            if let Some(value) = report.under(key, |report| T::read(&property.value, report))
                && map.insert(key.to_owned(), value).is_some()
            {
                given_twice(property, report);
            }
        }
        Some(map)
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
