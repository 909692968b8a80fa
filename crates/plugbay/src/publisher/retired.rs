//! Snapshots that were replaced, kept until nobody looks at them.

use std::time::Duration;

use plugbay_core::surface::Snapshot;
use tokio::time::{Instant, sleep_until};

/// How long after a change the snapshots before it are first looked at; then after twice that time, and so on.
const FIRST: Duration = Duration::from_millis(100);
/// The longest time between two looks: a host that does nothing may keep a snapshot for hours.
const LAST: Duration = Duration::from_secs(60);

/// Snapshots that hosts may still look at. The last owner frees a snapshot, which takes the longer, the longer its lists are: that
/// must not be the event loop.
#[derive(Debug)]
pub(super) struct Retired {
    snapshots: Vec<Snapshot>,
    /// When they are looked at next, and how long after the last look that is.
    look: (Instant, Duration),
}

impl Default for Retired {
    fn default() -> Self {
        Self { snapshots: Vec::new(), look: (Instant::now(), FIRST) }
    }
}

impl Retired {
    pub(super) fn keep(&mut self, snapshot: Snapshot) {
        self.snapshots.push(snapshot);
        self.look = (Instant::now() + FIRST, FIRST);
    }

    /// Waits until snapshots are to be looked at; for ever if there are none.
    pub(super) async fn due(&self) {
        if self.snapshots.is_empty() {
            std::future::pending::<()>().await;
        }
        sleep_until(self.look.0).await;
    }

    /// Frees those that nobody else has.
    pub(super) fn free_unused(&mut self) {
        self.snapshots.retain(Snapshot::is_shared);
        let pause = (self.look.1 * 2).min(LAST);
        self.look = (Instant::now() + pause, pause);
    }
}
