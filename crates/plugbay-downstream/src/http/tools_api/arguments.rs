//! The tool that a plain call names, and its arguments, checked like those of `execute_tool`.

use std::borrow::Cow;

use plugbay_core::{
    arguments,
    surface::{Callable, Found, Snapshot},
};

use crate::{
    builtin,
    context::RequestContext,
    destination::{Destination, InnerCall, Route},
    message::Request,
    refusal::Refusal,
    tasks,
};

/// The server of the tool, in whatever mode hosts see it.
pub(super) fn destination(context: RequestContext<'_>, snapshot: &Snapshot) -> Result<Destination, Refusal> {
    let RequestContext { request, era, .. } = context;
    let (name, span) = request.named("the name of a tool")?;
    let tool = tool(&name, snapshot).map_err(|refusal| match refusal {
        Refusal::Unknown { .. } => context.missing_scope(&name).unwrap_or(refusal),
        _ => refusal,
    })?;
    let inner = match tool.found() {
        Some(found) => repaired(request, found, snapshot.layout.settings.repair)?,
        None => None, // the server checks them
    };
    let target = tool.target();
    let role = tasks::role_of_call(request, era, snapshot, target);
    let subject = Some((span, target.quoted.clone()));
    Ok(Destination::Server(Route { server: target.server.clone(), subject, role, inner }))
}

/// The tool with this exposed name, or with this own name if only one server has it.
fn tool<'s>(name: &str, snapshot: &'s Snapshot) -> Result<Callable<'s>, Refusal> {
    if let Some(found) = snapshot.names.get(name) {
        return Ok(Callable::Listed(found));
    }
    let own = snapshot.names.own_named(name);
    let ambiguous = |found: &[&Found]| {
        let candidates = found.iter().map(|found| found.exposed.clone()).collect();
        Err(Refusal::Ambiguous { name: name.to_owned(), candidates })
    };
    if let Some(disputed) = snapshot.names.disputed(name, &own) {
        return ambiguous(&disputed);
    }
    match own[..] {
        // Another server may still list a tool of the same name.
        [found] if snapshot.settled => return Ok(Callable::Listed(found)),
        [] | [_] => {}
        _ => return ambiguous(&own),
    }
    if let Some(target) = snapshot.names.target(name) {
        return Ok(Callable::Unlisted(target.into_owned()));
    }
    let nearest = snapshot.names.nearest(name).into_iter().map(str::to_owned).collect();
    Err(Refusal::Unknown { what: "tool", name: name.to_owned(), nearest })
}

/// The arguments that replace the given ones; `None` if the given ones fit.
fn repaired(request: &Request, found: &Found, mode: arguments::Mode) -> Result<Option<InnerCall>, Refusal> {
    let (Some(schema), Some(outer)) = (found.tool.input_schema(), request.arguments.clone()) else {
        return Ok(None);
    };
    let given = request.raw(&outer);
    let checked = arguments::check(&schema, given, mode).map_err(Refusal::InvalidArguments)?;
    if matches!(checked.arguments, Cow::Borrowed(_)) {
        return Ok(None);
    }
    builtin::inner_call(request, outer, checked).map(Some).map_err(Refusal::InvalidParams)
}
