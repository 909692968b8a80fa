//! The handling of a host's messages: read top-down, this is the path of every request.

mod inner_request;
mod skills;
mod tasks;

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    catalog::ItemKind,
    declaration::Declaration,
    era::{self, Era},
    exchange::Call,
    level::Level,
    name::ServerName,
    observe::CallOutcome,
    surface::{BuiltinTool, Snapshot},
    wire::{Draft, Frame, Hole, Members, Span, elements, string_value},
};
use serde_json::json;

pub(crate) use self::inner_request::InnerRequest;
use crate::{
    apps, builtin,
    connected_hosts::ClientInfo,
    context::RequestContext,
    destination::{Destination, InnerCall, Route},
    lists::{self, Kind, ListFilter},
    message::{Message, Notification, Request, Response},
    outbox::Outbox,
    rate::Limited,
    references,
    refusal::Refusal,
    respond,
    route::{self, FindDestination},
    session::Session,
    subscriptions::ItemSubscription,
    suspended::{HostCall, Observed},
};

/// Arguments of up to this many bytes are quick to check, whatever they contain.
const VERY_SHORT: usize = 256;

/// Handles one message from a host. Never waits: slow work is spawned, and its answer goes to `sink`.
pub(crate) fn receive(session: &Arc<Session>, sink: &Arc<Outbox>, read: Result<Message, Frame>) {
    match read {
        Ok(Message::Request(request)) => {
            if let Err(refusal) = serve(session, sink, &request) {
                sink.refuse(request.id(), &refusal);
            }
        }
        Ok(Message::Notification(notification)) => receive_notification(session, &notification),
        Ok(Message::Response(response)) => receive_response(session, response),
        Err(answer) => sink.answer(answer),
    }
}

/// Serves a request. After `Err` nothing has been sent to `sink`.
pub(crate) fn serve(session: &Arc<Session>, sink: &Arc<Outbox>, request: &Request) -> Result<(), Refusal> {
    if let Some(key) = request.faults.ambiguous {
        let what = format!("{key:?} must stand in \"params\" once, and in these letters");
        return Err(Refusal::InvalidParams(what));
    }
    if let Some(too_long) = &request.faults.too_long {
        return Err(Refusal::InvalidParams(too_long.to_string()));
    }
    if session.is_draining() {
        return Err(Refusal::Draining);
    }
    let method = request.method();
    if method == b"initialize" {
        return initialize(session, sink, request);
    }
    if method == b"server/discover" && prefers_legacy(session, request) {
        return Err(Refusal::UnknownMethod);
    }
    let era = open_in_era(session, request, method)?;
    let context = RequestContext { session, sink, request, era };
    match (method, era) {
        (b"tools/list", _) => list(context, ItemKind::Tool),
        (b"resources/list", _) => list(context, ItemKind::Resource),
        (b"resources/templates/list", _) => list(context, ItemKind::Template),
        (b"prompts/list", _) => list(context, ItemKind::Prompt),
        (b"tools/call", _) => call_tool(context),
        (b"prompts/get", _) => route_request(context, route::prompt),
        (b"resources/read", _) => route_request(context, route::resource),
        (b"completion/complete", _) => route_request(context, route::completion),
        (b"skills/list", _) => skills::list(context),
        (b"skills/get", _) => route_request(context, route::skill),
        (b"resources/directory/read", _) => route_request(context, route::directory),
        (b"tasks/get" | b"tasks/cancel", _)
        | (b"tasks/result", Era::Legacy)
        | (b"tasks/update", Era::Modern) => route_request(context, route::task),
        (b"tasks/list", Era::Legacy) => return tasks::list(context),
        (b"logging/setLevel", Era::Legacy) => return set_level(context),
        (b"resources/subscribe", Era::Legacy) => return subscribe(context),
        (b"resources/unsubscribe", Era::Legacy) => return unsubscribe(context),
        (b"ping", Era::Legacy) => context.result(json!({})),
        (b"server/discover", Era::Modern) => discover(context),
        (b"subscriptions/listen", Era::Modern) => return listen(context),
        _ if era::is_core(method) => return Err(Refusal::UnknownMethod),
        _ => route_request(context, route::unknown),
    }
    Ok(())
}

/// Whether a host that is about to connect works better in the legacy era. It falls back to that era if its
/// `server/discover` is refused. A session that is open keeps its era.
fn prefers_legacy(session: &Session, request: &Request) -> bool {
    let info = ClientInfo::of(request, Era::Modern);
    let era = session.snapshot().layout.hosts.of(info.client()).era;
    session.is_always_connected() && !session.is_modern() && era == Some(Era::Legacy)
}

/// Determines the era of a request, and opens the session if this is its first modern one. A modern request
/// must have its protocol version and capabilities in `_meta`.
fn open_in_era(session: &Session, request: &Request, method: &[u8]) -> Result<Era, Refusal> {
    let meta = &request.meta;
    let Some(version) = &meta.version else {
        // These methods are modern, and a modern request must have its `_meta`.
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
        session.identify(request, Era::Modern);
    }
    session.declared_in_request(request);
    Ok(Era::Modern)
}

fn missing(key: &str) -> Refusal {
    Refusal::InvalidParams(format!("the request's \"_meta\" lacks {key:?}"))
}

fn initialize(session: &Arc<Session>, sink: &Outbox, request: &Request) -> Result<(), Refusal> {
    let requested = request.text(request.opening.protocol_version.as_ref());
    if requested.is_none() {
        return Err(Refusal::InvalidParams("\"protocolVersion\" is missing".to_owned()));
    }
    let version = era::negotiate(requested.as_deref());
    let declared = request.opening.capabilities.as_ref();
    let client_capabilities =
        declared.map(|object| ClientCapabilities::read(&request.message, object)).unwrap_or_default();
    session.identify(request, Era::Legacy);
    session.opened_legacy(version, client_capabilities, &request.extensions());
    let snapshot = session.snapshot();
    let instructions = session.host_view().instructions(&snapshot);
    let alone = session.is_alone();
    sink.answer(respond::initialize(request.id(), version, &snapshot, &instructions, alone));
    Ok(())
}

fn discover(context: RequestContext<'_>) {
    let snapshot = context.snapshot();
    let instructions = context.session.host_view().instructions(&snapshot);
    context.answer(respond::discover(context.request.id(), &snapshot, &instructions));
}

fn list(context: RequestContext<'_>, item_kind: ItemKind) {
    let RequestContext { session, request, era, .. } = context;
    if request.cursor.as_ref().is_some_and(|span| request.raw(span) != b"null") {
        return context.refuse(&Refusal::InvalidParams("unknown cursor: the list has one page".to_owned()));
    }
    if item_kind == ItemKind::Tool && era == Era::Legacy && !session.is_always_connected() {
        session.host_view().note_first_list();
    }
    if let Some(declared) = awaited_lists(session) {
        let gateway = context.gateway().clone();
        let fitting = async move { gateway.fitting(&declared).await };
        return context.later(fitting, move |context, ()| answer_list(context, item_kind));
    }
    let now = context.snapshot();
    if now.settled || item_kind == ItemKind::Tool && now.is_complete(&session.host_view().view_of(&now).0) {
        return answer_list(context, item_kind);
    }
    context.when_settled(move |context| answer_list(context, item_kind));
}

/// The host's declaration, if the host lists only once and the servers' lists for such hosts are not known
/// yet.
fn awaited_lists(session: &Session) -> Option<Arc<Declaration>> {
    let declared = session.declared()?;
    let waits = !session.gateway().snapshots.borrow().fits(&declared) && !session.host_view().lists_again();
    waits.then_some(declared)
}

fn answer_list(context: RequestContext<'_>, item_kind: ItemKind) {
    let (snapshot, key) = (context.snapshot(), item_kind.list_key());
    let definitions = lists::definitions(&snapshot, item_kind);
    context.answer(respond::list(context.request.id(), context.era, key, definitions));
    context.session.list_sent(&snapshot, Kind::of(item_kind));
}

pub(crate) fn call_tool(context: RequestContext<'_>) {
    route_request(context, route::tool);
}

/// Routes a request to one server, or to a built-in tool or prompt.
pub(crate) fn route_request(context: RequestContext<'_>, find: FindDestination) {
    let snapshot = context.snapshot();
    match find(context, &snapshot) {
        Ok(destination) => handle(context, destination),
        // A server may not have listed its tools yet: look again when all have.
        Err(Refusal::Unknown { .. } | Refusal::UnknownResource { .. } | Refusal::UnknownMethod)
            if !snapshot.settled =>
        {
            context.when_settled(move |context| match find(context, &context.snapshot()) {
                Ok(destination) => handle(context, destination),
                Err(refusal) => context.refuse(&refusal),
            });
        }
        Err(refusal) => context.refuse(&refusal),
    }
}

/// The same for a `find` that also checks the arguments: in another thread, unless they are very short.
pub(crate) fn route_in_turn(context: RequestContext<'_>, find: FindDestination) {
    if context.request.arguments().is_none_or(|json| json.len() <= VERY_SHORT) {
        return route_request(context, find);
    }
    let snapshot = context.snapshot();
    let settled = snapshot.settled;
    context.checked(
        None,
        move |context| find(context, &snapshot),
        move |context, found| match found {
            Ok(destination) => handle(context, destination),
            Err(Refusal::Unknown { .. }) if !settled => {
                context.when_settled(move |context| route_in_turn(context, find));
            }
            Err(refusal) => context.refuse(&refusal),
        },
    );
}

fn handle(context: RequestContext<'_>, destination: Destination) {
    let calls_within = matches!(
        destination,
        Destination::Builtin(BuiltinTool::Execute | BuiltinTool::Read) | Destination::Suite(_)
    );
    if calls_within && references::may_be_in(context.request) {
        return references::resolve(context, move |context| handle_resolved(context, destination));
    }
    handle_resolved(context, destination);
}

/// The same for a request without references to stored results.
fn handle_resolved(context: RequestContext<'_>, destination: Destination) {
    match destination {
        Destination::Server(route) => forward(context, &route),
        Destination::Builtin(tool) => builtin::serve(context, tool),
        Destination::Suite(server) => builtin::suite::serve(context, &server),
        Destination::BuiltinPrompt(prompt) => builtin::prompts::serve(context, prompt),
        Destination::Skill(answer) => skills::answer(context, &answer),
        Destination::Perhaps(servers) => skills::find(context, servers),
        Destination::Result(handle) => builtin::read_result::whole(context, handle),
    }
}

/// Sends the request to its server. The answer arrives in the table of calls.
pub(crate) fn forward(context: RequestContext<'_>, route: &Route) {
    let RequestContext { session, request, era, .. } = context;
    let snapshot = session.snapshot();
    let server_era = snapshot.catalog.get(&route.server).map(|entry| entry.offer.dialect.era);
    match context.gateway().suspended.resume(context, route, server_era) {
        Ok(true) => return,
        Ok(false) => {}
        Err(refusal) => return context.refuse(&refusal),
    }
    if !may_use(context, route, &snapshot) {
        return context.refuse(&unknown_tool(request));
    }
    let (id, ticket) = (request.message.slice(request.id.clone()), context.gateway().tickets.next());
    if let Err(refusal) = session.reserve(id.clone(), ticket, request.message.len()) {
        return context.refuse(&refusal);
    }
    if let Err(limited) = context.gateway().principal.admit(snapshot.layout.settings.call_limits) {
        session.release(&id);
        return refuse_limited(context, route, &snapshot, limited);
    }
    if server_era.is_some() && snapshot.layout.settings.learn > 0 {
        count_use(context, route);
    }
    if let (Some(level), Some(Era::Legacy)) = (request.log_level(), server_era) {
        session.wants_log(Some(level));
    }
    apps::note(context, route, &snapshot);
    let observed = Observed::begin(context, route, &snapshot);
    let mut draft = draft(request, route);
    if let Some(observed) = &observed {
        draft = observed.propagate(draft, request, era, server_era);
    }
    let call = HostCall::begin(context, route, &snapshot, &draft, observed);
    context.gateway().suspended.register(ticket, call);
    let call = Call {
        ticket,
        caller: session.clone(),
        request: draft,
        era,
        params: request.params.clone(),
        timeout: route.timeout(),
        task_role: route.role.task_role(),
    };
    context.gateway().servers.forward(&route.server, call);
}

/// Checks the caller's grant once more, whatever path the request took.
fn may_use(context: RequestContext<'_>, route: &Route, snapshot: &Snapshot) -> bool {
    if !context.gateway().principal.is_restricted() {
        return true;
    }
    let Some(exposure) = snapshot.layout.exposures.get(&route.server) else { return false };
    let tool = route.subject.as_ref().filter(|_| context.request.method() == b"tools/call");
    tool.is_none_or(|(_, name)| string_value(name).is_some_and(|tool| exposure.policy.may(&tool)))
}

/// The refusal of a tool outside the grant: for its caller it does not exist.
fn unknown_tool(request: &Request) -> Refusal {
    let name = request.subject().unwrap_or_default().into_owned();
    Refusal::Unknown { what: "tool", name, nearest: Vec::new() }
}

fn refuse_limited(context: RequestContext<'_>, route: &Route, snapshot: &Snapshot, limited: Limited) {
    let refusal = Refusal::Limited(limited);
    if let Some(observed) = Observed::begin(context, route, snapshot) {
        observed.refused(&refusal);
    }
    context.refuse(&refusal);
}

/// The host's message as a draft, with holes for the server's names and the ticket.
fn draft(request: &Request, route: &Route) -> Draft {
    let mut draft = Draft::new(request.message.clone()).with(request.id.clone(), Hole::Ticket);
    if let Some((subject, server_name)) = &route.subject {
        draft = draft.with(subject.clone(), Hole::Text(server_name.clone()));
    }
    if let Some(InnerCall { arguments: (span, arguments), .. }) = &route.inner {
        draft = draft.with(span.clone(), Hole::Text(arguments.clone()));
    }
    if let (Some(demand), Some(params)) = (route.role.demand(), &request.params) {
        draft = draft.with(params.start + 1..params.start + 1, Hole::Text(demand));
    }
    if let Some(token) = &request.meta.progress_token {
        draft = draft.with(token.clone(), Hole::Ticket);
    }
    draft
}

/// Counts the use of a tool, for `learn`.
fn count_use(context: RequestContext<'_>, route: &Route) {
    if context.request.method() == b"tools/call"
        && let Some(tool) = route.subject.as_ref().and_then(|(_, name)| string_value(name))
    {
        context.gateway().usage.counts.used(&route.server, &tool);
    }
}

pub(crate) fn receive_response(session: &Arc<Session>, response: Response) {
    session.replied(response.message, response.head);
}

fn listen(context: RequestContext<'_>) -> Result<(), Refusal> {
    let RequestContext { session, sink, request, .. } = context;
    let tasks = tasks::item_subscriptions(session, request)?;
    let wanted = ListFilter::read(&request.message, request.notifications.as_ref());
    let id = Bytes::copy_from_slice(request.id()); // the slice would keep the whole request
    let mut items = resource_subscriptions(session, request, &id);
    items.extend(tasks);
    let snapshot = session.snapshot();
    for item in &items {
        admit(session, request, Era::Modern, &Route::to_server(&item.server), &snapshot)?;
    }
    session.subscribe(id, wanted, items, Arc::clone(sink))
}

/// The resources that a subscription names and whose servers support subscriptions.
fn resource_subscriptions(session: &Session, request: &Request, id: &Bytes) -> Vec<ItemSubscription> {
    let filter = request.notifications.as_ref();
    let uris = filter.and_then(|filter| Members::find(&request.message, filter, "resourceSubscriptions"));
    let uris = uris.map(|list| elements(&request.message, &list)).unwrap_or_default();
    let snapshot = session.snapshot();
    let items = |span: Span| {
        let uri = string_value(request.raw(&span))?;
        let place = route::resource_at(&uri, session, &snapshot, Era::Modern).ok()?;
        let place = Some(place).filter(|place| supports_subscriptions(&snapshot, &place.server))?;
        Some(ItemSubscription::new(place, request.raw(&span), Some(id)))
    };
    uris.into_iter().filter_map(items).collect()
}

fn set_level(context: RequestContext<'_>) -> Result<(), Refusal> {
    let level = context.request.params().and_then(|(message, params)| {
        let span = Members::find(message, params, "level")?;
        Level::parse(&string_value(&message[span])?)
    });
    let unknown = || Refusal::InvalidParams("\"level\" must be one of debug to emergency".to_owned());
    context.session.log_from(level.ok_or_else(unknown)?);
    context.result(json!({}));
    Ok(())
}

fn subscribe(context: RequestContext<'_>) -> Result<(), Refusal> {
    let RequestContext { session, request, .. } = context;
    let (uri, span) = request.addressed()?;
    let snapshot = session.snapshot();
    let place = route::resource_at(&uri, session, &snapshot, Era::Legacy)?;
    if !supports_subscriptions(&snapshot, &place.server) {
        let what = format!("its server {:?} does not support resource subscriptions", place.server.as_str());
        return Err(Refusal::InvalidParams(what));
    }
    let route = Route::to(place.clone(), span.clone());
    admit(session, request, Era::Legacy, &route, &snapshot)?;
    session.subscribe_item(ItemSubscription::new(place, request.raw(&span), None))?;
    context.result(json!({}));
    Ok(())
}

/// Counts and observes a message that goes to a server without an entry in the table of calls.
fn admit(
    session: &Session,
    request: &Request,
    era: Era,
    route: &Route,
    snapshot: &Snapshot,
) -> Result<(), Refusal> {
    let admitted = session.gateway().principal.admit(snapshot.layout.settings.call_limits);
    let admitted = admitted.map_err(Refusal::Limited);
    if let Some(observed) = Observed::begin_for(session, request, era, route, snapshot) {
        match &admitted {
            Ok(()) => observed.end(CallOutcome::Ok, 0),
            Err(refusal) => observed.refused(refusal),
        }
    }
    admitted
}

fn supports_subscriptions(snapshot: &Snapshot, server: &ServerName) -> bool {
    snapshot.catalog.get(server).is_some_and(|entry| entry.offer.capabilities.subscribe)
}

fn unsubscribe(context: RequestContext<'_>) -> Result<(), Refusal> {
    let (_, span) = context.request.addressed()?;
    context.session.unsubscribe_item(context.request.raw(&span));
    context.result(json!({}));
    Ok(())
}

pub(crate) fn receive_notification(session: &Session, notification: &Notification) {
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
        b"notifications/progress" => session.host_progress(message, params.as_ref()),
        method if era::is_core(method) => {}
        _ => forward_notification(session, notification),
    }
}

/// Forwards a notification with an unknown method, if its server can be determined.
fn forward_notification(session: &Session, notification: &Notification) {
    let (request, snapshot) = (notification.as_request(), session.snapshot());
    let era = if session.is_modern() { Era::Modern } else { Era::Legacy };
    if request.faults.ambiguous.is_none()
        && let Ok(Destination::Server(route)) = route::unknown_method(&request, &snapshot, era, session)
        && admit(session, &request, era, &route, &snapshot).is_ok()
    {
        let edits = route.subject.iter().map(|(span, name)| (span.clone(), &name[..])).collect::<Vec<_>>();
        let notification = Frame::edited(&notification.message, &edits).into_bytes();
        session.gateway().servers.notify(&route.server, notification);
    }
}
