//! An idle child that waits for the next job for a while.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::{Settings, process::Process};

/// At most one child without a job.
#[derive(Debug, Default)]
pub(super) struct Spare {
    // A std mutex: held for a moment, never across an await.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    process: Option<Process>,
    /// When the child was last replaced.
    filled: Option<Instant>,
    /// Whether a task waits to end the idle child.
    is_watched: bool,
}

impl Spare {
    /// Takes the idle child, if it is still running.
    pub(super) fn take(&self) -> Option<Process> {
        self.lock().process.take().filter(Process::is_running)
    }

    /// Starts a child unless there is one.
    pub(super) fn fill(self: &Arc<Self>, settings: &Settings) {
        let mut state = self.lock();
        state.filled = Some(Instant::now());
        if state.process.as_ref().is_some_and(Process::is_running) {
            return;
        }
        state.process = Process::start(&settings.program).ok();
        if !state.is_watched {
            state.is_watched = true;
            let patience = settings.spare.max(Duration::from_secs(1));
            tokio::spawn(let_go(Arc::downgrade(self), patience));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whole at every step, so a poisoned lock does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the idle child if no job has come for this long.
async fn let_go(spare: std::sync::Weak<Spare>, patience: Duration) {
    loop {
        let due = {
            let Some(spare) = spare.upgrade() else { return };
            let mut state = spare.lock();
            let due = state.filled.map_or_else(Instant::now, |filled| filled + patience);
            if due <= Instant::now() {
                state.process = None;
                state.is_watched = false;
                return;
            }
            due
        };
        sleep_until(due).await;
    }
}
