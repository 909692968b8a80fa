//! Calls of modern hosts that wait for their host to come back: a legacy server has asked something in
//! the middle of its work, and the host answers by sending its request again.
//!
//! The server's part of the call never ends meanwhile, so nothing is done twice.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::{
    capabilities::{self, ClientCapabilities},
    exchange::{Answer, Reply, ServerRequest, ServerRequestError, Servers, Ticket},
    name::ServerName,
    wire::{Head, Members, Span},
};
use rustc_hash::FxHashMap;
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    message::Request,
    respond::{self, Refusal},
    seal::{Owner, Seal, Subject},
    session::{HostCall, Session},
};

/// How long a host may take to ask its user.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);
/// What a server asks within this time goes to the host at once.
const GATHERING: Duration = Duration::from_millis(10);
/// So many calls may wait for their hosts.
const LIMIT: usize = 1024;

/// Shared by all sessions: over HTTP a host comes back in another one.
#[derive(Debug)]
pub struct Parking {
    // A std mutex: held for look-ups, never across an await, and never while a session's is taken.
    parked: Mutex<FxHashMap<Ticket, Parked>>,
    /// `None`: without random numbers nothing can be sealed, and so nobody can be asked.
    pub(crate) seal: Option<Seal>,
}

#[derive(Debug)]
struct Parked {
    server: ServerName,
    client_capabilities: ClientCapabilities,
    owner: Owner,
    subject: Subject,
    server_requests: BTreeMap<Ticket, ServerRequest>,
    /// Where a request of the host waits for this call; nowhere while the host is away.
    session: Option<Weak<Session>>,
    /// What the server answered while the host was away.
    answer: Option<Answer>,
    /// Counts comings and goings, so that a timer knows whether it is still meant.
    turn: u64,
}

impl Default for Parking {
    fn default() -> Self {
        Self { parked: Mutex::default(), seal: Seal::new() }
    }
}

/// What must be known of a modern host's call in case that its server asks back.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) client_capabilities: ClientCapabilities,
    pub(crate) subject: Subject,
}

impl Terms {
    fn allow(&self, server_request: &ServerRequest) -> Result<(), ServerRequestError> {
        allow(self.client_capabilities, server_request)
    }
}

fn allow(
    client_capabilities: ClientCapabilities,
    server_request: &ServerRequest,
) -> Result<(), ServerRequestError> {
    if !capabilities::is_common(server_request.method()) {
        return Err(ServerRequestError::Unknown);
    }
    match client_capabilities.lacks(&server_request.message, server_request.method(), server_request.params())
    {
        Some(lacking) => Err(ServerRequestError::Undeclared(lacking)),
        None => Ok(()),
    }
}

impl Parking {
    // --- what servers do

    /// A server asks during a call that waits in `session`. Soon its request will be answered by that
    /// server request.
    pub(crate) fn asked_in(
        &self,
        session: &Arc<Session>,
        ticket: Ticket,
        terms: Terms,
        server_request: ServerRequest,
    ) -> Result<(), ServerRequestError> {
        terms.allow(&server_request)?;
        if self.seal.is_none() {
            return Err(ServerRequestError::NoHost);
        }
        let mut parked = self.lock();
        if parked.len() >= LIMIT && !parked.contains_key(&ticket) {
            return Err(ServerRequestError::TooMany);
        }
        let entry = parked.entry(ticket).or_insert_with(|| Parked {
            server: server_request.server.clone(),
            client_capabilities: terms.client_capabilities,
            owner: session.owner(),
            subject: terms.subject,
            server_requests: BTreeMap::new(),
            session: Some(Arc::downgrade(session)),
            answer: None,
            turn: 0,
        });
        let first = entry.server_requests.is_empty();
        entry.server_requests.insert(server_request.number, server_request);
        drop(parked);
        if first {
            gather(session, ticket);
        }
        Ok(())
    }

    /// The same for a call that waits in no session, or in another than the server knows.
    pub(crate) fn asked_elsewhere(
        &self,
        ticket: Ticket,
        server_request: ServerRequest,
    ) -> Result<(), ServerRequestError> {
        let mut parked = self.lock();
        let entry = parked.get_mut(&ticket).ok_or(ServerRequestError::CallEnded)?;
        if let Some(session) = &entry.session {
            let session = session.upgrade().ok_or(ServerRequestError::HostGone)?;
            drop(parked);
            return session.asked_here(Some(ticket), server_request);
        }
        allow(entry.client_capabilities, &server_request)?;
        entry.server_requests.insert(server_request.number, server_request); // for when the host is back
        Ok(())
    }

    pub(crate) fn withdrawn(&self, ticket: Ticket, server_request: Ticket) {
        if let Some(entry) = self.lock().get_mut(&ticket) {
            entry.server_requests.remove(&server_request);
        }
    }

    /// The answer is kept until the host is back, if there is room for it among all that waits for hosts;
    /// `asked_by` is the session that sent the call.
    pub(crate) fn answered(&self, ticket: Ticket, answer: Answer, asked_by: &Session) {
        let mut parked = self.lock();
        let Some(entry) = parked.get_mut(&ticket) else { return };
        let Some(session) = &entry.session else {
            entry.server_requests.retain(|_, server_request| server_request.outlives(ticket)); // and is being seen to
            entry.answer = Some(held(answer, asked_by));
            return;
        };
        let session = session.upgrade();
        drop(parked);
        self.forget(ticket, &*asked_by.gateway().servers);
        if let Some(session) = session {
            session.answered_here(ticket, answer);
        }
    }

    /// The session in which the call waits now.
    pub(crate) fn session_of(&self, ticket: Ticket) -> Option<Arc<Session>> {
        self.lock().get(&ticket)?.session.as_ref()?.upgrade()
    }

    /// The call has ended, or was taken back. What may be about another is asked by that.
    pub(crate) fn forget(&self, ticket: Ticket, servers: &dyn Servers) {
        let gone = self.lock().remove(&ticket);
        let Some(Parked { server, server_requests, .. }) = gone else { return };
        for (number, _) in
            server_requests.into_iter().filter(|(_, server_request)| server_request.outlives(ticket))
        {
            servers.reply(&server, number, Reply::LeftOpen);
        }
    }

    // --- what hosts do

    /// A host is back with its request, and goes on waiting for the call that `state` names.
    pub(crate) fn resume(
        &self,
        session: &Arc<Session>,
        back: &Back<'_>,
        waiting: HostCall,
    ) -> Result<(), Refusal> {
        let ticket = self.recognise(session, back)?;
        let answers = back.answers()?;
        let mut parked = self.lock();
        let entry = parked.get_mut(&ticket).ok_or_else(ended)?;
        if entry.session.is_some() {
            let what = "the call of this \"requestState\" is being waited for already";
            return Err(Refusal::InvalidParams(what.to_owned()));
        }
        entry.session = Some(Arc::downgrade(session));
        entry.turn += 1;
        drop(parked);
        if !session.take_over(ticket, waiting) {
            if let Some(entry) = self.lock().get_mut(&ticket) {
                entry.session = None;
            }
            self.expire_later(session, ticket);
            return Err(Refusal::IdInUse);
        }
        self.go_on(session, ticket, answers);
        Ok(())
    }

    /// The ticket that a host comes back with.
    pub(crate) fn recognise(&self, session: &Session, back: &Back<'_>) -> Result<Ticket, Refusal> {
        let seal = self.seal.as_ref().ok_or_else(ended)?;
        let opened = seal.open(back.state, &session.owner(), &back.subject, Instant::now());
        opened.map_err(|why| Refusal::InvalidParams(why.to_string()))
    }

    /// Gives the server its answers. What is still open is asked again.
    fn go_on(&self, session: &Arc<Session>, ticket: Ticket, answers: Vec<(Ticket, Bytes)>) {
        let mut parked = self.lock();
        let Some(entry) = parked.get_mut(&ticket) else { return };
        let server = entry.server.clone();
        let answers: Vec<_> = answers
            .into_iter()
            .filter(|(server_request, _)| entry.server_requests.remove(server_request).is_some())
            .collect();
        let (more, ended) = (!entry.server_requests.is_empty(), entry.answer.take());
        drop(parked);
        let servers = &*session.gateway().servers;
        for (server_request, answer) in answers {
            servers.reply(&server, server_request, Reply::Result(answer));
        }
        if let Some(answer) = ended {
            self.forget(ticket, servers);
            session.answered_here(ticket, answer);
        } else if more {
            gather(session, ticket);
        }
    }

    // --- what time does

    /// Answers the host's request with everything that its server wants to know.
    fn present(&self, session: &Arc<Session>, ticket: Ticket) {
        let Some(seal) = &self.seal else { return };
        let mut parked = self.lock();
        let Some(entry) = parked.get_mut(&ticket) else { return };
        let here = entry.session.as_ref().is_some_and(|waits| waits.ptr_eq(&Arc::downgrade(session)));
        if !here || entry.server_requests.is_empty() {
            return; // it was answered, or withdrawn
        }
        entry.session = None;
        let state = seal.close(ticket, &entry.owner, &entry.subject, Instant::now() + PATIENCE);
        let server_requests = respond::input_requests(entry.server_requests.values());
        drop(parked);
        match session.hand_over(ticket) {
            Some(call) => call.sink.answer(respond::input_required(&call.id, &server_requests, &state)),
            // Taken back in this very moment.
            None => return self.forget(ticket, &*session.gateway().servers),
        }
        self.expire_later(session, ticket);
    }

    /// A host that does not come back is not waited for: its call is taken back.
    fn expire_later(&self, session: &Arc<Session>, ticket: Ticket) {
        let turn = {
            let mut parked = self.lock();
            let Some(entry) = parked.get_mut(&ticket) else { return };
            entry.turn += 1;
            entry.turn
        };
        let gateway = session.gateway().clone();
        let deadline = Instant::now() + PATIENCE;
        tokio::spawn(async move {
            sleep_until(deadline).await;
            let parked = gateway.parking.lock();
            let Some(entry) = parked.get(&ticket).filter(|entry| entry.turn == turn) else { return };
            let (server, answered) = (entry.server.clone(), entry.answer.is_some());
            drop(parked);
            gateway.parking.forget(ticket, &*gateway.servers);
            if !answered {
                gateway.servers.cancel(&server, ticket, respond::host_has_gone());
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<Ticket, Parked>> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a host hears that comes back too late.
pub(crate) fn ended() -> Refusal {
    Refusal::InvalidParams("the call of this \"requestState\" has ended".to_owned())
}

fn held(answer: Answer, session: &Session) -> Answer {
    let Answer::Response { message, head, era } = answer else { return answer };
    let Some(message) = session.outbox().hold(message) else {
        let message = respond::error(b"0", &Refusal::TooMuchUnread).into_bytes();
        let head = Head::read(&message).expect("an error of ours");
        return Answer::Response { message, head, era };
    };
    Answer::Response { message, head, era }
}

/// Lets a server finish what it has to ask before its host is bothered.
fn gather(session: &Arc<Session>, ticket: Ticket) {
    let session = Arc::clone(session);
    tokio::spawn(async move {
        sleep(GATHERING).await;
        session.gateway().parking.present(&session, ticket);
    });
}

/// A request by which a host comes back.
pub(crate) struct Back<'a> {
    state: &'a str,
    subject: Subject,
    message: &'a Bytes,
    /// Its `inputResponses`.
    responses: Option<&'a Span>,
}

impl<'a> Back<'a> {
    pub(crate) fn of(request: &'a Request, state: &'a str) -> Self {
        let (message, responses) = (&request.message, request.responses.as_ref());
        Self { state, subject: Subject::of(request), message, responses }
    }

    /// The answers by server request. What we do not know is not looked at, as the protocol says.
    pub(crate) fn answers(&self) -> Result<Vec<(Ticket, Bytes)>, Refusal> {
        let Some(responses) = self.responses else { return Ok(Vec::new()) };
        let mut answers = Vec::new();
        for member in Members::of(self.message, responses).flatten() {
            let Ok(number) = member.key.parse() else { continue };
            if self.message[member.value.start] != b'{' {
                let what = format!("\"inputResponses\" must hold an object at {:?}", member.key);
                return Err(Refusal::InvalidParams(what));
            }
            answers.push((Ticket(number), self.message.slice(member.value)));
        }
        Ok(answers)
    }
}
