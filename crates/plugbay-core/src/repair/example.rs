//! A value that fits a schema, as simple as can be.

use serde_json::{Map, Value, json};

use super::schema::{self, Schema};

const DEPTH: u32 = 6;

pub(super) fn example(schema: &Schema, at: &Value) -> Value {
    build(schema, at, DEPTH)
}

fn build(schema: &Schema, at: &Value, depth: u32) -> Value {
    let at = schema.resolve(at);
    if depth == 0 {
        return Value::Null;
    }
    let given = at.get("examples").and_then(|examples| examples.get(0)).or_else(|| at.get("example"));
    let given = given.or_else(|| at.get("default").filter(|default| !default.is_null()));
    if let Some(given) = given.or_else(|| schema::choices(at)?.first().copied()) {
        return given.clone();
    }
    if let Some(first) = schema::branches(at)
        .and_then(|branches| branches.iter().find(|branch| schema::types(schema.resolve(branch)) != ["null"]))
    {
        return build(schema, first, depth - 1);
    }
    match schema::types(at).first().copied() {
        Some("object") => {
            let own = |key: &str| {
                let value =
                    schema::property(at, key).map_or(Value::Null, |own| build(schema, own, depth - 1));
                (key.to_owned(), value)
            };
            Value::Object(schema::required(at).map(own).collect::<Map<_, _>>())
        }
        Some("array") => {
            json!([schema::item(at, 0).map_or(json!("…"), |item| build(schema, item, depth - 1))])
        }
        Some("integer" | "number") => {
            let bound = at.get("minimum").or_else(|| at.get("maximum"));
            bound.cloned().unwrap_or_else(|| json!(1))
        }
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        _ => json!(text(at)),
    }
}

fn text(at: &Value) -> &'static str {
    match at.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("date") => "2026-01-31",
        Some("time") => "12:00:00",
        Some("uri" | "url") => "https://example.com",
        Some("email") => "name@example.com",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        _ => "text",
    }
}
