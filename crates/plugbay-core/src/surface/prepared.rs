//! Prepares a snapshot before it is published: hosts will ask it for the same as they asked the one before.

use std::sync::Arc;

use super::{LazyNames, Names, Snapshot};

impl Snapshot {
    /// Makes what hosts asked an earlier snapshot for, so that nobody has to wait for it.
    pub fn prepare_like(&self, before: &Self) {
        self.prepare_views_like(before);
        for (host, seen_before) in before.by_host.kinds() {
            let seen = self.for_host(&host);
            if !Arc::ptr_eq(&seen.by_host, &self.by_host) {
                seen.prepare_views_like(seen_before.as_ref().unwrap_or(before));
            }
        }
    }

    fn prepare_views_like(&self, before: &Self) {
        self.names.prepare_like(&before.names);
        for (view, unasked) in before.listings.views() {
            let seen = self.seen_by(&view);
            self.listings.made_in_advance(&view, unasked);
            if let Some(names) = before.names_by_rules.made(before.rules_for(&view)) {
                seen.names.prepare_like(&names);
            }
        }
    }

    /// Whether this snapshot is in use elsewhere, too.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.by_host) > 1
    }
}

impl LazyNames {
    /// Makes the names, and the same parts of them, that were made for an earlier catalog.
    fn prepare_like(&self, before: &Self) {
        if let Some(before) = before.if_made() {
            Names::prepare_like(self, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{
        catalog::{Catalog, Change, Offer, Tool},
        era::Era,
        exposure::Mode,
        name::ServerName,
        surface::{Layout, View},
    };

    fn catalog(tool: &str) -> Arc<Catalog> {
        let tool = Tool::parse(Bytes::from(format!(r#"{{"name":"{tool}"}}"#))).unwrap();
        let offer = Arc::new(Offer::new(Era::Legacy, None, None, vec![tool]));
        let change = Change::Listed(ServerName::parse("a").unwrap(), offer);
        Arc::new(Catalog::default().apply(change))
    }

    fn followed(before: &Snapshot, tool: &str) -> Snapshot {
        let after = before.followed_by(catalog(tool), Arc::clone(&before.layout), true);
        after.prepare_like(before);
        after
    }

    fn first() -> Snapshot {
        Snapshot::new(catalog("t0"), Arc::new(Layout { name_limit: 64, ..Layout::default() }), true)
    }

    #[test]
    fn names_that_hosts_needed_are_made_for_the_next_snapshot_and_no_others() {
        let before = first();
        let short = View { name_limit: Some(20), ..View::in_mode(Mode::Search) };
        assert!(!followed(&before, "t1").names.are_made());
        assert!(before.seen_by(&short).names.get("a__t0").is_some());
        let after = followed(&before, "t1");
        assert!(!after.names.are_made() && after.seen_by(&short).names.are_made());
        assert!(before.names.alike("A-T0").is_some());
        let after = followed(&before, "t1");
        assert!(after.names.are_made() && after.names.spellings.are_made());
    }

    #[test]
    fn a_listing_is_made_in_advance_until_hosts_have_not_asked_for_it_for_long() {
        let (all, mut snapshot) = (View::in_mode(Mode::All), first());
        let _ = snapshot.seen_by(&all);
        for unasked in 1..=7 {
            snapshot = followed(&snapshot, "t");
            assert_eq!(snapshot.listings.views(), [(all.clone(), unasked)]);
        }
        assert_eq!(followed(&followed(&snapshot, "t"), "t").listings.views(), []);
        assert!(snapshot.seen_by(&all).listing.tools.starts_with(b"[{\"name\":\"a__t\""));
        assert_eq!(followed(&snapshot, "t").listings.views(), [(all, 1)]);
    }

    #[test]
    fn a_snapshot_is_shared_while_somebody_looks_at_it() {
        let snapshot = first();
        let seen = snapshot.seen_by(&View::in_mode(Mode::All));
        assert!(snapshot.is_shared());
        drop(seen);
        assert!(!snapshot.is_shared());
    }
}
