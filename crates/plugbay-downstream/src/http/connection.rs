//! One connection: it serves requests one after the other, and limits how slow the host may be.

use std::{sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{sync::watch, time::timeout};

use super::{
    Shared,
    connections::{BusyBody, Connection},
    listen::Stream,
    route,
};
use crate::write_timeout::{TAKES_NOTHING, WriteTimeout};

/// Time limit from the opening, or the end of a request, to the whole head of the next one.
const NEXT_HEAD: Duration = Duration::from_secs(30);
/// Buffer size for a request's head.
const BUFFER: usize = 64 * 1024;

pub(super) async fn run(
    shared: Arc<Shared>,
    stream: Stream,
    mut draining: watch::Receiver<bool>,
    connection: Connection,
) {
    let stream = WriteTimeout::new(stream, TAKES_NOTHING, connection.budget.clone());
    let us = Arc::new(connection);
    let own = Arc::clone(&us);
    let service = service_fn(move |request| {
        let (shared, us) = (Arc::clone(&shared), Arc::clone(&own));
        async move {
            let busy = us.begin();
            let answered = route::answer(shared, &us, request).await;
            answered.map(|response| response.map(|body| BusyBody { body, _busy: busy }))
        }
    });
    // When a host closes its end, its request ends too: hyper then drops the future of `route`.
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
        () = us.evicted() => {
            connection.as_mut().graceful_shutdown();
            if us.is_busy() {
                connection.await // a request came in this very moment
            } else {
                // The host may still be reading the last answer.
                timeout(TAKES_NOTHING, connection).await.unwrap_or(Ok(()))
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection broke: {error}");
    }
}
