//! Starts servers and waits until each is ready or has failed.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use plugbay_core::{catalog::Freshness, failure::Failure, name::ServerName, surface::Snapshot};
use plugbay_upstream::{Condition, ServerHandle, Status};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use crate::{
    app::App,
    output::{Output, StartLines, Started},
};

/// A server is ready a moment before the catalog has its tools.
const CATALOG_WAIT: Duration = Duration::from_secs(1);

/// The failures of servers that did not start.
pub(super) type Failures = BTreeMap<ServerName, Arc<Failure>>;

/// Starts the wanted servers, a few at a time, and reports their conditions to `watcher`. Returns the failures.
///
/// It keeps each failure, because the server is started again a moment later. When a server is reported as
/// ready, its tools are in the catalog.
pub(super) async fn start(
    app: &App,
    wanted: impl Fn(&ServerName) -> bool,
    mut watcher: impl FnMut(&ServerName, &Condition),
) -> Failures {
    let (updates, mut inbox) = mpsc::unbounded_channel();
    for handle in app.servers().values().filter(|handle| wanted(handle.name())) {
        handle.refresh();
        tokio::spawn(follow(handle.clone(), app.snapshots(), updates.clone()));
    }
    drop(updates);
    let mut failures = BTreeMap::new();
    while let Some((name, condition)) = inbox.recv().await {
        watcher(&name, &condition);
        if let Condition::Error(failure) = condition {
            failures.insert(name, failure);
        }
    }
    failures
}

/// Does the same and prints a line about each server that has started or failed.
pub(super) async fn start_visibly(
    app: &App,
    output: Output,
    wanted: impl Fn(&ServerName) -> bool,
) -> Failures {
    let names = app.servers().into_keys().filter(&wanted).map(|name| name.to_string());
    let mut lines = StartLines::new(output, names.collect());
    let begun = Instant::now();
    let snapshots = app.snapshots();
    let report = |name: &ServerName, condition: &Condition| {
        if let Some(outcome) = started(name, condition, &snapshots) {
            lines.settled(name.as_str(), outcome, begun.elapsed());
        }
    };
    let failures = start(app, wanted, report).await;
    lines.finish();
    failures
}

/// The outcome of a server's start; `None` while it is in progress.
pub(super) fn started(
    name: &ServerName,
    condition: &Condition,
    snapshots: &watch::Receiver<Snapshot>,
) -> Option<Started> {
    match condition {
        Condition::Ready => Some(Started::Ready { tools: snapshots.borrow().names.of(name).count() }),
        Condition::Error(failure) if failure.needs_login() => Some(Started::NeedsLogin),
        Condition::Error(_) => Some(Started::Failed),
        // A slow start goes on, so the wait goes on too.
        Condition::Idle | Condition::Warming | Condition::Slow(_) => None,
    }
}

/// Sends the conditions of a server until it is ready or has failed.
async fn follow(
    handle: ServerHandle,
    mut snapshots: watch::Receiver<Snapshot>,
    updates: mpsc::UnboundedSender<(ServerName, Condition)>,
) {
    let mut status: watch::Receiver<Status> = handle.status();
    let mut last = Condition::Idle;
    while status.changed().await.is_ok() {
        let condition = status.borrow_and_update().condition.clone();
        if condition == last {
            continue; // only its pid or era has changed
        }
        last = condition.clone();
        if condition == Condition::Ready {
            let is_listed = |snapshot: &Snapshot| {
                let entry = snapshot.catalog.get(handle.name());
                entry.is_some_and(|entry| entry.freshness == Freshness::Fresh)
            };
            // A server that has just stopped again is shown as it was.
            let _ = timeout(CATALOG_WAIT, snapshots.wait_for(is_listed)).await;
        }
        let settled = matches!(condition, Condition::Ready | Condition::Error(_));
        if updates.send((handle.name().clone(), condition)).is_err() || settled {
            return;
        }
    }
}
