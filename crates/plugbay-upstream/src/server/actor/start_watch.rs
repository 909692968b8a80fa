//! Watches a start from the spawn to the first complete list, and holds its turn.

use std::{pin::pin, sync::Arc, time::Instant};

use plugbay_core::start::{GiveUp, Look, StartWatch, Verdict};
use tokio::time::sleep_until;

use super::super::clock;
use crate::{
    spec::ServerSpec,
    starts::{Starts, Turn, Vitals},
};

/// A start in progress: its time limits and its turn.
pub(super) struct Watch {
    rule: StartWatch,
    vitals: Arc<dyn Vitals>,
    /// Held only while it is needed.
    turn: Option<Turn>,
}

/// A problem that a look has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concern {
    /// The timeout has passed, but the start goes on.
    Slow,
    GiveUp(GiveUp),
}

impl Watch {
    pub(super) fn begin(spec: &ServerSpec, starts: &Starts, turn: Option<Turn>) -> Self {
        let vitals = Arc::clone(&starts.vitals);
        // The first reading: how busy the machine is shows only between two readings.
        vitals.is_saturated();
        Self { rule: StartWatch::new(spec.timeouts.start, clock::now()), vitals, turn }
    }

    pub(super) fn next_look(&self) -> Instant {
        self.rule.next_look()
    }

    /// Notes that the server has sent something that it was asked for.
    pub(super) fn progressed(&mut self) {
        self.rule.progressed(clock::now());
    }

    /// Looks at the server's process. A server without one shows no progress here.
    pub(super) fn look(&mut self, pid: Option<i32>) -> Option<Concern> {
        let cpu = pid.map_or_else(|| self.vitals.cpu_without_process(), |pid| self.vitals.cpu(pid));
        let look = Look { cpu, saturated: self.vitals.is_saturated() };
        match self.rule.look(clock::now(), look) {
            Verdict::Wait => None,
            Verdict::FreeTurn => {
                self.turn = None;
                None
            }
            Verdict::Slow => {
                self.turn = None;
                Some(Concern::Slow)
            }
            Verdict::GiveUp(why) => Some(Concern::GiveUp(why)),
        }
    }

    /// Runs the work until it is done or the start is given up. Calls `slow` once when it is slow.
    pub(super) async fn over<T>(
        &mut self,
        work: impl Future<Output = T>,
        pid: Option<i32>,
        mut slow: impl FnMut(),
    ) -> Result<T, GiveUp> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = sleep_until(self.next_look().into()) => match self.look(pid) {
                    Some(Concern::Slow) => slow(),
                    Some(Concern::GiveUp(why)) => return Err(why),
                    None => {}
                },
            }
        }
    }

    /// The longest time that a start may take, in words.
    pub(super) fn hard_end(&self) -> String {
        format!("{} s", self.rule.hard_end().as_secs())
    }
}
