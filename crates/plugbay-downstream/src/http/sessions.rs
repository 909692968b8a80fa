//! The sessions of legacy hosts: their owners, their limits, and their lifetime.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hyper::{HeaderMap, StatusCode};
use plugbay_core::{
    fair::{Removable, gives_way},
    wire::Frame,
};
use tokio::time::Instant;

use super::{
    access::Caller,
    negotiate::single,
    reject::Rejection,
    session_key,
    shares::{Holder, Share},
    stream::EventStream,
};
use crate::{
    budget::{Budget, Reservation},
    outbox::Outbox,
    principal::mark,
    seal::Owner,
    session::Session,
};

pub(super) const SESSION: &str = "mcp-session-id";

/// A session that is unused for this long ends.
const IDLE: Duration = Duration::from_secs(3600);
/// Limit of streams of one host whose answers it has not fetched yet, as far as plugbay knows.
const STREAMS: usize = 64;
/// Bytes that may be kept for a host that may have lost the end of its answers.
const KEPT: usize = 1024 * 1024;
/// The stream that belongs to no request.
pub(super) const NOTIFICATIONS: u64 = 0;
/// From this revision on, hosts understand an empty event.
const PRIMES_SINCE: &str = "2025-11-25";

pub(super) struct Sessions {
    limit: usize,
    // A std mutex: held for look-ups, never across an await.
    table: Mutex<Table>,
}

type Table = HashMap<String, Arc<HttpSession>>;

/// A session with its HTTP streams and its share.
pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    pub(super) budget: Arc<Budget>,
    owner: Owner,
    share: Arc<Share>,
    notifications: Arc<EventStream>,
    state: Mutex<State>,
    _slot: Reservation,
}

struct State {
    used: Instant,
    streams: BTreeMap<u64, Arc<EventStream>>,
    next: u64,
}

impl Sessions {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, table: Mutex::default() }
    }

    /// Adds an opened session. Only its owner finds it by its id. If the caller has too many, its idle
    /// session that was unused longest ends. If there are too many in all, one of the caller with the most
    /// ends.
    pub(super) fn add(
        &self,
        id: String,
        caller: &Caller,
        session: Arc<Session>,
        budget: Arc<Budget>,
    ) -> Result<(), Rejection> {
        let share = caller.share();
        let mut table = self.lock();
        let ended = if !share.sessions.has_room() {
            let ended = take_oldest_idle(&mut table, share.holder);
            Some(ended.ok_or_else(|| share.reject(b"null", "this caller has too many sessions; end some"))?)
        } else if table.len() >= self.limit {
            let all = "there are too many sessions";
            let busy = || Rejection::busy(StatusCode::SERVICE_UNAVAILABLE, b"null", all);
            Some(take_of_most(&mut table, share.holder).ok_or_else(busy)?)
        } else {
            None
        };
        let outbox = Arc::clone(session.outbox());
        let notifications =
            EventStream::for_notifications(session.host_view(), NOTIFICATIONS, outbox, primes(&session));
        let state = Mutex::new(State { used: Instant::now(), streams: BTreeMap::new(), next: 1 });
        let (owner, share, slot) = (caller.owner(), Arc::clone(share), share.sessions.reserve(1));
        let http_session = HttpSession { session, budget, owner, share, notifications, state, _slot: slot };
        table.insert(id, Arc::new(http_session));
        drop(table);
        if let Some(ended) = ended {
            ended.share.report("it has too many sessions; the one that was unused longest has ended");
            ended.session.abandon();
        }
        Ok(())
    }

    /// Frees memory: first what the caller's sessions keep for hosts that may not come back, oldest first. If
    /// that is not enough, ends idle sessions that still hold memory, those that were unused longest first.
    pub(super) fn reclaim(&self, share: &Share) {
        let mut own: Vec<(String, Arc<HttpSession>)> = {
            let table = self.lock();
            let own = table.iter().filter(|(_, http_session)| http_session.share.holder == share.holder);
            own.map(|(id, http_session)| (id.clone(), Arc::clone(http_session))).collect()
        };
        own.sort_by_cached_key(|(_, http_session)| http_session.lock().used);
        for (_, http_session) in &own {
            if !share.memory.is_under_pressure() {
                return;
            }
            http_session.drop_waste();
        }
        for (id, http_session) in own {
            if share.memory.has_room() {
                return;
            }
            if http_session.budget.held() > 0 && http_session.idle_since().is_some() {
                self.lock().remove(&id);
                share.report("it leaves too much unread; its session that was unused longest has ended");
                http_session.session.abandon();
            }
        }
    }

    /// The session that a request names. The session of another caller counts as unknown.
    pub(super) fn find(&self, headers: &HeaderMap, caller: &Caller) -> Result<Arc<HttpSession>, Rejection> {
        let id = named(headers)?;
        let found = self.lock().get(id).filter(|http_session| http_session.owner == caller.owner()).cloned();
        let http_session = found.ok_or_else(unknown)?;
        let session = http_session.session.gateway().principal.session;
        if session_key::name(headers)?.is_some() && mark(&session_key::named(caller, headers)?) != session {
            let why = "X-Session-ID is not that of the initialize request; open another session for it";
            return Err(Rejection::new(StatusCode::BAD_REQUEST, why));
        }
        http_session.lock().used = Instant::now();
        http_session.session.sent_with(caller.account());
        Ok(http_session)
    }

    pub(super) fn remove(&self, headers: &HeaderMap, caller: &Caller) -> Result<(), Rejection> {
        let http_session = self.find(headers, caller)?;
        self.lock().remove(named(headers)?);
        http_session.session.abandon();
        Ok(())
    }

    /// Drops expired sessions and streams.
    pub(super) fn sweep(&self, now: Instant) {
        for expired in self.take_where(|http_session| http_session.is_over(now)) {
            expired.session.abandon();
        }
    }

    /// Ends these sessions, with their calls and streams.
    pub(super) fn revoke(&self, ends: impl Fn(&Session) -> bool) {
        for revoked in self.take_where(|http_session| ends(&http_session.session)) {
            revoked.session.revoke();
        }
    }

    /// Interrupts these sessions: their calls end and their streams break. Their callers can come back with
    /// fresh tokens.
    pub(super) fn pause(&self, ends: impl Fn(&Session) -> bool) -> Vec<Arc<Session>> {
        let all: Vec<Arc<HttpSession>> = self.lock().values().cloned().collect();
        let paused = all.into_iter().filter(|http_session| ends(&http_session.session));
        paused.map(|http_session| http_session.pause()).collect()
    }

    /// Takes sessions out of the table; they are ended outside its lock.
    fn take_where(&self, ends: impl Fn(&HttpSession) -> bool) -> Vec<Arc<HttpSession>> {
        self.lock().extract_if(|_, http_session| ends(http_session)).map(|(_, ended)| ended).collect()
    }

    pub(super) fn end(&self) {
        let all = std::mem::take(&mut *self.lock());
        for http_session in all.into_values() {
            http_session.session.close();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpSession {
    /// A stream for the messages of a request's sink. `sent` are those already taken from it.
    pub(super) fn stream(
        &self,
        sink: Arc<Outbox>,
        sent: std::collections::VecDeque<Frame>,
    ) -> Arc<EventStream> {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let stream = EventStream::new(number, sink, primes(&self.session), sent);
        state.make_room();
        state.streams.insert(number, Arc::clone(&stream));
        stream
    }

    pub(super) fn find_stream(&self, number: u64) -> Option<Arc<EventStream>> {
        if number == NOTIFICATIONS {
            return Some(Arc::clone(&self.notifications));
        }
        self.lock().streams.get(&number).cloned()
    }

    pub(super) fn notifications(&self) -> &Arc<EventStream> {
        &self.notifications
    }

    /// Whether a request may begin. To make room, messages kept for broken connections are dropped first.
    pub(super) fn has_room(&self) -> bool {
        if !self.budget.has_room() {
            self.drop_waste();
        }
        self.budget.has_room()
    }

    /// Drops fully sent streams, and notifications that nobody listens for.
    fn drop_waste(&self) {
        self.lock().streams.retain(|_, stream| stream.finished_bytes().is_none());
        self.session.outbox().drop_unheard();
    }

    fn pause(&self) -> Arc<Session> {
        self.session.pause();
        self.notifications.detach();
        self.lock().streams.values().for_each(|stream| stream.detach());
        Arc::clone(&self.session)
    }

    fn is_over(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let under_pressure = self.share.memory.is_under_pressure();
        state.streams.retain(|_, stream| !stream.is_abandoned(now, under_pressure));
        if self.is_busy(&state) {
            state.used = now;
        }
        now.duration_since(state.used) >= IDLE
    }

    /// When it was last used, unless it is in use.
    fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        (!self.is_busy(&state)).then_some(state.used)
    }

    fn is_busy(&self, state: &State) -> bool {
        self.session.in_flight() > 0 || self.notifications.is_attached() || !state.streams.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes room for a stream: drops fully sent ones first, oldest first; then those without a connection.
    fn make_room(&mut self) {
        let finished: Vec<(u64, usize)> = self
            .streams
            .values()
            .filter_map(|stream| Some((stream.number(), stream.finished_bytes()?)))
            .collect();
        let mut kept: usize = finished.iter().map(|(_, bytes)| bytes).sum();
        for (number, bytes) in finished {
            if kept <= KEPT && self.streams.len() < STREAMS {
                break;
            }
            kept -= bytes;
            self.streams.remove(&number);
        }
        if self.streams.len() >= STREAMS {
            let alone =
                self.streams.values().find(|stream| !stream.is_attached()).map(|stream| stream.number());
            alone.and_then(|number| self.streams.remove(&number));
        }
    }
}

/// Takes out the idle session of a caller that was unused longest.
fn take_oldest_idle(table: &mut Table, holder: Holder) -> Option<Arc<HttpSession>> {
    let own = table.iter().filter(|(_, http_session)| http_session.share.holder == holder);
    let idle = own.filter_map(|(id, http_session)| Some((http_session.idle_since()?, id)));
    let oldest = idle.min().map(|(_, id)| id.clone())?;
    table.remove(&oldest)
}

/// Takes out the idle session that was unused longest, of the caller that has the most.
fn take_of_most(table: &mut Table, newcomer: Holder) -> Option<Arc<HttpSession>> {
    let entries = table.iter().map(|(id, http_session)| {
        let idle = http_session.idle_since().map(|used| Removable { key: id, used });
        (http_session.share.holder, idle)
    });
    let oldest = gives_way(newcomer, entries).cloned()?;
    table.remove(&oldest)
}

fn primes(session: &Session) -> bool {
    session.version().is_some_and(|version| version >= PRIMES_SINCE)
}

fn named(headers: &HeaderMap) -> Result<&str, Rejection> {
    let why = "name your session in one Mcp-Session-Id header, or open one with initialize";
    let bad = || Rejection::new(StatusCode::BAD_REQUEST, why);
    single(headers, SESSION).map_err(|_| bad())?.ok_or_else(bad)
}

fn unknown() -> Rejection {
    Rejection::new(StatusCode::NOT_FOUND, "there is no such session any more; open one with initialize")
}

/// The id of a new session: 192 bits from the system.
pub(super) fn random_id() -> Result<String, Rejection> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(|_| {
        Rejection::new(StatusCode::INTERNAL_SERVER_ERROR, "the system gives no random numbers")
    })?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
