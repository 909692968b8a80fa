//! Performs the listings that the publisher asks for.

use std::sync::Arc;

use plugbay_core::{name::ServerName, start::Priority};
use plugbay_upstream::{Instances, Pool, ServerHandle};
use tokio::{
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
};

use crate::publisher::{ListJob, ListedFor, Note};

/// The task that performs listings of servers for kinds of hosts.
#[derive(Debug)]
pub(super) struct Listers {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Listers {
    pub(super) fn start(
        pool: Arc<Pool>,
        instances: Arc<Instances>,
        jobs: mpsc::UnboundedReceiver<ListJob>,
        notes: mpsc::UnboundedSender<Note>,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        Self { stop, task: tokio::spawn(run(pool, instances, jobs, notes, stopped)) }
    }

    /// Stops all listings; returns when no process is left.
    pub(super) async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

async fn run(
    pool: Arc<Pool>,
    instances: Arc<Instances>,
    mut jobs: mpsc::UnboundedReceiver<ListJob>,
    notes: mpsc::UnboundedSender<Note>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut listings: JoinSet<()> = JoinSet::new();
    loop {
        let job = tokio::select! {
            Some(job) = jobs.recv() => job,
            Some(_) = listings.join_next() => continue,
            _ = stopped.wait_for(|stopped| *stopped) => break,
            else => break,
        };
        let handle = pool.servers().handles.get(&job.server).cloned();
        match (handle, job.host.is_some()) {
            (Some(handle), false) => handle.refresh_for(Priority::Listed),
            (handle, _) => {
                let (instances, notes, stopped) = (Arc::clone(&instances), notes.clone(), stopped.clone());
                listings.spawn(async move {
                    let listed = list(handle, job, &instances, stopped).await;
                    let _ = notes.send(Note::ListedFor(listed));
                });
            }
        }
    }
    while listings.join_next().await.is_some() {}
}

/// Lists a server with a separate instance. A server that is gone cannot be listed.
async fn list(
    handle: Option<ServerHandle>,
    job: ListJob,
    instances: &Instances,
    stopped: watch::Receiver<bool>,
) -> ListedFor {
    let ListJob { server, identity, host, dialect } = job;
    let host = host.unwrap_or_default();
    let offer = match handle {
        Some(handle) => instances.list_for(&host, &handle.spec, dialect, stopped).await,
        None => None,
    };
    log(&server, offer.is_some());
    ListedFor { server, identity, host, offer }
}

fn log(server: &ServerName, listed: bool) {
    if !listed {
        tracing::debug!(%server, "could not be listed for another kind of host");
    }
}
