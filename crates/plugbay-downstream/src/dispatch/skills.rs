//! Skills over MCP: the list of all servers' skills, plugbay's own, and the search for one that no list has.

use std::{collections::BTreeMap, time::Duration};

use plugbay_core::{
    name::ServerName,
    surface::{Snapshot, with_server},
};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};

use super::{InnerRequest, forward, route_request};
use crate::{
    context::RequestContext,
    destination::{Route, SkillAnswer},
    lists::Kind,
    refusal::Refusal,
    respond,
    route::{self, FindDestination},
    tasks,
};

/// How long servers may take to answer whether they have a skill that is in no list.
const SEARCH: Duration = Duration::from_secs(5);

/// `skills/list`. Waits until every server has listed or failed, or the wait for it is over.
pub(super) fn list(context: RequestContext<'_>) {
    if context.snapshot().settled {
        return answer_list(context);
    }
    context.when_settled(answer_list);
}

fn answer_list(context: RequestContext<'_>) {
    let RequestContext { session, request, era, .. } = context;
    let snapshot = context.snapshot();
    if !snapshot.has_skills() {
        return route_request(context, route::unknown);
    }
    let given = request.cursor.as_ref().is_some_and(|span| request.raw(span) != b"null");
    let cursor = match request.cursor() {
        Ok(cursor) => cursor.map(|(cursor, _)| cursor),
        Err(_) if !given => None,
        Err(refusal) => return context.refuse(&refusal),
    };
    let Some(page) = snapshot.skills(cursor.as_deref()) else {
        return context.refuse(&Refusal::InvalidParams("unknown cursor".to_owned()));
    };
    context.answer(respond::skills(request.id(), era, &page, &unlisted(&snapshot)));
    if cursor.is_none() {
        refresh(context, &snapshot);
    }
    if page.next.is_none() {
        session.list_sent(&snapshot, Kind::Skills);
    }
}

/// The servers that have never listed anything, and why.
fn unlisted(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let servers = snapshot.servers().into_iter().filter(|server| snapshot.catalog.get(server).is_none());
    let why = |server: &ServerName| match snapshot.catalog.failure(server) {
        Some(failure) => failure.of_server(),
        None => "has not listed yet".to_owned(),
    };
    servers.map(|server| (server.to_string(), why(&server))).collect()
}

/// Asks running servers for their skills again, because no notification reports changes. plugbay notifies the
/// host if something has changed.
fn refresh(context: RequestContext<'_>, snapshot: &Snapshot) {
    let gateway = context.gateway();
    if gateway.principal.may_refresh_skills() {
        let running = snapshot.resources.skills.servers().filter(|server| !gateway.servers.is_idle(server));
        running.for_each(|server| gateway.servers.refresh(server));
    }
}

/// Answers for plugbay's own skill, or for a server that lists no directories.
pub(super) fn answer(context: RequestContext<'_>, answer: &SkillAnswer) {
    let snapshot = context.snapshot();
    let (id, era) = (context.request.id(), context.era);
    if let SkillAnswer::Children(children) = answer {
        let children: Value = serde_json::from_slice(children).unwrap_or_default();
        return context.result(json!({ "resources": children }));
    }
    let Some(own) = snapshot.own_skill() else { return context.refuse(&Refusal::UnknownMethod) };
    match answer {
        SkillAnswer::Entry => {
            let entry = format!(r#""skill":{}"#, String::from_utf8_lossy(&own.entry));
            context.answer(respond::cacheable(id, era, &entry));
        }
        SkillAnswer::File => {
            let contents = format!(r#""contents":{}"#, own.contents());
            context.answer(respond::cacheable(id, era, &contents));
        }
        SkillAnswer::Directory | SkillAnswer::Children(_) => {
            context.result(json!({ "resources": own.directory() }));
        }
    }
}

/// Asks each server whether it has the requested item, and sends the request to the one that does. The
/// questions only read.
pub(super) fn find(context: RequestContext<'_>, servers: Vec<ServerName>) {
    let request = context.request;
    let Ok((uri, span)) = request.addressed() else { return context.refuse(&Refusal::UnknownMethod) };
    let (uri, what, find): (_, _, FindDestination) = match request.method() {
        b"skills/get" => (uri.into_owned(), "skill", route::skill),
        b"resources/read" => (uri.into_owned(), "resource", route::resource),
        _ => (uri.into_owned(), "directory", route::directory),
    };
    let method = String::from_utf8_lossy(request.method()).into_owned();
    let mut asking = JoinSet::new();
    for server in servers {
        let params = json!({ "uri": with_server(&server, &uri) });
        if let Some(inner) = InnerRequest::new(context, &method, &params, find) {
            asking.spawn(async move { (timeout(SEARCH, inner.result()).await, server) });
        }
    }
    let owners = async move {
        let mut owners = Vec::new();
        while let Some(asked) = asking.join_next().await {
            owners.extend(asked.ok().and_then(|(answer, server)| answer.ok()?.ok().map(|_| server)));
        }
        owners.sort();
        owners
    };
    context.later(owners, move |context, owners| match &owners[..] {
        [owner] => {
            let subject = Some((span, tasks::quoted(&uri)));
            forward(context, &Route { subject, ..Route::to_server(owner) });
        }
        [] if what == "resource" => context.refuse(&Refusal::UnknownResource { uri, era: context.era }),
        [] => context.refuse(&Refusal::unknown(what, &uri)),
        several => {
            let uris = several.iter().map(|server| with_server(server, &uri)).collect();
            context.refuse(&Refusal::Disputed { uris });
        }
    });
}
