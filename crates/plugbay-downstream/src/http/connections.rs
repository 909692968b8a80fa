//! The open connections: how many there may be, and which idle one gives way to a new one.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use hyper::body::{Body as HttpBody, Frame as BodyFrame, SizeHint};
use plugbay_core::fair::{Removable, gives_way};
use tokio::{sync::Notify, time::Instant};

use super::{
    listen::Stream,
    reject::Rejection,
    reply::Body,
    shares::{Holder, Share},
};
use crate::budget::{BudgetOfConnection, Reservation};

/// The answer to a connection that is not accepted.
const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
    content-type: text/plain\r\ncontent-length: 48\r\n\r\nplugbay has no room for another connection: wait";

pub(super) struct Connections {
    limit: usize,
    // A std mutex: held for look-ups, never across an await.
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    open: BTreeMap<u64, Open>,
}

struct Open {
    peer: Holder,
    caller: Option<Holder>,
    /// Since when it has no request; `None` while it has one.
    idle_since: Option<Instant>,
    evicted: Arc<Notify>,
}

/// One connection, until this is dropped.
pub(super) struct Connection {
    connections: Arc<Connections>,
    number: u64,
    pub(super) peer: Arc<Share>,
    /// The memory budget of the caller that uses the connection.
    pub(super) budget: BudgetOfConnection,
    evicted: Arc<Notify>,
    busy: AtomicBool,
    _slot: Reservation,
    /// The caller of the latest request, if it has a token.
    caller: Mutex<Option<(Holder, Reservation)>>,
}

impl Connections {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, table: Mutex::default() })
    }

    /// Accepts a connection. If its peer has too many, the peer's oldest idle one is closed. If there are too
    /// many in all, an idle one of the peer with the most is closed. `None`: no connection is idle.
    pub(super) fn open(self: &Arc<Self>, peer: Arc<Share>) -> Option<Connection> {
        let mut table = self.lock();
        if !peer.connections.has_room() {
            table.evict(|open| open.peer == peer.holder)?;
        } else if table.open.len() >= self.limit {
            table.evict_of_most(peer.holder)?;
        }
        let evicted = Arc::new(Notify::new());
        table.next += 1;
        let number = table.next;
        let open = Open {
            peer: peer.holder,
            caller: None,
            idle_since: Some(Instant::now()),
            evicted: Arc::clone(&evicted),
        };
        table.open.insert(number, open);
        drop(table);
        Some(Connection {
            connections: Arc::clone(self),
            number,
            budget: BudgetOfConnection::new(Arc::clone(&peer.memory)),
            evicted,
            busy: AtomicBool::new(false),
            _slot: peer.connections.reserve(1),
            peer,
            caller: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Closes the matching connection that has been idle longest.
    fn evict(&mut self, matches: impl Fn(&Open) -> bool) -> Option<()> {
        let idle = self.open.iter().filter(|(_, open)| matches(open));
        let idle = idle.filter_map(|(number, open)| Some((open.idle_since?, *number)));
        let (_, oldest) = idle.min()?;
        self.close(oldest)
    }

    fn evict_of_most(&mut self, newcomer: Holder) -> Option<()> {
        let entries = self
            .open
            .iter()
            .map(|(number, open)| (open.peer, open.idle_since.map(|used| Removable { key: *number, used })));
        let oldest = gives_way(newcomer, entries)?;
        self.close(oldest)
    }

    fn close(&mut self, number: u64) -> Option<()> {
        self.open.remove(&number)?.evicted.notify_one();
        Some(())
    }
}

impl Connection {
    /// Marks the connection as busy, until the body of the response was sent.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.set_idle(None);
        Busy(Arc::clone(self))
    }

    /// Notes which caller sends the request. If the caller has too many connections, its oldest idle one is
    /// closed.
    pub(super) fn used_by(&self, share: &Share) -> Result<(), Rejection> {
        self.budget.set(&share.memory);
        if share.holder == self.peer.holder {
            return Ok(());
        }
        let mut caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner);
        if caller.as_ref().is_some_and(|(holder, _)| *holder == share.holder) {
            return Ok(());
        }
        let mut table = self.connections.lock();
        if !share.connections.has_room() && table.evict(|open| open.caller == Some(share.holder)).is_none() {
            drop(table);
            return Err(share.reject(b"null", "this caller has too many connections open").closing());
        }
        if let Some(open) = table.open.get_mut(&self.number) {
            open.caller = Some(share.holder);
        }
        drop(table);
        *caller = Some((share.holder, share.connections.reserve(1)));
        Ok(())
    }

    /// Waits until this connection gives way to another.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    pub(super) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    fn set_idle(&self, since: Option<Instant>) {
        self.busy.store(since.is_none(), Ordering::Relaxed);
        if let Some(open) = self.connections.lock().open.get_mut(&self.number) {
            open.idle_since = since;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.lock().open.remove(&self.number);
    }
}

/// A request on a connection, until this is dropped.
pub(super) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.set_idle(Some(Instant::now()));
    }
}

/// The body of a response, which keeps its connection busy until it was sent.
pub(super) struct BusyBody {
    pub(super) body: Body,
    pub(super) _busy: Busy,
}

impl HttpBody for BusyBody {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Answers that there is no room for a connection, as far as that is possible without waiting.
pub(super) fn reject(mut stream: Stream) {
    let mut context = Context::from_waker(Waker::noop());
    let _ = stream.as_mut().poll_write(&mut context, NO_ROOM);
    let _ = stream.as_mut().poll_shutdown(&mut context);
}
