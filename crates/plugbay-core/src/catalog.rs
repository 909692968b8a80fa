//! What every server offers: immutable, so that readers share it without a lock.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;

use crate::{
    era::Era,
    name::ServerName,
    wire::{Framing, Members, Span, elements, string_value},
};

/// More tools than this from one server are not taken.
pub const TOOL_LIMIT: usize = 10_000;

/// All servers at one moment. Changes make a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    servers: BTreeMap<ServerName, Arc<Entry>>,
}

/// What is known of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub offer: Arc<Offer>,
    pub freshness: Freshness,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Listed by the server since this process began.
    Fresh,
    /// From the cache, or the server has failed since.
    Stale,
}

/// What one server said it is and has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub manners: Manners,
    /// Its `serverInfo`, as it came.
    pub info: Option<Bytes>,
    pub instructions: Option<String>,
    /// Sorted by name: some servers list in a new order each time.
    pub tools: Vec<Tool>,
}

/// A tool: its definition as the server wrote it, and where in it the parts are that we may replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    pub definition: Bytes,
    /// The value at `name`, with its quotes.
    pub name_span: Span,
    /// The value at `description`.
    pub description_span: Option<Span>,
}

/// How a server wants to be spoken to: learnt once, remembered with its offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Manners {
    pub era: Era,
    pub framing: Framing,
    /// Over HTTP: by the transport of 2024-11-05.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sse: bool,
}

impl From<Era> for Manners {
    fn from(era: Era) -> Self {
        Self { era, framing: Framing::Newline, sse: false }
    }
}

/// Something that happened to the catalogue.
#[derive(Debug, Clone)]
pub enum Change {
    /// The server has answered with all it has.
    Listed(ServerName, Arc<Offer>),
    /// From the cache: known, but not seen yet.
    Remembered(ServerName, Arc<Offer>),
    /// The server failed; what it offered stays, marked stale.
    Failed(ServerName),
    /// It is no longer configured, or is another program now.
    Forgotten(ServerName),
}

impl Catalog {
    #[must_use]
    pub fn apply(&self, change: Change) -> Self {
        let mut servers = self.servers.clone();
        match change {
            Change::Listed(name, offer) => {
                servers.insert(name, Arc::new(Entry { offer, freshness: Freshness::Fresh }));
            }
            Change::Remembered(name, offer) => {
                servers.insert(name, Arc::new(Entry { offer, freshness: Freshness::Stale }));
            }
            Change::Failed(name) => {
                if let Some(entry) = servers.get_mut(&name) {
                    let offer = Arc::clone(&entry.offer);
                    *entry = Arc::new(Entry { offer, freshness: Freshness::Stale });
                }
            }
            Change::Forgotten(name) => {
                servers.remove(&name);
            }
        }
        Self { servers }
    }

    pub fn get(&self, server: &ServerName) -> Option<&Entry> {
        self.servers.get(server).map(AsRef::as_ref)
    }

    /// In the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&ServerName, &Entry)> {
        self.servers.iter().map(|(name, entry)| (name, &**entry))
    }
}

impl Offer {
    pub fn new(
        manners: impl Into<Manners>,
        info: Option<Bytes>,
        instructions: Option<String>,
        mut tools: Vec<Tool>,
    ) -> Self {
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools.dedup_by(|a, b| a.name == b.name);
        tools.truncate(TOOL_LIMIT);
        Self { manners: manners.into(), info, instructions, tools }
    }

    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok().map(|at| &self.tools[at])
    }
}

impl Tool {
    /// `definition` is one JSON object; `None` if it has no name.
    pub fn parse(definition: Bytes) -> Option<Self> {
        let whole = 0..definition.len();
        let mut name_span = None;
        let mut description_span = None;
        for member in Members::of(&definition, &whole).flatten() {
            match &*member.key {
                "name" => name_span = Some(member.value),
                "description" => description_span = Some(member.value),
                _ => {}
            }
        }
        let name_span = name_span?;
        let name = string_value(&definition[name_span.clone()])?.into_owned();
        (!name.is_empty()).then_some(Self { name, definition, name_span, description_span })
    }

    pub fn description(&self) -> Option<String> {
        let span = self.description_span.clone()?;
        string_value(&self.definition[span]).map(std::borrow::Cow::into_owned)
    }

    /// The value of a member of the definition, as it stands.
    pub fn raw(&self, key: &str) -> Option<&[u8]> {
        let span = Members::find(&self.definition, &(0..self.definition.len()), key)?;
        Some(&self.definition[span])
    }
}

/// One page of a `tools/list` result: its tools, how many of them were unusable, and the next cursor.
pub fn read_page(message: &Bytes, result: &Span) -> (Vec<Tool>, usize, Option<Bytes>) {
    let Some(array) = Members::find(message, result, "tools") else {
        return (Vec::new(), 0, None);
    };
    let spans = elements(message, &array);
    let count = spans.len();
    // Copied out of the message, so that one tool does not keep a whole page alive.
    let copy = |span: Span| Tool::parse(Bytes::copy_from_slice(&message[span]));
    let tools: Vec<Tool> = spans.into_iter().filter_map(copy).collect();
    let cursor = Members::find(message, result, "nextCursor")
        .map(|span| message.slice(span))
        .filter(|cursor| cursor.starts_with(b"\"") && &cursor[..] != b"\"\"");
    let unusable = count - tools.len();
    (tools, unusable, cursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(names: &[&str]) -> Arc<Offer> {
        let tools = names
            .iter()
            .map(|name| Tool::parse(Bytes::from(format!(r#"{{"name":"{name}","x":1.0}}"#))).unwrap());
        Arc::new(Offer::new(Era::Legacy, None, None, tools.collect()))
    }

    #[test]
    fn a_failing_server_keeps_what_it_offered() {
        let name = ServerName::parse("a").unwrap();
        let catalog = Catalog::default().apply(Change::Listed(name.clone(), offer(&["x"])));
        let failed = catalog.apply(Change::Failed(name.clone()));
        assert_eq!(failed.get(&name).unwrap().freshness, Freshness::Stale);
        assert_eq!(failed.get(&name).unwrap().offer, offer(&["x"]));
        assert!(failed.apply(Change::Forgotten(name.clone())).get(&name).is_none());
        assert_eq!(catalog.get(&name).unwrap().freshness, Freshness::Fresh, "snapshots do not change");
    }

    #[test]
    fn tools_stand_in_one_order_and_once() {
        assert_eq!(offer(&["b", "a", "b"]), offer(&["a", "b"]));
        assert!(offer(&["b", "a"]).tool("b").is_some());
    }

    #[test]
    fn a_page_keeps_definitions_as_they_came() {
        let message = Bytes::from_static(
            br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"zeta":1.0,"name":"a","description":"x\u00e9"},{"nameless":1}],"nextCursor":"p2"}}"#,
        );
        let head = crate::wire::Head::read(&message).unwrap();
        let (tools, unusable, cursor) = read_page(&message, &head.payload.unwrap());
        assert_eq!(tools[0].definition, r#"{"zeta":1.0,"name":"a","description":"x\u00e9"}"#);
        assert_eq!(tools[0].description().unwrap(), "xé");
        assert_eq!((unusable, cursor), (1, Some(Bytes::from_static(b"\"p2\""))));
    }
}
