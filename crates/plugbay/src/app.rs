//! Assembles the gateway: the only place that knows all of its parts.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use plugbay_core::{
    arguments,
    exchange::{Servers, Tickets},
    failure::Failure,
    host_registry::HostRegistry,
    name::ServerName,
    surface::{AgentAccess, Layout, Learned, LiveSettings, Snapshot},
};
use plugbay_downstream::{
    ConnectedHosts, Gateway,
    agent::Terms,
    ranking::{Choice, Chosen},
};
use plugbay_model::RemoteModel;
use plugbay_upstream::{
    Condition, Launcher, Pool, ServerContext, ServerHandle, ServerSet, Status, launcher, process::Guard,
};
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    task::{JoinHandle, JoinSet},
};

use crate::{
    cache::Cache,
    config::{ModelSource, NaturalLanguage, SearchModel, ServerSettings, Settings, identity},
    embeddings,
    log_files::LogFiles,
    publisher::{CatalogConfig, Publisher, Reconfigure},
    usage::Usage,
};

/// The folders and the program that the gateway works with.
#[derive(Debug, Clone)]
pub struct Environment {
    pub cache_folder: Option<PathBuf>,
    /// The folder of the project, whose uses of tools are counted together.
    pub project: PathBuf,
    /// The executable of plugbay, which also guards child processes.
    pub program: PathBuf,
    /// Where the stderr of servers goes, if it is kept.
    pub logs: Option<LogFiles>,
}

/// The gateway: all servers, the publisher of the catalog, and what host sessions share.
pub struct App {
    pool: Arc<Pool>,
    gateway: Gateway,
    context: ServerContext,
    usage: Arc<Usage>,
    changes: mpsc::UnboundedSender<Reconfigure>,
    publisher: JoinHandle<()>,
}

impl App {
    /// Assembles everything. Hosts are answered from the cache; no server starts before [`App::refresh`].
    pub fn assemble(settings: &Settings, environment: Environment) -> Self {
        let guard = Guard::new(environment.program, vec![GUARD_COMMAND.to_owned()]);
        let sinks = environment.logs.map(LogFiles::sinks);
        let usage = Arc::new(Usage::of(&environment.project, environment.cache_folder.as_deref()));
        Self::with_launcher(settings, usage, environment.cache_folder, launcher(guard, sinks))
    }

    fn with_launcher(
        settings: &Settings,
        usage: Arc<Usage>,
        cache_folder: Option<PathBuf>,
        launcher: Launcher,
    ) -> Self {
        let (reports, reports_inbox) = mpsc::unbounded_channel();
        let (changes, changes_inbox) = mpsc::unbounded_channel();
        let tickets = Arc::new(Tickets::default());
        let host_registry = Arc::new(HostRegistry::default());
        let context = ServerContext {
            launcher,
            tickets: Arc::clone(&tickets),
            host_registry: Arc::clone(&host_registry),
            reports,
            status_changed: Arc::default(),
        };

        let mut publisher = Publisher::new(Cache::new(cache_folder));
        let dialects = publisher.configure(catalog_config(settings));
        let pool = Arc::new(Pool::default());
        let servers: Arc<dyn Servers> = pool.clone();
        let gateway = Gateway {
            servers,
            snapshots: publisher.snapshots(),
            tickets,
            host_registry,
            suspended: Arc::default(),
            opened: Arc::default(),
            first_list: Arc::new(Notify::new()),
            usage_counts: Arc::clone(&usage.counts),
            learned: learned(Arc::clone(&usage), publisher.snapshots()),
            connected_hosts: ConnectedHosts::default(),
            switched: Arc::default(),
            table: embeddings::table,
            ranker: Arc::default(),
            agents: Arc::default(),
        };
        gateway.ranker.choose(choice(settings));
        gateway.agents.choose(terms(settings));
        let running = startable(settings).map(|(server, spec)| {
            let handle =
                ServerHandle::spawn(spec.clone(), dialects.get(&server.name).copied(), context.clone());
            (server.name.clone(), handle)
        });
        pool.replace(ServerSet { handles: running.collect(), invalid: broken(settings) });
        let publisher = tokio::spawn(publisher.run(reports_inbox, changes_inbox));
        Self { pool, gateway, context, usage, changes, publisher }
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

    /// The status of every server, also of those that cannot be started.
    pub fn statuses(&self) -> BTreeMap<ServerName, Status> {
        let servers = self.pool.servers();
        let running = servers.handles.iter().map(|(name, handle)| (name, handle.status().borrow().clone()));
        let broken = servers.invalid.iter().map(|(name, failure)| {
            (name, Status { condition: Condition::Error(Arc::clone(failure)), ..Status::default() })
        });
        running.chain(broken).map(|(name, status)| (name.clone(), status)).collect()
    }

    /// Notified when [`App::statuses`] change.
    pub fn shown(&self) -> Arc<Notify> {
        Arc::clone(&self.context.status_changed)
    }

    /// Starts all servers that are idle and lists their tools again, except those that can wait for their first call.
    pub fn refresh(&self) {
        self.warm_up(self.servers().values());
    }

    fn warm_up<'a>(&self, servers: impl Iterator<Item = &'a ServerHandle>) {
        let snapshot = self.snapshots().borrow().clone();
        for handle in servers.filter(|handle| !snapshot.can_wait(handle.name())) {
            handle.refresh();
        }
    }

    /// Applies new settings: added servers start, removed ones stop, changed ones restart; the others and the
    /// language models that are still the same go on undisturbed.
    pub async fn reload(&self, previous: &Settings, settings: &Settings) {
        let (dialects, known) = oneshot::channel();
        let _ = self.changes.send(Reconfigure { config: catalog_config(settings), dialects });
        let dialects = known.await.unwrap_or_default();
        if previous.search.model != settings.search.model {
            self.gateway.ranker.choose(choice(settings));
        }
        if (&previous.natural_language, previous.unasked) != (&settings.natural_language, settings.unasked) {
            self.gateway.agents.choose(terms(settings));
        }
        let old = self.servers();
        let mut next = BTreeMap::new();
        let mut fresh = Vec::new();
        for (server, spec) in startable(settings) {
            let kept = old.get(&server.name).filter(|handle| *handle.spec == *spec).cloned();
            let handle = kept.unwrap_or_else(|| {
                let known = dialects.get(&server.name).copied();
                let handle = ServerHandle::spawn(spec.clone(), known, self.context.clone());
                fresh.push(handle.clone());
                handle
            });
            next.insert(server.name.clone(), handle);
        }
        let kept =
            |handle: &&ServerHandle| next.get(handle.name()).is_some_and(|new| new.spec == handle.spec);
        let gone: Vec<ServerHandle> = old.values().filter(|handle| !kept(handle)).cloned().collect();
        self.pool.replace(ServerSet { handles: next, invalid: broken(settings) });
        self.context.status_changed.notify_one();
        self.warm_up(fresh.iter());
        stop_all(gone).await;
    }

    /// Writes down which tools were used since this was last called.
    pub fn save_usage(&self) {
        self.usage.save();
    }

    /// Stops every server, and saves the cache and the usage counts.
    pub async fn shut_down(self) {
        let Self { pool, gateway, context, usage, changes, publisher } = self;
        usage.save();
        let servers = pool.replace(ServerSet::default());
        stop_all(servers.handles.values().cloned()).await;
        drop((context, changes, gateway));
        let _ = publisher.await;
    }
}

/// The hidden command that runs the guard of child processes.
pub const GUARD_COMMAND: &str = "__guard";

async fn stop_all(handles: impl IntoIterator<Item = ServerHandle>) {
    let mut stopping: JoinSet<()> = JoinSet::new();
    for handle in handles {
        stopping.spawn(async move { handle.stop().await });
    }
    while stopping.join_next().await.is_some() {}
}

/// The model that ranks the tools which a search finds.
pub fn choice(settings: &Settings) -> Option<Choice> {
    let SearchModel { source, deadline } = settings.search.model.clone()?;
    Some(Choice { model: chosen(source), deadline })
}

/// The model that calls tools for a sentence, and its limits.
fn terms(settings: &Settings) -> Option<Terms> {
    let NaturalLanguage { model, limits, instructions, .. } = settings.natural_language.clone()?;
    Some(Terms { model: chosen(model), limits, unasked: settings.unasked, instructions })
}

fn chosen(source: ModelSource) -> Chosen {
    match source {
        ModelSource::Remote(endpoint) => Chosen::Model(Arc::new(RemoteModel::new(endpoint))),
        ModelSource::Host => Chosen::Host,
    }
}

fn startable(
    settings: &Settings,
) -> impl Iterator<Item = (&ServerSettings, &plugbay_upstream::spec::ServerSpec)> {
    settings.servers.iter().filter_map(|server| Some((server, server.spec.as_ref().ok()?)))
}

fn broken(settings: &Settings) -> BTreeMap<ServerName, Arc<Failure>> {
    let reason = |server: &ServerSettings| {
        let failure = Failure::new(server.spec.as_ref().err()?, Vec::new());
        Some((server.name.clone(), Arc::new(failure)))
    };
    settings.servers.iter().filter_map(reason).collect()
}

/// Returns the most used tools for a conversation that begins.
fn learned(
    usage: Arc<Usage>,
    snapshots: watch::Receiver<Snapshot>,
) -> Arc<dyn Fn() -> Arc<Learned> + Send + Sync> {
    Arc::new(move || {
        let layout = Arc::clone(&snapshots.borrow().layout);
        let may = |server: &ServerName, tool: &str| {
            layout.exposures.get(server).is_some_and(|exposure| exposure.policy.may(tool))
        };
        Arc::new(usage.favourites(layout.settings.learn, may))
    })
}

fn catalog_config(settings: &Settings) -> CatalogConfig {
    let exposures = settings.servers.iter().map(|server| (server.name.clone(), server.exposure.clone()));
    let layout = Layout {
        mode: settings.mode,
        exposures: exposures.collect(),
        name_limit: settings.limits.name_length,
        admin_tools: settings.admin_tools,
        split: settings.split_execute,
        hosts: settings.hosts.clone(),
        agents: match settings.natural_language.as_ref().map(|chosen| &chosen.model) {
            None => AgentAccess::Nobody,
            Some(ModelSource::Remote(_)) => AgentAccess::Everybody,
            Some(ModelSource::Host) => AgentAccess::Lenders,
        },
        agent_servers: settings.natural_language.as_ref().and_then(|chosen| chosen.servers.clone()),
        settings: live(settings),
        problems: settings.problems(),
    };
    let servers = settings.servers.iter().map(|server| {
        let identity = server.spec.as_ref().ok().map(identity);
        (server.name.clone(), identity)
    });
    CatalogConfig {
        layout: Arc::new(layout),
        servers: servers.collect(),
        broken: broken(settings),
        list_wait: settings.list_wait,
    }
}

fn live(settings: &Settings) -> LiveSettings {
    LiveSettings {
        search_limit: settings.search.hits,
        repair: if settings.repair { arguments::Mode::Repair } else { arguments::Mode::CheckOnly },
        message_limit: settings.limits.message,
        learn: settings.learn,
    }
}
