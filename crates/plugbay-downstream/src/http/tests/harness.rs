//! A gateway that hosts reach through memory, and hosts that write and read raw HTTP.

use std::{
    collections::HashMap,
    fmt::Write as _,
    io,
    sync::{Arc, Mutex},
};

use bytes::{Buf, BytesMut};
use plugbay_core::{era::MODERN_VERSION, host_registry::HostRegistry, scope::SessionKey, surface::Snapshot};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

use crate::{
    Gateway, SessionView, SessionViews, SuspendedCalls,
    agent::Agents,
    http::{Accept, Access, Authorizations, Limits, NamedTokens, Peer, Stream, serve},
    remembered_searches::RememberedSearches,
    scripted::{self, INITIALIZE, INITIALIZED, SECOND, Servers, snapshot, soon},
};

pub(super) const LIMITS: Limits = Limits { connections: 100, waiting: 100_000_000, sessions: 400 };

/// Buffer size that is larger than anything a test expects to be written at once.
const ROOM: usize = 1_000_000;

pub(super) struct Harness {
    pub(super) snapshots: watch::Sender<Snapshot>,
    pub(super) servers: Servers,
    pub(super) host_registry: Arc<HostRegistry>,
    pub(super) agents: Arc<Agents>,
    pub(super) searches: Arc<RememberedSearches>,
    listener: mpsc::UnboundedSender<(Stream, Peer)>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<io::Result<()>>,
}

struct Memory(mpsc::UnboundedReceiver<(Stream, Peer)>);

impl Accept for Memory {
    async fn accept(&mut self) -> io::Result<(Stream, Peer)> {
        match self.0.recv().await {
            Some(connection) => Ok(connection),
            None => std::future::pending().await, // the test is over, and not the gateway
        }
    }
}

/// The parts that each session has for itself.
type OwnParts = (Arc<HostRegistry>, Arc<SuspendedCalls>);

/// Session views with calls and hosts of their own, as in `plugbay serve --http`, and the same scripted
/// servers.
fn session_views(gateway: &Gateway) -> SessionViews {
    let (servers, snapshots) = (Arc::clone(&gateway.servers), gateway.snapshots.clone());
    let all = Arc::clone(&gateway.host_registry);
    let known: Mutex<HashMap<SessionKey, OwnParts>> = Mutex::default();
    Arc::new(move |key| {
        let mut known = known.lock().unwrap();
        let (host_registry, suspended) = known.entry(key.clone()).or_insert_with(|| {
            let host_registry = Arc::default();
            all.include(&host_registry);
            (host_registry, Arc::default())
        });
        SessionView {
            servers: Arc::clone(&servers),
            snapshots: snapshots.clone(),
            host_registry: Arc::clone(host_registry),
            suspended: Arc::clone(suspended),
        }
    })
}

impl Harness {
    /// A gateway with a server `s` that has the tool `echo`, and needs no token.
    pub(super) fn new() -> Self {
        Self::with(snapshot(&["echo"], true), &[])
    }

    pub(super) fn with(first: Snapshot, tokens: &[&str]) -> Self {
        Self::with_callers(first, tokens, None)
    }

    pub(super) fn with_callers(first: Snapshot, tokens: &[&str], named: Option<NamedTokens>) -> Self {
        Self::with_authorization(first, tokens, named, None)
    }

    pub(super) fn with_authorization(
        first: Snapshot,
        tokens: &[&str],
        named: Option<NamedTokens>,
        authorizations: Option<Authorizations>,
    ) -> Self {
        let tokens: Vec<String> = tokens.iter().map(|&token| token.to_owned()).collect();
        let address = "127.0.0.1:80".parse().unwrap();
        let origins = vec!["https://good.example".to_owned()];
        let hosts = vec!["good.example".to_owned()];
        let mut access = Access::with_callers(&address, hosts, origins, &tokens, named, false).unwrap();
        if let Some(authorizations) = authorizations {
            access = access.authorized_by(authorizations);
        }
        let (mut gateway, snapshots, servers) = scripted::gateway(first);
        gateway.session_views = Some(session_views(&gateway));
        let (host_registry, agents) = (Arc::clone(&gateway.host_registry), Arc::clone(&gateway.agents));
        let searches = Arc::clone(&gateway.ranker.searches);
        let (listener, connections) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let serving = tokio::spawn(serve(gateway, Memory(connections), access, LIMITS, None, stopped));
        Self { snapshots, servers, host_registry, agents, searches, listener, stop: Some(stop), serving }
    }

    pub(super) fn connect(&self) -> Host {
        self.connect_through(ROOM)
    }

    /// Connects with a buffer of `room` bytes for data on its way to the host.
    pub(super) fn connect_through(&self, room: usize) -> Host {
        self.connect_from(Peer::Local, room)
    }

    /// The same from another peer.
    pub(super) fn connect_from(&self, peer: Peer, room: usize) -> Host {
        let (ours, theirs) = tokio::io::duplex(room);
        let _ = self.listener.send((Box::pin(theirs), peer));
        Host { stream: ours, buffer: BytesMut::new(), chunked: false, text: String::new() }
    }

    /// Sends one request on a connection of its own.
    pub(super) async fn ask(&self, request: impl AsRef<str>) -> Reply {
        let mut host = self.connect();
        host.say(request).await;
        host.reply().await
    }

    /// Opens a session and returns its id.
    pub(super) async fn open(&self) -> String {
        let opened = self.ask(post(&[], INITIALIZE)).await;
        assert_eq!(opened.status, 200, "{opened:?}");
        let id = opened.headers["mcp-session-id"].clone();
        assert_eq!(self.ask(post(&[("mcp-session-id", &id)], INITIALIZED)).await.status, 202);
        id
    }

    pub(super) fn stop(&mut self) {
        self.stop.take().expect("once").send(()).expect("the gateway goes on");
    }

    pub(super) async fn ended(self) {
        soon("the end", self.serving).await.expect("no panic").expect("no error");
    }
}

/// One connection.
pub(super) struct Host {
    stream: DuplexStream,
    buffer: BytesMut,
    chunked: bool,
    /// Text of an event stream that is not yet a complete event.
    text: String,
}

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: Option<String>,
    pub(super) data: String,
}

impl Host {
    pub(super) async fn say(&mut self, request: impl AsRef<str>) {
        let _ = soon("room", self.stream.write_all(request.as_ref().as_bytes())).await;
    }

    /// Writes a request. Returns whether all of it was taken.
    pub(super) async fn says_all(&mut self, request: &str) -> bool {
        soon("room", self.stream.write_all(request.as_bytes())).await.is_ok()
    }

    pub(super) async fn say_bytes(&mut self, request: &[u8]) {
        let _ = soon("room", self.stream.write_all(request)).await;
    }

    /// Reads at most this much; 0 at the end.
    pub(super) async fn read_some(&mut self, most: usize) -> usize {
        let mut bytes = vec![0; most];
        soon("bytes", self.stream.read(&mut bytes)).await.unwrap_or(0)
    }

    /// Whether the connection ends within its first bytes. No time passes during this check.
    pub(super) async fn was_let_go(&mut self) -> bool {
        let mut read = 0;
        while read < 100_000 {
            match self.read_some(100_000).await {
                0 => return true,
                count => read += count,
            }
        }
        false
    }

    /// Reads until the gateway closes the connection; returns the number of bytes.
    pub(super) async fn read_to_end(&mut self) -> usize {
        let mut bytes = Vec::new();
        let _ = soon("the end", self.stream.read_to_end(&mut bytes)).await;
        bytes.len()
    }

    /// Reads a whole answer; of a stream only the head.
    pub(super) async fn reply(&mut self) -> Reply {
        let Reply { status, headers, .. } = self.head().await;
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        while self.buffer.len() < length {
            assert!(self.fill().await, "closed within a body");
        }
        let body = String::from_utf8(self.buffer.split_to(length).to_vec()).unwrap();
        Reply { status, headers, body }
    }

    /// Reads the status and the headers of an answer, without its body.
    pub(super) async fn head(&mut self) -> Reply {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            assert!(self.fill().await, "closed instead: {:?}", self.buffer);
        };
        let head = self.buffer.split_to(end + 4);
        let head = std::str::from_utf8(&head).unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: HashMap<_, _> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        self.chunked = headers.contains_key("transfer-encoding");
        Reply { status, headers, body: String::new() }
    }

    /// Sends a request and expects a stream.
    pub(super) async fn open_stream(&mut self, request: impl AsRef<str>) {
        self.say(request).await;
        let reply = self.reply().await;
        assert_eq!((reply.status, &*reply.headers["content-type"]), (200, "text/event-stream"), "{reply:?}");
    }

    /// The next event; `None` at the end of the stream. Comments are skipped.
    pub(super) async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some((text, rest)) = self.text.split_once("\n\n") {
                let (text, rest) = (text.to_owned(), rest.to_owned());
                self.text = rest;
                if text != ":" {
                    let field = |name: &str| {
                        text.lines()
                            .find_map(|line| line.strip_prefix(name))
                            .map(|text| text.trim().to_owned())
                    };
                    return Some(Event { id: field("id:"), data: field("data:").unwrap_or_default() });
                }
            } else if !self.chunk().await {
                return None;
            }
        }
    }

    pub(super) async fn hear(&mut self) -> Value {
        let event = self.event().await.expect("the stream goes on");
        serde_json::from_str(&event.data).unwrap_or_else(|_| panic!("no JSON: {event:?}"))
    }

    /// The same, but the first event may be one that only carries an id.
    pub(super) async fn hear_or_empty(&mut self) -> Value {
        let event = self.event().await.expect("the stream goes on");
        serde_json::from_str(&event.data).unwrap_or_default()
    }

    /// The answer, after all other messages on a stream.
    pub(super) async fn hear_answer(&mut self) -> Value {
        loop {
            let event = self.event().await.expect("the stream goes on");
            let message: Value = serde_json::from_str(&event.data).unwrap_or_default();
            if !message["id"].is_null() {
                assert_eq!(self.event().await, None, "an answer is the last");
                return message;
            }
        }
    }

    /// The next piece of a stream, comments included.
    pub(super) async fn keep_alive(&mut self) -> String {
        assert!(self.text.is_empty() && self.chunk().await);
        std::mem::take(&mut self.text)
    }

    /// Expects that nothing comes for a second.
    pub(super) async fn silent(&mut self) {
        let came = timeout(SECOND, self.stream.read_buf(&mut self.buffer)).await;
        assert!(came.is_err(), "unexpected: {:?}", self.buffer);
    }

    pub(super) async fn hear_nothing(&mut self) {
        if let Ok(Some(event)) = timeout(SECOND, self.event()).await {
            panic!("unexpected: {event:?}");
        }
    }

    /// Expects that the gateway closes the connection and sends nothing more.
    pub(super) async fn closed(&mut self) {
        assert!(!self.fill().await, "something came instead: {:?}", self.buffer);
    }

    /// One chunk of a stream; `false` at its end.
    async fn chunk(&mut self) -> bool {
        assert!(self.chunked, "this is no stream");
        let line = loop {
            if let Some(line) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                break line;
            }
            if !self.fill().await {
                return false;
            }
        };
        let length = usize::from_str_radix(std::str::from_utf8(&self.buffer[..line]).unwrap(), 16).unwrap();
        while self.buffer.len() < line + 2 + length + 2 {
            if !self.fill().await {
                return false;
            }
        }
        self.buffer.advance(line + 2);
        self.text.push_str(std::str::from_utf8(&self.buffer.split_to(length)).unwrap());
        self.buffer.advance(2);
        length > 0
    }

    async fn fill(&mut self) -> bool {
        soon("bytes", self.stream.read_buf(&mut self.buffer)).await.is_ok_and(|count| count > 0)
    }
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The code of the JSON-RPC error in the reply.
    pub(super) fn code(&self) -> Value {
        self.json()["error"]["code"].clone()
    }
}

/// An HTTP request. A given header replaces the usual one; an empty value omits it.
pub(super) fn http(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let length = body.len().to_string();
    let mut all = vec![("host", "localhost"), ("accept", "application/json, text/event-stream")];
    if method == "POST" {
        all.extend([("content-type", "application/json"), ("content-length", &length)]);
    }
    all.retain(|(name, _)| !headers.iter().any(|(given, _)| given == name));
    all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
    let mut text = format!("{method} {path} HTTP/1.1\r\n");
    for (name, value) in all {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    text + "\r\n" + body
}

pub(super) fn post(headers: &[(&str, &str)], body: &str) -> String {
    http("POST", "/mcp", headers, body)
}

/// A message of a legacy host within its session.
pub(super) fn within(session: &str, body: &str) -> String {
    post(&[("mcp-session-id", session), ("mcp-protocol-version", "2025-11-25")], body)
}

/// A legacy host's GET; `last` is the id of the last event that it got.
pub(super) fn get(session: &str, last: Option<&str>) -> String {
    let mut headers = vec![("mcp-session-id", session)];
    headers.extend(last.map(|last| ("last-event-id", last)));
    http("GET", "/mcp", &headers, "")
}

/// A modern message with headers that fit it.
pub(super) fn stateless(method: &str, name: &str, body: &str) -> String {
    post(&fitting(method, name), body)
}

pub(super) fn fitting<'a>(method: &'a str, name: &'a str) -> [(&'a str, &'a str); 3] {
    [("mcp-protocol-version", MODERN_VERSION), ("mcp-method", method), ("mcp-name", name)]
}
