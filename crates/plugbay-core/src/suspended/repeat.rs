//! A multi-round trip: what a modern server's result asks for becomes requests to a legacy host, and the host's
//! answers become the next request to the server.

use std::{fmt::Write as _, time::Duration};

use bytes::Bytes;
use serde_json::Value;

use super::NextRequest;
use crate::{
    capabilities::{self, ClientCapabilities},
    era::InputRequired,
    exchange::{Ticket, Tickets},
    task::TaskRole,
    wire::{Draft, Frame, Head, Hole, Kind, Members, Span, string_value, write},
};

/// The most rounds of a call: a server that still asks after them will not be satisfied.
pub(super) const MAX_ROUNDS: u32 = 16;
/// The most requests to the host in one round, and in all rounds of a call.
pub(super) const MAX_REQUESTS: usize = 64;
pub(super) const MAX_REQUESTS_OF_CALL: usize = 256;
/// The most bytes of requests to the host in one round.
pub(super) const MAX_REQUEST_BYTES: usize = 1024 * 1024;
/// The pauses before calling a server again that asks for nothing else: each is longer than the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The request of a legacy host, kept so that it can be sent to a modern server again.
#[derive(Debug)]
pub struct RepeatedCall {
    request: Draft,
    params: Span,
    pub(super) timeout: Option<Duration>,
    /// The role of the host's own request in tasks.
    pub(super) task_role: TaskRole,
    pub(super) rounds: u32,
    /// How many requests were sent to the host in all rounds.
    asked: usize,
    /// The server's own `requestState`, to be sent back untouched.
    state: Option<Bytes>,
    /// How many answers of the host are missing.
    open: usize,
    /// Raw results by key.
    answers: Vec<(String, Bytes)>,
}

/// One request to a legacy host.
#[derive(Debug)]
pub struct HostRequest {
    /// The server's name for it.
    pub key: String,
    /// The request id that the host sees.
    pub id: Ticket,
    pub message: Frame,
}

impl RepeatedCall {
    pub fn new(request: Draft, params: Span, timeout: Option<Duration>, task_role: TaskRole) -> Self {
        Self {
            request,
            params,
            timeout,
            task_role,
            rounds: 0,
            asked: 0,
            state: None,
            open: 0,
            answers: Vec::new(),
        }
    }

    pub(super) fn answers(&self) -> &[(String, Bytes)] {
        &self.answers
    }

    /// Reads what the server wants to know. `known`: keys whose answers it has been sent already.
    pub(super) fn begin_round(
        &mut self,
        message: &Bytes,
        required: &InputRequired,
        capabilities: ClientCapabilities,
        known: impl Fn(&str) -> bool,
        tickets: &Tickets,
    ) -> Result<Vec<HostRequest>, String> {
        let entries = required.requests.iter().flat_map(|requests| Members::of(message, requests));
        let entries = entries.filter(|member| !member.as_ref().is_ok_and(|member| known(&member.key)));
        let (mut requests, mut bytes) = (Vec::new(), 0);
        for member in entries {
            let member = member.map_err(|fault| fault.to_string())?;
            if string_value(&message[member.key_span.clone()]).is_none() {
                return Err("it asks by a key that is no text".to_owned());
            }
            bytes += member.key.len() + member.value.len();
            self.check_room(requests.len(), bytes)?;
            let id = tickets.next();
            let message = host_request(message, &member.value, id, capabilities)?;
            requests.push(HostRequest { key: member.key.into_owned(), id, message });
        }
        self.rounds += 1;
        self.asked += requests.len();
        self.state = required.state.clone().map(|span| message.slice(span));
        self.open = requests.len();
        self.answers = Vec::new();
        Ok(requests)
    }

    /// Checks that one more request can be sent to the host, after `in_round` others of the same round; with
    /// it they have `bytes` bytes.
    fn check_room(&self, in_round: usize, bytes: usize) -> Result<(), String> {
        if in_round >= MAX_REQUESTS {
            return Err(format!("it asks for more than {MAX_REQUESTS} answers at once"));
        }
        if self.asked + in_round >= MAX_REQUESTS_OF_CALL {
            return Err(format!("it asks for more than {MAX_REQUESTS_OF_CALL} answers in one call"));
        }
        if bytes > MAX_REQUEST_BYTES {
            return Err(format!("its requests are longer than {MAX_REQUEST_BYTES} bytes"));
        }
        Ok(())
    }

    /// One of the host's answers. `true`: it was the last.
    pub(super) fn answered(&mut self, key: String, result: Bytes) -> bool {
        self.answers.push((key, result));
        self.open = self.open.saturating_sub(1);
        self.open == 0
    }

    /// How long to wait before the server is called again without answers.
    pub(super) fn pause(&self) -> Duration {
        (FIRST_PAUSE * 2u32.saturating_pow(self.rounds - 1)).min(LONGEST_PAUSE)
    }

    /// The request with the answers and the state that the server wants in it.
    pub(super) fn request(&self, task_role: TaskRole) -> NextRequest {
        let mut members = String::new();
        if !self.answers.is_empty() {
            members = format!(r#""inputResponses":{},"#, by_key(&self.answers));
        }
        if let Some(state) = &self.state {
            let _ = write!(members, r#""requestState":{},"#, String::from_utf8_lossy(state));
        }
        // After the brace comes at least the name of what is called, so the last comma is right.
        let at = self.params.start + 1;
        let request = self.request.clone().with(at..at, Hole::Text(Bytes::from(members)));
        NextRequest { request, params: self.params.clone(), task_role, timeout: self.timeout }
    }
}

/// Answers by their keys, as a raw JSON object.
pub(super) fn by_key(answers: &[(String, Bytes)]) -> String {
    let entries = answers
        .iter()
        .map(|(key, answer)| format!("{}:{}", Value::from(key.as_str()), String::from_utf8_lossy(answer)));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}

/// One entry of `inputRequests` as a request to the host: the server's bytes in an envelope of ours.
fn host_request(
    message: &Bytes,
    entry: &Span,
    id: Ticket,
    capabilities: ClientCapabilities,
) -> Result<Frame, String> {
    let no_request = || "what it asks is no request".to_owned();
    let request = write::with_id(id.0, &message[entry.clone()]).ok_or_else(no_request)?;
    // The entry must not hide an envelope of its own.
    let head = Head::read(&request).map_err(|malformed| malformed.fault.to_string())?;
    let Kind::Request { method, .. } = &head.kind else { return Err(no_request()) };
    let method = &request[method.clone()];
    if !capabilities::is_common(method) {
        return Err(format!("{:?} is no request to a host", String::from_utf8_lossy(method)));
    }
    if let Some(lacking) = capabilities.lacks(&request, method, head.payload.as_ref()) {
        return Err(format!("this host has not declared the capability {lacking:?}"));
    }
    Ok(match head.payload.filter(|params| lacks_elicitation_id(&request, params)) {
        Some(params) => {
            let (at, member) = (params.start + 1, format!(r#""elicitationId":"{}","#, id.0));
            Frame::edited(&request, &[(at..at, member.as_bytes())])
        }
        None => Frame::from(request),
    })
}

/// Whether this is URL-mode elicitation without an id: the legacy protocol has one, the modern one has none.
fn lacks_elicitation_id(request: &[u8], params: &Span) -> bool {
    let mode = Members::find(request, params, "mode");
    let by_url = mode.is_some_and(|mode| string_value(&request[mode]).as_deref() == Some("url"));
    by_url && Members::find(request, params, "elicitationId").is_none()
}
