//! What of a modern request is repeated in its headers, so that others can route it unread.

use std::{borrow::Cow, collections::HashMap};

use base64::{Engine, prelude::BASE64_STANDARD};
use plugbay_core::{
    era::Meta,
    wire::{Head, Kind, Members, Span, string_value},
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::peer::PROTOCOL_VERSION;

/// The headers of one message. A legacy one has none of its own.
#[derive(Debug, Default)]
pub(super) struct Headers {
    pub(super) map: HeaderMap,
    /// The answer comes only when the subscription ends.
    pub(super) lasting: bool,
}

/// The arguments of one tool that are repeated: header and path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mirror(Vec<(HeaderName, Vec<String>)>);

pub(super) fn headers(message: &[u8], mirrors: &HashMap<String, Mirror>) -> Headers {
    read(message, mirrors).unwrap_or_default()
}

fn read(message: &[u8], mirrors: &HashMap<String, Mirror>) -> Option<Headers> {
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
    /// What a tool's schema asks for; `Err` tells why the tool cannot be called by HTTP.
    pub(super) fn read(definition: &[u8]) -> Result<Option<Self>, String> {
        if memchr::memmem::find(definition, KEY.as_bytes()).is_none() {
            return Ok(None);
        }
        let definition: Value = serde_json::from_slice(definition).map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        let schema = definition.get("inputSchema").unwrap_or(&Value::Null);
        collect(schema, &mut Vec::new(), Reach::Object, &mut found)?;
        let mut seen = Vec::new();
        for (header, _) in &found {
            if seen.contains(&header) {
                return Err(format!("two parameters ask for the header {header}"));
            }
            seen.push(header);
        }
        Ok((!found.is_empty()).then_some(Self(found)))
    }

    fn add(&self, message: &[u8], params: &Span, map: &mut HeaderMap) {
        let Some(arguments) = Members::find(message, params, "arguments") else { return };
        for (header, path) in &self.0 {
            let value = path.iter().try_fold(arguments.clone(), |at, key| Members::find(message, &at, key));
            let text = value.and_then(|span| text(&message[span]).map(Cow::into_owned));
            if let Some(value) = text.as_deref().and_then(encoded) {
                map.insert(header.clone(), value);
            }
        }
    }
}

const KEY: &str = "x-mcp-header";

/// Where in a schema we are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// At an object schema that each call's arguments are sure to follow.
    Object,
    /// Inside something that may or may not apply: no header may be asked for there.
    Elsewhere,
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    reach: Reach,
    found: &mut Vec<(HeaderName, Vec<String>)>,
) -> Result<(), String> {
    let Value::Object(members) = schema else {
        if let Value::Array(items) = schema {
            items.iter().try_for_each(|item| collect(item, path, Reach::Elsewhere, found))?;
        }
        return Ok(());
    };
    // Among the names of properties the key is a property like any other.
    if let Some(wanted) = members.get(KEY) {
        let at = path.join(".");
        if reach == Reach::Elsewhere || path.is_empty() {
            return Err(format!("{KEY} stands where it may not, at {at:?}"));
        }
        if !matches!(members.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(format!("{KEY} is allowed for strings, integers and booleans only, not at {at:?}"));
        }
        let header = wanted
            .as_str()
            .filter(|name| !name.is_empty())
            .and_then(|name| HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()).ok());
        found.push((header.ok_or_else(|| format!("{KEY} at {at:?} is not a header name"))?, path.clone()));
    }
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    collect(property, path, reach, found)?;
                    path.pop();
                }
            }
            // Examples, not schemas.
            ("default" | "const" | "enum" | "examples", _) => {}
            (_, value) => collect(value, path, Reach::Elsewhere, found)?,
        }
    }
    Ok(())
}

/// A value as header text; nothing for what has none.
fn text(json: &[u8]) -> Option<Cow<'_, str>> {
    match json.first()? {
        b'"' => string_value(json),
        b'{' | b'[' | b'n' => None,
        _ => std::str::from_utf8(json).ok().map(Cow::Borrowed),
    }
}

/// As it is, or in base64 if a header could not carry it.
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
        for schema in [
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}}"#,
            r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
        ] {
            assert!(Mirror::read(format!(r#"{{"inputSchema":{schema}}}"#).as_bytes()).is_err(), "{schema}");
        }
        assert_eq!(Mirror::read(br#"{"description":"about x-mcp-header"}"#), Ok(None));
        // A property may bear that name.
        assert_eq!(
            Mirror::read(br#"{"inputSchema":{"properties":{"x-mcp-header":{"type":"string"}}}}"#),
            Ok(None)
        );
    }
}
