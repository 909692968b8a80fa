//! What every server offers: immutable, so that readers share it without a lock.

mod allowance;
mod header_parameters;
mod hidden;
mod server_capabilities;
mod summary;
#[cfg(test)]
mod tests;
mod tool;
mod tools;
mod variants;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;

pub use allowance::{Allowance, LeftOut};
pub use header_parameters::HeaderParameter;
pub use hidden::{HiddenPlace, HiddenText};
pub use server_capabilities::ServerCapabilities;
pub(crate) use summary::summary;
pub use tool::{Tool, ToolData, ToolPlaces};
pub use tools::{FIRST_NAMES, ToolSource, Tools, ToolsBrief};
pub use variants::{KnownList, Variants};

use crate::{
    declaration::Declaration,
    era::Era,
    extension::Extensions,
    failure::Failure,
    name::ServerName,
    size_limit,
    wire::{Cursor, Framing, Members, ScanError, Span, Walk, string_value},
};

/// All servers at one moment. Each change makes a new catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    servers: BTreeMap<ServerName, Arc<Entry>>,
    /// The servers that do not work, whether they have listed before or not.
    failed: BTreeMap<ServerName, Arc<Failure>>,
}

/// What is known of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub offer: Arc<Offer>,
    pub freshness: Freshness,
    /// What it lists for other kinds of hosts. `None`: all see the offer.
    pub variants: Option<Arc<Variants>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Listed by the server since this process began.
    Fresh,
    /// From the cache, or the server has failed since.
    Stale,
}

/// What one server says of itself, and all that it lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub dialect: Dialect,
    /// Its `serverInfo`, as it came.
    pub info: Option<Bytes>,
    pub instructions: Option<String>,
    pub capabilities: ServerCapabilities,
    /// Its other capabilities, by names that only hosts need to know.
    pub extensions: Extensions,
    pub tools: Tools,
    /// The key of these is the URI, the URI template and the name.
    pub resources: Vec<Item>,
    pub templates: Vec<Item>,
    pub prompts: Vec<Item>,
    /// Entries of `skills/list`, with their URIs as keys.
    pub skills: Vec<Item>,
    /// The hidden characters that were taken out of its definitions since it listed them.
    pub hidden: Option<Arc<HiddenText>>,
    /// The definitions that were left out when it listed these; `None` also if that is not known.
    pub left_out: Option<LeftOut>,
}

/// What a server can list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    Tool,
    Resource,
    Template,
    Prompt,
    Skill,
}

/// A resource, a resource template, a prompt or a skill: its definition as the server wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The name or URI by which it is requested.
    pub key: String,
    pub definition: Bytes,
    /// The key in the definition, with its quotes.
    pub key_span: Span,
}

/// How a server wants to be spoken to: learnt once, remembered with its offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Dialect {
    pub era: Era,
    pub framing: Framing,
    /// Over HTTP: by the transport of 2024-11-05.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sse: bool,
    /// A remote gateway with the plain API alone: `GET /tools`, `POST /tools/call`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_api: bool,
    /// The day since 1970 on which it did not answer the request that asks whether it is modern, or ended
    /// because of it. Therefore it is not asked at every start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_in_vain: Option<u64>,
}

impl From<Era> for Dialect {
    fn from(era: Era) -> Self {
        Self { era, framing: Framing::Newline, sse: false, plain_api: false, asked_in_vain: None }
    }
}

/// An event that changes the catalog.
#[derive(Debug, Clone)]
pub enum Change {
    /// The server has answered with all it has.
    Listed(ServerName, Arc<Offer>),
    /// From the cache: known, but not seen yet.
    Remembered(ServerName, Arc<Offer>),
    /// The known lists of the server for other kinds of hosts.
    Varied(ServerName, Arc<Variants>),
    /// The server failed; what it offered stays, marked stale.
    Failed(ServerName, Arc<Failure>),
    /// It is no longer configured, or is another program now.
    Forgotten(ServerName),
}

impl Catalog {
    #[must_use]
    pub fn apply(&self, change: Change) -> Self {
        let Self { mut servers, mut failed } = self.clone();
        match change {
            Change::Listed(name, offer) => {
                failed.remove(&name);
                servers.insert(name, Arc::new(Entry { offer, freshness: Freshness::Fresh, variants: None }));
            }
            Change::Remembered(name, offer) => {
                failed.remove(&name);
                servers.insert(name, Arc::new(Entry { offer, freshness: Freshness::Stale, variants: None }));
            }
            Change::Varied(name, variants) => {
                if let Some(entry) = servers.get_mut(&name) {
                    *entry = Arc::new(Entry { variants: Some(variants), ..(**entry).clone() });
                }
            }
            Change::Failed(name, failure) => {
                if let Some(entry) = servers.get_mut(&name) {
                    *entry = Arc::new(Entry { freshness: Freshness::Stale, ..(**entry).clone() });
                }
                failed.insert(name, failure);
            }
            Change::Forgotten(name) => {
                servers.remove(&name);
                failed.remove(&name);
            }
        }
        Self { servers, failed }
    }

    /// The same with these servers alone.
    #[must_use]
    pub fn only(&self, is_kept: impl Fn(&ServerName) -> bool) -> Self {
        let kept = |server: &ServerName| is_kept(server);
        Self {
            servers: self.servers.iter().filter(|(name, _)| kept(name)).map(cloned).collect(),
            failed: self.failed.iter().filter(|(name, _)| kept(name)).map(cloned).collect(),
        }
    }

    /// Why a server has not worked since it last listed.
    pub fn failure(&self, server: &ServerName) -> Option<&Arc<Failure>> {
        self.failed.get(server)
    }

    /// The servers that do not work.
    pub fn failed(&self) -> impl Iterator<Item = &ServerName> {
        self.failed.keys()
    }

    /// Whether the same servers have failed, for the same reasons.
    pub fn has_same_failures(&self, other: &Self) -> bool {
        fn reasons(catalog: &Catalog) -> impl Iterator<Item = (&ServerName, &str, Option<&str>)> {
            catalog.failed.iter().map(|(name, why)| (name, why.what.as_str(), why.remedy.as_deref()))
        }
        reasons(self).eq(reasons(other))
    }

    pub fn get(&self, server: &ServerName) -> Option<&Entry> {
        self.servers.get(server).map(AsRef::as_ref)
    }

    /// The catalog that hosts of this kind see. `None`: the same as this one.
    #[must_use]
    pub fn seen_by(&self, host: &Declaration) -> Option<Self> {
        let differing = self.servers.iter().filter_map(|(name, entry)| {
            let offer = entry.offer_for(host).0;
            let same = Arc::ptr_eq(&offer, &entry.offer) || *offer == *entry.offer;
            (!same).then(|| (name.clone(), Arc::new(Entry { offer, variants: None, ..(**entry).clone() })))
        });
        let differing: Vec<_> = differing.collect();
        if differing.is_empty() {
            return None;
        }
        let mut seen = self.clone();
        seen.servers.extend(differing);
        Some(seen)
    }

    /// Whether nothing is left to find out about the lists of hosts of this kind.
    pub fn fits(&self, host: &Declaration) -> bool {
        self.servers.values().all(|entry| entry.offer_for(host).1)
    }

    /// The tools that nobody has needed yet, except those that can wait until somebody does.
    pub fn unread_tools(&self) -> Vec<Tools> {
        let tools = self.servers.iter().map(|(server, entry)| (server, &entry.offer.tools));
        let unread = tools.filter(|(server, tools)| !tools.are_read() && !tools.can_wait(server));
        unread.map(|(_, tools)| tools.clone()).collect()
    }

    /// All servers, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&ServerName, &Entry)> {
        self.servers.iter().map(|(name, entry)| (name, &**entry))
    }
}

impl Entry {
    /// The offer that hosts of this kind see, and whether that is certain or will not become certain.
    pub fn offer_for(&self, host: &Declaration) -> (Arc<Offer>, bool) {
        match &self.variants {
            Some(variants) => variants.offer_for(&self.offer, host),
            None => (Arc::clone(&self.offer), true),
        }
    }
}

impl Offer {
    pub fn new(
        dialect: impl Into<Dialect>,
        info: Option<Bytes>,
        instructions: Option<String>,
        tools: Vec<Tool>,
    ) -> Self {
        let info = info.filter(|info| info.len() <= size_limit::SERVER_INFO);
        let instructions = instructions.map(|mut text| {
            text.truncate(text.floor_char_boundary(size_limit::INSTRUCTIONS));
            text
        });
        let tools = tools.into();
        let capabilities = ServerCapabilities { tools: true, ..ServerCapabilities::default() };
        let Items { resources, templates, prompts, skills } = Items::default();
        let (dialect, extensions) = (dialect.into(), Extensions::default());
        Self {
            dialect,
            info,
            instructions,
            capabilities,
            extensions,
            tools,
            resources,
            templates,
            prompts,
            skills,
            hidden: None,
            left_out: None,
        }
    }

    /// The same with these tools.
    #[must_use]
    pub fn with_tools(self, tools: Tools) -> Self {
        Self { tools, ..self }
    }

    /// The same with a note of what was left out.
    #[must_use]
    pub fn without(self, left_out: Option<LeftOut>) -> Self {
        Self { left_out, ..self }
    }

    /// The same with the extensions that it has declared.
    #[must_use]
    pub fn extended(self, extensions: Extensions) -> Self {
        Self { extensions, ..self }
    }

    /// The same with the items that it offers besides tools.
    #[must_use]
    pub fn with_items(self, capabilities: ServerCapabilities, items: Items) -> Self {
        let Items { resources, templates, prompts, skills } = items;
        let [resources, templates, prompts, skills] = [resources, templates, prompts, skills].map(in_order);
        Self { capabilities, resources, templates, prompts, skills, ..self }
    }

    /// Whether hosts see the same of both; the dialect does not count.
    pub fn lists_same(&self, other: &Self) -> bool {
        let Self {
            dialect: _,
            info,
            instructions,
            capabilities,
            extensions,
            tools,
            resources,
            templates,
            prompts,
            skills,
            hidden: _,
            left_out: _,
        } = self;
        *tools == other.tools
            && (resources, templates, prompts) == (&other.resources, &other.templates, &other.prompts)
            && *skills == other.skills
            && (info, instructions) == (&other.info, &other.instructions)
            && (capabilities, extensions) == (&other.capabilities, &other.extensions)
    }

    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.binary_search_by(|tool| tool.name.as_str().cmp(name)).ok().map(|at| &self.tools[at])
    }
}

/// The resources, resource templates, prompts and skills of a server.
#[derive(Debug, Clone, Default)]
pub struct Items {
    pub resources: Vec<Item>,
    pub templates: Vec<Item>,
    pub prompts: Vec<Item>,
    pub skills: Vec<Item>,
}

fn cloned<T>((server, value): (&ServerName, &Arc<T>)) -> (ServerName, Arc<T>) {
    (server.clone(), Arc::clone(value))
}

fn in_order(mut items: Vec<Item>) -> Vec<Item> {
    items.sort_by(|a, b| a.key.cmp(&b.key));
    items.dedup_by(|a, b| a.key == b.key);
    items.truncate(size_limit::ITEMS);
    items
}

impl ItemKind {
    pub fn list_method(self) -> &'static str {
        match self {
            Self::Tool => "tools/list",
            Self::Resource => "resources/list",
            Self::Template => "resources/templates/list",
            Self::Prompt => "prompts/list",
            Self::Skill => "skills/list",
        }
    }

    /// The member of a result that has a list of these.
    pub fn list_key(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
            Self::Prompt => "prompts",
            Self::Skill => "skills",
        }
    }

    /// The member of a definition by which an item is requested.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource | Self::Skill => "uri",
            Self::Template => "uriTemplate",
        }
    }
}

impl Item {
    /// `definition` is one JSON object; `None` if it has no key.
    pub fn parse(definition: Bytes, item_kind: ItemKind) -> Option<Self> {
        let key_span = Members::find(&definition, &(0..definition.len()), item_kind.key())?;
        let key = string_value(&definition[key_span.clone()])?.into_owned();
        (!key.is_empty()).then_some(Self { key, definition, key_span })
    }
}

/// Reads one page of a list: its definitions, as far as `allowance` takes them, and the next cursor.
pub fn read_page(
    message: &Bytes,
    result: &Span,
    item_kind: ItemKind,
    allowance: &mut Allowance,
) -> (Vec<Bytes>, Option<Bytes>) {
    let (mut array, mut next) = (None, None);
    for member in Members::of(message, result).flatten() {
        match &*member.key {
            "nextCursor" => next = Some(member.value),
            key if key == item_kind.list_key() => array = Some(member.value),
            _ => {}
        }
    }
    let Some(array) = array else { return (Vec::new(), None) };
    let mut definitions = Vec::new();
    let mut cursor = Cursor::new(&message[..array.end], array.start);
    let mut read = || -> Result<(), ScanError> {
        let mut walk = Walk::open(&mut cursor, b'[', 0)?;
        while walk.advance(&mut cursor)? {
            let definition = cursor.value(1)?;
            if allowance.takes(definition.len()) {
                // Copied out of the message, so that one definition does not keep a whole page alive.
                definitions.push(Bytes::copy_from_slice(&message[definition]));
            } else if allowance.is_spent() {
                break;
            }
        }
        Ok(())
    };
    let _ = read(); // the definitions before an error count
    let cursor = next
        .map(|span| message.slice(span))
        .filter(|cursor| cursor.starts_with(b"\"") && &cursor[..] != b"\"\"");
    (definitions, cursor)
}
