//! The gateway's own tools, as hosts see them.

use crate::{name, wire::Members};

/// A tool of the gateway itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinTool {
    Search,
    Describe,
    Execute,
    /// Like `Execute`, for tools that only read.
    Read,
    Status,
    Refresh,
    Activate,
    Deactivate,
    Overview,
    /// Lets a language model make the calls that a sentence asks for.
    NaturalLanguage,
    /// Reads parts of a stored result.
    ReadResult,
    /// Runs a script that calls tools.
    RunCode,
}

impl BuiltinTool {
    pub const ALL: [Self; 12] = [
        Self::Search,
        Self::Describe,
        Self::Execute,
        Self::Read,
        Self::Status,
        Self::Refresh,
        Self::Activate,
        Self::Deactivate,
        Self::Overview,
        Self::NaturalLanguage,
        Self::ReadResult,
        Self::RunCode,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "search_tools",
            Self::Describe => "describe_tool",
            Self::Execute => "execute_tool",
            Self::Read => "execute_read_tool",
            Self::Status => "proxy_status",
            Self::Refresh => "proxy_refresh",
            Self::Activate => "gateway_activate",
            Self::Deactivate => "gateway_deactivate",
            Self::Overview => "gateway_status",
            Self::NaturalLanguage => "natural_language",
            Self::ReadResult => "read_result",
            Self::RunCode => "run_code",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.name() == name)
    }

    /// The names of its parameters.
    pub fn parameters(self) -> Vec<String> {
        let definition = self.definition().as_bytes();
        let find = |span, key: &str| Members::find(definition, &span, key);
        let properties =
            find(0..definition.len(), "inputSchema").and_then(|schema| find(schema, "properties"));
        let members = properties.iter().flat_map(|properties| Members::of(definition, properties).flatten());
        members.map(|member| member.key.into_owned()).collect()
    }

    /// Whether a name means one of these tools, however it is written.
    pub(super) fn is_alike(name: &str) -> bool {
        let folded = name::folded(name);
        Self::ALL.iter().any(|own| own.name().chars().filter(|c| *c != '_').eq(folded.chars()))
    }

    /// The tool's definition, of which every word stands in every conversation. Hosts that hide tools behind
    /// a search of their own are asked to leave these in sight.
    pub fn definition(self) -> &'static str {
        match self {
            Self::Search => {
                r#"{"name":"search_tools","description":"Find tools by what you want to do.","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"},"server":{"type":"string"},"detail":{"type":"boolean"}}},"annotations":{"readOnlyHint":true},"_meta":{"anthropic/alwaysLoad":true}}"#
            }
            Self::Describe => {
                r#"{"name":"describe_tool","description":"Full schema of found tools, comma-separated.","inputSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"annotations":{"readOnlyHint":true},"_meta":{"anthropic/alwaysLoad":true}}"#
            }
            Self::Execute => {
                r#"{"name":"execute_tool","description":"Call a found tool.","inputSchema":{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"},"jq":{"type":"string"},"timeout":{"type":"number","description":"seconds"}},"required":["name"]},"_meta":{"anthropic/alwaysLoad":true}}"#
            }
            Self::Read => {
                r#"{"name":"execute_read_tool","description":"Call a found tool marked [reads].","inputSchema":{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"},"jq":{"type":"string"},"timeout":{"type":"number","description":"seconds"}},"required":["name"]},"annotations":{"readOnlyHint":true},"_meta":{"anthropic/alwaysLoad":true}}"#
            }
            Self::Status => {
                r#"{"name":"proxy_status","description":"State of all servers.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#
            }
            Self::Refresh => {
                r#"{"name":"proxy_refresh","description":"Ask all servers again what they have.","inputSchema":{"type":"object"}}"#
            }
            Self::Activate => {
                r#"{"name":"gateway_activate","description":"Show the tools of servers, or single ones (\"github, jira.get_*\"), from the next turn on.","inputSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"annotations":{"readOnlyHint":true},"_meta":{"anthropic/alwaysLoad":true}}"#
            }
            Self::Deactivate => {
                r#"{"name":"gateway_deactivate","description":"Hide them again. \"*\" hides all.","inputSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"annotations":{"readOnlyHint":true},"_meta":{"anthropic/alwaysLoad":true}}"#
            }
            Self::Overview => {
                r#"{"name":"gateway_status","description":"All servers: state, tools, tokens.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"anthropic/alwaysLoad":true}}"#
            }
            Self::NaturalLanguage => {
                r#"{"name":"natural_language","description":"Say in words what you want; a language model calls the tools for it and reports.","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"server":{"type":"string"}},"required":["query"]}}"#
            }
            Self::ReadResult => {
                r#"{"name":"read_result","description":"Read of a stored result: values by jq, lines (\"10-50\"), matching lines (grep), or a page.","inputSchema":{"type":"object","properties":{"result":{"type":"string"},"jq":{"type":"string"},"lines":{"type":"string"},"grep":{"type":"string"},"page":{"type":"integer"},"budget":{"type":"integer","description":"tokens"}},"required":["result"]},"annotations":{"readOnlyHint":true}}"#
            }
            Self::RunCode => {
                r#"{"name":"run_code","description":"Run JavaScript that makes several calls and returns only what you need. `await tools.server.tool({…})` gives the value or throws ToolError; Promise.all works; also search(query), describe(name), help(), input, results[\"r_…\"], console.log. No network, files or timers.","inputSchema":{"type":"object","properties":{"code":{"type":"string"},"input":{},"resume":{"type":"string"},"dry_run":{"type":"boolean"}}},"_meta":{"anthropic/alwaysLoad":true}}"#
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::catalog::Tool;

    #[test]
    fn definitions_are_what_they_are_called() {
        for own in BuiltinTool::ALL {
            let definition = Bytes::from_static(own.definition().as_bytes());
            let tool = Tool::parse(definition.clone()).unwrap();
            assert_eq!((tool.name.as_str(), BuiltinTool::named(&tool.name)), (own.name(), Some(own)));
            assert!(serde_json::from_slice::<serde_json::Value>(&definition).is_ok());
            assert!(Members::find(&definition, &(0..definition.len()), "inputSchema").is_some());
        }
        assert_eq!(BuiltinTool::named("search"), None);
        assert_eq!(BuiltinTool::Search.parameters(), ["query", "limit", "server", "detail"]);
        assert!(BuiltinTool::Status.parameters().is_empty());
    }
}
