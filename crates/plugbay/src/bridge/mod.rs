//! The bridge: what `plugbay serve` is on stdio while a daemon holds the servers.
//!
//! It moves bytes between one host and the daemon. Plain threads that block cost one read and one write per message,
//! and less memory than a runtime. What it knows of the host is in [`plugbay_core::bridge`]; if the daemon ends or
//! hands over, that is enough to open the session again.

mod host;
mod link;
mod reopen;

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use plugbay_core::bridge::{Bridge as Table, Connection};

use self::{host::HostOutput, link::Link};
use crate::daemon::{
    hello::WindowHello,
    pipes::PipeEnd,
    socket::Place,
    start::{self, Opened},
};

/// The threads read and write, and keep nothing on their stacks.
const STACK: usize = 128 * 1024;
/// How long the daemon may take to end the session of a host that has closed its end.
const LAST_ANSWERS: Duration = Duration::from_secs(40);

/// Serves one end of two pipes in this process, for a host whose daemon cannot be had any more.
pub type Alone = Box<dyn Fn(PipeEnd, String) -> io::Result<()> + Send + Sync>;

/// One host and its connections to daemons.
struct Bridge {
    place: Place,
    alone: Alone,
    host: HostOutput,
    // A std mutex: held for look-ups in the table, never while something is read or written.
    state: Mutex<State>,
    /// Held from the registration of a host's message until it is sent, so that a connection that ends knows which
    /// messages it got. Locked before `state`.
    sending: Mutex<()>,
    /// Notified when `state` has another connection or phase.
    changed: Condvar,
}

struct State {
    table: Table,
    /// How the session is opened again.
    window: WindowHello,
    /// Takes the host's next message.
    current: Option<Arc<Link>>,
    /// Connections to daemons that have handed over: they answer what is in flight.
    draining: Vec<Arc<Link>>,
    connections: Connection,
    phase: Phase,
    /// When the session was opened lately.
    openings: VecDeque<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The daemon was stopped by the user: the host's next message starts another.
    Stopped,
    /// The host has closed its end.
    Ending,
    /// Nobody reads what is written to the host.
    HostGone,
}

/// Serves the host at stdin and stdout through the daemon. The error says why there is none.
pub fn serve(place: Place, window: WindowHello, alone: Alone) -> Result<(), String> {
    let opened = start::open(&place, &window)?;
    let bridge = Arc::new(Bridge {
        place,
        alone,
        host: HostOutput::default(),
        state: Mutex::new(State {
            table: Table::default(),
            window,
            current: None,
            draining: Vec::new(),
            connections: 0,
            phase: Phase::Open,
            openings: VecDeque::new(),
        }),
        sending: Mutex::new(()),
        changed: Condvar::new(),
    });
    bridge.connect(opened).map_err(|error| error.to_string())?;
    let reader = Arc::clone(&bridge);
    spawn(move || reader.read_host()).map_err(|error| error.to_string())?;
    bridge.wait();
    Ok(())
}

impl Bridge {
    /// Waits until the session of the host has ended.
    fn wait(&self) {
        let mut state = self.lock();
        while matches!(state.phase, Phase::Open | Phase::Stopped) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let is_busy = |state: &mut State| {
            state.phase == Phase::Ending && (state.current.is_some() || !state.draining.is_empty())
        };
        let _ = self.changed.wait_timeout_while(state, LAST_ANSWERS, is_busy);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn link(&self, number: Connection) -> Option<&Arc<Link>> {
        self.current.iter().chain(&self.draining).find(|link| link.number == number)
    }

    fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending | Phase::HostGone)
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().stack_size(STACK).spawn(work).map(drop)
}

/// Makes the daemon's answer to a hello a connection of this bridge.
impl Bridge {
    fn connect(self: &Arc<Self>, Opened { pipes, token, limit }: Opened) -> io::Result<()> {
        self.host.set_limit(limit);
        let mut state = self.lock();
        state.connections += 1;
        let link = Arc::new(Link::new(state.connections, token, pipes));
        let replay = state.table.replay(link.number, &link.token);
        let is_reopened = link.number > 1;
        drop(state);
        // Before the host's next message.
        self.send(&link, replay.into());
        let mut state = self.lock();
        state.current = Some(Arc::clone(&link));
        let changes = if is_reopened { state.table.list_changes() } else { Vec::new() };
        if state.is_ending() {
            link.finish();
        }
        drop(state);
        self.changed.notify_all();
        let bridge = Arc::clone(self);
        spawn(move || bridge.read_daemon(&link))?;
        self.tell_host(changes);
        Ok(())
    }
}
