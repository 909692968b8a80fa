//! Does a value fit a schema? By the keywords that tools use; an unknown one asks for nothing.

use serde_json::Value;

use super::{
    raw::{self, Kind},
    schema::{self, Schema},
};

/// Schemas may lead to themselves; deeper than this nothing is asked.
const DEPTH: u32 = 96;

pub(super) fn fits(schema: &Schema, at: &Value, json: &[u8]) -> bool {
    Check { schema }.fits(at, json, DEPTH)
}

#[derive(Clone, Copy)]
struct Check<'a> {
    schema: &'a Schema,
}

impl Check<'_> {
    fn fits(self, at: &Value, json: &[u8], depth: u32) -> bool {
        if depth == 0 {
            return true;
        }
        let at = self.schema.resolve(at);
        if at == &Value::Bool(false) {
            return false;
        }
        let kind = Kind::of(json);
        if kind == Kind::Null && at.get("nullable") == Some(&Value::Bool(true)) {
            return true; // as OpenAPI says it
        }
        let fits = |schema: &Value| self.fits(schema, json, depth - 1);
        has_type(at, kind, json)
            && schema::choices(at).is_none_or(|choices| choices.iter().any(|choice| same(json, choice)))
            && schema::parts(at).iter().all(fits)
            && ["anyOf", "oneOf"].iter().all(|key| {
                at.get(*key).and_then(Value::as_array).is_none_or(|branches| branches.iter().any(fits))
            })
            && match kind {
                Kind::Object => self.object(at, json, depth),
                Kind::Array => self.array(at, json, depth),
                Kind::String => length(at, "minLength", "maxLength", || {
                    raw::text(json).map_or(0, |text| text.chars().count())
                }),
                Kind::Number => in_bounds(at, json),
                Kind::Null | Kind::Boolean => true,
            }
    }

    fn object(self, at: &Value, json: &[u8], depth: u32) -> bool {
        let entries = raw::entries(json);
        let present = |key: &str| entries.iter().any(|entry| entry.key == key);
        let open = at.get("patternProperties").is_some();
        let rest = at.get("additionalProperties").filter(|_| !open);
        schema::required(at).all(present)
            && length(at, "minProperties", "maxProperties", || entries.len())
            && entries.iter().all(|entry| {
                let own = schema::property(at, &entry.key).or(rest);
                own.is_none_or(|own| self.fits(own, &entry.value, depth - 1))
            })
    }

    fn array(self, at: &Value, json: &[u8], depth: u32) -> bool {
        let items = raw::list(json);
        let fits = |(number, item): (usize, &&[u8])| {
            schema::item(at, number).is_none_or(|own| self.fits(own, item, depth - 1))
        };
        length(at, "minItems", "maxItems", || items.len()) && items.iter().enumerate().all(fits)
    }
}

fn has_type(at: &Value, kind: Kind, json: &[u8]) -> bool {
    let is = |name: &str| match name {
        "null" => kind == Kind::Null,
        "boolean" => kind == Kind::Boolean,
        "number" => kind == Kind::Number,
        "integer" => kind == Kind::Number && is_whole(json),
        "string" => kind == Kind::String,
        "array" => kind == Kind::Array,
        "object" => kind == Kind::Object,
        _ => true,
    };
    match at.get("type") {
        Some(Value::String(name)) => is(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

/// `5`, `5.0` and `5e2` are whole numbers; how many digits they have does not matter.
fn is_whole(json: &[u8]) -> bool {
    let plain = json.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
    plain || number(json).is_some_and(|number| number.is_finite() && number.fract() == 0.0)
}

fn in_bounds(at: &Value, json: &[u8]) -> bool {
    let Some(value) = number(json) else { return true };
    let bound = |key: &str| at.get(key).and_then(Value::as_f64);
    let strict = |key: &str| at.get(key) == Some(&Value::Bool(true)); // as draft 4 says it
    bound("minimum")
        .is_none_or(|least| value > least || same_number(value, least) && !strict("exclusiveMinimum"))
        && bound("maximum")
            .is_none_or(|most| value < most || same_number(value, most) && !strict("exclusiveMaximum"))
        && bound("exclusiveMinimum").is_none_or(|least| value > least)
        && bound("exclusiveMaximum").is_none_or(|most| value < most)
}

fn length(at: &Value, least: &str, most: &str, count: impl Fn() -> usize) -> bool {
    let bound = |key: &str| at.get(key).and_then(Value::as_u64);
    let (least, most) = (bound(least), bound(most));
    if least.is_none() && most.is_none() {
        return true;
    }
    let count = count() as u64;
    least.is_none_or(|least| count >= least) && most.is_none_or(|most| count <= most)
}

/// Is this written value that value?
pub(super) fn same(json: &[u8], value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => json == value.to_string().as_bytes(),
        Value::String(text) => raw::text(json).is_some_and(|own| own == *text),
        Value::Number(other) => {
            json == other.to_string().as_bytes()
                || Kind::of(json) == Kind::Number
                    && number(json).zip(other.as_f64()).is_some_and(|(a, b)| same_number(a, b))
        }
        _ => serde_json::from_slice::<Value>(json).is_ok_and(|own| own == *value),
    }
}

#[expect(clippy::float_cmp, reason = "equal is what the schema means")]
fn same_number(a: f64, b: f64) -> bool {
    a == b
}

fn number(json: &[u8]) -> Option<f64> {
    std::str::from_utf8(json).ok()?.parse().ok()
}
