//! A server's actor against a scripted server, in memory and on a paused clock.
#![allow(clippy::needless_pass_by_value, clippy::similar_names, reason = "tests read better so")]

pub(crate) mod broken_answers;
mod calls;
mod client_capabilities;
mod eras;
pub(crate) mod harness;
pub(crate) mod host;
mod idle;
mod instances;
mod listing;
mod messages;
mod notifications;
mod peer;
mod restart;
mod server_requests;
mod simulation;
mod slow_start;
mod start;
mod tasks;

use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Awaits an event that must come. The clock is paused: waiting a minute takes no time, and a day counts as
/// for ever.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(24 * 60 * MINUTE, future).await;
    waited.unwrap_or_else(|_| panic!("{what} never came"))
}
