//! Whom a request is for, and what of it must be written in that server's own words.

use bytes::Bytes;
use plugbay_core::{
    era::Era,
    name::ServerName,
    surface::{Own, OwnPrompt, Place, Plan, Snapshot},
    wire::{Members, Span, string_value},
};

use crate::{
    message::Request,
    respond::Refusal,
    seal::Owner,
    tasks::{self, Role},
};

pub(crate) struct Route {
    pub(crate) server: ServerName,
    /// The part of the request that names its subject, and what takes its place.
    pub(crate) subject: Option<(Span, Bytes)>,
    pub(crate) role: Role,
}

/// Who serves a request.
pub(crate) enum Way {
    Server(Route),
    /// The gateway itself.
    Own(Own),
    OwnPrompt(OwnPrompt),
    /// A server as one tool.
    Suite(ServerName),
}

/// Finds the way of one kind of request.
pub(crate) type Finder = fn(&Request, &Snapshot, Era, &Owner) -> Result<Way, Refusal>;

pub(crate) fn tool(request: &Request, snapshot: &Snapshot, era: Era, _: &Owner) -> Result<Way, Refusal> {
    let (name, span) = request.named("the name of a tool")?;
    match snapshot.listing.plan(&name) {
        Plan::Forward(target) => {
            let subject = Some((span, target.quoted.clone()));
            let role = tasks::role_of_call(request, era, snapshot, &target);
            Ok(Way::Server(Route { server: target.server.clone(), subject, role }))
        }
        Plan::Own(own) => Ok(Way::Own(own)),
        Plan::Suite(server) => Ok(Way::Suite(server.clone())),
        Plan::Unknown { nearest } => {
            let nearest = nearest.into_iter().map(str::to_owned).collect();
            Err(Refusal::Unknown { what: "tool", name: name.into_owned(), nearest })
        }
    }
}

pub(crate) fn prompt(request: &Request, snapshot: &Snapshot, _: Era, _: &Owner) -> Result<Way, Refusal> {
    let (name, span) = request.named("the name of a prompt")?;
    known_prompt(&name, span, snapshot)
}

pub(crate) fn resource(request: &Request, snapshot: &Snapshot, era: Era, _: &Owner) -> Result<Way, Refusal> {
    let (uri, span) = request.addressed()?;
    let place = snapshot.shelf.resource(&uri);
    let place = place.ok_or_else(|| Refusal::UnknownResource { uri: uri.into_owned(), era })?;
    Ok(Way::to(place, span))
}

/// A completion is asked of whoever has the prompt or the template that is being filled in.
pub(crate) fn completion(
    request: &Request,
    snapshot: &Snapshot,
    era: Era,
    _: &Owner,
) -> Result<Way, Refusal> {
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
    let place = snapshot.shelf.template(&uri);
    let place = place.ok_or_else(|| Refusal::UnknownResource { uri: uri.into_owned(), era })?;
    Ok(Way::to(place, span))
}

fn known_prompt(name: &str, span: Span, snapshot: &Snapshot) -> Result<Way, Refusal> {
    if let Some(own) = snapshot.listing.own_prompt(name) {
        return Ok(Way::OwnPrompt(own));
    }
    let Some(place) = snapshot.shelf.prompt(name) else {
        let nearest = snapshot.shelf.nearest_prompts(name).into_iter().map(str::to_owned).collect();
        return Err(Refusal::Unknown { what: "prompt", name: name.to_owned(), nearest });
    };
    Ok(Way::to(place.clone(), span))
}

impl Way {
    fn to(place: Place, span: Span) -> Self {
        Self::Server(Route { server: place.server, subject: Some((span, place.quoted)), role: Role::None })
    }
}
