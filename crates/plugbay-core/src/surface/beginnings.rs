//! Servers by the beginnings of the URIs that they may have.

use std::collections::{BTreeSet, HashMap};

use crate::name::ServerName;

/// Beginnings are cut to this length: a lookup must not cost more with every length that a server invents.
const LONGEST: usize = 64;

/// The literal beginnings of templates, or directories, each with the servers that have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Beginnings {
    servers: HashMap<String, BTreeSet<ServerName>>,
    /// The different lengths of the beginnings: a URI is looked up once for each.
    lengths: BTreeSet<usize>,
}

impl Beginnings {
    pub(super) fn add(&mut self, mut beginning: String, server: &ServerName) {
        beginning.truncate(beginning.floor_char_boundary(LONGEST));
        self.lengths.insert(beginning.len());
        self.servers.entry(beginning).or_default().insert(server.clone());
    }

    /// The servers that have a beginning of this URI. A server with a longer beginning fits no better: any
    /// server can write a long one.
    pub(super) fn of(&self, uri: &str) -> BTreeSet<&ServerName> {
        let beginnings = self.lengths.range(..=uri.len()).filter_map(|length| uri.get(..*length));
        beginnings.filter_map(|beginning| self.servers.get(beginning)).flatten().collect()
    }
}
