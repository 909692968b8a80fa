//! The tool that is meant by a name that is not exactly the one that hosts see.
//!
//! An exposed name always means its own tool. Any other spelling means a tool only if no tool of another server could be
//! meant by it.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::OnceLock,
};

use smallvec::SmallVec;

use super::{Found, Names};
use crate::{
    name::{self, ServerName},
    size_limit,
};

/// The tools that a name may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spelled<'a> {
    Nothing,
    One(&'a Found),
    /// The name does not tell which of these is meant, or whether any of them is.
    Several(Vec<&'a Found>),
}

/// The places of tools by their names without case and separators, made when first needed. It follows from
/// the names, so two equal sets of names are equal with and without it.
#[derive(Debug, Default)]
pub(super) struct Spellings(OnceLock<Folded>);

/// Places by the hash of a folded name, and the hasher.
pub(super) type Folded = (RandomState, HashMap<u64, SmallVec<[u32; 1]>>);

impl PartialEq for Spellings {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Spellings {}

impl Spellings {
    pub(super) fn are_made(&self) -> bool {
        self.0.get().is_some()
    }
}

impl Names {
    /// The tool that is meant by a name, however it is written; `None` if it could be several, or is not for
    /// models.
    pub fn alike(&self, wanted: &str) -> Option<&Found> {
        match self.spelled(wanted) {
            Spelled::One(found) => Some(found),
            Spelled::Nothing | Spelled::Several(_) => None,
        }
    }

    /// The tools for models that a name may mean: it may be written differently, lack the server, have the
    /// server although hosts see the tool without, or be written as a host does. A name that begins with a
    /// server's is no other server's.
    pub fn spelled(&self, wanted: &str) -> Spelled<'_> {
        let plain = self.prefixes.without_host(wanted);
        if let Some(found) = self.get(wanted).or_else(|| self.get(plain)) {
            return if found.is_for_model() { Spelled::One(found) } else { Spelled::Nothing };
        }
        if wanted.len() > size_limit::NAME {
            return Spelled::Nothing;
        }
        let (owners, folded) = (self.prefixes.of(plain), name::folded(plain));
        let may_be_of = |server: &ServerName| owners.is_empty() || owners.contains(&server);
        let found: Vec<&Found> = self
            .folded_like(&folded)
            .filter(|found| found.is_for_model() && may_be_of(&found.target.server))
            .collect();
        match &found[..] {
            [] => Spelled::Nothing,
            [only] if owners.len() < 2 => Spelled::One(only),
            _ => first_of_one_server(&found, &owners, &folded).map_or(Spelled::Several(found), Spelled::One),
        }
    }

    /// The tools that have this own name at their servers, or at the servers of a remote.
    pub fn own_named(&self, tool: &str) -> Vec<&Found> {
        let named = |found: &&Found| found.target.tool == tool || name::own(&found.target.tool) == tool;
        self.iter().filter(named).collect()
    }

    /// The tools that an own name could mean, if a server other than the owners has such a tool, or the name
    /// reads like another server's: then it means none of them.
    pub fn disputed<'a>(&'a self, name: &str, owners: &[&'a Found]) -> Option<Vec<&'a Found>> {
        if owners.is_empty() {
            return None;
        }
        let folded = name::folded(self.prefixes.without_host(name));
        let is_owner = |server: &ServerName| owners.iter().any(|found| found.target.server == *server);
        // The complete own name of a tool does not mean another tool that is only spelled similarly.
        let is_whole = owners.iter().any(|found| found.target.tool == name);
        let is_rival = |found: &&Found| {
            let [exposed, own, full] = spellings(found);
            let is_alike = exposed == folded || full == folded || !is_whole && own == folded;
            is_alike && !is_owner(&found.target.server)
        };
        let rivals: Vec<&Found> = self.folded_like(&folded).filter(is_rival).collect();
        let is_claimed = owners.iter().any(|found| self.prefixes.claim(&found.target.server, name));
        (is_claimed || !rivals.is_empty()).then(|| rivals.into_iter().chain(owners.iter().copied()).collect())
    }

    fn folded_like<'a, 'f>(&'a self, folded: &'f str) -> impl Iterator<Item = &'a Found> + use<'a, 'f> {
        let (hasher, places) = self.fold();
        let places = places.get(&hasher.hash_one(folded)).filter(|_| !folded.is_empty());
        let found = places.into_iter().flatten().filter_map(|at| self.at(*at));
        found.filter(move |found| spellings(found).iter().any(|one| one == folded))
    }

    /// Makes the table for names that are written differently.
    pub(super) fn fold(&self) -> &Folded {
        self.spellings.0.get_or_init(|| self.fold_all())
    }

    fn fold_all(&self) -> Folded {
        let hasher = RandomState::new();
        let mut places: HashMap<u64, SmallVec<[u32; 1]>> = HashMap::new();
        for (at, found) in (0..).zip(self.iter()) {
            for spelling in spellings(found) {
                let there = places.entry(hasher.hash_one(&*spelling)).or_default();
                if there.last() != Some(&at) {
                    there.push(at);
                }
            }
        }
        (hasher, places)
    }
}

/// The three names of a tool without case and separators: the exposed one, the own one, and the own one with
/// the server in front.
fn spellings(found: &Found) -> [String; 3] {
    [name::folded(&found.exposed), name::folded(&found.target.tool), folded_full(found)]
}

fn folded_full(found: &Found) -> String {
    name::folded(found.target.server.as_str()) + &name::folded(&found.target.tool)
}

/// The tool that is meant if a name fits several tools of one server: the one that hosts see under such a
/// name, else the one with such an own name.
fn first_of_one_server<'a>(found: &[&'a Found], owners: &[&ServerName], folded: &str) -> Option<&'a Found> {
    let server = &found.first()?.target.server;
    if owners.len() > 1 || found.iter().any(|one| one.target.server != *server) {
        return None;
    }
    let only = |fits: &dyn Fn(&Found) -> bool| {
        let mut fitting = found.iter().filter(|one| fits(one));
        fitting.next().filter(|_| fitting.next().is_none()).copied()
    };
    only(&|one| name::folded(&one.exposed) == folded)
        .or_else(|| only(&|one| name::folded(&one.target.tool) == folded))
}
