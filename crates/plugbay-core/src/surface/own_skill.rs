//! The gateway's own skill, which teaches a model to use the gateway's tools.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::skill;

/// A skill of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSkill {
    pub uri: String,
    pub text: String,
    pub name: String,
    pub description: String,
    /// The entry in the results of `skills/list` and `skills/get`.
    pub entry: Bytes,
}

impl OwnSkill {
    /// Reads the file's `text`: frontmatter with one plain value a line, with a name and a description, and a
    /// body. `None` if it has another form.
    pub fn new(text: &str) -> Option<Self> {
        let (fields, _) = text.strip_prefix("---\n")?.split_once("\n---\n")?;
        let fields: Map<String, Value> = fields
            .lines()
            .map(|line| line.split_once(": ").map(|(key, value)| (key.to_owned(), value.into())))
            .collect::<Option<_>>()?;
        let field = |key| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        let (name, description) = (field("name")?, field("description")?);
        let uri = format!("skill://{name}{}", skill::FILE);
        let digest = format!("sha256:{:x}", Sha256::digest(text));
        let file = json!({ "uri": uri, "digest": digest, "size": text.len() });
        let entry = json!({ "uri": uri, "frontmatter": fields, "resources": [file] });
        Some(Self { uri, text: text.to_owned(), name, description, entry: Bytes::from(entry.to_string()) })
    }

    /// The URI of its directory.
    pub fn root(&self) -> &str {
        skill::root(&self.uri).unwrap_or_default()
    }

    /// The `contents` of its file.
    pub fn contents(&self) -> Value {
        json!([{ "uri": self.uri, "mimeType": "text/markdown", "text": self.text }])
    }

    /// The `resources` in its directory.
    pub fn directory(&self) -> Value {
        json!([{ "uri": self.uri, "name": "SKILL.md", "mimeType": "text/markdown" }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_of_one_file_has_its_digest_and_its_frontmatter() {
        let own = OwnSkill::new("---\nname: x\ndescription: Does: y\n---\n\nBody\n---\n").unwrap();
        let entry: Value = serde_json::from_slice(&own.entry).unwrap();
        let digest = format!("sha256:{:x}", Sha256::digest(own.text.as_bytes()));
        let file = json!({ "uri": "skill://x/SKILL.md", "digest": digest, "size": 47 });
        let frontmatter = json!({ "name": "x", "description": "Does: y" });
        let expected =
            json!({ "uri": "skill://x/SKILL.md", "frontmatter": frontmatter, "resources": [file] });
        assert_eq!(entry, expected);
        assert_eq!(own.root(), "skill://x");
        for none in ["", "---\nname: x\n---\n", "---\nname: x\ndescription: y\ntools:\n  - a\n---\n"] {
            assert_eq!(OwnSkill::new(none), None, "{none}");
        }
    }
}
