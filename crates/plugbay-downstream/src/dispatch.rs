//! What a host's message means: read top-down, this is the path of every request.

mod retry;
mod tasks;

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    catalog::ItemKind,
    era::{self, Era},
    exchange::Call,
    level::Level,
    name::ServerName,
    surface::{self, Snapshot},
    wire::{Draft, Frame, Hole, Members, Span, elements, string_value},
};
use serde_json::json;

use crate::{
    builtin,
    lists::{self, Kind, Wanted},
    message::{Message, Notification, Request, Response},
    notifications::Watched,
    outbox::Outbox,
    respond::{self, Refusal},
    route::{self, Finder, Route, Way},
    session::{HostCall, Recourse, Session},
};

/// Takes one message from a host. Never waits: what needs time goes on elsewhere, and its answer goes
/// to `sink`.
pub(crate) fn receive(session: &Arc<Session>, sink: &Arc<Outbox>, message: Bytes) {
    match Message::read(message) {
        Ok(Message::Request(request)) => {
            if let Err(refusal) = serve(session, sink, &request) {
                sink.answer(respond::error(request.id(), &refusal));
            }
        }
        Ok(Message::Notification(notification)) => notified(session, &notification),
        Ok(Message::Response(response)) => replied(session, response),
        Err(answer) => sink.answer(answer),
    }
}

/// Serves a request, or tells why it is not one that can be served; only then nothing goes to `sink`.
pub(crate) fn serve(session: &Arc<Session>, sink: &Arc<Outbox>, request: &Request) -> Result<(), Refusal> {
    if let Some(key) = request.ambiguous {
        let what = format!("{key:?} must stand in \"params\" once, and in these letters");
        return Err(Refusal::InvalidParams(what));
    }
    let method = request.method();
    if method == b"initialize" {
        return initialize(session, sink, request);
    }
    let era = opened_era(session, request, method)?;
    match (method, era) {
        (b"tools/list", _) => list(session, sink, request, era, ItemKind::Tool),
        (b"resources/list", _) => list(session, sink, request, era, ItemKind::Resource),
        (b"resources/templates/list", _) => list(session, sink, request, era, ItemKind::Template),
        (b"prompts/list", _) => list(session, sink, request, era, ItemKind::Prompt),
        (b"tools/call", _) => call_tool(session, sink, request, era),
        (b"prompts/get", _) => pass_on(session, sink, request, era, route::prompt),
        (b"resources/read", _) => pass_on(session, sink, request, era, route::resource),
        (b"completion/complete", _) => pass_on(session, sink, request, era, route::completion),
        (b"tasks/get" | b"tasks/cancel", _)
        | (b"tasks/result", Era::Legacy)
        | (b"tasks/update", Era::Modern) => {
            pass_on(session, sink, request, era, crate::tasks::route);
        }
        (b"tasks/list", Era::Legacy) => return tasks::list(session, sink, request),
        (b"logging/setLevel", Era::Legacy) => return set_level(session, sink, request),
        (b"resources/subscribe", Era::Legacy) => return watch(session, sink, request),
        (b"resources/unsubscribe", Era::Legacy) => return unwatch(session, sink, request),
        (b"ping", Era::Legacy) => sink.answer(respond::result(request.id(), era, json!({}))),
        (b"server/discover", Era::Modern) => {
            let snapshot = session.snapshot();
            let instructions = session.host_view().instructions(&snapshot);
            sink.answer(respond::discover(request.id(), &snapshot, &instructions));
        }
        (b"subscriptions/listen", Era::Modern) => return listen(session, sink, request),
        _ if era::is_core(method) => return Err(Refusal::UnknownMethod),
        _ => pass_on(session, sink, request, era, route::unknown),
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
    if session.opened_modern() {
        session.meet(request, Era::Modern);
    }
    let client_capabilities = request.client_capabilities();
    session.host_view().lends_model(client_capabilities.sampling_tools);
    session.can(client_capabilities, &request.extensions());
    session.gateway().opened.notify_one();
    Ok(Era::Modern)
}

fn missing(key: &str) -> Refusal {
    Refusal::InvalidParams(format!("the request's \"_meta\" lacks {key:?}"))
}

fn initialize(session: &Arc<Session>, sink: &Outbox, request: &Request) -> Result<(), Refusal> {
    let requested = request.text(request.protocol_version.as_ref());
    if requested.is_none() {
        return Err(Refusal::InvalidParams("\"protocolVersion\" is missing".to_owned()));
    }
    let version = era::negotiate(requested.as_deref());
    let declared = request.capabilities.as_ref();
    let client_capabilities =
        declared.map(|object| ClientCapabilities::read(&request.message, object)).unwrap_or_default();
    session.meet(request, Era::Legacy);
    session.opened_legacy(version, client_capabilities, &request.extensions());
    let snapshot = session.snapshot();
    let instructions = session.host_view().instructions(&snapshot);
    let alone = session.is_alone();
    sink.answer(respond::initialize(request.id(), version, &snapshot, &instructions, alone));
    Ok(())
}

fn list(session: &Arc<Session>, sink: &Arc<Outbox>, request: &Request, era: Era, item_kind: ItemKind) {
    if request.cursor.as_ref().is_some_and(|span| request.raw(span) != b"null") {
        let refusal = Refusal::InvalidParams("unknown cursor: the list has one page".to_owned());
        return sink.answer(respond::error(request.id(), &refusal));
    }
    if item_kind == ItemKind::Tool && era == Era::Legacy && !session.is_alone() {
        session.host_view().listed_by_visitor();
    }
    let answer = move |session: &Arc<Session>, sink: &Arc<Outbox>, request: &Request| {
        let snapshot = session.snapshot();
        sink.answer(respond::list(
            request.id(),
            era,
            item_kind.list_key(),
            lists::definitions(&snapshot, item_kind),
        ));
        session.has_seen(&snapshot, Kind::of(item_kind));
    };
    let now = session.snapshot();
    if now.settled || item_kind == ItemKind::Tool && now.is_complete(&session.host_view().view_of(&now).0) {
        return answer(session, sink, request);
    }
    when_settled(session, sink, request, answer);
}

/// Answers as soon as every server has been heard of, unless the request is taken back before.
pub(crate) fn when_settled(
    session: &Arc<Session>,
    sink: &Arc<Outbox>,
    request: &Request,
    answer: impl FnOnce(&Arc<Session>, &Arc<Outbox>, &Request) + Send + 'static,
) {
    let gateway = session.gateway().clone();
    let settled = async move { gateway.settled().await };
    later(session, sink, request, settled, |session, sink, request, ()| answer(session, sink, request));
}

/// Answers as soon as tools can be searched for. Whoever makes the index already is waited for; everybody else
/// goes on meanwhile.
pub(crate) fn when_searchable(
    session: &Arc<Session>,
    sink: &Arc<Outbox>,
    request: &Request,
    tool_index: &Arc<surface::ToolIndex>,
    answer: impl FnOnce(&Arc<Session>, &Arc<Outbox>, &Request) + Send + 'static,
) {
    if tool_index.is_quick() {
        return answer(session, sink, request);
    }
    let (tool_index, table) = (Arc::clone(tool_index), session.gateway().table);
    let ready = tokio::task::spawn_blocking(move || tool_index.prepare(table));
    later(session, sink, request, ready, |session, sink, request, _| answer(session, sink, request));
}

/// Answers when something has come about. A request that is taken back before ends the wait for it.
pub(crate) fn later<T: Send + 'static>(
    session: &Arc<Session>,
    sink: &Arc<Outbox>,
    request: &Request,
    coming: impl Future<Output = T> + Send + 'static,
    answer: impl FnOnce(&Arc<Session>, &Arc<Outbox>, &Request, T) + Send + 'static,
) {
    let id = Bytes::copy_from_slice(request.id());
    let Some(taken_back) = session.wait(id.clone(), Arc::clone(sink)) else {
        return sink.answer(respond::error(&id, &Refusal::IdInUse));
    };
    let (session, sink, request) = (Arc::clone(session), Arc::clone(sink), request.clone());
    tokio::spawn(async move {
        let come = tokio::select! {
            come = coming => Some(come),
            _ = taken_back => None,
        };
        match come.filter(|_| session.waited(&id)) {
            Some(come) => answer(&session, &sink, &request, come),
            // Not before: server requests to the host that have become pointless are taken back on the same way.
            None => sink.taken_back(),
        }
        session.dealt_with();
    });
}

pub(crate) fn call_tool(session: &Arc<Session>, sink: &Arc<Outbox>, request: &Request, era: Era) {
    pass_on(session, sink, request, era, route::tool);
}

/// A request that is for one server, or for ourselves.
fn pass_on(session: &Arc<Session>, sink: &Arc<Outbox>, request: &Request, era: Era, find: Finder) {
    let snapshot = session.snapshot();
    match find(request, &snapshot, era, session) {
        Ok(way) => go(session, sink, request, era, way),
        // Its server may not have been heard of yet: look again when all have.
        Err(Refusal::Unknown { .. } | Refusal::UnknownResource { .. } | Refusal::UnknownMethod)
            if !snapshot.settled =>
        {
            when_settled(session, sink, request, move |session, sink, request| {
                match find(request, &session.snapshot(), era, session) {
                    Ok(way) => go(session, sink, request, era, way),
                    Err(refusal) => sink.answer(respond::error(request.id(), &refusal)),
                }
            });
        }
        Err(refusal) => sink.answer(respond::error(request.id(), &refusal)),
    }
}

fn go(session: &Arc<Session>, sink: &Arc<Outbox>, request: &Request, era: Era, way: Way) {
    match way {
        Way::Server(route) => forward(session, sink, request, era, route),
        Way::Builtin(own) => builtin::serve(session, sink, request, era, own),
        Way::Suite(server) => builtin::suite::serve(session, sink, request, era, &server),
        Way::BuiltinPrompt(prompt) => builtin::prompts::serve(session, sink, request, era, prompt),
    }
}

fn forward(session: &Arc<Session>, sink: &Arc<Outbox>, request: &Request, era: Era, route: Route) {
    let refuse = |refusal| sink.answer(respond::error(request.id(), &refusal));
    let catalog = session.snapshot().catalog;
    let server_era = catalog.get(&route.server).map(|entry| entry.offer.dialect.era);
    match retry::come_back(session, sink, request, era, &route, server_era) {
        Ok(true) => return, // the call that it was away from goes on
        Ok(false) => {}
        Err(refusal) => return refuse(refusal),
    }
    let ticket = session.gateway().tickets.next();
    let token = request.meta.progress_token.clone();
    let call = HostCall {
        id: request.message.slice(request.id.clone()),
        progress_token: token.clone().map(|span| request.message.slice(span)),
        era,
        server: route.server.clone(),
        reads: request.reads(),
        log_level: request.log_level(),
        repairs: request.repairs.clone(),
        sink: Arc::clone(sink),
        recourse: Recourse::None,
        asked: false,
        timeout: request.timeout,
        role: route.role,
    };
    let (task_role, demand) = (call.role.task_role(), call.role.demand());
    if !session.register(ticket, call) {
        return refuse(Refusal::IdInUse);
    }
    // What a server has that was never heard of is only what somebody says.
    if let (Some(usage_counts), b"tools/call", Some(_)) =
        (&session.gateway().usage_counts, request.method(), server_era)
        && let Some(tool) = route.subject.as_ref().and_then(|(_, own)| string_value(own))
    {
        usage_counts.used(&route.server, &tool);
    }
    let mut draft = Draft::new(request.message.clone()).with(request.id.clone(), Hole::Ticket);
    if let Some((subject, own)) = route.subject {
        draft = draft.with(subject, Hole::Text(own));
    }
    if let (Some(demand), Some(params)) = (demand, &request.params) {
        draft = draft.with(params.start + 1..params.start + 1, Hole::Text(demand));
    }
    if let Some(token) = token {
        draft = draft.with(token, Hole::Ticket);
    }
    if let (Some(level), Some(Era::Legacy)) = (request.log_level(), server_era) {
        session.wants_log(Some(level));
    }
    session.prepare(ticket, retry::recourse(request, era, server_era, &draft));
    let call = Call {
        ticket,
        caller: session.clone(),
        request: draft,
        era,
        params: request.params.clone(),
        timeout: request.timeout,
        task_role,
    };
    session.gateway().servers.forward(&route.server, call);
}

pub(crate) fn replied(session: &Arc<Session>, response: Response) {
    session.replied(response.message, response.head);
}

fn listen(session: &Session, sink: &Arc<Outbox>, request: &Request) -> Result<(), Refusal> {
    let tasks = tasks::watched(session, request)?;
    let wanted = Wanted::read(&request.message, request.notifications.as_ref());
    let id = request.message.slice(request.id.clone());
    let mut watched = resources(session, request, &id);
    watched.extend(tasks);
    if !session.subscribe(id, wanted, watched, Arc::clone(sink)) {
        return Err(Refusal::IdInUse);
    }
    Ok(())
}

/// The resources that a subscription names and somebody tells of.
fn resources(session: &Session, request: &Request, id: &Bytes) -> Vec<Watched> {
    let filter = request.notifications.as_ref();
    let uris = filter.and_then(|filter| Members::find(&request.message, filter, "resourceSubscriptions"));
    let uris = uris.map(|list| elements(&request.message, &list)).unwrap_or_default();
    let snapshot = session.snapshot();
    let watched = |span: Span| {
        let uri = string_value(request.raw(&span))?;
        let place = session.meant(&uri, snapshot.resources.resources_at(&uri))?;
        let place = Some(place).filter(|place| tells_of_changes(&snapshot, &place.server))?;
        Some(Watched::new(place, request.message.slice(span), Some(id.clone())))
    };
    uris.into_iter().filter_map(watched).collect()
}

fn set_level(session: &Session, sink: &Outbox, request: &Request) -> Result<(), Refusal> {
    let level = request.params().and_then(|(message, params)| {
        let span = Members::find(message, params, "level")?;
        Level::parse(&string_value(&message[span])?)
    });
    let unknown = || Refusal::InvalidParams("\"level\" must be one of debug to emergency".to_owned());
    session.log_from(level.ok_or_else(unknown)?);
    sink.answer(respond::result(request.id(), Era::Legacy, json!({})));
    Ok(())
}

fn watch(session: &Session, sink: &Outbox, request: &Request) -> Result<(), Refusal> {
    let (uri, span) = request.addressed()?;
    let snapshot = session.snapshot();
    let unknown = || Refusal::UnknownResource { uri: uri.clone().into_owned(), era: Era::Legacy };
    let place = session.meant(&uri, snapshot.resources.resources_at(&uri)).ok_or_else(unknown)?;
    if !tells_of_changes(&snapshot, &place.server) {
        let what = format!("its server {:?} does not tell when a resource changes", place.server.as_str());
        return Err(Refusal::InvalidParams(what));
    }
    session.watch(Watched::new(place, request.message.slice(span), None));
    sink.answer(respond::result(request.id(), Era::Legacy, json!({})));
    Ok(())
}

fn tells_of_changes(snapshot: &Snapshot, server: &ServerName) -> bool {
    snapshot.catalog.get(server).is_some_and(|entry| entry.offer.capabilities.subscribe)
}

fn unwatch(session: &Session, sink: &Outbox, request: &Request) -> Result<(), Refusal> {
    let (_, span) = request.addressed()?;
    session.unwatch(request.raw(&span));
    sink.answer(respond::result(request.id(), Era::Legacy, json!({})));
    Ok(())
}

pub(crate) fn notified(session: &Session, notification: &Notification) {
    let Notification { message, method, params } = notification;
    match &message[method.clone()] {
        b"notifications/initialized" => session.initialized(),
        b"notifications/cancelled" => {
            let request = params.as_ref().and_then(|params| Members::find(message, params, "requestId"));
            let Some(request) = request else { return };
            let notification = Draft::new(message.clone()).with(request.clone(), Hole::Ticket);
            session.cancel(&message[request], notification);
        }
        b"notifications/roots/list_changed" if session.has_roots() => {
            session.gateway().servers.roots_changed(message.clone());
        }
        b"notifications/progress" => session.progresses(message, params.as_ref()),
        method if era::is_core(method) => {}
        _ => pass_on_notification(session, notification),
    }
}

/// What only a server may know, if it can be told which one.
fn pass_on_notification(session: &Session, notification: &Notification) {
    let (request, snapshot) = (notification.as_request(), session.snapshot());
    let era = if session.is_modern() { Era::Modern } else { Era::Legacy };
    if request.ambiguous.is_none()
        && let Ok(Way::Server(route)) = route::unknown(&request, &snapshot, era, session)
    {
        let own = route.subject.iter().map(|(span, own)| (span.clone(), &own[..])).collect::<Vec<_>>();
        let notification = Frame::edited(&notification.message, &own).into_bytes();
        session.gateway().servers.notify(&route.server, notification);
    }
}
