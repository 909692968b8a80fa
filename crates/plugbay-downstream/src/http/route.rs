//! The path of every HTTP request: read top-down, each check guards everything below it.

use std::{convert::Infallible, sync::Arc};

use hyper::{Method, Request, Response, StatusCode, body::Incoming};

use super::{
    Shared,
    access::Caller,
    body,
    cors::Cors,
    legacy, modern,
    negotiate::{self, Era, Wants},
    reject::Rejection,
    reply::{self, Body},
};
use crate::message::Message;

pub(super) async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    if let Err(rejection) = shared.access.check_place(request.uri(), request.headers()) {
        return Ok(rejection.into_response());
    }
    let cors = Cors::of(request.headers());
    let response = match cors.preflight(request.method(), request.headers()) {
        Some(allowed) => allowed,
        None => admit(&shared, request).await.unwrap_or_else(Rejection::into_response),
    };
    Ok(cors.allow(response))
}

async fn admit(shared: &Arc<Shared>, request: Request<Incoming>) -> Result<Response<Body>, Rejection> {
    match request.uri().path() {
        "/healthz" => return probe(request.method(), true),
        "/readyz" => return probe(request.method(), shared.gateway.snapshot().settled),
        _ => {}
    }
    let caller = shared.access.check_token(request.headers())?;
    if request.uri().path() != "/mcp" {
        return Err(Rejection::new(StatusCode::NOT_FOUND, "there is nothing here; MCP is served at /mcp"));
    }
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
    caller: Caller,
    era: Era,
    request: Request<Incoming>,
) -> Result<Response<Body>, Rejection> {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let wants = Wants::read(headers)?;
    negotiate::check_content(headers)?;
    let message = body::read(shared, body).await?;
    let message =
        Message::read(message).map_err(|answer| Rejection::with(StatusCode::BAD_REQUEST, &answer))?;
    match message {
        Message::Request(request) if era == Era::Unknown => {
            Err(negotiate::unknown_version(headers, request.id()))
        }
        _ if era == Era::Unknown => Err(negotiate::unknown_version(headers, b"null")),
        Message::Request(request) if request.is_modern() => {
            modern::serve(shared, caller, &parts, wants, &request).await
        }
        // By its `initialize` a host chooses the legacy protocol, whatever its headers say.
        Message::Request(request) if request.method() == b"initialize" => {
            legacy::open(shared, caller, &request)
        }
        Message::Request(request) if era == Era::Modern => {
            modern::serve(shared, caller, &parts, wants, &request).await
        }
        Message::Request(request) => legacy::serve(shared, caller, headers, wants, &request).await,
        // No notification means anything to a stateless gateway.
        Message::Notification(_) if era == Era::Modern => Ok(reply::empty(StatusCode::ACCEPTED)),
        Message::Notification(notification) => legacy::take(shared, caller, headers, &notification),
        Message::Response(_) if era == Era::Modern => {
            Err(Rejection::new(StatusCode::BAD_REQUEST, "a host of this protocol sends no responses"))
        }
        Message::Response(response) => legacy::take_response(shared, caller, headers, response),
    }
}
