//! Builds scripts for `scripted-server`. Values are raw JSON text, so that odd numbers and key orders reach
//! the server exactly as written in the test.

use std::fmt::{Display, Write as _};

/// A script, for example `Script::new().set("era", r#""modern""#).tool("echo", r#"{"echo":true}"#)`.
#[derive(Debug, Clone, Default)]
pub struct Script {
    fields: Vec<(String, String)>,
    behaviour: Vec<(String, String)>,
}

impl Script {
    pub fn new() -> Self {
        Self::default()
    }

    /// A server with an echo tool and a tool that returns its process id.
    pub fn friendly() -> Self {
        Self::new().tool("echo", r#"{"echo":true}"#).tool("pid", r#"{"pid":true}"#)
    }

    /// Sets a key of the script to raw JSON (a number, `true`, text with its quotes, a `json!` value).
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Display) -> Self {
        self.fields.retain(|(known, _)| known != key);
        self.fields.push((key.to_owned(), value.to_string()));
        self
    }

    /// Adds a tool with its behaviour, a raw JSON object.
    #[must_use]
    pub fn tool(mut self, name: &str, behaviour: impl Display) -> Self {
        self.behaviour.push((name.to_owned(), behaviour.to_string()));
        self
    }

    /// Adds a tool whose result is this raw JSON, byte for byte.
    #[must_use]
    pub fn result(self, name: &str, result: &str) -> Self {
        self.tool(name, format!(r#"{{"result":{result}}}"#))
    }

    pub fn text(&self) -> String {
        let mut text = "{".to_owned();
        for (key, value) in &self.fields {
            let _ = writeln!(text, "\"{key}\":{value},");
        }
        let behaviour: Vec<String> = self
            .behaviour
            .iter()
            .map(|(name, behaviour)| format!("{}:{behaviour}", serde_json::Value::from(name.as_str())))
            .collect();
        let _ = write!(text, "\"behaviour\":{{{}}}}}", behaviour.join(",\n"));
        text
    }
}
