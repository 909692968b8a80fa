//! Opens the session of the host again: at the current daemon, at a new one, or in this process.

use std::{
    io,
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use super::{AloneSession, Bridge, Phase, State};
use crate::{
    daemon::{
        hello, pipes,
        start::{self, Opened},
    },
    settings,
};

/// If more than this many daemons die within this time, the host is served without one.
const DEATHS: usize = 6;
const WITHIN: Duration = Duration::from_secs(5);
/// How long the host is served in this process the first time, before the daemon is tried again, unless the
/// user sets it.
const ALONE: Duration = Duration::from_secs(30);
/// How many times that time is doubled at most.
const DOUBLINGS: u32 = 6;

/// How long the host is served in this process before the daemon is tried again: longer each time.
pub(super) fn time_alone(times: u32) -> Duration {
    settings::daemon_return().unwrap_or(ALONE) * 2_u32.pow(times.saturating_sub(1).min(DOUBLINGS))
}

impl Bridge {
    /// Opens the session again; returns when it is open or the bridge ends.
    pub(super) fn reopen(self: &Arc<Self>) {
        let state = self.lock();
        if state.is_ending() {
            return;
        }
        let is_hopeless = state.deaths.len() > DEATHS;
        let window = state.window.clone();
        drop(state);
        let opened = if is_hopeless {
            Err("it ends again and again".to_owned())
        } else {
            start::open(&self.place, &window)
        };
        if self.connect_or_serve_alone(opened).is_err() {
            self.lock().phase = Phase::HostGone;
            self.changed.notify_all();
        }
    }

    /// Uses the connection to the daemon. Without one, this process serves the host through pipes, like a
    /// daemon.
    pub(super) fn connect_or_serve_alone(self: &Arc<Self>, opened: Result<Opened, String>) -> io::Result<()> {
        let reason = match opened {
            Ok(opened) => return self.connect(opened, false),
            Err(reason) => reason,
        };
        let [pipes, theirs] = pipes::pair()?;
        // Here too, no server may forge a control message.
        let token = hello::random_token()?;
        let mut state = self.lock();
        state.times_alone += 1;
        state.deaths.clear();
        let session =
            AloneSession { pipes: theirs, token: token.clone(), state: state.window.state.clone(), reason };
        drop(state);
        let thread = (self.alone)(session)?;
        self.lock().alone.push(thread);
        self.connect(Opened { pipes, token, limit: usize::MAX }, true)
    }

    /// Lets the daemon serve the host again, if there is a daemon and nothing is in flight.
    pub(super) fn go_back(self: &Arc<Self>) {
        let window = self.lock().window.clone();
        let Ok(opened) = start::open(&self.place, &window) else { return };
        // Until the daemon serves the host, no message from the host is sent.
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        let is_as_told = state.window.state == window.state;
        if !(state.is_alone() && state.table.is_at_rest() && is_as_told) || state.is_ending() {
            return;
        }
        let Some(own) = state.current.take() else { return };
        state.draining.push(Arc::clone(&own));
        drop(state);
        let connected = self.connect(opened, false);
        drop(sending);
        tracing::info!("the daemon serves this host again");
        if connected.is_err() {
            self.reopen();
        }
        if self.lock().table.is_drained(own.number) {
            own.finish();
        }
    }
}

impl State {
    /// Notes that a daemon has ended without notice.
    pub(super) fn died(&mut self) {
        let now = Instant::now();
        self.deaths.retain(|at| now.duration_since(*at) < WITHIN);
        self.deaths.push_back(now);
    }
}
