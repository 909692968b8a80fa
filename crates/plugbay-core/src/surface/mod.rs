//! What a host sees of the catalog, and what its calls mean: pure functions of a snapshot.

pub mod activate;
mod beginnings;
mod builtin;
mod by_host;
mod found;
mod granted;
mod instructions;
mod lazy_names;
mod listing;
mod name_table;
mod names;
mod notice;
mod own_skill;
mod prepared;
mod problem;
mod prompts;
mod resources;
mod search;
mod settings;
mod skills;
mod spelling;
pub mod suite;
#[cfg(test)]
mod tests;
mod tool_list;
mod uri;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub use crate::profile::{LONGEST_INSTRUCTIONS, LONGEST_INSTRUCTIONS_OF_ALL};
pub use builtin::BuiltinTool;
pub use found::{Callable, Effect, Found, Target};
pub use instructions::{instructions, words_of};
pub use lazy_names::LazyNames;
pub use listing::{Listing, View};
pub use names::Names;
pub use notice::{beside_search, failed_unlisted};
pub use own_skill::OwnSkill;
pub use problem::Problem;
pub use prompts::BuiltinPrompt;
pub use resources::{Place, Resources};
pub use search::ToolIndex;
pub use settings::{CodeSettings, DEFAULT_MESSAGE_LIMIT, DEFAULT_SEARCH_LIMIT, LiveSettings};
pub use skills::{Skill, SkillPage, SkillPlace, Skills};
pub use spelling::Spelled;
pub use tool_list::ToolList;
pub use uri::{server_part, with_server};

use self::{
    by_host::ByHost,
    listing::Listings,
    names::{LimitedNames, NameRules, NamesByRules},
    search::Index,
};
use crate::{
    arguments::ResolvedTool,
    catalog::Catalog,
    exposure::{Exposure, Mode, Suite},
    name::{self, ServerName},
    profile::Profiles,
};

/// Everything that a session answers from, at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub catalog: Arc<Catalog>,
    pub layout: Arc<Layout>,
    pub names: Arc<LazyNames>,
    pub resources: Arc<Resources>,
    pub tool_index: Arc<ToolIndex>,
    /// The listing of the host that this was made for.
    pub listing: Arc<Listing>,
    /// Every server has listed its items or failed, now or in an earlier run, or the time to wait for it is
    /// over: nothing is gained by waiting.
    pub settled: bool,
    listings: Arc<Listings>,
    names_by_rules: Arc<NamesByRules>,
    index: Arc<Index>,
    by_host: Arc<ByHost>,
}

/// The user's configuration of how servers appear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// `None`: the mode that fits the host.
    pub mode: Option<Mode>,
    pub exposures: BTreeMap<ServerName, Exposure>,
    pub name_limit: usize,
    /// Search mode also shows the tools that administer servers.
    pub admin_tools: bool,
    /// Tools that only read are called through an own tool that only reads.
    pub split: bool,
    /// The profiles of hosts.
    pub hosts: Profiles,
    pub agents: AgentAccess,
    /// The servers whose tools agent runs may use; `None`: all.
    pub agent_servers: Option<BTreeSet<ServerName>>,
    pub settings: LiveSettings,
    /// The gateway's own skill.
    pub skill: Option<Arc<OwnSkill>>,
    /// What is wrong with the configuration, the most urgent first.
    pub problems: Vec<Problem>,
}

impl Layout {
    /// Whether agent runs, if there are any, may use this server's tools.
    pub fn runs_agents_with(&self, server: &ServerName) -> bool {
        self.agent_servers.as_ref().is_none_or(|servers| servers.contains(server))
    }
}

/// The tools that were used most, by their servers' own names: listed like those that the user pinned.
pub type Learned = BTreeMap<ServerName, BTreeSet<String>>;

/// The hosts for which a language model runs agent runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentAccess {
    #[default]
    Nobody,
    Everybody,
    /// Hosts that lend their own model.
    Lenders,
}

/// What to do with a `tools/call`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan<'a> {
    Forward(Cow<'a, Target>),
    Builtin(BuiltinTool),
    /// A call of one of a server's tools, or the list of them.
    Suite(&'a ServerName),
    Unknown {
        nearest: Vec<&'a str>,
    },
    /// Several servers may have a tool of this name, and it is unclear whose is meant.
    Ambiguous {
        candidates: Vec<&'a str>,
    },
}

impl Snapshot {
    pub fn new(catalog: Arc<Catalog>, layout: Arc<Layout>, settled: bool) -> Self {
        Self::made(catalog, layout, settled, None)
    }

    /// The snapshot of another catalog. Parts of it may be the same as here: what was made of those is kept.
    #[must_use]
    pub fn followed_by(&self, catalog: Arc<Catalog>, layout: Arc<Layout>, settled: bool) -> Self {
        Self::made(catalog, layout, settled, Some(self))
    }

    fn made(catalog: Arc<Catalog>, layout: Arc<Layout>, settled: bool, before: Option<&Self>) -> Self {
        let resources = Arc::new(Resources::new(&catalog, &layout));
        let names_by_rules = before.map(|before| before.names_by_rules.next()).unwrap_or_default();
        let index = Index::of(&catalog, &layout, before.map(|before| &before.index));
        let (names_by_rules, index) = (Arc::new(names_by_rules), Arc::new(index));
        let rules = NameRules { limit: layout.name_limit, identifiers: false };
        let LimitedNames { names, tool_index } =
            names_by_rules.within(rules, &index, (&catalog, &layout, &resources));
        let (listing, listings) = (Arc::default(), Arc::default());
        Self {
            catalog,
            layout,
            names,
            resources,
            tool_index,
            listing,
            settled,
            listings,
            names_by_rules,
            index,
            by_host: Arc::default(),
        }
        .seen_at_first()
    }

    /// The same lists after some servers may have failed or recovered.
    #[must_use]
    pub fn with_states_of(&self, catalog: Arc<Catalog>, settled: bool) -> Self {
        let same = self.catalog.has_same_failures(&catalog);
        let listings = if same { Arc::clone(&self.listings) } else { Arc::default() };
        let by_host = Arc::new(self.by_host.with_states_of(&catalog, settled));
        Self { catalog, settled, listings, by_host, ..self.clone() }.seen_at_first()
    }

    /// The snapshot as every host sees it, if the mode does not depend on the host. Else no list is written
    /// yet, but names can be looked up.
    fn seen_at_first(self) -> Self {
        match self.layout.mode {
            Some(mode) => self.seen_by(&View::in_mode(mode)),
            None => Self { listing: Arc::new(Listing::unwritten(&self.names)), ..self },
        }
    }

    /// The same snapshot, as another host sees it.
    #[must_use]
    pub fn seen_by(&self, view: &View) -> Self {
        let (rules, parts) = (self.rules_for(view), (&self.catalog, &self.layout, &self.resources));
        let LimitedNames { names, tool_index } = self.names_by_rules.within(rules, &self.index, parts);
        let make = || Listing::new(&names, self, view);
        Self { listing: self.listings.get(view, make), names, tool_index, ..self.clone() }
    }

    fn rules_for(&self, view: &View) -> NameRules {
        let limit = view.name_limit.unwrap_or(usize::MAX).min(self.layout.name_limit);
        NameRules { limit, identifiers: view.identifiers }
    }

    /// What a `tools/call` of this name means, if it is unknown which pages the host shows.
    pub fn plan(&self, name: &str) -> Plan<'_> {
        self.plan_beside(name, BTreeSet::new)
    }

    /// What a `tools/call` of this name means. A tool's own name is enough if no other tool has it: pages of
    /// a server know no other, a remote shows `web_search` as `web__web_search`, and prompts may use an
    /// earlier name. If several servers have it, the only one of them in `open` is meant: the servers whose
    /// pages the host may show.
    pub fn plan_beside(&self, name: &str, open: impl FnOnce() -> BTreeSet<ServerName>) -> Plan<'_> {
        let plan = self.listing.plan(name);
        // Another server may still list the same tool.
        if !matches!(plan, Plan::Unknown { .. }) || !self.settled {
            return plan;
        }
        let candidates = self.callable_by_own_name(name);
        if candidates.is_empty() || BuiltinTool::named(name).is_some() {
            return plan;
        }
        if let Some(disputed) = self.names.disputed(name, &candidates) {
            return Plan::Ambiguous { candidates: disputed.iter().map(|found| &*found.exposed).collect() };
        }
        let open = open();
        let is_open = |found: &&&Found| open.contains(&found.target.server);
        // A page whose own server has such a tool, but may not call it, does not mean another server's.
        let is_hidden = |server: &ServerName| {
            let has_it = self.catalog.get(server).is_some_and(|entry| entry.offer.tool(name).is_some());
            has_it && candidates.iter().all(|found| found.target.server != *server)
        };
        let hidden = open.iter().any(is_hidden);
        let likely: Vec<&Found> = match candidates[..] {
            [only] => vec![only],
            _ => candidates.iter().filter(is_open).copied().collect(),
        };
        match likely[..] {
            [only] if !hidden => Plan::Forward(Cow::Borrowed(&only.target)),
            [_] if candidates.len() == 1 => plan,
            _ => Plan::Ambiguous { candidates: candidates.iter().map(|found| &*found.exposed).collect() },
        }
    }

    /// The tools that can be called by this own name, without a server in front: those that pages may call,
    /// and those that have no prefix.
    fn callable_by_own_name(&self, name: &str) -> Vec<&Found> {
        let mut named = self.names.own_named(name);
        named.retain(|found| {
            let exposure = self.layout.exposures.get(&found.target.server);
            let (bare, remote) = exposure.map_or((false, false), |exposure| (exposure.bare, exposure.remote));
            remote || found.target.tool == name && (bare || found.is_for_app())
        });
        named
    }

    /// The tool that `execute_tool` calls by a name. A call to a server that never listed its tools is
    /// forwarded: if the server is broken, the caller learns why. If `server` is given, no tool of another is
    /// meant.
    pub fn executable(&self, name: &str, server: Option<&str>) -> Option<ResolvedTool<Callable<'_>>> {
        if let Some(found) = self.names.meant(name, server) {
            return found.is_for_model().then(|| found.resolved(true));
        }
        let server = server.map(ServerName::parse).transpose().ok()?;
        let name = match &server {
            Some(server) if !name.starts_with(&name::before(server)) => {
                name::expose(server, name, self.layout.name_limit)
            }
            _ => name.to_owned(),
        };
        let folded = |server: &ServerName| name::folded(server.as_str());
        let is_of =
            |target: &Target| server.as_ref().is_none_or(|server| folded(server) == folded(&target.server));
        if let Plan::Forward(target) = self.listing.plan(&name)
            && is_of(&target)
            && self.names.get(&name).is_none_or(Found::is_for_model)
        {
            let tool = Callable::Unlisted(target.into_owned());
            return Some(ResolvedTool { name, exact: true, schema: None, tool });
        }
        let found = self.names.alike(&name).filter(|found| is_of(&found.target))?;
        Some(found.resolved(false))
    }

    /// Whether nothing that hosts see differs between the two.
    pub fn is_same_moment(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.catalog, &other.catalog)
            && Arc::ptr_eq(&self.layout, &other.layout)
            && self.settled == other.settled
    }

    /// Whether the list of tools is final: tools of servers that have not listed yet would not appear in it.
    pub fn is_complete(&self, view: &View) -> bool {
        let is_known = |server| self.catalog.get(server).is_some() || self.catalog.failure(server).is_some();
        let stays_hidden = |(server, exposure): (&ServerName, &Exposure)| {
            let hidden = match self.mode_of(server, view) {
                Mode::Search | Mode::Code => true,
                Mode::Activate => !view.active.has_server(server),
                Mode::All | Mode::Suite => false,
            };
            hidden && exposure.pin.is_empty() && !view.learned.contains_key(server) && !view.apps
        };
        let decided = self.layout.mode.is_some();
        self.settled
            || decided && self.layout.exposures.iter().all(|one| is_known(one.0) || stays_hidden(one))
    }

    /// Every server, also those that never listed their tools.
    pub fn servers(&self) -> BTreeSet<ServerName> {
        let known = self.catalog.iter().map(|(server, _)| server);
        known.chain(self.layout.exposures.keys()).cloned().collect()
    }

    /// The settings of a server's suite.
    fn suite(&self, server: &ServerName) -> Suite {
        self.layout.exposures.get(server).map(|exposure| exposure.suite.clone()).unwrap_or_default()
    }

    pub fn mode_of(&self, server: &ServerName, view: &View) -> Mode {
        view.mode_for(self.layout.exposures.get(server).and_then(|exposure| exposure.mode))
    }

    /// Whether hosts count on a warm server: in mode `activate` its tools appear at once.
    pub fn promises_warmth(&self, server: &ServerName) -> bool {
        let mode = self.layout.exposures.get(server).and_then(|exposure| exposure.mode).or(self.layout.mode);
        mode == Some(Mode::Activate)
    }

    /// Whether there is such a server, whether it has been connected before or not.
    pub fn knows(&self, server: &ServerName) -> bool {
        self.catalog.get(server).is_some() || self.layout.exposures.contains_key(server)
    }
}
