//! Requests of the legacy protocol: a session that `initialize` opens, and streams that can be resumed.

use std::sync::Arc;

use hyper::{
    HeaderMap, Response, StatusCode,
    header::{HeaderName, HeaderValue},
};

use super::{
    Shared,
    access::Caller,
    negotiate::{Wants, accepts_stream, single},
    reject::Rejection,
    reply::{self, Body, Start},
    sessions::{SESSION, random_id},
    stream::EventId,
};
use crate::{
    dispatch,
    limits::CALLS_OF_SESSION,
    message::{Notification, Request, Response as HostResponse},
    outbox::Outbox,
    refusal::Refusal,
    respond,
    session::Session,
};

const LAST_EVENT: &str = "last-event-id";

pub(super) fn open(
    shared: &Arc<Shared>,
    caller: &Caller,
    headers: &HeaderMap,
    request: &Request,
) -> Result<Response<Body>, Rejection> {
    let id = random_id()?;
    let gateway = shared.enter_new(caller, headers, &id)?;
    let budget = caller.share().memory.session();
    let sink = Arc::new(Outbox::for_request(&budget));
    let session = Session::shared(caller.owner(), gateway, Outbox::for_notifications(&budget));
    dispatch::serve(&session, &sink, request)
        .map_err(|refusal| Rejection::of(StatusCode::BAD_REQUEST, request.id(), &refusal))?;
    shared.live_sessions.add(&session);
    shared.sessions.add(id.clone(), caller, session, budget)?;
    // plugbay answers `initialize` itself, and so at once.
    let answer = sink.take_now().unwrap_or_else(|| respond::error(request.id(), &Refusal::ShuttingDown));
    let mut response = reply::json(StatusCode::OK, &answer);
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(HeaderName::from_static(SESSION), id);
    }
    Ok(response)
}

/// Takes a notification, which needs no answer.
pub(super) fn take(
    shared: &Arc<Shared>,
    caller: &Caller,
    headers: &HeaderMap,
    notification: &Notification,
) -> Result<Response<Body>, Rejection> {
    let http_session = shared.sessions.find(headers, caller)?;
    dispatch::receive_notification(&http_session.session, notification);
    Ok(reply::empty(StatusCode::ACCEPTED))
}

/// Takes the host's response to a server request.
pub(super) fn take_response(
    shared: &Arc<Shared>,
    caller: &Caller,
    headers: &HeaderMap,
    response: HostResponse,
) -> Result<Response<Body>, Rejection> {
    let http_session = shared.sessions.find(headers, caller)?;
    dispatch::receive_response(&http_session.session, response);
    Ok(reply::empty(StatusCode::ACCEPTED))
}

/// Serves a request. If its connection breaks, the call goes on. If the host knows of a stream, the answer
/// waits there.
pub(super) async fn serve(
    shared: &Arc<Shared>,
    caller: &Caller,
    headers: &HeaderMap,
    wants: Wants,
    request: &Request,
) -> Result<Response<Body>, Rejection> {
    let http_session = shared.sessions.find(headers, caller)?;
    if http_session.session.in_flight() >= CALLS_OF_SESSION {
        return Err(caller.share().reject(request.id(), "this session has too many requests in flight"));
    }
    if !http_session.has_room() {
        return Err(caller.share().reject(request.id(), "this session leaves too much unread"));
    }
    let outbox = if wants.stream { Outbox::for_request } else { Outbox::for_answer };
    let slot = caller.share().begin_call(request.id())?;
    let sink = Arc::new(outbox(&http_session.budget).counted(slot));
    if let Err(refusal) = dispatch::serve(&http_session.session, &sink, request) {
        sink.answer(respond::error(request.id(), &refusal));
    }
    let start = reply::start(&sink, wants).await;
    shared.check_scope(&sink, request.id())?;
    match start {
        Start::Whole(answer) => Ok(reply::json(StatusCode::OK, &answer)),
        Start::Cancelled => Ok(reply::nothing()),
        Start::Stream(sent) => Ok(http_session.stream(sink, sent).open_from_start()),
    }
}

/// Opens the stream for messages that belong to no request, or resumes a stream that broke.
pub(super) fn listen(
    shared: &Arc<Shared>,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Response<Body>, Rejection> {
    let http_session = shared.sessions.find(headers, caller)?;
    if !accepts_stream(headers) {
        return Err(Rejection::new(StatusCode::NOT_ACCEPTABLE, "this is a text/event-stream: accept it"));
    }
    // Not 404: a host would take that for the end of its session.
    let unknown =
        || Rejection::new(StatusCode::BAD_REQUEST, "there is no stream with this Last-Event-ID any more");
    match single(headers, LAST_EVENT).map_err(|_| unknown())? {
        None => Ok(http_session.notifications().open()),
        Some(id) => {
            let id = EventId::parse(id).ok_or_else(unknown)?;
            let stream = http_session.find_stream(id.stream).ok_or_else(unknown)?;
            Ok(stream.resume(id.event))
        }
    }
}

pub(super) fn end(
    shared: &Arc<Shared>,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Response<Body>, Rejection> {
    shared.sessions.remove(headers, caller)?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}
