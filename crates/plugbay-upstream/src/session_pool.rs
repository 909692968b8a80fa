//! The servers as one session sees them: its own instances of some, and the gateway's instances of all
//! others.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use plugbay_core::{
    catalog::Dialect,
    exchange::{Call, Reply, Servers, SubscriptionTarget, Ticket, Warmed},
    name::ServerName,
    wire::Draft,
};
use tokio::task::JoinSet;

use crate::{
    instances::{Instances, SessionFile, User},
    observers::{Observers, Observing},
    pool::Pool,
    server::{Command, Condition, OwnFile, ServerContext, ServerHandle},
    slots::{GroupId, SlotUser, Slots},
    spec::{ServerSpec, Transport},
};

/// A server that gives each session an instance of its own.
#[derive(Debug)]
pub struct SessionGroup {
    spec: Arc<ServerSpec>,
    slots: Arc<Slots>,
    id: GroupId,
    file: Option<SessionFile>,
    known: Option<Dialect>,
    /// The dialect that an instance has learnt, so that the next ones need not.
    learnt: Mutex<Option<Dialect>>,
}

/// The servers of one session. Its own instances stop when this is dropped.
pub struct SessionPool {
    pool: Arc<Pool>,
    instances: Arc<Instances>,
    user: User,
    label: SessionLabel,
    // A std mutex: held for look-ups and to spawn an actor, never across an await.
    own: Mutex<Own>,
}

#[derive(Default)]
struct Own {
    instances: BTreeMap<ServerName, OwnInstance>,
    /// How many of this session's host views show the tools of a server.
    held: BTreeMap<ServerName, usize>,
}

struct OwnInstance {
    group: Arc<SessionGroup>,
    handle: ServerHandle,
    observers: Observers,
    _observing: Observing,
}

/// Distinguishes the files of a session from those of others.
#[derive(Debug, Clone)]
pub struct SessionLabel {
    pub name: String,
    /// The caller that owns the session: callers share the instances of a server evenly.
    pub caller: Arc<[u8]>,
    /// Whether the session may come back; if so, its files are kept.
    pub lasts: bool,
}

impl SessionGroup {
    pub(crate) fn new(
        spec: Arc<ServerSpec>,
        slots: Arc<Slots>,
        file: Option<SessionFile>,
        known: Option<Dialect>,
    ) -> Self {
        Self { spec, slots, id: GroupId::default(), file, known, learnt: Mutex::default() }
    }

    /// The server's spec for this session, and the session's own file if the server keeps its data in one.
    fn launch(&self, label: &str) -> (Arc<ServerSpec>, Option<PathBuf>) {
        let Some(SessionFile { variable, folder }) = &self.file else {
            return (Arc::clone(&self.spec), None);
        };
        let mut file = None;
        let mut spec = (*self.spec).clone();
        if let Transport::Stdio(stdio) = &mut spec.transport {
            let standard = || folder.join(format!("{}.json", spec.name)).to_string_lossy().into_owned();
            let shared = PathBuf::from(stdio.env.get(variable).cloned().unwrap_or_else(standard));
            let stem = shared.file_stem().unwrap_or_default().to_string_lossy();
            let ending = shared.extension().map(|ending| format!(".{}", ending.to_string_lossy()));
            let own = shared.with_file_name(format!("{stem}-{label}{}", ending.unwrap_or_default()));
            stdio.env.insert(variable.clone(), own.to_string_lossy().into_owned());
            file = Some(own);
        }
        (Arc::new(spec), file)
    }

    /// How many instances run for the sessions of this gateway.
    pub fn running(&self) -> usize {
        self.slots.taken_by(&self.id)
    }

    pub(crate) fn set_limit(&self, limit: usize) {
        self.slots.set_limit(limit);
    }

    fn dialect(&self) -> Option<Dialect> {
        lock(&self.learnt).or(self.known)
    }
}

impl SessionPool {
    pub fn new(pool: Arc<Pool>, instances: Arc<Instances>, user: User, label: SessionLabel) -> Self {
        Self { pool, instances, user, label, own: Mutex::default() }
    }

    /// Stops the session's own instances of servers whose configuration has changed.
    pub fn reconfigured(&self) {
        let servers = self.pool.servers();
        lock(&self.own).instances.retain(|name, own| {
            servers.per_session.get(name).is_some_and(|group| Arc::ptr_eq(group, &own.group))
        });
    }

    /// The processes of the session's own instances.
    pub fn pids(&self) -> Vec<(ServerName, i32)> {
        let own = lock(&self.own);
        let pid = |(name, own): (&ServerName, &OwnInstance)| {
            own.handle.status().borrow().pid.map(|pid| (name.clone(), pid))
        };
        own.instances.iter().filter_map(pid).collect()
    }

    /// Stops the session's own instances; returns when no process is left.
    pub async fn stop(&self) {
        let own = std::mem::take(&mut lock(&self.own).instances);
        let mut stopping: JoinSet<()> = JoinSet::new();
        for instance in own.into_values() {
            stopping.spawn(async move { instance.handle.stop().await });
        }
        while stopping.join_next().await.is_some() {}
    }

    /// The session's own instance of the server, made if necessary. `Err`: the session uses the gateway's.
    fn own(&self, server: &ServerName) -> Result<ServerHandle, &Pool> {
        let servers = self.pool.servers();
        let group = servers.per_session.get(server).ok_or(&*self.pool)?;
        let mut own = lock(&self.own);
        match own.instances.get(server) {
            Some(instance) if Arc::ptr_eq(&instance.group, group) => return Ok(instance.handle.clone()),
            _ => {}
        }
        let instance = self.spawn(group);
        if own.held.contains_key(server) {
            instance.handle.hold(true);
        }
        let handle = instance.handle.clone();
        own.instances.insert(server.clone(), instance);
        Ok(handle)
    }

    /// The same without making one: some events do not concern a server that never ran.
    fn existing(&self, server: &ServerName) -> Result<Option<ServerHandle>, &Pool> {
        if !self.pool.servers().per_session.contains_key(server) {
            return Err(&self.pool);
        }
        Ok(lock(&self.own).instances.get(server).map(|own| own.handle.clone()))
    }

    fn spawn(&self, group: &Arc<SessionGroup>) -> OwnInstance {
        let observers = Observers::default();
        let observing = observers.add(&group.spec, &self.user.observer);
        let (spec, file) = group.launch(&self.label.name);
        let file = file.filter(|_| !self.label.lasts).map(|path| Arc::new(OwnFile(path)));
        let context = self.instances.context(Arc::clone(&self.user.host_registry), observers.clone());
        let context = ServerContext { _file: file, ..context };
        let user = SlotUser { group: group.id.clone(), caller: Arc::clone(&self.label.caller) };
        let slots = Some((Arc::clone(&group.slots), user));
        let handle = ServerHandle::spawn_in(slots, spec, group.dialect(), context);
        OwnInstance { group: Arc::clone(group), handle, observers, _observing: observing }
    }

    fn each_own(&self, act: impl Fn(&ServerHandle)) {
        lock(&self.own).instances.values().for_each(|own| act(&own.handle));
    }

    fn to_existing(&self, server: &ServerName, command: Command, otherwise: impl FnOnce(&Pool, Command)) {
        match self.existing(server) {
            Ok(Some(handle)) => handle.send(command),
            Ok(None) => {}
            Err(pool) => otherwise(pool, command),
        }
    }

    fn change_holders(&self, server: &ServerName, change: impl FnOnce(usize) -> usize) {
        let mut own = lock(&self.own);
        let before = own.held.remove(server).unwrap_or_default();
        let now = change(before);
        if now > 0 {
            own.held.insert(server.clone(), now);
        }
        if let Some(instance) = own.instances.get(server).filter(|_| (before > 0) != (now > 0)) {
            instance.handle.hold(now > 0);
        }
    }
}

impl Servers for SessionPool {
    fn forward(&self, server: &ServerName, call: Call) {
        match self.own(server) {
            Ok(handle) => handle.send(Command::Forward(call)),
            Err(pool) => pool.forward(server, call),
        }
    }

    fn refresh(&self, server: &ServerName) {
        self.pool.refresh(server);
        let own = self.existing(server).ok().flatten();
        if let Some(own) = own.filter(|own| own.status().borrow().condition == Condition::Ready) {
            own.refresh();
        }
    }

    fn is_idle(&self, server: &ServerName) -> bool {
        let is_idle = |handle: ServerHandle| handle.status().borrow().condition == Condition::Idle;
        match self.existing(server) {
            Ok(own) => own.is_none_or(is_idle),
            Err(pool) => pool.is_idle(server),
        }
    }

    fn is_own(&self, server: &ServerName) -> bool {
        self.existing(server).is_ok()
    }

    fn warm(&self, server: &ServerName, warmed: Warmed) {
        match self.own(server) {
            Ok(handle) => handle.send(Command::Warm(warmed)),
            Err(pool) => pool.warm(server, warmed),
        }
    }

    fn hold(&self, server: &ServerName) {
        self.change_holders(server, |count| count + 1);
        self.pool.hold(server);
    }

    fn release(&self, server: &ServerName) {
        self.change_holders(server, |count| count.saturating_sub(1));
        self.pool.release(server);
    }

    fn cancel(&self, server: &ServerName, ticket: Ticket, notification: Draft) {
        self.to_existing(server, Command::Cancel { ticket, notification }, |pool, command| {
            pool.send(server, command);
        });
    }

    fn reply(&self, server: &ServerName, server_request: Ticket, reply: Reply) {
        self.to_existing(server, Command::Reply { server_request, reply }, |pool, command| {
            pool.send(server, command);
        });
    }

    fn notify(&self, server: &ServerName, notification: Bytes) {
        self.to_existing(server, Command::Notify(notification), |pool, command| pool.send(server, command));
    }

    fn roots_changed(&self, notification: Bytes) {
        self.each_own(|handle| handle.send(Command::RootsChanged(notification.clone())));
        self.pool.roots_changed(notification.clone());
    }

    fn watch(&self, server: &ServerName, what: SubscriptionTarget) {
        match self.own(server) {
            Ok(handle) => handle.send(Command::Subscribe(what)),
            Err(pool) => pool.watch(server, what),
        }
    }

    fn unwatch(&self, server: &ServerName, what: SubscriptionTarget) {
        self.to_existing(server, Command::Unsubscribe(what), |pool, command| pool.send(server, command));
    }

    fn log_level_changed(&self) {
        self.each_own(|handle| handle.send(Command::LogLevelChanged));
        self.pool.log_level_changed();
    }

    fn client_capabilities_grew(&self) {
        self.each_own(|handle| handle.send(Command::ClientCapabilitiesGrew));
        self.pool.client_capabilities_grew();
    }
}

/// An instance that has been opened passes its dialect on to the next ones.
impl Drop for OwnInstance {
    fn drop(&mut self) {
        if let Some(dialect) = self.observers.dialect() {
            *lock(&self.group.learnt) = Some(dialect);
        }
    }
}

impl fmt::Debug for SessionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionPool").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing can panic half-way through a change, so a poisoned table is still whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
