//! The snapshot of a caller that may use only some tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Layout, Snapshot};
use crate::{
    catalog::Catalog,
    exposure::Exposure,
    name::{ServerName, ServerPrefixes},
    policy::ToolGrant,
};

impl Snapshot {
    /// The same snapshot for a caller that may use only these tools. A server of which it may use nothing is
    /// missing altogether.
    #[must_use]
    pub fn granted(&self, grant: &ToolGrant) -> Self {
        let (catalog, layout) = narrowed(grant, &self.catalog, &self.layout);
        Self::new(Arc::new(catalog), Arc::new(layout), self.settled)
    }
}

fn narrowed(grant: &ToolGrant, catalog: &Catalog, layout: &Layout) -> (Catalog, Layout) {
    let known: BTreeSet<&ServerName> =
        catalog.iter().map(|(server, _)| server).chain(layout.exposures.keys()).collect();
    let plain = Exposure::default();
    let servers = Arc::new(ServerPrefixes::new(known.iter().copied()));
    let granted = known.into_iter().filter_map(|server| {
        let mut exposure = layout.exposures.get(server).unwrap_or(&plain).clone();
        let narrowed = grant.of(server, &servers, &exposure.rename, exposure.bare, layout.name_limit);
        exposure.policy.grant = Some(narrowed);
        sees(grant, server, catalog, &exposure).then(|| (server.clone(), exposure))
    });
    let exposures: BTreeMap<ServerName, Exposure> = granted.collect();
    let catalog = catalog.only(|server| exposures.contains_key(server));
    // A problem of the configuration may name any server.
    (catalog, Layout { exposures, problems: Vec::new(), ..layout.clone() })
}

/// Whether the caller may use something of this server. A server without tools must be granted as a whole; one
/// that has never listed its tools may be named by the patterns of its tools.
fn sees(grant: &ToolGrant, server: &ServerName, catalog: &Catalog, exposure: &Exposure) -> bool {
    match catalog.get(server) {
        Some(entry) if entry.offer.tools.is_empty() => grant.is_whole(server),
        Some(entry) => entry.offer.tools.names().iter().any(|tool| exposure.policy.may(tool)),
        None => grant.is_whole(server) || grant.names(server),
    }
}
