//! Finds the server of a request, and the parts of the request to replace by that server's names.

use plugbay_core::{
    apps::is_page,
    catalog::Offer,
    era::Era,
    name::{self, ServerName},
    reference, size_limit,
    surface::{Place, Plan, SkillPlace, Snapshot},
    task::TaskRole,
    wire::{Members, Span, string_value},
};

use crate::{
    apps,
    context::RequestContext,
    destination::{Destination, Route, SkillAnswer},
    message::Request,
    refusal::Refusal,
    session::Session,
    tasks::{self, Role, Task},
};

/// Finds the destination of one kind of request.
pub(crate) type FindDestination = fn(RequestContext<'_>, &Snapshot) -> Result<Destination, Refusal>;

pub(crate) fn tool(context: RequestContext<'_>, snapshot: &Snapshot) -> Result<Destination, Refusal> {
    let RequestContext { session, request, era, .. } = context;
    let (name, span) = request.named("the name of a tool")?;
    match snapshot.plan_beside(&name, || session.host_view().open_apps.servers()) {
        Plan::Forward(target) => {
            let subject = Some((span, target.quoted.clone()));
            let role = tasks::role_of_call(request, era, snapshot, &target);
            Ok(Destination::Server(Route { server: target.server.clone(), subject, role, inner: None }))
        }
        Plan::Builtin(tool) => Ok(Destination::Builtin(tool)),
        Plan::Suite(server) => Ok(Destination::Suite(server.clone())),
        Plan::Unknown { nearest } => {
            if let Some(refusal) = context.missing_scope(&name) {
                return Err(refusal);
            }
            let nearest = nearest.into_iter().map(str::to_owned).collect();
            Err(Refusal::Unknown { what: "tool", name: name.into_owned(), nearest })
        }
        Plan::Ambiguous { candidates } => {
            let candidates = candidates.into_iter().map(str::to_owned).collect();
            Err(Refusal::Ambiguous { name: name.into_owned(), candidates })
        }
    }
}

pub(crate) fn prompt(context: RequestContext<'_>, snapshot: &Snapshot) -> Result<Destination, Refusal> {
    let (name, span) = context.request.named("the name of a prompt")?;
    known_prompt(&name, span, snapshot)
}

/// The server of the task that a request names.
pub(crate) fn task(context: RequestContext<'_>, snapshot: &Snapshot) -> Result<Destination, Refusal> {
    of_task(context.request, snapshot, context.era, context.session)
}

pub(crate) fn resource(context: RequestContext<'_>, snapshot: &Snapshot) -> Result<Destination, Refusal> {
    let RequestContext { session, request, era, .. } = context;
    let (uri, span) = request.addressed()?;
    if let Some(handle) = reference::in_uri(&uri) {
        return Ok(Destination::Result(handle));
    }
    match snapshot.skill_file_at(&uri) {
        SkillPlace::Own => return Ok(Destination::Skill(SkillAnswer::File)),
        SkillPlace::At(place) => return Ok(Destination::to(place, span)),
        SkillPlace::Several(uris) => return Err(Refusal::Disputed { uris }),
        SkillPlace::Perhaps(servers) if snapshot.settled => return Ok(Destination::Perhaps(servers)),
        SkillPlace::Perhaps(_) | SkillPlace::Nowhere => {}
    }
    Ok(Destination::to(resource_at(&uri, session, snapshot, era)?, span))
}

/// The server of a resource or a template. A URI that several servers have is ambiguous: one of them may have
/// listed it in order to be read instead of another. Only for the page of an app, the host's open pages may
/// decide.
pub(crate) fn resource_at(
    uri: &str,
    session: &Session,
    snapshot: &Snapshot,
    era: Era,
) -> Result<Place, Refusal> {
    let mut places = snapshot.resources.resources_at(uri);
    match (places.len(), is_page(uri)) {
        (0, _) => Err(Refusal::UnknownResource { uri: uri.to_owned(), era }),
        (1, _) => Ok(places.remove(0)),
        (_, true) => {
            let shown = session.host_view().open_apps.only_of(places.clone());
            shown.ok_or_else(|| apps::several_pages(uri, &places, snapshot))
        }
        (_, false) => {
            let shown = places.iter().map(|place| snapshot.resources.of_server(&place.server, uri));
            Err(Refusal::Disputed { uris: shown.collect() })
        }
    }
}

/// The server of a skill. If no server has any, the method is unknown.
pub(crate) fn skill(context: RequestContext<'_>, snapshot: &Snapshot) -> Result<Destination, Refusal> {
    if !snapshot.has_skills() {
        return unknown(context, snapshot);
    }
    let (uri, span) = context.request.addressed()?;
    match snapshot.skill_at(&uri) {
        SkillPlace::Own => Ok(Destination::Skill(SkillAnswer::Entry)),
        SkillPlace::At(place) => Ok(Destination::Server(Route::to_skill(place, span, &uri))),
        SkillPlace::Several(uris) => Err(Refusal::Disputed { uris }),
        SkillPlace::Perhaps(servers) if snapshot.settled => Ok(Destination::Perhaps(servers)),
        SkillPlace::Perhaps(_) | SkillPlace::Nowhere => Err(Refusal::unknown("skill", &uri)),
    }
}

/// The server of a directory, or plugbay itself, if the server has listed its files but cannot list
/// directories.
pub(crate) fn directory(context: RequestContext<'_>, snapshot: &Snapshot) -> Result<Destination, Refusal> {
    if !snapshot.has_skills() {
        return unknown(context, snapshot);
    }
    if !snapshot.reads_directories() {
        return Err(Refusal::UnknownMethod);
    }
    let (uri, span) = context.request.addressed()?;
    let none = || Refusal::unknown("directory", &uri);
    match snapshot.skill_file_at(&uri) {
        SkillPlace::Own if snapshot.own_skill().is_some_and(|own| own.root() == uri) => {
            Ok(Destination::Skill(SkillAnswer::Directory))
        }
        SkillPlace::At(place) if snapshot.resources.skills.lists_directories(&place.server) => {
            Ok(Destination::Server(Route::to_skill(place, span, &uri)))
        }
        SkillPlace::At(_) => {
            let children = snapshot.skill_directory(&uri).ok_or_else(none)?;
            Ok(Destination::Skill(SkillAnswer::Children(children)))
        }
        SkillPlace::Several(uris) => Err(Refusal::Disputed { uris }),
        SkillPlace::Perhaps(servers) if snapshot.settled => {
            let listing = |server: &ServerName| snapshot.resources.skills.lists_directories(server);
            Ok(Destination::Perhaps(servers.into_iter().filter(listing).collect()))
        }
        SkillPlace::Own | SkillPlace::Perhaps(_) | SkillPlace::Nowhere => Err(none()),
    }
}

/// The server of the prompt or template that a completion is for.
pub(crate) fn completion(context: RequestContext<'_>, snapshot: &Snapshot) -> Result<Destination, Refusal> {
    let RequestContext { session, request, era, .. } = context;
    let incomplete = || Refusal::InvalidParams("\"ref\" must name a prompt or a resource".to_owned());
    let (message, params) = request.params().ok_or_else(incomplete)?;
    let reference = Members::find(message, params, "ref").ok_or_else(incomplete)?;
    let text = |key| {
        let span = Members::find(message, &reference, key)?;
        Some((string_value(&message[span.clone()])?, span))
    };
    if let Some((name, span)) = text("name") {
        return known_prompt(&name, span, snapshot);
    }
    let (uri, span) = text("uri").ok_or_else(incomplete)?;
    Ok(Destination::to(resource_at(&uri, session, snapshot, era)?, span))
}

/// Routes an unknown method by its subject, or to the only server that may know it.
pub(crate) fn unknown(context: RequestContext<'_>, snapshot: &Snapshot) -> Result<Destination, Refusal> {
    unknown_method(context.request, snapshot, context.era, context.session)
}

/// The same for a notification, which has no answer.
pub(crate) fn unknown_method(
    request: &Request,
    snapshot: &Snapshot,
    era: Era,
    session: &Session,
) -> Result<Destination, Refusal> {
    if let Ok((name, span)) = request.named("")
        && let Some(place) = named(&name, snapshot)
    {
        return Ok(Destination::to(place, span));
    }
    if let Ok((uri, span)) = request.addressed()
        && let Some(place) = only(snapshot.resources.known_at(&uri))
    {
        return Ok(Destination::to(place, span));
    }
    if let Ok(destination) = of_task(request, snapshot, era, session) {
        return Ok(destination);
    }
    let server = only(snapshot.servers()).or_else(|| {
        let method = std::str::from_utf8(request.method()).ok()?;
        let has_it = |offer: &Offer| offer.extensions.have(method);
        only(
            snapshot
                .catalog
                .iter()
                .filter(|(_, entry)| has_it(&entry.offer))
                .map(|(server, _)| server.clone()),
        )
    });
    let server = server.filter(|server| !names_denied(request, snapshot, server));
    let server = server.ok_or(Refusal::UnknownMethod)?;
    Ok(Destination::Server(Route { server, subject: None, role: Role::None, inner: None }))
}

fn of_task(
    request: &Request,
    snapshot: &Snapshot,
    era: Era,
    session: &Session,
) -> Result<Destination, Refusal> {
    let (shown, span) = request.of_task()?;
    let unknown = || Refusal::Unknown { what: "task", name: shown.clone().into_owned(), nearest: Vec::new() };
    let task = Task::find(&shown, &session.owner()).ok_or_else(unknown)?;
    if !snapshot.knows(&task.server) {
        return Err(unknown());
    }
    if let Some(entry) = snapshot.catalog.get(&task.server).filter(|entry| entry.offer.dialect.era != era) {
        let other = match entry.offer.dialect.era {
            Era::Legacy => "2025-11-25, whose tasks",
            Era::Modern => "2026-07-28, whose tasks",
        };
        let what = format!("server '{}' speaks {other} cannot be told of in this protocol", task.server);
        return Err(Refusal::InvalidParams(what));
    }
    let subject = Some((span, tasks::quoted(&task.id)));
    let task_role = match request.method() {
        b"tasks/result" => TaskRole::Await(task.id.into()),
        _ => TaskRole::About(task.id.into()),
    };
    Ok(Destination::Server(Route { server: task.server, subject, role: Role::About(task_role), inner: None }))
}

/// Routes `tasks/list`: each page comes from one server, and its cursor names the server of the next page.
/// Servers that other sessions use too are left out: they would list everybody's tasks.
pub(crate) fn task_list(
    request: &Request,
    snapshot: &Snapshot,
    is_own: impl Fn(&ServerName) -> bool,
) -> Result<(Request, Destination), Refusal> {
    let unknown = || Refusal::InvalidParams("unknown cursor".to_owned());
    let (mut from, mut subject) = (None, None);
    if let Some((text, span)) = request.cursor()? {
        let (server, server_cursor) = name::split(&text).ok_or_else(unknown)?;
        from = Some(ServerName::parse(server).map_err(|_| unknown())?);
        // If the cursor has no part of that server, the server is listed from the beginning.
        subject = (!server_cursor.is_empty()).then(|| (span, tasks::quoted(server_cursor)));
    }
    let mut servers = tasks::listing_servers(&snapshot.catalog)
        .filter(|server| is_own(server) && from.as_ref().is_none_or(|from| *server >= from));
    let server = servers.next().cloned().ok_or(Refusal::UnknownMethod)?;
    let next = servers.next().cloned();
    // If the server was removed meanwhile, the next one is listed from the beginning.
    subject = subject.filter(|_| from.as_ref() == Some(&server));
    let request = if subject.is_some() { request.clone() } else { request.without("cursor") };
    Ok((request, Destination::Server(Route { server, subject, role: Role::Lists { next }, inner: None })))
}

/// The server of a tool or prompt.
fn named(name: &str, snapshot: &Snapshot) -> Option<Place> {
    match snapshot.listing.plan(name) {
        Plan::Forward(target) => Some(Place { server: target.server.clone(), quoted: target.quoted.clone() }),
        _ => snapshot.resources.prompt(name).cloned(),
    }
}

/// Whether the request names a denied tool by the server's own name for it.
fn names_denied(request: &Request, snapshot: &Snapshot, server: &ServerName) -> bool {
    let Ok((name, _)) = request.named("") else { return false };
    if name.len() > size_limit::NAME {
        return true; // no list has it, and to compare it with patterns takes long
    }
    let denied = snapshot.layout.exposures.get(server).is_some_and(|exposure| !exposure.policy.may(&name));
    denied && snapshot.catalog.get(server).is_none_or(|entry| entry.offer.tool(&name).is_some())
}

fn only<T>(all: impl IntoIterator<Item = T>) -> Option<T> {
    let mut all = all.into_iter();
    all.next().filter(|_| all.next().is_none())
}

fn known_prompt(name: &str, span: Span, snapshot: &Snapshot) -> Result<Destination, Refusal> {
    if let Some(prompt) = snapshot.listing.builtin_prompt(name) {
        return Ok(Destination::BuiltinPrompt(prompt));
    }
    let Some(place) = snapshot.resources.prompt(name) else {
        let nearest = snapshot.resources.nearest_prompts(name).into_iter().map(str::to_owned).collect();
        return Err(Refusal::Unknown { what: "prompt", name: name.to_owned(), nearest });
    };
    Ok(Destination::to(place.clone(), span))
}
