//! What a host's message means: read top-down, this is the path of every request.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    era::{self, Era, Meta},
    exchange::Call,
    surface::Plan,
    wire::{Draft, Head, Hole, Kind, Members, Span, string_value},
};
use serde_json::json;

use crate::{
    respond::{self, Refusal},
    session::Session,
};

/// Takes one message from a host. Never waits: what needs time goes on elsewhere.
pub(crate) fn receive(session: &Arc<Session>, message: Bytes) {
    match Head::read(&message) {
        Ok(Head { kind: Kind::Request { id, method }, payload, .. }) => {
            let request = Request { message, id, method, params: payload };
            if let Err(refusal) = serve(session, &request) {
                session.send(respond::error(request.id(), &refusal));
            }
        }
        Ok(Head { kind: Kind::Notification { method }, payload, .. }) => {
            notified(session, &message, &method, payload.as_ref());
        }
        // No server has asked this host anything yet, so there is nothing to answer.
        Ok(_) => {}
        Err(malformed) => {
            let id = malformed.id.clone().map_or(&b"null"[..], |id| &message[id]);
            session.send(respond::error(id, &Refusal::Malformed(malformed.clone())));
        }
    }
}

struct Request {
    message: Bytes,
    id: Span,
    method: Span,
    params: Option<Span>,
}

impl Request {
    fn id(&self) -> &[u8] {
        &self.message[self.id.clone()]
    }

    fn param(&self, key: &str) -> Option<Span> {
        Members::find(&self.message, self.params.as_ref()?, key)
    }

    fn text(&self, span: Span) -> Option<String> {
        Some(string_value(&self.message[span])?.into_owned())
    }
}

fn serve(session: &Arc<Session>, request: &Request) -> Result<(), Refusal> {
    let method = &request.message[request.method.clone()];
    if method == b"initialize" {
        return initialize(session, request);
    }
    let meta = Meta::read(&request.message, request.params.as_ref());
    let era = opened_era(session, request, &meta, method)?;
    match (method, era) {
        (b"tools/list", _) => list_tools(session, request, era),
        (b"tools/call", _) => call_tool(session, request, &meta, era),
        (b"ping", Era::Legacy) => session.send(respond::result(request.id(), era, json!({}))),
        (b"server/discover", Era::Modern) => session.send(respond::discover(request.id())),
        (b"subscriptions/listen", Era::Modern) => listen(session, request),
        _ => return Err(Refusal::UnknownMethod),
    }
    Ok(())
}

/// Which era a request belongs to. A modern one must say everything that the server may rely on.
fn opened_era(session: &Session, request: &Request, meta: &Meta, method: &[u8]) -> Result<Era, Refusal> {
    let Some(version) = meta.version.clone() else {
        // Only a modern host knows these, and it would not be one without its `_meta`.
        let modern_only = matches!(method, b"server/discover" | b"subscriptions/listen");
        return if modern_only || session.is_modern() {
            Err(missing(era::VERSION_KEY))
        } else {
            Ok(Era::Legacy)
        };
    };
    let version = request.text(version).ok_or_else(|| missing(era::VERSION_KEY))?;
    if version != era::MODERN_VERSION {
        return Err(Refusal::UnsupportedVersion(version));
    }
    let capabilities = meta.capabilities.clone().filter(|span| request.message[span.start] == b'{');
    capabilities.ok_or_else(|| missing(era::CAPABILITIES_KEY))?;
    session.opened_modern();
    Ok(Era::Modern)
}

fn missing(key: &str) -> Refusal {
    Refusal::InvalidParams(format!("the request's \"_meta\" lacks {key:?}"))
}

fn initialize(session: &Session, request: &Request) -> Result<(), Refusal> {
    let requested = request.param("protocolVersion").and_then(|span| request.text(span));
    if requested.is_none() {
        return Err(Refusal::InvalidParams("\"protocolVersion\" is missing".to_owned()));
    }
    session.opened_legacy();
    session.send(respond::initialize(request.id(), era::negotiate(requested.as_deref())));
    Ok(())
}

fn list_tools(session: &Arc<Session>, request: &Request, era: Era) {
    if request.param("cursor").is_some_and(|span| &request.message[span] != b"null") {
        let refusal = Refusal::InvalidParams("unknown cursor: the list has one page".to_owned());
        return session.send(respond::error(request.id(), &refusal));
    }
    let id = Bytes::copy_from_slice(request.id());
    let answer = move |session: &Arc<Session>| {
        let listing = session.gateway().snapshot().listing;
        session.send(respond::tools(&id, era, &listing));
        session.has_seen(listing);
    };
    when_settled(session, answer);
}

/// At once if every server has been heard of, now or in an earlier run; else as soon as that is so.
fn when_settled(session: &Arc<Session>, answer: impl FnOnce(&Arc<Session>) + Send + 'static) {
    if session.gateway().snapshot().settled {
        return answer(session);
    }
    let session = Arc::clone(session);
    tokio::spawn(async move {
        session.gateway().settled().await;
        answer(&session);
    });
}

fn call_tool(session: &Arc<Session>, request: &Request, meta: &Meta, era: Era) {
    let refuse = |refusal| session.send(respond::error(request.id(), &refusal));
    let Some((name, span)) = request.param("name").and_then(|span| Some((request.text(span.clone())?, span)))
    else {
        return refuse(Refusal::InvalidParams("\"name\" must be the name of a tool".to_owned()));
    };
    let snapshot = session.gateway().snapshot();
    let target = match snapshot.listing.plan(&name) {
        Plan::Forward(target) => target,
        // Its server may not have been heard of yet: look again when all have.
        Plan::Unknown { .. } if !snapshot.settled => {
            let message = request.message.clone();
            return when_settled(session, move |session| receive(session, message));
        }
        Plan::Unknown { nearest } => {
            let nearest = nearest.into_iter().map(str::to_owned).collect();
            return refuse(Refusal::UnknownTool { name, nearest });
        }
    };
    let ticket = session.gateway().tickets.next();
    let token = meta.progress_token.clone();
    let host_token = token.clone().map(|span| request.message.slice(span));
    let id = request.message.slice(request.id.clone());
    if !session.register(ticket, id, host_token, era, target.server.clone()) {
        return refuse(Refusal::IdInUse);
    }
    let mut draft = Draft::new(request.message.clone())
        .with(request.id.clone(), Hole::Ticket)
        .with(span, Hole::Text(target.quoted.clone()));
    if let Some(token) = token {
        draft = draft.with(token, Hole::Ticket);
    }
    let call = Call {
        ticket,
        caller: session.clone(),
        request: draft,
        era,
        params: request.params.clone(),
        timeout: None,
    };
    session.gateway().servers.forward(&target.server, call);
}

fn listen(session: &Session, request: &Request) {
    let wanted = request.param("notifications").and_then(|filter| {
        let wanted = Members::find(&request.message, &filter, "toolsListChanged")?;
        Some(&request.message[wanted] == b"true")
    });
    let id = request.message.slice(request.id.clone());
    session.send(respond::acknowledged(&id, wanted == Some(true)));
    session.subscribe(id, wanted == Some(true));
}

fn notified(session: &Session, message: &Bytes, method: &Span, params: Option<&Span>) {
    match &message[method.clone()] {
        b"notifications/initialized" => session.initialized(),
        b"notifications/cancelled" => {
            let Some(request) = params.and_then(|params| Members::find(message, params, "requestId")) else {
                return;
            };
            let notification = Draft::new(message.clone()).with(request.clone(), Hole::Ticket);
            session.cancel(&message[request], notification);
        }
        _ => {}
    }
}
