//! What MCP puts into the context of each host's model, before setup and after it.

use plugbay_core::{
    auto::{self, Conversation, Sizes},
    exposure::Mode,
    profile::Profile,
    surface::{LONGEST_INSTRUCTIONS, Snapshot, instructions},
    tokens::{Entry, Ledger},
};
use serde::Serialize;

use super::plan::{HostPlan, Server};
use crate::{commands::tokens::in_mode, tokenizer};

/// The tokens of one host (o200k).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostCost {
    pub host: String,
    /// The tools of its own servers, as the host shows them to its model.
    pub before: usize,
    pub now: usize,
    /// The mode that plugbay gives this host.
    pub mode: String,
    /// The host itself hides tools behind a search: its model reads their names only.
    pub defers: bool,
}

/// The costs of every host, with the servers that plugbay will have.
pub fn costs(hosts: &[HostPlan], servers: &[Server], snapshot: &Snapshot) -> Vec<HostCost> {
    let ledger = Ledger::of(&snapshot.names, tokenizer::count);
    hosts.iter().map(|plan| cost(&plan.host.id, servers, &ledger, snapshot)).collect()
}

fn cost(host: &str, servers: &[Server], ledger: &Ledger, snapshot: &Snapshot) -> HostCost {
    let profiles = &snapshot.layout.hosts;
    let profile = profiles.iter().find(|profile| profile.name == host).unwrap_or_else(|| profiles.unknown());
    let has = |entry: &&Entry| {
        servers
            .iter()
            .any(|server| server.hosts.iter().any(|id| id == host) && entry.server.as_str() == server.name)
    };
    let own: Vec<&Entry> = ledger.entries.iter().filter(has).collect();
    let before = if defers(profile, own.len()) {
        names_of(own.into_iter())
    } else {
        own.iter().map(|entry| entry.tokens).sum()
    };
    let choice = auto::choose(profile, Sizes::of(snapshot), Conversation::default());
    let mode = snapshot.layout.mode.unwrap_or(choice.mode);
    let defers = mode == Mode::All && defers(profile, ledger.entries.len());
    let now = if defers {
        names_of(ledger.entries.iter()) + told(profile, snapshot)
    } else {
        let listed = in_mode(snapshot, mode);
        listed.tokens + told(profile, snapshot).min(listed.instructions)
    };
    HostCost { host: host.to_owned(), before, now, mode: mode.to_string(), defers }
}

fn defers(profile: &Profile, tools: usize) -> bool {
    profile.defers_from.is_some_and(|from| tools > 0 && tools >= from)
}

/// A host that defers shows its model a line with the name of each tool.
fn names_of<'a>(entries: impl Iterator<Item = &'a Entry>) -> usize {
    let names: Vec<&str> = entries.map(|entry| entry.tool.name.as_str()).collect();
    tokenizer::count(&names.join("\n"))
}

fn told(profile: &Profile, snapshot: &Snapshot) -> usize {
    let limit = profile.instructions_limit.unwrap_or(LONGEST_INSTRUCTIONS).min(LONGEST_INSTRUCTIONS);
    if limit == 0 {
        return 0;
    }
    tokenizer::count(&instructions(snapshot, Some(&snapshot.listing), limit))
}
