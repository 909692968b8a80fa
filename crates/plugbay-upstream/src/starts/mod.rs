//! Starts of all servers in this process: a few at a time, with a watch on their progress.

mod gate;
mod vitals;

use std::{fmt, sync::Arc, thread::available_parallelism};

use gate::StartGate;
pub(crate) use gate::Turn;
use vitals::SystemVitals;
pub use vitals::Vitals;

/// How many servers start at a time per processor, unless the user says otherwise.
const STARTS_PER_PROCESSOR: usize = 4;

/// The queue of starts, with the system's data about the processes that start.
pub struct Starts {
    gate: Arc<StartGate>,
    pub(crate) vitals: Arc<dyn Vitals>,
}

impl Starts {
    /// The queue for this machine.
    pub fn new() -> Arc<Self> {
        Self::with(default_slots(), Arc::new(SystemVitals::default()))
    }

    /// A queue with this many slots. Tests script `vitals`.
    pub fn with(slots: usize, vitals: Arc<dyn Vitals>) -> Arc<Self> {
        Arc::new(Self { gate: StartGate::new(slots), vitals })
    }

    /// How many servers may start at a time; `None` for the default.
    pub fn set_slots(&self, slots: Option<usize>) {
        self.gate.set_slots(slots.unwrap_or_else(default_slots));
    }

    pub(crate) fn gate(&self) -> &Arc<StartGate> {
        &self.gate
    }
}

fn default_slots() -> usize {
    STARTS_PER_PROCESSOR * available_parallelism().map_or(1, usize::from)
}

impl fmt::Debug for Starts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Starts").finish_non_exhaustive()
    }
}
