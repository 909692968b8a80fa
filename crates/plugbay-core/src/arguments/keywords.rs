//! Keywords of a schema in the form in which values are checked against them.

use serde_json::Value;

use super::{
    decimal::Decimal,
    raw::{self, Kind},
};

/// The keyword `type`: a set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    const ANY: Self = Self(0x7f);
    const INTEGER: u8 = 0x40;

    /// The types of a schema. A name that is not a type of JSON Schema allows every kind.
    pub(super) fn of(schema: &Value) -> Self {
        match schema.get("type") {
            Some(Value::String(name)) => Self::named(name),
            Some(Value::Array(names)) => names
                .iter()
                .filter_map(Value::as_str)
                .fold(Self(0), |all, name| Self(all.0 | Self::named(name).0)),
            _ => Self::ANY,
        }
    }

    fn named(name: &str) -> Self {
        Self(match name {
            "null" => Self::bit(Kind::Null),
            "boolean" => Self::bit(Kind::Boolean),
            "number" => Self::bit(Kind::Number),
            "integer" => Self::INTEGER,
            "string" => Self::bit(Kind::String),
            "array" => Self::bit(Kind::Array),
            "object" => Self::bit(Kind::Object),
            _ => return Self::ANY,
        })
    }

    fn bit(kind: Kind) -> u8 {
        1 << kind as u8
    }

    /// Whether a value of this kind may be allowed, before its digits are checked.
    pub(super) fn may_allow(self, kind: Kind) -> bool {
        self.0 & Self::bit(kind) != 0 || kind == Kind::Number && self.0 & Self::INTEGER != 0
    }

    /// Whether a value is allowed.
    pub(super) fn allow(self, kind: Kind, json: &[u8]) -> bool {
        let is_whole = || {
            json.iter().all(u8::is_ascii_digit) || Decimal::read(json).is_none_or(|number| number.is_whole())
        };
        self.0 & Self::bit(kind) != 0 || kind == Kind::Number && self.0 & Self::INTEGER != 0 && is_whole()
    }
}

/// Two keywords that limit a count: `minLength` and `maxLength`, for example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Length {
    least: Option<u64>,
    most: Option<u64>,
}

impl Length {
    pub(super) fn of(schema: &Value, least: &str, most: &str) -> Self {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        Self { least: bound(least), most: bound(most) }
    }

    /// Whether a count is allowed. It is only taken if something limits it.
    pub(super) fn allows(self, count: impl FnOnce() -> usize) -> bool {
        if self.is_free() {
            return true;
        }
        let count = count() as u64;
        self.least.is_none_or(|least| count >= least) && self.most.is_none_or(|most| count <= most)
    }

    pub(super) fn is_free(self) -> bool {
        self.least.is_none() && self.most.is_none()
    }
}

/// The keywords that limit a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bounds {
    least: Option<Decimal>,
    most: Option<Decimal>,
    above: Option<Decimal>,
    below: Option<Decimal>,
    /// `exclusiveMinimum` and `exclusiveMaximum` are booleans in draft 4.
    strict: (bool, bool),
    step: Option<Decimal>,
}

impl Bounds {
    pub(super) fn of(schema: &Value) -> Self {
        let bound = |key: &str| Decimal::read(schema.get(key)?.as_number()?.to_string().as_bytes());
        let strict = |key: &str| schema.get(key) == Some(&Value::Bool(true));
        Self {
            least: bound("minimum"),
            most: bound("maximum"),
            above: bound("exclusiveMinimum"),
            below: bound("exclusiveMaximum"),
            strict: (strict("exclusiveMinimum"), strict("exclusiveMaximum")),
            step: bound("multipleOf"),
        }
    }

    pub(super) fn is_free(&self) -> bool {
        [&self.least, &self.most, &self.above, &self.below, &self.step].iter().all(|bound| bound.is_none())
    }

    /// Whether a number is allowed; `None` if it cannot be compared.
    pub(super) fn allow(&self, json: &[u8]) -> Option<bool> {
        let value = Decimal::read(json)?;
        let within =
            self.least.as_ref().is_none_or(|least| value > *least || value == *least && !self.strict.0)
                && self.most.as_ref().is_none_or(|most| value < *most || value == *most && !self.strict.1)
                && self.above.as_ref().is_none_or(|least| value > *least)
                && self.below.as_ref().is_none_or(|most| value < *most);
        if !within {
            return Some(false);
        }
        self.step.as_ref().map_or(Some(true), |step| value.is_multiple_of(step))
    }
}

/// How long it takes to compare something with a value, in steps.
pub(super) fn weight(value: &Value) -> usize {
    match value {
        Value::Array(items) => 8 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => {
            8 + members.iter().map(|(key, value)| key.len() / 8 + weight(value)).sum::<usize>()
        }
        Value::String(text) => 1 + text.len() / 64,
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

/// Whether this written value equals that value.
pub(super) fn same(json: &[u8], value: &Value) -> bool {
    match value {
        Value::String(text) => {
            json.len() <= 2 + 6 * text.len() && raw::text(json).is_some_and(|own| own == *text)
        }
        Value::Array(_) | Value::Object(_) if !matches!(Kind::of(json), Kind::Array | Kind::Object) => false,
        _ => canonical(json) == canonical(value.to_string().as_bytes()),
    }
}

/// The canonical form of a value: equal bytes for equal values, however they are written.
pub(super) fn canonical(json: &[u8]) -> Vec<u8> {
    match Kind::of(json) {
        Kind::Number => {
            Decimal::read(json).map_or_else(|| json.to_vec(), |number| format!("{number:?}").into_bytes())
        }
        Kind::String => raw::text(json).map_or_else(|| json.to_vec(), |text| raw::quote(&text)),
        Kind::Array => {
            let items: Vec<Vec<u8>> = raw::list(json).into_iter().map(canonical).collect();
            raw::array(items.iter().map(Vec::as_slice))
        }
        Kind::Object => {
            let mut entries = raw::entries(json);
            entries.sort_by(|a, b| a.key.cmp(&b.key));
            for entry in &mut entries {
                (entry.quoted, entry.value) = (raw::quote(&entry.key).into(), canonical(&entry.value).into());
            }
            raw::object(&entries)
        }
        Kind::Null | Kind::Boolean => json.to_vec(),
    }
}
