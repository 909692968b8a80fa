//! The plain API: all tools as one JSON list, and one request per call, for clients that do not speak MCP.

mod arguments;
pub(super) mod error;
mod in_flight;
mod params;

use std::sync::Arc;

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CACHE_CONTROL, ETAG, HeaderValue, IF_NONE_MATCH},
};
use plugbay_core::{
    era::Era,
    surface::Snapshot,
    wire::{Frame, Head, Kind},
};

pub(super) use in_flight::InFlight;

use self::error::ApiError;
use super::{
    Shared,
    access::Caller,
    body,
    negotiate::{self, Wants},
    reject::Rejection,
    reply::{self, Body, Start},
    session_key,
};
use crate::{
    budget::Budget,
    context::RequestContext,
    dispatch,
    message::{self, Request as Message},
    outbox::Outbox,
    refusal::Refusal,
    session::Session,
};

pub(super) const TOOLS: &str = "/tools";
pub(super) const CALL: &str = "/tools/call";

/// Whether errors at this path have the form of the plain API.
pub(super) fn serves(path: &str) -> bool {
    path == TOOLS || path.starts_with("/tools/") || path == super::openapi::PATH
}

/// `GET /tools`: every tool of every server that the caller may use, the same for all modes and sessions.
pub(super) async fn list(
    shared: &Shared,
    caller: &Caller,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response<Body>, Rejection> {
    check_read(method, headers)?;
    session_key::name(headers)?; // it changes nothing here, but a wrong one is better known now than at the call
    shared.gateway.settled().await;
    shared.access.check_token(headers).await?; // it may be revoked by now
    shared.gateway.host_events.first_list.notify_one();
    let snapshot = shared.used_by(caller).snapshot();
    let list = snapshot.names.list();
    Ok(document(headers, &list.body, &list.tag))
}

/// `POST /tools/call`: one call, on the same path as every other call. The response body is the server's
/// result.
pub(super) async fn call(
    shared: &Arc<Shared>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Response<Body>, Rejection> {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    if parts.method != Method::POST {
        return Err(Rejection::method("POST"));
    }
    check_accept(headers)?;
    negotiate::check_content(headers)?;
    let key = session_key::named(caller, headers)?;
    let Some(_slot) = shared.in_flight.enter(&key) else {
        return Err(caller.share().reject(b"null", "this session has too many requests in flight"));
    };
    let _call = caller.share().begin_call(b"null")?;
    let body = body::read(shared, caller, body).await?;
    shared.access.check_token(headers).await?; // the body may have taken so long that the token is revoked now
    let read = if body.len() <= message::LONG {
        params::read(&body)
    } else {
        let working = shared.gateway.workers.run(caller.owner(), move || params::read(&body));
        working.await.unwrap_or(Err(Refusal::ShuttingDown))
    };
    let message = match read {
        Ok(message) => message,
        Err(refusal) => return Ok(ApiError::of(&refusal).into_response()),
    };
    let gateway = shared.enter(caller, headers)?;
    let budget = caller.share().memory.session();
    let session = Session::plain(caller.owner(), gateway, Outbox::for_notifications(&budget));
    answer(shared, session, &message, &budget).await
}

async fn answer(
    shared: &Arc<Shared>,
    session: Arc<Session>,
    request: &Message,
    budget: &Arc<Budget>,
) -> Result<Response<Body>, Rejection> {
    let sink = Arc::new(Outbox::for_answer(budget));
    shared.live_sessions.add(&session);
    let waiting = AbandonOnDrop(session);
    let context = RequestContext { session: &waiting.0, sink: &sink, request, era: Era::Legacy };
    dispatch::route_in_turn(context, arguments::destination);
    let answer = reply::start(&sink, Wants { json: true, stream: false }).await;
    shared.check_scope(&sink, b"null")?;
    Ok(match (answer, sink.refusal()) {
        (_, Some(refusal)) => refused(refusal, &waiting.0.snapshot()).into_response(),
        (Start::Whole(answer), None) => delivered(answer, budget),
        (Start::Stream(_) | Start::Cancelled, None) => ApiError::of(&Refusal::ShuttingDown).into_response(),
    })
}

/// The error for a refusal. An unknown tool may belong to a server that failed before it could list.
fn refused(refusal: &Refusal, snapshot: &Snapshot) -> ApiError {
    let error = ApiError::of(refusal);
    if !matches!(refusal, Refusal::Unknown { .. }) {
        return error;
    }
    let servers = snapshot.servers().into_iter();
    let failed = servers.filter(|server| {
        snapshot.catalog.get(server).is_none() && snapshot.catalog.failure(server).is_some()
    });
    error.with_failed_servers(failed.map(|server| server.to_string()).collect())
}

/// The result alone, exactly as its server wrote it.
fn delivered(answer: Frame, budget: &Arc<Budget>) -> Response<Body> {
    let message = in_one_piece(answer, budget);
    let Ok(Head { kind, payload: Some(payload), .. }) = Head::read(&message) else {
        return ApiError::unreadable_answer().into_response();
    };
    match kind {
        Kind::Error { .. } => ApiError::of_server(&message[payload]).into_response(),
        _ => reply::json(StatusCode::OK, &Frame::from(message.slice(payload))),
    }
}

/// The answer in one buffer. A large answer is copied once, and counted until it was sent.
fn in_one_piece(answer: Frame, budget: &Arc<Budget>) -> Bytes {
    if let [whole] = answer.pieces() {
        return whole.clone();
    }
    let length = answer.len();
    budget.reserve(length).around(answer.into_bytes())
}

/// The response with a document that clients cache until its tag changes.
pub(super) fn document(headers: &HeaderMap, body: &Bytes, tag: &str) -> Response<Body> {
    let tag = format!("\"{tag}\"");
    let known = headers.get_all(IF_NONE_MATCH).iter().any(|known| names(known, &tag));
    let mut response = if known {
        reply::empty(StatusCode::NOT_MODIFIED)
    } else {
        reply::json(StatusCode::OK, &Frame::from(body.clone()))
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(ETAG, tag);
    }
    response
}

/// Whether `If-None-Match` names this tag. A proxy that compresses makes a tag weak.
fn names(known: &HeaderValue, tag: &str) -> bool {
    let known = known.to_str().unwrap_or_default().split(',').map(str::trim);
    known.map(|known| known.strip_prefix("W/").unwrap_or(known)).any(|known| known == "*" || known == tag)
}

pub(super) fn check_read(method: &Method, headers: &HeaderMap) -> Result<(), Rejection> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Err(Rejection::method("GET, HEAD"));
    }
    check_accept(headers)
}

fn check_accept(headers: &HeaderMap) -> Result<(), Rejection> {
    if negotiate::accepts_json(headers) {
        return Ok(());
    }
    Err(Rejection::new(StatusCode::NOT_ACCEPTABLE, "answers are application/json: accept it"))
}

/// Abandons the session on drop: a client that closes its connection cancels its call.
struct AbandonOnDrop(Arc<Session>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
