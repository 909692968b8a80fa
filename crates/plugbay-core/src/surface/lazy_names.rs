//! The names of one snapshot under the rules of one kind of host, made when they are first needed.

use std::{
    borrow::Cow,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use super::{
    Layout, Names, Resources,
    activate::{BYTES_PER_TOKEN, READ_TO_COUNT},
    names::NameRules,
};
use crate::{
    catalog::Catalog,
    exposure::Exposure,
    name::{JOINT, ServerName},
    policy::Policy,
    tokens::Cost,
};

/// [`Names`], made when they are first needed: to open a session takes no look at any tool. Who comes meanwhile waits.
#[derive(Debug, Default)]
pub struct LazyNames {
    made: OnceLock<Names>,
    parts: Parts,
}

/// What names are made of.
#[derive(Debug, Default)]
struct Parts {
    catalog: Arc<Catalog>,
    layout: Arc<Layout>,
    resources: Arc<Resources>,
    rules: NameRules,
}

impl LazyNames {
    pub(super) fn new(
        (catalog, layout, resources): (&Arc<Catalog>, &Arc<Layout>, &Arc<Resources>),
        rules: NameRules,
    ) -> Self {
        let (catalog, layout, resources) = (Arc::clone(catalog), Arc::clone(layout), Arc::clone(resources));
        Self { made: OnceLock::new(), parts: Parts { catalog, layout, resources, rules } }
    }

    /// Whether they are made, so that nobody has to wait for them.
    pub fn are_made(&self) -> bool {
        self.made.get().is_some()
    }

    /// The tools of servers that have no mode of their own: how many, and about what they cost a model together. Those
    /// for apps alone are kept from models by hosts.
    pub fn undecided(&self) -> Cost {
        self.made
            .get()
            .is_none()
            .then(|| self.parts.undecided_by_size())
            .flatten()
            .unwrap_or_else(|| Names::undecided(self))
    }

    /// At most so many tools have names.
    pub(super) fn at_most(&self) -> usize {
        self.parts.catalog.iter().map(|(_, entry)| entry.offer.tools.len()).sum()
    }

    /// Their definitions have at most so many bytes.
    pub(super) fn bytes_at_most(&self) -> usize {
        self.parts.catalog.iter().map(|(_, entry)| entry.offer.tools.bytes()).sum()
    }

    /// The own names of those tools of a server that models may call, in the order of [`Names`]; the first of them at
    /// least. Other servers' tools need no names for that, unless this server's depend on them.
    pub(super) fn own_names(&self, server: &ServerName, least: usize) -> Vec<String> {
        let known = if self.are_made() { None } else { self.parts.own_names(server, least) };
        known.unwrap_or_else(|| self.for_model_of(server).map(|found| found.own_name().to_owned()).collect())
    }
}

impl Parts {
    fn own_names(&self, server: &ServerName, least: usize) -> Option<Vec<String>> {
        let tools = &self.catalog.get(server)?.offer.tools;
        let plain = Exposure::default();
        let exposure = self.layout.exposures.get(server).unwrap_or(&plain);
        let Exposure { policy, bare, remote, rename, .. } = exposure;
        let brief = tools.brief();
        let longest = brief.longest_name? + server.as_str().len() + JOINT.len();
        // Names that are exposed as they are stand in the order of the list, and are nobody else's.
        let as_they_are = !bare && !remote && rename.is_empty() && longest <= self.rules.limit;
        if !as_they_are || self.rules.identifiers || tools.have_ui() {
            return None;
        }
        if *policy == Policy::default() && brief.first.len() >= least.min(brief.count) {
            return Some(brief.into_owned().first);
        }
        Some(tools.names().into_iter().filter(|name| policy.may(name)).map(Cow::into_owned).collect())
    }

    /// The cost of many tools, if it follows from the sizes of their lists.
    fn undecided_by_size(&self) -> Option<Cost> {
        let plain = Exposure::default();
        let (mut tools, mut bytes) = (0, 0);
        for (server, entry) in self.catalog.iter() {
            let exposure = self.layout.exposures.get(server).unwrap_or(&plain);
            if exposure.mode.is_some() {
                continue;
            }
            let listed = &entry.offer.tools;
            let is_whole =
                exposure.policy == Policy::default() && exposure.describe.is_empty() && !listed.have_ui();
            if !is_whole {
                return None;
            }
            (tools, bytes) = (tools + listed.len(), bytes + listed.bytes());
        }
        (bytes > READ_TO_COUNT).then_some(Cost { tools, tokens: bytes / BYTES_PER_TOKEN })
    }
}

impl Deref for LazyNames {
    type Target = Names;

    fn deref(&self) -> &Names {
        let Parts { catalog, layout, resources, rules } = &self.parts;
        self.made.get_or_init(|| Names::new(catalog, layout, resources, *rules))
    }
}

impl PartialEq for LazyNames {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for LazyNames {}
