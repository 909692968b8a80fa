//! Search mode: three tools in place of all; the others are found, described and called through them.

use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};

use super::{Listing, Target, all};
use crate::{
    catalog::{Catalog, Tool},
    search::{Engine, Explanation, Table},
};

/// A tool of the gateway itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    Search,
    Describe,
    Execute,
    Status,
    Refresh,
}

impl Own {
    pub const ALL: [Self; 5] = [Self::Search, Self::Describe, Self::Execute, Self::Status, Self::Refresh];
    /// Those that are always shown; the others are for whoever asks for them in the configuration.
    pub const SHOWN: [Self; 3] = [Self::Search, Self::Describe, Self::Execute];

    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "search_tools",
            Self::Describe => "describe_tool",
            Self::Execute => "execute_tool",
            Self::Status => "proxy_status",
            Self::Refresh => "proxy_refresh",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.name() == name)
    }

    /// Every word of it stands in every conversation. Hosts that hide tools behind a search of their own
    /// are asked to leave these in sight.
    pub fn definition(self) -> &'static str {
        match self {
            Self::Search => {
                r#"{"name":"search_tools","description":"Find tools by what you want to do.","inputSchema":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"},"server":{"type":"string"},"detail":{"type":"boolean"}}},"annotations":{"readOnlyHint":true},"_meta":{"anthropic/alwaysLoad":true}}"#
            }
            Self::Describe => {
                r#"{"name":"describe_tool","description":"Full schema of found tools.","inputSchema":{"type":"object","properties":{"name":{"type":["string","array"],"items":{"type":"string"}}},"required":["name"]},"annotations":{"readOnlyHint":true},"_meta":{"anthropic/alwaysLoad":true}}"#
            }
            Self::Execute => {
                r#"{"name":"execute_tool","description":"Call a found tool.","inputSchema":{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"},"timeout":{"type":"number","description":"seconds"}},"required":["name"]},"_meta":{"anthropic/alwaysLoad":true}}"#
            }
            Self::Status => {
                r#"{"name":"proxy_status","description":"State of all servers.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}"#
            }
            Self::Refresh => {
                r#"{"name":"proxy_refresh","description":"Ask all servers again what they have.","inputSchema":{"type":"object"}}"#
            }
        }
    }
}

/// Finds tools in one snapshot. The index is made when it is first needed, or before, by whoever has time.
#[derive(Debug)]
pub struct Finder {
    catalog: Arc<Catalog>,
    listing: Arc<Listing>,
    index: OnceLock<Index>,
}

#[derive(Debug)]
struct Index {
    engine: Engine,
    /// In the order of the engine's numbers.
    tools: Vec<Found>,
}

/// A tool under the name that it is called by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub exposed: String,
    pub target: Target,
    pub tool: Tool,
}

impl Found {
    /// Its definition as a host gets it: under the name that it is called by.
    pub fn definition(&self) -> Bytes {
        let mut definition = BytesMut::new();
        all::write_definition(&mut definition, &self.tool, &self.exposed, None);
        definition.freeze()
    }
}

impl Finder {
    pub(super) fn new(catalog: Arc<Catalog>, listing: Arc<Listing>) -> Self {
        Self { catalog, listing, index: OnceLock::new() }
    }

    /// Makes the index, if nobody has.
    pub fn prepare(&self, table: impl FnOnce() -> Option<Arc<Table>>) {
        self.index(table);
    }

    pub fn is_ready(&self) -> bool {
        self.index.get().is_some()
    }

    /// The best tools for a query with their scores, best first; of one server, if it is named.
    pub fn search(
        &self,
        query: &str,
        limit: usize,
        server: Option<&str>,
        table: impl FnOnce() -> Option<Arc<Table>>,
    ) -> Vec<(&Found, f32)> {
        let index = self.index(table);
        // A server's own are spread among the others'.
        let wanted = if server.is_some() { index.tools.len() } else { limit };
        let hits = index.engine.search(query, wanted).into_iter();
        let found = hits.map(|hit| (&index.tools[hit.tool as usize], hit.score));
        found
            .filter(|(found, _)| server.is_none_or(|server| found.target.server.as_str() == server))
            .take(limit)
            .collect()
    }

    /// The tools of one server, in the order of their names.
    pub fn of_server(
        &self,
        server: &str,
        limit: usize,
        table: impl FnOnce() -> Option<Arc<Table>>,
    ) -> Vec<(&Found, f32)> {
        let own = self.index(table).tools.iter().filter(|found| found.target.server.as_str() == server);
        own.map(|found| (found, 0.0)).take(limit).collect()
    }

    /// What was found in which words, and what meaning added.
    pub fn explain(
        &self,
        query: &str,
        exposed: &str,
        table: impl FnOnce() -> Option<Arc<Table>>,
    ) -> Option<Explanation> {
        let index = self.index(table);
        let at = index.tools.binary_search_by(|found| found.exposed.as_str().cmp(exposed)).ok()?;
        let found = &index.tools[at];
        let number = u32::try_from(at).ok()?;
        Some(index.engine.explain(query, number, (found.target.server.as_str(), &found.tool)))
    }

    /// Every tool that can be called, listed or behind others, in the order of their names.
    pub fn tools(&self) -> Vec<Found> {
        let listed = self.listing.iter();
        let mut tools: Vec<Found> =
            listed.filter_map(|(exposed, target)| found(&self.catalog, exposed, target)).collect();
        tools.sort_by(|a, b| a.exposed.cmp(&b.exposed));
        tools
    }

    pub fn get(&self, exposed: &str) -> Option<Found> {
        found(&self.catalog, exposed, self.listing.target(exposed)?)
    }

    fn index(&self, table: impl FnOnce() -> Option<Arc<Table>>) -> &Index {
        self.index.get_or_init(|| {
            let tools = self.tools();
            let borrowed: Vec<(&str, &Tool)> =
                tools.iter().map(|found| (found.target.server.as_str(), &found.tool)).collect();
            Index { engine: Engine::build(&borrowed, table()), tools }
        })
    }
}

fn found(catalog: &Catalog, exposed: &str, target: &Target) -> Option<Found> {
    let tool = catalog.get(&target.server)?.offer.tool(&target.tool)?;
    let tool = match &target.description {
        Some(text) => described(tool, text)?,
        None => tool.clone(),
    };
    Some(Found { exposed: exposed.to_owned(), target: target.clone(), tool })
}

/// The tool with the description that the user wants it to have.
fn described(tool: &Tool, text: &str) -> Option<Tool> {
    let mut definition = BytesMut::new();
    all::write_definition(&mut definition, tool, &tool.name, Some(text));
    Tool::parse(definition.freeze())
}

/// The definitions of the gateway's own tools, comma-separated.
pub(super) fn definitions(admin: bool) -> Bytes {
    let shown = if admin { &Own::ALL[..] } else { &Own::SHOWN[..] };
    let definitions: Vec<&str> = shown.iter().map(|own| own.definition()).collect();
    Bytes::from(definitions.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Members;

    #[test]
    fn definitions_are_what_they_are_called() {
        for own in Own::ALL {
            let definition = Bytes::from_static(own.definition().as_bytes());
            let tool = Tool::parse(definition.clone()).unwrap();
            assert_eq!((tool.name.as_str(), Own::named(&tool.name)), (own.name(), Some(own)));
            assert!(serde_json::from_slice::<serde_json::Value>(&definition).is_ok());
            assert!(Members::find(&definition, &(0..definition.len()), "inputSchema").is_some());
        }
        assert_eq!(Own::named("search"), None);
    }
}
