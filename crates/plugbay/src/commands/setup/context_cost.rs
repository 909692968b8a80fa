//! The tokens that MCP adds to each host's model context, before and after setup.

use plugbay_core::{exposure::Mode, name::ServerName, surface::Snapshot};
use serde::Serialize;

use super::plan::{HostPlan, Server};
use crate::commands::{
    hosts::chosen,
    tokens::{behind, direct},
};

/// The tokens for one host (o200k).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostCost {
    /// With the servers in its own configuration, including those that an earlier setup moved.
    pub before: usize,
    /// With all servers behind plugbay.
    pub now: usize,
    /// The mode that plugbay gives this host.
    pub mode: Mode,
    /// Whether the host itself hides tools behind a search, so that its model reads only their names.
    pub defers: bool,
}

/// The costs of every host, with the servers that plugbay will have.
pub fn costs(hosts: &[HostPlan], servers: &[Server], snapshot: &Snapshot) -> Vec<HostCost> {
    hosts.iter().map(|plan| cost(plan, servers, snapshot)).collect()
}

fn cost(plan: &HostPlan, servers: &[Server], snapshot: &Snapshot) -> HostCost {
    let host = &plan.host.id;
    let profiles = &snapshot.layout.hosts;
    let profile = profiles.iter().find(|profile| profile.name == *host).unwrap_or_else(|| profiles.unknown());
    let has = |name: &ServerName| {
        let mut own = servers.iter().filter(|server| server.hosts.iter().any(|id| id == host));
        own.any(|server| server.name == name.as_str())
            || plan.earlier.iter().any(|ours| ours == name.as_str())
    };
    let mode = chosen(profile, snapshot).0;
    let tools = snapshot.names.iter().count();
    HostCost {
        before: direct(profile, snapshot, &has),
        now: behind(profile, snapshot, mode),
        mode,
        defers: mode == Mode::All && profile.defers_from.is_some_and(|from| tools >= from),
    }
}
