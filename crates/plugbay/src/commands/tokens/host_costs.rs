//! What each host pays: today, with the servers in its own configuration, and behind plugbay in each mode.

use plugbay_core::{
    catalog::Tool,
    exposure::Mode,
    profile::Profile,
    surface::{LONGEST_INSTRUCTIONS, Snapshot, instructions},
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
    /// The host hides tools behind a search of its own, so that only their names count.
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
    let definitions = Definitions::of(snapshot);
    known.chain([unknown]).map(|profile| definitions.cost(profile, snapshot)).collect()
}

/// What all servers offer, counted once.
struct Definitions {
    tools: usize,
    /// Names, descriptions and schemas.
    tokens: usize,
    /// The names alone, as a host that hides tools lists them.
    names: usize,
}

impl Definitions {
    fn of(snapshot: &Snapshot) -> Self {
        let mut all = Self { tools: 0, tokens: 0, names: 0 };
        for found in snapshot.names.iter() {
            all.tools += 1;
            all.tokens += tokenizer::count(&counted(&found.definition()));
            all.names += tokenizer::count(&listed_name(&found.exposed));
        }
        all
    }

    fn cost(&self, profile: &Profile, snapshot: &Snapshot) -> HostCost {
        let defers = profile.defers_from.is_some_and(|from| self.tools >= from);
        let instructions = server_instructions(profile, snapshot);
        let can_use = |mode: Mode| match mode {
            Mode::All => profile.most_tools.is_none_or(|most| self.tools <= most),
            Mode::Activate => profile.lists_again,
            Mode::Search | Mode::Suite => true,
        };
        let cost = |mode| ModeCost { mode, tokens: can_use(mode).then(|| behind(profile, snapshot, mode)) };
        HostCost {
            host: profile.name.clone(),
            direct: instructions + if defers { self.names } else { self.tokens },
            defers,
            modes: MODES.map(cost).into(),
            mode: chosen(profile, snapshot).0,
        }
    }
}

/// Behind plugbay in a mode: what the host lists, and plugbay's instructions.
fn behind(profile: &Profile, snapshot: &Snapshot, mode: Mode) -> usize {
    let snapshot = snapshot.seen_by(&view(profile, snapshot, mode));
    let array = &snapshot.listing.tools;
    let listed = elements(array, &(0..array.len()));
    let defers = profile.defers_from.is_some_and(|from| listed.len() >= from);
    let tools = listed.into_iter().filter_map(|span| Tool::parse(array.slice(span)));
    let cost = |tool: Tool| match defers && !stays_in_sight(&tool) {
        true => tokenizer::count(&listed_name(&tool.name)),
        false => tokenizer::count(&counted(&tool.definition)),
    };
    let longest = profile.instructions_limit.unwrap_or(LONGEST_INSTRUCTIONS).min(LONGEST_INSTRUCTIONS);
    let told = instructions(&snapshot, Some(&snapshot.listing), longest);
    tools.map(cost).sum::<usize>() + if longest == 0 { 0 } else { tokenizer::count(&told) }
}

/// The instructions of all servers, as far as the host shows them.
fn server_instructions(profile: &Profile, snapshot: &Snapshot) -> usize {
    let shown = |text: &str| -> String {
        text.chars().take(profile.instructions_limit.unwrap_or(usize::MAX)).collect()
    };
    let texts = snapshot.catalog.iter().filter_map(|(_, entry)| entry.offer.instructions.as_deref());
    texts.map(|text| tokenizer::count(&shown(text))).sum()
}

/// The definition asks the host not to hide it.
fn stays_in_sight(tool: &Tool) -> bool {
    let meta = tool.raw("_meta").and_then(|meta| serde_json::from_slice::<Value>(meta).ok());
    meta.is_some_and(|meta| meta["anthropic/alwaysLoad"] == true)
}

/// A hidden tool in the list that a model sees.
fn listed_name(name: &str) -> String {
    format!("mcp__{name}\n")
}
