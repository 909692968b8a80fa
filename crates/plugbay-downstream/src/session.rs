//! One host: what it has asked, what it has been told, and what waits to be sent to it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use plugbay_core::{
    era::{self, Era},
    exchange::{Answer, Caller, Ticket},
    name::ServerName,
    surface::Snapshot,
    wire::{Draft, Frame, Span},
};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use crate::{
    gateway::Gateway,
    lists::{Kind, Seen, Wanted},
    outbox::Outbox,
    respond::{self, Refusal},
};

#[derive(Debug)]
pub(crate) struct Session {
    gateway: Gateway,
    /// For what belongs to no request.
    outbox: Arc<Outbox>,
    // A std mutex: held for table look-ups, never across an await. Servers answer from their own tasks.
    state: Mutex<State>,
    /// Told when the last request in flight has ended.
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    opened: Option<Era>,
    /// What was agreed upon with a legacy host.
    version: Option<&'static str>,
    /// A legacy host takes notifications from then on.
    initialized: bool,
    calls: FxHashMap<Ticket, HostCall>,
    by_id: HashMap<Bytes, Ticket>,
    /// The requests that wait for the catalogue, and where their answers go.
    waiting: HashMap<Bytes, Arc<Outbox>>,
    subscriptions: Vec<Subscription>,
    seen: Seen,
}

/// A call in flight as its host knows it.
#[derive(Debug)]
pub(crate) struct HostCall {
    pub(crate) id: Bytes,
    pub(crate) progress_token: Option<Bytes>,
    pub(crate) era: Era,
    pub(crate) server: ServerName,
    /// A modern result of this kind says how long it may be kept.
    pub(crate) cacheable: bool,
    pub(crate) sink: Arc<Outbox>,
}

#[derive(Debug)]
struct Subscription {
    id: Bytes,
    wanted: Wanted,
    sink: Arc<Outbox>,
}

impl Session {
    pub(crate) fn new(gateway: Gateway, outbox: Outbox) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self { gateway, outbox: Arc::new(outbox), state, idle: Notify::new() })
    }

    /// For one request of a modern host. What the host has seen was told in other such sessions, so
    /// it is taken to have seen what there is now.
    pub(crate) fn stateless(gateway: Gateway, outbox: Outbox) -> Arc<Self> {
        let seen = Seen::all(&gateway.snapshot());
        let session = Self::new(gateway, outbox);
        session.lock().seen = seen;
        session.opened_modern();
        session
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(crate) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    // --- opening

    pub(crate) fn opened_legacy(&self, version: &'static str) {
        let mut state = self.lock();
        state.opened = Some(Era::Legacy);
        state.version = Some(version);
    }

    /// The revision that was agreed upon with a legacy host.
    pub(crate) fn version(&self) -> Option<&'static str> {
        self.lock().version
    }

    pub(crate) fn opened_modern(&self) {
        self.lock().opened.get_or_insert(Era::Modern);
    }

    /// Whether the host has spoken the modern protocol, and never the legacy one.
    pub(crate) fn is_modern(&self) -> bool {
        self.lock().opened == Some(Era::Modern)
    }

    pub(crate) fn initialized(&self) {
        self.lock().initialized = true;
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
        state.calls.insert(ticket, call);
        true
    }

    /// The host takes back a request; by the protocol it gets no answer.
    pub(crate) fn cancel(&self, id: &[u8], notification: Draft) {
        let mut state = self.lock();
        state.subscriptions.retain(|subscription| subscription.id != id);
        if let Some(sink) = state.waiting.remove(id) {
            sink.taken_back();
            self.tell_if_idle(&state);
        }
        let Some(ticket) = state.by_id.get(id).copied() else { return };
        let call = self.forget(&mut state, ticket);
        drop(state);
        if let Some(call) = call {
            call.sink.taken_back();
            self.gateway.servers.cancel(&call.server, ticket, notification);
        }
    }

    /// The host has gone: everything that it has asked for is taken back.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.by_id.clear();
        state.waiting.clear();
        state.subscriptions.clear();
        let calls = std::mem::take(&mut state.calls);
        self.tell_if_idle(&state);
        drop(state);
        for (ticket, call) in calls {
            call.sink.taken_back();
            self.gateway.servers.cancel(&call.server, ticket, respond::host_has_gone());
        }
        self.outbox.close();
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

    /// A request waits for the catalogue. `false`: its id is in use.
    pub(crate) fn wait(&self, id: Bytes, sink: Arc<Outbox>) -> bool {
        let mut state = self.lock();
        !state.in_use(&id) && state.waiting.insert(id, sink).is_none()
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
        }
        self.catalog_changed(); // while the answer was being made
    }

    /// `false`: the id is in use.
    pub(crate) fn subscribe(&self, id: Bytes, wanted: Wanted, sink: Arc<Outbox>) -> bool {
        let mut state = self.lock();
        if state.in_use(&id) {
            return false;
        }
        sink.tell(respond::acknowledged(&id, wanted));
        state.subscriptions.push(Subscription { id, wanted, sink });
        drop(state);
        self.catalog_changed(); // since the host listed
        true
    }

    /// Tells the host to list again, where what it has seen is not what it would see now.
    pub(crate) fn catalog_changed(&self) {
        let now = self.gateway.snapshot();
        let mut state = self.lock();
        for kind in Kind::ALL.into_iter().filter(|kind| state.seen.differs(&now, *kind)).collect::<Vec<_>>() {
            let legacy = state.initialized && state.opened == Some(Era::Legacy);
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
        }
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
        let mut state = self.lock();
        state.by_id.clear();
        let calls = std::mem::take(&mut state.calls).into_values().map(|call| (call.id, call.sink));
        for (id, sink) in calls.chain(std::mem::take(&mut state.waiting)) {
            sink.answer(respond::error(&id, &Refusal::Ending));
        }
        drop(state);
        self.end_subscriptions();
        self.outbox.close();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn in_use(&self, id: &Bytes) -> bool {
        let subscribed = self.subscriptions.iter().any(|subscription| subscription.id == id);
        subscribed || self.by_id.contains_key(id) || self.waiting.contains_key(id)
    }

    fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.waiting.is_empty()
    }
}

impl Caller for Session {
    fn answered(&self, ticket: Ticket, answer: Answer) {
        let mut state = self.lock();
        let Some(call) = self.forget(&mut state, ticket) else { return };
        drop(state);
        let frame = match answer {
            Answer::Response { message, head, era } => {
                let bridged = call.era == Era::Modern && era == Era::Legacy;
                let completion = bridged.then(|| era::completion(&message, &head, call.cacheable)).flatten();
                head.readdressed(&message, &call.id, completion)
            }
            Answer::Failed(error) => respond::error(&call.id, &Refusal::Call(error)),
        };
        if call.sink.has_room_for(frame.len()) {
            call.sink.answer(frame);
        } else {
            call.sink.answer(respond::error(&call.id, &Refusal::TooMuchUnread));
        }
    }

    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        // Where every request has an outbox of its own this one stays empty, and so a server that many
        // hosts share is not held up for one of them.
        self.outbox.poll_ahead(context)
    }

    fn progressed(&self, ticket: Ticket, notification: Bytes, token: Span) {
        let state = self.lock();
        // A server that reports progress nobody asked for is not passed on.
        let Some(call) = state.calls.get(&ticket) else { return };
        let Some(wanted) = &call.progress_token else { return };
        call.sink.tell_if_room(Frame::edited(&notification, &[(token, wanted)]));
    }
}
