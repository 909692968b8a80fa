//! Arguments that a tool wants repeated in headers: what its schema marks with `x-mcp-header`.

use plugbay_core::{
    surface::{Plan, Snapshot},
    wire::Members,
};
use serde_json::{Map, Value};

use crate::message::Request;

const MARK: &str = "x-mcp-header";

/// An argument, and the header that repeats it.
#[derive(Debug, PartialEq)]
pub(super) struct Mirrored {
    pub(super) header: String,
    argument: Value,
}

impl Mirrored {
    /// The argument as text; one that is not there must not be in the header either.
    pub(super) fn text(&self) -> Option<String> {
        match &self.argument {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// Numbers are compared as such: `42` is `42.0`.
    pub(super) fn agrees(&self, header: &str, body: &str) -> bool {
        header == body || (self.argument.is_number() && whole(header) == whole(body))
    }
}

fn whole(number: &str) -> &str {
    match number.split_once('.') {
        Some((whole, rest)) if rest.bytes().all(|digit| digit == b'0') => whole,
        _ => number,
    }
}

/// What a call must repeat. Most tools mark nothing, and then nothing is parsed.
pub(super) fn expected(snapshot: &Snapshot, request: &Request) -> Vec<Mirrored> {
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
fn collect(schema: &Value, arguments: &Value, found: &mut Vec<Mirrored>) {
    let nothing = Map::new();
    for (key, property) in schema["properties"].as_object().unwrap_or(&nothing) {
        let argument = &arguments[key];
        if let Some(name) = property[MARK].as_str() {
            let header = format!("mcp-param-{}", name.to_lowercase());
            found.push(Mirrored { header, argument: argument.clone() });
        }
        collect(property, argument, found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn x_mcp_header_is_read_along_properties_alone() {
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "properties": { "n": { "x-mcp-header": "N" }, "gone": { "x-mcp-header": "Gone" } } },
            "list": { "items": { "x-mcp-header": "Never" } },
        } });
        let mut found = Vec::new();
        collect(&schema, &json!({ "region": "é", "deep": { "n": 42, "gone": null } }), &mut found);
        found.sort_by(|a, b| a.header.cmp(&b.header));
        let found: Vec<_> = found.iter().map(|mirrored| (&*mirrored.header, mirrored.text())).collect();
        let some = |text: &str| Some(text.to_owned());
        let expected =
            [("mcp-param-gone", None), ("mcp-param-n", some("42")), ("mcp-param-region", some("é"))];
        assert_eq!(found, expected);
    }

    #[test]
    fn mirrored_headers_compare_numbers_as_numbers() {
        let check = |argument: Value, header: &str, agrees: bool| {
            let mirrored = Mirrored { header: String::new(), argument };
            let body = mirrored.text().unwrap();
            assert_eq!(mirrored.agrees(header, &body), agrees, "{body} {header}");
        };
        check(json!(42), "42.0", true);
        check(json!(9_007_199_254_740_993_u64), "9007199254740992", false);
        check(json!("42"), "42.0", false);
        check(json!(true), "true", true);
    }
}
