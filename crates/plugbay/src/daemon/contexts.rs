//! The gateways of a daemon: windows for which the configuration means the same use one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use plugbay_core::{
    bridge::Control,
    scope::{Scope, SessionKey},
};
use plugbay_downstream::{Gateway, stdio::DRAIN};
use plugbay_upstream::{Instances, process::inherited, spec::Origin};
use tokio::{
    sync::{mpsc, watch},
    task::spawn_blocking,
    time::timeout,
};

use super::{
    hello::WindowHello,
    windows::{ContextNumber, Member, Membership, Windows},
};
use crate::{
    app::App,
    config::Settings,
    gateway_run::{self, Configuration},
    log_files::LogFiles,
    settings::{self, Source},
    status_file::{GatewayStatus, ServerStatus, Transport, server_statuses},
    telemetry,
};

/// How long a gateway without windows goes on: a host that is restarted then finds its servers running.
const UNUSED: Duration = Duration::from_secs(60);
/// How long servers may take to end with the daemon.
const LAST_PATIENCE: Duration = Duration::from_secs(10);

/// The values of the variables that a configuration refers to.
type Values = BTreeMap<String, Option<String>>;

/// All gateways of one daemon.
pub(super) struct Contexts {
    instances: Arc<Instances>,
    logs: Option<LogFiles>,
    windows: Arc<Windows>,
    // A std mutex: held for look-ups, never across an await.
    table: Mutex<Table>,
    /// `true` when every gateway must end.
    ending: watch::Sender<bool>,
    /// The number of running gateways.
    running: watch::Sender<usize>,
}

#[derive(Default)]
struct Table {
    last: ContextNumber,
    open: Vec<Arc<Context>>,
}

/// One gateway, with the part of the configuration that its windows share.
struct Context {
    number: ContextNumber,
    key: Key,
    /// The values with which its servers run. `None`: no window may join it. Then the values are about to
    /// change, or a file could not be read and may refer to unknown variables.
    values: Mutex<Option<Values>>,
    gateway: Gateway,
    /// A weak reference, because its task owns the app.
    app: Weak<App>,
}

/// The things that two windows must have in common to use one gateway, besides the values of variables.
#[derive(PartialEq, Eq)]
struct Key {
    config: Option<PathBuf>,
    host: Option<String>,
    /// The folder, and the environment that servers inherit.
    origin: Origin,
}

/// The parts of its context that one window needs.
pub(super) struct Entered {
    pub(super) gateway: Gateway,
    pub(super) membership: Membership,
    pub(super) controls: mpsc::UnboundedReceiver<Control>,
}

/// The configuration, as read for one window.
struct Loaded {
    source: Source,
    settings: Settings,
    values: Values,
}

impl Contexts {
    pub(super) fn new(instances: Arc<Instances>, logs: Option<LogFiles>, windows: Arc<Windows>) -> Arc<Self> {
        let (table, ending, running) = (Mutex::default(), watch::Sender::default(), watch::Sender::default());
        Arc::new(Self { instances, logs, windows, table, ending, running })
    }

    /// Opens the session of a window. `Err` is the reason, for the user.
    pub(super) async fn enter(self: &Arc<Self>, hello: &Arc<WindowHello>) -> Result<Entered, String> {
        let window = Arc::clone(hello);
        // A slow disk must not hold up other windows.
        let loaded = spawn_blocking(move || load(&window)).await.map_err(|error| error.to_string())??;
        let mut table = self.lock();
        let key = Key::of(hello);
        // For a file that cannot be read, the values that it refers to are unknown.
        let joins = |context: &&Arc<Context>| {
            !loaded.settings.unreadable
                && context.key == key
                && context.values().as_ref() == Some(&loaded.values)
        };
        let context = match table.open.iter().find(joins) {
            Some(context) => Arc::clone(context),
            None => self.begin(&mut table, key, hello, loaded)?,
        };
        // The lock must be held: a context without windows may be about to end.
        let all = &context.gateway.connected_hosts;
        let (membership, controls) = self.windows.add(context.number, Arc::clone(hello), all);
        drop(table);
        let mut gateway = context.gateway.enter(&SessionKey::new(hello.session.as_str()));
        gateway.connected_hosts = membership.hosts.clone();
        Ok(Entered { gateway, membership, controls })
    }

    fn begin(
        self: &Arc<Self>,
        table: &mut Table,
        key: Key,
        hello: &WindowHello,
        Loaded { source, settings, values }: Loaded,
    ) -> Result<Arc<Context>, String> {
        settings.log_problems();
        let environment = settings::environment_of(&hello.variables, &hello.folder);
        let mut environment = environment.map_err(|error| error.to_string())?;
        environment.logs.clone_from(&self.logs);
        // For the audit log in its configuration.
        let observed = telemetry::start(false, None);
        environment.telemetry = Some(Arc::clone(&observed));
        let app = Arc::new(App::sharing(&settings, environment, &self.instances));
        table.last += 1;
        let context = Arc::new(Context {
            number: table.last,
            key,
            values: Mutex::new(Some(values).filter(|_| !settings.unreadable)),
            gateway: app.gateway(),
            app: Arc::downgrade(&app),
        });
        table.open.push(Arc::clone(&context));
        self.running.send_modify(|running| *running += 1);
        let contexts = Arc::clone(self);
        let running = run(Arc::clone(self), Arc::clone(&context), app, source, settings);
        tokio::spawn(async move {
            running.await;
            telemetry::finish(observed).await; // before the daemon may end: the last lines are written here
            contexts.running.send_modify(|running| *running -= 1);
        });
        Ok(context)
    }

    /// The servers of all gateways, each process once.
    pub(super) fn servers(&self) -> Vec<ServerStatus> {
        let apps: Vec<Arc<App>> =
            self.lock().open.iter().filter_map(|context| context.app.upgrade()).collect();
        let mut servers: Vec<ServerStatus> = Vec::new();
        for server in apps.iter().flat_map(|app| server_statuses(app)) {
            let same = |other: &ServerStatus| {
                (&other.name, other.pid, other.scope) == (&server.name, server.pid, server.scope)
            };
            match servers.iter_mut().find(|other| same(other)) {
                // Each gateway has its own instances for its sessions, but a shared process serves all
                // gateways.
                Some(other) if server.scope == Some(Scope::Session) => other.instances += server.instances,
                Some(other) => other.instances = other.instances.max(server.instances),
                None => servers.push(server),
            }
        }
        servers.sort_by(|one, other| one.name.cmp(&other.name));
        servers
    }

    /// How long calls in flight may go on when the daemon ends: the longest time that any gateway allows.
    pub(super) fn drain(&self) -> Duration {
        let table = self.lock();
        let times =
            table.open.iter().filter_map(|context| context.gateway.snapshots.borrow().layout.settings.drain);
        times.max().unwrap_or_default().max(DRAIN)
    }

    /// Ends every gateway; returns when no server is left.
    pub(super) async fn end(&self) {
        self.ending.send_replace(true);
        let mut running = self.running.subscribe();
        if timeout(LAST_PATIENCE, running.wait_for(|running| *running == 0)).await.is_err() {
            tracing::warn!("a server has not ended in time; the guard ends it");
        }
    }

    /// Removes a context that no window uses. `false`: a new window uses it.
    fn retire(&self, context: &Arc<Context>) -> bool {
        let mut table = self.lock();
        if self.windows.has(context.number) && !*self.ending.borrow() {
            return false;
        }
        table.open.retain(|other| !Arc::ptr_eq(other, context));
        true
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    fn values(&self) -> MutexGuard<'_, Option<Values>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    fn of(WindowHello { config, host, variables, folder, .. }: &WindowHello) -> Self {
        let origin = Origin::new(inherited(variables.all()), folder.clone());
        Self { config: config.clone(), host: host.clone(), origin }
    }
}

/// The configuration of one context, and the windows that use it.
struct Followed<'a> {
    windows: &'a Windows,
    context: &'a Context,
    source: &'a Source,
    last: Mutex<Reading>,
}

/// The last reading of the configuration, and its meaning for the windows of a context.
#[derive(Default)]
struct Reading {
    values: Values,
    /// The sessions of windows for which the configuration means the same.
    same: BTreeSet<String>,
}

impl Configuration for Followed<'_> {
    /// Reads the configuration once for the context, and once for each of its windows.
    async fn read(&self) -> Settings {
        let (source, members) = (self.source.clone(), self.windows.of(self.context.number));
        // A slow disk must not hold up the calls of all windows.
        let read = spawn_blocking(move || {
            let (settings, values) = source.load_with_values();
            let is_same = |member: &Member| load(&member.hello).is_ok_and(|theirs| theirs.values == values);
            let same = members.iter().filter(|member| is_same(member));
            let same = same.map(|member| member.hello.session.clone()).collect();
            (settings, Reading { values, same })
        });
        match read.await {
            Ok((settings, reading)) => {
                *self.last() = reading;
                settings
            }
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// Makes some windows open their session again: those for which the configuration means something else,
    /// and those that have come since it was read. So no window gets another's variables.
    fn changes(&self) {
        *self.context.values() = None;
        let same = std::mem::take(&mut self.last().same);
        let others = self.windows.of(self.context.number).into_iter();
        for window in others.filter(|window| !same.contains(&window.hello.session)) {
            let _ = window.controls.send(Control::HandOver);
        }
    }

    fn has_changed(&self) {
        *self.context.values() = Some(std::mem::take(&mut self.last().values));
    }
}

impl Followed<'_> {
    fn last(&self) -> MutexGuard<'_, Reading> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(window: &WindowHello) -> Result<Loaded, String> {
    let WindowHello { config, host, variables, folder, .. } = window;
    let source = Source::of_window(config.clone(), variables.clone(), folder.clone());
    let source = source.with_host(host.clone()).map_err(|error| error.message)?;
    let (settings, values) = source.load_with_values();
    Ok(Loaded { source, settings, values })
}

/// Runs one gateway until no window has used it for a while, or the daemon ends.
async fn run(
    contexts: Arc<Contexts>,
    context: Arc<Context>,
    app: Arc<App>,
    source: Source,
    settings: Settings,
) {
    let mut ending = contexts.ending.subscribe();
    let status = GatewayStatus::new(&source, Transport::Daemon);
    let configuration =
        Followed { windows: &contexts.windows, context: &context, source: &source, last: Mutex::default() };
    tokio::select! {
        () = gateway_run::look_after(&app, status, &settings, &source.paths, &configuration) => {}
        () = unused(&contexts, &context) => {}
        _ = ending.wait_for(|ending| *ending) => {}
    }
    contexts.retire(&context);
    drop(context);
    // Others hold it only briefly.
    if let Some(app) = Arc::into_inner(app) {
        app.shut_down().await;
    }
}

/// Returns when no window has used the context for a while, and none can find it any more.
async fn unused(contexts: &Contexts, context: &Arc<Context>) {
    let mut changes = contexts.windows.changes();
    loop {
        while contexts.windows.has(context.number) {
            let _ = changes.changed().await;
        }
        let used = async {
            while !contexts.windows.has(context.number) {
                let _ = changes.changed().await;
            }
        };
        if timeout(UNUSED, used).await.is_err() && contexts.retire(context) {
            return;
        }
    }
}
