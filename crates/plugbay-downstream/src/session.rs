//! One host: what it has asked, what it has been told, and what waits to be sent to it.

mod caller;

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
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

use crate::{
    connected_hosts::Introduction,
    gateway::Gateway,
    host_view::{HostView, Lasting, ListChangeListener},
    lists::{Kind, Seen, Wanted},
    message::Request,
    notifications::Watched,
    outbox::Outbox,
    parked::Terms,
    respond::{self, Refusal},
    rounds::Again,
    seal::Owner,
    server_requests::Asked,
    tasks::Role,
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
    /// What was agreed upon with a legacy host.
    version: Option<&'static str>,
    /// A legacy host takes notifications from then on.
    initialized: bool,
    /// On stdio it also hears of them; over HTTP that needs a stream.
    ear: Option<ListChangeListener>,
    /// What a legacy host can be asked.
    pub(crate) client_capabilities: ClientCapabilities,
    extensions: Extensions,
    pub(crate) calls: FxHashMap<Ticket, HostCall>,
    pub(crate) by_id: HashMap<Bytes, Ticket>,
    /// The latest call of each server.
    called: HashMap<ServerName, Ticket>,
    /// What a legacy host has been asked and has not answered.
    pub(crate) server_requests: FxHashMap<Ticket, Asked>,
    /// The requests that wait for the catalog or for a model.
    waiting: HashMap<Bytes, Waiting>,
    pub(crate) subscriptions: Vec<Subscription>,
    pub(crate) watched: Vec<Watched>,
    /// From which level on a legacy host wants log messages, once it has said so.
    pub(crate) level: Option<Level>,
    /// Servers have been told from which level on it wants their logs.
    pub(crate) wants_log: bool,
    /// The progress tokens of calls that may have begun a task, oldest first: they outlive those calls.
    tokens: VecDeque<(Ticket, Bytes)>,
    seen: Seen,
}

/// A call in flight as its host knows it.
#[derive(Debug)]
pub(crate) struct HostCall {
    pub(crate) id: Bytes,
    pub(crate) progress_token: Option<Bytes>,
    pub(crate) era: Era,
    pub(crate) server: ServerName,
    /// It is for a resource: a modern result of this kind says how long it may be kept.
    pub(crate) reads: bool,
    /// From which level on a modern host wants to read the log of this request.
    pub(crate) log_level: Option<Level>,
    /// What was put right in it: a member for its result's `_meta`.
    pub(crate) repairs: Option<Bytes>,
    pub(crate) sink: Arc<Outbox>,
    pub(crate) recourse: Recourse,
    /// The server has asked something for it, so that others may know of it too.
    pub(crate) asked: bool,
    /// Instead of the server's own.
    pub(crate) timeout: Option<Duration>,
    pub(crate) role: Role,
}

/// A request that no server works on.
#[derive(Debug)]
struct Waiting {
    /// Where its answer goes.
    sink: Arc<Outbox>,
    /// Dropped with this: whoever works on it learns that nobody waits any more.
    _interest: oneshot::Sender<Infallible>,
}

/// Comes to an end when a request is taken back, or its host has gone.
pub(crate) type TakenBack = oneshot::Receiver<Infallible>;

/// What can be done if the server of a call asks something that its host does not expect.
#[derive(Debug)]
pub(crate) enum Recourse {
    /// The two speak alike.
    None,
    /// A modern host sends its request again; the call is kept for it.
    Park(Terms),
    /// A modern server is sent the request again; the request is kept for it.
    Again(Box<Again>),
}

#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) id: Bytes,
    wanted: Wanted,
    pub(crate) sink: Arc<Outbox>,
    _ear: Option<ListChangeListener>,
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

    /// Itself, for whoever goes on with something later.
    pub(crate) fn me(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
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
        self.lock().client_capabilities.roots
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
        state.ear = self.is_alone().then(|| self.host_view.listen());
        drop(state);
        self.catalog_changed(); // it may have changed since the host listed
    }

    // --- calls

    /// `false`: the host uses this id for another request that is still in flight.
    pub(crate) fn register(&self, ticket: Ticket, call: HostCall) -> bool {
        let mut state = self.lock();
        if state.in_use(&call.id) {
            return false;
        }
        state.by_id.insert(call.id.clone(), ticket);
        state.called.insert(call.server.clone(), ticket);
        state.calls.insert(ticket, call);
        true
    }

    /// Which of these the host means by a URI that several servers have: the one that it wants to hear of, else
    /// the one that it called last, for that is where it has it from; else the first.
    pub(crate) fn meant(&self, uri: &str, mut places: SmallVec<[Place; 1]>) -> Option<Place> {
        if places.len() > 1 {
            let state = self.lock();
            places.sort_by_key(|place| {
                let mut watched = state.watched.iter().filter(|watched| watched.server == place.server);
                let heard_of = watched.any(|watched| string_value(watched.shown()).as_deref() == Some(uri));
                Reverse((heard_of, state.called.get(&place.server).copied()))
            });
        }
        places.into_iter().next()
    }

    /// What to do if the server asks back.
    pub(crate) fn prepare(&self, ticket: Ticket, recourse: Recourse) {
        if let Some(call) = self.lock().calls.get_mut(&ticket) {
            call.recourse = recourse;
        }
    }

    /// The host has come back to a call of its own. `false`: the id of its request is in use.
    pub(crate) fn take_over(&self, ticket: Ticket, call: HostCall) -> bool {
        let mut state = self.lock();
        let free = !state.in_use(&call.id);
        if free {
            state.by_id.insert(call.id.clone(), ticket);
            state.calls.insert(ticket, call);
        }
        free
    }

    /// The host will come back to this call, and is told so instead of its answer.
    pub(crate) fn hand_over(&self, ticket: Ticket) -> Option<HostCall> {
        self.forget(&mut self.lock(), ticket)
    }

    /// Ends a call with an error of ours.
    pub(crate) fn fail(&self, ticket: Ticket, refusal: &Refusal) {
        self.withdraw_all_of(ticket);
        let call = self.forget(&mut self.lock(), ticket);
        if let Some(call) = call {
            self.end_task(&call);
            call.sink.answer(respond::error(&call.id, refusal));
        }
    }

    /// The host takes back a request; by the protocol it gets no answer.
    pub(crate) fn cancel(&self, id: &[u8], notification: Draft) {
        self.unwatch_all(|watched| watched.subscription.as_deref() == Some(id));
        let mut state = self.lock();
        state.subscriptions.retain(|subscription| subscription.id != id);
        if state.waiting.remove(id).is_some() {
            self.tell_if_idle(&state);
        }
        let Some(ticket) = state.by_id.get(id).copied() else { return };
        drop(state);
        self.withdraw_all_of(ticket);
        let call = self.forget(&mut self.lock(), ticket);
        if let Some(call) = call {
            if call.asked {
                self.gateway.parking.forget(ticket, &*self.gateway.servers);
            }
            call.sink.taken_back();
            self.gateway.servers.cancel(&call.server, ticket, notification);
            self.end_task(&call);
        }
    }

    /// The host has gone: everything that it has asked for is taken back.
    pub(crate) fn abandon(&self) {
        self.unwatch_all(|_| true);
        let mut state = self.lock();
        state.by_id.clear();
        state.waiting.clear();
        state.subscriptions.clear();
        let calls = std::mem::take(&mut state.calls);
        self.tell_if_idle(&state);
        drop(state);
        self.stop_listening();
        self.leave_unanswered();
        for (ticket, call) in calls {
            if call.asked {
                self.gateway.parking.forget(ticket, &*self.gateway.servers);
            }
            call.sink.taken_back();
            self.gateway.servers.cancel(&call.server, ticket, respond::host_has_gone());
            self.end_task(&call);
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
        let state = self.lock();
        state.calls.len() + state.waiting.len()
    }

    /// Waits until nothing is in flight.
    pub(crate) async fn calls_ended(&self) {
        loop {
            let idle = self.idle.notified();
            if self.lock().is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// A request waits for something that is no server. `None`: its id is in use.
    pub(crate) fn wait(&self, id: Bytes, sink: Arc<Outbox>) -> Option<TakenBack> {
        let mut state = self.lock();
        if state.in_use(&id) {
            return None;
        }
        let (interest, taken_back) = oneshot::channel();
        state.waiting.insert(id, Waiting { sink, _interest: interest });
        Some(taken_back)
    }

    /// The request is done with waiting. `false`: it was taken back, or the host has gone.
    pub(crate) fn waited(&self, id: &Bytes) -> bool {
        self.lock().waiting.remove(id).is_some()
    }

    /// What waited has been dealt with.
    pub(crate) fn dealt_with(&self) {
        self.tell_if_idle(&self.lock());
    }

    fn tell_if_idle(&self, state: &State) {
        if state.is_idle() {
            self.idle.notify_waiters();
        }
    }

    fn forget(&self, state: &mut State, ticket: Ticket) -> Option<HostCall> {
        let call = state.calls.remove(&ticket)?;
        state.by_id.remove(&call.id);
        self.tell_if_idle(state);
        Some(call)
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
        let ear = wanted.has(Kind::Tools).then(|| self.host_view.listen());
        state.subscriptions.push(Subscription { id, wanted, sink, _ear: ear });
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
        let mut state = self.lock();
        state.by_id.clear();
        let calls = std::mem::take(&mut state.calls).into_values().map(|call| (call.id, call.sink));
        let waiting = std::mem::take(&mut state.waiting).into_iter().map(|(id, waiting)| (id, waiting.sink));
        for (id, sink) in calls.chain(waiting) {
            sink.answer(respond::error(&id, &Refusal::Ending));
        }
        drop(state);
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
        let subscribed = self.subscriptions.iter().any(|subscription| subscription.id == id);
        subscribed || self.by_id.contains_key(id) || self.waiting.contains_key(id)
    }

    /// Whether the host takes requests that belong to none of its own.
    pub(crate) fn listens(&self) -> bool {
        self.initialized && self.opened == Some(Era::Legacy)
    }

    /// Only a legacy host hears of the progress of a task.
    fn remember_token(&mut self, ticket: Ticket, token: Bytes) {
        if self.opened == Some(Era::Legacy) {
            if self.tokens.len() >= TOKENS_LIMIT {
                self.tokens.pop_front();
            }
            self.tokens.push_back((ticket, token));
        }
    }

    fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.waiting.is_empty()
    }
}
