//! A host's connection to a running gateway, over pipes or HTTP. Messages are sent exactly as written, and
//! answers are awaited with a time limit.

mod sse;

use std::io::Write as _;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;
use crate::answer::envelope;
use crate::http::client::{Connection, Endpoint};
use crate::lines::Lines;

/// The reply to a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reply {
    Result(Value),
    Error(Value),
    /// Nothing came within the time limit.
    Missing,
    /// The gateway has closed the connection.
    Closed,
}

impl Reply {
    /// Whether it is a result that is not a tool's error.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self, Self::Result(result) if result["isError"] != true)
    }

    /// Whether it is any answer at all.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Self::Result(_) | Self::Error(_))
    }

    pub(crate) fn good(self) -> Outcome<Value> {
        match self {
            Self::Result(result) if result["isError"] != true => Ok(result),
            Self::Result(other) | Self::Error(other) => Err(shortened(&other).into()),
            Self::Missing => Err("no answer".into()),
            Self::Closed => Err("it ended the connection".into()),
        }
    }
}

/// A message and its time of arrival.
pub(crate) struct Received {
    pub(crate) message: Vec<u8>,
    pub(crate) at: Instant,
}

impl Received {
    fn now(message: &[u8]) -> Self {
        let at = Instant::now();
        Self { message: message.to_vec(), at }
    }
}

pub(crate) struct Link {
    way: Way,
    messages: Receiver<Received>,
    next_id: u64,
}

enum Way {
    Pipes(Option<ChildStdin>),
    Http(Http),
}

struct Http {
    endpoint: Endpoint,
    /// Whether all answers come on one event stream instead of each with its request.
    streamed: bool,
    session: Option<String>,
    idle: Arc<Mutex<Vec<Connection>>>,
    received: Sender<Received>,
}

impl Link {
    pub(crate) fn pipes(stdin: ChildStdin, stdout: ChildStdout) -> Self {
        let (received, messages) = mpsc::channel();
        thread::spawn(move || {
            let mut lines = Lines::new(stdout);
            while let Ok(Some(line)) = lines.next() {
                if received.send(Received::now(line)).is_err() {
                    break;
                }
            }
        });
        Self { way: Way::Pipes(Some(stdin)), messages, next_id: 1 }
    }

    pub(crate) fn http(endpoint: Endpoint, streamed: bool) -> Self {
        let (received, messages) = mpsc::channel();
        let idle = Arc::default();
        let http = Http { endpoint, streamed, session: None, idle, received };
        Self { way: Way::Http(http), messages, next_id: 1 }
    }

    /// Sends a message unchanged. Over HTTP the answer arrives like any other message.
    pub(crate) fn send(&mut self, message: &str) -> Outcome<()> {
        match &mut self.way {
            Way::Pipes(stdin) => {
                let stdin = stdin.as_mut().ok_or("already closed")?;
                stdin.write_all(message.as_bytes())?;
                Ok(stdin.write_all(b"\n")?)
            }
            Way::Http(http) => {
                http.post(message.to_owned());
                Ok(())
            }
        }
    }

    /// The next message that is not the gateway's own request or notification.
    pub(crate) fn receive(&mut self, until: Instant) -> Result<Received, Reply> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let received = self.messages.recv_timeout(left).map_err(|error| match error {
                RecvTimeoutError::Timeout => Reply::Missing,
                RecvTimeoutError::Disconnected => Reply::Closed,
            })?;
            // A large answer is not parsed, because that would cost the driver time.
            if !envelope(&received.message).is_ok_and(|fields| fields.contains_key("method")) {
                return Ok(received);
            }
            if let Ok(request) = serde_json::from_slice(&received.message) {
                self.answer(&request);
            }
        }
    }

    /// Sends a request and returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Outcome<u64> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())?;
        Ok(id)
    }

    /// Waits for the answer to a request; answers to others are dropped.
    pub(crate) fn answer_to(&mut self, id: u64, limit: Duration) -> Reply {
        let until = Instant::now() + limit;
        loop {
            let received = match self.receive(until) {
                Ok(received) => received,
                Err(reply) => return reply,
            };
            let Ok(mut message) = serde_json::from_slice::<Value>(&received.message) else { continue };
            if message["id"] != id {
                continue;
            }
            return match message["result"].take() {
                Value::Null => Reply::Error(message["error"].take()),
                result => Reply::Result(result),
            };
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value, limit: Duration) -> Reply {
        self.ask(method, params).map_or(Reply::Closed, |id| self.answer_to(id, limit))
    }

    /// Opens the session and returns the gateway's answer.
    pub(crate) fn initialize(&mut self, limit: Duration) -> Outcome<Value> {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "plugbay-bench", "version": env!("CARGO_PKG_VERSION") },
        });
        let answer = match &mut self.way {
            Way::Http(http) if !http.streamed => http.open(&params, limit)?,
            Way::Http(http) => {
                http.open_stream(limit)?;
                self.request("initialize", &params, limit).good()?
            }
            Way::Pipes(_) => self.request("initialize", &params, limit).good()?,
        };
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(answer)
    }

    /// The definitions on all pages of the list.
    pub(crate) fn tools(&mut self, limit: Duration) -> Outcome<Vec<Value>> {
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let mut page = self.request("tools/list", &params, limit).good()?;
            let Value::Array(more) = page["tools"].take() else { return Err("a list without tools".into()) };
            tools.extend(more);
            match page["nextCursor"].take() {
                Value::String(cursor) => params = json!({ "cursor": cursor }),
                _ => return Ok(tools),
            }
        }
    }

    /// Ends stdin, like a host that closes.
    pub(crate) fn close(&mut self) {
        if let Way::Pipes(stdin) = &mut self.way {
            *stdin = None;
        }
    }

    fn answer(&mut self, request: &Value) {
        let id = &request["id"];
        if id.is_null() {
            return;
        }
        let answer = match request["method"].as_str() {
            Some("ping") => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
            Some("roots/list") => json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": [] } }),
            _ => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "not here" } }),
        };
        let _ = self.send(&answer.to_string());
    }
}

impl Http {
    /// Retries until something listens.
    fn open(&mut self, params: &Value, limit: Duration) -> Outcome<Value> {
        let until = Instant::now() + limit;
        loop {
            let opened = Connection::open(&self.endpoint, None)
                .and_then(|connection| connection.initialize(params, until));
            match opened {
                Ok((answer, session)) => {
                    self.session = session;
                    return Ok(answer);
                }
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// The same for an event stream.
    fn open_stream(&mut self, limit: Duration) -> Outcome<()> {
        let until = Instant::now() + limit;
        loop {
            match sse::open(&self.endpoint, &self.received, until) {
                Ok(path) => {
                    self.endpoint.path = path;
                    return Ok(());
                }
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Posts on an idle connection or a new one, in a separate thread.
    fn post(&self, message: String) {
        let idle = Arc::clone(&self.idle);
        let (endpoint, session, received) =
            (self.endpoint.clone(), self.session.clone(), self.received.clone());
        let streamed = self.streamed;
        let pop =
            move |idle: &Mutex<Vec<Connection>>| idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        thread::spawn(move || {
            let connection = pop(&idle).map_or_else(|| Connection::open(&endpoint, session.as_deref()), Ok);
            let Ok(mut connection) = connection else { return };
            let answer = connection.send(&message).and_then(|()| connection.receive_any().map(Received::now));
            if let Ok(answer) = answer {
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
                if !answer.message.is_empty() && !streamed {
                    let _ = received.send(answer);
                }
            }
        });
    }
}

pub(crate) fn shortened(value: &Value) -> String {
    value.to_string().chars().take(300).collect()
}
