//! The parts of a modern request that are repeated in its headers, so that proxies can route it without
//! reading it.

use std::{borrow::Cow, collections::HashMap};

use base64::{Engine, prelude::BASE64_STANDARD};
use plugbay_core::{
    catalog::HeaderParameter,
    era::Meta,
    wire::{Head, Kind, Members, Span, string_value},
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::peer::PROTOCOL_VERSION;

/// The headers for one message. A legacy message has none.
#[derive(Debug, Default)]
pub(super) struct Headers {
    pub(super) map: HeaderMap,
    /// Whether the answer comes only when the subscription ends.
    pub(super) lasting: bool,
}

/// The parameters of one tool that are repeated in headers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mirror(Vec<(HeaderName, HeaderParameter)>);

/// The tools that have a [`Mirror`], by their names.
pub(crate) type Mirrors = HashMap<String, Mirror>;

pub(super) fn headers(message: &[u8], mirrors: &Mirrors) -> Headers {
    read(message, mirrors).unwrap_or_default()
}

fn read(message: &[u8], mirrors: &Mirrors) -> Option<Headers> {
    let head = Head::read(message).ok()?;
    let (Kind::Request { method, .. } | Kind::Notification { method }) = head.kind else { return None };
    let params = head.payload?;
    let meta = Meta::read(message, &Members::find(message, &params, "_meta")?);
    let version = string_value(&message[meta.version?])?.into_owned();
    let method = std::str::from_utf8(&message[method]).ok()?;

    let mut map = HeaderMap::new();
    map.insert(PROTOCOL_VERSION, HeaderValue::from_str(&version).ok()?);
    map.insert("mcp-method", HeaderValue::from_str(method).ok()?);
    if let Some(name) = name(message, method, &params) {
        map.insert("mcp-name", encoded(&name)?);
        if let ("tools/call", Some(mirror)) = (method, mirrors.get(&*name)) {
            mirror.add(message, &params, &mut map);
        }
    }
    Some(Headers { map, lasting: method == "subscriptions/listen" })
}

fn name<'a>(message: &'a [u8], method: &str, params: &Span) -> Option<Cow<'a, str>> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    string_value(&message[Members::find(message, params, key)?])
}

impl Mirror {
    /// The header parameters in a tool's schema; `Err` says why the tool cannot be called over HTTP.
    pub(crate) fn read(definition: &[u8]) -> Result<Option<Self>, String> {
        let name = |one: HeaderParameter| Some((HeaderName::from_bytes(one.header.as_bytes()).ok()?, one));
        let found: Vec<_> = HeaderParameter::of_tool(definition)?.into_iter().filter_map(name).collect();
        Ok((!found.is_empty()).then_some(Self(found)))
    }

    fn add(&self, message: &[u8], params: &Span, map: &mut HeaderMap) {
        let Some(arguments) = Members::find(message, params, "arguments") else { return };
        for (header, parameter) in &self.0 {
            let text = parameter.argument(message, &arguments).and_then(HeaderParameter::text);
            if let Some(value) = text.as_deref().and_then(encoded) {
                map.insert(header.clone(), value);
            }
        }
    }
}

/// The text as a header value; in Base64 if a header cannot contain it as it is.
fn encoded(text: &str) -> Option<HeaderValue> {
    let plain = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain {
        return HeaderValue::from_str(text).ok();
    }
    HeaderValue::from_str(&format!("=?base64?{}?=", BASE64_STANDARD.encode(text))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tool: &str, arguments: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}}}}"#
        )
    }

    fn sent(message: &str, schema: &str) -> Vec<(String, String)> {
        let mirror = Mirror::read(format!(r#"{{"inputSchema":{schema}}}"#).as_bytes()).unwrap();
        let mirrors = mirror.map(|mirror| ("t".to_owned(), mirror)).into_iter().collect();
        let map = headers(message.as_bytes(), &mirrors).map;
        map.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
    }

    const SCHEMA: &str = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
        "deep":{"type":"object","properties":{"count":{"type":"integer","x-mcp-header":"Count"}}}}}"#;

    #[test]
    fn a_modern_call_is_repeated_in_headers() {
        let sent = sent(&request("t", r#"{"region":"Köln","deep":{"count":42}}"#), SCHEMA);
        for (name, value) in [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "t"),
            ("mcp-param-region", "=?base64?S8O2bG4=?="),
            ("mcp-param-count", "42"),
        ] {
            assert!(sent.contains(&(name.to_owned(), value.to_owned())), "{name} in {sent:?}");
        }
        assert_eq!(sent.len(), 5);
    }

    #[test]
    fn a_request_about_a_task_names_it() {
        let message =
            request("t", "{}").replace("tools/call", "tasks/get").replace(r#""name""#, r#""taskId""#);
        assert!(sent(&message, "{}").contains(&("mcp-name".to_owned(), "t".to_owned())));
    }

    #[test]
    fn what_is_absent_or_null_has_no_header() {
        assert_eq!(sent(&request("t", r#"{"region":null,"deep":{}}"#), SCHEMA).len(), 3);
    }

    #[test]
    fn a_legacy_message_has_no_headers_of_its_own() {
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
        assert_eq!(sent(message, SCHEMA), []);
    }

    #[test]
    fn values_that_a_header_cannot_carry_are_encoded() {
        for (text, expected) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encoded(text).unwrap(), expected);
        }
    }

    #[test]
    fn schemas_that_ask_for_the_impossible_are_refused() {
        let impossible = br#"{"inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}"#;
        assert!(Mirror::read(impossible).is_err());
        assert_eq!(Mirror::read(br#"{"description":"about x-mcp-header"}"#), Ok(None));
    }
}
