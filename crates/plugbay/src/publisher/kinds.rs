//! What servers list for which kinds of hosts, and which lists are still to be found out.

use std::{collections::BTreeMap, sync::Arc};

use plugbay_core::{
    catalog::{Dialect, Offer, Variants},
    declaration::Declaration,
    host_registry::HostRegistry,
    name::ServerName,
};
use plugbay_upstream::ListTerms;
use tokio::sync::mpsc;

use crate::clock;

/// Lists are found out for so many kinds of hosts; beyond, for those that came last.
const MOST_KINDS: usize = 16;
/// A server that was told something else twice is not started a third time.
const MOST_TRIES: usize = 2;

/// A server is to be listed.
#[derive(Debug)]
pub struct ListJob {
    pub server: ServerName,
    /// The launch identity of the server.
    pub identity: String,
    /// For hosts that declare this, by an instance of its own. `None`: by the instance of the gateway.
    pub host: Option<Declaration>,
    /// How the server was last spoken to.
    pub dialect: Option<Dialect>,
}

/// The outcome of a [`ListJob`] by an instance of its own; `None`: the server could not be listed.
#[derive(Debug)]
pub struct ListedFor {
    pub server: ServerName,
    pub identity: String,
    pub host: Declaration,
    pub offer: Option<Arc<Offer>>,
}

pub(super) struct Kinds {
    /// What servers are told of the hosts of this gateway.
    host_registry: Arc<HostRegistry>,
    jobs: mpsc::UnboundedSender<ListJob>,
    /// There are many sessions: instances of the gateway are told more than each host declares.
    many: bool,
    servers: BTreeMap<ServerName, Variants>,
    /// The kinds of hosts that are here, or were.
    wanted: Vec<Arc<Declaration>>,
    /// The servers that are being listed; for one kind of hosts after the other.
    asked: BTreeMap<ServerName, Asked>,
    /// How often the gateway's own instance was asked for which kind.
    tries: Vec<(ServerName, Declaration, usize)>,
}

struct Asked {
    host: Declaration,
    /// By the gateway's own instance.
    own: bool,
}

impl Kinds {
    pub(super) fn new(
        host_registry: Arc<HostRegistry>,
        jobs: mpsc::UnboundedSender<ListJob>,
        many: bool,
    ) -> Self {
        let (servers, wanted, asked, tries) = (BTreeMap::new(), Vec::new(), BTreeMap::new(), Vec::new());
        Self { host_registry, jobs, many, servers, wanted, asked, tries }
    }

    /// Takes what the cache has, and returns what the catalog shows of it: the list for those whom the gateway's
    /// instance serves, if it is shared; else the list for the hosts that can do most.
    pub(super) fn remember(
        &mut self,
        server: &ServerName,
        mut variants: Variants,
    ) -> Option<(Arc<Offer>, Arc<Variants>)> {
        let tells = self.host_registry.declaration();
        let own = if variants.is_shared() { variants.list_for(&tells) } else { None };
        let own = own.map(|list| (Arc::clone(&list.offer), Some(tells.clone())));
        let widest = || variants.widest().map(|(list, kind)| (Arc::clone(&list.offer), Some(kind.clone())));
        let last = || variants.lists().last().map(|list| (Arc::clone(&list.offer), None));
        let (offer, told) = own.or_else(widest).or_else(last)?;
        variants.set_told(told);
        self.servers.insert(server.clone(), variants.clone());
        Some((offer, Arc::new(variants)))
    }

    pub(super) fn forget(&mut self, server: &ServerName) {
        self.servers.remove(server);
        self.asked.remove(server);
        self.tries.retain(|(name, ..)| name != server);
    }

    /// What the server was told that made the offer of the catalog.
    pub(super) fn told(&self, server: &ServerName) -> Declaration {
        self.servers.get(server).and_then(Variants::told).cloned().unwrap_or_default()
    }

    /// The gateway's instance has listed. True: hosts may see something else now.
    pub(super) fn listed(
        &mut self,
        server: &ServerName,
        offer: &Arc<Offer>,
        terms: &ListTerms,
        shared: bool,
    ) -> (Arc<Variants>, bool) {
        if self.asked.get(server).is_some_and(|asked| asked.own) {
            self.asked.remove(server);
        }
        let variants =
            self.servers.entry(server.clone()).or_insert_with(|| Variants::new(shared, Vec::new()));
        let is_new = variants.told() != Some(&terms.told);
        let learnt = terms.untouched && variants.learn(&terms.told, offer, clock::now());
        variants.set_told(Some(terms.told.clone()));
        (Arc::new(variants.clone()), learnt || is_new)
    }

    /// The gateway's instance has failed: nobody waits for it.
    pub(super) fn failed(&mut self, server: &ServerName) -> Option<Arc<Variants>> {
        let host = self.asked.get(server).filter(|asked| asked.own)?.host.clone();
        self.asked.remove(server);
        let variants = self.servers.get_mut(server)?;
        variants.give_up(&host);
        Some(Arc::new(variants.clone()))
    }

    /// An instance of its own has listed, or could not.
    pub(super) fn listed_for(&mut self, listed: ListedFor) -> Arc<Variants> {
        let ListedFor { server, host, offer, .. } = listed;
        self.asked.remove(&server);
        let variants = self.servers.entry(server).or_default();
        match offer {
            Some(offer) => _ = variants.learn(&host, &offer, clock::now()),
            None => variants.give_up(&host),
        }
        Arc::new(variants.clone())
    }

    /// A host of this kind is here.
    pub(super) fn want(&mut self, host: Arc<Declaration>) {
        self.wanted.retain(|kind| **kind != *host);
        if self.wanted.len() >= MOST_KINDS {
            self.wanted.remove(0);
        }
        self.wanted.push(host);
    }

    /// Has servers listed whose list for a kind of hosts is not known: each for one kind at a time. A server that has
    /// never listed starts without being asked. Returns those that will not be listed.
    pub(super) fn ask(
        &mut self,
        identities: &BTreeMap<ServerName, Option<String>>,
    ) -> Vec<(ServerName, Arc<Variants>)> {
        let tells = self.host_registry.declaration();
        let mut given_up = Vec::new();
        for (server, identity) in identities {
            let (Some(identity), false) = (identity, self.asked.contains_key(server)) else { continue };
            let Some(variants) = self.servers.get(server) else { continue };
            let unknown = self.wanted.iter().find(|kind| !variants.is_known(kind));
            let Some(host) = unknown.map(|kind| (**kind).clone()) else { continue };
            let (host, own) = next_list(variants, host, &tells, self.many);
            let dialect = variants.lists().last().map(|list| list.offer.dialect);
            if own && self.tries_of(server, &host) >= MOST_TRIES {
                if let Some(variants) = self.servers.get_mut(server) {
                    variants.give_up(&host);
                    given_up.push((server.clone(), Arc::new(variants.clone())));
                }
                continue;
            }
            self.asked.insert(server.clone(), Asked { host: host.clone(), own });
            let job = ListJob {
                server: server.clone(),
                identity: identity.clone(),
                host: (!own).then_some(host),
                dialect,
            };
            let _ = self.jobs.send(job);
        }
        given_up
    }

    /// Counts one more try, and returns how many there were before.
    fn tries_of(&mut self, server: &ServerName, host: &Declaration) -> usize {
        let known = self.tries.iter_mut().find(|(name, kind, _)| name == server && kind == host);
        if let Some((.., count)) = known {
            *count += 1;
            return *count - 1;
        }
        self.tries.push((server.clone(), host.clone(), 1));
        0
    }
}

/// Which list is found out next, so that the one for `host` becomes known; true: by the gateway's own instance. Most
/// servers list the same for all: then the list for hosts that can do nothing tells it for every kind.
fn next_list(variants: &Variants, host: Declaration, tells: &Declaration, many: bool) -> (Declaration, bool) {
    let nothing = Declaration::default();
    if !many {
        (host, true)
    } else if variants.is_shared() && !variants.is_known(tells) {
        (tells.clone(), true)
    } else if variants.is_shared() && !variants.is_known(&nothing) {
        (nothing, false)
    } else {
        (host, false)
    }
}
