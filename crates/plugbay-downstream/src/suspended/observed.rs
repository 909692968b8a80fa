//! Reports the beginning and the end of a call to the observer.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    era::{Era, MetaSlot},
    exchange::Answer,
    name::ServerName,
    observe::{CallOutcome, ObservedCall, SessionMark, StartingCall},
    search::memory::definition_hash,
    surface::Snapshot,
    wire::{Draft, Head, Hole, Kind, Members, string_value},
};

use crate::{
    context::RequestContext, destination::Route, message::Request, refusal::Refusal,
    remembered_searches::RememberedSearches, session::Session,
};

/// A call that is observed, and the trace context for its server.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    /// `None`: nobody observes calls.
    call: Option<Arc<ObservedCall>>,
    trace_parent: Option<Arc<str>>,
    /// The search that this call may be the answer to.
    follows: Option<Arc<FollowedSearch>>,
}

/// A call of a tool that a search has shown to its session.
#[derive(Debug)]
struct FollowedSearch {
    searches: Arc<RememberedSearches>,
    session: SessionMark,
    server: ServerName,
    tool: String,
    definition: u64,
}

impl FollowedSearch {
    fn of(session: &Session, request: &Request, route: &Route, snapshot: &Snapshot) -> Option<Arc<Self>> {
        let gateway = session.gateway();
        let (searches, mark) = (gateway.searches()?, gateway.principal.session);
        let is_call = request.method() == b"tools/call";
        let tool = route.subject.as_ref().filter(|_| is_call).and_then(|(_, name)| string_value(name))?;
        let server = &route.server;
        if !searches.awaits(mark, server, &tool) {
            return None;
        }
        let found = snapshot.names.of(server).find(|found| found.target.tool == *tool)?;
        Some(Arc::new(Self {
            searches: Arc::clone(&gateway.ranker.searches),
            session: mark,
            server: server.clone(),
            tool: tool.into_owned(),
            definition: definition_hash(&found.tool),
        }))
    }
}

impl Observed {
    /// Begins to observe a call; `None` if nobody observes calls and no search led to this one.
    pub(crate) fn begin(context: RequestContext<'_>, route: &Route, snapshot: &Snapshot) -> Option<Self> {
        Self::begin_for(context.session, context.request, context.era, route, snapshot)
    }

    /// The same for a message that has no answer.
    pub(crate) fn begin_for(
        session: &Session,
        request: &Request,
        era: Era,
        route: &Route,
        snapshot: &Snapshot,
    ) -> Option<Self> {
        let follows = FollowedSearch::of(session, request, route, snapshot);
        let principal = &session.gateway().principal;
        let account = principal.account.get();
        let Some(observer) = principal.observer.as_ref().filter(|observer| observer.is_on()) else {
            return follows.map(|follows| Self { call: None, trace_parent: None, follows: Some(follows) });
        };
        let named = matches!(request.method(), b"tools/call" | b"prompts/get");
        let name = route.subject.as_ref().filter(|_| named).and_then(|(_, name)| string_value(name));
        let listed = |name: &str| snapshot.catalog.get(&route.server)?.offer.tool(name);
        let client = session.host_view().client();
        let inner = route.inner.as_ref().map(|inner| &*inner.arguments.1);
        let text = |span| request.text(span);
        let (in_meta, state) =
            (text(request.meta.trace_parent.as_ref()), text(request.meta.trace_state.as_ref()));
        let header = request.meta.trace_header.as_ref().and_then(|header| std::str::from_utf8(header).ok());
        let observation = observer.starts(&StartingCall {
            method: std::str::from_utf8(request.method()).unwrap_or_default(),
            server: &route.server,
            name: name.as_deref(),
            is_listed: name.as_deref().and_then(listed).is_some(),
            arguments: inner.or_else(|| request.arguments()),
            caller: account.grant.name.as_deref(),
            client: account.grant.client.as_deref(),
            session: principal.session,
            host: client.as_deref(),
            era,
            bytes: request.message.len(),
            trace_parent: in_meta.as_deref().or(header),
            trace_state: state.as_deref(),
        });
        let trace_parent = observation.trace_parent().map(Arc::from);
        Some(Self { call: Some(Arc::new(ObservedCall::new(observation))), trace_parent, follows })
    }

    pub(crate) fn end(&self, outcome: CallOutcome, bytes: usize) {
        if let Some(FollowedSearch { searches, session, server, tool, definition }) = self.follows.as_deref()
            && outcome == CallOutcome::Ok
        {
            searches.called(*session, server, tool, *definition);
        }
        if let Some(call) = &self.call {
            call.end(outcome, bytes);
        }
    }

    pub(crate) fn refused(&self, refusal: &Refusal) {
        self.end(outcome_of(refusal), 0);
    }

    /// Reports a server's answer as the end.
    pub(crate) fn answered(&self, answer: &Answer) {
        match answer {
            Answer::Response { message, head, .. } => self.end(outcome_in(message, head), message.len()),
            Answer::Failed(error) => {
                self.end(CallOutcome::failed(error, Refusal::Call(error.clone()).code()), 0);
            }
        }
    }

    /// Puts the trace context of this call into the request. If the server speaks the other era, plugbay only
    /// replaces an existing context: `era` writes that part of the request.
    pub(crate) fn propagate(&self, draft: Draft, request: &Request, era: Era, server: Option<Era>) -> Draft {
        let Some(trace_parent) = &self.trace_parent else { return draft };
        if let Some(span) = &request.meta.trace_parent {
            return draft.with(span.clone(), Hole::Text(Bytes::from(format!("\"{trace_parent}\""))));
        }
        if server != Some(era) {
            return draft;
        }
        let slot = MetaSlot::find(&request.message, request.params.as_ref());
        slot.fill(draft, &format!("\"traceparent\":\"{trace_parent}\""))
    }
}

fn outcome_of(refusal: &Refusal) -> CallOutcome {
    match refusal {
        Refusal::Limited(_) => CallOutcome::RateLimited,
        Refusal::Call(error) => CallOutcome::failed(error, refusal.code()),
        refusal => CallOutcome::Error(refusal.code()),
    }
}

fn outcome_in(message: &[u8], head: &Head) -> CallOutcome {
    let member = |key| head.payload.as_ref().and_then(|payload| Members::find(message, payload, key));
    match head.kind {
        Kind::Error { .. } => {
            let code = member("code").and_then(|code| std::str::from_utf8(&message[code]).ok()?.parse().ok());
            CallOutcome::Error(code.unwrap_or_default())
        }
        _ if member("isError").is_some_and(|flag| &message[flag] == b"true") => CallOutcome::ToolError,
        _ => CallOutcome::Ok,
    }
}
