//! Results that were too large for their hosts. They are kept for a while, by handle, for one session of one
//! caller.

mod body;
pub(crate) mod parts;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::{
    fair::{Removable, gives_way},
    filter::{FilterFuture, Filters},
    observe::SessionMark,
    reference::Handle,
};
use tokio::time::{Instant, sleep_until};

use self::body::Body;
use crate::seal::Owner;

/// A result that is unused for this long is dropped.
pub(crate) const KEPT: Duration = Duration::from_secs(30 * 60);

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Limits of the store.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Bytes of all sessions together, and of one session.
    bytes: usize,
    bytes_of_one: usize,
    /// Results of all sessions together, and of one session.
    results: usize,
    results_of_one: usize,
    /// Bytes in memory; further results are in files.
    memory: usize,
    /// Results in files: each takes a descriptor.
    files: usize,
}

const LIMITS: Limits = Limits {
    bytes: 512 * MIB,
    bytes_of_one: 128 * MIB,
    results: 4096,
    results_of_one: 1024,
    memory: 32 * MIB,
    files: 128,
};

/// The stored results of all sessions.
pub struct Results {
    // A std mutex: held for a look-up, never across an await, and never while a file is read or written.
    state: Mutex<State>,
    /// The folder for files. They have no name, so nothing is left behind.
    folder: PathBuf,
    limits: Limits,
    filters: Arc<dyn Filters>,
}

/// A session of a caller. Two sessions of one caller share nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ResultOwner {
    pub(crate) caller: Owner,
    pub(crate) session: SessionMark,
}

#[derive(Default)]
struct State {
    entries: HashMap<Handle, Entry>,
    totals: Totals,
    /// A task waits for the next result to expire.
    sweeps: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    bytes: usize,
    memory: usize,
    files: usize,
}

struct Entry {
    owner: ResultOwner,
    used: Instant,
    stored: StoredResult,
}

/// A stored result. Cheap to clone; it lives as long as somebody reads it.
#[derive(Debug, Clone)]
pub(crate) struct StoredResult {
    /// The tool that returned it, by the name that the host knows.
    pub(crate) tool: Arc<str>,
    body: Body,
}

impl StoredResult {
    /// The result as its server sent it, as raw JSON. May read a file, so not for the event loop.
    pub(crate) fn read(&self) -> io::Result<Bytes> {
        self.body.read()
    }

    pub(crate) fn len(&self) -> usize {
        self.body.len()
    }
}

impl Results {
    /// Files are made in `folder`; `filters` runs jq over results.
    pub fn new(folder: impl Into<PathBuf>, filters: Arc<dyn Filters>) -> Self {
        Self { state: Mutex::default(), folder: folder.into(), limits: LIMITS, filters }
    }

    /// The values of a jq filter over one JSON text.
    pub(crate) fn filter(&self, filter: String, input: Bytes) -> FilterFuture<'_> {
        self.filters.run(filter, input)
    }

    /// A handle that nobody can guess; `None` if the system gives no random numbers.
    pub(crate) fn new_handle() -> Option<Handle> {
        let mut handle = Handle([0; 16]);
        getrandom::fill(&mut handle.0).ok()?;
        Some(handle)
    }

    /// Stores a result. To make room, drops older ones of the same session, then older ones of the session
    /// that has the most. May write a file, so not for the event loop.
    pub(crate) fn put(
        self: &Arc<Self>,
        handle: Handle,
        owner: ResultOwner,
        tool: Arc<str>,
        result: &[u8],
    ) -> io::Result<()> {
        if result.len() > self.limits.bytes_of_one {
            return Err(io::Error::other("the result is too large to be kept"));
        }
        // Two results stored at the same time may exceed the limit a little.
        let in_memory = self.make_room(owner, result.len());
        let body = if in_memory { Body::in_memory(result) } else { Body::in_file(result, &self.folder)? };
        let mut state = self.lock();
        state.totals.add(&body);
        state
            .entries
            .insert(handle, Entry { owner, used: Instant::now(), stored: StoredResult { tool, body } });
        if !std::mem::replace(&mut state.sweeps, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
        Ok(())
    }

    /// Makes room for a result of this length. Returns whether it fits into memory; otherwise it goes into a
    /// file.
    fn make_room(&self, owner: ResultOwner, length: usize) -> bool {
        let mut state = self.lock();
        state.forget_expired(Instant::now());
        state.make_room(owner, length, &self.limits);
        state.totals.memory + length <= self.limits.memory
    }

    /// The result of this handle, if it belongs to this session. This prolongs its life.
    pub(crate) fn get(&self, handle: Handle, owner: ResultOwner) -> Option<StoredResult> {
        let mut state = self.lock();
        state.forget_expired(Instant::now());
        let entry = state.entries.get_mut(&handle).filter(|entry| entry.owner == owner)?;
        entry.used = Instant::now();
        Some(entry.stored.clone())
    }

    /// Forgets one result.
    pub(crate) fn remove(&self, handle: Handle) {
        self.lock().remove(handle);
    }

    /// Forgets the results of a session that has ended.
    pub(crate) fn forget(&self, owner: ResultOwner) {
        self.lock().remove_all(|entry| entry.owner == owner);
    }

    /// When the next result expires; `None` ends the sweep.
    fn next_expiry(&self) -> Option<Instant> {
        let mut state = self.lock();
        state.forget_expired(Instant::now());
        let next = state.entries.values().map(|entry| entry.used + KEPT).min();
        state.sweeps = next.is_some();
        next
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The store, for the results of one session.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) results: Arc<Results>,
    pub(crate) owner: ResultOwner,
}

impl Store {
    /// Stores a result; `None` if that failed.
    pub(crate) fn put(&self, handle: Handle, tool: &Arc<str>, result: &[u8]) -> Option<()> {
        let put = self.results.put(handle, self.owner, Arc::clone(tool), result);
        put.inspect_err(|error| tracing::warn!("a result of {tool} is not kept: {error}")).ok()
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        write!(f, "Results({}, {:?})", state.entries.len(), state.totals)
    }
}

/// Drops results when they expire, until there are none.
async fn sweep(results: Weak<Results>) {
    while let Some(next) = results.upgrade().and_then(|results| results.next_expiry()) {
        sleep_until(next).await;
    }
}

impl State {
    fn remove(&mut self, handle: Handle) {
        if let Some(entry) = self.entries.remove(&handle) {
            self.totals.subtract(&entry.stored.body);
        }
    }

    fn remove_all(&mut self, is_out: impl Fn(&Entry) -> bool) {
        let Self { entries, totals, .. } = self;
        entries.retain(|_, entry| {
            let out = is_out(entry);
            if out {
                totals.subtract(&entry.stored.body);
            }
            !out
        });
    }

    fn forget_expired(&mut self, now: Instant) {
        self.remove_all(|entry| now.duration_since(entry.used) >= KEPT);
    }

    /// Drops results until one of this length fits.
    fn make_room(&mut self, owner: ResultOwner, length: usize, limits: &Limits) {
        while self.is_full_for_one(owner, length, limits) {
            let own = self.entries.iter().filter(|(_, entry)| entry.owner == owner);
            let Some((handle, _)) = own.min_by_key(|(_, entry)| entry.used) else { break };
            self.remove(*handle);
        }
        while self.is_full(length, limits) {
            let entries = self.entries.iter();
            let entries = entries
                .map(|(handle, entry)| (entry.owner, Some(Removable { key: *handle, used: entry.used })));
            let Some(handle) = gives_way(owner, entries) else { break };
            self.remove(handle);
        }
    }

    fn is_full_for_one(&self, owner: ResultOwner, length: usize, limits: &Limits) -> bool {
        let own = self.entries.values().filter(|entry| entry.owner == owner);
        let (count, bytes) =
            own.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.stored.len()));
        count >= limits.results_of_one || bytes + length > limits.bytes_of_one
    }

    fn is_full(&self, length: usize, limits: &Limits) -> bool {
        self.entries.len() >= limits.results
            || self.totals.bytes + length > limits.bytes
            || self.totals.memory + length > limits.memory && self.totals.files >= limits.files
    }
}

impl Totals {
    fn add(&mut self, body: &Body) {
        self.bytes += body.len();
        if body.is_file() { self.files += 1 } else { self.memory += body.len() }
    }

    fn subtract(&mut self, body: &Body) {
        self.bytes -= body.len();
        if body.is_file() { self.files -= 1 } else { self.memory -= body.len() }
    }
}

/// The error for a handle that is unknown in this session. It does not reveal whether another session has it.
pub(crate) fn no_result(handle: Handle) -> String {
    let minutes = KEPT.as_secs() / 60;
    format!(
        "there is no result {handle} in this session. Results are kept for {minutes} minutes after their last use, and \
         are gone when plugbay has restarted. To get it again, make the call that gave it again"
    )
}
