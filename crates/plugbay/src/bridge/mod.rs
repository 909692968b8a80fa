//! The bridge: the part of `plugbay serve` on stdio when a daemon holds the servers.
//!
//! It moves bytes between one host and the daemon. Plain blocking threads cost one read and one write per
//! message, and less memory than a runtime. Its knowledge of the host is in [`plugbay_core::bridge`]. If the
//! daemon ends or hands over, that is enough to open the session again.

mod host;
mod link;
mod reopen;

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
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

/// Stack size of the threads: they read and write, and keep nothing on their stacks.
const STACK: usize = 128 * 1024;
/// How long the daemon may take to end the session of a host that has closed its end.
const LAST_ANSWERS: Duration = Duration::from_secs(40);

/// Serves the host in this process while no daemon is available.
pub type Alone = Box<dyn Fn(AloneSession) -> io::Result<JoinHandle<()>> + Send + Sync>;

/// A session of the host that this process serves.
#[derive(Debug)]
pub struct AloneSession {
    /// The other end of its connection.
    pub pipes: PipeEnd,
    /// Part of the method of each control message.
    pub token: String,
    /// The state of the session at the last daemon.
    pub state: Option<String>,
    /// The reason why there is no daemon, for the user.
    pub reason: String,
}

/// One host and its connections to daemons.
struct Bridge {
    place: Place,
    alone: Alone,
    host: HostOutput,
    // A std mutex: held for look-ups in the table, never while something is read or written.
    state: Mutex<State>,
    /// Held from the registration of a host's message until it is sent, so that the end of a connection shows
    /// which messages were sent. Locked before `state`.
    sending: Mutex<()>,
    /// Notified when the connection or phase in `state` changes.
    changed: Condvar,
}

struct State {
    table: Table,
    /// The hello with which the session is opened again.
    window: WindowHello,
    /// The connection for the host's next message.
    current: Option<Arc<Link>>,
    /// Connections to daemons that have handed over; they still answer what is in flight.
    draining: Vec<Arc<Link>>,
    connections: Connection,
    phase: Phase,
    /// When daemons recently ended without notice.
    deaths: VecDeque<Instant>,
    /// How often the host was served in this process.
    times_alone: u32,
    /// The threads that have served the host in this process, running or not.
    alone: Vec<JoinHandle<()>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The user stopped the daemon; the host's next message starts another one.
    Stopped,
    /// The host has closed its end.
    Ending,
    /// The host no longer reads.
    HostGone,
}

/// Serves the host at stdin and stdout through the daemon. `Err` says why there is none.
pub fn serve(place: Place, window: WindowHello, alone: Alone) -> Result<(), String> {
    let opened = start::open(&place, &window);
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
            deaths: VecDeque::new(),
            times_alone: 0,
            alone: Vec::new(),
        }),
        sending: Mutex::new(()),
        changed: Condvar::new(),
    });
    bridge.connect_or_serve_alone(opened).map_err(|error| error.to_string())?;
    let reader = Arc::clone(&bridge);
    spawn(move || reader.read_host()).map_err(|error| error.to_string())?;
    bridge.wait();
    let alone = std::mem::take(&mut bridge.lock().alone);
    // Until then their servers end, and their log is written.
    for thread in alone {
        let _ = thread.join();
    }
    Ok(())
}

impl Bridge {
    /// Waits until the session of the host has ended.
    fn wait(self: &Arc<Self>) {
        let mut state = self.lock();
        while matches!(state.phase, Phase::Open | Phase::Stopped) {
            if !state.is_alone() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let time = reopen::time_alone(state.times_alone);
            let waited = self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            if waited.1.timed_out() && state.is_alone() && state.table.is_at_rest() {
                let bridge = Arc::clone(self);
                // If no thread can be started now, the next attempt may succeed.
                let _ = spawn(move || bridge.go_back());
            }
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

    /// Whether this process serves the host.
    fn is_alone(&self) -> bool {
        self.current.as_ref().is_some_and(|link| link.is_own)
    }

    fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending | Phase::HostGone)
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().stack_size(STACK).spawn(work).map(drop)
}

impl Bridge {
    /// Connects the bridge to the daemon that has answered its hello. `is_own`: this process has answered it.
    fn connect(self: &Arc<Self>, opened: Opened, is_own: bool) -> io::Result<()> {
        let Opened { pipes, token, limit } = opened;
        self.host.set_limit(limit);
        let mut state = self.lock();
        state.connections += 1;
        let link = Arc::new(Link::new(state.connections, token, pipes, is_own));
        let replay = state.table.replay(link.number, &link.token);
        let is_reopened = link.number > 1;
        drop(state);
        // This must come before the host's next message.
        self.send(&link, &replay.into());
        let mut state = self.lock();
        state.current = Some(Arc::clone(&link));
        // Another connection may have ended in the meantime.
        let again = state.table.send_again(link.number);
        let changes = if is_reopened { state.table.list_changes() } else { Vec::new() };
        if state.is_ending() {
            link.finish();
        }
        drop(state);
        self.send(&link, &again.into());
        self.changed.notify_all();
        let bridge = Arc::clone(self);
        spawn(move || bridge.read_daemon(&link))?;
        self.tell_host(changes);
        Ok(())
    }
}
