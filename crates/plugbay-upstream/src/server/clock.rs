//! The runtime's clock, which tests can pause, as a [`std::time::Instant`] that core takes.

use std::time::Instant;

pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
