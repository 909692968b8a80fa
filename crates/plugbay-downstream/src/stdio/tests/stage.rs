//! A host, a session, and servers that do as the test says.

use std::{fmt::Display, io, sync::Arc};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Catalog, Change, Offer, Tool},
    era::{CAPABILITIES_KEY, Era, MODERN_VERSION, VERSION_KEY},
    exchange::{Answer, Call, Servers, Ticket, Tickets},
    exposure::Exposure,
    failure::CallError,
    name::ServerName,
    surface::{Layout, Snapshot},
    wire::{Draft, Framer, Framing, Head, Incoming, Members},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::{Notify, mpsc, oneshot, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{SECOND, soon};
use crate::{Gateway, stdio::serve};

pub(super) const MESSAGE_LIMIT: usize = 100_000;

pub(super) struct Stage {
    pub(super) snapshots: watch::Sender<Snapshot>,
    pub(super) serving: JoinHandle<io::Result<()>>,
    /// `None` when the host has closed its end.
    input: Option<DuplexStream>,
    stop: Option<oneshot::Sender<()>>,
    output: DuplexStream,
    framer: Framer,
    events: mpsc::UnboundedReceiver<Event>,
}

enum Event {
    Call(Call),
    Cancel(Ticket, String),
}

impl Stage {
    /// Server `s` is known to have the tool `echo`.
    pub(super) fn new() -> Self {
        Self::with(snapshot(&["echo"], true))
    }

    pub(super) fn with(first: Snapshot) -> Self {
        let (event_sender, events) = mpsc::unbounded_channel();
        let (snapshots, snapshot_receiver) = watch::channel(first);
        let gateway = Gateway {
            servers: Arc::new(Script(event_sender)),
            snapshots: snapshot_receiver,
            tickets: Arc::new(Tickets::default()),
            first_list: Arc::new(Notify::new()),
            message_limit: MESSAGE_LIMIT,
        };
        let (input, their_input) = tokio::io::duplex(1_000_000);
        let (output, their_output) = tokio::io::duplex(1000);
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            if stopped.await.is_err() {
                std::future::pending::<()>().await; // the test is over, and not the session
            }
        };
        let serving = tokio::spawn(serve(gateway, their_input, their_output, stopped));
        let framer = Framer::new(100_000_000);
        Self { snapshots, serving, input: Some(input), stop: Some(stop), output, framer, events }
    }

    /// With a legacy host that has been through its opening.
    pub(super) async fn legacy() -> Self {
        let mut stage = Self::new();
        stage.say(INITIALIZE).await;
        assert_eq!(stage.hear().await["id"], "init");
        stage.say(INITIALIZED).await;
        stage
    }

    // --- what the host does

    pub(super) async fn say(&mut self, line: impl Display) {
        self.write(format!("{line}\n").as_bytes()).await;
    }

    /// The gateway may have ended.
    pub(super) async fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the host has not closed its end");
        let _ = soon("room to write", input.write_all(bytes)).await;
    }

    pub(super) fn close(&mut self) {
        self.input = None;
    }

    /// The gateway itself is told to end.
    pub(super) fn stop(&mut self) {
        self.stop.take().expect("once").send(()).expect("the session goes on");
    }

    /// The next message as it came; `None` when the gateway has closed its end.
    pub(super) async fn heard(&mut self) -> Option<String> {
        loop {
            if let Some(item) = self.framer.take() {
                let Incoming::Message(message) = item else { panic!("no message: {item:?}") };
                return Some(String::from_utf8(message.to_vec()).expect("UTF-8"));
            }
            match self.output.read_buf(self.framer.buffer()).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.framer.filled(count),
            }
        }
    }

    pub(super) async fn hear(&mut self) -> Value {
        let message = soon("a message", self.heard()).await.expect("the gateway is there");
        serde_json::from_str(&message).unwrap_or_else(|_| panic!("no JSON: {message}"))
    }

    pub(super) async fn hear_text(&mut self) -> String {
        soon("a message", self.heard()).await.expect("the gateway is there")
    }

    /// Nothing more for the host, for as long as nothing else happens.
    pub(super) async fn hear_nothing(&mut self) {
        if let Ok(Some(message)) = timeout(SECOND, self.heard()).await {
            panic!("unexpected: {message}");
        }
    }

    /// Asks and hears the answer.
    pub(super) async fn ask(&mut self, line: impl Display) -> Value {
        self.say(line).await;
        self.hear().await
    }

    /// A few bytes a second; `None` at the end.
    pub(super) async fn read_slowly(&mut self) -> Option<Vec<u8>> {
        sleep(SECOND).await;
        let mut bytes = vec![0; 1000];
        let count = soon("bytes", self.output.read(&mut bytes)).await.ok().filter(|count| *count > 0)?;
        bytes.truncate(count);
        Some(bytes)
    }

    /// The host closes the end that it reads from, and keeps the other.
    pub(super) fn deaf(self) -> JoinHandle<io::Result<()>> {
        let Self { serving, input, .. } = self;
        tokio::spawn(async move {
            let _open = input;
            soon("the end", serving).await.expect("no panic")
        })
    }

    pub(super) fn framing(&self) -> Option<Framing> {
        self.framer.seen()
    }

    /// The gateway's part is over; gives how it ended.
    pub(super) async fn ended(self) -> io::Result<()> {
        soon("the end", self.serving).await.expect("no panic")
    }

    // --- what reaches the servers

    pub(super) async fn forwarded(&mut self) -> Forwarded {
        match soon("a call", self.events.recv()).await.expect("the script is there") {
            Event::Call(call) => Forwarded(call),
            Event::Cancel(ticket, _) => panic!("{ticket:?} was cancelled instead"),
        }
    }

    pub(super) async fn cancelled(&mut self) -> (Ticket, String) {
        match soon("a cancellation", self.events.recv()).await.expect("the script is there") {
            Event::Call(call) => panic!("{:?} was called instead", call.ticket),
            Event::Cancel(ticket, text) => (ticket, text),
        }
    }

    pub(super) async fn nothing_forwarded(&mut self) {
        let forwarded = timeout(SECOND, self.events.recv()).await;
        assert!(!matches!(forwarded, Ok(Some(_))), "something reached a server");
    }
}

struct Script(mpsc::UnboundedSender<Event>);

impl Servers for Script {
    fn forward(&self, server: &ServerName, call: Call) {
        assert_eq!(server.as_str(), "s");
        let _ = self.0.send(Event::Call(call));
    }

    fn cancel(&self, _: &ServerName, ticket: Ticket, notification: Draft) {
        let text = String::from_utf8(notification.render(ticket.0).to_vec()).expect("UTF-8");
        let _ = self.0.send(Event::Cancel(ticket, text));
    }
}

/// A call as its server gets it.
pub(super) struct Forwarded(Call);

impl Forwarded {
    pub(super) fn ticket(&self) -> Ticket {
        self.0.ticket
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.request.render(self.0.ticket.0).to_vec()).expect("UTF-8")
    }

    /// `result` is raw JSON.
    pub(super) fn answer(&self, result: impl Display) {
        self.answer_with(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.0.ticket.0));
    }

    pub(super) fn answer_with(&self, message: String) {
        let message = Bytes::from(message);
        let head = Head::read_quickly(&message).expect("an answer");
        self.0.caller.answered(self.0.ticket, Answer::Response { message, head, era: Era::Legacy });
    }

    pub(super) fn fail(&self, error: CallError) {
        self.0.caller.answered(self.0.ticket, Answer::Failed(error));
    }

    pub(super) fn progress(&self) {
        let params = json!({ "progressToken": self.0.ticket.0, "progress": 1 });
        let message =
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string();
        let message = Bytes::from(message);
        let head = Head::read(&message).expect("a notification");
        let token = Members::find(&message, &head.payload.unwrap(), "progressToken").unwrap();
        self.0.caller.progressed(self.0.ticket, message, token);
    }
}

/// The server `s` with these tools.
pub(super) fn snapshot(tools: &[&str], settled: bool) -> Snapshot {
    let tools = tools.iter().map(|name| json!({ "name": name }).to_string());
    let tools = tools.map(|tool| Tool::parse(Bytes::from(tool)).expect("a tool")).collect();
    let offer = Arc::new(Offer::new(Era::Legacy, None, None, tools));
    let catalog = Catalog::default().apply(Change::Listed(server(), offer));
    let layout = Layout { exposures: [(server(), Exposure::default())].into(), name_limit: 64 };
    Snapshot::new(Arc::new(catalog), &layout, settled)
}

/// Nothing is known of any server yet.
pub(super) fn unsettled() -> Snapshot {
    Snapshot::new(Arc::default(), &Layout { name_limit: 64, ..Layout::default() }, false)
}

pub(super) fn server() -> ServerName {
    ServerName::parse("s").unwrap()
}

// --- what a host says; ids and params are raw JSON

pub(super) const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
pub(super) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub(super) fn request(id: impl Display, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

pub(super) fn list(id: impl Display) -> String {
    request(id, "tools/list", "{}")
}

pub(super) fn call(id: impl Display) -> String {
    request(id, "tools/call", r#"{"name":"s__echo"}"#)
}

pub(super) fn cancel(id: impl Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

/// A request of a modern host; `members` go beside its `_meta`.
pub(super) fn modern(id: impl Display, method: &str, members: &str) -> String {
    let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: {} });
    request(id, method, &format!(r#"{{"_meta":{meta}{members}}}"#))
}

pub(super) fn listen(id: impl Display) -> String {
    modern(id, "subscriptions/listen", r#","notifications":{"toolsListChanged":true}"#)
}
