//! Drives the table of calls: performs the actions of [`plugbay_core::suspended`], and wakes it when
//! something is due.

mod fit;
mod host_call;
mod observed;
mod stopped_runs;
mod task_fits;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use plugbay_core::{
    era::Era,
    exchange::{Answer, Call, Caller, Reply as HostReply, ServerRequest, ServerRequestError, Ticket},
    name::ServerName,
    observe::CallOutcome,
    suspended::{
        Action, CallTable, Carried, Ended, HOST_PATIENCE, NewCall, NextRequest, ResumeError, Resumed,
        cancel_request,
    },
    wire::{Draft, Head, Span},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

pub(crate) use self::{host_call::HostCall, observed::Observed, stopped_runs::RunId};
use self::{
    host_call::{answers, split},
    stopped_runs::StoppedRuns,
    task_fits::TaskFits,
};
use crate::{
    context::RequestContext,
    destination::Route,
    gateway::Gateway,
    refusal::Refusal,
    respond,
    seal::{Seal, Subject},
    session::Session,
};

/// A run that waits for its modern host to come back.
pub(crate) trait PausedRun: Send {
    /// Continues in the host's next request, with the host's answer if there is one.
    fn resume(self: Box<Self>, context: RequestContext<'_>, answer: Option<Bytes>);
}

/// All calls of all sessions: over HTTP a modern host comes back in another session.
pub struct SuspendedCalls {
    // A std mutex: held for a step of the table, never across an await, and never while a session's is taken.
    state: Mutex<State>,
    /// Seals the `requestState` of modern hosts. `None`: the system gives no random numbers, so they cannot be asked.
    seal: Option<Seal>,
    /// Notified when something is due before the timer wakes.
    earlier: Notify,
    /// How calls were made whose tasks are still running.
    task_fits: TaskFits,
    /// Runs that continue in a later request.
    pub(crate) stopped_runs: StoppedRuns,
}

#[derive(Default)]
struct State {
    table: CallTable<HostCall, Box<dyn PausedRun>>,
    /// When the timer wakes; `None` while there is no timer.
    wakes_at: Option<std::time::Instant>,
}

impl Default for SuspendedCalls {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            seal: Seal::new(),
            earlier: Notify::new(),
            task_fits: TaskFits::default(),
            stopped_runs: StoppedRuns::default(),
        }
    }
}

impl fmt::Debug for SuspendedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SuspendedCalls({})", self.lock().table.len())
    }
}

impl SuspendedCalls {
    // --- from hosts

    pub(crate) fn register(&self, ticket: Ticket, call: NewCall<HostCall>) {
        self.lock().table.register(ticket, call);
    }

    /// Ends a call whose host has cancelled it or disconnected. `notification` tells the server.
    pub(crate) fn cancel(&self, gateway: &Gateway, ticket: Ticket, notification: Draft) {
        let ended = self.lock().table.cancel(ticket);
        let Some((host, ended)) = ended.map(split) else { return };
        let session = host.as_ref().and_then(|host| host.session.upgrade());
        if let Some(session) = &session {
            session.withdraw_requests_of(ended.sent);
        }
        if let Some(host) = host {
            host.sink.cancelled();
        }
        leave_open(gateway, &ended.server, &ended.left_open);
        gateway.servers.cancel(&ended.server, ended.sent, notification);
        cancel_task(gateway, session, &ended);
    }

    /// Removes a call from the table without notifying host or server.
    pub(crate) fn forget(&self, ticket: Ticket) -> Option<HostCall> {
        self.lock().table.cancel(ticket)?.host
    }

    /// Continues a call if this is the request with which a modern host comes back to it. Returns whether it
    /// is.
    pub(crate) fn resume(
        &self,
        context: RequestContext<'_>,
        route: &Route,
        server_era: Option<Era>,
    ) -> Result<bool, Refusal> {
        let RequestContext { session, request, era, .. } = context;
        let Some(state) = request.state.as_ref().filter(|_| era == Era::Modern) else { return Ok(false) };
        let state = request.text(Some(state)).unwrap_or_default();
        if !self.seal.as_ref().is_some_and(|seal| seal.is_ours(&state)) {
            // A modern server knows its own state, and a legacy one has none.
            return match server_era {
                Some(Era::Legacy) => Err(Refusal::InvalidParams("unknown \"requestState\"".to_owned())),
                _ => Ok(false),
            };
        }
        let (ticket, answers) = (self.unseal(context, &state)?, answers(request)?);
        let capabilities = request.client_capabilities();
        let id = request.message.slice(request.id.clone());
        session.reserve(id.clone(), ticket, request.message.len())?;
        let snapshot = session.snapshot();
        let observed = Observed::begin(context, route, &snapshot);
        let host = HostCall::returning(context, route, &snapshot, capabilities, observed.clone());
        let ids: Vec<Ticket> = answers.iter().map(|(id, _)| *id).collect();
        let resumed = self.step(context.gateway(), |state| {
            state.table.resume(ticket, (host, capabilities), &ids, now(), &context.gateway().tickets)
        });
        let resumed = resumed.map_err(Refusal::from).inspect_err(|refusal| {
            session.release(&id);
            if let Some(observed) = &observed {
                observed.refused(refusal);
            }
        });
        let Resumed { server, wanted, action } = resumed?;
        for (id, answer) in answers.into_iter().filter(|(id, _)| wanted.contains(id)) {
            context.gateway().servers.reply(&server, id, HostReply::Result(answer));
        }
        self.perform(context.gateway(), action);
        Ok(true)
    }

    /// Takes a legacy host's answer to an input request of a modern server.
    pub(crate) fn host_answered(
        &self,
        gateway: &Gateway,
        call: Ticket,
        key: String,
        result: Result<Bytes, String>,
    ) {
        let action =
            self.step(gateway, |state| state.table.host_answered(call, key, result, &gateway.tickets));
        self.perform(gateway, action);
    }

    // --- from servers

    /// Takes a server's answer. `sender` is the session that sent the call. If the host is away, the answer
    /// counts in that session's budget.
    pub(crate) fn answered(&self, sender: &Session, sent: Ticket, answer: Answer) {
        let gateway = sender.gateway();
        let keep = |answer| kept(answer, sender);
        let action =
            self.step(gateway, |state| state.table.answered(sent, answer, now(), &gateway.tickets, keep));
        self.perform(gateway, action);
    }

    /// Handles a server request to the host of a call.
    pub(crate) fn server_request(
        &self,
        gateway: &Gateway,
        sent: Ticket,
        request: ServerRequest,
    ) -> Result<(), ServerRequestError> {
        let carried = self.step(gateway, |state| {
            if self.seal.is_none() && state.table.host(sent).is_some_and(|host| host.era == Era::Modern) {
                return Err(ServerRequestError::NoHost);
            }
            state.table.server_request(sent, request.clone(), now())
        })?;
        if carried == Carried::Kept {
            return Ok(());
        }
        let host = self.host(sent).ok_or(ServerRequestError::CallEnded)?;
        let session = host.session.upgrade().ok_or(ServerRequestError::HostGone)?;
        session.send_server_request(Some(&host.sink), request)
    }

    pub(crate) fn withdrawn(&self, sent: Ticket, request: Ticket) {
        self.lock().table.withdrawn(sent, request);
    }

    /// Forwards progress, if the host is there; `false` if the call is not in the table.
    pub(crate) fn progressed(&self, sent: Ticket, notification: &Bytes, token: Span) -> bool {
        let state = self.lock();
        match state.table.host(sent) {
            Some(host) => host.progressed(notification, token),
            None => return state.table.contains(sent),
        }
        true
    }

    /// Whether the host of a call can be asked to open a URL.
    pub(crate) fn opens_urls(&self, sent: Ticket) -> bool {
        let state = self.lock();
        let comes_back = || state.table.host(sent).is_some_and(|host| host.era == Era::Legacy);
        state.table.opens_urls(sent) && (self.seal.is_some() || comes_back())
    }

    /// The host that waits for a call.
    pub(crate) fn host(&self, sent: Ticket) -> Option<HostCall> {
        self.lock().table.host(sent).cloned()
    }

    pub(crate) fn contains(&self, sent: Ticket) -> bool {
        self.lock().table.contains(sent)
    }

    // --- from runs

    /// Whether a modern host can be asked something in the middle of a run.
    pub(crate) fn can_pause(&self) -> Result<(), ServerRequestError> {
        if self.seal.is_none() {
            return Err(ServerRequestError::NoHost);
        }
        if self.lock().table.has_room_for_runs() { Ok(()) } else { Err(ServerRequestError::TooMany) }
    }

    /// Answers the host's request with `input_required`, and keeps the run for its next one. `params` is raw JSON.
    pub(crate) fn pause(
        &self,
        context: RequestContext<'_>,
        method: &str,
        params: &str,
        run: Box<dyn PausedRun>,
    ) {
        let Some(seal) = &self.seal else { return };
        let (gateway, request) = (context.gateway(), context.request);
        let (ticket, until) = (gateway.tickets.next(), Instant::now() + HOST_PATIENCE);
        let state = seal.close(ticket, &context.session.owner(), &Subject::of(request), until);
        let asked = respond::input_request(ticket, method, params);
        self.step(gateway, |state| state.table.pause(ticket, run, until.into_std()));
        context.answer(respond::input_required(request.id(), &asked, &state));
    }

    /// Continues a run if this is the request with which a host comes back to it. Returns whether it is.
    pub(crate) fn resume_run(&self, context: RequestContext<'_>) -> Result<bool, Refusal> {
        let Some(state) = &context.request.state else { return Ok(false) };
        let state = context.request.text(Some(state)).unwrap_or_default();
        let ticket = self.unseal(context, &state)?;
        let answer = answers(context.request)?.into_iter().find(|(id, _)| *id == ticket);
        let run = self.lock().table.resume_run(ticket)?;
        run.resume(context, answer.map(|(_, answer)| answer));
        Ok(true)
    }

    // --- steps

    fn unseal(&self, context: RequestContext<'_>, state: &str) -> Result<Ticket, Refusal> {
        let seal = self.seal.as_ref().ok_or(ResumeError::Ended)?;
        let subject = Subject::of(context.request);
        let opened = seal.open(state, &context.session.owner(), &subject, Instant::now());
        opened.map_err(|why| Refusal::InvalidParams(why.to_string()))
    }

    fn perform(&self, gateway: &Gateway, action: Option<Action<HostCall>>) {
        match action {
            None => {}
            Some(Action::Deliver(ended, answer)) => {
                let (host, ended) = split(ended);
                leave_open(gateway, &ended.server, &ended.left_open);
                let session = host.as_ref().and_then(|host| host.session.upgrade());
                cancel_task(gateway, session, &ended);
                if let Some(host) = host {
                    host.deliver(ended, answer);
                }
            }
            Some(Action::Fail(ended, why)) => {
                let (host, ended) = split(ended);
                if let Some(host) = host {
                    let session = host.session.upgrade();
                    if let Some(session) = &session {
                        session.withdraw_requests_of(ended.sent);
                    }
                    cancel_task(gateway, session, &ended);
                    host.fail(&Refusal::from(why));
                }
            }
            Some(Action::Expire(ended, working)) => {
                let (_, ended) = split(ended);
                leave_open(gateway, &ended.server, &ended.left_open);
                if working {
                    gateway.servers.cancel(&ended.server, ended.sent, respond::host_has_gone());
                    cancel_task(gateway, None, &ended);
                }
            }
            Some(Action::Send { call, sent, server, next, left_open }) => {
                leave_open(gateway, &server, &left_open);
                self.send(gateway, call, sent, &server, next);
            }
            Some(Action::AskHost { call, sent, requests }) => {
                let host = self.host(sent);
                let session = host.as_ref().and_then(|host| host.session.upgrade());
                if let (Some(host), Some(session)) = (host, session)
                    && !session.send_input_requests(call, sent, &host.sink, requests)
                {
                    let why = "the host leaves too many messages unread";
                    let action = self.lock().table.cannot_ask(call, why);
                    self.perform(gateway, action);
                }
            }
            Some(Action::Present { call, host, requests, until }) => {
                self.present(gateway, call, &host, &requests, Instant::from_std(until));
            }
        }
    }

    fn send(&self, gateway: &Gateway, call: Ticket, sent: Ticket, server: &ServerName, next: NextRequest) {
        let session = self.host(sent).and_then(|host| host.session.upgrade());
        let Some(caller) = session else {
            return self.cancel(gateway, call, respond::host_has_gone());
        };
        let NextRequest { request, params, task_role, timeout } = next;
        let era = Era::Legacy;
        let call = Call { ticket: sent, caller, request, era, params: Some(params), timeout, task_role };
        gateway.servers.forward(server, call);
    }

    /// Answers the host's request with the requests of its server.
    fn present(
        &self,
        gateway: &Gateway,
        call: Ticket,
        host: &HostCall,
        requests: &[ServerRequest],
        until: Instant,
    ) {
        let session = host.session.upgrade().filter(|session| session.release(&host.id));
        let (Some(seal), Some(subject), Some(session)) = (&self.seal, &host.subject, session) else {
            return self.cancel(gateway, call, respond::host_has_gone()); // cancelled in this very moment
        };
        let state = seal.close(call, &session.owner(), subject, until);
        let requests = respond::input_requests(requests.iter());
        let answer = respond::input_required(&host.id, &requests, &state);
        if let Some(observed) = &host.observed {
            observed.end(CallOutcome::InputRequired, answer.len());
        }
        host.sink.answer(answer);
        session.notify_if_idle();
    }

    /// Changes the table, and makes sure that the timer wakes in time.
    fn step<T>(&self, gateway: &Gateway, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let outcome = change(&mut state);
        if let Some(due) = state.table.next_deadline()
            && state.wakes_at.is_none_or(|wakes_at| due < wakes_at)
        {
            if state.wakes_at.replace(due).is_none() {
                tokio::spawn(run_timer(gateway.clone()));
            } else {
                self.earlier.notify_one();
            }
        }
        outcome
    }

    /// When the timer must wake next; `None` ends it.
    fn wakes_at(&self) -> Option<Instant> {
        let mut state = self.lock();
        state.wakes_at = state.table.next_deadline();
        state.wakes_at.map(Instant::from_std)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Performs due actions, for as long as anything can become due.
async fn run_timer(gateway: Gateway) {
    let calls = Arc::clone(&gateway.suspended);
    while let Some(at) = calls.wakes_at() {
        tokio::select! {
            () = sleep_until(at) => {}
            () = calls.earlier.notified() => continue,
        }
        let (actions, runs) = calls.lock().table.due(now(), &gateway.tickets);
        drop(runs); // dropping an expired run cancels it
        for action in actions {
            calls.perform(&gateway, Some(action));
        }
    }
}

/// Returns the server requests that another call may carry.
fn leave_open(gateway: &Gateway, server: &ServerName, requests: &[Ticket]) {
    for request in requests {
        gateway.servers.reply(server, *request, HostReply::LeftOpen);
    }
}

/// Cancels the polled task of a call that nobody waits for any more. The server sees it as the host's own
/// request: one from another caller would make it unclear which host the server works for.
fn cancel_task(gateway: &Gateway, session: Option<Arc<Session>>, ended: &Ended<()>) {
    let Some(task) = &ended.task else { return };
    let NextRequest { request, params, task_role, timeout } = cancel_request(task);
    let caller: Arc<dyn Caller> = session.map_or_else(|| Arc::new(Nobody) as _, |session| session as _);
    let (ticket, era) = (gateway.tickets.next(), Era::Legacy);
    let call = Call { ticket, caller, request, era, params: Some(params), timeout, task_role };
    gateway.servers.forward(&ended.server, call);
}

/// The caller of requests whose host is away.
#[derive(Debug)]
struct Nobody;

impl Caller for Nobody {
    fn answered(&self, _: Ticket, _: Answer) {}

    fn progressed(&self, _: Ticket, _: Bytes, _: Span) {}
}

/// Counts an answer among those that hosts have yet to read, or replaces it if there is no room.
fn kept(answer: Answer, sender: &Session) -> Answer {
    let Answer::Response { message, head, era } = answer else { return answer };
    let Some(message) = sender.outbox().hold(message) else {
        let message = respond::error(b"0", &Refusal::TooMuchUnread).into_bytes();
        let head = Head::read(&message).expect("an error of ours");
        return Answer::Response { message, head, era };
    };
    Answer::Response { message, head, era }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}
