//! Tools by exposed name, by place and by number. In a large catalog each server has a block of its own, which the names of
//! the next catalog share while the server stays the same.

use std::{collections::HashMap, sync::Arc};

use super::{
    Found, Names,
    found::{Target, described},
    lazy_names::Parts,
};
use crate::{
    catalog::{Tool, Tools},
    exposure::Exposure,
    name::{self, ServerName},
};

/// From so many tools on, servers have blocks of their own: before, to look a name up in one block takes less time.
const MANY: usize = 5_000;

/// All tools that have a name. A place is a number in the order of exposed names; the number of a tool follows the order of
/// the catalog.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NameTable {
    /// In the order of exposed names.
    blocks: Vec<PlacedBlock>,
    /// The block of each server; empty if one block has the tools of all.
    by_server: HashMap<ServerName, usize>,
    numbers: Numbers,
}

#[derive(Debug, PartialEq, Eq)]
struct PlacedBlock {
    /// The place of its first tool.
    start: u32,
    block: Arc<Block>,
}

/// Tools in the order of their exposed names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Block {
    tools: Vec<Found>,
    places: HashMap<String, u32>,
}

/// Where the tool of a number stands.
#[derive(Debug, PartialEq, Eq)]
enum Numbers {
    /// Its place; nowhere, if it got no name.
    Each(Vec<Option<u32>>),
    /// The first number of each block that has tools, in their order: in a block they go up as places do.
    Blocks(Vec<(u32, usize)>),
}

impl Default for Numbers {
    fn default() -> Self {
        Self::Each(Vec::new())
    }
}

impl Block {
    fn new(tools: Vec<Found>) -> Arc<Self> {
        let places = (0..).zip(&tools).map(|(at, found)| (found.exposed.clone(), at)).collect();
        Arc::new(Self { tools, places })
    }
}

impl NameTable {
    /// Tools in the order of their names, and the place of each number.
    pub(super) fn of_all(tools: Vec<Found>, numbers: Vec<Option<u32>>) -> Self {
        let blocks = vec![PlacedBlock { start: 0, block: Block::new(tools) }];
        Self { blocks, by_server: HashMap::new(), numbers: Numbers::Each(numbers) }
    }

    /// A block for each server, if there are many tools and none has a name that depends on other servers. Blocks of
    /// servers that are the same as before are kept.
    pub(super) fn of_servers(parts: &Parts, before: Option<(&Names, &Parts)>) -> Option<Self> {
        let count = |(_, tools, _): &(&ServerName, &Tools, &Exposure)| tools.len();
        let servers = parts.servers_named_as_listed()?;
        if servers.iter().map(count).sum::<usize>() < MANY {
            return None;
        }
        let mut next = 0;
        let mut blocks: Vec<(String, u32, &ServerName, Arc<Block>)> = Vec::with_capacity(servers.len());
        for (server, tools, exposure) in servers {
            let kept = before.and_then(|(names, earlier)| {
                let same = earlier.has_same(server, tools, exposure);
                names.table.block_of(server).filter(|_| same)
            });
            let make = || Block::new(found(server, tools, exposure, parts.limit()));
            let block = kept.map_or_else(make, Arc::clone);
            let first = next;
            next += u32::try_from(block.tools.len()).ok()?;
            blocks.push((name::before(server), first, server, block));
        }
        // No such beginning begins with another, so names stand in this order too.
        blocks.sort_by(|a, b| a.0.cmp(&b.0));
        let with_tools = blocks.iter().zip(0..).filter(|((.., block), _)| !block.tools.is_empty());
        let mut numbers: Vec<(u32, usize)> = with_tools.map(|((_, first, ..), at)| (*first, at)).collect();
        numbers.sort_unstable();
        let mut start = 0;
        let mut table = Self { numbers: Numbers::Blocks(numbers), ..Self::default() };
        for (_, _, server, block) in blocks {
            table.by_server.insert(server.clone(), table.blocks.len());
            let length = u32::try_from(block.tools.len()).ok()?;
            table.blocks.push(PlacedBlock { start, block });
            start += length;
        }
        Some(table)
    }

    /// Whether servers have blocks of their own.
    pub(super) fn is_by_server(&self) -> bool {
        !self.by_server.is_empty()
    }

    fn block_of(&self, server: &ServerName) -> Option<&Arc<Block>> {
        self.by_server.get(server).map(|at| &self.blocks[*at].block)
    }

    /// The tools of a server that has a block of its own.
    pub(super) fn of(&self, server: &ServerName) -> &[Found] {
        self.block_of(server).map(|block| &block.tools[..]).unwrap_or_default()
    }

    pub(super) fn get(&self, exposed: &str) -> Option<&Found> {
        let (block, at) = self.within_block(exposed)?;
        block.block.tools.get(at as usize)
    }

    /// The block of a tool, and where it stands in it.
    fn within_block(&self, exposed: &str) -> Option<(&PlacedBlock, u32)> {
        let block = if let [only] = &self.blocks[..] {
            only
        } else {
            let (server, _) = name::split(exposed)?;
            &self.blocks[*self.by_server.get(server)?]
        };
        Some((block, *block.block.places.get(exposed)?))
    }

    pub(super) fn at(&self, place: u32) -> Option<&Found> {
        let behind = self.blocks.partition_point(|block| block.start <= place);
        // Blocks without tools stand at the same place as the next one, before it.
        let PlacedBlock { start, block } = self.blocks.get(behind.checked_sub(1)?)?;
        block.tools.get((place - start) as usize)
    }

    pub(super) fn numbered(&self, number: u32) -> Option<&Found> {
        match &self.numbers {
            Numbers::Each(places) => self.at(places.get(number as usize).copied().flatten()?),
            Numbers::Blocks(firsts) => {
                let behind = firsts.partition_point(|(first, _)| *first <= number);
                let (first, at) = firsts.get(behind.checked_sub(1)?)?;
                self.blocks[*at].block.tools.get((number - first) as usize)
            }
        }
    }

    pub(super) fn number(&self, exposed: &str) -> Option<u32> {
        let (block, at) = self.within_block(exposed)?;
        match &self.numbers {
            Numbers::Each(places) => {
                let number = places.iter().position(|place| *place == Some(block.start + at))?;
                u32::try_from(number).ok()
            }
            Numbers::Blocks(firsts) => {
                let is_here = |(_, one): &&(u32, usize)| self.blocks[*one].start == block.start;
                firsts.iter().find(is_here).map(|(first, _)| first + at)
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Found> + Clone {
        self.blocks.iter().flat_map(|block| &block.block.tools)
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| last.start as usize + last.block.tools.len())
    }
}

/// The tools of a server that may be called, each with its own name behind the server's.
fn found(server: &ServerName, tools: &Tools, exposure: &Exposure, limit: usize) -> Vec<Found> {
    let allowed = tools.iter().filter(|tool| exposure.policy.may(&tool.name));
    let found = |tool: &Tool| Found {
        exposed: name::expose(server, &tool.name, limit),
        target: Target::of(server, tool),
        tool: described(tool, &exposure.describe).into_owned(),
        mode: exposure.mode,
        pinned: exposure.pin.matches(&tool.name),
    };
    allowed.map(found).collect()
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

    /// `a__t1` stands behind `a-b__t1`, although `a` stands before `a-b`; two servers have no tools.
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
            let number = table.number(name).unwrap();
            assert_eq!(table.numbered(number), table.at(place), "{name}");
        }
        // Numbers follow the catalog, in which names of servers are in order without the joint.
        let first = |number| table.numbered(number).map(|found| found.exposed.as_str());
        let after_a = u32::try_from(MANY).unwrap();
        assert_eq!(
            (first(0), first(after_a), first(after_a + 30)),
            (Some("a__t0"), Some("a-b__t0"), Some("b__t0"))
        );
        assert_eq!((table.numbered(after_a + 50), table.at(after_a + 50)), (None, None));
        assert_eq!(snapshot.names.of(&ServerName::parse("b").unwrap()).count(), 20);
        for unknown in ["", "a", "a__", "a__t", "c__t0", "t0", "a-__t0"] {
            assert_eq!(table.get(unknown), None, "{unknown}");
        }
        exposed.dedup();
        assert_eq!(exposed.len(), MANY + 50);
    }

    #[test]
    fn a_change_of_one_server_leaves_the_names_of_the_others_as_they_are() {
        let before = large();
        assert_eq!(before.names.len(), MANY + 50);
        let catalog = Arc::new(before.catalog.apply(listed("b", 21)));
        // One that nobody used lies between.
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
