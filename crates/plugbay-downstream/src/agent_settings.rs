//! The model and the terms of agent runs, shared by all sessions.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plugbay_core::surface::Effect;

use crate::ranking::Chosen;

/// The terms of agent runs, if they are enabled. Shared by all sessions.
#[derive(Debug, Default)]
pub struct Agents {
    // A std mutex: held for a look, never across an await.
    terms: Mutex<Option<Arc<Terms>>>,
}

/// The terms of agent runs.
#[derive(Debug)]
pub struct Terms {
    pub model: Chosen,
    pub limits: Limits,
    /// The strongest effect of calls that need no consent.
    pub unasked: Effect,
    /// Further instructions to the model.
    pub instructions: Option<String>,
}

/// The limits of one agent run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub calls: usize,
    /// How often the model is asked.
    pub turns: usize,
    /// Limit of tokens that the model reads and writes.
    pub tokens: u64,
    pub time: Duration,
}

impl Agents {
    /// Sets the terms; `None` disables agent runs.
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
