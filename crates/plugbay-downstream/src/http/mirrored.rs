//! Arguments that a tool wants repeated in headers: what its schema marks with `x-mcp-header`.

use std::borrow::Cow;

use plugbay_core::{
    catalog::HeaderParameter,
    surface::{Plan, Snapshot},
};

use crate::message::Request;

/// An argument, and the header that repeats it.
#[derive(Debug, PartialEq)]
pub(super) struct Mirrored {
    pub(super) header: String,
    text: Option<String>,
    is_number: bool,
}

impl Mirrored {
    fn of(parameter: HeaderParameter, arguments: &[u8]) -> Self {
        let argument = parameter.argument(arguments, &(0..arguments.len()));
        let text = argument.and_then(HeaderParameter::text).map(Cow::into_owned);
        let is_number = argument.is_some_and(|json| matches!(json.first(), Some(b'-' | b'0'..=b'9')));
        Self { header: parameter.header, text, is_number }
    }

    /// The argument as text; one that is not there must not be in the header either.
    pub(super) fn text(&self) -> Option<String> {
        self.text.clone()
    }

    /// Numbers are compared as such: `42` is `42.0`.
    pub(super) fn agrees(&self, header: &str, body: &str) -> bool {
        header == body || (self.is_number && whole(header) == whole(body))
    }
}

fn whole(number: &str) -> &str {
    match number.split_once('.') {
        Some((whole, rest)) if rest.bytes().all(|digit| digit == b'0') => whole,
        _ => number,
    }
}

/// What a call must repeat. A tool that cannot be called over HTTP demands nothing.
pub(super) fn expected(snapshot: &Snapshot, request: &Request) -> Vec<Mirrored> {
    let definition = request.subject().and_then(|name| definition(snapshot, &name));
    let parameters = definition.and_then(|definition| HeaderParameter::of_tool(definition).ok());
    let arguments = request.arguments().unwrap_or_default();
    parameters.into_iter().flatten().map(|parameter| Mirrored::of(parameter, arguments)).collect()
}

fn definition<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a [u8]> {
    let Plan::Forward(target) = snapshot.listing.plan(name) else { return None };
    Some(&snapshot.catalog.get(&target.server)?.offer.tool(&target.tool)?.definition)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mirrored(arguments: &str) -> Vec<Mirrored> {
        let definition = json!({ "inputSchema": { "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "properties": {
                "n": { "type": "integer", "x-mcp-header": "N" },
                "gone": { "type": "boolean", "x-mcp-header": "Gone" },
            } },
        } } });
        let parameters = HeaderParameter::of_tool(definition.to_string().as_bytes()).unwrap();
        parameters.into_iter().map(|parameter| Mirrored::of(parameter, arguments.as_bytes())).collect()
    }

    #[test]
    fn x_mcp_header_is_read_along_properties_alone() {
        let mut found = mirrored(r#"{"region":"é","deep":{"n":42,"gone":null}}"#);
        found.sort_by(|a, b| a.header.cmp(&b.header));
        let found: Vec<_> = found.iter().map(|mirrored| (&*mirrored.header, mirrored.text())).collect();
        let some = |text: &str| Some(text.to_owned());
        let expected =
            [("mcp-param-gone", None), ("mcp-param-n", some("42")), ("mcp-param-region", some("é"))];
        assert_eq!(found, expected);
    }

    #[test]
    fn mirrored_headers_compare_numbers_as_numbers() {
        let check = |argument: &str, header: &str, agrees: bool| {
            let all = mirrored(&format!(r#"{{"region":{argument}}}"#));
            let mirrored = all.iter().find(|one| one.header == "mcp-param-region").unwrap();
            let body = mirrored.text().unwrap();
            assert_eq!(mirrored.agrees(header, &body), agrees, "{body} {header}");
        };
        check("42", "42.0", true);
        check("9007199254740993", "9007199254740992", false);
        check("\"42\"", "42.0", false);
        check("true", "true", true);
    }
}
