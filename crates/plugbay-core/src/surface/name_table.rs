//! Tools by exposed name, by place and by number. In a large catalog each server has a block of its own, which the names of
//! the next catalog share while the server stays the same.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, OnceLock},
};

use super::{
    Found, Layout, Names,
    found::{Target, described},
    lazy_names::{Parts, exposure},
};
use crate::{
    catalog::{Tool, Tools},
    exposure::Exposure,
    name::{self, ServerName},
    policy::Policy,
};

/// From this many tools on, servers have blocks of their own: with fewer, a lookup in one block is faster.
const MANY: usize = 5_000;

/// All tools that have a name. A tool's place is its position in the order of exposed names. Its number is
/// its position among those tools of its server that models may call, in the order of the catalog.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NameTable {
    /// The blocks in the order of exposed names.
    blocks: Vec<PlacedBlock>,
    /// The block of each server; empty if one block has the tools of all.
    by_server: HashMap<ServerName, usize>,
    numbers: Numbers,
}

/// The places of each server's tools, by the tools' numbers; `None` for a tool that got no name. A server
/// with a block of its own is not in here: in its block numbers are places.
pub(super) type Numbers = HashMap<ServerName, Vec<Option<u32>>>;

#[derive(Debug, PartialEq, Eq)]
struct PlacedBlock {
    /// The place of its first tool.
    start: u32,
    block: Arc<Block>,
}

/// Tools in the order of their exposed names. Those of a server that has a block of its own are made when one of them is
/// first needed.
struct Block {
    /// The number of its tools, unless the stored tools turn out to be damaged.
    count: u32,
    made: OnceLock<NamedTools>,
    source: Option<BlockSource>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct NamedTools {
    tools: Vec<Found>,
    places: HashMap<String, u32>,
}

/// What a block is made of.
struct BlockSource {
    server: ServerName,
    tools: Tools,
    layout: Arc<Layout>,
    limit: usize,
}

impl Block {
    fn of(tools: Vec<Found>) -> Arc<Self> {
        let count = u32::try_from(tools.len()).unwrap_or(u32::MAX);
        Arc::new(Self { count, made: NamedTools::new(tools).into(), source: None })
    }

    fn later(source: BlockSource) -> Option<Arc<Self>> {
        let count = u32::try_from(source.count()).ok()?;
        Some(Arc::new(Self { count, made: OnceLock::new(), source: Some(source) }))
    }

    fn made(&self) -> &NamedTools {
        self.made.get_or_init(|| self.source.as_ref().map(BlockSource::named).unwrap_or_default())
    }

    fn tools(&self) -> &[Found] {
        &self.made().tools
    }

    /// Whether these tools can be made at their first use, because that takes only a moment.
    fn can_wait(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.tools.can_wait(&source.server))
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("count", &self.count).field("made", &self.made).finish_non_exhaustive()
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.made() == other.made()
    }
}

impl Eq for Block {}

impl NamedTools {
    fn new(tools: Vec<Found>) -> Self {
        let places = (0..).zip(&tools).map(|(at, found)| (found.exposed.clone(), at)).collect();
        Self { tools, places }
    }
}

impl BlockSource {
    fn exposure(&self) -> &Exposure {
        exposure(&self.layout, &self.server)
    }

    /// How many tools may be called.
    fn count(&self) -> usize {
        let policy = &self.exposure().policy;
        if *policy == Policy::default() {
            return self.tools.len();
        }
        self.tools.names().iter().filter(|name| policy.may(name)).count()
    }

    /// The tools that may be called, each named by its own name after the server's.
    fn named(&self) -> NamedTools {
        let (server, exposure) = (&self.server, self.exposure());
        let allowed = self.tools.iter().filter(|tool| exposure.policy.may(&tool.name));
        let found = |tool: &Tool| Found {
            exposed: name::expose(server, &tool.name, self.limit),
            target: Target::of(server, tool),
            tool: described(tool, &exposure.describe).into_owned(),
            mode: exposure.mode,
            pinned: exposure.pin.matches(&tool.name),
        };
        NamedTools::new(allowed.map(found).collect())
    }
}

impl NameTable {
    /// Tools in the order of their names, and their numbers.
    pub(super) fn of_all(tools: Vec<Found>, numbers: Numbers) -> Self {
        let blocks = vec![PlacedBlock { start: 0, block: Block::of(tools) }];
        Self { blocks, by_server: HashMap::new(), numbers }
    }

    /// A block for each server, if there are many tools and none has a name that depends on other servers. Blocks of
    /// servers that are the same as before are kept.
    pub(super) fn of_servers(parts: &Parts, before: Option<(&Names, &Parts)>) -> Option<Self> {
        let count = |(_, tools, _): &(&ServerName, &Tools, &Exposure)| tools.len();
        let servers = parts.servers_named_as_listed()?;
        if servers.iter().map(count).sum::<usize>() < MANY {
            return None;
        }
        let mut blocks: Vec<(String, &ServerName, Arc<Block>)> = Vec::with_capacity(servers.len());
        for (server, tools, exposure) in servers {
            let kept = before.and_then(|(names, earlier)| {
                let same = earlier.has_same(server, tools, exposure);
                names.table.block_of(server).filter(|_| same)
            });
            let make = || {
                let (tools, layout) = (tools.clone(), Arc::clone(&parts.layout));
                Block::later(BlockSource { server: server.clone(), tools, layout, limit: parts.limit() })
            };
            let block = kept.map_or_else(make, |kept| Some(Arc::clone(kept)))?;
            blocks.push((name::before(server), server, block));
        }
        // None of these prefixes begins with another, so names stand in this order too.
        blocks.sort_by(|a, b| a.0.cmp(&b.0));
        let mut start = 0;
        let mut table = Self::default();
        for (_, server, block) in blocks {
            table.by_server.insert(server.clone(), table.blocks.len());
            let count = block.count;
            table.blocks.push(PlacedBlock { start, block });
            start += count;
        }
        Some(table)
    }

    /// Whether servers have blocks of their own.
    pub(super) fn is_by_server(&self) -> bool {
        !self.by_server.is_empty()
    }

    /// Makes the blocks of servers whose tools were needed in an earlier table.
    pub(super) fn prepare_like(&self, before: &Self) {
        for (server, at) in &self.by_server {
            let block = &self.blocks[*at].block;
            if before.block_of(server).map_or(!block.can_wait(), |earlier| earlier.made.get().is_some()) {
                block.made();
            }
        }
    }

    /// How many tools each server has, if servers have blocks of their own.
    pub(super) fn counts(&self) -> Option<BTreeMap<&ServerName, usize>> {
        let count = |(server, at): (_, &usize)| (server, self.blocks[*at].block.count as usize);
        self.is_by_server().then(|| self.by_server.iter().map(count).collect())
    }

    fn block_of(&self, server: &ServerName) -> Option<&Arc<Block>> {
        self.by_server.get(server).map(|at| &self.blocks[*at].block)
    }

    /// The tools of a server that has a block of its own.
    pub(super) fn of(&self, server: &ServerName) -> &[Found] {
        self.block_of(server).map(|block| block.tools()).unwrap_or_default()
    }

    pub(super) fn get(&self, exposed: &str) -> Option<&Found> {
        let (block, at) = self.within_block(exposed)?;
        block.block.tools().get(at as usize)
    }

    /// The block of a tool, and where it stands in it.
    fn within_block(&self, exposed: &str) -> Option<(&PlacedBlock, u32)> {
        let block = if let [only] = &self.blocks[..] {
            only
        } else {
            let (server, _) = name::split(exposed)?;
            &self.blocks[*self.by_server.get(server)?]
        };
        Some((block, *block.block.made().places.get(exposed)?))
    }

    pub(super) fn at(&self, place: u32) -> Option<&Found> {
        let behind = self.blocks.partition_point(|block| block.start <= place);
        // Blocks without tools stand at the same place as the next one, before it.
        let PlacedBlock { start, block } = self.blocks.get(behind.checked_sub(1)?)?;
        block.tools().get((place - start) as usize)
    }

    /// The tool of a server by its number.
    pub(super) fn numbered(&self, server: &ServerName, number: u32) -> Option<&Found> {
        if let Some(block) = self.block_of(server) {
            return block.tools().get(number as usize);
        }
        self.at(self.numbers.get(server)?.get(number as usize).copied().flatten()?)
    }

    /// The server of a tool, and its number there.
    pub(super) fn number(&self, exposed: &str) -> Option<(&ServerName, u32)> {
        let (block, at) = self.within_block(exposed)?;
        let server = &block.block.tools().get(at as usize)?.target.server;
        let Some(places) = self.numbers.get(server) else { return Some((server, at)) };
        let number = places.iter().position(|place| *place == Some(block.start + at))?;
        Some((server, u32::try_from(number).ok()?))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Found> + Clone {
        self.blocks.iter().flat_map(|block| block.block.tools())
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (last.start + last.block.count) as usize)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{
        catalog::{Catalog, Change, Offer},
        era::Era,
        surface::{Layout, Snapshot},
    };

    fn listed(name: &str, count: usize) -> Change {
        let tool = |number| Tool::parse(Bytes::from(format!(r#"{{"name":"t{number}"}}"#))).unwrap();
        let offer = Offer::new(Era::Legacy, None, None, (0..count).map(tool).collect());
        Change::Listed(ServerName::parse(name).unwrap(), Arc::new(offer))
    }

    fn layout() -> Arc<Layout> {
        Arc::new(Layout { name_limit: 64, ..Layout::default() })
    }

    /// A snapshot in which `a__t1` stands after `a-b__t1`, although `a` stands before `a-b`; two servers have
    /// no tools.
    fn large() -> Snapshot {
        let servers = [("a", MANY), ("a-", 0), ("a-b", 30), ("b", 20), ("z", 0)];
        let catalog = servers
            .iter()
            .fold(Catalog::default(), |catalog, (name, count)| catalog.apply(listed(name, *count)));
        Snapshot::new(Arc::new(catalog), layout(), true)
    }

    fn block<'a>(snapshot: &'a Snapshot, server: &str) -> &'a Arc<Block> {
        snapshot.names.table.block_of(&ServerName::parse(server).unwrap()).unwrap()
    }

    #[test]
    fn names_of_a_large_catalog_lead_where_those_of_a_small_one_do() {
        let snapshot = large();
        let table = &snapshot.names.table;
        assert!(table.is_by_server());
        let mut exposed: Vec<&str> = table.iter().map(|found| found.exposed.as_str()).collect();
        assert_eq!((exposed.len(), table.len()), (MANY + 50, MANY + 50));
        assert!(exposed.is_sorted() && exposed[0] == "a-b__t0");
        for (place, name) in (0..).zip(&exposed) {
            assert_eq!(table.get(name), table.at(place));
            let (server, number) = table.number(name).unwrap();
            assert_eq!(table.numbered(server, number), table.at(place), "{name}");
        }
        let numbered = |server, number| table.numbered(&ServerName::parse(server).unwrap(), number);
        let first = |server| numbered(server, 0).map(|found| found.exposed.as_str());
        assert_eq!((first("a"), first("a-b"), first("z")), (Some("a__t0"), Some("a-b__t0"), None));
        assert_eq!((numbered("b", 20), table.at(u32::try_from(MANY).unwrap() + 50)), (None, None));
        assert_eq!(snapshot.names.of(&ServerName::parse("b").unwrap()).count(), 20);
        for unknown in ["", "a", "a__", "a__t", "c__t0", "t0", "a-__t0"] {
            assert_eq!(table.get(unknown), None, "{unknown}");
        }
        exposed.dedup();
        assert_eq!(exposed.len(), MANY + 50);
    }

    #[test]
    fn names_of_a_server_are_made_when_one_of_its_tools_is_needed() {
        let snapshot = large();
        assert_eq!(snapshot.names.len(), MANY + 50);
        assert!(snapshot.names.get("b__t1").is_some() && snapshot.names.get("b__t20").is_none());
        let counts: Vec<usize> = snapshot.names.counts().into_values().collect();
        assert_eq!(counts, [MANY, 0, 30, 20, 0]);
        let made = |server| block(&snapshot, server).made.get().is_some();
        assert_eq!((made("a"), made("a-b"), made("b")), (false, false, true));
    }

    #[test]
    fn a_change_of_one_server_leaves_the_names_of_the_others_as_they_are() {
        let before = large();
        assert_eq!(before.names.len(), MANY + 50);
        let catalog = Arc::new(before.catalog.apply(listed("b", 21)));
        // Between the two lies a snapshot that nobody used.
        let between = before.followed_by(Arc::clone(&catalog), layout(), false);
        let after = between.followed_by(Arc::clone(&catalog), layout(), true);
        assert!(Arc::ptr_eq(block(&before, "a"), block(&after, "a")));
        assert!(!Arc::ptr_eq(block(&before, "b"), block(&after, "b")));
        assert_eq!(*after.names, *Snapshot::new(Arc::clone(&catalog), layout(), true).names);
        let exposure =
            Exposure { pin: crate::policy::Patterns::compile(["t1"]).unwrap(), ..Exposure::default() };
        let exposures = [(ServerName::parse("a").unwrap(), exposure)].into();
        let pinned = Layout { exposures, ..Layout::clone(&layout()) };
        let after = after.followed_by(catalog, Arc::new(pinned), true);
        assert!(after.names.get("a__t1").is_some_and(|found| found.pinned));
    }
}
