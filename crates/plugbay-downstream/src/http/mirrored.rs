//! Arguments that a tool wants repeated in headers: what its schema marks with `x-mcp-header`.

use plugbay_core::{
    surface::{Plan, Snapshot},
    wire::Members,
};
use serde_json::{Map, Value};

use crate::dispatch::Request;

const MARK: &str = "x-mcp-header";

/// The headers that a call must have, each with its value as text, or with `None` if it must be absent.
/// Most tools mark nothing, and then nothing is parsed.
pub(super) fn expected(snapshot: &Snapshot, request: &Request) -> Vec<(String, Option<String>)> {
    let schema = request.subject().and_then(|name| marked_schema(snapshot, &name));
    let Some(schema) = schema else { return Vec::new() };
    let arguments = request.arguments().and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or_default();
    let mut found = Vec::new();
    collect(&schema, &arguments, &mut found);
    found
}

fn marked_schema(snapshot: &Snapshot, name: &str) -> Option<Value> {
    let Plan::Forward(target) = snapshot.listing.plan(name) else { return None };
    let definition = &snapshot.catalog.get(&target.server)?.offer.tool(&target.tool)?.definition;
    let marked = definition.windows(MARK.len()).any(|window| window == MARK.as_bytes());
    let schema = marked.then(|| Members::find(definition, &(0..definition.len()), "inputSchema"))??;
    serde_json::from_slice(&definition[schema]).ok()
}

/// Only what a chain of `properties` leads to can be marked.
fn collect(schema: &Value, arguments: &Value, found: &mut Vec<(String, Option<String>)>) {
    let nothing = Map::new();
    for (key, property) in schema["properties"].as_object().unwrap_or(&nothing) {
        let argument = &arguments[key];
        if let Some(name) = property[MARK].as_str() {
            found.push((format!("mcp-param-{}", name.to_lowercase()), text(argument)));
        }
        collect(property, argument, found);
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Equal as text, or as numbers: `42` is `42.0`.
pub(super) fn agree(header: &str, body: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    header == body || number(header).is_some_and(|header| number(body) == Some(header))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_are_found_along_properties_alone() {
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "properties": { "n": { "x-mcp-header": "N" }, "gone": { "x-mcp-header": "Gone" } } },
            "list": { "items": { "x-mcp-header": "Never" } },
        } });
        let mut found = Vec::new();
        collect(&schema, &json!({ "region": "é", "deep": { "n": 42, "gone": null } }), &mut found);
        found.sort();
        let some = |text: &str| Some(text.to_owned());
        let expected = [("gone", None), ("n", some("42")), ("region", some("é"))];
        assert_eq!(found, expected.map(|(name, value)| (format!("mcp-param-{name}"), value)));
        assert!(agree("42.0", "42") && agree("a", "a") && !agree("42", "43") && !agree("NaN", "nan"));
    }
}
