//! Which model runs agents, and on which terms. Shared by all sessions.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plugbay_core::surface::Effect;

use crate::ranking::Chosen;

/// Who runs agent runs, if anybody does. Shared by all sessions.
#[derive(Debug, Default)]
pub struct Agents {
    // A std mutex: held for a look, never across an await.
    terms: Mutex<Option<Arc<Terms>>>,
}

/// On which terms they are run.
#[derive(Debug)]
pub struct Terms {
    pub model: Chosen,
    pub limits: Limits,
    /// What is done without asking the user.
    pub unasked: Effect,
    /// What the model is told besides.
    pub instructions: Option<String>,
}

/// Where one agent run ends, whether it is done or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub calls: usize,
    /// How often the model is asked.
    pub turns: usize,
    /// Read and written by the model.
    pub tokens: u64,
    pub time: Duration,
}

impl Agents {
    /// From now on these hold, or no agent runs are run.
    pub fn choose(&self, terms: Option<Terms>) {
        *self.lock() = terms.map(Arc::new);
    }

    pub(crate) fn terms(&self) -> Option<Arc<Terms>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Terms>>> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
