//! The shape of arguments: keys and types, never a value.

use serde_json::{Map, Value};

/// Limits of a shape, so that nothing that a host sends makes a line of the audit log long.
#[derive(Debug, Clone, Copy)]
pub struct ShapeLimit {
    pub depth: usize,
    /// Members of one object that are shown, and in all.
    pub members: usize,
    pub total: usize,
    /// Characters of a key.
    pub key: usize,
}

pub const SHAPE_LIMIT: ShapeLimit = ShapeLimit { depth: 4, members: 32, total: 128, key: 64 };
/// Larger arguments are not read.
const LONGEST: usize = 64 << 10;

/// The shape of raw JSON: `{"path":"string","tags":["string"]}`. A list shows its first element's shape.
pub fn shape(json: &[u8]) -> Value {
    if json.len() > LONGEST {
        return Value::from("large");
    }
    let mut left = SHAPE_LIMIT.total;
    match serde_json::from_slice(json) {
        Ok(value) => of(&value, SHAPE_LIMIT.depth, &mut left),
        Err(_) => Value::from("unreadable"),
    }
}

fn of(value: &Value, depth: usize, left: &mut usize) -> Value {
    match value {
        Value::Object(_) | Value::Array(_) if depth == 0 => Value::from("…"),
        Value::Object(members) => object(members, depth, left),
        Value::Array(elements) => Value::from(
            elements.first().map(|first| of(first, depth - 1, left)).into_iter().collect::<Vec<_>>(),
        ),
        Value::String(_) => Value::from("string"),
        Value::Number(_) => Value::from("number"),
        Value::Bool(_) => Value::from("boolean"),
        Value::Null => Value::Null,
    }
}

fn object(members: &Map<String, Value>, depth: usize, left: &mut usize) -> Value {
    let mut shown = Map::new();
    for (key, value) in members {
        if *left == 0 || shown.len() == SHAPE_LIMIT.members {
            shown.insert("…".to_owned(), Value::from(members.len() - shown.len()));
            break;
        }
        *left -= 1;
        shown.insert(key.chars().take(SHAPE_LIMIT.key).collect(), of(value, depth - 1, left));
    }
    Value::Object(shown)
}
