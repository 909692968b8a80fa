//! The running servers of all gateways in this process. Gateways that need the same server share it.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use plugbay_core::{catalog::Dialect, exchange::Tickets, host_registry::HostRegistry};

use crate::{
    http::remote::new_session_id,
    link::Launcher,
    listers::Listings,
    observers::{Observer, Observers, Observing},
    server::{CredentialsFor, ServerContext, ServerHandle, no_credentials},
    session_pool::SessionGroup,
    slots::Slots,
    spec::{ServerSpec, Transport},
    starts::Starts,
};

/// How long a server that only lists for sessions keeps running after it has listed.
const LISTER_IDLE: Duration = Duration::from_secs(1);

/// Starts servers and shares them between the gateways of one process.
pub struct Instances {
    pub launcher: Launcher,
    /// Makes credentials: each instance of a server has its own.
    pub credentials_for: CredentialsFor,
    /// Makes tickets, which are unique in the whole process.
    pub tickets: Arc<Tickets>,
    /// The queue of starts for all gateways: only a few servers start at a time.
    pub starts: Arc<Starts>,
    // A std mutex: held for look-ups, never across an await.
    shared: Mutex<Vec<(Key, Weak<Instance>)>>,
    /// The slots of servers that give each session an instance of its own. They are counted for the whole
    /// process.
    slots: Mutex<Vec<(ServerSpec, Weak<Slots>)>>,
    /// Listings in progress for a kind of hosts. Gateways that need the same one share one instance.
    pub(crate) listings: Listings,
}

/// The condition for two gateways to share a process: the same launch with its environment and timeouts, and
/// the same folder if the scope needs it.
#[derive(PartialEq, Eq)]
struct Key {
    spec: ServerSpec,
    folder: Option<PathBuf>,
}

/// The users of one process of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sharing {
    /// Every gateway of this process.
    Everybody,
    /// Every gateway that serves this folder.
    Folder,
    /// One gateway, because it is one session.
    Gateway,
    /// No one: it only lists for sessions, each of which has an instance of its own.
    Sessions {
        /// How many instances may run.
        limit: usize,
        /// For a server that keeps its data in a file: each session has its own.
        file: Option<SessionFile>,
    },
}

/// The file in which a server keeps its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// The environment variable in which the server gets its file.
    pub variable: String,
    /// The folder for the files of sessions, if none is configured.
    pub folder: PathBuf,
}

/// A gateway or a session, as seen by the servers that it uses.
#[derive(Debug, Clone)]
pub struct User {
    pub host_registry: Arc<HostRegistry>,
    pub observer: Observer,
}

/// One actor, and the parts that all its users share.
#[derive(Debug)]
struct Instance {
    handle: ServerHandle,
    observers: Observers,
    host_registry: Arc<HostRegistry>,
}

/// A gateway's use of an instance. When the last one is dropped, the server ends.
#[derive(Debug)]
pub struct Attached {
    /// The server as the gateway has configured it.
    pub spec: Arc<ServerSpec>,
    pub sharing: Sharing,
    /// Makes the instances of sessions, if each session has its own.
    pub sessions: Option<Arc<SessionGroup>>,
    observing: Observing,
    handle: UserHandle,
    instance: Arc<Instance>,
}

/// The handle of one user. When it is dropped, the server is no longer held for that user.
#[derive(Debug)]
struct UserHandle(ServerHandle);

impl Drop for UserHandle {
    fn drop(&mut self) {
        self.0.hold(false);
    }
}

impl Instances {
    pub fn new(launcher: Launcher) -> Arc<Self> {
        Self::with_credentials(launcher, no_credentials())
    }

    /// The same for servers behind URLs that need a login.
    pub fn with_credentials(launcher: Launcher, credentials_for: CredentialsFor) -> Arc<Self> {
        Arc::new(Self {
            launcher,
            credentials_for,
            tickets: Arc::default(),
            starts: Starts::new(),
            shared: Mutex::default(),
            slots: Mutex::default(),
            listings: Listings::default(),
        })
    }

    /// Uses the instance that fits, which starts on first use. `folder` is the gateway's folder, `known` the
    /// dialect of the last opening.
    pub fn attach(
        &self,
        spec: &ServerSpec,
        folder: &Path,
        sharing: Sharing,
        known: Option<Dialect>,
        user: &User,
    ) -> Attached {
        let launch = launch(spec, folder, &sharing);
        let sessions = match sharing {
            Sharing::Sessions { limit, ref file } => Some(self.group(&launch, limit, file.clone(), known)),
            _ => None,
        };
        let instance = match sharing {
            Sharing::Everybody => self.find(Key { spec: launch, folder: None }, known),
            Sharing::Folder => self.find(Key { spec: launch, folder: Some(folder.to_owned()) }, known),
            Sharing::Gateway => self.start(launch, known),
            Sharing::Sessions { .. } => self.start(lister(launch), known),
        };
        if sessions.is_some() {
            // It belongs to no session, so it can send requests to no host.
            instance.host_registry.declare_for(&user.host_registry);
        } else {
            instance.host_registry.include(&user.host_registry);
        }
        if sharing == Sharing::Gateway && spec.is_remote() {
            // A session of hosts has one id at all remotes, even after a reload.
            let id = user.host_registry.session_id(new_session_id);
            instance.host_registry.session_id(|| id);
        }
        let spec = Arc::new(spec.clone());
        let observing = instance.observers.add(&spec, &user.observer);
        let handle = UserHandle(instance.handle.of_user(observing.number()));
        Attached { spec, sharing, sessions, observing, handle, instance }
    }

    fn find(&self, key: Key, known: Option<Dialect>) -> Arc<Instance> {
        let mut shared = lock(&self.shared);
        shared.retain(|(_, instance)| instance.strong_count() > 0);
        let found = shared.iter().find(|(other, _)| *other == key).and_then(|(_, found)| found.upgrade());
        found.unwrap_or_else(|| {
            let instance = self.start(key.spec.clone(), known);
            shared.push((key, Arc::downgrade(&instance)));
            instance
        })
    }

    fn start(&self, spec: ServerSpec, known: Option<Dialect>) -> Arc<Instance> {
        let (observers, host_registry) = (Observers::default(), Arc::new(HostRegistry::default()));
        let context = self.context(Arc::clone(&host_registry), observers.clone());
        Arc::new(Instance { handle: ServerHandle::spawn(spec, known, context), observers, host_registry })
    }

    pub(crate) fn context(&self, host_registry: Arc<HostRegistry>, observers: Observers) -> ServerContext {
        let (launcher, tickets) = (Arc::clone(&self.launcher), Arc::clone(&self.tickets));
        let context =
            ServerContext::new(launcher, tickets, Arc::clone(&self.starts), host_registry, observers);
        ServerContext { credentials_for: Arc::clone(&self.credentials_for), ..context }
    }

    fn group(
        &self,
        launch: &ServerSpec,
        limit: usize,
        file: Option<SessionFile>,
        known: Option<Dialect>,
    ) -> Arc<SessionGroup> {
        let mut all = lock(&self.slots);
        all.retain(|(_, slots)| slots.strong_count() > 0);
        let found =
            all.iter().find(|(spec, _)| is_same_server(spec, launch)).and_then(|(_, slots)| slots.upgrade());
        let slots = found.unwrap_or_else(|| {
            let slots = Arc::new(Slots::new(launch.name.clone(), limit));
            all.push((launch.clone(), Arc::downgrade(&slots)));
            slots
        });
        drop(all);
        slots.set_limit(limit);
        Arc::new(SessionGroup::new(Arc::new(launch.clone()), slots, file, known))
    }
}

impl Attached {
    pub fn handle(&self) -> &ServerHandle {
        &self.handle.0
    }

    /// Whether it is the server that is now configured. A new limit of instances applies at once.
    pub fn fits(&self, spec: &ServerSpec, sharing: &Sharing) -> bool {
        let same = match (&self.sharing, sharing) {
            (Sharing::Sessions { file: now, .. }, Sharing::Sessions { file: wanted, .. }) => now == wanted,
            (now, wanted) => now == wanted,
        };
        let fits = same && *self.spec == *spec;
        if let (true, Sharing::Sessions { limit, .. }, Some(sessions)) = (fits, sharing, &self.sessions) {
            sessions.set_limit(*limit);
        }
        fits
    }

    /// How many processes of the server run for the gateway, including those of its sessions.
    pub fn running(&self) -> usize {
        let own = usize::from(self.instance.handle.status().borrow().pid.is_some());
        own + self.sessions.as_ref().map_or(0, |sessions| sessions.running())
    }

    /// Ends the gateway's use. If it was the last one, returns when no process is left.
    pub async fn detach(self) {
        let Self { observing, handle, instance, .. } = self;
        drop((observing, handle));
        if let Some(instance) = Arc::into_inner(instance) {
            instance.handle.stop().await;
        }
    }
}

/// The spec for starting a server in this folder. A server that everybody shares belongs to no folder.
fn launch(spec: &ServerSpec, folder: &Path, sharing: &Sharing) -> ServerSpec {
    let mut spec = spec.clone();
    if let Transport::Stdio(stdio) = &mut spec.transport {
        if *sharing != Sharing::Everybody {
            stdio.cwd.get_or_insert_with(|| folder.to_owned());
        }
        stdio.origin = stdio.origin.at_home();
    }
    spec
}

/// Whether two gateways mean the same server, whatever folder and environment they start it in.
fn is_same_server(one: &ServerSpec, other: &ServerSpec) -> bool {
    let program = match (&one.transport, &other.transport) {
        (Transport::Stdio(one), Transport::Stdio(other)) => one.command == other.command,
        (Transport::Http(one), Transport::Http(other)) => one.url == other.url,
        _ => false,
    };
    program && one.name == other.name
}

/// The spec for a server that only lists for sessions: it stops after listing.
fn lister(mut spec: ServerSpec) -> ServerSpec {
    spec.timeouts.idle = Some(spec.timeouts.idle.unwrap_or(LISTER_IDLE).min(LISTER_IDLE));
    spec
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing can panic half-way through a change, so a poisoned table is still whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Instances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instances").finish_non_exhaustive()
    }
}
