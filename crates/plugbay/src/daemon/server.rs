//! The daemon: accepts connections, and serves each window with a session of its own.

mod connection;

use std::{
    io,
    os::unix::net::UnixListener as StdListener,
    process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use plugbay_core::bridge::Control;
use plugbay_downstream::stdio::UnreadLimit;
use tokio::{
    net::{UnixListener, UnixStream},
    sync::{mpsc, oneshot, watch},
    time::timeout,
};

use self::connection::Connection;
use super::{
    contexts::Contexts,
    hello::{self, Build, DaemonStatus, Reply},
    socket::Claim,
    windows::Windows,
};
use crate::{
    app::{self, Environment},
    clock::now,
    gateway_run::stop_signal,
    settings,
};

/// How long a daemon without windows goes on, unless the user sets it.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// How long the calls in flight may go on after the daemon has handed over.
const HANDED_OVER: Duration = Duration::from_secs(10 * 60);
/// How long windows may take to end their connections when the daemon stops, in addition to the time for
/// calls in flight.
const LAST_CONNECTIONS: Duration = Duration::from_secs(3);
/// How long calls in flight may go on if somebody waits for the end of the daemon.
const AWAITED_DRAIN: Duration = Duration::from_secs(20);

/// One daemon.
pub(super) struct Daemon {
    shared: Arc<Shared>,
    events: mpsc::UnboundedReceiver<Event>,
}

/// State shared by all connections.
struct Shared {
    build: Build,
    since: u64,
    contexts: Arc<Contexts>,
    windows: Arc<Windows>,
    /// Limit of the bytes that all windows together leave unread.
    unread: UnreadLimit,
    events: mpsc::UnboundedSender<Event>,
    /// The number of open connections, of windows and others.
    connections: watch::Sender<usize>,
    phase: watch::Sender<Phase>,
    /// The number of calls without an answer when the session of their window ended.
    cut: Arc<AtomicUsize>,
}

/// A request of a connection to the daemon.
enum Event {
    /// Make room for another daemon; answered when there is room.
    HandOver(oneshot::Sender<()>),
    /// End the daemon. The asking connection ends with it.
    Stop(UnixStream),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// New windows are accepted.
    Open,
    /// New windows go to another daemon, started by the first of them.
    HandedOver,
    /// Each window closes its connection, and opens the next one at another daemon.
    Stopping,
}

/// The reason why a daemon accepts no more connections.
enum Closed {
    Idle,
    HandedOver(oneshot::Sender<()>),
    Stopped(UnixStream),
    Signal,
}

impl Daemon {
    pub(super) fn new(environment: &Environment) -> io::Result<Self> {
        let instances = app::instances(environment);
        // For a moment two daemons may serve one window and send its host requests with these numbers, so
        // they must differ. They stay small enough for every JSON reader.
        instances.tickets.start_at(u64::from(u32::from_le_bytes(hello::random()?)) << 20);
        let windows: Arc<Windows> = Arc::default();
        let contexts = Contexts::new(instances, environment.logs.clone(), Arc::clone(&windows));
        let (sender, events) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            build: Build::own(),
            since: now(),
            contexts,
            windows,
            unread: UnreadLimit::default(),
            events: sender,
            connections: watch::Sender::new(0),
            phase: watch::Sender::new(Phase::Open),
            cut: Arc::default(),
        });
        Ok(Self { shared, events })
    }

    /// Serves windows until there have been none for a while, or the daemon is stopped or replaced.
    pub(super) async fn serve(mut self, claim: Claim, listener: StdListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        let stop = stop_signal();
        tokio::pin!(stop);
        tracing::info!(version = self.shared.build.version, "the daemon accepts windows");
        let closed = self.accept(&listener, &mut stop).await;
        self.shared.phase.send_replace(Phase::HandedOver);
        // From here on, the next window starts another daemon.
        drop((claim, listener));
        let asker = match closed {
            Closed::Idle => {
                tracing::info!("no window is left: the daemon ends");
                None
            }
            Closed::HandedOver(done) => {
                let _ = done.send(());
                self.hand_over(&mut stop).await;
                None
            }
            Closed::Stopped(asker) => Some(asker),
            Closed::Signal => None,
        };
        let most = if asker.is_some() { AWAITED_DRAIN } else { Duration::MAX };
        let cut = self.drain(most).await;
        self.shared.contexts.end().await;
        if let Some(mut asker) = asker {
            // The asking process may be gone.
            let _ = connection::say(&mut asker, &Reply::Stopped { cut }).await;
        }
        Ok(())
    }

    async fn accept(
        &mut self,
        listener: &UnixListener,
        stop: &mut (impl Future<Output = ()> + Unpin),
    ) -> Closed {
        let idle = idle(self.shared.connections.subscribe());
        tokio::pin!(idle);
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => Connection::serve(&self.shared, stream),
                    Err(error) => {
                        // For example too many open files: the files of ended windows are closed soon.
                        tracing::warn!("a window cannot connect: {error}");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
                event = self.events.recv() => match event {
                    Some(Event::HandOver(done)) => return Closed::HandedOver(done),
                    Some(Event::Stop(asker)) => return Closed::Stopped(asker),
                    None => return Closed::Idle,
                },
                () = &mut *stop => return Closed::Signal,
                () = &mut idle => return Closed::Idle,
            }
        }
    }

    /// Lets calls in flight end; each window also has a connection to the other daemon.
    async fn hand_over(&mut self, stop: &mut (impl Future<Output = ()> + Unpin)) {
        tracing::info!("another daemon takes over");
        self.shared.windows.tell(&Control::HandOver);
        tokio::select! {
            _ = timeout(HANDED_OVER, self.shared.windows.gone()) => {}
            () = stop => {}
        }
    }

    /// Tells the remaining windows to stop, and waits for their calls in flight. Returns how many calls were
    /// cut off.
    async fn drain(&self, most: Duration) -> usize {
        let before = self.shared.cut.load(Ordering::Relaxed);
        self.shared.windows.tell(&Control::Stopped);
        self.shared.phase.send_replace(Phase::Stopping);
        let time = self.shared.contexts.drain().min(most) + LAST_CONNECTIONS;
        let _ = timeout(time, self.shared.windows.gone()).await;
        let cut = self.shared.cut.load(Ordering::Relaxed) - before;
        tracing::info!(cut, "the daemon ends");
        cut
    }
}

impl Shared {
    fn status(&self) -> DaemonStatus {
        DaemonStatus {
            pid: process::id(),
            version: self.build.version.clone(),
            since: self.since,
            windows: self.windows.status(),
            servers: self.contexts.servers(),
        }
    }

    fn phase(&self) -> Phase {
        *self.phase.borrow()
    }
}

/// Returns when no connection has been open for a while.
async fn idle(mut connections: watch::Receiver<usize>) {
    let time = settings::daemon_idle().unwrap_or(IDLE);
    loop {
        let _ = connections.wait_for(|count| *count == 0).await;
        if timeout(time, connections.wait_for(|count| *count > 0)).await.is_err() {
            return;
        }
    }
}
