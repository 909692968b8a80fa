//! A host over HTTP: one session, as many connections as it needs.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde_json::{Value, json};

use crate::Outcome;
use crate::http::Incoming;
use crate::watchdog::guarded;

const VERSION: &str = "2025-06-18";

/// Longer than the limit of any gateway for a server that does not start.
const INITIALIZE_LIMIT: Duration = Duration::from_secs(60);

/// The address of a server.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
}

impl Endpoint {
    /// The path that most servers have.
    pub(crate) fn usual(address: SocketAddr) -> Self {
        Self { address, path: "/mcp".to_owned() }
    }
}

/// A connection that is kept alive, with one request at a time on it.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    incoming: Incoming,
    head: String,
    outgoing: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(endpoint: &Endpoint, session: Option<&str>) -> Outcome<Self> {
        let Endpoint { address, path } = endpoint;
        let stream = TcpStream::connect(*address)?;
        stream.set_nodelay(true)?;
        let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {VERSION}\r\n{session}"
        );
        Ok(Self { stream, incoming: Incoming::new(), head, outgoing: Vec::new() })
    }

    /// Writes head and body together: two writes would be two packets.
    pub(crate) fn send(&mut self, body: &str) -> Outcome<()> {
        self.incoming.next();
        self.outgoing.clear();
        write!(self.outgoing, "{}Content-Length: {}\r\n\r\n{body}", self.head, body.len())?;
        Ok(self.stream.write_all(&self.outgoing)?)
    }

    /// Waits for the answer.
    pub(crate) fn receive(&mut self) -> Outcome<&[u8]> {
        if self.incoming.receive(&mut self.stream)? { self.answer() } else { Err(closed()) }
    }

    /// The body of the answer, whatever its status.
    pub(crate) fn receive_any(&mut self) -> Outcome<&[u8]> {
        if self.incoming.receive(&mut self.stream)? { self.body() } else { Err(closed()) }
    }

    /// Opens a session; returns the answer and the session's id. A connection without an answer by `until` is
    /// closed.
    pub(crate) fn initialize(mut self, params: &Value, until: Instant) -> Outcome<(Value, Option<String>)> {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(left))?;
        let answer = self.request(0, "initialize", params)?;
        Ok((answer, self.incoming.header("mcp-session-id").map(str::to_owned)))
    }

    /// Reads what has arrived; `None` if that is not the whole answer.
    pub(crate) fn receive_some(&mut self) -> Outcome<Option<&[u8]>> {
        if !self.incoming.read_once(&mut self.stream)? {
            return Err(closed());
        }
        if self.incoming.is_whole()? { self.answer().map(Some) } else { Ok(None) }
    }

    /// The message in a complete answer, either JSON or an event stream. Empty for that of a notification.
    fn answer(&self) -> Outcome<&[u8]> {
        let (status, body) = (self.incoming.first_line(), self.incoming.body());
        if !status.starts_with("HTTP/1.1 2") {
            let body = String::from_utf8_lossy(&body[..body.len().min(300)]);
            return Err(format!("{status}: {body}").into());
        }
        self.body()
    }

    fn body(&self) -> Outcome<&[u8]> {
        let body = self.incoming.body();
        let kind = self.incoming.header("content-type").unwrap_or_default();
        if kind.starts_with("text/event-stream") { last_event(body) } else { Ok(body) }
    }

    fn request(&mut self, id: u64, method: &str, params: &Value) -> Outcome<Value> {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())?;
        let mut answer: Value = serde_json::from_slice(self.receive()?)?;
        match answer["result"].take() {
            Value::Null => Err(format!("{method} failed: {}", answer["error"]).into()),
            result => Ok(result),
        }
    }
}

/// An open session.
pub(crate) struct Session {
    endpoint: Endpoint,
    id: Option<String>,
    first: Connection,
}

impl Session {
    /// Opens a session. `group` is killed if it keeps us waiting.
    pub(crate) fn open(endpoint: Endpoint, group: Pid) -> Outcome<Self> {
        guarded(group, INITIALIZE_LIMIT, || {
            let mut first = Connection::open(&endpoint, None)?;
            let client = json!({ "name": "plugbay-bench", "version": env!("CARGO_PKG_VERSION") });
            let params = json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": client });
            first.request(0, "initialize", &params)?;
            let id = first.incoming.header("mcp-session-id").map(str::to_owned);
            let mut first = Connection::open(&endpoint, id.as_deref())?;
            first.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
            first.receive()?;
            Ok(Self { endpoint, id, first })
        })
    }

    pub(crate) fn connect(&self) -> Outcome<Connection> {
        Connection::open(&self.endpoint, self.id.as_deref())
    }

    /// Repeats a call until it succeeds: a server may still be starting.
    pub(crate) fn call_until_result(&mut self, params: &Value, limit: Duration) -> Outcome<()> {
        let began = Instant::now();
        loop {
            match self.first.request(0, "tools/call", params) {
                Ok(result) if result["isError"] != true => return Ok(()),
                Ok(result) if began.elapsed() > limit => return Err(format!("tools/call: {result}").into()),
                Err(error) if began.elapsed() > limit => return Err(error),
                _ => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Lists repeatedly until at least `count` tools are listed.
    pub(crate) fn tools_until(&mut self, count: usize, limit: Duration) -> Outcome<Vec<String>> {
        let began = Instant::now();
        loop {
            let page = self.first.request(0, "tools/list", &json!({}))?;
            let tools = page["tools"].as_array().ok_or("tools/list without tools")?;
            if tools.len() >= count {
                return Ok(tools
                    .iter()
                    .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
                    .collect());
            }
            if began.elapsed() > limit {
                return Err(format!("lists {} of {count} tools after {limit:?}", tools.len()).into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The data of the last event that has any: earlier ones were notifications, or an empty first event.
fn last_event(body: &[u8]) -> Outcome<&[u8]> {
    let lines = body.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    let data = lines.map(<[u8]>::trim_ascii).rfind(|data| !data.is_empty());
    data.ok_or_else(|| "a stream of events without data".into())
}

fn closed() -> Box<dyn std::error::Error> {
    "the connection was closed".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_is_the_answer() {
        let body =
            b"id: 1\ndata: \n\nevent: message\ndata: {\"a\":1}\n\nevent: message\r\ndata: {\"b\":2}\r\n\r\n";
        assert_eq!(last_event(body).unwrap(), b"{\"b\":2}");
        assert!(last_event(b": nothing\n\n").is_err());
    }
}
