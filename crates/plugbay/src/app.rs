//! Assembles the parts: the one place that names every one of them.

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
    publisher::{Arrangement, Order, Publisher},
    usage::Usage,
};

/// What the gateway needs to know of the outside.
#[derive(Debug, Clone)]
pub struct Outside {
    pub cache_folder: Option<PathBuf>,
    /// The folder that this is about.
    pub project: PathBuf,
    /// Our own executable, which guards child processes.
    pub program: PathBuf,
}

/// All servers, wired up.
pub struct App {
    pool: Arc<Pool>,
    gateway: Gateway,
    context: ServerContext,
    usage: Arc<Usage>,
    orders: mpsc::UnboundedSender<Order>,
    publisher: JoinHandle<()>,
}

impl App {
    /// Wires everything and answers from the cache; no server is started before [`App::refresh`].
    pub fn assemble(settings: &Settings, outside: Outside) -> Self {
        let guard = Guard::new(outside.program, vec![GUARD_COMMAND.to_owned()]);
        let usage = Arc::new(Usage::of(&outside.project, outside.cache_folder.as_deref()));
        Self::with_launcher(settings, usage, outside.cache_folder, launcher(guard))
    }

    fn with_launcher(
        settings: &Settings,
        usage: Arc<Usage>,
        cache_folder: Option<PathBuf>,
        launcher: Launcher,
    ) -> Self {
        let (reports, reports_inbox) = mpsc::unbounded_channel();
        let (orders, orders_inbox) = mpsc::unbounded_channel();
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
        let dialect = publisher.arrange(arrangement(settings));
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
            usage_counts: Arc::clone(&usage.usage_counts),
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
                ServerHandle::spawn(spec.clone(), dialect.get(&server.name).copied(), context.clone());
            (server.name.clone(), handle)
        });
        pool.replace(ServerSet { handles: running.collect(), invalid: broken(settings) });
        let publisher = tokio::spawn(publisher.run(reports_inbox, orders_inbox));
        Self { pool, gateway, context, usage, orders, publisher }
    }

    pub fn gateway(&self) -> Gateway {
        self.gateway.clone()
    }

    pub fn snapshots(&self) -> watch::Receiver<Snapshot> {
        self.gateway.snapshots.clone()
    }

    /// Those that can be started at all.
    pub fn servers(&self) -> BTreeMap<ServerName, ServerHandle> {
        self.pool.servers().handles.clone()
    }

    /// How every server is, those too that cannot be started at all.
    pub fn statuses(&self) -> BTreeMap<ServerName, Status> {
        let servers = self.pool.servers();
        let running = servers.handles.iter().map(|(name, handle)| (name, handle.status().borrow().clone()));
        let broken = servers.invalid.iter().map(|(name, failure)| {
            (name, Status { condition: Condition::Failed(Arc::clone(failure)), ..Status::default() })
        });
        running.chain(broken).map(|(name, status)| (name.clone(), status)).collect()
    }

    /// Told when [`App::statuses`] are others.
    pub fn shown(&self) -> Arc<Notify> {
        Arc::clone(&self.context.status_changed)
    }

    /// Starts every server that is not running, all at once, and lists their tools again; but not those
    /// that can wait for their first call.
    pub fn refresh(&self) {
        self.warm_up(self.servers().values());
    }

    fn warm_up<'a>(&self, servers: impl Iterator<Item = &'a ServerHandle>) {
        let snapshot = self.snapshots().borrow().clone();
        for handle in servers.filter(|handle| !snapshot.can_wait(handle.name())) {
            handle.refresh();
        }
    }

    /// Takes new settings: added servers start, removed ones stop, changed ones restart, and the
    /// rest go on without noticing.
    pub async fn reload(&self, settings: &Settings) {
        let (dialect, remembered) = oneshot::channel();
        let _ = self.orders.send(Order { arrangement: arrangement(settings), dialect });
        let dialect = remembered.await.unwrap_or_default();
        self.gateway.ranker.choose(choice(settings));
        self.gateway.agents.choose(terms(settings));
        let old = self.servers();
        let mut next = BTreeMap::new();
        let mut fresh = Vec::new();
        for (server, spec) in startable(settings) {
            let kept = old.get(&server.name).filter(|handle| *handle.spec == *spec).cloned();
            let handle = kept.unwrap_or_else(|| {
                let known = dialect.get(&server.name).copied();
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

    /// Ends every server and writes what is left to write.
    pub async fn shut_down(self) {
        let Self { pool, gateway, context, usage, orders, publisher } = self;
        usage.save();
        let servers = pool.replace(ServerSet::default());
        stop_all(servers.handles.values().cloned()).await;
        drop((context, orders, gateway));
        let _ = publisher.await;
    }
}

/// The hidden command that runs the guard.
pub const GUARD_COMMAND: &str = "__guard";

async fn stop_all(handles: impl IntoIterator<Item = ServerHandle>) {
    let mut stopping: JoinSet<()> = JoinSet::new();
    for handle in handles {
        stopping.spawn(async move { handle.stop().await });
    }
    while stopping.join_next().await.is_some() {}
}

/// Who ranks what is searched for.
pub fn choice(settings: &Settings) -> Option<Choice> {
    let SearchModel { source, deadline } = settings.search.model.clone()?;
    Some(Choice { model: chosen(source), deadline })
}

/// Who calls tools for a sentence, and on which terms.
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

/// Tells a conversation that begins what has been used most.
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

fn arrangement(settings: &Settings) -> Arrangement {
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
    };
    let servers = settings.servers.iter().map(|server| {
        let identity = server.spec.as_ref().ok().map(identity);
        (server.name.clone(), identity)
    });
    Arrangement {
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
