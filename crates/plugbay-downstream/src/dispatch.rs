//! What a host's message means: read top-down, this is the path of every request.

use std::{borrow::Cow, sync::Arc};

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
            let request = Request::new(message, id, method, payload);
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

#[derive(Clone)]
struct Request {
    message: Bytes,
    id: Span,
    method: Span,
    params: Option<Span>,
    /// What of `params` any method reads, found in one pass.
    name: Option<Span>,
    cursor: Option<Span>,
    notifications: Option<Span>,
    protocol_version: Option<Span>,
    meta: Meta,
    /// A key that not every parser would read alike.
    ambiguous: Option<&'static str>,
}

/// What a call is about. If one of these stood twice, or also in other letters, a server could read
/// another name than the one that was allowed.
const UNAMBIGUOUS: [&str; 3] = ["name", "arguments", "_meta"];

impl Request {
    fn new(message: Bytes, id: Span, method: Span, params: Option<Span>) -> Self {
        let (mut name, mut cursor, mut notifications, mut protocol_version) = (None, None, None, None);
        let (mut meta, mut ambiguous, mut seen) = (Meta::default(), None, [false; UNAMBIGUOUS.len()]);
        for member in params.iter().flat_map(|params| Members::of(&message, params)).flatten() {
            for (key, seen) in UNAMBIGUOUS.into_iter().zip(&mut seen) {
                if member.key.eq_ignore_ascii_case(key)
                    && (std::mem::replace(seen, true) || member.key != key)
                {
                    ambiguous = Some(key);
                }
            }
            match &*member.key {
                "name" => name = Some(member.value),
                "cursor" => cursor = Some(member.value),
                "notifications" => notifications = Some(member.value),
                "protocolVersion" => protocol_version = Some(member.value),
                "_meta" => meta = Meta::read(&message, &member.value),
                _ => {}
            }
        }
        Self { message, id, method, params, name, cursor, notifications, protocol_version, meta, ambiguous }
    }

    fn id(&self) -> &[u8] {
        &self.message[self.id.clone()]
    }

    fn raw(&self, span: &Span) -> &[u8] {
        &self.message[span.clone()]
    }

    fn text(&self, span: Option<&Span>) -> Option<Cow<'_, str>> {
        string_value(self.raw(span?))
    }
}

fn serve(session: &Arc<Session>, request: &Request) -> Result<(), Refusal> {
    let method = &request.message[request.method.clone()];
    if let Some(key) = request.ambiguous {
        let what = format!("{key:?} must stand in \"params\" once, and in these letters");
        return Err(Refusal::InvalidParams(what));
    }
    if method == b"initialize" {
        return initialize(session, request);
    }
    let era = opened_era(session, request, method)?;
    match (method, era) {
        (b"tools/list", _) => list_tools(session, request, era),
        (b"tools/call", _) => call_tool(session, request, era),
        (b"ping", Era::Legacy) => session.send(respond::result(request.id(), era, json!({}))),
        (b"server/discover", Era::Modern) => session.send(respond::discover(request.id())),
        (b"subscriptions/listen", Era::Modern) => listen(session, request),
        _ => return Err(Refusal::UnknownMethod),
    }
    Ok(())
}

/// Which era a request belongs to. A modern one must say everything that the server may rely on.
fn opened_era(session: &Session, request: &Request, method: &[u8]) -> Result<Era, Refusal> {
    let meta = &request.meta;
    let Some(version) = &meta.version else {
        // Only a modern host knows these, and it would not be one without its `_meta`.
        let modern_only = matches!(method, b"server/discover" | b"subscriptions/listen");
        return if modern_only || session.is_modern() {
            Err(missing(era::VERSION_KEY))
        } else {
            Ok(Era::Legacy)
        };
    };
    let version = request.text(Some(version)).ok_or_else(|| missing(era::VERSION_KEY))?;
    if version != era::MODERN_VERSION {
        return Err(Refusal::UnsupportedVersion(version.into_owned()));
    }
    if !meta.capabilities.as_ref().is_some_and(|span| request.raw(span).starts_with(b"{")) {
        return Err(missing(era::CAPABILITIES_KEY));
    }
    session.opened_modern();
    Ok(Era::Modern)
}

fn missing(key: &str) -> Refusal {
    Refusal::InvalidParams(format!("the request's \"_meta\" lacks {key:?}"))
}

fn initialize(session: &Session, request: &Request) -> Result<(), Refusal> {
    let requested = request.text(request.protocol_version.as_ref());
    if requested.is_none() {
        return Err(Refusal::InvalidParams("\"protocolVersion\" is missing".to_owned()));
    }
    session.opened_legacy();
    session.send(respond::initialize(request.id(), era::negotiate(requested.as_deref())));
    Ok(())
}

fn list_tools(session: &Arc<Session>, request: &Request, era: Era) {
    if request.cursor.as_ref().is_some_and(|span| request.raw(span) != b"null") {
        let refusal = Refusal::InvalidParams("unknown cursor: the list has one page".to_owned());
        return session.send(respond::error(request.id(), &refusal));
    }
    let answer = move |session: &Arc<Session>, request: &Request| {
        let listing = session.gateway().snapshot().listing;
        session.send(respond::tools(request.id(), era, &listing));
        session.has_seen(listing);
    };
    if session.gateway().snapshot().settled {
        return answer(session, request);
    }
    when_settled(session, request, answer);
}

/// Answers as soon as every server has been heard of, unless the request is taken back before.
fn when_settled(
    session: &Arc<Session>,
    request: &Request,
    answer: impl FnOnce(&Arc<Session>, &Request) + Send + 'static,
) {
    let id = Bytes::copy_from_slice(request.id());
    if !session.wait(id.clone()) {
        return session.send(respond::error(&id, &Refusal::IdInUse));
    }
    let (session, request) = (Arc::clone(session), request.clone());
    tokio::spawn(async move {
        session.gateway().settled().await;
        if session.waited(&id) {
            answer(&session, &request);
        }
        session.dealt_with();
    });
}

fn call_tool(session: &Arc<Session>, request: &Request, era: Era) {
    let settled = session.gateway().snapshot().settled;
    call_known_tool(session, request, era, settled);
}

/// `settled`: nothing is gained by waiting for more servers to be heard of.
fn call_known_tool(session: &Arc<Session>, request: &Request, era: Era, settled: bool) {
    let refuse = |refusal| session.send(respond::error(request.id(), &refusal));
    let name = request.name.as_ref().and_then(|span| Some((request.text(Some(span))?, span)));
    let Some((name, span)) = name else {
        return refuse(Refusal::InvalidParams("\"name\" must be the name of a tool".to_owned()));
    };
    let snapshot = session.gateway().snapshot();
    let target = match snapshot.listing.plan(&name) {
        Plan::Forward(target) => target,
        // Its server may not have been heard of yet: look again when all have.
        Plan::Unknown { .. } if !settled => {
            let again = move |session: &_, request: &_| call_known_tool(session, request, era, true);
            return when_settled(session, request, again);
        }
        Plan::Unknown { nearest } => {
            let nearest = nearest.into_iter().map(str::to_owned).collect();
            return refuse(Refusal::UnknownTool { name: name.into_owned(), nearest });
        }
    };
    let ticket = session.gateway().tickets.next();
    let token = request.meta.progress_token.clone();
    let host_token = token.clone().map(|span| request.message.slice(span));
    let id = request.message.slice(request.id.clone());
    if !session.register(ticket, id, host_token, era, target.server.clone()) {
        return refuse(Refusal::IdInUse);
    }
    let mut draft = Draft::new(request.message.clone())
        .with(request.id.clone(), Hole::Ticket)
        .with(span.clone(), Hole::Text(target.quoted.clone()));
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
    let wanted = request.notifications.as_ref().and_then(|filter| {
        let wanted = Members::find(&request.message, filter, "toolsListChanged")?;
        Some(request.raw(&wanted) == b"true")
    });
    let id = request.message.slice(request.id.clone());
    if !session.subscribe(id, wanted == Some(true)) {
        session.send(respond::error(request.id(), &Refusal::IdInUse));
    }
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
