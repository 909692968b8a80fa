//! Assembles the gateway: the only place that knows all of its parts.

mod catalog_config;
mod filters;
mod listers;
#[cfg(test)]
mod login_tests;
mod models;
mod results;
mod scopes;
pub(crate) mod scripts;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::SystemTime,
};

use plugbay_core::{
    catalog::Dialect,
    exchange::Servers,
    name::ServerName,
    scope::{Scope, ScopeChoice},
    surface::Snapshot,
};
use plugbay_downstream::{
    ConnectedHosts, Gateway, HostEvents, Principal, SessionViews, ToolUsage, ranking::Ranker,
};
use plugbay_telemetry::{GatewayState, Telemetry};
use plugbay_upstream::{
    Attached, Condition, Instances, Observer, Pool, ServerHandle, ServerSet, SessionFile, Sharing, Status,
    User, launcher, process::Guard, spec::ServerSpec,
};
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    task::{JoinHandle, JoinSet, spawn_blocking},
};

use self::{
    catalog_config::{broken, catalog_config},
    listers::Listers,
    models::terms,
    scopes::scope_of,
};
pub use self::{models::choice, scopes::ScopeStatus};
use crate::{
    cache::Cache,
    config::{ServerSettings, Settings},
    embeddings,
    files::own,
    log_files::LogFiles,
    logins::{self, LoginPlaces},
    publisher::{Note, Preparer, Publisher, Reconfigure, Surroundings},
    sessions::{self, Common, Sessions},
    shapes::Shapes,
    telemetry,
    usage::Usage,
    warmth::Warmth,
};

/// The folders, programs, logs and stores that the gateway works with.
#[derive(Debug, Clone)]
pub struct Environment {
    pub cache_folder: Option<PathBuf>,
    /// The folder of the project; uses of tools are counted per project.
    pub project: PathBuf,
    /// The folder in which the host works. Hosts in one folder share servers of scope `project`. A server
    /// without a configured folder starts there.
    pub folder: PathBuf,
    /// The executable of plugbay, which also guards child processes.
    pub program: PathBuf,
    /// The log files for the stderr of servers, if it is kept.
    pub logs: Option<LogFiles>,
    /// The places where logins at servers are stored.
    pub logins: Option<LoginPlaces>,
    /// Observes every call, if this is a gateway.
    pub telemetry: Option<Arc<Telemetry>>,
}

/// The gateway: all servers, the publisher of the catalog, and the state shared by host sessions.
pub struct App {
    pool: Arc<Pool>,
    gateway: Gateway,
    instances: Arc<Instances>,
    /// This gateway, as the servers that it uses see it.
    user: User,
    places: Places,
    /// The servers in use. A std mutex: never held across an await.
    attached: Mutex<BTreeMap<ServerName, InUse>>,
    /// Servers that are no longer in use, while they stop. The same kind of mutex.
    stopping: Mutex<JoinSet<()>>,
    /// `None`: the gateway is one session.
    sessions: Option<Arc<Sessions>>,
    usage: Arc<Usage>,
    shapes: Shapes,
    warmth: Warmth,
    changes: mpsc::UnboundedSender<Reconfigure>,
    publisher: JoinHandle<()>,
    preparer: Preparer,
    listers: Listers,
    telemetry: Option<Arc<Telemetry>>,
}

/// The folders that determine which hosts share a server.
struct Places {
    folder: PathBuf,
    project: PathBuf,
    /// The folder for the files of sessions, for servers that keep their data in a file.
    session_files: Option<PathBuf>,
}

/// A server that this gateway uses.
struct InUse {
    scope: ScopeChoice,
    limit: usize,
    attached: Attached,
}

impl App {
    /// Assembles everything for one session. Hosts are answered from the cache; no server starts before
    /// [`App::refresh`].
    pub fn assemble(settings: &Settings, environment: Environment) -> Self {
        let instances = instances(&environment);
        Self::new(settings, environment, instances, false)
    }

    /// The same for many sessions, with servers that other gateways of this process may share.
    pub fn sharing(settings: &Settings, environment: Environment, instances: &Arc<Instances>) -> Self {
        Self::new(settings, environment, Arc::clone(instances), true)
    }

    fn new(settings: &Settings, environment: Environment, instances: Arc<Instances>, many: bool) -> Self {
        let Environment { cache_folder, project, folder, program, telemetry, .. } = environment;
        let usage = Arc::new(Usage::of(&project, cache_folder.as_deref()));
        let shapes = Shapes::new(cache_folder.as_deref());
        usage.search_memory.remember(settings.search.remember);
        let (reports, reports_inbox) = mpsc::unbounded_channel();
        let (changes, changes_inbox) = mpsc::unbounded_channel();
        let (notes, notes_inbox) = mpsc::unbounded_channel();
        let (jobs, jobs_inbox) = mpsc::unbounded_channel();
        let host_registry = scopes::host_registry(many);
        let reports = Arc::new(move |report| _ = reports.send(report));
        let observer = Observer { reports, status_changed: Arc::default() };
        let user = User { host_registry: Arc::clone(&host_registry), observer };

        let results = results::store(cache_folder.as_ref(), &program);
        let session_files = cache_folder.as_ref().map(|folder| folder.join("sessions"));
        if let Some(folder) = session_files.clone().filter(|_| many) {
            spawn_blocking(move || sessions::remove_old_files(&folder, SystemTime::now()));
        }
        instances.starts.set_slots(settings.limits.starts);
        let (list_changes, list_changes_inbox) = mpsc::unbounded_channel();
        let mut publisher = Publisher::new(Surroundings {
            cache: Cache::new(cache_folder),
            host_registry: Arc::clone(&host_registry),
            jobs,
            published: many.then_some(list_changes),
        });
        let warmth = Warmth::new(settings, publisher.confirmations());
        let shared = if many { shared_servers(settings, &project) } else { BTreeSet::new() };
        let config = catalog_config(settings, shared);
        shapes.configure(config.servers.iter());
        let dialects = publisher.configure(config);
        let pool = Arc::new(Pool::default());
        let switched: Arc<Notify> = Arc::default();
        let sessions = many.then(|| {
            Sessions::new(Common {
                pool: Arc::clone(&pool),
                instances: Arc::clone(&instances),
                host_registry: Arc::clone(&host_registry),
                base: publisher.snapshots(),
                status_changed: Arc::clone(&user.observer.status_changed),
                switched: Arc::clone(&switched),
                published: list_changes_inbox,
            })
        });
        let listers = Listers::start(Arc::clone(&pool), Arc::clone(&instances), jobs_inbox, notes.clone());
        let servers: Arc<dyn Servers> = pool.clone();
        let gateway = Gateway {
            servers,
            snapshots: publisher.snapshots(),
            tickets: Arc::clone(&instances.tickets),
            host_registry,
            suspended: Arc::default(),
            host_events: HostEvents {
                opened: Arc::default(),
                declared: Arc::new(move |host| _ = notes.send(Note::Declared(host))),
                first_list: Arc::default(),
                switched,
            },
            usage: ToolUsage {
                counts: Arc::clone(&usage.counts),
                learned: Arc::clone(&usage).learned(publisher.snapshots()),
                shapes: Arc::clone(&shapes.learned),
            },
            connected_hosts: ConnectedHosts::default(),
            table: embeddings::table,
            ranker: Arc::new(Ranker::remembering(&usage.search_memory.searches)),
            agents: Arc::default(),
            workers: Arc::default(),
            results,
            scripts: scripts::sandboxed(&program),
            session_views: sessions.clone().map(views),
            principal: Principal::observed_by(telemetry.clone().map(|telemetry| telemetry as _)),
        };
        gateway.ranker.choose(choice(settings));
        gateway.agents.choose(terms(settings));
        if let Some(telemetry) = &telemetry {
            telemetry.audit(settings.audit.clone());
        }
        let preparer = publisher.preparer();
        let publisher = tokio::spawn(publisher.run(reports_inbox, changes_inbox, notes_inbox));
        let (places, attached) = (Places { folder, project, session_files }, Mutex::default());
        let app = Self {
            pool,
            gateway,
            instances,
            user,
            places,
            attached,
            stopping: Mutex::default(),
            sessions,
            usage,
            shapes,
            warmth,
            changes,
            publisher,
            preparer,
            listers,
            telemetry,
        };
        app.attach(settings, &dialects);
        app
    }

    /// A function that returns the current state of the gateway, for metrics.
    pub fn state(&self) -> impl Fn() -> GatewayState + Send + 'static {
        let (pool, sessions) = (Arc::clone(&self.pool), self.sessions.clone());
        let Principal { sessions: connected, refused, .. } = self.gateway.principal.clone();
        let hosts = self.gateway.connected_hosts.watch();
        move || {
            // A named session lives on between its requests.
            let count = sessions.as_ref().map(|sessions| sessions.count());
            let own = sessions.as_ref().map(|sessions| sessions.pids()).unwrap_or_default();
            GatewayState {
                refused: refused.load(Ordering::Relaxed),
                sessions: count.unwrap_or_else(|| connected.load(Ordering::Relaxed)),
                hosts: hosts.borrow().values().sum(),
                servers: statuses(&pool).into_iter().map(|server| telemetry::gauge(server, &own)).collect(),
            }
        }
    }

    pub fn gateway(&self) -> Gateway {
        self.gateway.clone()
    }

    pub fn snapshots(&self) -> watch::Receiver<Snapshot> {
        self.gateway.snapshots.clone()
    }

    /// The servers that can be started.
    pub fn servers(&self) -> BTreeMap<ServerName, ServerHandle> {
        self.pool.servers().handles.clone()
    }

    /// The status of every server, including those that cannot be started.
    pub fn statuses(&self) -> BTreeMap<ServerName, Status> {
        statuses(&self.pool)
    }

    /// Notified when [`App::statuses`] change.
    pub fn shown(&self) -> Arc<Notify> {
        Arc::clone(&self.user.observer.status_changed)
    }

    /// Starts the servers that start with the gateway, and lists their tools. The others wait for their first use.
    pub fn refresh(&self) {
        self.preparer.begin();
        self.warm_up(self.servers().values());
    }

    /// Starts servers that nobody has used and whose lists have not been confirmed for a long time.
    pub fn refresh_stale(&self) {
        for (name, handle) in &self.servers() {
            if handle.status().borrow().condition == Condition::Idle && self.warmth.is_stale(name) {
                handle.refresh();
            }
        }
    }

    fn warm_up<'a>(&self, servers: impl Iterator<Item = &'a ServerHandle>) {
        let snapshot = self.snapshots().borrow().clone();
        let set = self.pool.servers();
        // Each session starts its own instance, and the list of this server is already known.
        let is_listed =
            |name: &ServerName| set.per_session.contains_key(name) && snapshot.catalog.get(name).is_some();
        for handle in servers.filter(|handle| !is_listed(handle.name())) {
            if let Some(priority) = self.warmth.start_of(handle.name(), &snapshot) {
                handle.refresh_for(priority);
            }
        }
    }

    /// Applies new settings. Added servers start as they would with the gateway, removed ones stop, and
    /// changed ones that run restart. All other servers, and unchanged language models, are not disturbed.
    pub async fn reload(&self, previous: &Settings, settings: &Settings) {
        let before = self.snapshots().borrow().clone();
        let (dialects, known) = oneshot::channel();
        let shared = self
            .sessions
            .as_ref()
            .map(|_| shared_servers(settings, &self.places.project))
            .unwrap_or_default();
        let config = catalog_config(settings, shared);
        self.shapes.configure(config.servers.iter());
        let _ = self.changes.send(Reconfigure { config, dialects });
        let dialects = known.await.unwrap_or_default();
        if previous.search.remember != settings.search.remember {
            self.usage.search_memory.remember(settings.search.remember);
        }
        if previous.search.model != settings.search.model {
            self.gateway.ranker.choose(choice(settings));
        }
        if (&previous.natural_language, previous.unasked) != (&settings.natural_language, settings.unasked) {
            self.gateway.agents.choose(terms(settings));
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.audit(settings.audit.clone());
        }
        self.instances.starts.set_slots(settings.limits.starts);
        let rewarmed = self.warmth.replace(settings);
        let Change { fresh, gone } = self.attach(settings, &dialects);
        if let Some(sessions) = &self.sessions {
            sessions.reconfigured();
        }
        self.shown().notify_one();
        let (restarted, mut fresh): (Vec<_>, Vec<_>) = fresh.into_iter().partition(|handle| {
            let ran = |old: &&Attached| old.handle().status().borrow().condition != Condition::Idle;
            gone.iter().filter(|old| old.handle().name() == handle.name()).any(|old| ran(&old))
        });
        restarted.iter().for_each(ServerHandle::refresh);
        let now = self.snapshots().borrow().clone();
        let changed = self.servers().into_iter().filter(|(name, _)| {
            rewarmed.contains(name) || now.promises_warmth(name) && !before.promises_warmth(name)
        });
        fresh.extend(changed.map(|(_, handle)| handle));
        self.warm_up(fresh.iter());
        self.stop_behind(gone);
    }

    /// Stops servers that are no longer in use in the background, because the next change must not wait for
    /// them.
    fn stop_behind(&self, gone: Vec<Attached>) {
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        while stopping.try_join_next().is_some() {}
        for attached in gone {
            stopping.spawn(attached.detach());
        }
    }

    /// Attaches the servers of these settings. Unchanged ones go on.
    fn attach(&self, settings: &Settings, dialects: &BTreeMap<ServerName, Dialect>) -> Change {
        let mut attached = self.lock();
        let mut old = std::mem::take(&mut *attached);
        let mut fresh = Vec::new();
        for (server, spec) in startable(settings) {
            let scope = scope_of(server, spec, &self.places.project);
            let sharing = self.sharing_of(server, spec, &scope);
            let fits = old.get(&server.name).is_some_and(|kept| kept.attached.fits(spec, &sharing));
            let kept = if fits { old.remove(&server.name) } else { None };
            let now = kept.map_or_else(
                || {
                    let known = dialects.get(&server.name).copied();
                    let new = self.instances.attach(spec, &self.places.folder, sharing, known, &self.user);
                    fresh.push(new.handle().clone());
                    new
                },
                |kept| kept.attached,
            );
            attached
                .insert(server.name.clone(), InUse { scope, limit: server.sharing.instances, attached: now });
        }
        let all = || attached.iter().map(|(name, one)| (name.clone(), &one.attached));
        self.pool.replace(ServerSet {
            handles: all().map(|(name, one)| (name, one.handle().clone())).collect(),
            per_session: all().filter_map(|(name, one)| Some((name, one.sessions.clone()?))).collect(),
            invalid: broken(settings),
        });
        Change { fresh, gone: old.into_values().map(|gone| gone.attached).collect() }
    }

    fn sharing_of(&self, server: &ServerSettings, spec: &ServerSpec, scope: &ScopeChoice) -> Sharing {
        match (&self.sessions, scope.scope) {
            (None, _) => Sharing::Gateway,
            (_, Scope::Shared) => Sharing::Everybody,
            (_, Scope::Project) => Sharing::Folder,
            (_, Scope::Session) => {
                let folder = self.places.session_files.clone();
                let file = scope.file_variable.zip(folder).map(|(variable, folder)| {
                    if let Err(error) = own::create_folder(&folder) {
                        tracing::warn!(folder = %folder.display(), "no folder for files of sessions: {error}");
                    }
                    SessionFile { variable: variable.to_owned(), folder }
                });
                // A remote needs no process.
                let limit = if spec.is_remote() { usize::MAX } else { server.sharing.instances };
                Sharing::Sessions { limit, file }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServerName, InUse>> {
        self.attached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Saves which tools were used, what searches led to, and the shapes of results since the last call of
    /// this.
    pub fn save_usage(&self) {
        self.usage.save();
        self.shapes.save();
    }

    /// Stops every server, and saves the cache, the usage counts and the shapes of results.
    pub async fn shut_down(self) {
        let Self {
            pool,
            gateway,
            user,
            attached,
            stopping,
            sessions,
            usage,
            shapes,
            changes,
            publisher,
            listers,
            ..
        } = self;
        usage.save();
        shapes.save();
        pool.replace(ServerSet::default());
        listers.stop().await;
        if let Some(sessions) = &sessions {
            sessions.stop().await;
        }
        let attached = attached.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut stopping = stopping.into_inner().unwrap_or_else(PoisonError::into_inner);
        for one in attached.into_values() {
            stopping.spawn(one.attached.detach());
        }
        while stopping.join_next().await.is_some() {}
        drop((user, changes, gateway));
        let _ = publisher.await;
    }
}

fn statuses(pool: &Pool) -> BTreeMap<ServerName, Status> {
    let servers = pool.servers();
    let running = servers.handles.iter().map(|(name, handle)| (name, handle.status().borrow().clone()));
    let broken = servers.invalid.iter().map(|(name, failure)| {
        (name, Status { condition: Condition::Error(Arc::clone(failure)), ..Status::default() })
    });
    running.chain(broken).map(|(name, status)| (name.clone(), status)).collect()
}

/// The effect of changed settings on the servers.
struct Change {
    fresh: Vec<ServerHandle>,
    gone: Vec<Attached>,
}

fn views(sessions: Arc<Sessions>) -> SessionViews {
    Arc::new(move |key| sessions.enter(key))
}

/// Makes the instances of this process's servers; none runs yet.
pub fn instances(environment: &Environment) -> Arc<Instances> {
    let guard = Guard::new(environment.program.clone(), vec![GUARD_COMMAND.to_owned()]);
    let launcher = launcher(guard, environment.logs.clone().map(LogFiles::sinks));
    Instances::with_credentials(launcher, logins::credentials_for(environment.logins.clone()))
}

/// The hidden command for the guard of child processes.
pub const GUARD_COMMAND: &str = "__guard";

fn startable(settings: &Settings) -> impl Iterator<Item = (&ServerSettings, &ServerSpec)> {
    settings.servers.iter().filter_map(|server| Some((server, server.spec.as_ref().ok()?)))
}

/// The servers of which many sessions share one instance.
fn shared_servers(settings: &Settings, project: &Path) -> BTreeSet<ServerName> {
    let is_shared = |server: &ServerSettings, spec| scope_of(server, spec, project).scope != Scope::Session;
    let shared = startable(settings).filter(|(server, spec)| is_shared(server, spec));
    shared.map(|(server, _)| server.name.clone()).collect()
}
