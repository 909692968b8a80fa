//! Runs that were stopped because they take long. Each continues in the next request that names it.

use std::{
    collections::HashMap,
    fmt,
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plugbay_core::reference::Handle;
use tokio::time::Instant;

use super::PausedRun;
use crate::results::{ResultOwner, Results};

/// A run that is not resumed for this long ends.
const KEPT: Duration = Duration::from_secs(10 * 60);
/// Limits of runs that are kept for one session, and for all: each has a process.
const MOST_OF_ONE: usize = 4;
const MOST: usize = 32;

/// Names a stopped run: 128 random bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RunId(Handle);

/// The prefix of a run's name, in place of a handle's prefix.
const PREFIX: &str = "run_";

impl RunId {
    /// A new id; `None` if the system gives no random numbers.
    pub(crate) fn new() -> Option<Self> {
        Results::new_handle().map(Self)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0.to_string().trim_start_matches("r_"))
    }
}

impl FromStr for RunId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let id = text.strip_prefix(PREFIX).and_then(|id| format!("r_{id}").parse().ok());
        id.map(Self).ok_or(())
    }
}

/// The stopped runs of all sessions. Their calls go on.
#[derive(Default)]
pub(crate) struct StoppedRuns {
    // A std mutex: held for a look-up, never across an await.
    runs: Mutex<HashMap<RunId, StoppedRun>>,
}

struct StoppedRun {
    owner: ResultOwner,
    stopped: Instant,
    run: Box<dyn PausedRun>,
}

impl fmt::Debug for StoppedRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoppedRuns({})", self.lock().len())
    }
}

impl StoppedRuns {
    /// Keeps a run. If there are too many, an older one of the same session ends, or else the oldest of all.
    pub(crate) fn keep(&self, id: RunId, owner: ResultOwner, run: Box<dyn PausedRun>) {
        let run = StoppedRun { owner, stopped: Instant::now(), run };
        let mut given_up = Vec::new();
        let mut runs = self.lock();
        let expired = runs.extract_if(|_, run| run.stopped.elapsed() >= KEPT);
        given_up.extend(expired.map(|(_, run)| run));
        let oldest = |runs: &HashMap<RunId, StoppedRun>, owner: Option<ResultOwner>| {
            let of = runs.iter().filter(|(_, run)| owner.is_none_or(|owner| run.owner == owner));
            of.min_by_key(|(_, run)| run.stopped).map(|(id, _)| *id)
        };
        let own = runs.values().filter(|other| other.owner == run.owner).count();
        let gives_way = if own >= MOST_OF_ONE {
            oldest(&runs, Some(run.owner))
        } else if runs.len() >= MOST {
            oldest(&runs, None)
        } else {
            None
        };
        given_up.extend(gives_way.and_then(|id| runs.remove(&id)));
        runs.insert(id, run);
        drop(runs); // before the calls of other runs are cancelled
    }

    /// Takes the run of this name, if it belongs to this session.
    pub(crate) fn take(&self, id: RunId, owner: ResultOwner) -> Option<Box<dyn PausedRun>> {
        let mut runs = self.lock();
        let is_own = |run: &StoppedRun| run.owner == owner && run.stopped.elapsed() < KEPT;
        runs.get(&id).is_some_and(is_own).then(|| runs.remove(&id))?.map(|stopped| stopped.run)
    }

    /// Ends the runs of a session that has ended.
    pub(crate) fn forget(&self, owner: ResultOwner) {
        let ended: Vec<_> = self.lock().extract_if(|_, run| run.owner == owner).collect();
        drop(ended);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, StoppedRun>> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_run_is_read_as_it_is_written() {
        let id = RunId(Handle([7; 16]));
        assert_eq!(id.to_string().parse(), Ok(id));
        for other in ["", "run_", "r_BwcHBwcHBwcHBwcHBwcHBw", "run_r_BwcHBwcHBwcHBwcHBwcHBw"] {
            assert_eq!(other.parse::<RunId>(), Err(()), "{other}");
        }
    }
}
