//! What runs: every gateway keeps a page that tells how it is, and `plugbay status` reads them all.

mod page;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use plugbay_core::{name::ServerName, surface::Snapshot};
use plugbay_downstream::ConnectedHost;
use plugbay_upstream::{Condition, Status};
use serde::{Deserialize, Serialize};
use tokio::{task::spawn_blocking, time::sleep};

pub use page::read;

use self::page::Page;
use crate::{app::App, commands::Trouble, settings::Source};

/// What changes together is written together.
const PAUSE: Duration = Duration::from_millis(250);

/// A gateway that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    pub pid: u32,
    /// In seconds since 1970.
    pub since: u64,
    #[serde(flatten)]
    pub transport: Transport,
    /// Where it was started.
    pub folder: String,
    /// The one file that it uses, if its command line names it.
    pub config: Option<String>,
    pub hosts: Vec<Present>,
    pub servers: Vec<Server>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "transport", rename_all = "lowercase")]
pub enum Transport {
    Stdio,
    Http { address: String },
}

/// Hosts of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Present {
    #[serde(flatten)]
    pub guest: ConnectedHost,
    pub count: usize,
}

/// A server as far as its users need to know: how it is started may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    pub name: String,
    pub state: State,
    /// What there is to be called, from the cache too; absent if it has never told.
    pub tools: Option<usize>,
    pub pid: Option<i32>,
    /// Why it has failed, also while it is being tried again.
    #[serde(flatten)]
    pub trouble: Option<Trouble>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Warming,
    Ready,
    /// It does not run, and the next call starts it.
    Idle,
    Error,
}

impl Running {
    pub fn new(source: &Source, transport: Transport) -> Self {
        let told = |path: PathBuf| path.to_string_lossy().into_owned();
        Self {
            pid: std::process::id(),
            since: now(),
            transport,
            folder: told(source.paths.start.clone()),
            config: source.explicit().map(told),
            hosts: Vec::new(),
            servers: Vec::new(),
        }
    }
}

/// Keeps the page true until this is dropped, which takes it away. A disk that takes nothing costs the
/// page and nothing else.
pub async fn keep(mut running: Running, folder: Option<PathBuf>, app: &App) {
    let Some(folder) = folder else { return };
    let (mut connected_hosts, mut snapshots) = (app.gateway().connected_hosts.watch(), app.snapshots());
    let shown = app.shown();
    let mut page = Page::new(&folder);
    let (mut written, mut warned) = (None, false);
    loop {
        sleep(PAUSE).await;
        let hosts = connected_hosts.borrow_and_update().clone().into_iter();
        running.hosts = hosts.map(|(guest, count)| Present { guest, count }).collect();
        running.servers = servers(app.statuses(), &snapshots.borrow_and_update().clone());
        if written.as_ref() != Some(&running) {
            let text = serde_json::to_vec(&running).unwrap_or_default();
            let writing = spawn_blocking(move || {
                let outcome = page.write(&text);
                (page, outcome)
            });
            let Ok((back, outcome)) = writing.await else { return };
            page = back;
            if let Err(error) = outcome
                && !std::mem::replace(&mut warned, true)
            {
                tracing::warn!("`plugbay status` will not tell of this gateway: {error}");
            }
            written = Some(running.clone());
        }
        tokio::select! {
            Ok(()) = connected_hosts.changed() => {}
            Ok(()) = snapshots.changed() => {}
            () = shown.notified() => {}
        }
    }
}

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn servers(statuses: BTreeMap<ServerName, Status>, snapshot: &Snapshot) -> Vec<Server> {
    let mut tools: BTreeMap<&ServerName, usize> = BTreeMap::new();
    for found in snapshot.names.iter() {
        *tools.entry(&found.target.server).or_default() += 1;
    }
    let server = |(name, Status { condition, pid, .. })| {
        let failure = match &condition {
            Condition::Failed(failure) => Some(failure),
            Condition::Asleep | Condition::Warming => snapshot.catalog.failure(&name),
            Condition::Ready => None,
        };
        Server {
            trouble: failure.map(|failure| Trouble::from(&**failure)),
            tools: snapshot.catalog.get(&name).map(|_| tools.get(&name).copied().unwrap_or_default()),
            state: match condition {
                Condition::Asleep => State::Idle,
                Condition::Warming => State::Warming,
                Condition::Ready => State::Ready,
                Condition::Failed(_) => State::Error,
            },
            pid,
            name: name.to_string(),
        }
    };
    statuses.into_iter().map(server).collect()
}
