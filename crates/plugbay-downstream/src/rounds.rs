//! A legacy host that called a modern server: what the server's result asks for becomes requests to the
//! host, and their answers become the next call.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    capabilities::{self, ClientCapabilities},
    era::{Era, InputRequired},
    exchange::{Call, Ticket},
    task::TaskRole,
    wire::{Draft, Frame, Head, Hole, Kind, Members, Span, string_value},
};
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    parked::PATIENCE,
    respond::Refusal,
    server_requests::{Asked, Asker},
    session::{HostCall, Recourse, Session},
    tasks::Role,
};

/// A server that still asks after so many rounds will not be satisfied.
const ROUNDS: u32 = 16;
/// A server that asks nothing but to be called again is given a moment, longer each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The next request of a call that goes on.
pub(crate) struct Next {
    pub(crate) request: Draft,
    pub(crate) params: Span,
    pub(crate) task_role: TaskRole,
    pub(crate) timeout: Option<Duration>,
}

/// What is needed to send a call again.
#[derive(Debug)]
pub(crate) struct Again {
    request: Draft,
    params: Span,
    pub(crate) timeout: Option<Duration>,
    rounds: u32,
    /// The server's own, to be handed back untouched.
    state: Option<Bytes>,
    open: usize,
    /// Raw results by key.
    answers: Vec<(String, Bytes)>,
}

impl Again {
    pub(crate) fn new(request: Draft, params: Span, timeout: Option<Duration>) -> Self {
        Self { request, params, timeout, rounds: 0, state: None, open: 0, answers: Vec::new() }
    }

    /// The request with everything that the server wants in it.
    fn filled(&self) -> Draft {
        let mut members = String::new();
        if !self.answers.is_empty() {
            members = format!(r#""inputResponses":{},"#, raw_answers(&self.answers));
        }
        if let Some(state) = &self.state {
            let _ = write!(members, r#""requestState":{},"#, String::from_utf8_lossy(state));
        }
        // Behind the brace there is at least the name of what is called.
        let at = self.params.start + 1;
        self.request.clone().with(at..at, Hole::Text(Bytes::from(members)))
    }
}

impl Session {
    /// Asks the host everything at once.
    pub(crate) fn start_round(self: &Arc<Self>, ticket: Ticket, message: &Bytes, required: &InputRequired) {
        if let Err(refusal) = self.try_round(ticket, message, required) {
            self.fail(ticket, &refusal);
        }
    }

    fn try_round(
        self: &Arc<Self>,
        ticket: Ticket,
        message: &Bytes,
        required: &InputRequired,
    ) -> Result<(), Refusal> {
        let mut state = self.lock();
        let client_capabilities = state.client_capabilities;
        let Some(call) = state.calls.get_mut(&ticket) else { return Ok(()) };
        let Recourse::Again(again) = &mut call.recourse else {
            return Err(Refusal::Unaskable("this request cannot be repeated with an answer".to_owned()));
        };
        if again.rounds >= ROUNDS {
            return Err(Refusal::Unaskable(format!("it has asked {ROUNDS} times already")));
        }
        let told = |key: &str| matches!(&call.role, Role::Driven(driven) if driven.has_told(key));
        let entries = required.requests.iter().flat_map(|requests| Members::of(message, requests));
        let entries = entries.filter(|member| !member.as_ref().is_ok_and(|member| told(&member.key)));
        let entries = entries.map(|member| {
            let member = member.map_err(|fault| Refusal::Unaskable(fault.to_string()))?;
            let number = self.gateway().tickets.next();
            Ok((
                member.key.into_owned(),
                number,
                request(message, &member.value, number, client_capabilities)?,
            ))
        });
        let entries = entries.collect::<Result<Vec<_>, Refusal>>()?;
        again.rounds += 1;
        again.state = required.state.clone().map(|span| message.slice(span));
        again.open = entries.len();
        again.answers = Vec::new();
        let rounds = again.rounds;
        let sink = self.sink_for_questions(&call.sink);
        for (key, number, _) in &entries {
            let asker = Asker::Round { call: ticket, key: key.clone() };
            let sink = Arc::clone(&sink);
            state.server_requests.insert(*number, Asked { asker, calls: vec![ticket], sink });
        }
        drop(state);
        if entries.is_empty() {
            self.call_again_later(ticket, rounds);
        } else {
            self.give_up_later(ticket);
        }
        for (_, _, frame) in entries {
            sink.tell(frame);
        }
        Ok(())
    }

    /// One of the answers; with the last the call is sent again.
    pub(crate) fn round_answered(
        self: &Arc<Self>,
        ticket: Ticket,
        key: String,
        message: &Bytes,
        head: &Head,
    ) {
        let Some(payload) = head.payload.clone() else { return };
        if let Kind::Error { .. } = head.kind {
            // By the protocol a server is not told of it: the request is just not sent again.
            let words = Members::find(message, &payload, "message").map(|span| message.slice(span));
            let words = words.as_deref().and_then(string_value).unwrap_or_default().into_owned();
            return self.fail(ticket, &Refusal::NotTold(words));
        }
        let mut state = self.lock();
        let Some(call) = state.calls.get_mut(&ticket) else { return };
        let Recourse::Again(again) = &mut call.recourse else { return };
        again.answers.push((key, message.slice(payload)));
        again.open -= 1;
        let complete = again.open == 0;
        drop(state);
        if complete {
            self.call_again(ticket);
        }
    }

    /// No server waits meanwhile, so nobody else would ever end a call whose host does not answer. The next
    /// round has another ticket.
    fn give_up_later(self: &Arc<Self>, ticket: Ticket) {
        let session = Arc::downgrade(self);
        tokio::spawn(async move {
            sleep(PATIENCE).await;
            if let Some(session) = session.upgrade() {
                session.fail(ticket, &Refusal::Unaskable("the host did not answer in time".to_owned()));
            }
        });
    }

    fn call_again_later(self: &Arc<Self>, ticket: Ticket, rounds: u32) {
        let session = Arc::clone(self);
        let pause = (FIRST_PAUSE * 2u32.saturating_pow(rounds - 1)).min(LONGEST_PAUSE);
        tokio::spawn(async move {
            sleep(pause).await;
            session.call_again(ticket);
        });
    }

    /// With all answers, which a task that has begun gets by a request of its own.
    pub(crate) fn call_again(self: &Arc<Self>, ticket: Ticket) {
        self.go_on(ticket, |call| {
            let Recourse::Again(again) = &call.recourse else { return None };
            if let Role::Driven(driven) = &mut call.role
                && let Some(update) = driven.update(&again.answers)
            {
                return Some(update);
            }
            let (request, params, task_role) = (again.filled(), again.params.clone(), call.role.task_role());
            Some(Next { request, params, task_role, timeout: again.timeout })
        });
    }

    /// To the server this is another request, and so it has a ticket of its own.
    pub(crate) fn go_on(self: &Arc<Self>, ticket: Ticket, next: impl FnOnce(&mut HostCall) -> Option<Next>) {
        let mut state = self.lock();
        let Some(call) = state.calls.get_mut(&ticket) else { return }; // the host has taken it back
        let Some(Next { request, params, task_role, timeout }) = next(call) else { return };
        let Some(call) = state.calls.remove(&ticket) else { return };
        let (server, ticket) = (call.server.clone(), self.gateway().tickets.next());
        state.by_id.insert(call.id.clone(), ticket);
        state.calls.insert(ticket, call);
        drop(state);
        let (caller, params) = (self.clone(), Some(params));
        let call = Call { ticket, caller, request, era: Era::Legacy, params, timeout, task_role };
        self.gateway().servers.forward(&server, call);
    }
}

/// Answers by their keys, as raw JSON.
pub(crate) fn raw_answers(answers: &[(String, Bytes)]) -> String {
    let entries = answers
        .iter()
        .map(|(key, answer)| format!("{}:{}", Value::from(key.as_str()), String::from_utf8_lossy(answer)));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

/// One entry of `inputRequests` as a request to the host: the server's bytes behind an envelope of ours.
fn request(
    message: &Bytes,
    entry: &Span,
    number: Ticket,
    client_capabilities: ClientCapabilities,
) -> Result<Frame, Refusal> {
    let unaskable = |what: &str| Refusal::Unaskable(what.to_owned());
    if message[entry.start] != b'{' {
        return Err(unaskable("what it asks is no request"));
    }
    let rest = entry.start + 1..entry.end;
    let envelope = format!(r#"{{"jsonrpc":"2.0","id":{number},"#, number = number.0);
    let request = Bytes::from([envelope.as_bytes(), &message[rest]].concat());
    // It must not hide an envelope of its own.
    let head = Head::read(&request).map_err(|malformed| unaskable(&malformed.fault.to_string()))?;
    let Kind::Request { method, .. } = &head.kind else {
        return Err(unaskable("what it asks is no request"));
    };
    let method = &request[method.clone()];
    if !capabilities::is_common(method) {
        return Err(unaskable(&format!("{:?} is no request to a host", String::from_utf8_lossy(method))));
    }
    if let Some(lacking) = client_capabilities.lacks(&request, method, head.payload.as_ref()) {
        return Err(unaskable(&format!("this host has not declared the capability {lacking:?}")));
    }
    Ok(match head.payload.filter(|params| lacks_visit_id(&request, params)) {
        Some(params) => {
            let at = params.start + 1;
            let member = format!(r#""elicitationId":"{number}","#, number = number.0);
            Frame::edited(&request, &[(at..at, member.as_bytes())])
        }
        None => Frame::from(request),
    })
}

/// A visit to a web page has an id by the legacy protocol, and none by the modern one.
fn lacks_visit_id(request: &[u8], params: &Span) -> bool {
    let mode = Members::find(request, params, "mode");
    let by_url = mode.is_some_and(|mode| string_value(&request[mode]).as_deref() == Some("url"));
    by_url && Members::find(request, params, "elicitationId").is_none()
}
