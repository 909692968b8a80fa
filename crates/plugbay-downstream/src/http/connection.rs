//! One connection: its requests one after the other, and the limits on its slowness.

use std::{sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::{Shared, listen::Stream, route};
use crate::write_timeout::{TAKES_NOTHING, WriteTimeout};

/// From the end of one request, or the opening, to the whole head of the next.
const NEXT_HEAD: Duration = Duration::from_secs(30);
/// For a request's head.
const BUFFER: usize = 64 * 1024;

pub(super) async fn run(
    shared: Arc<Shared>,
    stream: Stream,
    mut draining: watch::Receiver<bool>,
    _slot: OwnedSemaphorePermit,
) {
    let stream = WriteTimeout::new(stream, TAKES_NOTHING, Arc::clone(&shared.budget));
    let service = service_fn(move |request| route::answer(Arc::clone(&shared), request));
    // A host that closes its end ends its request too: hyper then drops what `route` is doing for it.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(NEXT_HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let told_to_end = async move { _ = draining.wait_for(|draining| *draining).await };
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = told_to_end => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection broke: {error}");
    }
}
