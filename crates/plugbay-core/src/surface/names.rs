//! Every tool that can be called, by the name that hosts use: `{server}__{tool}`, or the tool's own.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use bytes::Bytes;

use super::{
    BuiltinTool, Layout, LazyNames, Resources, ToolIndex, ToolList,
    activate::cost,
    found::{Found, Target, described, with_own_pages},
    lazy_names::{Parts, exposure},
    name_table::{NameTable, Numbers},
    search::Index,
    spelling::{Spelled, Spellings},
};
use crate::{
    catalog::{Catalog, Tool},
    exposure::Exposure,
    name::{self, ServerName, ServerPrefixes},
    policy::Policy,
    tokens::Cost,
};

/// All names, and the tools that they lead to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The tools in the order of exposed names, so that equal catalogs give equal bytes.
    pub(super) table: NameTable,
    /// Exposed names that two tools wanted; neither got it.
    pub collisions: Vec<String>,
    /// Bare names that left unclear whose tool is meant; those tools got their server's name in front.
    pub ambiguous: Vec<String>,
    /// Names of remote tools that a local tool has too; the remote tools got their remote's name in front.
    pub shadowed: Vec<String>,
    /// The names of every server, whether it has listed its tools or not.
    pub prefixes: Arc<ServerPrefixes>,
    pub(super) spellings: Spellings,
    /// Servers that have never listed their tools, and which of those may be called.
    unlisted: BTreeMap<ServerName, Policy>,
    /// The remotes among them, whose tools have no prefix.
    unlisted_remotes: Vec<ServerName>,
    undecided: OnceLock<Cost>,
    list: OnceLock<ToolList>,
    /// The places of each server's tools, if it has no block of its own.
    by_server: OnceLock<BTreeMap<ServerName, Vec<u32>>>,
}

impl Names {
    /// `before`: earlier names by the same rules, and what they were made of.
    pub(super) fn new(parts: &Parts, before: Option<(&Self, &Parts)>) -> Self {
        let Parts { catalog, layout, .. } = parts;
        let servers = all_servers(catalog, layout);
        let prefixes = Arc::new(ServerPrefixes::new(&servers));
        let unlisted = layout.exposures.iter().filter(|(server, _)| catalog.get(server).is_none());
        let remotes = unlisted.clone().filter(|(_, exposure)| exposure.remote);
        let unlisted_remotes = remotes.map(|(server, _)| server.clone()).collect();
        let unlisted = unlisted.map(|(server, exposure)| (server.clone(), exposure.policy.clone())).collect();
        let names = Self { prefixes, unlisted, unlisted_remotes, ..Self::default() };
        match NameTable::of_servers(parts, before) {
            Some(table) => Self { table, ..names },
            None => names.with_all(parts, &servers),
        }
    }

    /// Gives each tool its name, as far as the names of others let it.
    fn with_all(self, parts: &Parts, servers: &BTreeSet<ServerName>) -> Self {
        let NameRules { limit, identifiers } = parts.rules;
        let mut numbers = Numbers::new();
        let mut shown: Vec<NamedTool> = Vec::new();
        for allowed in allowed(&parts.catalog, &parts.layout) {
            let of_server = numbers.entry(allowed.0.clone()).or_default();
            let number = is_for_model(allowed.1).then_some(of_server.len());
            of_server.extend(number.map(|_| None));
            shown.push(NamedTool::new(number, allowed, &parts.resources, limit));
        }
        if identifiers {
            name_as_identifiers(&mut shown, servers, limit);
        }
        let shadowed = give_way_to_local(&mut shown, &self.prefixes);
        let ambiguous = name_in_full(&mut shown, &self.prefixes);
        let collisions = wanted_twice(&mut shown);
        shown.retain(|one| collisions.binary_search(&one.found.exposed).is_err());
        for (place, one) in (0..).zip(&shown) {
            if let (Some(number), Some(places)) = (one.number, numbers.get_mut(&one.found.target.server)) {
                places[number] = Some(place);
            }
        }
        let table = NameTable::of_all(shown.into_iter().map(|one| one.found).collect(), numbers);
        Self { table, collisions, ambiguous, shadowed, ..self }
    }

    pub fn get(&self, exposed: &str) -> Option<&Found> {
        self.table.get(exposed)
    }

    /// A tool by its number among those of its server that models may call.
    pub(super) fn numbered(&self, server: &ServerName, number: u32) -> Option<&Found> {
        self.table.numbered(server, number)
    }

    pub(super) fn number(&self, exposed: &str) -> Option<(&ServerName, u32)> {
        self.table.number(exposed)
    }

    pub(super) fn at(&self, place: u32) -> Option<&Found> {
        self.table.at(place)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Found> + Clone {
        self.table.iter()
    }

    /// The tools that models may call.
    pub fn for_model(&self) -> impl Iterator<Item = &Found> {
        self.iter().filter(|found| found.is_for_model())
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many tools each server has. In a large catalog no tool has to be read for that.
    pub fn counts(&self) -> BTreeMap<&ServerName, usize> {
        self.table.counts().unwrap_or_else(|| {
            let mut counts = BTreeMap::new();
            for found in self.iter() {
                *counts.entry(&found.target.server).or_default() += 1;
            }
            counts
        })
    }

    /// Makes the names of a server in advance that are else made at their first use.
    pub fn prepare(&self, server: &ServerName) {
        let _ = self.table.of(server);
    }

    /// Makes the same parts as for an earlier catalog: else the next request that needs one would wait for
    /// it.
    pub(super) fn prepare_like(&self, before: &Self) {
        self.table.prepare_like(&before.table);
        if before.spellings.are_made() {
            self.fold();
        }
        if before.by_server.get().is_some() {
            self.places_by_server();
        }
        if before.undecided.get().is_some() {
            self.undecided();
        }
        if before.list.get().is_some() {
            self.list();
        }
    }

    /// All tools as one document, written once.
    pub fn list(&self) -> &ToolList {
        self.list.get_or_init(|| ToolList::of(self.iter()))
    }

    /// The tools of one server.
    pub fn of<'a>(&'a self, server: &'a ServerName) -> impl Iterator<Item = &'a Found> {
        let scattered = (!self.table.is_by_server()).then(|| self.places_by_server());
        let places = scattered.and_then(|places| places.get(server)).into_iter().flatten();
        self.table.of(server).iter().chain(places.filter_map(|place| self.at(*place)))
    }

    fn places_by_server(&self) -> &BTreeMap<ServerName, Vec<u32>> {
        self.by_server.get_or_init(|| {
            let mut places: BTreeMap<ServerName, Vec<u32>> = BTreeMap::new();
            for (place, found) in (0..).zip(self.iter()) {
                places.entry(found.target.server.clone()).or_default().push(place);
            }
            places
        })
    }

    /// The tools of one server that models may call.
    pub fn for_model_of<'a>(&'a self, server: &'a ServerName) -> impl Iterator<Item = &'a Found> {
        self.of(server).filter(|found| found.is_for_model())
    }

    /// The tool that is meant by a name; of this server, if it was given separately.
    pub fn meant(&self, name: &str, server: Option<&str>) -> Option<&Found> {
        let is_of = |found: &&Found| server.is_none_or(|server| found.target.server.as_str() == server);
        let own = || self.iter().filter(is_of).find(|found| server.is_some() && found.target.tool == name);
        self.get(name).filter(is_of).or_else(own)
    }

    /// The tools of servers that have no mode of their own: how many, and roughly what they cost a model
    /// together. Tools for apps only do not count: hosts keep them from models.
    pub fn undecided(&self) -> Cost {
        *self.undecided.get_or_init(|| {
            let tools = self.iter().filter(|found| found.mode.is_none() && found.is_for_model());
            Cost { tools: tools.clone().count(), tokens: cost(tools) }
        })
    }

    /// The tool that a name leads to. A call to a configured server that has never listed its tools is
    /// forwarded too: the server may know the tool, and if it is broken the caller learns why.
    pub fn target(&self, name: &str) -> Option<Cow<'_, Target>> {
        let known = self.get(name).map(|found| Cow::Borrowed(&found.target));
        known.or_else(|| self.unlisted_target(name).map(Cow::Owned))
    }

    fn unlisted_target(&self, name: &str) -> Option<Target> {
        let (server, tool) = self.unlisted_server(name).or_else(|| self.unlisted_remote(name))?;
        let quoted = Bytes::from(serde_json::Value::from(tool).to_string());
        Some(Target { server, tool: tool.to_owned(), quoted })
    }

    fn unlisted_server<'n>(&self, name: &'n str) -> Option<(ServerName, &'n str)> {
        let (server, tool) = name::split(name)?;
        let server = ServerName::parse(server).ok()?;
        self.unlisted.get(&server).filter(|policy| policy.may(tool))?;
        Some((server, tool))
    }

    /// The remote that may have a tool of this name, if no other may. A name that could mean a tool of another server
    /// is no remote's.
    fn unlisted_remote<'n>(&self, name: &'n str) -> Option<(ServerName, &'n str)> {
        if self.unlisted_remotes.is_empty() || self.spelled(name) != Spelled::Nothing {
            return None;
        }
        let may = |remote: &&ServerName| self.unlisted.get(*remote).is_some_and(|policy| policy.may(name));
        let mut remotes = self.unlisted_remotes.iter().filter(may);
        let only = remotes.next().filter(|_| remotes.next().is_none())?;
        (!self.prefixes.claim(only, name)).then(|| (only.clone(), name))
    }

    /// The names most like one that does not exist, of tools that models may call.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        name::nearest(name, self.for_model().map(|found| found.exposed.as_str()))
    }
}

/// Every tool that may be called, with its server's exposure. The tools for models are numbered in this
/// order, whatever their names.
pub(super) fn allowed<'a>(
    catalog: &'a Catalog,
    layout: &'a Layout,
) -> impl Iterator<Item = (&'a ServerName, &'a Tool, &'a Exposure)> {
    catalog.iter().flat_map(|(server, entry)| {
        let exposure = exposure(layout, server);
        let tools = entry.offer.tools.iter().filter(|tool| exposure.policy.may(&tool.name));
        tools.map(move |tool| (server, tool, exposure))
    })
}

/// Whether models may call a tool; otherwise it is for the pages of its server alone.
pub(super) fn is_for_model(tool: &Tool) -> bool {
    tool.ui.as_ref().is_none_or(|ui| ui.for_model)
}

/// A host's rules for the names of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NameRules {
    pub(super) limit: usize,
    /// Names must be identifiers of functions.
    pub(super) identifiers: bool,
}

/// The names by one set of rules, and the index that finds tools under these names.
#[derive(Debug, Clone)]
pub(super) struct LimitedNames {
    pub(super) names: Arc<LazyNames>,
    pub(super) tool_index: Arc<ToolIndex>,
}

/// The names by each set of rules. Hosts differ in what a name may be, but there are few such rules.
#[derive(Debug, Default)]
pub(super) struct NamesByRules {
    made: Mutex<BTreeMap<NameRules, LimitedNames>>,
    /// The names of an earlier catalog, whose parts may still be right.
    before: BTreeMap<NameRules, Arc<LazyNames>>,
}

impl NamesByRules {
    /// Names of the next catalog.
    pub(super) fn next(&self) -> Self {
        let mut before = self.before.clone();
        for (rules, LimitedNames { names, .. }) in &*self.lock() {
            if names.are_kept_for_next() {
                before.insert(*rules, Arc::clone(names));
            }
        }
        Self { made: Mutex::default(), before }
    }

    pub(super) fn within(
        &self,
        rules: NameRules,
        index: &Arc<Index>,
        parts: (&Arc<Catalog>, &Arc<Layout>, &Arc<Resources>),
    ) -> LimitedNames {
        let make = || {
            let names = Arc::new(LazyNames::new(parts, rules, self.before.get(&rules).cloned()));
            LimitedNames {
                tool_index: Arc::new(ToolIndex::new(Arc::clone(&names), Arc::clone(index))),
                names,
            }
        };
        self.lock().entry(rules).or_insert_with(make).clone()
    }

    /// The names by these rules, if a host has needed them.
    pub(super) fn made(&self, rules: NameRules) -> Option<Arc<LazyNames>> {
        self.lock().get(&rules).map(|limited| Arc::clone(&limited.names))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NameRules, LimitedNames>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A tool while its name is being decided.
struct NamedTool {
    found: Found,
    /// Its name with its server's in front.
    full: String,
    remote: bool,
    /// Its number among those of its server that are for models.
    number: Option<usize>,
}

impl NamedTool {
    fn new(
        number: Option<usize>,
        (server, tool, exposure): (&ServerName, &Tool, &Exposure),
        resources: &Resources,
        limit: usize,
    ) -> Self {
        let visible = exposure.rename.get(&tool.name).unwrap_or(&tool.name);
        let full = name::expose(server, visible, limit);
        let exposed =
            if exposure.bare || exposure.remote { name::expose_bare(visible, limit) } else { full.clone() };
        let target = Target::of(server, tool);
        let found = Found {
            exposed,
            target,
            tool: with_own_pages(described(tool, &exposure.describe), server, resources),
            mode: exposure.mode,
            pinned: exposure.pin.matches(&tool.name),
        };
        Self { found, full, remote: exposure.remote, number }
    }

    fn exposed(&self) -> &str {
        &self.found.exposed
    }

    fn is_bare(&self) -> bool {
        self.exposed() != self.full
    }
}

/// Gives remote tools their full names if a local tool has the name, or if the name reads like one of a local
/// server's: a remote must not be able to take a local tool's calls. Returns the names given up.
fn give_way_to_local(shown: &mut [NamedTool], servers: &ServerPrefixes) -> Vec<String> {
    if !shown.iter().any(|one| one.remote) {
        return Vec::new();
    }
    let local: HashSet<String> =
        shown.iter().filter(|one| !one.remote).map(|one| name::folded(one.exposed())).collect();
    let mut shadowed = Vec::new();
    for one in shown.iter_mut().filter(|one| one.remote) {
        if local.contains(&name::folded(one.exposed())) || is_taken(one, servers) {
            shadowed.push(std::mem::replace(&mut one.found.exposed, one.full.clone()));
        }
    }
    shadowed.sort();
    shadowed
}

/// Gives bare tools their full names if two servers want the same one, however it is written, or if the name
/// reads like a tool of another server: a server must not be able to take another's calls. Returns the names
/// given up.
fn name_in_full(shown: &mut [NamedTool], servers: &ServerPrefixes) -> Vec<String> {
    if !shown.iter().any(NamedTool::is_bare) {
        return Vec::new();
    }
    let mut owners: HashMap<String, (ServerName, bool)> = HashMap::new();
    for one in shown.iter() {
        let server = &one.found.target.server;
        for spelling in [name::folded(one.exposed()), name::folded(&one.full)] {
            let (owner, several) = owners.entry(spelling).or_insert_with(|| (server.clone(), false));
            *several |= owner != server;
        }
    }
    let is_shared =
        |one: &NamedTool| owners.get(&name::folded(one.exposed())).is_some_and(|(_, several)| *several);
    let mut ambiguous = Vec::new();
    for one in shown.iter_mut().filter(|one| one.is_bare()) {
        if is_shared(one) || is_taken(one, servers) {
            ambiguous.push(std::mem::replace(&mut one.found.exposed, one.full.clone()));
        }
    }
    ambiguous.sort();
    ambiguous.dedup();
    ambiguous
}

/// Turns names into identifiers, before bare names are settled: those give way as they do elsewhere. If two
/// names with a server in front become the same, or two servers' do, a name that had to change gets a mark.
/// So no tool loses its name, and none has the name of another server's.
fn name_as_identifiers(shown: &mut [NamedTool], servers: &BTreeSet<ServerName>, limit: usize) {
    let mut wanted: HashMap<String, usize> = HashMap::new();
    let names = shown.iter().map(|one| one.full.as_str());
    for name in names.chain(servers.iter().map(ServerName::as_str)) {
        *wanted.entry(name::identifier(name)).or_default() += 1;
    }
    let natural: BTreeSet<String> =
        shown.iter().map(|one| &one.full).filter(|full| name::identifier(full) == **full).cloned().collect();
    for one in shown.iter_mut() {
        let (is_bare, plain) = (one.is_bare(), name::identifier(&one.full));
        let is_only = |name: &str| wanted.get(name) == Some(&1);
        if plain != one.full {
            let server = name::identifier(one.found.target.server.as_str());
            let mut marked = name::marked_identifier(&one.full, limit);
            while natural.contains(&marked) {
                marked.push('_');
            }
            let alone = is_only(&plain) && is_only(&server) && plain.len() <= limit;
            one.full = if alone { plain } else { marked };
        }
        one.found.exposed = if is_bare { name::identifier(one.exposed()) } else { one.full.clone() };
    }
}

fn all_servers(catalog: &Catalog, layout: &Layout) -> BTreeSet<ServerName> {
    catalog.iter().map(|(server, _)| server).chain(layout.exposures.keys()).cloned().collect()
}

/// Whether a bare name is not free: it reads like a tool of another server, or of the gateway.
fn is_taken(one: &NamedTool, servers: &ServerPrefixes) -> bool {
    one.is_bare()
        && (servers.claim(&one.found.target.server, one.exposed()) || BuiltinTool::is_alike(one.exposed()))
}

/// Sorts by exposed name and returns the names that occur more than once.
fn wanted_twice(shown: &mut [NamedTool]) -> Vec<String> {
    shown.sort_by(|a, b| a.exposed().cmp(b.exposed()));
    let pairs = shown.windows(2).filter(|pair| pair[0].exposed() == pair[1].exposed());
    let mut twice: Vec<String> = pairs.map(|pair| pair[0].exposed().to_owned()).collect();
    twice.dedup();
    twice
}
