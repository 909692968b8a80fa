//! Lists servers for kinds of hosts that no running instance was told of: an instance of its own, for a moment.

use std::{sync::Arc, time::Duration};

use plugbay_core::{
    catalog::{Dialect, Offer},
    declaration::Declaration,
    host_registry::HostRegistry,
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout_at},
};

use crate::{
    instances::Instances,
    observers::{Observer, Observers},
    server::{Report, ServerHandle},
    spec::ServerSpec,
};

/// So long after its first list a server may still list more: some do so when they have connected to others.
const SETTLING: Duration = Duration::from_millis(500);

impl Instances {
    /// What the server lists for hosts that declare this; `None`: it cannot be listed, or `stop` has come. Returns when
    /// the instance has ended.
    pub async fn list_for(
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

/// The list that a server ends up with.
async fn last_list(mut reports: mpsc::UnboundedReceiver<Report>) -> Option<Arc<Offer>> {
    let mut listed = reports.recv().await?.outcome.ok()?;
    let until = Instant::now() + SETTLING;
    while let Ok(Some(report)) = timeout_at(until, reports.recv()).await {
        listed = report.outcome.ok()?;
    }
    Some(listed)
}
