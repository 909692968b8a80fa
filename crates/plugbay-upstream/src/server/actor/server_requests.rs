//! What a server asks of hosts: who is asked, and how the answer finds its way back.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
};

use bytes::Bytes;
use plugbay_core::{
    era::Era,
    exchange::{Caller, Reply, ServerRequest, ServerRequestError, Ticket},
    task,
    wire::{Draft, Head, Hole, Kind, Members, Span, string_value},
};
use rustc_hash::FxHashMap;

use super::{Actor, BACKLOG_LIMIT, Opened, Phase, Waiting, opening};

/// So many server requests of one server may be open.
const OPEN_LIMIT: usize = 256;
/// So many visits to a web page are remembered, so that their end can be told to the right host.
const VISITS_LIMIT: usize = 64;

/// The server requests that a server waits for, and what became of some earlier ones.
#[derive(Default)]
pub(super) struct ServerRequests {
    open: FxHashMap<Ticket, Open>,
    /// Raw `elicitationId`s that a host was asked to see to, oldest first.
    visits: VecDeque<(Bytes, Weak<dyn Caller>)>,
}

struct Open {
    /// As the server wrote it.
    id: Bytes,
    /// Kept whole: it may have to be asked by another call. All that it names wait for the answer too.
    server_request: ServerRequest,
    by: Way,
}

/// Who is asked, and by which call.
pub(super) type Way = (Arc<dyn Caller>, Option<Ticket>);

impl ServerRequests {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn take_where(&mut self, gone: impl Fn(&Open) -> bool) -> Vec<(Ticket, Open)> {
        self.open.extract_if(|_, open| gone(open)).collect()
    }
}

impl Open {
    fn withdrawn(&self, number: Ticket, notification: Draft) {
        let (caller, call) = &self.by;
        caller.withdrawn(*call, number, notification);
    }
}

impl Actor {
    /// `during`: the call on whose own stream the server request came.
    pub(super) fn asked(&mut self, message: Bytes, head: Head, during: Option<Ticket>) {
        let Kind::Request { id, method } = head.kind.clone() else { return };
        // A modern server asks by its results, and by nothing else.
        if &message[method.clone()] == b"ping" || self.opened.era == Some(Era::Modern) {
            return self.say(opening::answer(&message, &id, &method), opening::ANSWERS_LIMIT);
        }
        let id = message.slice(id);
        if let Err(why) = self.ask(id.clone(), message, head, method, during) {
            self.say(refusal(&id, why), opening::ANSWERS_LIMIT);
        }
    }

    fn ask(
        &mut self,
        id: Bytes,
        message: Bytes,
        head: Head,
        method: Span,
        during: Option<Ticket>,
    ) -> Result<(), ServerRequestError> {
        if self.server_requests.open.len() >= OPEN_LIMIT {
            return Err(ServerRequestError::TooMany);
        }
        let task = head.payload.as_ref().and_then(|params| task::related(&message, params));
        let task = task.and_then(|id| string_value(&message[id]));
        let ways = match (during, task) {
            (None, Some(id)) => vec![self.whose_task(&id).ok_or(ServerRequestError::NoHost)?],
            _ => self.whom(during)?,
        };
        let number = self.around.tickets.next();
        let calls = ways.iter().filter_map(|(_, call)| *call).collect();
        let server = self.spec.name.clone();
        self.put(id, ServerRequest { number, server, calls, message, head, method }, ways)
    }

    /// Whoever waits for this call; if it is not known for which it is, for any that is in flight, else the
    /// only host that there is. A call that has ended has nobody, and others are not asked in its place.
    fn whom(&self, during: Option<Ticket>) -> Result<Vec<Way>, ServerRequestError> {
        let ways = match during {
            Some(ticket) if !self.pending.contains(ticket) => return Err(ServerRequestError::NoHost),
            Some(ticket) => self.ways(&[ticket]),
            None => self.in_flight()?,
        };
        if ways.is_empty() {
            let only = self.around.host_registry.only().ok_or(ServerRequestError::NoHost)?;
            return Ok(vec![(only, None)]);
        }
        Ok(ways)
    }

    pub(super) fn ways(&self, calls: &[Ticket]) -> Vec<Way> {
        let way = |ticket: &Ticket| match self.pending.get(*ticket)? {
            Waiting::Host(caller) => Some((Arc::clone(caller), Some(*ticket))),
            _ => None,
        };
        calls.iter().filter_map(way).collect()
    }

    /// The calls for which a server may speak when it does not say for which, oldest first. If they are of
    /// several hosts nobody can tell, and none of them must hear what may be another's.
    pub(super) fn in_flight(&self) -> Result<Vec<Way>, ServerRequestError> {
        let mut calls: Vec<Ticket> = self.pending.tickets().collect();
        calls.sort_unstable();
        let ways = self.ways(&calls);
        let of_one_host = ways.windows(2).all(|pair| pair[0].0.is_same_host(&*pair[1].0));
        of_one_host.then_some(ways).ok_or(ServerRequestError::Ambiguous)
    }

    /// Asks by the latest call that its host can be asked by.
    fn put(
        &mut self,
        id: Bytes,
        server_request: ServerRequest,
        ways: Vec<Way>,
    ) -> Result<(), ServerRequestError> {
        let mut refused = ServerRequestError::NoHost;
        for by in ways.into_iter().rev() {
            match by.0.asked(by.1, server_request.clone()) {
                Ok(()) => {
                    self.put_by(id, server_request, by);
                    return Ok(());
                }
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    fn put_by(&mut self, id: Bytes, server_request: ServerRequest, by: Way) {
        for ticket in &server_request.calls {
            self.pending.hold(*ticket);
        }
        if let Some(visit) = visit(&server_request.message, server_request.params()) {
            self.server_requests.visits.truncate(VISITS_LIMIT - 1);
            self.server_requests.visits.push_front((visit, Arc::downgrade(&by.0)));
        }
        self.server_requests.open.insert(server_request.number, Open { id, server_request, by });
    }

    /// A host has answered, or will not do so by the call that it was asked by.
    pub(super) fn replied(&mut self, number: Ticket, reply: Reply) {
        // Otherwise the server request was withdrawn, or its server is gone.
        let Some(open) = self.server_requests.open.remove(&number) else { return };
        self.release(&open.server_request);
        let answer = match reply {
            Reply::Response { message, head } => head.readdressed(&message, &open.id, &[]).into_bytes(),
            Reply::Result(result) => response(&open.id, "result", &result),
            Reply::Refused(why) => refusal(&open.id, why),
            Reply::LeftOpen => {
                let Open { id, mut server_request, by } = open;
                server_request.calls.retain(|call| Some(*call) != by.1);
                let ways = self.ways(&server_request.calls);
                match self.put(id.clone(), server_request, ways) {
                    Ok(()) => return,
                    Err(why) => refusal(&id, why),
                }
            }
        };
        self.say(answer, BACKLOG_LIMIT);
    }

    fn release(&mut self, server_request: &ServerRequest) {
        for ticket in &server_request.calls {
            self.pending.release(*ticket, self.now);
        }
    }

    /// `notifications/cancelled` of the server.
    pub(super) fn withdraws(&mut self, message: &Bytes, params: Option<&Span>) {
        let Some(id) = params.and_then(|params| Members::find(message, params, "requestId")) else { return };
        for (number, open) in self.server_requests.take_where(|open| open.id == message[id.clone()]) {
            self.release(&open.server_request);
            let notification = Draft::new(message.clone()).with(id.clone(), Hole::Ticket);
            open.withdrawn(number, notification);
        }
    }

    /// The call has ended, or is about to be answered: what was asked for it alone is of no use any more.
    pub(super) fn end_questions_of(&mut self, ticket: Ticket) {
        self.end_questions(Some(ticket));
    }

    /// The same for calls that ended in any other way.
    pub(super) fn end_orphaned_questions(&mut self) {
        self.end_questions(None);
    }

    fn end_questions(&mut self, ended: Option<Ticket>) {
        if self.server_requests.is_empty() {
            return;
        }
        let goes_on = |call: &Ticket| Some(*call) != ended && self.pending.contains(*call);
        let orphaned = self.server_requests.take_where(|open| {
            let calls = &open.server_request.calls;
            !calls.is_empty() && !calls.iter().any(goes_on)
        });
        for (number, open) in orphaned {
            open.withdrawn(number, withdrawal("the call has ended"));
            self.say(refusal(&open.id, ServerRequestError::CallEnded), opening::ANSWERS_LIMIT);
        }
    }

    /// The server is gone, and with it whoever wanted to know.
    pub(super) fn forget_questions(&mut self) {
        for (number, open) in self.server_requests.open.drain() {
            open.withdrawn(number, withdrawal("the server has gone"));
        }
    }

    /// `notifications/elicitation/complete` goes to the host that was asked, and to no other.
    pub(super) fn visit_ended(&mut self, message: Bytes, params: Option<&Span>) {
        let Some(visit) = visit(&message, params) else { return };
        let Some(place) = self.server_requests.visits.iter().position(|(known, _)| *known == visit) else {
            return;
        };
        let host = self.server_requests.visits.remove(place).and_then(|(_, host)| host.upgrade());
        if let Some(host) = host {
            host.completed(message);
        }
    }

    pub(super) fn roots_changed(&mut self, notification: Bytes) {
        if self.opened.claimed.roots {
            self.say(notification, opening::ANSWERS_LIMIT);
        }
    }

    /// Hosts can do more than this server was told. It can be told only by opening it anew, which must
    /// not disturb a call.
    pub(super) fn open_anew_when_idle(&mut self) {
        let told_less = |task: &Self| {
            let Opened { era, claimed, claimed_extensions, .. } = &task.opened;
            *era == Some(Era::Legacy) && !task.around.host_registry.is_told(*claimed, claimed_extensions)
        };
        if matches!(self.phase, Phase::Up(_)) && !self.busy() && told_less(self) {
            self.life.stopped();
            self.forget_questions();
            self.end_link();
            self.life.wanted(self.now);
            self.start();
        }
    }

    pub(super) fn say(&mut self, message: Bytes, limit: usize) {
        if let Phase::Up(link) = &mut self.phase
            && link.untaken() < limit
        {
            link.send(message);
        }
    }
}

fn visit(message: &Bytes, params: Option<&Span>) -> Option<Bytes> {
    Members::find(message, params?, "elicitationId").map(|id| message.slice(id))
}

fn refusal(id: &[u8], why: ServerRequestError) -> Bytes {
    let error = serde_json::json!({ "code": why.code(), "message": why.to_string() });
    response(id, "error", error.to_string().as_bytes())
}

fn response(id: &[u8], key: &str, body: &[u8]) -> Bytes {
    [br#"{"jsonrpc":"2.0","id":"#, id, b",\"", key.as_bytes(), b"\":", body, b"}"].concat().into()
}

/// What a host is told of a server request that needs no answer any more.
fn withdrawal(reason: &str) -> Draft {
    let before = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#;
    let message = format!(r#"{before},"reason":"{reason}"}}}}"#);
    Draft::new(Bytes::from(message)).with(before.len()..before.len(), Hole::Ticket)
}
