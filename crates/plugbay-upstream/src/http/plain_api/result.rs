//! Turns answers of the plain API into MCP results. An answer that already has that form stays unchanged.

use plugbay_core::wire::{Members, Span, elements};
use serde_json::{Value, json};

/// How much of an error's message is passed on, in characters.
const LONGEST_MESSAGE: usize = 2000;
/// The schema for a tool without one, because hosts reject a tool without a schema.
const ANY_OBJECT: &[u8] = br#"{"type":"object"}"#;
/// Other keys for `inputSchema`.
const SCHEMA_KEYS: [&str; 3] = ["input_schema", "parameters", "schema"];

/// Whether a body is a list of tools: an array, or an object with `tools`.
pub(super) fn is_tool_list(body: &[u8]) -> bool {
    match serde_json::from_slice(body) {
        Ok(Value::Array(_)) => true,
        Ok(Value::Object(object)) => object.get("tools").is_some_and(Value::is_array),
        _ => false,
    }
}

/// The result of `tools/list`.
pub(super) fn tool_list(body: &[u8]) -> Vec<u8> {
    let mut list = br#"{"tools":["#.to_vec();
    for (at, tool) in elements(body, &array(body)).into_iter().enumerate() {
        if at > 0 {
            list.push(b',');
        }
        list.extend(with_schema(&body[tool]));
    }
    list.extend(b"]}");
    list
}

fn array(body: &[u8]) -> Span {
    let start = body.len() - body.trim_ascii_start().len();
    let whole = start..body.trim_ascii_end().len();
    if body.get(start) == Some(&b'[') { whole } else { Members::find(body, &whole, "tools").unwrap_or(whole) }
}

fn with_schema(definition: &[u8]) -> Vec<u8> {
    let whole = 0..definition.len();
    let find = |key: &str| Members::find(definition, &whole, key);
    if !definition.ends_with(b"}") || find("inputSchema").is_some() {
        return definition.to_vec();
    }
    let other = SCHEMA_KEYS.iter().find_map(|key| find(key)).map(|span| &definition[span]);
    let schema = other.filter(|schema| schema.starts_with(b"{")).unwrap_or(ANY_OBJECT);
    let open = &definition[..definition.len() - 1];
    let comma: &[u8] = if open.trim_ascii_end().ends_with(b"{") { b"" } else { b"," };
    [open, comma, br#""inputSchema":"#, schema, b"}"].concat()
}

/// The result of `tools/call`.
pub(super) fn of_call(body: &[u8]) -> Vec<u8> {
    let body = body.trim_ascii();
    match serde_json::from_slice(body) {
        Ok(value) if is_result(&value) => body.to_vec(),
        Ok(Value::Object(object)) if object.get("result").is_some_and(is_result) => {
            let inner = Members::find(body, &(0..body.len()), "result");
            inner.map_or_else(|| body.to_vec(), |span| body[span].to_vec())
        }
        Ok(Value::Object(object)) if object.len() == 1 && object.contains_key("error") => {
            tool_error(&error_message(body).unwrap_or_default())
        }
        Ok(value) => wrapped(&value),
        Err(_) => wrapped(&Value::from(String::from_utf8_lossy(body))),
    }
}

fn is_result(value: &Value) -> bool {
    value.get("content").is_some_and(Value::is_array)
        || value.get("structuredContent").is_some_and(Value::is_object)
}

/// Wraps a value that is not a result: as text for a model, and as structured content if it is an object.
fn wrapped(value: &Value) -> Vec<u8> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut result = json!({ "content": [{ "type": "text", "text": text }] });
    if value.is_object() {
        result["structuredContent"] = value.clone();
    }
    result.to_string().into_bytes()
}

pub(super) fn tool_error(message: &str) -> Vec<u8> {
    let content = json!([{ "type": "text", "text": message }]);
    json!({ "content": content, "isError": true }).to_string().into_bytes()
}

/// The message of an error, in the forms that such APIs use.
pub(super) fn error_message(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let error = value.get("error");
    let places =
        [error.and_then(|error| error.get("message")), error, value.get("message"), value.get("detail")];
    let message = places.into_iter().flatten().find_map(Value::as_str)?;
    Some(message.chars().take(LONGEST_MESSAGE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_tool_list_is_an_array_or_an_object_with_tools() {
        let tool = r#"{"name":"a","inputSchema":{"type":"object","z":1.0},"x":"\u00e9"}"#;
        let list = format!(r#"{{"tools":[{tool}]}}"#);
        for body in
            [list.clone(), format!(" [ {tool} ]\n"), format!(r#"{{"etag":"1", "tools" : [{tool}] }}"#)]
        {
            assert!(is_tool_list(body.as_bytes()), "{body}");
            assert_eq!(text(tool_list(body.as_bytes())), list, "definitions stay as they are");
        }
        for body in ["", "[", "null", r#"{"tools":{}}"#, r#"{"error":"x"}"#, "<html>"] {
            assert!(!is_tool_list(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn a_tool_without_an_input_schema_gets_one() {
        let list = br#"[{"name":"a"},{"name":"b","parameters":{"type":"object","properties":{}}},{"name":"c","schema":7}]"#;
        let tools: Value = serde_json::from_slice(&tool_list(list)).unwrap();
        assert_eq!(tools["tools"][0]["inputSchema"], json!({"type":"object"}));
        assert_eq!(tools["tools"][1]["inputSchema"], json!({"type":"object","properties":{}}));
        assert_eq!(tools["tools"][2]["inputSchema"], json!({"type":"object"}));
    }

    #[test]
    fn a_call_result_stays_as_it_is_and_any_other_value_becomes_one() {
        let cases = [
            (r#"{"content":[],"z":1.0}"#, r#"{"content":[],"z":1.0}"#),
            (r#"{"result":{"content":[],"z":1.0}}"#, r#"{"content":[],"z":1.0}"#),
            (r#""done""#, r#"{"content":[{"text":"done","type":"text"}]}"#),
            (r#"{"n":1}"#, r#"{"content":[{"text":"{\"n\":1}","type":"text"}],"structuredContent":{"n":1}}"#),
            ("plain words", r#"{"content":[{"text":"plain words","type":"text"}]}"#),
            (r#"{"error":{"message":"no"}}"#, r#"{"content":[{"text":"no","type":"text"}],"isError":true}"#),
        ];
        for (body, result) in cases {
            let (got, wanted): (Value, Value) = (
                serde_json::from_slice(&of_call(body.as_bytes())).unwrap(),
                serde_json::from_str(result).unwrap(),
            );
            assert_eq!(got, wanted, "{body}");
        }
        assert_eq!(text(of_call(br#"{"content":[],"z":1.0}"#)), r#"{"content":[],"z":1.0}"#);
    }

    #[test]
    fn an_error_message_is_found_in_its_usual_places() {
        let places = [
            r#"{"error":{"code":"unknown_tool","message":"m"}}"#,
            r#"{"error":"m"}"#,
            r#"{"message":"m"}"#,
            r#"{"detail":"m"}"#,
        ];
        for body in places {
            assert_eq!(error_message(body.as_bytes()).as_deref(), Some("m"), "{body}");
        }
        assert_eq!(error_message(b"{}"), None);
    }
}
