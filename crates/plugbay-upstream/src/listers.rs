//! Lists a server for a kind of hosts that no running instance was started for, with a short-lived instance.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use plugbay_core::{
    catalog::{Dialect, Offer},
    declaration::Declaration,
    host_registry::HostRegistry,
};
use tokio::{
    sync::{OnceCell, mpsc, watch},
    time::{Instant, timeout_at},
};

use crate::{
    instances::Instances,
    observers::{Observer, Observers},
    server::{Report, ServerHandle},
    spec::ServerSpec,
};

/// How long after its first list a server may change it: some do once they have connected to other servers.
const SETTLING: Duration = Duration::from_millis(500);

/// A listing in progress, and its outcome.
type UnderWay = Weak<OnceCell<Option<Arc<Offer>>>>;

/// The listings in progress, by server and kind of hosts.
#[derive(Debug, Default)]
// A std mutex: held for look-ups, never across an await.
pub(crate) struct Listings(Mutex<Vec<(ServerSpec, Declaration, UnderWay)>>);

impl Listings {
    fn of(&self, spec: &ServerSpec, host: &Declaration) -> Arc<OnceCell<Option<Arc<Offer>>>> {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.retain(|(.., listing)| listing.strong_count() > 0);
        let same = under_way.iter().find(|(other, kind, _)| other == spec && kind == host);
        if let Some(listing) = same.and_then(|(.., listing)| listing.upgrade()) {
            return listing;
        }
        let listing = Arc::default();
        under_way.push((spec.clone(), host.clone(), Arc::downgrade(&listing)));
        listing
    }
}

impl Instances {
    /// The server's lists for hosts with this declaration; `None` if it cannot be listed, or after `stop`.
    /// Returns when the instance has ended. Gateways that ask for the same at the same time share one
    /// instance.
    pub async fn list_for(
        &self,
        host: &Declaration,
        spec: &Arc<ServerSpec>,
        known: Option<Dialect>,
        stop: watch::Receiver<bool>,
    ) -> Option<Arc<Offer>> {
        let listing = self.listings.of(spec, host);
        listing.get_or_init(|| self.list_by_own_instance(host, spec, known, stop)).await.clone()
    }

    async fn list_by_own_instance(
        &self,
        host: &Declaration,
        spec: &Arc<ServerSpec>,
        known: Option<Dialect>,
        mut stop: watch::Receiver<bool>,
    ) -> Option<Arc<Offer>> {
        let host_registry = Arc::new(HostRegistry::default());
        host_registry.add_capabilities(host.capabilities);
        host_registry.add_extensions(&host.extensions);
        let (sender, reports) = mpsc::unbounded_channel();
        let observer = Observer {
            reports: Arc::new(move |report| _ = sender.send(report)),
            status_changed: Arc::default(),
        };
        let observers = Observers::default();
        let _observing = observers.add(spec, &observer);
        let context = self.context(host_registry, observers);
        let handle = ServerHandle::spawn_in(None, Arc::clone(spec), known, context);
        handle.refresh();
        let listed = tokio::select! {
            listed = last_list(reports) => listed,
            _ = stop.wait_for(|stopped| *stopped) => None,
        };
        handle.stop().await;
        listed
    }
}

/// The final list of a server.
async fn last_list(mut reports: mpsc::UnboundedReceiver<Report>) -> Option<Arc<Offer>> {
    let mut listed = reports.recv().await?.outcome.ok()?;
    let until = Instant::now() + SETTLING;
    while let Ok(Some(report)) = timeout_at(until, reports.recv()).await {
        listed = report.outcome.ok()?;
    }
    Some(listed)
}
