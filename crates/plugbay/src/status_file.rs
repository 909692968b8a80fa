//! The status file that every running gateway keeps up to date; `plugbay status` reads them all.

mod file;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use plugbay_core::{
    name::ServerName,
    scope::Scope,
    server_state::ServerState,
    surface::{Problem, Snapshot},
};
use plugbay_downstream::ConnectedHost;
use plugbay_upstream::{Condition, Status};
use serde::{Deserialize, Serialize};
use tokio::{task::spawn_blocking, time::sleep};

pub use file::{left_behind, read, running};

use self::file::StatusFile;
use crate::{
    app::{App, ScopeStatus},
    clock,
    error::StartFailure,
    settings::Source,
};

/// Changes within this time are written together.
const PAUSE: Duration = Duration::from_millis(250);

/// The content of a status file: one running gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayStatus {
    pub pid: u32,
    /// In seconds since 1970.
    pub since: u64,
    #[serde(flatten)]
    pub transport: Transport,
    /// The folder in which it was started.
    pub folder: String,
    /// The configuration file that its command line names, if it names one.
    pub config: Option<String>,
    /// The reason why it runs its servers itself although the daemon could.
    #[serde(default, rename = "withoutDaemon", skip_serializing_if = "Option::is_none")]
    pub without_daemon: Option<String>,
    /// The remotes from the command line or the environment, without secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remotes: Vec<String>,
    /// The profile that the command line sets for every host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    pub hosts: Vec<HostGroup>,
    pub servers: Vec<ServerStatus>,
    /// Problems of its configuration. Absent in the files of older versions.
    #[serde(default)]
    pub problems: Vec<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "transport", rename_all = "lowercase")]
pub enum Transport {
    Stdio,
    Http {
        address: String,
    },
    /// Windows, which connect through their bridges to the daemon.
    Daemon,
}

/// Connected hosts with the same name, version, profile and mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostGroup {
    #[serde(flatten)]
    pub host: ConnectedHost,
    pub count: usize,
}

/// One server, without its command and environment, which may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    pub name: String,
    pub state: ServerState,
    /// The number of its tools, from the cache if it is not running; absent if it has never listed them.
    pub tools: Option<usize>,
    pub pid: Option<i32>,
    /// Its scope, with the reason. Absent in the files of older versions, and for a server that cannot be
    /// started.
    #[serde(default)]
    pub scope: Option<Scope>,
    #[serde(default)]
    pub why: Option<String>,
    /// How many processes of it run for the gateway: the shared one, or those of its sessions.
    #[serde(default)]
    pub instances: usize,
    /// How many of them may run, if each session has its own.
    #[serde(default, rename = "instanceLimit", skip_serializing_if = "Option::is_none")]
    pub instance_limit: Option<usize>,
    /// The folder that it runs for, if each folder has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether it is behind a URL, and so has no process here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remote: bool,
    /// Definitions that had hidden characters when it last listed.
    #[serde(default, rename = "hiddenCharacters", skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Items that plugbay leaves out of its lists because they are too large.
    #[serde(default, rename = "leftOut", skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// The reason why it has failed, even while it is being restarted.
    #[serde(flatten)]
    pub trouble: Option<StartFailure>,
}

impl GatewayStatus {
    pub fn new(source: &Source, transport: Transport) -> Self {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        Self {
            pid: std::process::id(),
            since: clock::now(),
            transport,
            folder: text(source.paths.start.clone()),
            config: source.explicit().map(text),
            without_daemon: source.no_daemon().map(str::to_owned),
            remotes: source.remotes(),
            profile: source.profile(),
            hosts: Vec::new(),
            servers: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Whether this is a gateway of the daemon whose windows have closed; it ends soon.
    pub fn is_unused(&self) -> bool {
        self.transport == Transport::Daemon && self.hosts.is_empty()
    }

    /// Whether a server or the configuration needs the user.
    pub fn has_failed(&self) -> bool {
        let failed = self.servers.iter().any(|server| server.trouble.is_some());
        !self.is_unused() && (failed || self.problems.iter().any(|problem| problem.urgent))
    }
}

/// Keeps the status file up to date until this future is dropped, which removes the file. If the disk accepts no
/// writes, only the file is missing.
pub async fn keep(mut gateway: GatewayStatus, folder: Option<PathBuf>, app: &App) {
    let Some(folder) = folder else { return };
    let (mut connected_hosts, mut snapshots) = (app.gateway().connected_hosts.watch(), app.snapshots());
    let shown = app.shown();
    let mut file = StatusFile::new(&folder);
    let (mut written, mut warned) = (None, false);
    loop {
        let hosts = connected_hosts.borrow_and_update().clone().into_iter();
        gateway.hosts = hosts.map(|(host, count)| HostGroup { host, count }).collect();
        let snapshot = snapshots.borrow_and_update().clone();
        gateway.problems.clone_from(&snapshot.layout.problems);
        // Counting many tools takes a while.
        let (statuses, scopes) = (app.statuses(), app.scopes());
        let Ok(servers) = spawn_blocking(move || servers(statuses, &scopes, &snapshot)).await else { return };
        gateway.servers = servers;
        if written.as_ref() != Some(&gateway) {
            let text = serde_json::to_vec(&gateway).unwrap_or_default();
            let writing = spawn_blocking(move || {
                let outcome = file.write(&text);
                (file, outcome)
            });
            let Ok((back, outcome)) = writing.await else { return };
            file = back;
            if let Err(error) = outcome
                && !std::mem::replace(&mut warned, true)
            {
                tracing::warn!(
                    "`plugbay status` cannot show this gateway: its status file cannot be written: {error}"
                );
            }
            written = Some(gateway.clone());
        }
        tokio::select! {
            Ok(()) = connected_hosts.changed() => {}
            Ok(()) = snapshots.changed() => {}
            () = shown.notified() => {}
        }
        sleep(PAUSE).await;
    }
}

/// The current servers of a gateway.
pub fn server_statuses(app: &App) -> Vec<ServerStatus> {
    let snapshot = app.snapshots().borrow().clone();
    servers(app.statuses(), &app.scopes(), &snapshot)
}

fn servers(
    statuses: BTreeMap<ServerName, Status>,
    scopes: &BTreeMap<ServerName, ScopeStatus>,
    snapshot: &Snapshot,
) -> Vec<ServerStatus> {
    let tools = snapshot.names.counts();
    let server = |(name, Status { condition, pid, .. })| {
        let failure = match &condition {
            Condition::Error(failure) | Condition::Slow(failure) => Some(failure),
            Condition::Idle | Condition::Warming => snapshot.catalog.failure(&name),
            Condition::Ready => None,
        };
        let shared = scopes.get(&name);
        let instances = shared.map_or(0, |shared| shared.running);
        ServerStatus {
            trouble: failure.map(|failure| StartFailure::from(&**failure)),
            tools: snapshot.catalog.get(&name).map(|_| tools.get(&name).copied().unwrap_or_default()),
            state: match condition.server_state() {
                ServerState::Idle if instances > 0 => ServerState::Ready, // of sessions
                state => state,
            },
            pid,
            scope: shared.map(|shared| shared.scope.scope),
            why: shared.map(|shared| shared.scope.why.clone()),
            instances,
            instance_limit: shared.and_then(|shared| shared.limit),
            folder: shared.and_then(|shared| shared.folder.clone()),
            remote: shared.is_some_and(|shared| shared.remote),
            hidden: hidden(&name, snapshot),
            left_out: snapshot
                .catalog
                .get(&name)
                .and_then(|entry| entry.offer.left_out)
                .map(|left_out| left_out.to_string()),
            name: name.to_string(),
        }
    };
    statuses.into_iter().map(server).collect()
}

/// The definitions of a server that had hidden characters when it listed them.
fn hidden(server: &ServerName, snapshot: &Snapshot) -> Vec<String> {
    let offer = snapshot.catalog.get(server).map(|entry| &entry.offer);
    offer.and_then(|offer| offer.hidden.as_ref()).map(|hidden| hidden.lines()).unwrap_or_default()
}
