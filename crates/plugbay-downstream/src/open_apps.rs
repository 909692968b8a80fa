//! The servers whose pages a host may show.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use plugbay_core::{name::ServerName, surface::Place};
use smallvec::SmallVec;

/// The servers whose pages a host may show: it has read a page, or has called a tool that has one. A host
/// never says which page a call comes from, nor when it has closed one.
#[derive(Debug, Default)]
pub(crate) struct OpenApps(Mutex<BTreeSet<ServerName>>);

impl OpenApps {
    pub(crate) fn servers(&self) -> BTreeSet<ServerName> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The place of the only server among them. With several, a guess could show one server's page in place
    /// of another's.
    pub(crate) fn only_of(&self, places: SmallVec<[Place; 1]>) -> Option<Place> {
        let open = self.servers();
        let mut places = places.into_iter().filter(|place| open.contains(&place.server));
        places.next().filter(|_| places.next().is_none())
    }

    pub(crate) fn add(&self, server: &ServerName) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !open.contains(server) {
            open.insert(server.clone());
        }
    }
}
