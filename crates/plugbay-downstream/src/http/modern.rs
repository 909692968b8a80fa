//! Requests of the modern protocol: each stands alone, and lives as long as its connection.

use std::{borrow::Cow, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use hyper::{HeaderMap, Response, StatusCode, http::request::Parts};
use plugbay_core::{declaration::Declaration, era::Era, surface::Snapshot, wire::Frame};

use super::{
    Shared,
    access::Caller,
    mirrored,
    negotiate::{self, Wants, single},
    reject::Rejection,
    reply::{self, Body, Start},
};
use crate::{
    connected_hosts::ClientInfo, dispatch, message::Request, outbox::Outbox, refusal::Refusal, respond,
    session::Session,
};

pub(super) async fn serve(
    shared: &Arc<Shared>,
    caller: &Caller,
    Parts { headers, uri, .. }: &Parts,
    wants: Wants,
    request: &Request,
) -> Result<Response<Body>, Rejection> {
    let refuse = |refusal: Refusal| {
        let status = match refusal {
            Refusal::UnknownMethod => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        Rejection::of(status, request.id(), &refusal)
    };
    let client = request.client();
    let host_view = shared.host_views.of(caller.owner(), uri, client.as_deref());
    let gateway = shared.enter_modern(caller, headers, uri, client.as_deref())?;
    let snapshot = gateway.snapshot();
    let info = ClientInfo::of(request, Era::Modern);
    host_view.identify(info.client(), &snapshot.layout, || (gateway.usage.learned)());
    let declared = || {
        let declared = Declaration::new(request.client_capabilities(), request.extensions());
        Some(Arc::new(declared))
    };
    let snapshot = host_view.snapshot(&snapshot, declared);
    check_headers(&snapshot, headers, request).map_err(refuse)?;
    match request.method() {
        b"initialize" => return Err(refuse(Refusal::UnknownMethod)),
        b"subscriptions/listen" if !wants.stream => {
            let why = "a subscription is a text/event-stream: accept it";
            return Err(Rejection::new(StatusCode::NOT_ACCEPTABLE, why));
        }
        _ => {}
    }
    let slot = caller.share().begin_call(request.id())?;
    let budget = caller.share().memory.session();
    host_view.register(&ClientInfo::of(request, Era::Modern), &shared.gateway.connected_hosts);
    let sink = Arc::new(Outbox::for_request(&budget).counted(slot));
    let outbox = Outbox::for_notifications(&budget);
    let session = Session::stateless(caller.owner(), gateway, host_view, outbox);
    shared.live_sessions.add(&session);
    let waiting = AbandonOnDrop(session);
    dispatch::serve(&waiting.0, &sink, request).map_err(refuse)?;
    let start = reply::start(&sink, wants).await;
    shared.check_scope(&sink, request.id())?;
    match start {
        Start::Whole(answer) => Ok(reply::json(status_of(&answer), &answer)),
        Start::Cancelled => Ok(reply::nothing()),
        Start::Stream(frames) => {
            let (out, response) = reply::events();
            tokio::spawn(async move {
                let _ = reply::pump(&sink, frames, out).await;
                drop(waiting);
            });
            Ok(response)
        }
    }
}

/// The HTTP status of an answer. The protocol gives some errors a status, even if the server itself sends
/// them.
fn status_of(answer: &Frame) -> StatusCode {
    let [whole] = answer.pieces() else { return StatusCode::OK };
    match respond::error_code(whole) {
        Some(-32022..=-32020) => StatusCode::BAD_REQUEST,
        Some(-32601) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

/// Abandons the session on drop. By the protocol, closing the connection cancels the request.
struct AbandonOnDrop(Arc<Session>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Compares headers and body, because a proxy may have acted upon the headers.
fn check_headers(snapshot: &Snapshot, headers: &HeaderMap, request: &Request) -> Result<(), Refusal> {
    // A body without a version gets the error for that, not for a mismatch with the headers.
    if request.is_modern() {
        check(headers, negotiate::VERSION, request.version().as_deref())?;
    }
    check(headers, METHOD, Some(&String::from_utf8_lossy(request.method())))?;
    if request.is_named() {
        check(headers, NAME, request.subject().as_deref())?;
    }
    if request.method() == b"tools/call" {
        for mirrored in mirrored::expected(snapshot, request) {
            let agrees = |header: &str, body: &str| mirrored.agrees(header, body);
            compare(headers, &mirrored.header, mirrored.text().as_deref(), agrees)?;
        }
    }
    Ok(())
}

const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

fn check(headers: &HeaderMap, name: &str, body: Option<&str>) -> Result<(), Refusal> {
    compare(headers, name, body, |header, body| header == body)
}

fn compare(
    headers: &HeaderMap,
    name: &str,
    body: Option<&str>,
    agree: impl Fn(&str, &str) -> bool,
) -> Result<(), Refusal> {
    let mismatch = |what: String| Err(Refusal::HeaderMismatch(what));
    let Ok(header) = single(headers, name) else {
        return mismatch(format!("the {name} header must be given once, as visible ASCII"));
    };
    match (header.map(|value| (value, decoded(value))), body) {
        (Some((_, Some(value))), Some(body)) if agree(&value, body) => Ok(()),
        // The handler reports a missing member of the body.
        (None, None) => Ok(()),
        (None, Some(_)) => mismatch(format!("the {name} header is missing")),
        (Some((value, _)), _) => {
            let body = body.unwrap_or_default();
            mismatch(format!("the {name} header {value:?} does not match {body:?} in the body"))
        }
    }
}

/// Decodes a header value. A value that is not plain ASCII is sent in Base64, between these marks.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        None => Some(value.into()),
        Some(encoded) => String::from_utf8(BASE64.decode(encoded).ok()?).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_name_headers_may_be_base64() {
        assert_eq!(decoded("echo").as_deref(), Some("echo"));
        assert_eq!(decoded("=?base64?SGVsbG8sIOS4lueVjA==?=").as_deref(), Some("Hello, 世界"));
        assert_eq!(decoded("=?base64?%?="), None);
        assert_eq!(decoded("=?base64?").as_deref(), Some("=?base64?"));
    }
}
