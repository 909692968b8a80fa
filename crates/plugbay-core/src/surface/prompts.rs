//! The gateway's own prompts, which hosts show as slash commands.

use bytes::{BufMut, Bytes, BytesMut};

use super::BuiltinTool;

/// A prompt of the gateway itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinPrompt {
    Status,
    Activate,
    Deactivate,
    Search,
}

impl BuiltinPrompt {
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Activate => "activate",
            Self::Deactivate => "deactivate",
            Self::Search => "search",
        }
    }

    /// Whether a name is that of one of these, in any case of letters.
    pub(super) fn is_alike(name: &str) -> bool {
        let all = [Self::Status, Self::Activate, Self::Deactivate, Self::Search];
        all.iter().any(|own| own.name().eq_ignore_ascii_case(name))
    }

    pub fn definition(self) -> &'static str {
        match self {
            Self::Status => {
                r#"{"name":"status","title":"plugbay: status","description":"All servers: state, tools, tokens"}"#
            }
            Self::Activate => {
                r#"{"name":"activate","title":"plugbay: activate","description":"Show the tools of a server","arguments":[{"name":"name","description":"A server, or tools of one: github, github.get_*","required":true}]}"#
            }
            Self::Deactivate => {
                r#"{"name":"deactivate","title":"plugbay: deactivate","description":"Hide the tools of a server","arguments":[{"name":"name","description":"A server, tools of one, or * for all","required":true}]}"#
            }
            Self::Search => {
                r#"{"name":"search","title":"plugbay: search","description":"Find tools","arguments":[{"name":"query","description":"What you want to do","required":true}]}"#
            }
        }
    }

    /// The name of its one argument.
    pub fn argument(self) -> Option<&'static str> {
        match self {
            Self::Status => None,
            Self::Activate | Self::Deactivate => Some("name"),
            Self::Search => Some("query"),
        }
    }

    /// The text that asks a model to act. `wanted` is the argument; for the status prompt, the status; for
    /// the search prompt, the hits.
    pub fn text(self, wanted: &str) -> String {
        match self {
            Self::Status => format!("Tell me briefly how my MCP servers are:\n\n{wanted}"),
            Self::Activate | Self::Deactivate => {
                format!("Call {} with the name {wanted:?}, and tell me what came of it.", self.tool().name())
            }
            Self::Search => format!("Tell me briefly which MCP tool I want, if there is one:\n\n{wanted}"),
        }
    }

    /// The tool that does the same.
    fn tool(self) -> BuiltinTool {
        match self {
            Self::Status => BuiltinTool::Overview,
            Self::Activate => BuiltinTool::Activate,
            Self::Deactivate => BuiltinTool::Deactivate,
            Self::Search => BuiltinTool::Search,
        }
    }

    /// The prompts whose tools are among these.
    pub(super) fn among(own: &[BuiltinTool]) -> Vec<Self> {
        let all = [Self::Activate, Self::Deactivate, Self::Search, Self::Status];
        all.into_iter().filter(|prompt| own.contains(&prompt.tool())).collect()
    }
}

/// The list of our own prompts, then the servers'; `theirs` is a JSON array.
pub(super) fn listed(own: &[BuiltinPrompt], theirs: &Bytes) -> Bytes {
    if own.is_empty() {
        return theirs.clone();
    }
    let definitions: Vec<&str> = own.iter().map(|prompt| prompt.definition()).collect();
    let mut all = BytesMut::from("[");
    all.put_slice(definitions.join(",").as_bytes());
    let rest = theirs.get(1..).unwrap_or(b"]");
    if rest != b"]" {
        all.put_u8(b',');
    }
    all.put_slice(rest);
    all.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Item, ItemKind};

    #[test]
    fn definitions_are_what_they_are_called() {
        let all = BuiltinPrompt::among(&BuiltinTool::ALL);
        for prompt in &all {
            let item =
                Item::parse(Bytes::from_static(prompt.definition().as_bytes()), ItemKind::Prompt).unwrap();
            assert_eq!(item.key, prompt.name());
        }
        let theirs = Bytes::from_static(br#"[{"name":"x"}]"#);
        let both: Vec<serde_json::Value> = serde_json::from_slice(&listed(&all, &theirs)).unwrap();
        assert_eq!(both.len(), all.len() + 1);
        assert_eq!(listed(&[], &theirs), theirs);
        assert!(
            serde_json::from_slice::<serde_json::Value>(&listed(&all, &Bytes::from_static(b"[]"))).is_ok()
        );
    }
}
