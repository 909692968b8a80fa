//! A caller for the tests of this folder: it counts what reaches it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use plugbay_core::{
    exchange::{Answer, Caller, Ticket},
    wire::{Draft, Span},
};

#[derive(Debug, Default)]
pub(super) struct TestCaller {
    answers: AtomicUsize,
    withdrawals: AtomicUsize,
}

impl TestCaller {
    pub(super) fn new() -> (Arc<Self>, Arc<dyn Caller>) {
        let caller = Arc::new(Self::default());
        (Arc::clone(&caller), caller)
    }

    pub(super) fn answers(&self) -> usize {
        self.answers.load(Ordering::Relaxed)
    }

    pub(super) fn withdrawals(&self) -> usize {
        self.withdrawals.load(Ordering::Relaxed)
    }
}

impl Caller for TestCaller {
    fn answered(&self, _: Ticket, _: Answer) {
        self.answers.fetch_add(1, Ordering::Relaxed);
    }

    fn progressed(&self, _: Ticket, _: Bytes, _: Span) {}

    fn withdrawn(&self, _: Option<Ticket>, _: Ticket, _: Draft) {
        self.withdrawals.fetch_add(1, Ordering::Relaxed);
    }
}
