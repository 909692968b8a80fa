//! A scripted host: speaks to a spawned gateway (or to any MCP server) over its stdio.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    fmt::Display,
    io::Write,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    deadline::{DEADLINE, patience, wait_until},
    message::{Framing, RawMessage},
    process::{Process, Signal, descendants},
    transcript::Transcript,
};

/// The members of `params._meta` in a modern request, without the braces.
pub const MODERN_META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"testkit","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}"#;

const POLL: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    transcript: Arc<Transcript>,
    readers: Vec<JoinHandle<()>>,
    deadline: Duration,
    framing: Framing,
    modern: Cell<bool>,
    next_id: Cell<u64>,
    /// The capabilities that this host declares, as raw JSON.
    capabilities: RefCell<String>,
}

/// A tool from a list: its name, and its definition byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    pub name: String,
    pub raw: String,
}

/// The status and the output of a process that has ended.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub messages: Vec<RawMessage>,
    pub stderr: String,
}

impl Host {
    /// Starts `command` with its three streams piped to this host.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let transcript = Arc::new(Transcript::default());
        let (stdout, stderr) = (child.stdout.take().expect("stdout"), child.stderr.take().expect("stderr"));
        let (one, two) = (Arc::clone(&transcript), Arc::clone(&transcript));
        let readers = vec![
            thread::spawn(move || one.read_messages(stdout)),
            thread::spawn(move || two.read_stderr(stderr)),
        ];
        Self {
            stdin: child.stdin.take(),
            child,
            transcript,
            readers,
            deadline: DEADLINE,
            framing: Framing::Newline,
            modern: Cell::new(false),
            next_id: Cell::new(1),
            capabilities: RefCell::new("{}".to_owned()),
        }
    }

    /// How long each expectation waits.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// How this host delimits its messages.
    #[must_use]
    pub fn with_framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// From now on, requests carry the modern `_meta`, without a preceding `server/discover`.
    pub fn speak_modern(&self) {
        self.modern.set(true);
    }

    /// Sets the capabilities that this host declares from now on, in either era: raw JSON.
    pub fn declare(&self, capabilities: &str) {
        capabilities.clone_into(&mut self.capabilities.borrow_mut());
    }

    // ---- sending

    /// Sends one message unchanged.
    #[track_caller]
    pub fn send_raw(&self, message: &str) {
        let framed = match self.framing {
            Framing::Newline => format!("{message}\n"),
            Framing::ContentLength => format!("Content-Length: {}\r\n\r\n{message}", message.len()),
        };
        self.send_bytes(framed.as_bytes());
    }

    #[track_caller]
    pub fn send_bytes(&self, bytes: &[u8]) {
        let mut stdin = self.stdin.as_ref().expect("stdin is closed");
        let sent = stdin.write_all(bytes).and_then(|()| stdin.flush());
        assert!(sent.is_ok(), "cannot send: {sent:?}\n{}", self.transcript.tell());
    }

    /// Sends a request under the next number and returns that number.
    #[track_caller]
    pub fn request(&self, method: &str, params: &str) -> u64 {
        let id = self.next_id.replace(self.next_id.get() + 1);
        self.request_as(id, method, params);
        id
    }

    /// Sends a request with a raw id of the caller's choice.
    #[track_caller]
    pub fn request_as(&self, id: impl Display, method: &str, params: &str) {
        let params = self.dress(params);
        self.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
    }

    #[track_caller]
    pub fn notify(&self, method: &str, params: &str) {
        self.send_raw(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    }

    #[track_caller]
    pub fn cancel(&self, id: impl Display) {
        self.notify("notifications/cancelled", &format!(r#"{{"requestId":{id},"reason":"test"}}"#));
    }

    // ---- expecting

    /// The response, a result or an error, to the request with this raw id.
    #[track_caller]
    pub fn expect_response(&self, id: impl Display) -> RawMessage {
        let id = id.to_string();
        self.expect(&format!("response to {id}"), |m| m.is_response() && m.id() == Some(&id))
    }

    #[track_caller]
    pub fn expect_notification(&self, method: &str) -> RawMessage {
        self.expect(method, |m| m.id().is_none() && m.method().as_deref() == Some(method))
    }

    /// The next request from the gateway with this method.
    #[track_caller]
    pub fn expect_request(&self, method: &str) -> RawMessage {
        self.expect(method, |m| m.id().is_some() && m.method().as_deref() == Some(method))
    }

    /// Answers a request from the gateway with a raw result.
    #[track_caller]
    pub fn reply(&self, request: &RawMessage, result: &str) {
        let id = request.id().expect("a request has an id");
        self.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }

    #[track_caller]
    pub fn expect(&self, what: &str, fits: impl Fn(&RawMessage) -> bool) -> RawMessage {
        self.transcript.take(what, self.deadline, fits)
    }

    /// A fitting message that has already arrived.
    pub fn take_now(&self, fits: impl Fn(&RawMessage) -> bool) -> Option<RawMessage> {
        self.transcript.take_now(fits)
    }

    /// Every message so far.
    pub fn messages(&self) -> Vec<RawMessage> {
        self.transcript.all()
    }

    /// Drops the messages that the test has taken, to free their memory: for endless conversations.
    pub fn forget(&self) {
        self.transcript.forget();
    }

    pub fn count_notifications(&self, method: &str) -> usize {
        self.messages().iter().filter(|m| m.id().is_none() && m.method().as_deref() == Some(method)).count()
    }

    pub fn stderr(&self) -> String {
        self.transcript.stderr()
    }

    // ---- conversations

    /// The legacy handshake with the newest legacy version; returns the `initialize` response.
    #[track_caller]
    pub fn initialize(&self) -> RawMessage {
        self.initialize_as("2025-11-25")
    }

    #[track_caller]
    pub fn initialize_as(&self, version: &str) -> RawMessage {
        let id = self.request(
            "initialize",
            &format!(
                r#"{{"protocolVersion":"{version}","capabilities":{},"clientInfo":{{"name":"testkit","version":"0"}}}}"#,
                self.capabilities.borrow()
            ),
        );
        let response = self.expect_response(id);
        self.notify("notifications/initialized", "{}");
        response
    }

    /// Opens the modern era; returns the `server/discover` response.
    #[track_caller]
    pub fn discover(&self) -> RawMessage {
        self.speak_modern();
        let id = self.request("server/discover", "{}");
        self.expect_response(id)
    }

    /// The whole list, with all its pages.
    #[track_caller]
    pub fn list_tools(&self) -> Vec<Tool> {
        let mut tools = Vec::new();
        let mut params = "{}".to_owned();
        loop {
            let id = self.request("tools/list", &params);
            let response = self.expect_response(id);
            let page: Page<'_> = serde_json::from_str(response.result()).expect("tools/list result");
            tools.extend(page.tools.into_iter().map(Tool::new));
            let Some(cursor) = page.next_cursor else { return tools };
            params = format!(r#"{{"cursor":{}}}"#, Value::from(cursor));
        }
    }

    #[track_caller]
    pub fn tool_names(&self) -> Vec<String> {
        self.list_tools().into_iter().map(|tool| tool.name).collect()
    }

    /// Lists until every one of `names` is there.
    #[track_caller]
    pub fn await_tools(&self, names: &[&str]) -> Vec<Tool> {
        self.await_list(&format!("{names:?} in tools/list"), |tools| {
            names.iter().all(|name| tools.iter().any(|tool| tool.name == **name))
        })
    }

    /// Lists until the list fits.
    #[track_caller]
    pub fn await_list(&self, what: &str, fits: impl Fn(&[Tool]) -> bool) -> Vec<Tool> {
        let mut last = Vec::new();
        let deadline = Instant::now() + patience(self.deadline);
        while Instant::now() < deadline {
            let tools = self.list_tools();
            if fits(&tools) {
                return tools;
            }
            last = tools.into_iter().map(|tool| tool.name).collect();
            thread::sleep(POLL);
        }
        panic!("no {what}; last list: {last:?}\n{}", self.transcript.tell())
    }

    /// Calls a tool and waits for the answer.
    #[track_caller]
    pub fn call(&self, name: &str, arguments: &str) -> RawMessage {
        let id = self.start_call(name, arguments);
        self.expect_response(id)
    }

    /// Sends a call and returns its id.
    #[track_caller]
    pub fn start_call(&self, name: &str, arguments: &str) -> u64 {
        self.request("tools/call", &call_params(name, arguments))
    }

    /// Sends a call with a raw progress token and returns its id.
    #[track_caller]
    pub fn start_call_with_progress(&self, name: &str, arguments: &str, token: &str) -> u64 {
        let name = Value::from(name);
        self.request(
            "tools/call",
            &format!(r#"{{"_meta":{{"progressToken":{token}}},"name":{name},"arguments":{arguments}}}"#),
        )
    }

    /// A round trip that the gateway answers itself: all its earlier messages have arrived afterwards.
    #[track_caller]
    pub fn barrier(&self) {
        let id = self.request("ping", "{}");
        let _ = self.expect_response(id);
    }

    // ---- the process

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn process(&self) -> Process {
        Process::of(self.pid()).expect("the process is running")
    }

    pub fn descendants(&self) -> Vec<Process> {
        descendants(self.pid())
    }

    pub fn signal(&self, signal: Signal) {
        self.process().signal(signal);
    }

    /// Closes stdin and waits for the process to exit; checks what must hold after any conversation.
    #[track_caller]
    pub fn finish(mut self) -> Ended {
        self.stdin = None;
        let ended = self.wait_for_exit();
        assert!(ended.status.success(), "{}\n{}", ended.status, self.transcript.tell());
        check_conversation(&ended.messages);
        ended
    }

    /// Waits for the exit of a process that was told to end.
    #[track_caller]
    pub fn wait_for_exit(&mut self) -> Ended {
        let status =
            wait_until("the process to exit", self.deadline, || self.child.try_wait().expect("wait"));
        self.transcript.wait_for_end(self.deadline);
        Ended { status, messages: self.transcript.all(), stderr: self.transcript.stderr() }
    }

    /// Raw params in the form for sending: with the modern `_meta` if this host speaks the modern era.
    pub fn dress(&self, params: &str) -> String {
        if self.modern.get() {
            dress(params, &modern_meta(&self.capabilities.borrow()))
        } else {
            params.to_owned()
        }
    }
}

/// Raw params with further members at the start of `_meta`. If they have a `_meta`, it must be the first
/// member.
pub fn dress(params: &str, meta: &str) -> String {
    if let Some(rest) = params.strip_prefix(r#"{"_meta":{"#) {
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        return format!(r#"{{"_meta":{{{meta}{comma}{rest}"#);
    }
    let rest = params.trim_start().strip_prefix('{').expect("params: an object");
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!(r#"{{"_meta":{{{meta}}}{comma}{rest}"#)
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The readers end with the streams. A grandchild may hold these, so the readers are not joined.
        self.readers.clear();
    }
}

fn modern_meta(capabilities: &str) -> String {
    let bare = MODERN_META.strip_suffix("{}").expect("it ends with what can be declared");
    format!("{bare}{capabilities}")
}

/// Checks that every line is a message and that no request is answered twice.
#[track_caller]
fn check_conversation(messages: &[RawMessage]) {
    let mut answers: HashMap<&str, usize> = HashMap::new();
    for message in messages {
        let whole = serde_json::from_str::<&RawValue>(message.text());
        assert!(whole.is_ok(), "not a message: {message:?}");
        if let (true, Some(id)) = (message.is_response(), message.id().filter(|id| *id != "null")) {
            let count = answers.entry(id).or_default();
            *count += 1;
            assert_eq!(*count, 1, "a second answer to {id}: {message:?}");
        }
    }
}

fn call_params(name: &str, arguments: &str) -> String {
    format!(r#"{{"name":{},"arguments":{arguments}}}"#, Value::from(name))
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

impl Tool {
    fn new(raw: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let named: Named = serde_json::from_str(raw.get()).expect("a tool has a name");
        Self { name: named.name, raw: raw.get().to_owned() }
    }

    pub fn value(&self) -> Value {
        serde_json::from_str(&self.raw).expect("definition")
    }
}
