//! Search mode: finds tools by what they are for.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use super::{
    Layout, LazyNames,
    found::{Found, described},
    lazy_names::exposure,
    names::is_for_model,
};
use crate::{
    catalog::{Catalog, Tool, Tools},
    exposure::Exposure,
    name::ServerName,
    policy::Policy,
    search::{
        EmbeddingTable, Engine, Explanation, GROUP, Hit, Join, Recalled, Segment, StoredIndex, ToolGroup,
        memory::{Remembered, SearchMemory, definition_hash, remembered_words},
        one_after_the_other,
    },
};

/// Up to this many tools are indexed in a moment, if their definitions have at most `SHORT` bytes.
const FEW: usize = 200;
const SHORT: usize = 512 << 10;
/// With more tools, or more bytes of definitions, an answer about them may take longer than a moment.
const MANY: usize = 5_000;
const LONG: usize = 8 << 20;
/// How many remembered tools are kept with their numbers; then all are forgotten and looked up again.
const MOST_PLACES: usize = 1_024;

/// Finds tools in one snapshot, under the names of one host.
#[derive(Debug)]
pub struct ToolIndex {
    names: Arc<LazyNames>,
    index: Arc<Index>,
    length: OnceLock<usize>,
    /// The numbers of remembered tools, as far as they were looked up.
    places: Mutex<Places>,
}

/// The index of one catalog: the same for all hosts, whatever names they know its tools by. It is made when
/// it is first needed, or in advance; others that need it meanwhile wait for it.
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
    /// The range of numbers of each server. The order of names is that of numbers.
    servers: Vec<(ServerName, Range<u32>)>,
    parts: Vec<MadePart>,
}

/// A part of an index, and what it was made of.
#[derive(Debug)]
struct MadePart {
    sources: Vec<Source>,
    /// How many tools each source has in it.
    counts: Vec<u32>,
    segment: Arc<Segment>,
}

/// The numbers of remembered tools.
#[derive(Debug, Default)]
struct Places {
    /// By the tools' servers and names.
    by_name: HashMap<(String, String), Option<u32>>,
    /// By definition, for servers that no longer have some of them.
    by_definition: HashMap<ServerName, Definitions>,
}

/// The tools of one server by the hash of their definition; `None` if several have the same.
type Definitions = HashMap<u64, Option<u32>>;

/// The tools of a server, and the settings that decide which of them are found and by which words.
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

    /// Whether there is a stored index of exactly these tools.
    fn has_index(&self) -> bool {
        self.policy == Policy::default() && self.describe.is_empty() && self.tools.have_index(&self.server)
    }

    /// The stored index, unless it is damaged or does not fit.
    fn stored(&self, with_embeddings: bool) -> Option<StoredIndex> {
        let bytes = self.tools.index(&self.server)?;
        let fits = |stored: &StoredIndex| {
            stored.len() == self.tools.brief().count && stored.has_embeddings() == with_embeddings
        };
        StoredIndex::read(&bytes).filter(fits)
    }
}

/// The stored indexes of the parts that are not kept.
fn stored<'s>(
    sources: &'s [Vec<Source>],
    kept: &[Option<&MadePart>],
    with_embeddings: bool,
    join: Join,
) -> Vec<Option<StoredIndex>> {
    let only = |(sources, kept): (&'s Vec<Source>, Option<&MadePart>)| match &sources[..] {
        [only] if kept.is_none() && only.has_index() => Some(only),
        _ => None,
    };
    let parts: Vec<Option<&Source>> = sources.iter().zip(kept.iter().copied()).map(only).collect();
    if parts.iter().all(Option::is_none) {
        return parts.iter().map(|_| None).collect();
    }
    let read = |parts: &[Option<&Source>]| -> Vec<Option<StoredIndex>> {
        parts.iter().map(|source| (*source)?.stored(with_embeddings)).collect()
    };
    let (first, second) = parts.split_at(parts.len() / 2);
    let (mut here, mut there) = (Vec::new(), Vec::new());
    join(&mut || here = read(first), &mut || there = read(second));
    here.append(&mut there);
    here
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl ToolIndex {
    pub(super) fn new(names: Arc<LazyNames>, index: Arc<Index>) -> Self {
        Self { names, index, length: OnceLock::new(), places: Mutex::default() }
    }

    /// Makes the index, if nobody has.
    pub fn prepare(&self, table: impl FnOnce() -> Option<Arc<EmbeddingTable>>) {
        self.prepare_by(table, one_after_the_other);
    }

    /// The same, but `join` runs halves of the work.
    pub fn prepare_by(&self, table: impl FnOnce() -> Option<Arc<EmbeddingTable>>, join: Join) {
        self.index.made(table, join);
    }

    pub fn is_ready(&self) -> bool {
        self.index.made.get().is_some()
    }

    /// Whether an answer comes without a long wait.
    pub fn is_quick(&self) -> bool {
        self.is_ready() || self.names.at_most() <= FEW && self.length() <= SHORT
    }

    /// Whether searching, or describing many tools, may take longer than a moment.
    pub fn is_large(&self) -> bool {
        self.names.at_most() > MANY || self.length() > LONG
    }

    /// How many bytes all definitions have, including those of tools that may not be called.
    fn length(&self) -> usize {
        *self.length.get_or_init(|| self.names.bytes_at_most())
    }

    /// The best tools for a query, best first; only those of `server`, if it is given.
    pub fn search(
        &self,
        query: &str,
        limit: usize,
        server: Option<&ServerName>,
        table: impl FnOnce() -> Option<Arc<EmbeddingTable>>,
    ) -> Vec<(&Found, Hit)> {
        let (made, within) = self.made(server, table);
        let exposed = self.number_of(made, query);
        self.found(made, made.engine.search_recalling(query, limit, within, &[], exposed))
    }

    /// The same with the memory of earlier searches, on this day.
    pub fn search_recalling(
        &self,
        query: &str,
        limit: usize,
        server: Option<&ServerName>,
        (memory, day): (&SearchMemory, u32),
        table: impl FnOnce() -> Option<Arc<EmbeddingTable>>,
    ) -> Vec<(&Found, Hit)> {
        let (made, within) = self.made(server, table);
        let words = if memory.is_empty() { Vec::new() } else { remembered_words(query) };
        let recalled = |(stem, tool, weight): (&str, &Remembered, f32)| {
            Some(Recalled { stem: stem.to_owned(), tool: self.place(made, tool)?, weight })
        };
        let recalled: Vec<Recalled> = memory.recall(&words, day).filter_map(recalled).collect();
        let exposed = self.number_of(made, query);
        self.found(made, made.engine.search_recalling(query, limit, within, &recalled, exposed))
    }

    /// The best tools for a query, even if they hardly fit.
    pub fn candidates(
        &self,
        query: &str,
        limit: usize,
        server: Option<&ServerName>,
        table: impl FnOnce() -> Option<Arc<EmbeddingTable>>,
    ) -> Vec<(&Found, Hit)> {
        let (made, within) = self.made(server, table);
        self.found(made, made.engine.candidates(query, limit, within))
    }

    fn made(
        &self,
        server: Option<&ServerName>,
        table: impl FnOnce() -> Option<Arc<EmbeddingTable>>,
    ) -> (&Made, Option<Range<u32>>) {
        let made = self.index.made(table, one_after_the_other);
        (made, server.map(|server| made.range(server).unwrap_or_default()))
    }

    /// The number of the tool with this exposed name.
    fn number_of(&self, made: &Made, exposed: &str) -> Option<u32> {
        let (server, number) = self.names.number(exposed.trim())?;
        made.range(server)?.nth(number as usize)
    }

    fn found(&self, made: &Made, hits: Vec<Hit>) -> Vec<(&Found, Hit)> {
        let found = |hit: Hit| {
            let (server, number) = made.server_of(hit.tool)?;
            Some((self.names.numbered(server, number)?, hit))
        };
        hits.into_iter().filter_map(found).collect()
    }

    /// The number of a remembered tool. If its server no longer has a tool of this name, the one of that
    /// server with the same definition is taken.
    fn place(&self, made: &Made, tool: &Remembered) -> Option<u32> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (tool.server.clone(), tool.tool.clone());
        if let Some(place) = places.by_name.get(&key) {
            return *place;
        }
        let place = self.look_for(made, tool, &mut places.by_definition);
        if places.by_name.len() == MOST_PLACES {
            places.by_name.clear();
        }
        places.by_name.insert(key, place);
        place
    }

    fn look_for(
        &self,
        made: &Made,
        tool: &Remembered,
        by_definition: &mut HashMap<ServerName, Definitions>,
    ) -> Option<u32> {
        let server = ServerName::parse(&tool.server).ok()?;
        let range = made.range(&server)?;
        let found = |number: u32| self.names.numbered(&server, number - range.start);
        let is_named = |number: &u32| found(*number).is_some_and(|found| found.target.tool == tool.tool);
        if let Some(named) = range.clone().find(is_named) {
            return Some(named);
        }
        let definitions = by_definition.entry(server.clone()).or_insert_with(|| {
            let mut definitions = Definitions::default();
            // A tool without a description could be any.
            let described = |number: &u32| found(*number).filter(|found| found.tool.description().is_some());
            for (number, found) in range.clone().filter_map(|number| Some((number, described(&number)?))) {
                let same = definitions.entry(definition_hash(&found.tool)).or_insert(Some(number));
                *same = same.filter(|first| *first == number);
            }
            definitions
        });
        definitions.get(&tool.definition).copied().flatten()
    }

    /// Explains which words found a tool, and what meaning added.
    pub fn explain(
        &self,
        query: &str,
        exposed: &str,
        table: impl FnOnce() -> Option<Arc<EmbeddingTable>>,
    ) -> Option<Explanation> {
        let found = self.names.get(exposed)?;
        let made = self.index.made(table, one_after_the_other);
        let number = self.number_of(made, exposed)?;
        Some(made.engine.explain(query, number, (found.target.server.as_str(), &found.tool)))
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
        let mut stored = stored(&sources, &kept, table.is_some(), join);
        let counted: Vec<Option<u32>> =
            stored.iter().map(|stored| Some(count(stored.as_ref()?.len()))).collect();
        let tools: Vec<Vec<(&ServerName, Cow<'_, Tool>)>> = sources
            .iter()
            .zip(kept.iter().zip(&stored))
            .map(|(sources, known)| if let (None, None) = known { Self::tools(sources) } else { Vec::new() })
            .collect();
        let groups = tools.iter().zip(&kept).zip(&mut stored).map(|((tools, kept), stored)| {
            match (kept, stored.take()) {
                (Some(part), _) => ToolGroup::Kept(Arc::clone(&part.segment)),
                (None, Some(stored)) => ToolGroup::Stored(Box::new(stored)),
                (None, None) => {
                    ToolGroup::New(tools.iter().map(|(server, tool)| (server.as_str(), &**tool)).collect())
                }
            }
        });
        let (engine, segments) =
            Engine::of_groups(groups.collect(), before.map(|before| &before.engine), table, join);
        let counts = |at: usize| -> Vec<u32> {
            let of =
                |source: &Source| tools[at].iter().filter(|(server, _)| **server == source.server).count();
            match (kept[at], counted[at]) {
                (Some(part), _) => part.counts.clone(),
                (None, Some(count)) => vec![count],
                (None, None) => sources[at].iter().map(|source| count(of(source))).collect(),
            }
        };
        let counts: Vec<Vec<u32>> = (0..sources.len()).map(counts).collect();
        let mut next = 0;
        let range = |(source, count): (&Source, &u32)| {
            let start = next;
            next += count;
            (source.server.clone(), start..next)
        };
        let servers = sources.iter().flatten().zip(counts.iter().flatten()).map(range).collect();
        let made = |((sources, counts), segment): ((Vec<Source>, Vec<u32>), Arc<Segment>)| MadePart {
            sources,
            counts,
            segment,
        };
        let parts = sources.into_iter().zip(counts).zip(segments).map(made).collect();
        Made { engine, servers, parts }
    }

    /// The servers in their order, grouped into parts: small servers share one.
    fn sources(&self) -> Vec<Vec<Source>> {
        let mut parts: Vec<(usize, Vec<Source>)> = Vec::new();
        for (server, entry) in self.catalog.iter() {
            let Exposure { policy, describe, .. } = exposure(&self.layout, server);
            let tools = entry.offer.tools.clone();
            let source =
                Source { server: server.clone(), tools, policy: policy.clone(), describe: describe.clone() };
            // A server with a stored index is a part of its own.
            let count = if source.has_index() { GROUP } else { source.tools.len() };
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
    /// The numbers of a server's tools.
    fn range(&self, server: &ServerName) -> Option<Range<u32>> {
        let at = self.servers.binary_search_by(|(name, _)| name.cmp(server)).ok()?;
        Some(self.servers[at].1.clone())
    }

    /// The server of a tool, and its number there.
    fn server_of(&self, tool: u32) -> Option<(&ServerName, u32)> {
        let at = self.servers.partition_point(|(_, range)| range.end <= tool);
        let (server, range) = self.servers.get(at)?;
        Some((server, tool.checked_sub(range.start)?))
    }

    /// The part that was made of the same sources.
    fn part(&self, sources: &[Source]) -> Option<&MadePart> {
        let same = |part: &&MadePart| {
            part.sources.len() == sources.len() && part.sources.iter().zip(sources).all(|(a, b)| a.is_same(b))
        };
        self.parts.iter().find(same)
    }
}

#[cfg(test)]
mod tests;
