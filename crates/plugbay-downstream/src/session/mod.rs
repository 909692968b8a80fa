//! The session of one host: its requests in flight, its subscriptions, and its outbox.

mod caller;
mod cancel_on_drop;
mod declared;
mod ending;
mod lists;
mod notifications;
mod requests;
mod server_requests;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::AtomicBool},
};

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    declaration::Declaration,
    era::Era,
    exchange::{Caller, Ticket},
    extension::Extensions,
    level::Level,
    reference::Handle,
    surface::Snapshot,
    wire::Draft,
};
use rustc_hash::FxHashMap;
use tokio::sync::{Notify, oneshot};

pub(crate) use self::{
    cancel_on_drop::CancelOnDrop, lists::AwaitedChange, requests::Cancelled, server_requests::HostResult,
};
use self::{
    requests::{InFlight, Requests},
    server_requests::PendingRequest,
};
use crate::{
    connected_hosts::ClientInfo,
    gateway::Gateway,
    host_view::{HostView, ListChangeListener, Persistence},
    lists::{KnownLists, ListFilter},
    message::Request,
    outbox::Outbox,
    principal::{Account, CountedSession},
    refusal::Refusal,
    respond,
    results::{ResultOwner, Store, StoredResult},
    seal::Owner,
    subscriptions::ItemSubscription,
};

/// Limit of the progress tokens kept for tasks.
const TOKENS_LIMIT: usize = 256;
/// Longer progress tokens are not kept.
const LONGEST_TOKEN: usize = 1024;

/// The session of one host, or one request of a modern host over HTTP.
#[derive(Debug)]
pub(crate) struct Session {
    me: Weak<Self>,
    gateway: Gateway,
    caller: Owner,
    /// The caller, bound to this session.
    owner: Owner,
    host_view: Arc<HostView>,
    kind: SessionKind,
    /// Takes messages that belong to no request.
    outbox: Arc<Outbox>,
    // A std mutex: held for table look-ups, never across an await. Servers answer from their own actors.
    state: Mutex<State>,
    /// The host's declaration. It has a lock of its own, because snapshots are taken while other locks are
    /// held.
    declared: Mutex<Option<Arc<Declaration>>>,
    /// Notified when the last request in flight has ended.
    idle: Notify,
    /// Whether new requests are rejected.
    draining: AtomicBool,
    _counted: CountedSession,
}

/// Whether the session is the only one, one of many, or one request of a modern host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionKind {
    /// No other host shares the session's servers.
    OnlyHost,
    /// One of many hosts at a daemon; its stream is always open.
    Window,
    OneOfMany,
    /// One request of a modern host over HTTP.
    SingleRequest,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    opened: Option<Era>,
    /// The protocol version that was negotiated with a legacy host.
    version: Option<&'static str>,
    /// Whether a legacy host has sent `notifications/initialized` and accepts notifications.
    initialized: bool,
    /// A legacy host on stdio listens for list changes; over HTTP it needs a stream for that.
    listener: Option<ListChangeListener>,
    /// The capabilities that a legacy host declared in `initialize`.
    pub(crate) client_capabilities: ClientCapabilities,
    extensions: Extensions,
    /// Requests that wait for their answers.
    requests: Requests,
    /// Requests to a legacy host that it has not answered.
    server_requests: FxHashMap<Ticket, PendingRequest>,
    subscriptions: Vec<Subscription>,
    item_subscriptions: Vec<ItemSubscription>,
    /// The log level that a legacy host has set.
    level: Option<Level>,
    /// Whether the host's log level is in the host registry.
    wants_log: bool,
    /// The progress tokens of calls that may have begun a task, oldest first: they outlive those calls.
    tokens: VecDeque<(Ticket, Bytes)>,
    known_lists: KnownLists,
    /// Changed lists that answers of calls wait for.
    list_changes: Vec<AwaitedChange>,
}

/// A `subscriptions/listen` request that is open.
#[derive(Debug)]
struct Subscription {
    id: Bytes,
    filter: ListFilter,
    sink: Arc<Outbox>,
    _listener: Option<ListChangeListener>,
}

impl Session {
    pub(crate) fn new(mut gateway: Gateway, outbox: Outbox) -> Arc<Self> {
        gateway.principal = gateway.principal.marked();
        Self::of(
            Owner::default(),
            SessionKind::OnlyHost,
            gateway,
            Arc::new(HostView::new(Persistence::Session)),
            outbox,
        )
    }

    /// A session for one of many hosts at a daemon.
    pub(crate) fn window(owner: Owner, mut gateway: Gateway, outbox: Outbox) -> Arc<Self> {
        gateway.principal = gateway.principal.marked();
        Self::of(owner, SessionKind::Window, gateway, Arc::new(HostView::new(Persistence::Session)), outbox)
    }

    /// A session for one of many legacy hosts.
    pub(crate) fn shared(owner: Owner, gateway: Gateway, outbox: Outbox) -> Arc<Self> {
        Self::of(
            owner,
            SessionKind::OneOfMany,
            gateway,
            Arc::new(HostView::new(Persistence::Session)),
            outbox,
        )
    }

    fn of(
        caller: Owner,
        kind: SessionKind,
        gateway: Gateway,
        host_view: Arc<HostView>,
        outbox: Outbox,
    ) -> Arc<Self> {
        let counted = CountedSession::new(&gateway.principal.sessions);
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            caller,
            owner: gateway.principal.key.as_ref().map_or(caller, |session| caller.within(session)),
            gateway,
            host_view,
            kind,
            outbox: Arc::new(outbox),
            state: Mutex::default(),
            declared: Mutex::default(),
            idle: Notify::new(),
            draining: AtomicBool::new(false),
            _counted: counted,
        })
    }

    /// A session for one request of a modern host. The host is assumed to know the current lists from other
    /// sessions.
    pub(crate) fn stateless(
        owner: Owner,
        gateway: Gateway,
        host_view: Arc<HostView>,
        outbox: Outbox,
    ) -> Arc<Self> {
        let session = Self::of(owner, SessionKind::SingleRequest, gateway, host_view, outbox);
        let known_lists = KnownLists::all(&session.snapshot());
        session.lock().known_lists = known_lists;
        session.opened_modern();
        session
    }

    /// A session for one call through the plain API. Its client cannot answer requests, so it has no
    /// capabilities and is not in the host registry. For servers it is a separate host, and it never gets
    /// another host's requests.
    pub(crate) fn plain(owner: Owner, gateway: Gateway, outbox: Outbox) -> Arc<Self> {
        let host_view = Arc::new(HostView::new(Persistence::Plain));
        let session = Self::of(owner, SessionKind::OneOfMany, gateway, host_view, outbox);
        session.lock().opened = Some(Era::Legacy);
        session
    }

    /// The catalog as this host sees it.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let now = self.gateway.snapshots.borrow();
        let declared = || self.declared();
        match self.gateway.principal.narrowed(&now) {
            Some(granted) => self.host_view.snapshot(&granted, declared),
            None => self.host_view.snapshot(&now, declared),
        }
    }

    pub(crate) fn host_view(&self) -> &Arc<HostView> {
        &self.host_view
    }

    /// Takes the host's `clientInfo`, and registers the host as connected.
    pub(crate) fn identify(&self, request: &Request, era: Era) {
        let layout = Arc::clone(&self.gateway.snapshots.borrow().layout);
        let info = ClientInfo::of(request, era);
        self.host_view.identify(info.client(), &layout, || (self.gateway.usage.learned)());
        self.host_view.register(&info, &self.gateway.connected_hosts);
    }

    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Takes the account of the host's latest access token. If its scopes differ, so may the lists.
    pub(crate) fn sent_with(&self, account: &Arc<Account>) {
        if account.grant.scopes.is_some() && self.gateway.principal.account.replace(account) {
            self.catalog_changed();
        }
    }

    pub(crate) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// The caller, the same in all its sessions.
    pub(crate) fn caller(&self) -> Owner {
        self.caller
    }

    /// The owner of the session's calls and tasks.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// The owner of the session's stored results.
    pub(crate) fn result_owner(&self) -> ResultOwner {
        ResultOwner { caller: self.caller, session: self.gateway.principal.session }
    }

    /// The store, for the results of this session.
    pub(crate) fn result_store(&self) -> Store {
        Store { results: Arc::clone(&self.gateway.results), owner: self.result_owner() }
    }

    /// A stored result of this session.
    pub(crate) fn stored_result(&self, handle: Handle) -> Option<StoredResult> {
        self.gateway.results.get(handle, self.result_owner())
    }

    /// Whether no other host shares the servers.
    pub(crate) fn is_alone(&self) -> bool {
        self.kind == SessionKind::OnlyHost
    }

    /// Whether notifications can reach the host at any time.
    pub(crate) fn is_always_connected(&self) -> bool {
        matches!(self.kind, SessionKind::OnlyHost | SessionKind::Window)
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
        self.host_view.set_declared(client_capabilities.sampling_tools, extensions.have_apps());
        self.gateway.host_registry.joined(self.me.clone());
        self.gateway.host_registry.reads(self.me.clone());
        self.add_capabilities(client_capabilities, extensions);
        self.gateway.host_events.opened.notify_one();
    }

    pub(crate) fn has_roots(&self) -> bool {
        self.client_capabilities().roots
    }

    /// The protocol version negotiated with a legacy host.
    pub(crate) fn version(&self) -> Option<&'static str> {
        self.lock().version
    }

    /// Marks the session as modern, unless it is already open. Returns whether it did.
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
        state.listener = self.is_always_connected().then(|| self.host_view.listen());
        if state.listens() && state.level.is_none_or(|level| level <= Level::Warning) {
            self.outbox.set_notice(Some(respond::dropped));
        }
        drop(state);
        self.catalog_changed(); // it may have changed since the host listed
    }

    pub(crate) fn client_capabilities(&self) -> ClientCapabilities {
        self.lock().client_capabilities
    }

    // --- calls

    /// Notes that a request of this length is in the table of calls.
    pub(crate) fn reserve(&self, id: Bytes, ticket: Ticket, length: usize) -> Result<(), Refusal> {
        let mut state = self.lock();
        state.check_id(&id)?;
        state.requests.insert(id, length, InFlight::Call(ticket))
    }

    /// Takes the request out, because it gets its answer now. `false` if it was cancelled meanwhile.
    pub(crate) fn release(&self, id: &Bytes) -> bool {
        self.lock().requests.remove(id).is_some()
    }

    /// Keeps the progress token of a call that may have created a task. Only legacy hosts get progress of tasks.
    pub(crate) fn remember_token(&self, ticket: Ticket, token: &[u8]) {
        let mut state = self.lock();
        if state.opened == Some(Era::Legacy) && token.len() <= LONGEST_TOKEN {
            if state.tokens.len() >= TOKENS_LIMIT {
                state.tokens.pop_front();
            }
            // A copy: the slice would keep the whole request.
            state.tokens.push_back((ticket, Bytes::copy_from_slice(token)));
        }
    }

    /// Cancels a request, because the host wants it. By the protocol it gets no answer.
    pub(crate) fn cancel(&self, id: &[u8], notification: Draft) {
        self.unsubscribe_items(|watched| watched.subscription.as_deref() == Some(id));
        let mut state = self.lock();
        state.subscriptions.retain(|subscription| subscription.id != id);
        let cancelled = state.requests.remove(id);
        drop(state);
        if let Some(InFlight::Call(ticket)) = cancelled {
            self.gateway.suspended.cancel(&self.gateway, ticket, notification);
        }
        self.notify_if_idle();
    }

    fn unregister(&self) {
        // Only legacy hosts are in the registry.
        if self.version().is_some() {
            self.gateway.host_registry.left(&(self.me.clone() as Weak<dyn Caller>));
        }
        if self.lock().wants_log {
            self.wants_log(None);
        }
    }

    /// Sets the host's log level in the registry; `None` removes it. Servers are notified of a change.
    pub(crate) fn wants_log(&self, level: Option<Level>) {
        self.lock().wants_log = level.is_some();
        if self.gateway.host_registry.wants_log(&(self.me.clone() as Weak<dyn Caller>), level) {
            self.gateway.servers.log_level_changed();
        }
    }

    /// The number of requests that wait for their answers.
    pub(crate) fn in_flight(&self) -> usize {
        self.lock().requests.len()
    }

    /// Waits until no request is in flight.
    pub(crate) async fn calls_ended(&self) {
        loop {
            let idle = self.idle.notified();
            if self.lock().requests.is_empty() {
                return;
            }
            idle.await;
        }
    }

    /// Notes that a request of this length waits for something other than a server.
    pub(crate) fn wait(&self, id: Bytes, sink: Arc<Outbox>, length: usize) -> Result<Cancelled, Refusal> {
        let mut state = self.lock();
        state.check_id(&id)?;
        let (interest, cancelled) = oneshot::channel();
        state.requests.insert(id, length, InFlight::Waiting { sink, _interest: interest })?;
        Ok(cancelled)
    }

    /// Wakes `calls_ended` if no request is in flight.
    pub(crate) fn notify_if_idle(&self) {
        if self.lock().requests.is_empty() {
            self.idle.notify_waiters();
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check_id(&self, id: &Bytes) -> Result<(), Refusal> {
        if self.in_use(id) { Err(Refusal::IdInUse) } else { Ok(()) }
    }

    fn in_use(&self, id: &Bytes) -> bool {
        self.requests.contains(id) || self.subscriptions.iter().any(|subscription| subscription.id == id)
    }

    /// Whether a legacy host accepts messages that belong to none of its requests.
    fn listens(&self) -> bool {
        self.initialized && self.opened == Some(Era::Legacy)
    }
}
