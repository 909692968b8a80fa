//! A server behind a URL, scripted as an HTTP peer on a real socket and in real time.
#![allow(clippy::needless_pass_by_value, clippy::similar_names, reason = "tests read better so")]

mod broken_answers;
mod cancellation;
mod concurrency;
mod credentials;
mod detection;
mod failures;
mod get_stream;
mod harness;
mod hostile;
mod legacy;
mod login;
mod message_limit;
mod modern;
mod peer;
mod plain_api;
mod redirects;
mod resumption;
mod script;
mod secrets;
mod session;
mod sse;

use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Awaits an event that must come. The limit matters only for a test that fails.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(120 * SECOND, future).await;
    waited.unwrap_or_else(|_| panic!("{what} never came"))
}
