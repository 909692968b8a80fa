//! Whole sessions with a scripted host and scripted servers, in memory and on a paused clock.
#![allow(clippy::large_enum_variant, reason = "a handful of events per test")]

mod calls;
mod ending;
mod hostile;
mod listing;
mod opening;
mod slow;
mod stage;
mod subscriptions;

use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Awaits what must come; on a paused clock a minute costs nothing, and an hour is for ever.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(3600 * SECOND, future).await;
    waited.unwrap_or_else(|_| panic!("{what} never came"))
}
