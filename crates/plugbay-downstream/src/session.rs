//! One host: what it has asked, what it has been told, and what waits to be sent to it.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use plugbay_core::{
    era::{self, Era},
    exchange::{Answer, Caller, Ticket},
    name::ServerName,
    surface::Listing,
    wire::{Draft, Frame, Span},
};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use crate::{
    gateway::Gateway,
    outbox::Outbox,
    respond::{self, Refusal},
};

#[derive(Debug)]
pub(crate) struct Session {
    gateway: Gateway,
    outbox: Outbox,
    // A std mutex: held for table look-ups, never across an await. Servers answer from their own tasks.
    state: Mutex<State>,
    /// Told when the last request in flight has ended.
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    opened: Option<Era>,
    /// A legacy host takes notifications from then on.
    initialized: bool,
    calls: FxHashMap<Ticket, HostCall>,
    by_id: HashMap<Bytes, Ticket>,
    /// The ids of requests that wait for the catalogue.
    waiting: HashSet<Bytes>,
    subscriptions: Vec<Subscription>,
    /// The listing that the host has, or has been told to fetch.
    seen: Option<Arc<Listing>>,
}

/// A call in flight as its host knows it.
#[derive(Debug)]
struct HostCall {
    id: Bytes,
    progress_token: Option<Bytes>,
    era: Era,
    server: ServerName,
}

#[derive(Debug)]
struct Subscription {
    id: Bytes,
    tools: bool,
}

impl Session {
    pub(crate) fn new(gateway: Gateway) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self { gateway, outbox: Outbox::default(), state, idle: Notify::new() })
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    pub(crate) fn send(&self, frame: Frame) {
        self.outbox.push(frame);
    }

    // --- opening

    pub(crate) fn opened_legacy(&self) {
        self.lock().opened = Some(Era::Legacy);
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
    pub(crate) fn register(
        &self,
        ticket: Ticket,
        id: Bytes,
        progress_token: Option<Bytes>,
        era: Era,
        server: ServerName,
    ) -> bool {
        let mut state = self.lock();
        if state.in_use(&id) {
            return false;
        }
        state.by_id.insert(id.clone(), ticket);
        state.calls.insert(ticket, HostCall { id, progress_token, era, server });
        true
    }

    /// The host takes back a request; by the protocol it gets no answer.
    pub(crate) fn cancel(&self, id: &[u8], notification: Draft) {
        let mut state = self.lock();
        state.subscriptions.retain(|subscription| subscription.id != id);
        if state.waiting.remove(id) {
            self.tell_if_idle(&state);
        }
        let Some(ticket) = state.by_id.get(id).copied() else { return };
        let call = self.forget(&mut state, ticket);
        drop(state);
        if let Some(call) = call {
            self.gateway.servers.cancel(&call.server, ticket, notification);
        }
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
    pub(crate) fn wait(&self, id: Bytes) -> bool {
        let mut state = self.lock();
        !state.in_use(&id) && state.waiting.insert(id)
    }

    /// The request is done with waiting. `false`: it was taken back, or the host has gone.
    pub(crate) fn waited(&self, id: &Bytes) -> bool {
        self.lock().waiting.remove(id)
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

    // --- the list of tools

    pub(crate) fn has_seen(&self, listing: Arc<Listing>) {
        self.lock().seen = Some(listing);
        self.gateway.first_list.notify_one();
        self.catalog_changed(); // while the answer was being made
    }

    /// `false`: the id is in use.
    pub(crate) fn subscribe(&self, id: Bytes, tools: bool) -> bool {
        let mut state = self.lock();
        if state.in_use(&id) {
            return false;
        }
        self.outbox.push(respond::acknowledged(&id, tools));
        state.subscriptions.push(Subscription { id, tools });
        drop(state);
        self.catalog_changed(); // since the host listed
        true
    }

    /// Tells the host to list again, if what it has seen is not what it would see now.
    pub(crate) fn catalog_changed(&self) {
        let now = self.gateway.snapshot().listing;
        let mut state = self.lock();
        // A host that has not listed yet will see the change when it does.
        if state.seen.as_ref().is_none_or(|seen| seen.tools == now.tools) {
            return;
        }
        let legacy = state.initialized && state.opened == Some(Era::Legacy);
        let modern = state.subscriptions.iter().filter(|subscription| subscription.tools);
        let modern = modern.map(|subscription| Some(&subscription.id[..]));
        let mut told = false;
        for subscription in legacy.then_some(None).into_iter().chain(modern) {
            self.outbox.push(respond::tools_changed(subscription));
            told = true;
        }
        // Whoever does not listen yet hears of it when it does.
        if told {
            state.seen = Some(now);
        }
    }

    /// The end: what is still owed is refused, subscriptions are closed in good order, and the outbox
    /// takes no more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.by_id.clear();
        let calls = std::mem::take(&mut state.calls).into_values().map(|call| call.id);
        for id in calls.chain(std::mem::take(&mut state.waiting)) {
            self.outbox.push(respond::error(&id, &Refusal::Ending));
        }
        for subscription in std::mem::take(&mut state.subscriptions) {
            self.outbox.push(respond::subscription_ended(&subscription.id));
        }
        drop(state);
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
        subscribed || self.by_id.contains_key(id) || self.waiting.contains(id)
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
                let completion = bridged.then(|| era::completion(&message, &head)).flatten();
                head.readdressed(&message, &call.id, completion)
            }
            Answer::Failed(error) => respond::error(&call.id, &Refusal::Call(error)),
        };
        self.outbox.push(frame);
    }

    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        self.outbox.poll_ahead(context)
    }

    fn progressed(&self, ticket: Ticket, notification: Bytes, token: Span) {
        let state = self.lock();
        // A server that reports progress nobody asked for is not passed on.
        let Some(wanted) = state.calls.get(&ticket).and_then(|call| call.progress_token.as_ref()) else {
            return;
        };
        self.outbox.push_if_room(Frame::edited(&notification, &[(token, wanted)]));
    }
}
