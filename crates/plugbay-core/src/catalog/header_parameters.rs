//! `x-mcp-header`: parameters that a tool wants repeated in HTTP headers, so that proxies can route calls unread.

use std::{borrow::Cow, collections::HashSet};

use serde_json::Value;

use crate::wire::{Members, Span, string_value};

/// The keyword of a schema that asks for a header.
const KEYWORD: &str = "x-mcp-header";
/// The prefix of the name that the schema gives, in lower case.
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
    /// The parameters that a client sends in headers, by a tool's definition; `Err` says why the tool cannot
    /// be called over HTTP.
    pub fn of_tool(definition: &[u8]) -> Result<Vec<Self>, String> {
        let Marks { found, problem } = Marks::read(definition)?;
        if let Some(problem) = problem {
            return Err(problem);
        }
        let mut seen = HashSet::new();
        if let Some(Self { header, .. }) = found.iter().find(|one| !seen.insert(&one.header)) {
            return Err(format!("two parameters ask for the header {header}"));
        }
        Ok(found)
    }

    /// The parameters that a gateway compares with headers: every mark that a chain of `properties` leads to.
    /// A mark that is not valid counts too, because a proxy may have routed the call by it.
    pub fn marked(definition: &[u8]) -> Vec<Self> {
        Marks::read(definition).map(|marks| marks.found).unwrap_or_default()
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

/// All marks of one definition.
#[derive(Default)]
struct Marks {
    /// The marks that a chain of `properties` leads to.
    found: Vec<HeaderParameter>,
    /// The first mark that is not valid.
    problem: Option<String>,
}

impl Marks {
    fn read(definition: &[u8]) -> Result<Self, String> {
        let mut marks = Self::default();
        if memchr::memmem::find(definition, KEYWORD.as_bytes()).is_some() {
            let definition: Value = serde_json::from_slice(definition).map_err(|error| error.to_string())?;
            let schema = definition.get("inputSchema").unwrap_or(&Value::Null);
            marks.collect(schema, &mut Vec::new(), Reach::Certain);
        }
        Ok(marks)
    }

    fn collect(&mut self, schema: &Value, path: &mut Vec<String>, reach: Reach) {
        let Value::Object(members) = schema else {
            let items = schema.as_array().into_iter().flatten();
            return items.for_each(|item| self.collect(item, path, Reach::Uncertain));
        };
        if let Some(wanted) = members.get(KEYWORD) {
            self.problem = self.problem.take().or_else(|| problem(members, wanted, path, reach));
            if let (Some(name), Reach::Certain, false) = (wanted.as_str(), reach, path.is_empty()) {
                let header = format!("{PREFIX}{}", name.to_lowercase());
                self.found.push(HeaderParameter { header, path: path.clone() });
            }
        }
        for (key, value) in members {
            match (key.as_str(), value) {
                // Among the names of properties the keyword is a name like any other.
                ("properties", Value::Object(properties)) => {
                    for (name, property) in properties {
                        path.push(name.clone());
                        self.collect(property, path, reach);
                        path.pop();
                    }
                }
                // Examples, not schemas.
                ("default" | "const" | "enum" | "examples", _) => {}
                (_, value) => self.collect(value, path, Reach::Uncertain),
            }
        }
    }
}

/// Why a client cannot send the header that is asked for.
fn problem(
    members: &serde_json::Map<String, Value>,
    wanted: &Value,
    path: &[String],
    reach: Reach,
) -> Option<String> {
    let at = path.join(".");
    if reach == Reach::Uncertain || path.is_empty() {
        return Some(format!("{KEYWORD} stands where it may not, at {at:?}"));
    }
    if !matches!(members.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
        return Some(format!("{KEYWORD} is allowed for strings, integers and booleans only, not at {at:?}"));
    }
    let is_token = wanted.as_str().is_some_and(|name| !name.is_empty() && name.bytes().all(is_token_byte));
    (!is_token).then(|| format!("{KEYWORD} at {at:?} is not a header name"))
}

/// Whether a byte may stand in the name of an HTTP header.
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
        let untyped = br#"{"inputSchema":{"properties":{"a":{"x-mcp-header":"A"}}}}"#;
        assert!(HeaderParameter::of_tool(untyped).is_err());
        assert_eq!(HeaderParameter::marked(untyped)[0].header, "mcp-param-a", "compared all the same");
        assert_eq!(HeaderParameter::of_tool(br#"{"description":"about x-mcp-header"}"#), Ok(Vec::new()));
        assert_eq!(of_schema(r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#), Ok(Vec::new()));
    }
}
