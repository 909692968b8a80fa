//! Starts servers and waits until each of them is ready or has failed.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use plugbay_core::{catalog::Freshness, failure::Failure, name::ServerName};
use plugbay_upstream::{Condition, ServerHandle, Status};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use crate::app::App;

/// A server is ready a moment before the catalog has its tools.
const CATALOG_WAIT: Duration = Duration::from_secs(1);

/// Starts the wanted servers all at once and reports their conditions to `watcher`. Returns the failures.
///
/// It keeps each failure, because the server is started again a moment later.
pub(super) async fn start(
    app: &App,
    wanted: impl Fn(&ServerName) -> bool,
    mut watcher: impl FnMut(&ServerName, &Condition),
) -> BTreeMap<ServerName, Arc<Failure>> {
    let (updates, mut inbox) = mpsc::unbounded_channel();
    for handle in app.servers().values().filter(|handle| wanted(handle.name())) {
        handle.refresh();
        tokio::spawn(follow(handle.clone(), updates.clone()));
    }
    drop(updates);
    let mut ready = Vec::new();
    let mut failures = BTreeMap::new();
    while let Some((name, condition)) = inbox.recv().await {
        watcher(&name, &condition);
        match condition {
            Condition::Ready => ready.push(name),
            Condition::Error(failure) => {
                failures.insert(name, failure);
            }
            Condition::Idle | Condition::Warming => {}
        }
    }
    let listed = |name: &ServerName, snapshot: &plugbay_core::surface::Snapshot| {
        snapshot.catalog.get(name).is_some_and(|entry| entry.freshness == Freshness::Fresh)
    };
    let mut snapshots = app.snapshots();
    let all_listed = snapshots.wait_for(|snapshot| ready.iter().all(|name| listed(name, snapshot)));
    // A server that went away again in this moment is shown as it was.
    let _ = timeout(CATALOG_WAIT, all_listed).await;
    failures
}

/// Sends the conditions of a server until it is ready or has failed.
async fn follow(handle: ServerHandle, updates: mpsc::UnboundedSender<(ServerName, Condition)>) {
    let mut status: watch::Receiver<Status> = handle.status();
    let mut last = Condition::Idle;
    while status.changed().await.is_ok() {
        let condition = status.borrow_and_update().condition.clone();
        if condition == last {
            continue; // only its pid or era has changed
        }
        last = condition.clone();
        let settled = matches!(condition, Condition::Ready | Condition::Error(_));
        if updates.send((handle.name().clone(), condition)).is_err() || settled {
            return;
        }
    }
}
