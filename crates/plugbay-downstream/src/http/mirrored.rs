//! Arguments that a tool wants repeated in headers: its schema marks them with `x-mcp-header`.

use plugbay_core::{
    catalog::HeaderParameter,
    surface::{Plan, Snapshot},
};
use serde_json::Value;

use crate::message::Request;

/// An argument, and the header that repeats it.
#[derive(Debug, PartialEq)]
pub(super) struct Mirrored {
    pub(super) header: String,
    argument: Value,
}

impl Mirrored {
    /// The argument as text; a missing argument must be missing in the header too.
    pub(super) fn text(&self) -> Option<String> {
        match &self.argument {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// Whether header and body agree. Numbers are compared by value: `42` equals `42.0`.
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

/// The arguments that a call must repeat. Most tools mark none, and then nothing is parsed.
pub(super) fn expected(snapshot: &Snapshot, request: &Request) -> Vec<Mirrored> {
    let definition = request.subject().and_then(|name| definition(snapshot, &name));
    definition
        .map(|definition| mirrored(definition, request.arguments().unwrap_or_default()))
        .unwrap_or_default()
}

fn definition<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a [u8]> {
    let Plan::Forward(target) = snapshot.plan(name) else { return None };
    Some(&snapshot.catalog.get(&target.server)?.offer.tool(&target.tool)?.definition)
}

fn mirrored(definition: &[u8], arguments: &[u8]) -> Vec<Mirrored> {
    let mirrored = |parameter: HeaderParameter| {
        let argument = parameter.argument(arguments, &(0..arguments.len()));
        let argument = argument.and_then(|json| serde_json::from_slice(json).ok()).unwrap_or_default();
        Mirrored { header: parameter.header, argument }
    };
    HeaderParameter::marked(definition).into_iter().map(mirrored).collect()
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
        let definition = json!({ "inputSchema": schema }).to_string();
        let arguments = json!({ "region": "é", "deep": { "n": 42, "gone": null } }).to_string();
        let mut found = mirrored(definition.as_bytes(), arguments.as_bytes());
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
