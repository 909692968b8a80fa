//! The names of one snapshot under the rules of one kind of host, made when they are first needed.

use std::{
    borrow::Cow,
    ops::Deref,
    sync::{Arc, LazyLock, OnceLock},
};

use super::{
    Found, Layout, Names, Resources,
    activate::{BYTES_PER_TOKEN, READ_TO_COUNT},
    names::NameRules,
};
use crate::{
    catalog::{Catalog, FIRST_NAMES, Tools, summary},
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

    /// The first of the own names of those tools of a server that models may call, in the order of [`Names`]. Other
    /// servers' tools need no names for that, unless this server's depend on them.
    pub(super) fn first_own_names(&self, server: &ServerName) -> Vec<String> {
        match self.parts.named_as_listed(server) {
            Some((tools, policy)) if *policy == Policy::default() => tools.brief().first.clone(),
            Some((tools, policy)) => {
                let names = tools.names().into_iter().filter(|name| policy.may(name));
                names.take(FIRST_NAMES).map(Cow::into_owned).collect()
            }
            None => self.own_names(server).take(FIRST_NAMES).map(str::to_owned).collect(),
        }
    }

    /// The summary of a server: of those tools that models may call.
    pub(super) fn summary(&self, server: &ServerName) -> Cow<'_, str> {
        match self.parts.named_as_listed(server) {
            Some((tools, policy)) if *policy == Policy::default() => Cow::Borrowed(tools.summary()),
            Some((tools, policy)) => {
                let names = tools.names();
                summary(names.iter().map(AsRef::as_ref).filter(|name| policy.may(name))).into()
            }
            None => summary(self.own_names(server)).into(),
        }
    }

    fn own_names<'a>(&'a self, server: &'a ServerName) -> impl Iterator<Item = &'a str> {
        self.for_model_of(server).map(Found::own_name)
    }
}

impl Parts {
    /// The tools of a server and which of them may be called, if each has its own name behind the server's: such names
    /// stand in the order of the list, and are nobody else's.
    fn named_as_listed(&self, server: &ServerName) -> Option<(&Tools, &Policy)> {
        static PLAIN: LazyLock<Exposure> = LazyLock::new(Exposure::default);
        let tools = &self.catalog.get(server)?.offer.tools;
        let exposure = self.layout.exposures.get(server).unwrap_or(&PLAIN);
        let longest = tools.brief().longest_name? + server.as_str().len() + JOINT.len();
        let is_prefixed = !exposure.bare && !exposure.remote && exposure.rename.is_empty();
        let as_listed = is_prefixed && !self.rules.identifiers && longest <= self.rules.limit;
        (as_listed && !tools.have_ui()).then_some((tools, &exposure.policy))
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
