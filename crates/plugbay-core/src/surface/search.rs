//! Search mode: tools are found by what they are for.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use super::{
    Layout, LazyNames,
    found::{Found, described},
    names::is_for_model,
};
use crate::{
    catalog::{Catalog, Tool, Tools},
    exposure::Exposure,
    name::ServerName,
    policy::Policy,
    search::{
        EmbeddingTable, Engine, Explanation, GROUP, Hit, Join, Segment, ToolGroup, one_after_the_other,
    },
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
    names: Arc<LazyNames>,
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
    /// The index of an earlier catalog, whose parts may still be right.
    before: Mutex<Option<Arc<Self>>>,
}

#[derive(Debug)]
struct Made {
    /// Numbers tools in the order of the catalog.
    engine: Engine,
    /// So a server's are together.
    servers: BTreeMap<ServerName, Range<u32>>,
    parts: Vec<MadePart>,
}

/// A part of an index, and of what it was made.
#[derive(Debug)]
struct MadePart {
    sources: Vec<Source>,
    /// How many tools each of them has in it.
    counts: Vec<u32>,
    segment: Arc<Segment>,
}

/// The tools of a server, and what decides which of them are found and by which words.
#[derive(Debug, Clone)]
struct Source {
    server: ServerName,
    tools: Tools,
    policy: Policy,
    describe: BTreeMap<String, String>,
}

impl Source {
    fn is_same(&self, other: &Self) -> bool {
        self.server == other.server
            && self.tools.are_those(&other.tools)
            && (&self.policy, &self.describe) == (&other.policy, &other.describe)
    }
}

impl ToolIndex {
    pub(super) fn new(names: Arc<LazyNames>, index: Arc<Index>) -> Self {
        Self { names, index, length: OnceLock::new() }
    }

    /// Makes the index, if nobody has.
    pub fn prepare(&self, table: impl FnOnce() -> Option<Arc<EmbeddingTable>>) {
        self.prepare_by(table, one_after_the_other);
    }

    /// The same with halves of the work run by `join`.
    pub fn prepare_by(&self, table: impl FnOnce() -> Option<Arc<EmbeddingTable>>, join: Join) {
        self.index.made(table, join);
    }

    pub fn is_ready(&self) -> bool {
        self.index.made.get().is_some()
    }

    /// Nobody has to wait long for an answer.
    pub fn is_quick(&self) -> bool {
        self.is_ready() || self.names.at_most() <= FEW && self.length() <= SHORT
    }

    /// To search, or to tell of many tools, may take longer than a moment.
    pub fn is_large(&self) -> bool {
        self.names.at_most() > MANY || self.length() > LONG
    }

    /// How many bytes all definitions have, those with it that may not be called.
    fn length(&self) -> usize {
        *self.length.get_or_init(|| self.names.bytes_at_most())
    }

    /// The best tools for a query, best first; of one server, if it is named.
    pub fn search(
        &self,
        query: &str,
        limit: usize,
        server: Option<&ServerName>,
        table: impl FnOnce() -> Option<Arc<EmbeddingTable>>,
    ) -> Vec<(&Found, Hit)> {
        let Made { engine, servers, .. } = self.index.made(table, one_after_the_other);
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
        let engine = &self.index.made(table, one_after_the_other).engine;
        Some(engine.explain(query, number, (found.target.server.as_str(), &found.tool)))
    }
}

impl Index {
    pub(super) fn of(catalog: &Arc<Catalog>, layout: &Arc<Layout>, before: Option<&Arc<Self>>) -> Self {
        let before = before.and_then(|before| match before.made.get() {
            Some(_) => Some(Arc::clone(before)),
            None => before.before().clone(),
        });
        Self {
            catalog: Arc::clone(catalog),
            layout: Arc::clone(layout),
            made: OnceLock::new(),
            before: Mutex::new(before),
        }
    }

    fn before(&self) -> MutexGuard<'_, Option<Arc<Self>>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self, table: impl FnOnce() -> Option<Arc<EmbeddingTable>>, join: Join) -> &Made {
        self.made.get_or_init(|| {
            let before = self.before().take();
            let before = before.as_ref().and_then(|before| before.made.get());
            self.make(before.filter(|made| !made.engine.is_outdated()), table(), join)
        })
    }

    fn make(&self, before: Option<&Made>, table: Option<Arc<EmbeddingTable>>, join: Join) -> Made {
        let sources = self.sources();
        let kept: Vec<Option<&MadePart>> = sources.iter().map(|sources| before?.part(sources)).collect();
        let tools: Vec<Vec<(&ServerName, Cow<'_, Tool>)>> = sources
            .iter()
            .zip(&kept)
            .map(|(sources, kept)| if kept.is_some() { Vec::new() } else { Self::tools(sources) })
            .collect();
        let groups = tools.iter().zip(&kept).map(|(tools, kept)| match kept {
            Some(part) => ToolGroup::Kept(Arc::clone(&part.segment)),
            None => ToolGroup::New(tools.iter().map(|(server, tool)| (server.as_str(), &**tool)).collect()),
        });
        let (engine, segments) =
            Engine::of_groups(groups.collect(), before.map(|before| &before.engine), table, join);
        let counts = |at: usize| -> Vec<u32> {
            let count =
                |source: &Source| tools[at].iter().filter(|(server, _)| **server == source.server).count();
            let count = |source| u32::try_from(count(source)).unwrap_or(u32::MAX);
            kept[at].map_or_else(|| sources[at].iter().map(count).collect(), |part| part.counts.clone())
        };
        let counts: Vec<Vec<u32>> = (0..sources.len()).map(counts).collect();
        let mut servers = BTreeMap::new();
        let mut next = 0;
        for (source, count) in sources.iter().flatten().zip(counts.iter().flatten()) {
            servers.insert(source.server.clone(), next..next + count);
            next += count;
        }
        let made = |((sources, counts), segment): ((Vec<Source>, Vec<u32>), Arc<Segment>)| MadePart {
            sources,
            counts,
            segment,
        };
        let parts = sources.into_iter().zip(counts).zip(segments).map(made).collect();
        Made { engine, servers, parts }
    }

    /// The servers in their order, those of small ones together.
    fn sources(&self) -> Vec<Vec<Source>> {
        let mut parts: Vec<(usize, Vec<Source>)> = Vec::new();
        let plain = Exposure::default();
        for (server, entry) in self.catalog.iter() {
            let Exposure { policy, describe, .. } = self.layout.exposures.get(server).unwrap_or(&plain);
            let tools = entry.offer.tools.clone();
            let count = tools.len();
            let source =
                Source { server: server.clone(), tools, policy: policy.clone(), describe: describe.clone() };
            match parts.last_mut().filter(|(size, _)| *size < GROUP && count < GROUP) {
                Some((size, part)) => {
                    *size += count;
                    part.push(source);
                }
                None => parts.push((count, vec![source])),
            }
        }
        parts.into_iter().map(|(_, part)| part).collect()
    }

    /// The tools that are searched.
    fn tools<'a>(sources: &'a [Source]) -> Vec<(&'a ServerName, Cow<'a, Tool>)> {
        let of = |source: &'a Source| {
            let Source { server, tools, policy, describe } = source;
            let tools = tools.iter().filter(|tool| policy.may(&tool.name) && is_for_model(tool));
            tools.map(move |tool| (server, described(tool, describe)))
        };
        sources.iter().flat_map(of).collect()
    }
}

impl Made {
    /// The part that was made of the same.
    fn part(&self, sources: &[Source]) -> Option<&MadePart> {
        let same = |part: &&MadePart| {
            part.sources.len() == sources.len() && part.sources.iter().zip(sources).all(|(a, b)| a.is_same(b))
        };
        self.parts.iter().find(same)
    }
}
