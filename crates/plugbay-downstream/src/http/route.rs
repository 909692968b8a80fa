//! The path of every HTTP request: read top-down, each check guards everything below it.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use hyper::{Method, Request, Response, StatusCode, body::Incoming};
use plugbay_core::wire::Frame;

use super::{
    Shared,
    access::Caller,
    body,
    connections::Connection,
    cors::Cors,
    legacy, metrics, modern,
    negotiate::{self, Era, Wants},
    openapi,
    reject::Rejection,
    reply::{self, Body},
    server_card, tools_api,
};
use crate::message::Message;

/// The W3C trace context of a request.
const TRACE_PARENT: &str = "traceparent";

pub(super) async fn answer(
    shared: Arc<Shared>,
    connection: &Connection,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let is_api = tools_api::serves(request.uri().path());
    let reject = if is_api { Rejection::into_api_response } else { Rejection::into_response };
    if request.uri().path() == server_card::PATH {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        return Ok(server_card::serve(&shared.access, method, uri, headers).unwrap_or_else(reject));
    }
    if let Err(rejection) = shared.access.check_place(request.uri(), request.headers()) {
        return Ok(reject(rejection));
    }
    let cors = Cors::of(request.headers());
    let response = match cors.preflight(request.method(), request.headers()) {
        Some(allowed) => allowed,
        None => admit(&shared, connection, request).await.unwrap_or_else(reject),
    };
    Ok(cors.allow(response))
}

async fn admit(
    shared: &Arc<Shared>,
    connection: &Connection,
    request: Request<Incoming>,
) -> Result<Response<Body>, Rejection> {
    match request.uri().path() {
        "/healthz" => return probe(request.method(), true),
        "/readyz" => return probe(request.method(), shared.gateway.snapshot().settled),
        _ => {}
    }
    if let Some(metadata) = authorization_metadata(shared, &request) {
        return metadata;
    }
    let identity = shared.access.check_token(request.headers()).await?;
    let caller = &shared.spending(identity, &connection.peer);
    connection.used_by(caller.share())?;
    let (method, headers) = (request.method(), request.headers());
    match request.uri().path() {
        "/mcp" => mcp(shared, caller, request).await,
        "/metrics" => metrics::beside(shared, caller, method),
        tools_api::TOOLS => tools_api::list(shared, caller, method, headers).await,
        tools_api::CALL => tools_api::call(shared, caller, request).await,
        openapi::PATH => openapi::serve(method, headers),
        _ => {
            let why = "there is nothing here; MCP is served at /mcp, all tools at /tools";
            Err(Rejection::new(StatusCode::NOT_FOUND, why))
        }
    }
}

async fn mcp(
    shared: &Arc<Shared>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Response<Body>, Rejection> {
    match (request.method(), negotiate::era(request.headers())?) {
        (&Method::POST, era) => post(shared, caller, era, request).await,
        (_, Era::Unknown) => Err(negotiate::unknown_version(request.headers(), b"null")),
        // The modern protocol has neither sessions nor streams without a request.
        (&Method::GET | &Method::DELETE, Era::Modern) => Err(Rejection::method("POST")),
        (&Method::GET, _) => legacy::listen(shared, caller, request.headers()),
        (&Method::DELETE, _) => legacy::end(shared, caller, request.headers()),
        _ => Err(Rejection::method("GET, POST, DELETE")),
    }
}

/// The gateway's metadata as a protected resource, which a host reads before it has a token.
fn authorization_metadata(
    shared: &Shared,
    request: &Request<Incoming>,
) -> Option<Result<Response<Body>, Rejection>> {
    let authorization = shared.access.authorization()?;
    let document = authorization.metadata_at(request.uri().path())?;
    Some(match *request.method() {
        Method::GET | Method::HEAD => Ok(reply::json(StatusCode::OK, &Frame::from(document.clone()))),
        _ => Err(Rejection::method("GET, HEAD")),
    })
}

/// The response of a health probe, which needs no token.
fn probe(method: &Method, good: bool) -> Result<Response<Body>, Rejection> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Rejection::method("GET, HEAD"));
    }
    let status = if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(reply::empty(status))
}

async fn post(
    shared: &Arc<Shared>,
    caller: &Caller,
    era: Era,
    request: Request<Incoming>,
) -> Result<Response<Body>, Rejection> {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let wants = Wants::read(headers)?;
    negotiate::check_content(headers)?;
    let message = body::read(shared, caller, body).await?;
    shared.access.check_token(headers).await?; // the body may have taken so long that the token is revoked now
    let read = Message::read_in_turn(&shared.gateway.workers, caller.owner(), message).await;
    let mut message = read.map_err(|answer| Rejection::with(StatusCode::BAD_REQUEST, &answer))?;
    if let Message::Request(request) = &mut message {
        let header = headers.get(TRACE_PARENT);
        request.meta.trace_header = header.map(|value| Bytes::copy_from_slice(value.as_bytes()));
    }
    match message {
        Message::Request(request) if era == Era::Unknown => {
            Err(negotiate::unknown_version(headers, request.id()))
        }
        _ if era == Era::Unknown => Err(negotiate::unknown_version(headers, b"null")),
        Message::Request(request) if request.is_modern() => {
            modern::serve(shared, caller, &parts, wants, &request).await
        }
        // A host that sends `initialize` chooses the legacy protocol, whatever its headers say.
        Message::Request(request) if request.method() == b"initialize" => {
            legacy::open(shared, caller, headers, &request)
        }
        Message::Request(request) if era == Era::Modern => {
            modern::serve(shared, caller, &parts, wants, &request).await
        }
        Message::Request(request) => legacy::serve(shared, caller, headers, wants, &request).await,
        // In the stateless protocol notifications have no effect.
        Message::Notification(_) if era == Era::Modern => Ok(reply::empty(StatusCode::ACCEPTED)),
        Message::Notification(notification) => legacy::take(shared, caller, headers, &notification),
        Message::Response(_) if era == Era::Modern => {
            Err(Rejection::new(StatusCode::BAD_REQUEST, "a host of this protocol sends no responses"))
        }
        Message::Response(response) => legacy::take_response(shared, caller, headers, response),
    }
}
