//! The lists of one server for several kinds of hosts: a server may list more for hosts that can do more.

use std::{collections::BTreeSet, sync::Arc};

use super::{Item, Offer};
use crate::declaration::Declaration;

/// How many kinds of hosts are remembered of a server; then those that were learnt first are forgotten.
const MOST_KINDS: usize = 16;

/// The lists of one server by the declaration that it was told. Equal lists are kept once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variants {
    /// One instance serves hosts of several kinds: what a host sees must be a part of what that instance has.
    shared: bool,
    /// The declaration that the server was told when it listed the offer of the catalog, if that is known.
    told: Option<Declaration>,
    /// The list that was learnt last is the last.
    lists: Vec<KnownList>,
    /// Kinds for which it could not be listed: nobody waits for these lists.
    given_up: Vec<Declaration>,
}

/// A list, and the kinds of hosts that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownList {
    /// The kind that was learnt last is the last.
    pub declared: Vec<Declaration>,
    pub offer: Arc<Offer>,
    /// When the server last confirmed it, in seconds since 1970.
    pub confirmed: u64,
}

impl Variants {
    pub fn new(shared: bool, lists: Vec<KnownList>) -> Self {
        Self { shared, lists, ..Self::default() }
    }

    pub fn lists(&self) -> &[KnownList] {
        &self.lists
    }

    /// One instance serves hosts of several kinds.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// The declaration that the server was told when it listed the offer of the catalog.
    pub fn told(&self) -> Option<&Declaration> {
        self.told.as_ref()
    }

    /// The offer of the catalog is what the server listed when it was told this.
    pub fn set_told(&mut self, told: Option<Declaration>) {
        self.told = told;
    }

    /// A server that no call has changed yet listed this for hosts of this kind. If it listed something else for them
    /// before, it is another version of the program: its lists for other kinds are forgotten. `false`: nothing is new.
    pub fn learn(&mut self, declared: &Declaration, offer: &Arc<Offer>, confirmed: u64) -> bool {
        let before = self.exactly(declared).map(|list| Arc::clone(&list.offer));
        if before.as_ref().is_some_and(|before| !before.lists_same(offer)) {
            self.lists.clear();
            self.given_up.clear();
        }
        self.given_up.retain(|kind| kind != declared);
        for list in &mut self.lists {
            list.declared.retain(|kind| kind != declared);
        }
        let same = self.lists.iter().position(|list| list.offer.lists_same(offer));
        let mut kinds = same.map(|at| self.lists.remove(at).declared).unwrap_or_default();
        kinds.push(declared.clone());
        self.lists.retain(|list| !list.declared.is_empty());
        self.lists.push(KnownList { declared: kinds, offer: Arc::clone(offer), confirmed });
        self.make_room();
        before.is_none_or(|before| *before != **offer)
    }

    /// The server cannot be listed for hosts of this kind.
    pub fn give_up(&mut self, declared: &Declaration) {
        if !self.given_up.contains(declared) && self.given_up.len() < MOST_KINDS {
            self.given_up.push(declared.clone());
        }
    }

    /// Whether the list for hosts of this kind is known, or cannot be.
    pub fn is_known(&self, host: &Declaration) -> bool {
        self.told.as_ref() == Some(host) || self.list_for(host).is_some() || self.given_up.contains(host)
    }

    /// What the server lists for hosts of this kind. If it has the same list for poorer and for richer hosts,
    /// that is also the list for those between them.
    pub fn list_for(&self, host: &Declaration) -> Option<&KnownList> {
        let between = |list: &&KnownList| {
            list.declared.iter().any(|poorer| host.covers(poorer))
                && list.declared.iter().any(|richer| richer.covers(host))
        };
        self.exactly(host).or_else(|| self.lists.iter().rev().find(between))
    }

    /// The list for the hosts that can do most, for readers that are no hosts.
    pub fn widest(&self) -> Option<(&KnownList, &Declaration)> {
        let all = self.lists.iter().flat_map(|list| list.declared.iter().map(move |kind| (list, kind)));
        all.reduce(|widest, next| if next.1.covers(widest.1) { next } else { widest })
    }

    /// The offer that hosts of this kind see while the catalog has `current`, and whether that is certain.
    pub(super) fn offer_for(&self, current: &Arc<Offer>, host: &Declaration) -> (Arc<Offer>, bool) {
        if self.told.as_ref() == Some(host) {
            return (Arc::clone(current), true);
        }
        let base = self.told.as_ref().and_then(|told| self.list_for(told));
        match (self.list_for(host), base) {
            (Some(list), Some(base)) if self.shared => (without(current, &base.offer, &list.offer), true),
            (Some(list), _) => (Arc::clone(&list.offer), true),
            (None, _) if self.shared => (Arc::clone(current), self.given_up.contains(host)),
            (None, _) => {
                let nearest = self.nearest(host).unwrap_or(current);
                (Arc::clone(nearest), self.given_up.contains(host))
            }
        }
    }

    fn exactly(&self, host: &Declaration) -> Option<&KnownList> {
        self.lists.iter().find(|list| list.declared.contains(host))
    }

    /// The shortest list for hosts that can do more; else the longest for hosts that can do less. A tool too many costs
    /// some tokens and explains itself when it is called; a tool too few is never found.
    fn nearest(&self, host: &Declaration) -> Option<&Arc<Offer>> {
        let of = |fits: &dyn Fn(&Declaration) -> bool| {
            let lists: Vec<_> = self.lists.iter().filter(|list| list.declared.iter().any(fits)).collect();
            lists
        };
        let richer = of(&|kind| kind.covers(host));
        let poorer = of(&|kind| host.covers(kind));
        let shortest = richer.into_iter().min_by_key(|list| list.offer.tools.len());
        let list = shortest.or_else(|| poorer.into_iter().max_by_key(|list| list.offer.tools.len()));
        list.map(|list| &list.offer)
    }

    fn make_room(&mut self) {
        let kinds = |lists: &[KnownList]| lists.iter().map(|list| list.declared.len()).sum::<usize>();
        while kinds(&self.lists) > MOST_KINDS {
            let Some(oldest) = self.lists.first_mut() else { return };
            oldest.declared.remove(0);
            self.lists.retain(|list| !list.declared.is_empty());
        }
    }
}

/// `current` without the items that are in `all` and not in `some`. Items that appeared later stay: a call of a host has
/// brought them.
fn without(current: &Arc<Offer>, all: &Offer, some: &Offer) -> Arc<Offer> {
    if all.lists_same(some) {
        return Arc::clone(current);
    }
    let names = |offer: &Offer| offer.tools.iter().map(|tool| tool.name.clone()).collect::<BTreeSet<_>>();
    let hidden: BTreeSet<String> = names(all).difference(&names(some)).cloned().collect();
    let mut offer = (**current).clone();
    let shown = current.tools.iter().filter(|tool| !hidden.contains(&tool.name));
    offer.tools = shown.cloned().collect::<Vec<_>>().into();
    hide(&mut offer.resources, &all.resources, &some.resources);
    hide(&mut offer.templates, &all.templates, &some.templates);
    hide(&mut offer.prompts, &all.prompts, &some.prompts);
    Arc::new(offer)
}

fn hide(current: &mut Vec<Item>, all: &[Item], some: &[Item]) {
    let keys = |items: &[Item]| items.iter().map(|item| item.key.clone()).collect::<BTreeSet<_>>();
    let hidden: BTreeSet<String> = keys(all).difference(&keys(some)).cloned().collect();
    current.retain(|item| !hidden.contains(&item.key));
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{catalog::Tool, era::Era};

    const NONE: &str = "{}";
    const ROOTS: &str = r#"{"roots":{}}"#;
    const FORM: &str = r#"{"elicitation":{}}"#;
    const BOTH: &str = r#"{"roots":{},"elicitation":{}}"#;

    fn kind(text: &str) -> Declaration {
        Declaration::read(text.as_bytes(), &(0..text.len()))
    }

    fn offer(names: &[&str]) -> Arc<Offer> {
        let tool = |name: &&str| Tool::parse(Bytes::from(format!(r#"{{"name":"{name}"}}"#))).unwrap();
        Arc::new(Offer::new(Era::Legacy, None, None, names.iter().map(tool).collect()))
    }

    fn variants(shared: bool, lists: &[(&str, &[&str])]) -> Variants {
        let mut variants = Variants::new(shared, Vec::new());
        for (declared, names) in lists {
            variants.learn(&kind(declared), &offer(names), 1);
        }
        variants
    }

    /// The names that a host of this kind sees, and whether that is certain.
    fn seen(variants: &Variants, current: &[&str], host: &str) -> (Vec<String>, bool) {
        let (offer, certain) = variants.offer_for(&offer(current), &kind(host));
        (offer.tools.iter().map(|tool| tool.name.clone()).collect(), certain)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equal_lists_are_kept_once_and_hold_for_the_kinds_of_hosts_between() {
        let mut variants = variants(true, &[(NONE, &["a"]), (BOTH, &["a"])]);
        assert_eq!(variants.lists().len(), 1);
        variants.set_told(Some(kind(BOTH)));
        assert!(variants.is_known(&kind(ROOTS)) && variants.is_known(&kind(FORM)));
        assert_eq!(seen(&variants, &["a"], ROOTS), (names(&["a"]), true));
    }

    #[test]
    fn a_host_sees_the_list_for_its_kind() {
        let own = variants(false, &[(NONE, &["a"]), (BOTH, &["a", "f", "r"])]);
        assert_eq!(seen(&own, &["a"], BOTH), (names(&["a", "f", "r"]), true));
        assert_eq!(seen(&own, &["a", "f", "r"], NONE), (names(&["a"]), true));
        // A tool too many is the cheaper mistake.
        assert_eq!(seen(&own, &["a"], ROOTS), (names(&["a", "f", "r"]), false));
        let poor = variants(false, &[(NONE, &["a"])]);
        assert_eq!(seen(&poor, &["a"], ROOTS), (names(&["a"]), false));
    }

    #[test]
    fn hosts_of_a_shared_instance_see_a_part_of_what_it_has() {
        let mut shared = variants(true, &[(NONE, &["a", "only_poor"]), (BOTH, &["a", "f"])]);
        shared.set_told(Some(kind(BOTH)));
        assert_eq!(seen(&shared, &["a", "f"], NONE), (names(&["a"]), true));
        // A call has added one, and removed another.
        assert_eq!(seen(&shared, &["f", "new"], NONE), (names(&["new"]), true));
        assert_eq!(seen(&shared, &["f", "new"], BOTH), (names(&["f", "new"]), true));
        assert_eq!(seen(&shared, &["a", "f"], ROOTS), (names(&["a", "f"]), false));
        shared.give_up(&kind(ROOTS));
        assert_eq!(seen(&shared, &["a", "f"], ROOTS), (names(&["a", "f"]), true));
    }

    #[test]
    fn another_version_of_the_server_makes_the_lists_for_other_kinds_forgotten() {
        let mut variants = variants(true, &[(NONE, &["a"]), (BOTH, &["a", "f"])]);
        assert!(!variants.learn(&kind(BOTH), &offer(&["a", "f"]), 2), "it is the same");
        assert!(variants.is_known(&kind(NONE)));
        assert!(variants.learn(&kind(BOTH), &offer(&["a", "f", "new"]), 3));
        assert!(!variants.is_known(&kind(NONE)) && variants.lists().len() == 1);
    }

    #[test]
    fn the_kinds_of_hosts_that_are_remembered_are_limited() {
        let mut variants = Variants::default();
        for number in 0..3 * MOST_KINDS {
            let declared = kind(&format!(r#"{{"extensions":{{"x/{number}":{{}}}}}}"#));
            variants.learn(&declared, &offer(&[&format!("t{number}")]), 1);
            variants.learn(&kind(NONE), &offer(&["a"]), 1);
        }
        assert_eq!(variants.lists().iter().map(|list| list.declared.len()).sum::<usize>(), MOST_KINDS);
        assert_eq!(variants.lists().len(), MOST_KINDS);
        assert!(variants.is_known(&kind(NONE)), "it was learnt last");
    }

    #[test]
    fn readers_that_are_no_hosts_see_the_widest_list() {
        let variants = variants(false, &[(BOTH, &["a", "f"]), (NONE, &["a"])]);
        let (list, declared) = variants.widest().unwrap();
        assert_eq!((list.offer.tools.len(), declared), (2, &kind(BOTH)));
    }
}
