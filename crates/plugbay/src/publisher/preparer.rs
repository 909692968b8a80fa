//! Builds search indexes in a thread of its own: with many tools that takes a while.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use plugbay_core::surface::ToolIndex;

use crate::embeddings;

/// Builds one index at a time, and of those that were requested meanwhile only the latest.
#[derive(Debug, Clone, Default)]
pub(super) struct Preparer(Arc<Mutex<Work>>);

#[derive(Debug, Default)]
struct Work {
    next: Option<Arc<ToolIndex>>,
    /// A thread is working, and will look for the next.
    under_way: bool,
}

impl Preparer {
    pub(super) fn prepare(&self, tool_index: Arc<ToolIndex>) {
        let mut work = self.lock();
        work.next = Some(tool_index);
        if work.under_way {
            return;
        }
        let preparer = self.clone();
        // Without a thread, the first search builds the index.
        work.under_way = thread::Builder::new().spawn(move || preparer.work()).is_ok();
    }

    fn work(&self) {
        while let Some(tool_index) = self.next() {
            tool_index.prepare(embeddings::table);
        }
    }

    fn next(&self) -> Option<Arc<ToolIndex>> {
        let mut work = self.lock();
        let next = work.next.take();
        work.under_way = next.is_some();
        next
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        // Nothing can panic half-way through a change, so poisoned work is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
