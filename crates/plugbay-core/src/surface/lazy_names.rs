//! The names of one snapshot under the rules of one kind of host, made when they are first needed.

use std::{
    borrow::Cow,
    ops::Deref,
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError},
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
    text::word,
    tokens::Cost,
};

/// [`Names`], made when first needed: opening a session reads no tool. Others that need them meanwhile wait.
#[derive(Debug, Default)]
pub struct LazyNames {
    made: OnceLock<Names>,
    parts: Parts,
    /// The names of an earlier catalog by the same rules, until these are made.
    before: Mutex<Option<Arc<Self>>>,
}

/// What names are made of.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) catalog: Arc<Catalog>,
    pub(super) layout: Arc<Layout>,
    pub(super) resources: Arc<Resources>,
    pub(super) rules: NameRules,
}

impl LazyNames {
    pub(super) fn new(
        (catalog, layout, resources): (&Arc<Catalog>, &Arc<Layout>, &Arc<Resources>),
        rules: NameRules,
        before: Option<Arc<Self>>,
    ) -> Self {
        let (catalog, layout, resources) = (Arc::clone(catalog), Arc::clone(layout), Arc::clone(resources));
        let parts = Parts { catalog, layout, resources, rules };
        Self { made: OnceLock::new(), parts, before: Mutex::new(before) }
    }

    /// Whether parts of them may be right for the next catalog too.
    pub(super) fn are_kept_for_next(&self) -> bool {
        self.made.get().is_some_and(|names| names.table.is_by_server())
    }

    /// Whether they are made, so that nobody has to wait for them.
    pub fn are_made(&self) -> bool {
        self.if_made().is_some()
    }

    pub(super) fn if_made(&self) -> Option<&Names> {
        self.made.get()
    }

    /// The tools of servers that have no mode of their own: how many, and roughly what they cost a model
    /// together. Tools for apps only do not count: hosts keep them from models.
    pub fn undecided(&self) -> Cost {
        self.parts.undecided_by_size().unwrap_or_else(|| Names::undecided(self))
    }

    /// An upper limit of how many tools have names.
    pub(super) fn at_most(&self) -> usize {
        self.parts.catalog.iter().map(|(_, entry)| entry.offer.tools.len()).sum()
    }

    /// An upper limit of the bytes of their definitions.
    pub(super) fn bytes_at_most(&self) -> usize {
        self.parts.catalog.iter().map(|(_, entry)| entry.offer.tools.bytes()).sum()
    }

    /// The own names of a server's first tools that models may call, in the order of [`Names`]. Other
    /// servers' tools need no names for that, unless this server's depend on them.
    pub(super) fn first_own_names(&self, server: &ServerName) -> Vec<String> {
        match self.parts.named_as_listed(server) {
            Some((tools, policy)) if *policy == Policy::default() => tools.brief().first.clone(),
            Some((tools, policy)) => {
                let names = tools.names().into_iter().filter(|name| policy.may(name));
                names.take(FIRST_NAMES).map(Cow::into_owned).collect()
            }
            None => self.own_names(server).take(FIRST_NAMES).map(|name| word(name).into_owned()).collect(),
        }
    }

    /// The summary of a server's tools that models may call.
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
    /// The tools of a server and which of them may be called, if each is named by its own name after the
    /// server's. Such names stand in the order of the list, and no other tool has them.
    fn named_as_listed(&self, server: &ServerName) -> Option<(&Tools, &Policy)> {
        let tools = &self.catalog.get(server)?.offer.tools;
        let exposure = self.exposure(server);
        let longest = tools.brief().longest_name? + server.as_str().len() + JOINT.len();
        let is_prefixed = !exposure.bare && !exposure.remote && exposure.rename.is_empty();
        let as_listed = is_prefixed && !self.rules.identifiers && longest <= self.rules.limit;
        (as_listed && !tools.have_ui()).then_some((tools, &exposure.policy))
    }

    /// All servers in the order of the catalog, if each is named as listed.
    pub(super) fn servers_named_as_listed(&self) -> Option<Vec<(&ServerName, &Tools, &Exposure)>> {
        let server = |(server, _)| Some((server, self.named_as_listed(server)?.0, self.exposure(server)));
        self.catalog.iter().map(server).collect()
    }

    /// Whether a server has the same tools here and the same exposure.
    pub(super) fn has_same(&self, server: &ServerName, tools: &Tools, exposure: &Exposure) -> bool {
        let here = self.catalog.get(server).map(|entry| &entry.offer.tools);
        here.is_some_and(|here| here.are_those(tools)) && self.exposure(server) == exposure
    }

    pub(super) fn limit(&self) -> usize {
        self.rules.limit
    }

    fn exposure(&self, server: &ServerName) -> &Exposure {
        exposure(&self.layout, server)
    }

    /// The cost of many tools, if the sizes of their lists are enough to tell it.
    fn undecided_by_size(&self) -> Option<Cost> {
        let (mut tools, mut bytes) = (0, 0);
        for (server, entry) in self.catalog.iter() {
            let exposure = self.exposure(server);
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

/// The exposure of a server.
pub(super) fn exposure<'a>(layout: &'a Layout, server: &ServerName) -> &'a Exposure {
    static PLAIN: LazyLock<Exposure> = LazyLock::new(Exposure::default);
    layout.exposures.get(server).unwrap_or(&PLAIN)
}

impl Deref for LazyNames {
    type Target = Names;

    fn deref(&self) -> &Names {
        self.made.get_or_init(|| {
            let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take();
            let before = before.as_ref().and_then(|before| Some((before.made.get()?, &before.parts)));
            Names::new(&self.parts, before)
        })
    }
}

impl PartialEq for LazyNames {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for LazyNames {}
