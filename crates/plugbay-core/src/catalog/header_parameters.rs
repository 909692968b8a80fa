//! `x-mcp-header`: parameters that a tool wants repeated in HTTP headers, so that proxies can route calls unread.

use std::borrow::Cow;

use serde_json::Value;

use crate::wire::{Members, Span, string_value};

/// The keyword of a schema that asks for a header.
const KEYWORD: &str = "x-mcp-header";
/// Before the name that the schema gives, in lower case.
const PREFIX: &str = "mcp-param-";

/// A parameter of a tool that is repeated in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderParameter {
    /// The header's name in lower case: `mcp-param-region`.
    pub header: String,
    /// The keys that lead to the argument.
    path: Vec<String>,
}

impl HeaderParameter {
    /// Those of a tool, by its definition; `Err` says why the tool cannot be called over HTTP.
    pub fn of_tool(definition: &[u8]) -> Result<Vec<Self>, String> {
        if memchr::memmem::find(definition, KEYWORD.as_bytes()).is_none() {
            return Ok(Vec::new());
        }
        let definition: Value = serde_json::from_slice(definition).map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        let schema = definition.get("inputSchema").unwrap_or(&Value::Null);
        collect(schema, &mut Vec::new(), Reach::Certain, &mut found)?;
        for (at, Self { header, .. }) in found.iter().enumerate() {
            if found[..at].iter().any(|other| other.header == *header) {
                return Err(format!("two parameters ask for the header {header}"));
            }
        }
        Ok(found)
    }

    /// The argument in `arguments`, an object within `message`.
    pub fn argument<'a>(&self, message: &'a [u8], arguments: &Span) -> Option<&'a [u8]> {
        let find = |at: Span, key: &String| Members::find(message, &at, key);
        self.path.iter().try_fold(arguments.clone(), find).map(|span| &message[span])
    }

    /// An argument as header text, before it is encoded; null, objects and lists have none.
    pub fn text(argument: &[u8]) -> Option<Cow<'_, str>> {
        match argument.first()? {
            b'"' => string_value(argument),
            b'{' | b'[' | b'n' => None,
            _ => std::str::from_utf8(argument).ok().map(Cow::Borrowed),
        }
    }
}

/// Whether a part of a schema applies to every call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Certain,
    /// Within an alternative, a list or the like, where no header may be asked for.
    Uncertain,
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    reach: Reach,
    found: &mut Vec<HeaderParameter>,
) -> Result<(), String> {
    let Value::Object(members) = schema else {
        let items = schema.as_array().into_iter().flatten();
        return items.into_iter().try_for_each(|item| collect(item, path, Reach::Uncertain, found));
    };
    if let Some(wanted) = members.get(KEYWORD) {
        let header = header(members, wanted, path, reach)?;
        found.push(HeaderParameter { header, path: path.clone() });
    }
    for (key, value) in members {
        match (key.as_str(), value) {
            // Among the names of properties the keyword is a name like any other.
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    collect(property, path, reach, found)?;
                    path.pop();
                }
            }
            // Examples, not schemas.
            ("default" | "const" | "enum" | "examples", _) => {}
            (_, value) => collect(value, path, Reach::Uncertain, found)?,
        }
    }
    Ok(())
}

fn header(
    members: &serde_json::Map<String, Value>,
    wanted: &Value,
    path: &[String],
    reach: Reach,
) -> Result<String, String> {
    let at = path.join(".");
    if reach == Reach::Uncertain || path.is_empty() {
        return Err(format!("{KEYWORD} stands where it may not, at {at:?}"));
    }
    if !matches!(members.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
        return Err(format!("{KEYWORD} is allowed for strings, integers and booleans only, not at {at:?}"));
    }
    let is_token = |name: &&str| !name.is_empty() && name.bytes().all(is_token_byte);
    let name = wanted.as_str().filter(is_token);
    let name = name.ok_or_else(|| format!("{KEYWORD} at {at:?} is not a header name"))?;
    Ok(format!("{PREFIX}{}", name.to_ascii_lowercase()))
}

/// A byte that may stand in the name of an HTTP header.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_schema(schema: &str) -> Result<Vec<HeaderParameter>, String> {
        HeaderParameter::of_tool(format!(r#"{{"inputSchema":{schema}}}"#).as_bytes())
    }

    #[test]
    fn header_parameters_are_found_along_properties() {
        let schema = r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"},
            "deep":{"properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#;
        let arguments = r#"{"region":"\u00e9","deep":{"n":42}}"#.as_bytes();
        let mut found: Vec<_> = of_schema(schema)
            .unwrap()
            .into_iter()
            .map(|one| {
                let argument = one.argument(arguments, &(0..arguments.len())).unwrap();
                (one.header, HeaderParameter::text(argument).unwrap().into_owned())
            })
            .collect();
        found.sort();
        let expected = [("mcp-param-n", "42"), ("mcp-param-region", "é")];
        assert_eq!(found, expected.map(|(header, text)| (header.to_owned(), text.to_owned())));
    }

    #[test]
    fn header_parameters_that_cannot_be_sent_are_errors() {
        for schema in [
            r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}"#,
            r#"{"properties":{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}}"#,
            r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
            r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
        ] {
            assert!(of_schema(schema).is_err(), "{schema}");
        }
        assert_eq!(HeaderParameter::of_tool(br#"{"description":"about x-mcp-header"}"#), Ok(Vec::new()));
        assert_eq!(of_schema(r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#), Ok(Vec::new()));
    }
}
