//! What a host knows of its changed lists: notified, and listed again.

use std::{pin::pin, sync::atomic::Ordering};

use super::HostView;

impl HostView {
    /// The host has declared something else than before.
    pub(crate) fn declaration_changed(&self) {
        self.lock().seen = None;
    }

    /// The host has got the list of its tools.
    pub(crate) fn tools_listed(&self) {
        self.unlisted.store(false, Ordering::Relaxed);
        self.listings.fetch_add(1, Ordering::Relaxed);
        self.listed.notify_waiters();
    }

    /// The host was notified that its tools have changed.
    pub(crate) fn tools_notified(&self) {
        self.unlisted.store(true, Ordering::Relaxed);
    }

    /// How many tool lists the host has got.
    pub(crate) fn listings(&self) -> usize {
        self.listings.load(Ordering::Relaxed)
    }

    /// Waits until the host has listed the tools that it was last notified of.
    pub(crate) async fn tools_known(&self) {
        loop {
            let mut listed = pin!(self.listed.notified());
            listed.as_mut().enable();
            if !self.unlisted.load(Ordering::Relaxed) {
                return;
            }
            listed.await;
        }
    }
}
