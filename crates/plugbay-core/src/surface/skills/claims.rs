//! The servers that have a URI: if there are several, hosts are shown URIs that tell them apart.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};

use super::super::{Layout, uri::unmapped};
use crate::{
    catalog::{Catalog, Item},
    name::ServerName,
    skill::{self, Entry},
};

/// A skill as its server lists it.
pub(in crate::surface) struct ListedSkill<'a> {
    pub(super) server: &'a ServerName,
    pub(super) item: &'a Item,
    pub(super) entry: Entry,
}

impl<'a> ListedSkill<'a> {
    pub(in crate::surface) fn all(catalog: &'a Catalog) -> Vec<Self> {
        let read = |server, item: &'a Item| {
            let entry = Entry::read(&item.definition, &(0..item.definition.len()));
            Self { server, item, entry }
        };
        let of = |(server, entry): (&'a ServerName, &'a crate::catalog::Entry)| {
            entry.offer.skills.iter().map(move |item| read(server, item))
        };
        catalog.iter().flat_map(of).collect()
    }

    pub(super) fn uri(&self) -> &'a str {
        &self.item.key
    }

    /// The URIs that its entry names.
    fn uris(&self) -> impl Iterator<Item = &str> {
        [self.uri()].into_iter().chain(self.entry.files.iter().flatten().map(String::as_str))
    }
}

type Owners<'a> = BTreeSet<&'a ServerName>;

/// The servers that have a URI, as far as skills are concerned; without skills nobody claims anything.
#[derive(Default)]
pub(in crate::surface) struct Claims<'a> {
    /// Owners of resources in lists, of beginnings of templates, and of files of skills.
    uris: BTreeMap<String, Owners<'a>>,
    /// Owners of directories of skills.
    roots: BTreeMap<&'a str, Owners<'a>>,
    /// The directory of the gateway's own skill.
    own: Option<&'a str>,
    /// How many URIs were compared with directories that they may lie in.
    compared: Cell<usize>,
}

/// How many comparisons are made: directories may lie in each other by the thousands. After that each URI
/// counts as disputed, and is shown with its server in front.
const COMPARED: usize = 500_000;

impl<'a> Claims<'a> {
    pub(in crate::surface) fn new(
        catalog: &'a Catalog,
        listed: &[ListedSkill<'a>],
        layout: &'a Layout,
    ) -> Self {
        let mut claims = Self { own: layout.skill.as_ref().map(|own| own.root()), ..Self::default() };
        if listed.is_empty() {
            return claims;
        }
        for skill in listed {
            if let Some(root) = skill::root(skill.uri()) {
                claims.roots.entry(root).or_default().insert(skill.server);
            }
            for uri in skill.uris() {
                claims.uris.entry(uri.to_owned()).or_default().insert(skill.server);
            }
        }
        for (server, entry) in catalog.iter() {
            let resources = entry.offer.resources.iter().map(|resource| resource.key.as_str());
            let templates =
                entry.offer.templates.iter().filter_map(|template| template.key.split('{').next());
            for uri in resources.chain(templates) {
                claims.uris.entry(uri.to_owned()).or_default().insert(server);
            }
        }
        claims
    }

    /// Whether the URI is in the directory of a skill that a server lists.
    pub(in crate::surface) fn is_in_skill(&self, uri: &str) -> bool {
        skill::directories(uri).any(|directory| self.roots.contains_key(directory))
    }

    /// Whether neither another server nor the gateway itself has this URI of the server.
    pub(in crate::surface) fn is_exclusive(&self, server: &ServerName, uri: &str) -> bool {
        is_only(self.uris.get(uri), server) && !self.own.is_some_and(|own| are_related(own, uri))
    }

    /// Whether the whole skill can be shown under its own URIs: no other server has one of them, nor a skill around it,
    /// nor anything in its directory, where files may be that no list has.
    pub(super) fn are_exclusive(&self, skill: &ListedSkill<'_>) -> bool {
        skill.uris().all(|uri| unmapped(uri).is_none() && self.is_exclusive(skill.server, uri))
            && skill::root(skill.uri()).is_none_or(|root| !self.is_disputed(skill.server, root))
    }

    fn is_disputed(&self, server: &ServerName, root: &str) -> bool {
        let around = [root].into_iter().chain(skill::directories(root));
        let mut around = around.map(|directory| self.roots.get(directory));
        let start = format!("{root}/");
        let mut within = self.roots.range(&*start..).take_while(|(other, _)| other.starts_with(&start));
        let mut files = self.uris.range(start.clone()..).take_while(|(uri, _)| uri.starts_with(&start));
        around.any(|owners| !self.is_only(owners, server))
            || within.any(|(_, owners)| !self.is_only(Some(owners), server))
            || files.any(|(_, owners)| !self.is_only(Some(owners), server))
    }

    /// Whether no other server is among the owners; `false` also if too much was compared.
    fn is_only(&self, owners: Option<&Owners<'_>>, server: &ServerName) -> bool {
        self.compared.set(self.compared.get() + 1);
        self.compared.get() <= COMPARED && is_only(owners, server)
    }
}

fn is_only(owners: Option<&Owners<'_>>, server: &ServerName) -> bool {
    owners.is_none_or(|owners| owners.iter().all(|owner| *owner == server))
}

fn are_related(root: &str, uri: &str) -> bool {
    uri == root || skill::is_below(uri, root) || skill::is_below(root, uri)
}
