//! The memory of a bridge, by which its host keeps its session when a daemon ends or hands over.
//!
//! A bridge moves bytes between one host and a daemon. The table here knows which requests wait for their answers
//! and on which connection, and how the host has opened its session. It never sees a socket: messages go in, and
//! decisions come out.

mod control;
mod opening;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use rustc_hash::FxHashMap;

pub use self::control::{Control, control_method};
use self::opening::Opening;
use crate::{
    failure::CUT,
    wire::{Frame, Head, Kind, Members, Span, write},
};

/// The number of a connection to a daemon.
pub type Connection = u32;

/// The requests in flight of one host, and the opening of its session.
#[derive(Debug, Default)]
pub struct Bridge {
    opening: Opening,
    /// The host's requests that wait for their answers, by their raw ids.
    requests: FxHashMap<Bytes, Pending>,
    /// Requests to the host that it has not answered, by their raw ids.
    questions: FxHashMap<Bytes, Connection>,
    /// The ids of replayed requests, whose answers the host has already.
    replayed: FxHashMap<Bytes, Connection>,
    /// Counts the host's requests.
    count: u64,
}

/// A request of the host that waits for its answer.
#[derive(Debug)]
struct Pending {
    /// Its connection; `None` while there is none, for a request that is sent again.
    connection: Option<Connection>,
    /// Its place among all requests.
    order: u64,
    /// How many answers the host gets: two if it uses an id twice.
    answers: u32,
    kind: RequestKind,
}

#[derive(Debug)]
enum RequestKind {
    /// It may have an effect, so it is sent once.
    Call,
    /// A call of which no byte left before its connection ended. The next connection gets it.
    Unsent(Bytes),
    /// The daemon answers it without an effect, so another daemon may answer it.
    Repeatable(Bytes),
    /// An open `subscriptions/listen`.
    Listen { message: Bytes, acknowledged: bool, swallow: bool },
}

/// The receiver of a daemon's message.
#[derive(Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The host gets it.
    Host,
    /// The host has got it already, or does not wait for it.
    Nobody,
    /// It is for the bridge itself.
    Bridge(Control),
}

impl Bridge {
    /// Takes a message of the host. Returns the connection to send it on; `None`: nobody waits for it.
    pub fn from_host(&mut self, message: &Bytes, current: Connection) -> Option<Connection> {
        let head = match Head::peek(message) {
            Ok(head) => head,
            Err(malformed) => {
                // The daemon rejects it, under its id if it has one.
                if let Some(id) = malformed.id {
                    self.register(&message[id], current, RequestKind::Call);
                }
                return Some(current);
            }
        };
        match &head.kind {
            Kind::Request { id, method } => {
                let kind = request_kind(message, &message[method.clone()]);
                self.opening.requested(message, &head);
                self.register(&message[id.clone()], current, kind);
                Some(current)
            }
            Kind::Notification { method } => match &message[method.clone()] {
                b"notifications/cancelled" => Some(self.cancelled(message, &head).unwrap_or(current)),
                method => {
                    self.opening.notified(message, method);
                    Some(current)
                }
            },
            Kind::Result { id } | Kind::Error { id: Some(id) } => self.questions.remove(&message[id.clone()]),
            Kind::Error { id: None } => Some(current),
        }
    }

    /// Takes a message that came on a connection; `token` is that of the connection.
    pub fn from_daemon(&mut self, connection: Connection, token: &str, message: &Bytes) -> Delivery {
        let Ok(head) = Head::peek(message) else { return Delivery::Host };
        match &head.kind {
            Kind::Request { id, .. } => {
                self.questions.insert(Bytes::copy_from_slice(&message[id.clone()]), connection);
                Delivery::Host
            }
            Kind::Notification { method } => {
                let method = &message[method.clone()];
                match Control::read(method, token, message, head.payload.as_ref()) {
                    Some(control) => Delivery::Bridge(control),
                    None => self.notified(message, method, head.payload.as_ref()),
                }
            }
            Kind::Result { id } | Kind::Error { id: Some(id) } => {
                self.answered(connection, message, &head, id)
            }
            Kind::Error { id: None } => Delivery::Host,
        }
    }

    /// No byte of this message could be written to its connection: another daemon may get it.
    pub fn unsent(&mut self, message: &Bytes) {
        let Ok(Head { kind: Kind::Request { id, .. }, .. }) = Head::peek(message) else { return };
        if let Some(pending) = self.requests.get_mut(&message[id])
            && matches!(pending.kind, RequestKind::Call)
            // Of two requests with one id, the first may have been sent.
            && pending.answers == 1
        {
            pending.kind = RequestKind::Unsent(Bytes::copy_from_slice(message));
        }
    }

    /// A connection has ended. Returns the messages that the host gets now: an error for each call in flight, and a
    /// cancellation for each request to the host.
    pub fn ended(&mut self, connection: Connection) -> Vec<Bytes> {
        self.replayed.retain(|_, other| *other != connection);
        let mut lost: Vec<(u64, Bytes, u32)> = Vec::new();
        self.requests.retain(|id, pending| {
            if pending.connection != Some(connection) {
                return true;
            }
            if matches!(pending.kind, RequestKind::Call) {
                lost.push((pending.order, id.clone(), pending.answers));
                return false;
            }
            pending.connection = None;
            true
        });
        lost.sort_unstable();
        let errors =
            lost.into_iter().flat_map(|(_, id, answers)| (0..answers).map(move |_| ended_error(&id)));
        let mut messages: Vec<Bytes> = errors.collect();
        self.questions.retain(|id, other| {
            if *other == connection {
                messages.push(withdrawn(id));
            }
            *other != connection
        });
        messages
    }

    /// The messages that open the host's session on a new connection: the opening, then all requests that may
    /// be sent again. `token` is that of the connection: no id of the host equals it.
    pub fn replay(&mut self, connection: Connection, token: &str) -> Vec<Bytes> {
        let is_open = self.opening.is_answered();
        let mut messages = Vec::new();
        for (number, message) in self.opening.messages().into_iter().enumerate() {
            match Head::read(&message) {
                Ok(Head { kind: Kind::Request { id, .. }, .. })
                    if self.is_sent_again(&message[id.clone()]) => {}
                Ok(Head { kind: Kind::Request { id, .. }, .. }) => {
                    let own = Bytes::from(format!("\"{token}-{number}\""));
                    messages.push(Frame::edited(&message, &[(id, &own)]).into_bytes());
                    self.replayed.insert(own, connection);
                }
                _ => messages.push(message),
            }
        }
        // An open `subscriptions/listen` goes on at the new connection.
        for pending in self.requests.values_mut() {
            if matches!(pending.kind, RequestKind::Listen { .. }) {
                pending.connection = None;
            }
        }
        let again = self.send_again(connection);
        // An `initialize` without an answer comes before all else.
        if is_open {
            messages.into_iter().chain(again).collect()
        } else {
            again.into_iter().chain(messages).collect()
        }
    }

    /// The notifications that make the host list everything again: another daemon may have other lists.
    pub fn list_changes(&self) -> Vec<Bytes> {
        let mut messages = self.opening.list_changes();
        for (id, pending) in &self.requests {
            if let RequestKind::Listen { message, .. } = &pending.kind {
                messages.extend(opening::listened_changes(id, message));
            }
        }
        messages
    }

    /// Whether nothing more is expected of a connection.
    pub fn is_drained(&self, connection: Connection) -> bool {
        let waits = self.requests.values().any(|pending| pending.connection == Some(connection));
        !waits && !self.questions.values().any(|other| *other == connection)
    }

    /// Whether the host waits for no answer.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Whether another daemon could take over without a loss: no call and no request to the host is in flight.
    pub fn is_at_rest(&self) -> bool {
        let is_call = |pending: &Pending| matches!(pending.kind, RequestKind::Call | RequestKind::Unsent(_));
        self.questions.is_empty() && !self.requests.values().any(is_call)
    }

    /// Whether the host waits for an answer that only a new connection can bring.
    pub fn needs_connection(&self) -> bool {
        let waits = |pending: &Pending| {
            pending.connection.is_none() && !matches!(pending.kind, RequestKind::Listen { .. })
        };
        self.requests.values().any(waits)
    }

    fn register(&mut self, id: &[u8], connection: Connection, kind: RequestKind) {
        self.count += 1;
        if let Some(pending) = self.requests.get_mut(id) {
            pending.answers += 1;
            return;
        }
        let pending = Pending { connection: Some(connection), order: self.count, answers: 1, kind };
        // A copy: a slice would keep the whole message in memory.
        self.requests.insert(Bytes::copy_from_slice(id), pending);
    }

    /// The host cancels a request: its answer is no longer passed on. Returns the connection of the request.
    fn cancelled(&mut self, message: &[u8], head: &Head) -> Option<Connection> {
        let id = Members::find(message, head.payload.as_ref()?, "requestId")?;
        // `initialize` cannot be cancelled.
        if self.opening.is_initialize(&message[id.clone()]) && !self.opening.is_answered() {
            return None;
        }
        self.requests.remove(&message[id])?.connection
    }

    fn answered(&mut self, connection: Connection, message: &Bytes, head: &Head, id: &Span) -> Delivery {
        let id = &message[id.clone()];
        if self.replayed.get(id) == Some(&connection) {
            self.replayed.remove(id);
            return Delivery::Nobody;
        }
        let Some(pending) = self.requests.get_mut(id).filter(|one| one.connection == Some(connection)) else {
            return Delivery::Nobody;
        };
        pending.answers -= 1;
        if pending.answers == 0 {
            self.requests.remove(id);
        }
        self.opening.answered(message, head, id);
        Delivery::Host
    }

    fn notified(&mut self, message: &[u8], method: &[u8], params: Option<&Span>) -> Delivery {
        match method {
            b"notifications/cancelled" => {
                let id = params.and_then(|params| Members::find(message, params, "requestId"));
                id.map(|id| self.questions.remove(&message[id]));
            }
            b"notifications/subscriptions/acknowledged" => {
                let id = params.and_then(|params| opening::subscription(message, params));
                let pending = id.and_then(|id| self.requests.get_mut(&message[id]));
                if let Some(RequestKind::Listen { acknowledged, swallow, .. }) =
                    pending.map(|pending| &mut pending.kind)
                {
                    *acknowledged = true;
                    if std::mem::take(swallow) {
                        return Delivery::Nobody;
                    }
                }
            }
            _ => {}
        }
        Delivery::Host
    }

    /// Whether the host waits for the answer to this request, and no connection has it.
    fn is_sent_again(&self, id: &[u8]) -> bool {
        self.requests.get(id).is_some_and(|pending| pending.connection.is_none())
    }

    /// The requests that have lost their connection and may be sent on this one, in the host's order.
    pub fn send_again(&mut self, connection: Connection) -> Vec<Bytes> {
        let mut again: Vec<(u64, Bytes)> = Vec::new();
        for pending in self.requests.values_mut().filter(|pending| pending.connection.is_none()) {
            pending.connection = Some(connection);
            match &mut pending.kind {
                RequestKind::Listen { message, acknowledged, swallow } => {
                    *swallow = *acknowledged;
                    again.push((pending.order, message.clone()));
                }
                RequestKind::Repeatable(message) => {
                    again.extend((0..pending.answers).map(|_| (pending.order, message.clone())));
                }
                RequestKind::Unsent(message) => {
                    again.push((pending.order, std::mem::take(message)));
                    pending.kind = RequestKind::Call;
                }
                RequestKind::Call => {}
            }
        }
        again.sort_by_key(|(order, _)| *order);
        again.into_iter().map(|(_, message)| message).collect()
    }
}

/// Requests that plugbay answers itself and that change nothing but the session.
const REPEATABLE: [&[u8]; 11] = [
    b"initialize",
    b"ping",
    b"server/discover",
    b"tools/list",
    b"prompts/list",
    b"resources/list",
    b"resources/templates/list",
    b"logging/setLevel",
    b"resources/subscribe",
    b"resources/unsubscribe",
    b"subscriptions/listen",
];

fn request_kind(message: &Bytes, method: &[u8]) -> RequestKind {
    // A copy: the message may be a part of a larger buffer.
    let kept = || Bytes::copy_from_slice(message);
    match method {
        b"subscriptions/listen" => {
            RequestKind::Listen { message: kept(), acknowledged: false, swallow: false }
        }
        method if REPEATABLE.contains(&method) => RequestKind::Repeatable(kept()),
        _ => RequestKind::Call,
    }
}

/// The error of a call that was in flight when its daemon ended.
fn ended_error(id: &[u8]) -> Bytes {
    let error = serde_json::json!({ "code": -32000, "message": CUT });
    write::error(id, error.to_string().as_bytes())
}

/// The cancellation of a request to the host.
fn withdrawn(id: &[u8]) -> Bytes {
    let id = String::from_utf8_lossy(id);
    let params = format!(r#"{{"requestId":{id},"reason":"the plugbay daemon ended"}}"#);
    write::notification("notifications/cancelled", Some(params.as_bytes()))
}
