//! Converts the text of an argument to the JSON that a tool's schema wants.

use std::collections::BTreeSet;

use serde_json::Value;

use super::arguments::json;

/// Limit of depth to which references and alternatives are followed.
const DEPTH_LIMIT: usize = 8;

/// The types in an `inputSchema`.
pub(super) struct Schema(Value);

impl Schema {
    pub(super) fn parse(schema: Option<&[u8]>) -> Self {
        Self(schema.and_then(|schema| serde_json::from_slice(schema).ok()).unwrap_or_default())
    }

    /// The value of `key` as JSON. The error says what was expected.
    pub(super) fn type_text(&self, key: &str, text: &str) -> Result<String, String> {
        let quoted = || Value::from(text).to_string();
        let property = &self.0["properties"][key];
        let types = self.types(property, DEPTH_LIMIT);
        if types.contains("string") {
            return Ok(quoted());
        }
        // Without a type the listed values decide, and without those the text itself.
        if types.is_empty() {
            let listed =
                property["enum"].as_array().is_some_and(|values| values.iter().any(|value| value == text));
            return Ok(if listed { quoted() } else { json(text.trim()).unwrap_or_else(|_| quoted()) });
        }
        let value = json(text.trim()).ok().filter(|value| types.contains(kind(value)) || also(&types, value));
        value.ok_or_else(|| {
            let types: Vec<String> = types.iter().map(|name| with_article(name)).collect();
            format!("{key:?} must be {}, not {text:?}", types.join(" or "))
        })
    }

    fn types(&self, schema: &Value, depth: usize) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        if depth == 0 {
            return found;
        }
        match &schema["type"] {
            Value::String(name) => _ = found.insert(name.clone()),
            Value::Array(names) => found.extend(names.iter().filter_map(Value::as_str).map(str::to_owned)),
            _ => {}
        }
        let alternatives =
            ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema[key].as_array()).flatten();
        let referred =
            schema["$ref"].as_str().and_then(|reference| self.0.pointer(reference.strip_prefix('#')?));
        for other in alternatives.chain(referred) {
            found.extend(self.types(other, depth - 1));
        }
        found
    }
}

fn with_article(name: &str) -> String {
    match name {
        "null" => name.to_owned(),
        "array" => "an array, such as '[1, 2]'".to_owned(),
        "object" => "an object, such as '{\"a\": 1}'".to_owned(),
        "integer" => "an integer".to_owned(),
        _ => format!("a {name}"),
    }
}

/// The schema type of a JSON text.
fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ if json.contains(['.', 'e', 'E']) => "number",
        _ => "integer",
    }
}

/// Whether a JSON text also has one of these types: an integer is a number, and 3.0 is an integer.
fn also(types: &BTreeSet<String>, json: &str) -> bool {
    match kind(json) {
        "integer" => types.contains("number"),
        "number" => types.contains("integer") && json.parse().is_ok_and(|number: f64| number.fract() == 0.0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r##"{
        "properties": {
            "s": {"type":"string"}, "i": {"type":"integer"}, "n": {"type":"number"}, "b": {"type":"boolean"},
            "o": {"type":"object"}, "a": {"type":"array"}, "maybe": {"anyOf":[{"type":"integer"},{"type":"null"}]},
            "either": {"type":["string","integer"]}, "ref": {"$ref":"#/$defs/Size"}, "choice": {"enum":["5","x"]},
            "any": {}
        },
        "$defs": { "Size": {"type":"number"}, "loop": {"$ref":"#/$defs/loop"} }
    }"##;

    #[track_caller]
    fn check(key: &str, text: &str, expected: Result<&str, &str>) {
        let typed = Schema::parse(Some(SCHEMA.as_bytes())).type_text(key, text);
        assert_eq!(typed.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn the_schema_decides() {
        check("s", "5", Ok(r#""5""#));
        check("s", "say \"hi\"\n", Ok(r#""say \"hi\"\n""#));
        check("i", " 5 ", Ok("5"));
        check("i", "3.0", Ok("3.0"));
        check("i", "123456789012345678901234567890", Ok("123456789012345678901234567890"));
        check("n", "5", Ok("5"));
        check("n", "1e3", Ok("1e3"));
        check("b", "true", Ok("true"));
        check("o", "{ \"x\": 1 }", Ok(r#"{"x":1}"#));
        check("a", "[1, 2]", Ok("[1,2]"));
        check("maybe", "null", Ok("null"));
        check("either", "5", Ok(r#""5""#));
        check("ref", "2.5", Ok("2.5"));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        check("i", "five", Err(r#""i" must be an integer, not "five""#));
        check("i", "2.5", Err(r#""i" must be an integer, not "2.5""#));
        check("b", "yes", Err(r#""b" must be a boolean, not "yes""#));
        check("a", "a,b", Err(r#""a" must be an array, such as '[1, 2]', not "a,b""#));
        check("maybe", "x", Err(r#""maybe" must be an integer or null, not "x""#));
    }

    #[test]
    fn without_a_type_the_text_decides() {
        check("any", "5", Ok("5"));
        check("any", "five", Ok(r#""five""#));
        check("unheard-of", "[true]", Ok("[true]"));
        check("choice", "5", Ok(r#""5""#));
        assert_eq!(Schema::parse(None).type_text("x", "{}"), Ok("{}".to_owned()));
    }
}
