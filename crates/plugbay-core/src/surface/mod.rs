//! What a host sees of the catalogue, and what its calls mean: pure functions of a snapshot.

mod all;
mod instructions;
mod search;
mod shelf;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bytes::Bytes;

pub use instructions::instructions;
pub use search::{Finder, Found, Own};
pub use shelf::{Place, Shelf};

use crate::{
    catalog::Catalog,
    exposure::Exposure,
    name::{self, ServerName},
    policy::Policy,
};

/// Everything a session needs to answer from, at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub catalog: Arc<Catalog>,
    pub listing: Arc<Listing>,
    pub shelf: Arc<Shelf>,
    pub finder: Arc<Finder>,
    /// Every server has been heard of, now or in an earlier run: nothing is gained by waiting.
    pub settled: bool,
}

/// How the user wants servers to appear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    pub exposures: BTreeMap<ServerName, Exposure>,
    pub name_limit: usize,
    /// Search mode also shows its tools for looking after servers.
    pub admin_tools: bool,
}

/// The tools that a host sees, ready to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// A JSON array of definitions.
    pub tools: Bytes,
    /// Also of tools that are not in the array but behind others.
    index: HashMap<String, Target>,
    /// The gateway's own tools are there.
    searchable: bool,
    /// Exposed names that two tools wanted; neither got it.
    pub collisions: Vec<String>,
    /// Bare names that did not say clearly whose tool is meant; those tools have their server's name.
    pub ambiguous: Vec<String>,
    /// Servers that have never told what they have, and what may be called there.
    unheard: BTreeMap<ServerName, Policy>,
}

/// A tool of a server by its own name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub server: ServerName,
    pub tool: String,
    /// The tool's name as a JSON string, ready to be put into a request.
    pub quoted: Bytes,
    /// What the user wants it to be described as.
    pub description: Option<String>,
}

/// What is to be done with a `tools/call`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan<'a> {
    Forward(Cow<'a, Target>),
    Own(Own),
    Unknown { nearest: Vec<&'a str> },
}

impl Snapshot {
    pub fn new(catalog: Arc<Catalog>, layout: &Layout, settled: bool) -> Self {
        let listing = Arc::new(all::list(&catalog, layout));
        let shelf = Arc::new(Shelf::new(&catalog, layout));
        let finder = Arc::new(Finder::new(Arc::clone(&catalog), Arc::clone(&listing)));
        Self { catalog, listing, shelf, finder, settled }
    }
}

impl Listing {
    pub fn plan(&self, name: &str) -> Plan<'_> {
        if let Some(own) = Own::named(name).filter(|_| self.searchable) {
            return Plan::Own(own);
        }
        match self.index.get(name) {
            Some(target) => Plan::Forward(Cow::Borrowed(target)),
            None => match self.unheard_target(name) {
                Some(target) => Plan::Forward(Cow::Owned(target)),
                None => Plan::Unknown { nearest: self.nearest(name) },
            },
        }
    }

    /// A call to a server that is configured but has not been heard of goes there all the same: it
    /// may know the tool, and if it is broken it tells why.
    fn unheard_target(&self, name: &str) -> Option<Target> {
        let (server, tool) = name::split(name)?;
        let server = ServerName::parse(server).ok()?;
        self.unheard.get(&server).filter(|policy| policy.may(tool))?;
        let quoted = Bytes::from(serde_json::Value::from(tool).to_string());
        Some(Target { server, tool: tool.to_owned(), quoted, description: None })
    }

    /// The names that are most like one that is not there.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        name::nearest(name, self.index.keys().map(String::as_str))
    }

    /// Whether tools can be searched for.
    pub fn is_searchable(&self) -> bool {
        self.searchable
    }

    pub fn target(&self, exposed: &str) -> Option<&Target> {
        self.index.get(exposed)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Target)> {
        self.index.iter().map(|(name, target)| (name.as_str(), target))
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }
}
