//! The lists of servers for each kind of hosts, and the lists that are still unknown.

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

/// Limit of kinds of hosts for which lists are found out; above it, only the latest kinds.
const MOST_KINDS: usize = 16;
/// Limit of starts for a server that was told something else than wanted.
const MOST_TRIES: usize = 2;

/// A request to list a server.
#[derive(Debug)]
pub struct ListJob {
    pub server: ServerName,
    /// The launch identity of the server.
    pub identity: String,
    /// For hosts with this declaration, with a separate instance. `None`: with the gateway's instance.
    pub host: Option<Declaration>,
    /// The dialect that was last used with the server.
    pub dialect: Option<Dialect>,
}

/// The outcome of a [`ListJob`] with a separate instance; `None` if the server could not be listed.
#[derive(Debug)]
pub struct ListedFor {
    pub server: ServerName,
    pub identity: String,
    pub host: Declaration,
    pub offer: Option<Arc<Offer>>,
}

pub(super) struct Kinds {
    /// The declarations of this gateway's hosts, which servers get.
    host_registry: Arc<HostRegistry>,
    jobs: mpsc::UnboundedSender<ListJob>,
    /// Whether there are many sessions: then the gateway's instances get more capabilities than each host
    /// declares.
    many: bool,
    servers: BTreeMap<ServerName, Variants>,
    /// The kinds of hosts that are or were connected.
    wanted: Vec<Arc<Declaration>>,
    /// The servers that are being listed, each for one kind of hosts at a time.
    asked: BTreeMap<ServerName, Asked>,
    /// How often the gateway's own instance was asked for each kind.
    tries: Vec<(ServerName, Declaration, usize)>,
}

struct Asked {
    host: Declaration,
    /// Whether the gateway's own instance is asked.
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

    /// Takes the cached lists, and returns the one that the catalog shows: if the gateway's instance is
    /// shared, the list for the hosts that it serves; else the list for the hosts with the most capabilities.
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

    /// The declaration that the server had got for the catalog's offer.
    pub(super) fn told(&self, server: &ServerName) -> Declaration {
        self.servers.get(server).and_then(Variants::told).cloned().unwrap_or_default()
    }

    /// Notes a list of the gateway's instance. True if hosts may now see something else.
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

    /// Notes a failure of the gateway's instance, so that nobody waits for it.
    pub(super) fn failed(&mut self, server: &ServerName) -> Option<Arc<Variants>> {
        let host = self.asked.get(server).filter(|asked| asked.own)?.host.clone();
        self.asked.remove(server);
        let variants = self.servers.get_mut(server)?;
        variants.give_up(&host);
        Some(Arc::new(variants.clone()))
    }

    /// Notes the outcome of a separate instance.
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

    /// Notes that a host of this kind is connected.
    pub(super) fn want(&mut self, host: Arc<Declaration>) {
        self.wanted.retain(|kind| **kind != *host);
        if self.wanted.len() >= MOST_KINDS {
            self.wanted.remove(0);
        }
        self.wanted.push(host);
    }

    /// Requests listings of servers whose list for a kind of hosts is unknown, each for one kind at a time. A
    /// server that has never listed starts without being asked. Returns those that will not be listed.
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

    /// Counts one more attempt, and returns the number of earlier ones.
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

/// The list to find out next, so that the one for `host` becomes known; true: with the gateway's own
/// instance. Most servers list the same for all hosts. Then the list for hosts without capabilities shows it
/// for every kind.
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
