//! The runtime's clock, which tests can pause, as the [`std::time::Instant`] that core uses.

use std::time::Instant;

pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
