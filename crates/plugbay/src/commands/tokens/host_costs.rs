//! The cost for each host: today, with the servers in its own configuration, and behind plugbay in each mode.

use plugbay_core::{
    catalog::Tool,
    exposure::Mode,
    name::ServerName,
    profile::Profile,
    surface::{Snapshot, instructions},
    tokens::counted,
    wire::elements,
};
use serde::Serialize;
use serde_json::Value;

use super::MODES;
use crate::{
    commands::hosts::{chosen, view},
    tokenizer,
};

/// The tokens in a host's context before its first call.
#[derive(Debug, Serialize)]
pub struct HostCost {
    pub host: String,
    /// With all servers in its own configuration: definitions and instructions.
    pub direct: usize,
    /// Whether the host hides tools behind its own search, so that only their names count.
    pub defers: bool,
    pub modes: Vec<ModeCost>,
    /// The mode that it gets.
    pub mode: Mode,
}

#[derive(Debug, Serialize)]
pub struct ModeCost {
    pub mode: Mode,
    /// Absent if the host cannot use the mode.
    pub tokens: Option<usize>,
}

/// One row per profile; hosts without a profile come last.
pub(super) fn host_costs(snapshot: &Snapshot) -> Vec<HostCost> {
    let (hosts, unknown) = (&snapshot.layout.hosts, snapshot.layout.hosts.unknown());
    let known = hosts.iter().filter(|profile| profile.name != unknown.name);
    let definitions = Definitions::of(snapshot, &|_| true);
    known.chain([unknown]).map(|profile| definitions.cost(profile, snapshot)).collect()
}

/// The cost for a host with these servers in its own configuration.
pub fn direct(profile: &Profile, snapshot: &Snapshot, servers: Chosen<'_>) -> usize {
    Definitions::of(snapshot, servers).direct(profile) + server_instructions(profile, snapshot, servers)
}

/// Selects the servers that count.
type Chosen<'a> = &'a dyn Fn(&ServerName) -> bool;

/// The tokens of servers' offers, counted once.
struct Definitions {
    tools: usize,
    /// Names, descriptions and schemas.
    tokens: usize,
    /// The names alone, as a host that hides tools lists them.
    names: usize,
}

impl Definitions {
    fn of(snapshot: &Snapshot, servers: Chosen<'_>) -> Self {
        let mut all = Self { tools: 0, tokens: 0, names: 0 };
        for found in snapshot.names.iter().filter(|found| servers(&found.target.server)) {
            all.tools += 1;
            all.tokens += tokenizer::count(&counted(&found.definition()));
            all.names += tokenizer::count(&listed_name(&found.exposed));
        }
        all
    }

    fn direct(&self, profile: &Profile) -> usize {
        if self.are_deferred(profile) { self.names } else { self.tokens }
    }

    fn are_deferred(&self, profile: &Profile) -> bool {
        profile.defers_from.is_some_and(|from| self.tools >= from)
    }

    fn cost(&self, profile: &Profile, snapshot: &Snapshot) -> HostCost {
        let instructions = server_instructions(profile, snapshot, &|_| true);
        let can_use = |mode: Mode| match mode {
            Mode::All => profile.limits.tools.is_none_or(|most| self.tools <= most),
            Mode::Activate => profile.lists_again,
            Mode::Search | Mode::Suite | Mode::Code => true,
        };
        let cost = |mode| ModeCost { mode, tokens: can_use(mode).then(|| behind(profile, snapshot, mode)) };
        HostCost {
            host: profile.name.clone(),
            direct: instructions + self.direct(profile),
            defers: self.are_deferred(profile),
            modes: MODES.map(cost).into(),
            mode: chosen(profile, snapshot).0,
        }
    }
}

/// The cost behind plugbay in a mode: the host's list and plugbay's instructions.
pub fn behind(profile: &Profile, snapshot: &Snapshot, mode: Mode) -> usize {
    let snapshot = snapshot.seen_by(&view(profile, snapshot, mode));
    let array = &snapshot.listing.tools;
    let listed = elements(array, &(0..array.len()));
    let defers = profile.defers_from.is_some_and(|from| listed.len() >= from);
    let tools = listed.into_iter().filter_map(|span| Tool::parse(array.slice(span)));
    let cost = |tool: Tool| {
        let is_hidden = defers && !stays_in_sight(&tool);
        let text = if is_hidden { listed_name(&tool.name) } else { counted(&tool.definition) };
        tokenizer::count(&text)
    };
    let longest = profile.longest_instructions(mode);
    let told = instructions(&snapshot, Some(&snapshot.listing), longest);
    tools.map(cost).sum::<usize>() + if longest == 0 { 0 } else { tokenizer::count(&told) }
}

/// The tokens of servers' instructions, as far as the host shows them.
fn server_instructions(profile: &Profile, snapshot: &Snapshot, servers: Chosen<'_>) -> usize {
    let shown = |text: &str| -> String {
        text.chars().take(profile.limits.instructions.unwrap_or(usize::MAX)).collect()
    };
    let chosen = snapshot.catalog.iter().filter(|(name, _)| servers(name));
    let texts = chosen.filter_map(|(_, entry)| entry.offer.instructions.as_deref());
    texts.map(|text| tokenizer::count(&shown(text))).sum()
}

/// Whether the definition asks the host not to hide the tool.
fn stays_in_sight(tool: &Tool) -> bool {
    let meta = tool.raw("_meta").and_then(|meta| serde_json::from_slice::<Value>(meta).ok());
    meta.is_some_and(|meta| meta["anthropic/alwaysLoad"] == true)
}

/// A hidden tool as it appears in the model's list.
fn listed_name(name: &str) -> String {
    format!("mcp__{name}\n")
}
