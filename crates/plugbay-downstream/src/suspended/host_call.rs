//! A call from the host's point of view: the outbox for its answer, and the changes to that answer.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    era::{self, Era},
    exchange::{Answer, Ticket},
    level::Level,
    surface::Snapshot,
    suspended::{Bridge, Ended, NewCall, PolledTask, RepeatedCall},
    wire::{Draft, Frame, Head, Members, Span},
};
use smallvec::SmallVec;

use super::{
    fit::{Fit, Fitted, Fitting},
    observed::Observed,
};
use crate::{
    answer_uris::AnswerUris,
    context::RequestContext,
    destination::Route,
    message::Request,
    outbox::Outbox,
    refusal::Refusal,
    respond,
    seal::{Owner, Subject},
    session::Session,
    tasks::{self, Role},
};

/// A host that waits for the answer to a call. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct HostCall {
    pub(super) session: Weak<Session>,
    pub(crate) sink: Arc<Outbox>,
    /// The host's own id, as raw JSON.
    pub(super) id: Bytes,
    pub(super) progress_token: Option<Bytes>,
    pub(crate) era: Era,
    /// Whether the call reads a resource.
    reads: bool,
    /// Whether a modern result of this kind must say how long it may be cached.
    cacheable: bool,
    /// The log level of a modern request.
    pub(crate) log_level: Option<Level>,
    /// The repairs of the arguments: a member for the result's `_meta`.
    repairs: Option<Bytes>,
    uris: Option<AnswerUris>,
    /// The part of its request that a modern host must repeat to answer a request of a legacy server.
    pub(super) subject: Option<Subject>,
    /// Whether a modern host supports URL elicitation.
    url_elicitation: bool,
    role: Role,
    /// The facts that are needed if the result is large.
    fit: Option<Fit>,
    /// Observes how the call ends.
    pub(super) observed: Option<Observed>,
}

impl HostCall {
    pub(crate) fn begin(
        context: RequestContext<'_>,
        route: &Route,
        snapshot: &Snapshot,
        draft: &Draft,
        observed: Option<Observed>,
    ) -> NewCall<Self> {
        let RequestContext { session, request, era, .. } = context;
        let capabilities = match era {
            Era::Legacy => session.client_capabilities(),
            Era::Modern => request.client_capabilities(),
        };
        let server_era = snapshot.catalog.get(&route.server).map(|entry| entry.offer.dialect.era);
        let bridge = match bridge(request, era, server_era, route, draft) {
            // A modern server asks in its results, but before that plugbay may ask for a login.
            Bridge::Direct if era == Era::Modern && capabilities.url => Bridge::HostReturns,
            bridge => bridge,
        };
        let host = match bridge {
            Bridge::HostReturns => Self::returning(context, route, snapshot, capabilities, observed),
            _ => Self::new(context, route, snapshot, observed),
        };
        let polled = matches!(route.role, Role::Polled).then(|| PolledTask::legacy(route.timeout()));
        NewCall { host, server: route.server.clone(), era, capabilities, bridge, polled }
    }

    /// A modern host that has come back for a call, or may have to.
    pub(super) fn returning(
        context: RequestContext<'_>,
        route: &Route,
        snapshot: &Snapshot,
        capabilities: ClientCapabilities,
        observed: Option<Observed>,
    ) -> Self {
        Self {
            subject: Some(Subject::of(context.request)),
            url_elicitation: capabilities.url,
            ..Self::new(context, route, snapshot, observed)
        }
    }

    fn new(
        context: RequestContext<'_>,
        route: &Route,
        snapshot: &Snapshot,
        observed: Option<Observed>,
    ) -> Self {
        let RequestContext { session, sink, request, era } = context;
        let slice = |span: &Span| request.message.slice(span.clone());
        Self {
            session: Arc::downgrade(session),
            sink: Arc::clone(sink),
            id: slice(&request.id),
            progress_token: request.meta.progress_token.as_ref().map(slice),
            era,
            reads: request.reads(),
            cacheable: request.reads() || request.method() == b"skills/get",
            log_level: request.log_level(),
            repairs: route.inner.as_ref().and_then(|inner| inner.repairs.clone()),
            uris: AnswerUris::of(request, route, snapshot),
            subject: None,
            url_elicitation: false,
            role: route.role.clone(),
            fit: if sink.takes_whole() { None } else { Fit::of(session, request, route) },
            observed,
        }
    }

    /// Sends the answer to the host; the call has left the table.
    pub(super) fn deliver(self, ended: Ended<()>, answer: Answer) {
        if let Some(observed) = &self.observed {
            observed.answered(&answer);
        }
        let Some(session) = self.session.upgrade() else { return };
        let is_task = |fit: &Fit| fit.is_task(&session, &ended.server, &answer);
        if matches!(self.role, Role::Begins) && self.fit.as_ref().is_some_and(is_task) {
            return Self { fit: None, ..self }.deliver_to(session, ended, answer);
        }
        let learning = self.fit.as_ref().and_then(|fit| fit.learning(&session, &ended.server, &answer));
        self.deliver_to(session, ended, answer);
        if let Some(learning) = learning {
            learning.begin();
        }
    }

    fn deliver_to(self, session: Arc<Session>, ended: Ended<()>, answer: Answer) {
        let fitting = self.fit.as_ref().and_then(|fit| fit.wanted(&session, &ended.server, &answer));
        if let Some(fitting) = fitting.filter(|_| !self.is_within_another()) {
            tokio::spawn(self.deliver_fitted(session, ended, answer, fitting));
            return;
        }
        let Some(change) = session.release_unless_changed(&self.id, ended.sent) else {
            return self.answer(&session, &ended, answer);
        };
        tokio::spawn(async move {
            session.show_changed_lists(change).await;
            if session.release(&self.id) {
                self.answer(&session, &ended, answer);
            } else {
                self.sink.cancelled();
                session.notify_if_idle();
            }
        });
    }

    /// Whether plugbay itself reads the answer, as a part of another request.
    fn is_within_another(&self) -> bool {
        self.id.starts_with(b"\"plugbay ")
    }

    /// Changes an answer to fit the host, and sends it. Until then the request can be cancelled, and then
    /// nothing is stored.
    async fn deliver_fitted(self, session: Arc<Session>, ended: Ended<()>, answer: Answer, fitting: Fitting) {
        if let Some(change) = session.take_awaited_change(ended.sent) {
            session.show_changed_lists(change).await;
        }
        let Fitted { answer, stored } = fitting.apply(&session, answer).await;
        if session.release(&self.id) {
            return self.answer(&session, &ended, answer);
        }
        if let Some(handle) = stored {
            session.gateway().results.remove(handle);
        }
        self.sink.cancelled();
        session.notify_if_idle();
    }

    fn answer(self, session: &Session, ended: &Ended<()>, answer: Answer) {
        match self.frame(ended, answer, &session.owner()) {
            Ok(frame) if self.sink.has_room_for(frame.len()) => self.sink.answer(frame),
            Ok(_) => self.sink.refuse(&self.id, &Refusal::TooMuchUnread),
            Err(refusal) => self.sink.refuse(&self.id, &refusal),
        }
        if let (Role::Begins, Some(token)) = (self.role, self.progress_token) {
            session.remember_token(ended.sent, &token);
        }
        session.notify_if_idle();
    }

    fn frame(&self, ended: &Ended<()>, answer: Answer, owner: &Owner) -> Result<Frame, Refusal> {
        match (answer, &self.role) {
            (Answer::Response { message, head, era }, _) => {
                Ok(self.translated(ended, &message, &head, era, owner))
            }
            // One server's failure must not hide the tasks of all other servers.
            (Answer::Failed(error), Role::Lists { next: Some(next) }) => {
                Ok(respond::unlisted(&self.id, &tasks::cursor_of(next), &ended.server, &error))
            }
            (Answer::Failed(error), _) => Err(Refusal::Call(error)),
        }
    }

    /// Ends the call with an error by plugbay.
    pub(super) fn fail(self, refusal: &Refusal) {
        if let Some(observed) = &self.observed {
            observed.refused(refusal);
        }
        if let Some(session) = self.session.upgrade() {
            session.release(&self.id);
            self.sink.refuse(&self.id, refusal);
            session.notify_if_idle();
        }
    }

    /// The server's answer with the host's id and in the host's era.
    fn translated(&self, ended: &Ended<()>, message: &Bytes, head: &Head, era: Era, owner: &Owner) -> Frame {
        let to_modern = self.era == Era::Modern && era == Era::Legacy;
        let visits = || era::visits_required(message, head);
        if let Some(visits) = (to_modern && self.url_elicitation).then(visits).flatten() {
            return respond::url_elicitation_required(&self.id, message, &visits);
        }
        let completion = to_modern.then(|| era::completion(message, head, self.cacheable)).flatten();
        let renumbered = (era != self.era).then(|| era::renumbered(message, head, era, self.reads)).flatten();
        let remark = self.repairs.as_ref().and_then(|member| era::remark(message, head, member));
        let remark = remark.as_ref().map(|(at, text)| (*at..*at, &text[..]));
        // An empty result has no comma to separate the two.
        let remark = remark.filter(|_| completion.as_ref().is_none_or(|(_, text)| text.starts_with(b",")));
        let role = if ended.polled { &Role::Polled } else { &self.role };
        let labels = tasks::labels(role, &ended.server, message, head, owner);
        let labels = labels.iter().map(|(at, text)| (*at..*at, &text[..]));
        let uris = self.uris.as_ref().map(|uris| uris.edits(message, head)).unwrap_or_default();
        let uris = uris.iter().map(|(span, uri)| (span.clone(), &uri[..]));
        let changes: SmallVec<[(Span, &[u8]); 2]> =
            completion.into_iter().chain(renumbered).chain(remark).chain(labels).chain(uris).collect();
        head.readdressed(message, &self.id, &changes)
    }

    /// Forwards the server's progress, if the host has asked for progress.
    pub(super) fn progressed(&self, notification: &Bytes, token: Span) {
        if let Some(wanted) = &self.progress_token {
            self.sink.send_if_room(Frame::edited(notification, &[(token, wanted)]));
        }
    }
}

/// How a server request reaches the host. If both use the same era, nothing is kept.
fn bridge(request: &Request, era: Era, server: Option<Era>, route: &Route, draft: &Draft) -> Bridge {
    match (era, server, &request.params) {
        // Without params there is no place for an answer.
        (Era::Legacy, Some(Era::Modern) | None, Some(params)) if !request.is_empty() => {
            let (params, role) = (params.clone(), route.role.task_role());
            Bridge::Repeat(Box::new(RepeatedCall::new(draft.clone(), params, route.timeout(), role)))
        }
        (Era::Modern, Some(Era::Legacy) | None, _) => Bridge::HostReturns,
        _ => Bridge::Direct,
    }
}

/// Separates the host from a call that has ended.
pub(super) fn split(ended: Ended<HostCall>) -> (Option<HostCall>, Ended<()>) {
    let Ended { host, server, sent, left_open, task, polled } = ended;
    (host, Ended { host: None, server, sent, left_open, task, polled })
}

/// The ids of server requests with the host's answers to them, from `inputResponses`.
pub(super) fn answers(request: &Request) -> Result<Vec<(Ticket, Bytes)>, Refusal> {
    let Some(responses) = &request.responses else { return Ok(Vec::new()) };
    let mut answers = Vec::new();
    for member in Members::of(&request.message, responses).flatten() {
        let Ok(id) = member.key.parse() else { continue }; // the protocol has unknown keys ignored
        if request.message[member.value.start] != b'{' {
            let what = format!("\"inputResponses\" must hold an object at {:?}", member.key);
            return Err(Refusal::InvalidParams(what));
        }
        answers.push((Ticket(id), request.message.slice(member.value)));
    }
    Ok(answers)
}
