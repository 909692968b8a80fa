//! What one host sees of the tools.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{BufMut, Bytes, BytesMut};

use super::{
    AgentAccess, BuiltinPrompt, BuiltinTool, Layout, LazyNames, Learned, Plan, Snapshot, Target,
    activate::Active,
    found::{Additions, Found},
    notice, prompts, suite,
};
use crate::{
    catalog::Catalog,
    exposure::{Exposure, Mode},
    name::{self, ServerName},
    profile::Profile,
    size_limit,
};

/// How a host looks at the gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the host")]
pub struct View {
    /// How servers are shown that have no mode of their own.
    pub mode: Mode,
    pub active: Active,
    /// The tools that had been used most when the conversation began.
    pub learned: Arc<Learned>,
    /// The host does not list again when it is told to: what is activated is called through another tool.
    pub ignores_list_changes: bool,
    /// The host hides tools behind a search of its own: some are marked to be left in sight.
    pub defers: bool,
    /// The longest name that the host takes.
    pub name_limit: Option<usize>,
    /// The host's model calls tools as functions: their names are identifiers.
    pub identifiers: bool,
    /// The host's own search reads titles: they name server and tool.
    pub titled: bool,
    /// A language model runs agent runs for this host.
    pub agents: bool,
    /// The host is a gateway: it sees every tool, also of servers with a mode of their own.
    pub whole: bool,
    /// The host shows the pages of tools, and can do so only for tools that it lists.
    pub apps: bool,
}

/// The tools that a host sees, ready to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// A JSON array of definitions.
    pub tools: Bytes,
    /// A JSON array of prompts.
    pub prompts: Bytes,
    /// A language model runs agent runs for this host.
    pub agents: bool,
    families: Families,
    /// Those of the gateway's own tools that can be called.
    own: Vec<BuiltinTool>,
    own_prompts: Vec<BuiltinPrompt>,
    /// The gateway's own skill is offered: the host sees tools that it is about.
    own_skill: bool,
    /// The servers that are shown as one tool.
    suites: BTreeMap<String, ServerName>,
    names: Arc<LazyNames>,
}

impl Listing {
    /// Writes the tools in the order of names, so that equal catalogs give equal bytes.
    pub(super) fn new(names: &Arc<LazyNames>, snapshot: &Snapshot, view: &View) -> Self {
        let Snapshot { catalog, layout, resources, .. } = snapshot;
        let families = Families::of(snapshot, view);
        let suites = suites(snapshot, view, names);
        let shown: Vec<&Found> = if view.may_show_any(snapshot) {
            names.iter().filter(|found| view.shows(found, catalog)).collect()
        } else {
            Vec::new()
        };
        let mut tools = BytesMut::from("[");
        if families.is_none() {
            let notice = notice::notice(snapshot, view, suites.is_empty() && shown.is_empty());
            tools.put_slice(notice.unwrap_or_default().as_bytes());
        }
        for own in families.listed(snapshot, view) {
            next(&mut tools).put_slice(own.definition().as_bytes());
        }
        for (exposed, server) in &suites {
            suite::write_definition(next(&mut tools), exposed, server, snapshot);
        }
        for found in shown {
            let always_load = view.keeps_in_sight(found);
            found.write(next(&mut tools), Additions { always_load, titled: view.titled });
        }
        tools.put_u8(b']');
        let own = families.callable(layout);
        let mut own_prompts = if is_plain(layout) { Vec::new() } else { BuiltinPrompt::among(&own) };
        own_prompts.retain(|prompt| resources.prompt(prompt.name()).is_none());
        let prompts = prompts::listed(&own_prompts, &resources.prompts);
        let (tools, agents, names) = (tools.freeze(), view.agents, Arc::clone(names));
        let own_skill = layout.skill.is_some() && (!families.is_none() || !suites.is_empty());
        Self { tools, prompts, agents, families, own, own_prompts, own_skill, suites, names }
    }

    pub(super) fn unwritten(names: &Arc<LazyNames>) -> Self {
        Self { names: Arc::clone(names), ..Self::default() }
    }

    pub fn plan(&self, name: &str) -> Plan<'_> {
        if let Some(own) = self.own.iter().find(|own| own.name() == name) {
            return Plan::Builtin(*own);
        }
        if let Some(server) = self.suites.get(name) {
            return Plan::Suite(server);
        }
        if name.len() > size_limit::NAME {
            return Plan::Unknown { nearest: Vec::new() }; // no list has it, and comparing it with patterns takes long
        }
        match self.names.target(name) {
            Some(target) => Plan::Forward(target),
            None => Plan::Unknown { nearest: self.names.nearest(name) },
        }
    }

    pub fn builtin_prompt(&self, name: &str) -> Option<BuiltinPrompt> {
        self.own_prompts.iter().find(|prompt| prompt.name() == name).copied()
    }

    /// Whether there are prompts of the gateway's own.
    pub fn has_own_prompts(&self) -> bool {
        !self.own_prompts.is_empty()
    }

    pub(super) fn has_own_skill(&self) -> bool {
        self.own_skill
    }

    /// Whether there are tools that have to be searched for.
    pub fn is_searchable(&self) -> bool {
        self.families.search
    }

    /// Whether only scripts can call tools that were found.
    pub fn is_for_scripts(&self) -> bool {
        self.families.only_code
    }

    /// Whether every tool is in sight, and none has to be found first.
    pub fn is_plain(&self) -> bool {
        !self.is_searchable() && !self.is_switchable() && !self.has_suites()
    }

    /// Whether servers are shown as one tool each.
    pub fn has_suites(&self) -> bool {
        !self.suites.is_empty()
    }

    /// The servers that are shown as one tool each, by the names of those tools.
    pub fn suites(&self) -> impl Iterator<Item = (&str, &ServerName)> {
        self.suites.iter().map(|(exposed, server)| (exposed.as_str(), server))
    }

    /// Whether servers can be switched on and off.
    pub fn is_switchable(&self) -> bool {
        self.families.activate
    }
}

/// Whether the user wants every tool passed through, and no tool of ours beside them.
fn is_plain(layout: &Layout) -> bool {
    let all = |exposure: &Exposure| exposure.mode.is_none_or(|mode| mode == Mode::All);
    layout.mode == Some(Mode::All) && layout.exposures.values().all(all)
}

/// The suites by name. If a name is taken already, the suite gets one that only its server can have.
fn suites(snapshot: &Snapshot, view: &View, names: &LazyNames) -> BTreeMap<String, ServerName> {
    let servers = snapshot.servers().into_iter();
    let servers = servers.filter(|server| snapshot.mode_of(server, view) == Mode::Suite);
    let limit = view.name_limit.unwrap_or(usize::MAX).min(snapshot.layout.name_limit);
    let mut suites = BTreeMap::new();
    for server in servers {
        let mut exposed = suite::exposed(&server, &snapshot.layout, limit);
        if view.identifiers {
            exposed = name::identifier(&exposed);
        }
        let taken = |name: &str, suites: &BTreeMap<String, ServerName>| {
            let of_tool = || may_be_of_tool(name, snapshot) && names.get(name).is_some();
            suites.contains_key(name) || BuiltinTool::named(name).is_some() || of_tool()
        };
        if taken(&exposed, &suites) {
            exposed = name::expose(&server, "suite", limit);
        }
        while taken(&exposed, &suites) {
            exposed.push('_');
        }
        suites.insert(exposed, server);
    }
    suites
}

/// Whether a tool could have this name: names with a server in front contain a joint.
fn may_be_of_tool(name: &str, snapshot: &Snapshot) -> bool {
    let has_no_prefix = |exposure: &Exposure| exposure.bare || exposure.remote;
    name::split(name).is_some() || snapshot.layout.exposures.values().any(has_no_prefix)
}

fn next(tools: &mut BytesMut) -> &mut BytesMut {
    if tools.len() > 1 {
        tools.put_u8(b',');
    }
    tools
}

impl View {
    pub fn in_mode(mode: Mode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// How a host of this kind looks at the gateway in a mode.
    pub fn of(host: &Profile, mode: Mode) -> Self {
        Self {
            mode: if mode == Mode::Code && host.code_mode { Mode::All } else { mode },
            ignores_list_changes: !host.lists_again,
            defers: host.defers_from.is_some(),
            name_limit: host.limits.name,
            identifiers: host.code_mode,
            titled: host.finds_by_title,
            whole: host.gateway,
            ..Self::default()
        }
    }

    /// The mode of a server for this host; `own` is the server's own mode.
    pub fn mode_for(&self, own: Option<Mode>) -> Mode {
        match own.unwrap_or(self.mode) {
            _ if self.whole => Mode::All,
            Mode::Code if self.identifiers => Mode::All, // it runs code itself
            mode => mode,
        }
    }

    /// Whether the host is asked not to hide the tool: it was pinned or switched on to be in sight.
    fn keeps_in_sight(&self, found: &Found) -> bool {
        let switched_on = self.mode_for(found.mode) == Mode::Activate;
        self.defers && (self.pins(found) || switched_on)
    }

    /// Whether the tool is listed in every mode: because the user wants it, or because it was used so much.
    pub fn pins(&self, found: &Found) -> bool {
        let Target { server, tool, .. } = &found.target;
        found.pinned || self.learned.get(server).is_some_and(|tools| tools.contains(tool))
    }

    /// Whether the host could be shown tools of servers one by one. In most modes it is not, so their names
    /// need not be known.
    fn may_show_any(&self, snapshot: &Snapshot) -> bool {
        let plain = Exposure::default();
        snapshot.catalog.iter().any(|(server, entry)| {
            let exposure = snapshot.layout.exposures.get(server).unwrap_or(&plain);
            let by_mode = match self.mode_for(exposure.mode) {
                Mode::All => true,
                Mode::Search | Mode::Suite | Mode::Code => false,
                Mode::Activate => self.active.has_server(server),
            };
            let pinned = || !exposure.pin.is_empty() || self.learned.contains_key(server);
            !entry.offer.tools.is_empty() && (by_mode || pinned() || self.apps && entry.offer.tools.have_ui())
        })
    }

    pub(super) fn shows(&self, found: &Found, catalog: &Catalog) -> bool {
        let server = &found.target.server;
        match self.mode_for(found.mode) {
            _ if self.pins(found) => true,
            _ if self.apps && found.has_page() && found.is_for_model() => true,
            Mode::All => true,
            Mode::Search | Mode::Suite | Mode::Code => false,
            Mode::Activate => {
                self.active.has(server, &found.target.tool) && catalog.failure(server).is_none()
            }
        }
    }
}

/// Which of the gateway's own tools a model needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a family of tools")]
struct Families {
    /// Tools have to be searched for.
    search: bool,
    /// Only scripts call the tools that are found.
    only_code: bool,
    activate: bool,
    /// The host's model is shown the tool that runs scripts.
    code: bool,
}

impl Families {
    fn of(snapshot: &Snapshot, view: &View) -> Self {
        let layout = &snapshot.layout;
        if notice::is_blank(snapshot) {
            return Self::default();
        }
        let has = |mode| {
            let modes = layout.exposures.values().map(|exposure| view.mode_for(exposure.mode));
            layout.exposures.is_empty() && view.mode == mode || modes.into_iter().any(|one| one == mode)
        };
        let (searched, scripted) = (has(Mode::Search), has(Mode::Code));
        Self {
            search: searched || scripted,
            only_code: scripted && !searched,
            activate: has(Mode::Activate),
            code: scripted || layout.settings.code.offered && !view.identifiers && !view.whole,
        }
    }

    fn is_none(self) -> bool {
        !self.search && !self.activate && !self.code
    }

    /// The own tools that are listed; the others are listed only if the configuration asks for them.
    fn listed(self, snapshot: &Snapshot, view: &View) -> Vec<BuiltinTool> {
        let layout = &snapshot.layout;
        let mut listed = Vec::new();
        if self.activate {
            listed.extend([BuiltinTool::Activate, BuiltinTool::Deactivate, BuiltinTool::Overview]);
        }
        if self.search {
            listed.push(BuiltinTool::Search);
            listed.extend((!self.only_code).then_some(BuiltinTool::Describe));
        }
        if self.search && !self.only_code || self.activate && view.ignores_list_changes {
            listed.push(BuiltinTool::Execute);
            listed.extend(layout.split.then_some(BuiltinTool::Read));
        }
        listed.extend(self.code.then_some(BuiltinTool::RunCode));
        if self.search && layout.admin_tools {
            listed.extend([BuiltinTool::Status, BuiltinTool::Refresh]);
        }
        // If agents are for some servers only, their tool is shown with each of those.
        let for_all = view.agents && layout.agent_servers.is_none() && !notice::is_blank(snapshot);
        listed.extend(for_all.then_some(BuiltinTool::NaturalLanguage));
        let outlines =
            !view.identifiers && !view.whole && layout.exposures.values().any(|one| one.results.listed);
        listed.extend(outlines.then_some(BuiltinTool::ReadResult));
        listed
    }

    /// The own tools that can be called. A tool that is not listed costs nothing, and a model that knows of
    /// it may use it: in every mode tools can be found and called, and the gateway looked at. Switching is
    /// for tools that are not always in sight.
    fn callable(self, layout: &Layout) -> Vec<BuiltinTool> {
        let mut callable = vec![
            BuiltinTool::Overview,
            BuiltinTool::Status,
            BuiltinTool::Refresh,
            BuiltinTool::Search,
            BuiltinTool::Describe,
            BuiltinTool::Execute,
            BuiltinTool::Read,
            BuiltinTool::ReadResult,
        ];
        if self.activate {
            callable.extend([BuiltinTool::Activate, BuiltinTool::Deactivate]);
        }
        callable.extend((self.code || layout.settings.code.offered).then_some(BuiltinTool::RunCode));
        // A caller whose host cannot have it is told why.
        callable.extend((layout.agents != AgentAccess::Nobody).then_some(BuiltinTool::NaturalLanguage));
        callable
    }
}

/// The listings that hosts have asked for, each made once.
#[derive(Debug, Default)]
pub(super) struct Listings(Mutex<HashMap<View, Kept>>);

#[derive(Debug)]
struct Kept {
    listing: Arc<Listing>,
    /// For how many snapshots in a row it was made in advance, and no host asked for it.
    unasked: u8,
}

/// With more listings than this, all are made anew: switching tools on and off must not fill our memory.
const KEPT: usize = 64;
/// After this many snapshots at which no host asked for a listing, it is no longer made in advance.
const UNASKED: u8 = 8;

impl Listings {
    pub(super) fn get(&self, view: &View, make: impl FnOnce() -> Listing) -> Arc<Listing> {
        let mut kept = self.lock();
        if let Some(kept) = kept.get_mut(view) {
            kept.unasked = 0;
            return Arc::clone(&kept.listing);
        }
        let listing = Arc::new(make());
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(view.clone(), Kept { listing: Arc::clone(&listing), unasked: 0 });
        listing
    }

    /// The views that hosts may ask for again, and for how many snapshots no host has.
    pub(super) fn views(&self) -> Vec<(View, u8)> {
        let kept = self.lock();
        let wanted = kept.iter().filter(|(_, kept)| kept.unasked < UNASKED);
        wanted.map(|(view, kept)| (view.clone(), kept.unasked)).collect()
    }

    /// Notes that a listing was made before a host asked for it, after `unasked` other snapshots like that.
    pub(super) fn made_in_advance(&self, view: &View, unasked: u8) {
        if let Some(kept) = self.lock().get_mut(view) {
            kept.unasked = unasked + 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<View, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
