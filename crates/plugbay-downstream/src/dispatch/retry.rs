//! What becomes of a request whose server asks back: how it is kept, and how its host returns to it.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{era::Era, wire::Draft};

use super::Request;
use crate::{
    context::RequestContext,
    outbox::Outbox,
    parked::{Back, Terms},
    respond::Refusal,
    rounds::Again,
    route::Route,
    seal::Subject,
    session::{HostCall, Recourse},
    tasks::{Driven, Role},
};

/// What can be done if the server asks something. Of servers that speak as their host does nothing need
/// be kept: there it is the host that sees to it.
pub(super) fn recourse(request: &Request, era: Era, server: Option<Era>, draft: &Draft) -> Recourse {
    match (era, server, &request.params) {
        // One that says nothing has no place for an answer.
        (Era::Legacy, Some(Era::Modern) | None, Some(params)) if !request.is_empty() => {
            Recourse::Again(Box::new(Again::new(draft.clone(), params.clone(), request.timeout)))
        }
        (Era::Modern, Some(Era::Legacy) | None, _) => Recourse::Park(Terms {
            client_capabilities: request.client_capabilities(),
            subject: Subject::of(request),
        }),
        _ => Recourse::None,
    }
}

/// Whether the request is one by which a host comes back to a call that we have kept for it.
pub(super) fn come_back(
    context: RequestContext<'_>,
    route: &Route,
    server_era: Option<Era>,
) -> Result<bool, Refusal> {
    let RequestContext { session, sink, request, era } = context;
    let Some(state) = request.state.as_ref().filter(|_| era == Era::Modern) else {
        return Ok(false);
    };
    let state = request.text(Some(state)).unwrap_or_default();
    let parking = &session.gateway().parking;
    if !parking.seal.as_ref().is_some_and(|seal| seal.is_ours(&state)) {
        // A modern server knows its own, and a legacy one has none.
        return match server_era {
            Some(Era::Legacy) => Err(Refusal::InvalidParams("unknown \"requestState\"".to_owned())),
            _ => Ok(false),
        };
    }
    parking.resume(session, &Back::of(request, &state), waiting(request, sink, route))?;
    Ok(true)
}

/// The call as its host knows it from now on.
fn waiting(request: &Request, sink: &Arc<Outbox>, route: &Route) -> HostCall {
    let slice = |span: &std::ops::Range<usize>| -> Bytes { request.message.slice(span.clone()) };
    HostCall {
        id: slice(&request.id),
        progress_token: request.meta.progress_token.as_ref().map(slice),
        era: Era::Modern,
        server: route.server.clone(),
        reads: request.reads(),
        log_level: request.log_level(),
        repairs: request.repairs.clone(),
        sink: Arc::clone(sink),
        recourse: Recourse::Park(Terms {
            client_capabilities: request.client_capabilities(),
            subject: Subject::of(request),
        }),
        asked: true,
        timeout: request.timeout,
        role: match route.role {
            Role::Driven(_) => Role::Driven(Box::new(Driven::legacy())),
            _ => Role::None,
        },
    }
}
