//! Writes a plan into the text of a configuration file, and leaves the rest of it unchanged.

use plugbay_hosts::{
    jsonc::{self, EditError},
    own,
};
use serde_json::Value;

use super::Plan;

/// The keys that may hold the servers in a configuration file; the first is plugbay's own.
pub const CONTAINERS: [&str; 5] = ["mcpServers", "servers", "context_servers", "mcp_servers", "mcp"];

/// The beginning of a new file.
const NEW: &str = "\
// The configuration of plugbay. `plugbay schema` prints its JSON Schema; `plugbay list` tries every server.
{}
";

impl Plan {
    /// The text of the configuration file with the added servers; an empty text becomes a new file.
    pub fn apply(&self, text: &str) -> Result<String, EditError> {
        let text = if text.trim().is_empty() { NEW } else { text };
        let container = container(text)?;
        let members = self.added.iter().map(|added| (added.entry.name.clone(), own::value(&added.entry)));
        let members: Vec<_> = members.collect();
        if members.is_empty() { Ok(text.to_owned()) } else { jsonc::set_all(text, &[container], members) }
    }
}

/// The key that the file uses for its servers.
fn container(text: &str) -> Result<&'static str, EditError> {
    let root = jsonc::get(text, &[])?;
    let members = root.as_ref().and_then(Value::as_object);
    let used = members.and_then(|members| CONTAINERS.into_iter().find(|key| members.contains_key(*key)));
    Ok(used.unwrap_or(CONTAINERS[0]))
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Found, Origin, Present, plan,
            plan::tests::{process, remote},
        },
        *,
    };

    fn sample() -> Plan {
        let origin = Origin { host: "zed".into(), file: "/f".into(), project: None };
        let found = [process("a b", "npx -y a KEY=${KEY}"), remote("r", "https://r.example/mcp")];
        let found = found.map(|entry| Found { entry, origin: origin.clone() });
        plan(found.to_vec(), &Present::default())
    }

    #[test]
    fn a_new_file_has_a_comment_and_the_servers() {
        let expected = r#"// The configuration of plugbay. `plugbay schema` prints its JSON Schema; `plugbay list` tries every server.
{
  "mcpServers": {
    "a-b": {
      "command": "npx",
      "args": ["-y", "a"],
      "env": {
        "KEY": "${KEY}"
      }
    },
    "r": {
      "url": "https://r.example/mcp"
    }
  }
}
"#;
        assert_eq!(sample().apply("").unwrap(), expected);
    }

    #[test]
    fn the_comments_and_the_order_of_a_file_stay() {
        let text = "{\n  // mine\n  \"servers\": {\n    \"z\": { \"command\": \"z\" }, // last\n  },\n  \"mode\": \"all\" /* all */\n}\n";
        let edited = sample().apply(text).unwrap();
        let parts = [
            "// mine",
            "\"servers\"",
            "\"z\": { \"command\": \"z\" }",
            "\"a-b\"",
            "\"mode\": \"all\" /* all */",
        ];
        let places = parts.map(|part| edited.find(part).unwrap_or_else(|| panic!("{part} in {edited}")));
        assert!(places.is_sorted() && !edited.contains("mcpServers"), "{edited}");
        assert_eq!(Plan::default().apply(text).unwrap(), text);
    }

    #[test]
    fn a_file_that_is_no_object_is_not_changed() {
        assert!(sample().apply("[]").is_err());
        assert!(sample().apply("{ \"mcpServers\": 1 }").is_err());
        assert!(sample().apply("{").is_err());
    }
}
