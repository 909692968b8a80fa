//! Opens the session of the host again: at the daemon that runs now, at a new one, or in this process.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Bridge, Phase};
use crate::daemon::{
    hello, pipes,
    start::{self, Opened},
};

/// If daemons end so often within this time, the host is served without one.
const OPENINGS: usize = 6;
const WITHIN: Duration = Duration::from_secs(5);

impl Bridge {
    /// Returns when the session is open again, or the bridge ends.
    pub(super) fn reopen(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.is_ending() {
            return;
        }
        let now = Instant::now();
        state.openings.retain(|at| now.duration_since(*at) < WITHIN);
        state.openings.push_back(now);
        let is_hopeless = state.openings.len() > OPENINGS;
        let window = state.window.clone();
        drop(state);
        let opened = if is_hopeless {
            Err("it ends again and again".to_owned())
        } else {
            start::open(&self.place, &window)
        };
        let opened = opened.or_else(|reason| self.serve_alone(reason));
        if !opened.is_ok_and(|opened| self.connect(opened).is_ok()) {
            self.lock().phase = Phase::HostGone;
            self.changed.notify_all();
        }
    }

    /// Serves the host in this process, through pipes as to a daemon.
    fn serve_alone(&self, reason: String) -> std::io::Result<Opened> {
        let [pipes, theirs] = pipes::pair()?;
        (self.alone)(theirs, reason)?;
        // No server may forge a control message here either.
        Ok(Opened { pipes, token: hello::random_token()?, limit: usize::MAX })
    }
}
