//! One host: what it has asked, what it has been told, and what waits to be sent to it.

mod caller;
mod notifications;
mod server_requests;

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    era::Era,
    exchange::{Caller, Ticket},
    extension::Extensions,
    level::Level,
    name::ServerName,
    surface::{Place, Snapshot},
    wire::{Draft, string_value},
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tokio::sync::{Notify, oneshot};

use self::server_requests::PendingRequest;
pub(crate) use self::server_requests::Replied;
use crate::{
    connected_hosts::Introduction,
    gateway::Gateway,
    host_view::{HostView, Lasting, ListChangeListener},
    lists::{Kind, Seen, Wanted},
    message::Request,
    outbox::Outbox,
    refusal::Refusal,
    respond,
    seal::Owner,
    subscriptions::Watched,
};

/// So many progress tokens are kept for tasks.
const TOKENS_LIMIT: usize = 256;

#[derive(Debug)]
pub(crate) struct Session {
    me: Weak<Self>,
    gateway: Gateway,
    owner: Owner,
    host_view: Arc<HostView>,
    standing: Standing,
    /// For what belongs to no request.
    outbox: Arc<Outbox>,
    // A std mutex: held for table look-ups, never across an await. Servers answer from their own tasks.
    state: Mutex<State>,
    /// Told when the last request in flight has ended.
    idle: Notify,
}

/// How much of a host this is, and whether there are others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// No other host shares its servers.
    Alone,
    OneOfMany,
    /// One of the requests of one of many.
    OneRequest,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    opened: Option<Era>,
    /// The protocol version that was negotiated with a legacy host.
    version: Option<&'static str>,
    /// A legacy host takes notifications from then on.
    initialized: bool,
    /// On stdio it also hears of list changes; over HTTP that needs a stream.
    listener: Option<ListChangeListener>,
    /// What a legacy host has declared.
    pub(crate) client_capabilities: ClientCapabilities,
    extensions: Extensions,
    /// Requests that wait for their answers, by the host's raw id.
    requests: HashMap<Bytes, InFlight>,
    /// The latest call of each server.
    latest_calls: HashMap<ServerName, Ticket>,
    /// What a legacy host has been asked and has not answered.
    server_requests: FxHashMap<Ticket, PendingRequest>,
    subscriptions: Vec<Subscription>,
    watched: Vec<Watched>,
    /// From which level on a legacy host wants log messages, once it has said so.
    level: Option<Level>,
    /// Servers have been told from which level on it wants their logs.
    wants_log: bool,
    /// The progress tokens of calls that may have begun a task, oldest first: they outlive those calls.
    tokens: VecDeque<(Ticket, Bytes)>,
    seen: Seen,
}

/// A request that waits for its answer.
#[derive(Debug)]
enum InFlight {
    /// It is in the table of calls.
    Call(Ticket),
    /// No server works on it: it waits for the catalog, an index or a model.
    Waiting {
        /// Takes its answer.
        sink: Arc<Outbox>,
        /// Dropped with this, which cancels the work.
        _interest: oneshot::Sender<Infallible>,
    },
}

/// Ends when a request is cancelled, or its host has gone.
pub(crate) type Cancelled = oneshot::Receiver<Infallible>;

/// A `subscriptions/listen` request that is open.
#[derive(Debug)]
struct Subscription {
    id: Bytes,
    wanted: Wanted,
    sink: Arc<Outbox>,
    _listener: Option<ListChangeListener>,
}

impl Session {
    pub(crate) fn new(gateway: Gateway, outbox: Outbox) -> Arc<Self> {
        Self::of(Owner::default(), Standing::Alone, gateway, Arc::new(HostView::new(Lasting::Yes)), outbox)
    }

    /// For one of many legacy hosts.
    pub(crate) fn shared(owner: Owner, gateway: Gateway, outbox: Outbox) -> Arc<Self> {
        Self::of(owner, Standing::OneOfMany, gateway, Arc::new(HostView::new(Lasting::Yes)), outbox)
    }

    fn of(
        owner: Owner,
        standing: Standing,
        gateway: Gateway,
        host_view: Arc<HostView>,
        outbox: Outbox,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            gateway,
            owner,
            host_view,
            standing,
            outbox: Arc::new(outbox),
            state: Mutex::default(),
            idle: Notify::new(),
        })
    }

    /// For one request of a modern host. What the host has seen was told in other such sessions, so
    /// it is taken to have seen what there is now.
    pub(crate) fn stateless(
        owner: Owner,
        gateway: Gateway,
        host_view: Arc<HostView>,
        outbox: Outbox,
    ) -> Arc<Self> {
        let session = Self::of(owner, Standing::OneRequest, gateway, host_view, outbox);
        let seen = Seen::all(&session.snapshot());
        session.lock().seen = seen;
        session.opened_modern();
        session
    }

    /// The panel as this host sees it.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.host_view.see(&self.gateway.snapshots.borrow())
    }

    pub(crate) fn host_view(&self) -> &Arc<HostView> {
        &self.host_view
    }

    /// The host has said who it is.
    pub(crate) fn meet(&self, request: &Request, era: Era) {
        let layout = Arc::clone(&self.gateway.snapshots.borrow().layout);
        self.host_view.meet(request.client().as_deref(), &layout, || (self.gateway.learned)());
        self.host_view.sit(&Introduction::of(request, era), &self.gateway.connected_hosts);
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(crate) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// Whose requests these are.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Whether what servers have is this host's alone.
    pub(crate) fn is_alone(&self) -> bool {
        self.standing == Standing::Alone
    }

    // --- opening

    pub(crate) fn opened_legacy(
        &self,
        version: &'static str,
        client_capabilities: ClientCapabilities,
        extensions: &Extensions,
    ) {
        let mut state = self.lock();
        state.opened = Some(Era::Legacy);
        state.version = Some(version);
        state.client_capabilities = client_capabilities;
        state.extensions.clone_from(extensions);
        drop(state);
        self.host_view.lends_model(client_capabilities.sampling_tools);
        self.gateway.host_registry.joined(self.me.clone());
        self.gateway.host_registry.reads(self.me.clone());
        self.can(client_capabilities, extensions);
        self.gateway.opened.notify_one();
    }

    /// The host can do this; servers that have not been told so will be.
    pub(crate) fn can(&self, client_capabilities: ClientCapabilities, extensions: &Extensions) {
        let host_registry = &self.gateway.host_registry;
        if host_registry.can(client_capabilities) | host_registry.knows(extensions) {
            self.gateway.servers.client_capabilities_grew();
        }
    }

    pub(crate) fn has_roots(&self) -> bool {
        self.client_capabilities().roots
    }

    /// The revision that was agreed upon with a legacy host.
    pub(crate) fn version(&self) -> Option<&'static str> {
        self.lock().version
    }

    /// `true` when it had not been opened before.
    pub(crate) fn opened_modern(&self) -> bool {
        let mut state = self.lock();
        let first = state.opened.is_none();
        state.opened.get_or_insert(Era::Modern);
        first
    }

    /// Whether the host has spoken the modern protocol, and never the legacy one.
    pub(crate) fn is_modern(&self) -> bool {
        self.lock().opened == Some(Era::Modern)
    }

    pub(crate) fn initialized(&self) {
        let mut state = self.lock();
        state.initialized = true;
        state.listener = self.is_alone().then(|| self.host_view.listen());
        drop(state);
        self.catalog_changed(); // it may have changed since the host listed
    }

    pub(crate) fn client_capabilities(&self) -> ClientCapabilities {
        self.lock().client_capabilities
    }

    // --- calls

    /// Notes that a request is in the table of calls. `false`: the host uses its id for another request.
    pub(crate) fn reserve(&self, id: Bytes, ticket: Ticket, server: &ServerName) -> bool {
        let mut state = self.lock();
        if state.in_use(&id) {
            return false;
        }
        state.requests.insert(id, InFlight::Call(ticket));
        match state.latest_calls.get_mut(server) {
            Some(latest) => *latest = ticket.max(*latest), // a resumed call has an early ticket
            None => drop(state.latest_calls.insert(server.clone(), ticket)),
        }
        true
    }

    /// The request gets its answer now. `false`: it has been cancelled meanwhile.
    pub(crate) fn release(&self, id: &Bytes) -> bool {
        self.lock().requests.remove(id).is_some()
    }

    /// Keeps the progress token of a call that may have begun a task: only a legacy host hears of a task's progress.
    pub(crate) fn remember_token(&self, ticket: Ticket, token: Bytes) {
        let mut state = self.lock();
        if state.opened == Some(Era::Legacy) {
            if state.tokens.len() >= TOKENS_LIMIT {
                state.tokens.pop_front();
            }
            state.tokens.push_back((ticket, token));
        }
    }

    /// Which of these the host means by a URI that several servers have: the one that it wants to hear of, else
    /// the one that it called last, for that is where it has it from; else the first.
    pub(crate) fn meant(&self, uri: &str, mut places: SmallVec<[Place; 1]>) -> Option<Place> {
        if places.len() > 1 {
            let state = self.lock();
            places.sort_by_key(|place| {
                let mut watched = state.watched.iter().filter(|watched| watched.server == place.server);
                let heard_of = watched.any(|watched| string_value(watched.shown()).as_deref() == Some(uri));
                Reverse((heard_of, state.latest_calls.get(&place.server).copied()))
            });
        }
        places.into_iter().next()
    }

    /// The host cancels a request; by the protocol it gets no answer.
    pub(crate) fn cancel(&self, id: &[u8], notification: Draft) {
        self.unwatch_all(|watched| watched.subscription.as_deref() == Some(id));
        let mut state = self.lock();
        state.subscriptions.retain(|subscription| subscription.id != id);
        let cancelled = state.requests.remove(id);
        drop(state);
        if let Some(InFlight::Call(ticket)) = cancelled {
            self.gateway.suspended.cancel(&self.gateway, ticket, notification);
        }
        self.tell_if_idle();
    }

    /// The host has gone: everything that it has asked for is cancelled.
    pub(crate) fn abandon(&self) {
        self.unwatch_all(|_| true);
        let mut state = self.lock();
        let requests = std::mem::take(&mut state.requests);
        state.subscriptions.clear();
        drop(state);
        self.idle.notify_waiters();
        self.stop_listening();
        self.leave_unanswered();
        for in_flight in requests.into_values() {
            if let InFlight::Call(ticket) = in_flight {
                self.gateway.suspended.cancel(&self.gateway, ticket, respond::host_has_gone());
            }
        }
        self.outbox.close();
    }

    fn stop_listening(&self) {
        // Others have never been heard of there.
        if self.version().is_some() {
            self.gateway.host_registry.left(&(self.me.clone() as Weak<dyn Caller>));
        }
        if self.lock().wants_log {
            self.wants_log(None);
        }
    }

    /// Servers are told from which level on anybody wants their logs; `None`: this host has no wish any more.
    pub(crate) fn wants_log(&self, level: Option<Level>) {
        self.lock().wants_log = level.is_some();
        if self.gateway.host_registry.wants_log(&(self.me.clone() as Weak<dyn Caller>), level) {
            self.gateway.servers.log_level_changed();
        }
    }

    /// How many requests wait for their answers.
    pub(crate) fn in_flight(&self) -> usize {
        self.lock().requests.len()
    }

    /// Waits until nothing is in flight.
    pub(crate) async fn calls_ended(&self) {
        loop {
            let idle = self.idle.notified();
            if self.lock().requests.is_empty() {
                return;
            }
            idle.await;
        }
    }

    /// Notes that a request waits for something that is no server. `None`: its id is in use.
    pub(crate) fn wait(&self, id: Bytes, sink: Arc<Outbox>) -> Option<Cancelled> {
        let mut state = self.lock();
        if state.in_use(&id) {
            return None;
        }
        let (interest, cancelled) = oneshot::channel();
        state.requests.insert(id, InFlight::Waiting { sink, _interest: interest });
        Some(cancelled)
    }

    /// Wakes those that wait until nothing is in flight.
    pub(crate) fn tell_if_idle(&self) {
        if self.lock().requests.is_empty() {
            self.idle.notify_waiters();
        }
    }

    // --- lists

    pub(crate) fn has_seen(&self, snapshot: &Snapshot, kind: Kind) {
        self.lock().seen.note(snapshot, kind);
        if kind == Kind::Tools {
            self.gateway.first_list.notify_one();
            self.host_view.listed.notify_waiters();
        }
        self.catalog_changed(); // while the answer was being made
    }

    /// `false`: the id is in use.
    pub(crate) fn subscribe(
        &self,
        id: Bytes,
        wanted: Wanted,
        watched: Vec<Watched>,
        sink: Arc<Outbox>,
    ) -> bool {
        let mut state = self.lock();
        if state.in_use(&id) {
            return false;
        }
        sink.tell(respond::acknowledged(&id, wanted, &watched));
        let listener = wanted.has(Kind::Tools).then(|| self.host_view.listen());
        state.subscriptions.push(Subscription { id, wanted, sink, _listener: listener });
        drop(state);
        if !watched.is_empty() {
            self.gateway.host_registry.reads(self.me.clone());
        }
        for watched in watched {
            self.watch(watched);
        }
        self.catalog_changed(); // since the host listed
        true
    }

    /// Tells the host to list again, where what it has seen is not what it would see now.
    pub(crate) fn catalog_changed(&self) {
        let layout = Arc::clone(&self.gateway.snapshots.borrow().layout);
        self.host_view.reconfigure(&layout, || (self.gateway.learned)());
        self.tell_changes();
    }

    /// Whether there was anything to tell, and anybody to tell it to.
    pub(crate) fn tell_changes(&self) -> bool {
        let now = self.snapshot();
        let mut state = self.lock();
        let mut any = false;
        for kind in Kind::ALL.into_iter().filter(|kind| state.seen.differs(&now, *kind)).collect::<Vec<_>>() {
            let legacy = state.listens();
            let mut told = legacy;
            if legacy {
                self.outbox.tell_once(respond::list_changed(kind, None));
            }
            for subscription in state.subscriptions.iter().filter(|one| one.wanted.has(kind)) {
                subscription.sink.tell_once(respond::list_changed(kind, Some(&subscription.id)));
                told = true;
            }
            // Whoever does not listen yet hears of it when it does.
            if told {
                state.seen.note(&now, kind);
            }
            any |= told;
        }
        any
    }

    /// Closes subscriptions in good order; the rest goes on.
    pub(crate) fn end_subscriptions(&self) {
        let subscriptions = std::mem::take(&mut self.lock().subscriptions);
        for subscription in subscriptions {
            subscription.sink.answer(respond::subscription_ended(&subscription.id));
        }
    }

    /// The end: what is still owed is refused, subscriptions are closed in good order, and the outbox
    /// takes no more.
    pub(crate) fn close(&self) {
        self.unwatch_all(|_| true);
        let requests = std::mem::take(&mut self.lock().requests);
        for (id, in_flight) in requests {
            let sink = match in_flight {
                InFlight::Call(ticket) => self.gateway.suspended.forget(ticket).map(|host| host.sink),
                InFlight::Waiting { sink, .. } => Some(sink),
            };
            if let Some(sink) = sink {
                sink.answer(respond::error(&id, &Refusal::Ending));
            }
        }
        self.stop_listening();
        self.leave_unanswered();
        self.end_subscriptions();
        self.outbox.close();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn in_use(&self, id: &Bytes) -> bool {
        self.requests.contains_key(id) || self.subscriptions.iter().any(|subscription| subscription.id == id)
    }

    /// Whether the host takes requests that belong to none of its own.
    fn listens(&self) -> bool {
        self.initialized && self.opened == Some(Era::Legacy)
    }
}
