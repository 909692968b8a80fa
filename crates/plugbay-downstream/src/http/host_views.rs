//! The host views of modern hosts. Such a host has no session, so its active tools belong to a name in its
//! URL. Without that name it has at least the same mode in each request, by its client name.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper::Uri;
use plugbay_core::fair::{Removable, gives_way};
use tokio::time::Instant;

use crate::{
    host_view::{HostView, Persistence},
    limits::HOST_VIEWS as LIMIT,
    seal::Owner,
};

const LONGEST_NAME: usize = 64;
/// A host without requests for this long counts as disconnected.
const DISCONNECTED_AFTER: Duration = Duration::from_secs(3600);
/// A host view without requests for this long is dropped.
const IDLE: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default)]
pub(super) struct HostViews(Mutex<HashMap<Key, Entry>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    owner: Owner,
    /// The name of the host view, or else of the host.
    name: String,
    persistence: Persistence,
}

#[derive(Debug)]
struct Entry {
    host_view: Arc<HostView>,
    at: Instant,
}

impl HostViews {
    /// The view that `?desk=NAME` names, for this caller alone. Without a name: a view in which no tool stays
    /// active.
    pub(super) fn of(&self, owner: Owner, uri: &Uri, client: Option<&str>) -> Arc<HostView> {
        let (name, persistence) = match named(uri) {
            Some(name) => (name, Persistence::Named),
            None => (client.unwrap_or_default(), Persistence::None),
        };
        let name = name.chars().take(LONGEST_NAME).collect();
        let key = Key { owner, name, persistence };
        let (mut host_views, now) = (self.0.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        if host_views.len() >= LIMIT
            && !host_views.contains_key(&key)
            && let Some(oldest) = gives_way(owner, host_views.iter().map(removable)).cloned()
        {
            host_views.remove(&oldest);
        }
        let entry = host_views.entry(key);
        let entry =
            entry.or_insert_with(|| Entry { host_view: Arc::new(HostView::new(persistence)), at: now });
        entry.at = now;
        Arc::clone(&entry.host_view)
    }

    pub(super) fn sweep(&self, now: Instant) {
        let mut host_views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        host_views.retain(|_, entry| {
            let idle = now.duration_since(entry.at);
            if idle >= DISCONNECTED_AFTER {
                entry.host_view.unregister();
            }
            idle < IDLE
        });
    }
}

fn removable<'a>((key, entry): (&'a Key, &Entry)) -> (Owner, Option<Removable<&'a Key, Instant>>) {
    (key.owner, Some(Removable { key, used: entry.at }))
}

/// The name that `?desk=NAME` gives.
pub(super) fn named(uri: &Uri) -> Option<&str> {
    let values = uri.query()?.split('&').filter_map(|pair| pair.strip_prefix("desk="));
    values.into_iter().find(|name| !name.is_empty() && name.len() <= LONGEST_NAME)
}

#[cfg(test)]
mod tests {
    use plugbay_core::era::Era;

    use super::*;
    use crate::connected_hosts::{ClientInfo, ConnectedHosts};

    #[tokio::test(start_paused = true)]
    async fn a_named_host_view_belongs_to_its_caller() {
        let host_views = HostViews::default();
        let of = |owner: u8, uri: &'static str| {
            host_views.of(Owner([owner; 32]), &Uri::from_static(uri), Some("host"))
        };
        let mine = of(1, "/mcp?desk=a");
        assert!(mine.is_persistent() && Arc::ptr_eq(&mine, &of(1, "/mcp?x=y&desk=a")));
        assert!(!Arc::ptr_eq(&mine, &of(2, "/mcp?desk=a")) && !Arc::ptr_eq(&mine, &of(1, "/mcp?desk=b")));
        for unnamed in ["/mcp", "/mcp?desk=", "/mcp?adesk=a"] {
            assert!(!of(1, unnamed).is_persistent(), "{unnamed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_view_without_requests_is_unregistered_and_may_return() {
        let (host_views, connected_hosts) = (HostViews::default(), ConnectedHosts::default());
        let come = || {
            let host = ClientInfo { name: Some("host".into()), version: None, era: Era::Modern };
            host_views
                .of(Owner::default(), &Uri::from_static("/mcp"), Some("host"))
                .register(&host, &connected_hosts);
        };
        for _ in 0..2 {
            come();
            host_views.sweep(Instant::now());
            assert_eq!(connected_hosts.watch().borrow().len(), 1);
            tokio::time::advance(DISCONNECTED_AFTER).await;
            host_views.sweep(Instant::now());
            assert!(connected_hosts.watch().borrow().is_empty());
        }
        assert_eq!(host_views.0.lock().unwrap().len(), 1, "the host view is left as it was");
    }

    #[tokio::test(start_paused = true)]
    async fn the_least_recently_used_host_view_is_evicted() {
        let host_views = HostViews::default();
        let of = |name: usize| {
            host_views.of(Owner::default(), &format!("/mcp?desk={name}").parse().unwrap(), None)
        };
        let first = of(0);
        for name in 1..LIMIT {
            tokio::time::advance(Duration::from_millis(1)).await;
            of(name);
        }
        assert!(Arc::ptr_eq(&first, &of(0)), "who comes back to the oldest finds it");
        for name in 1..=LIMIT {
            tokio::time::advance(Duration::from_millis(1)).await;
            of(name);
        }
        assert_eq!(host_views.0.lock().unwrap().len(), LIMIT);
        assert!(!Arc::ptr_eq(&first, &of(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_with_many_host_views_loses_its_own() {
        let host_views = HostViews::default();
        let of = |owner: u8, name: usize| {
            host_views.of(Owner([owner; 32]), &format!("/mcp?desk={name}").parse().unwrap(), None)
        };
        let first = of(1, 0);
        for name in 0..2 * LIMIT {
            tokio::time::advance(Duration::from_millis(1)).await;
            of(2, name);
        }
        assert!(Arc::ptr_eq(&first, &of(1, 0)), "another caller's view was dropped");
    }
}
