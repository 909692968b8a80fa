//! The metrics for Prometheus: beside MCP for callers that may see everything, or at a separate address.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{task::JoinSet, time::sleep};

use super::{
    Shared,
    access::{Access, Caller},
    listen::{Accept, Stream},
    reject::Rejection,
    reply::{self, Body},
};

const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Time limit from the opening of a connection to the whole head of its request.
const HEAD: Duration = Duration::from_secs(10);
/// Connections of scrapers at a time.
const CONNECTIONS: usize = 16;
const NO_DESCRIPTORS: Duration = Duration::from_millis(100);

/// Writes the metrics as they are now.
pub type MetricsPage = Arc<dyn Fn() -> String + Send + Sync>;

/// Serves `/metrics` alone, to everyone who can reach the address, until the future is dropped.
pub async fn serve_metrics(mut listener: impl Accept, access: Access, page: MetricsPage) -> io::Result<()> {
    let access = Arc::new(access);
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if open.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => drop(open.spawn(connection(stream, Arc::clone(&access), Arc::clone(&page)))),
                Err(error) => {
                    tracing::warn!("a connection to the metrics could not be accepted: {error}");
                    sleep(NO_DESCRIPTORS).await;
                }
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn connection(stream: Stream, access: Arc<Access>, page: MetricsPage) {
    let service = service_fn(move |request: Request<Incoming>| {
        let answered = answer(&access, &page, &request).unwrap_or_else(Rejection::into_response);
        async move { Ok::<_, Infallible>(answered) }
    });
    let builder = &mut http1::Builder::new();
    let builder = builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!("a connection to the metrics broke: {error}");
    }
}

fn answer(
    access: &Access,
    page: &MetricsPage,
    request: &Request<Incoming>,
) -> Result<Response<Body>, Rejection> {
    access.check_place(request.uri(), request.headers())?;
    if request.uri().path() != "/metrics" {
        return Err(Rejection::new(StatusCode::NOT_FOUND, "there is nothing here; metrics are at /metrics"));
    }
    text(request.method(), page())
}

/// `/metrics` beside MCP. It names every server and tool, so a caller that may use only some tools is
/// rejected.
pub(super) fn beside(shared: &Shared, caller: &Caller, method: &Method) -> Result<Response<Body>, Rejection> {
    let Some(page) = &shared.metrics else {
        let why = "this gateway keeps no metrics; --metrics turns them on";
        return Err(Rejection::new(StatusCode::NOT_FOUND, why));
    };
    if caller.account().grant.tools.is_some() {
        return Err(Rejection::new(StatusCode::FORBIDDEN, "this token is for some tools only"));
    }
    text(method, page())
}

fn text(method: &Method, text: String) -> Result<Response<Body>, Rejection> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Rejection::method("GET, HEAD"));
    }
    let text = Bytes::from(text);
    let left = text.len();
    let mut response = reply::empty(StatusCode::OK);
    *response.body_mut() = Body::Whole { pieces: [text].into(), left };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TYPE));
    Ok(response)
}
