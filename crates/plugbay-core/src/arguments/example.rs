//! A value that fits a schema, as simple as can be.

use serde_json::{Map, Value, json};

use super::{
    schema::{self, Schema},
    validate::fits,
};

const DEPTH: u32 = 6;
/// The longest text that serves as an example.
const LONGEST: usize = 40;

/// An example; `None` if no simple one fits.
pub(super) fn example(schema: &Schema, at: &Value) -> Option<Value> {
    let built = build(schema, at, DEPTH);
    fits(schema, at, built.to_string().as_bytes()).then_some(built)
}

fn build(schema: &Schema, at: &Value, depth: u32) -> Value {
    let at = &*schema.whole(at);
    if depth == 0 || !schema.step(8) {
        return Value::Null;
    }
    let given = at.get("examples").and_then(|examples| examples.get(0)).or_else(|| at.get("example"));
    let given = given.or_else(|| at.get("default").filter(|default| !default.is_null()));
    if let Some(given) = given.or_else(|| schema::choices(at)?.first().copied()) {
        return given.clone();
    }
    if let Some(branches) = schema::branches(at) {
        let whole = branches.iter().map(|branch| schema.alternative(at, branch));
        let mut built = whole
            .filter(|whole| schema::types(whole) != ["null"])
            .map(|whole| build(schema, &whole, depth - 1))
            .peekable();
        // Deep inside, the first is good enough: alternatives of alternatives multiply.
        let first = built.peek().cloned().unwrap_or_default();
        let right = |built: &Value| fits(schema, at, built.to_string().as_bytes());
        return if depth == DEPTH { built.find(right).unwrap_or(first) } else { first };
    }
    match schema::types(at).first().copied() {
        Some("object") => {
            let own = |key: &str| {
                let value =
                    schema::property(at, key).map_or(json!("text"), |own| build(schema, own, depth - 1));
                (key.to_owned(), value)
            };
            Value::Object(schema::required(at).map(own).collect::<Map<_, _>>())
        }
        Some("array") => {
            json!([schema::item(at, 0).map_or(json!("…"), |item| build(schema, item, depth - 1))])
        }
        Some("integer" | "number") => {
            let bound = ["minimum", "maximum", "multipleOf"].iter().find_map(|key| at.get(*key));
            bound.cloned().unwrap_or_else(|| json!(1))
        }
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        _ => json!(text(at)),
    }
}

fn text(at: &Value) -> String {
    let least = at.get("minLength").and_then(Value::as_u64).and_then(|least| usize::try_from(least).ok());
    let plain = match at.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("date") => "2026-01-31",
        Some("time") => "12:00:00",
        Some("uri" | "url") => "https://example.com",
        Some("email") => "name@example.com",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        _ => "text",
    };
    let least = least.filter(|least| *least <= LONGEST).unwrap_or_default().max(plain.len());
    plain.chars().cycle().take(least).collect()
}
