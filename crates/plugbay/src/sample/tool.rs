//! A tool that answers from a table: each row that matches the arguments is put into a template.

use std::collections::HashMap;

use bytes::Bytes;
use plugbay_core::wire::write;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub(super) type Row = Map<String, Value>;

/// A tool as the data file describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    pub(super) name: String,
    description: String,
    /// The properties of its `inputSchema`.
    #[serde(default)]
    properties: Row,
    #[serde(default)]
    required: Vec<String>,
    /// Whether it is not read-only.
    #[serde(default)]
    changes: bool,
    /// The table that it reads; without one the answer is made from the arguments alone.
    table: Option<String>,
    /// A line of the answer: `{field}` is a field of the row, or an argument.
    #[serde(default)]
    answer: String,
    /// The answer if no row matches. Without it, that is an error.
    empty: Option<String>,
    /// The error if no row matches.
    missing: Option<String>,
    /// How many times it reports progress.
    #[serde(default)]
    steps: u32,
    /// The server writes this to stderr and exits when the tool is called.
    pub(super) crash: Option<String>,
}

impl Tool {
    pub(super) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": self.properties,
                "required": self.required,
                "additionalProperties": false,
            },
            "annotations": { "readOnlyHint": !self.changes },
        })
    }

    /// The progress notifications of a call whose client has sent a progress token.
    pub(super) fn progress(&self, token: &Value) -> Vec<Bytes> {
        let steps = if token.is_null() { 0 } else { self.steps };
        let notification = |step| {
            let params = json!({ "progressToken": token, "progress": step, "total": steps }).to_string();
            write::notification("notifications/progress", Some(params.as_bytes()))
        };
        (1..=steps).map(notification).collect()
    }

    /// The result of a call. Wrong arguments give an error that a model can read.
    pub(super) fn call(&self, arguments: &Value, tables: &HashMap<String, Vec<Row>>) -> Value {
        let none = Row::new();
        let outcome = match arguments {
            Value::Null => self.look_up(&none, tables),
            Value::Object(arguments) => self.look_up(arguments, tables),
            _ => Err("\"arguments\" must be an object".to_owned()),
        };
        let content = |text| json!([{ "type": "text", "text": text }]);
        match outcome {
            Ok(text) => json!({ "content": content(text) }),
            Err(text) => json!({ "content": content(text), "isError": true }),
        }
    }

    fn look_up(&self, arguments: &Row, tables: &HashMap<String, Vec<Row>>) -> Result<String, String> {
        self.check(arguments)?;
        let Some(table) = &self.table else { return Ok(fill(&self.answer, arguments)) };
        let rows = tables.get(table).into_iter().flatten().filter(|row| fits(row, arguments));
        let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(10);
        let rows: Vec<&Row> = rows.take(usize::try_from(limit).unwrap_or(10)).collect();
        if let Some(error) = rows.iter().find_map(|row| row.get("error")) {
            return Err(plain(error));
        }
        let lines: Vec<String> = rows.iter().map(|row| fill(&self.answer, row)).collect();
        match (&self.empty, &self.missing) {
            _ if !rows.is_empty() => Ok(lines.join("\n")),
            (Some(empty), _) => Ok(empty.clone()),
            (None, Some(missing)) => Err(fill(missing, arguments)),
            (None, None) => Err("a sample knows only a few answers, and none to this".to_owned()),
        }
    }

    fn check(&self, arguments: &Row) -> Result<(), String> {
        if let Some(missing) = self.required.iter().find(|key| !arguments.contains_key(*key)) {
            return Err(format!("\"{missing}\" is missing"));
        }
        for (key, value) in arguments {
            let schema = self.properties.get(key).ok_or_else(|| format!("\"{key}\" is not an argument"))?;
            let kind = schema["type"].as_str().unwrap_or_default();
            let is_right = match kind {
                "string" => value.is_string(),
                "integer" => value.is_i64(),
                "number" => value.is_number(),
                "boolean" => value.is_boolean(),
                _ => value.is_array(),
            };
            if !is_right {
                return Err(format!("\"{key}\" must be of type {kind}"));
            }
        }
        Ok(())
    }
}

/// Whether a row matches the arguments. The words of `query` may be anywhere in the row. An argument without
/// a field in the row, such as an order, is ignored.
fn fits(row: &Row, arguments: &Row) -> bool {
    arguments.iter().all(|(key, wanted)| match row.get(key).or_else(|| row.get(&format!("{key}s"))) {
        _ if key == "query" => {
            let whole = row.values().map(plain).collect::<Vec<_>>().join(" ").to_lowercase();
            plain(wanted).to_lowercase().split_whitespace().all(|word| whole.contains(word))
        }
        Some(Value::Array(items)) if !wanted.is_array() => items.contains(wanted),
        Some(value) => value == wanted || plain(value).eq_ignore_ascii_case(&plain(wanted)),
        None => true,
    })
}

fn fill(template: &str, fields: &Row) -> String {
    fields
        .iter()
        .fold(template.to_owned(), |text, (key, value)| text.replace(&format!("{{{key}}}"), &plain(value)))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_tool_is_described_and_its_templates_are_filled() {
        let servers: Value = serde_json::from_str(include_str!("servers.json")).unwrap();
        for server in servers.as_object().unwrap().values() {
            for tool in server["tools"].as_array().into_iter().flatten() {
                let Tool { name, description, properties, required, table, answer, .. } =
                    serde_json::from_value(tool.clone()).unwrap();
                assert!(description.ends_with('.') && description.len() > 40, "{name}");
                let described =
                    |schema: &Value| schema["description"].is_string() && schema["type"].is_string();
                assert!(properties.values().all(described), "{name}");
                assert!(required.iter().all(|key| properties.contains_key(key)), "{name}");
                let rows = match table {
                    Some(table) => serde_json::from_value(server["tables"][table].clone()).unwrap(),
                    None => vec![required.into_iter().map(|key| (key, Value::Null)).collect()],
                };
                for row in rows.iter().filter(|row: &&Row| !row.contains_key("error")) {
                    assert!(!fill(&answer, row).contains('{'), "{name}: {answer}");
                }
            }
        }
    }
}
