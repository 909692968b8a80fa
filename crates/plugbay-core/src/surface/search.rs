//! Search mode: tools are found by what they are for.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use super::{
    Layout,
    found::{Found, described},
    names::{Names, allowed, is_for_model},
};
use crate::{
    catalog::{Catalog, Tool},
    name::ServerName,
    search::{EmbeddingTable, Engine, Explanation, Hit},
};

/// So few tools are indexed in a moment, if their definitions have no more bytes than this.
const FEW: usize = 200;
const SHORT: usize = 512 << 10;
/// With more tools, or more bytes of definitions, an answer about them may take longer than a moment.
const MANY: usize = 5_000;
const LONG: usize = 8 << 20;

/// Finds tools in one snapshot, under the names of one host.
#[derive(Debug)]
pub struct ToolIndex {
    names: Arc<Names>,
    index: Arc<Index>,
    length: OnceLock<usize>,
}

/// The index of one catalog: the same for all hosts, whatever names they know its tools by. It is made when it
/// is first needed, or before, by whoever has time; whoever comes meanwhile waits for it.
#[derive(Debug)]
pub(super) struct Index {
    catalog: Arc<Catalog>,
    layout: Arc<Layout>,
    made: OnceLock<Made>,
}

#[derive(Debug)]
struct Made {
    /// Numbers tools in the order of the catalog.
    engine: Engine,
    /// So a server's are together.
    servers: BTreeMap<ServerName, Range<u32>>,
}

impl ToolIndex {
    pub(super) fn new(names: Arc<Names>, index: Arc<Index>) -> Self {
        Self { names, index, length: OnceLock::new() }
    }

    /// Makes the index, if nobody has.
    pub fn prepare(&self, table: impl FnOnce() -> Option<Arc<EmbeddingTable>>) {
        self.index.made(table);
    }

    pub fn is_ready(&self) -> bool {
        self.index.made.get().is_some()
    }

    /// Nobody has to wait long for an answer.
    pub fn is_quick(&self) -> bool {
        self.is_ready() || self.names.len() <= FEW && self.length() <= SHORT
    }

    /// To search, or to tell of many tools, may take longer than a moment.
    pub fn is_large(&self) -> bool {
        self.names.len() > MANY || self.length() > LONG
    }

    /// How many bytes all definitions have.
    fn length(&self) -> usize {
        *self.length.get_or_init(|| self.names.iter().map(|found| found.tool.definition.len()).sum())
    }

    /// The best tools for a query, best first; of one server, if it is named.
    pub fn search(
        &self,
        query: &str,
        limit: usize,
        server: Option<&ServerName>,
        table: impl FnOnce() -> Option<Arc<EmbeddingTable>>,
    ) -> Vec<(&Found, Hit)> {
        let Made { engine, servers } = self.index.made(table);
        let within = server.map(|server| servers.get(server).cloned().unwrap_or_default());
        let hits = engine.search(query, limit, within).into_iter();
        hits.filter_map(|hit| Some((self.names.numbered(hit.tool)?, hit))).collect()
    }

    /// What was found in which words, and what meaning added.
    pub fn explain(
        &self,
        query: &str,
        exposed: &str,
        table: impl FnOnce() -> Option<Arc<EmbeddingTable>>,
    ) -> Option<Explanation> {
        let (number, found) = (self.names.number(exposed)?, self.names.get(exposed)?);
        let engine = &self.index.made(table).engine;
        Some(engine.explain(query, number, (found.target.server.as_str(), &found.tool)))
    }
}

impl Index {
    pub(super) fn of(catalog: &Arc<Catalog>, layout: &Arc<Layout>) -> Self {
        Self { catalog: Arc::clone(catalog), layout: Arc::clone(layout), made: OnceLock::new() }
    }

    fn made(&self, table: impl FnOnce() -> Option<Arc<EmbeddingTable>>) -> &Made {
        self.made.get_or_init(|| {
            let tools: Vec<(&ServerName, Cow<'_, Tool>)> = allowed(&self.catalog, &self.layout)
                .filter(|(_, tool, _)| is_for_model(tool))
                .map(|(server, tool, exposure)| (server, described(tool, exposure)))
                .collect();
            let mut servers: BTreeMap<ServerName, Range<u32>> = BTreeMap::new();
            for (number, (server, _)) in (0..).zip(&tools) {
                servers.entry((*server).clone()).or_insert(number..number).end = number + 1;
            }
            let tools: Vec<(&str, &Tool)> =
                tools.iter().map(|(server, tool)| (server.as_str(), &**tool)).collect();
            Made { engine: Engine::build(&tools, table()), servers }
        })
    }
}
