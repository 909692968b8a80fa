//! What a host knows of its changed lists: whether it was notified, and whether it has listed again.

use std::{pin::pin, sync::atomic::Ordering};

use super::HostView;

impl HostView {
    /// Notes that the host's declaration has changed.
    pub(crate) fn declaration_changed(&self) {
        self.lock().seen = None;
    }

    /// Notes that the host has got the list of its tools.
    pub(crate) fn tools_listed(&self) {
        self.unlisted.store(false, Ordering::Relaxed);
        self.listings.fetch_add(1, Ordering::Relaxed);
        self.listed.notify_waiters();
    }

    /// Notes that the host was notified of changed tools.
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
