//! Replaced snapshots, kept until nobody uses them.

use std::time::Duration;

use plugbay_core::surface::Snapshot;
use tokio::time::{Instant, sleep_until};

/// The first check of replaced snapshots comes this long after a change, the next ones after twice the time
/// each.
const FIRST: Duration = Duration::from_millis(100);
/// Longest time between two checks: an idle host may keep a snapshot for hours.
const LAST: Duration = Duration::from_secs(60);

/// Snapshots that hosts may still use. The last owner frees a snapshot. With long lists that takes time, so
/// it must not be the event loop.
#[derive(Debug)]
pub(super) struct Retired {
    snapshots: Vec<Snapshot>,
    /// The time of the next check, and its distance from the previous one.
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

    /// Waits for the next check; for ever if there are no snapshots.
    pub(super) async fn due(&self) {
        if self.snapshots.is_empty() {
            std::future::pending::<()>().await;
        }
        sleep_until(self.look.0).await;
    }

    /// Frees the snapshots that nobody else uses.
    pub(super) fn free_unused(&mut self) {
        self.snapshots.retain(Snapshot::is_shared);
        let pause = (self.look.1 * 2).min(LAST);
        self.look = (Instant::now() + pause, pause);
    }
}
