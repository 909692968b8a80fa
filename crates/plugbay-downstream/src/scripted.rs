//! Scripted servers for tests, and the messages of hosts.
#![allow(clippy::large_enum_variant, reason = "a handful of events per test")]

mod scripts;

use std::{
    collections::BTreeSet,
    fmt::Display,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Catalog, Change, Items, Offer, ServerCapabilities, Tool},
    era::{CAPABILITIES_KEY, Era, MODERN_VERSION, VERSION_KEY},
    exchange::{
        self, Answer, Call, Caller, Reply, ServerNotification, ServerRequest, ServerRequestError,
        SubscriptionTarget, Ticket, Tickets, Warmed,
    },
    exposure::{Exposure, Mode},
    failure::CallError,
    filter::{FilterError, FilterFuture, FilterOutput, Filters},
    name::ServerName,
    surface::{Layout, LiveSettings, Snapshot},
    task::TaskRole,
    wire::{Draft, Head, Hole, Kind, Members},
};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use crate::{Gateway, HostEvents, Principal, Results, ToolUsage, connected_hosts::ConnectedHosts};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const MESSAGE_LIMIT: usize = 100_000;

/// Awaits an event that must come. The clock is paused: waiting a minute takes no time, and an hour counts as
/// for ever.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = timeout(3600 * SECOND, future).await;
    waited.unwrap_or_else(|_| panic!("{what} never came"))
}

/// A gateway with the snapshot `first`, the sender for further snapshots, and its servers.
pub(crate) fn gateway(first: Snapshot) -> (Gateway, watch::Sender<Snapshot>, Servers) {
    let (event_sender, events) = mpsc::unbounded_channel();
    let (snapshots, snapshot_receiver) = watch::channel(first);
    let held = Arc::default();
    let script =
        Script { events: event_sender, snapshots: snapshot_receiver.clone(), held: Arc::clone(&held) };
    let gateway = Gateway {
        servers: Arc::new(script),
        snapshots: snapshot_receiver,
        tickets: Arc::new(Tickets::default()),
        host_registry: Arc::default(),
        suspended: Arc::default(),
        usage: ToolUsage { counts: Arc::default(), learned: Arc::new(Arc::default), shapes: Arc::default() },
        connected_hosts: ConnectedHosts::default(),
        table: || None,
        ranker: Arc::default(),
        agents: Arc::default(),
        workers: Arc::default(),
        results: Arc::new(Results::new(std::env::temp_dir(), Arc::new(ScriptedFilters))),
        scripts: Arc::new(scripts::ScriptedScripts::default()),
        host_events: HostEvents {
            opened: Arc::default(),
            declared: Arc::new(|_| ()),
            first_list: Arc::default(),
            switched: Arc::default(),
        },
        session_views: None,
        principal: Principal::default(),
    };
    (gateway, snapshots, Servers { events, held })
}

/// Filters that support `.`, `.[]`, `.KEY`, and `endless`, which never ends.
#[derive(Debug)]
struct ScriptedFilters;

impl Filters for ScriptedFilters {
    fn run(&self, filter: String, input: Bytes) -> FilterFuture<'_> {
        let value: Value = serde_json::from_slice(&input).expect("JSON");
        let values = match filter.strip_prefix('.') {
            Some("") => vec![value],
            Some("[]") => value.as_array().cloned().unwrap_or_default(),
            Some(key) => vec![value[key].clone()],
            None if filter == "endless" => return Box::pin(std::future::pending()),
            None => {
                let wrong = FilterError::Wrong(format!("{filter:?} is no filter"));
                return Box::pin(std::future::ready(Err(wrong)));
            }
        };
        let lines: Vec<String> = values.iter().map(Value::to_string).collect();
        let lines = lines.join("\n");
        let output = FilterOutput { values: lines.into(), count: values.len(), cut: false };
        Box::pin(std::future::ready(Ok(output)))
    }
}

/// Everything that reaches the servers.
pub(crate) struct Servers {
    events: mpsc::UnboundedReceiver<Event>,
    held: Arc<Mutex<BTreeSet<ServerName>>>,
}

#[derive(Debug)]
enum Event {
    Call(ServerName, Call),
    Cancel(Ticket, String),
    Refresh(ServerName),
    /// The answer to a server request, as raw JSON.
    Reply(Ticket, String),
    Notify(ServerName, String),
    RootsChanged(String),
    Subscribe(String),
    LogLevelChanged,
}

impl Servers {
    /// Servers that must not become idle.
    pub(crate) fn held(&self) -> String {
        let held = self.held.lock().unwrap();
        held.iter().map(ServerName::as_str).collect::<Vec<_>>().join(" ")
    }

    pub(crate) async fn forwarded(&mut self) -> Forwarded {
        match soon("a call", self.events.recv()).await.expect("the script is there") {
            Event::Call(server, call) => Forwarded(call, server),
            other => panic!("{other:?} instead"),
        }
    }

    pub(crate) async fn cancelled(&mut self) -> (Ticket, String) {
        match soon("a cancellation", self.events.recv()).await.expect("the script is there") {
            Event::Cancel(ticket, text) => (ticket, text),
            other => panic!("{other:?} instead"),
        }
    }

    /// The next answer to a server request: its number, and `result` or the error message.
    pub(crate) async fn replied(&mut self) -> (Ticket, String) {
        match soon("a reply", self.events.recv()).await.expect("the script is there") {
            Event::Reply(server_request, text) => (server_request, text),
            other => panic!("{other:?} instead"),
        }
    }

    /// A host's notification, and the server that it reaches.
    pub(crate) async fn notified(&mut self) -> (String, String) {
        match soon("a notification", self.events.recv()).await.expect("the script is there") {
            Event::Notify(server, text) => (server.to_string(), text),
            other => panic!("{other:?} instead"),
        }
    }

    pub(crate) async fn roots_changed(&mut self) -> String {
        match soon("a notification of roots", self.events.recv()).await.expect("the script is there") {
            Event::RootsChanged(text) => text,
            other => panic!("{other:?} instead"),
        }
    }

    pub(crate) async fn log_level_changed(&mut self) {
        match soon("a level", self.events.recv()).await.expect("the script is there") {
            Event::LogLevelChanged => {}
            other => panic!("{other:?} instead"),
        }
    }

    pub(crate) async fn item_subscribed(&mut self) -> String {
        match soon("an item subscription", self.events.recv()).await.expect("the script is there") {
            Event::Subscribe(uri) => uri,
            other => panic!("{other:?} instead"),
        }
    }

    pub(crate) async fn refreshed(&mut self) -> String {
        match soon("a refresh", self.events.recv()).await.expect("the script is there") {
            Event::Refresh(server) => server.to_string(),
            other => panic!("{other:?} instead"),
        }
    }

    pub(crate) async fn nothing_forwarded(&mut self) {
        let forwarded = timeout(SECOND, self.events.recv()).await;
        assert!(!matches!(forwarded, Ok(Some(_))), "something reached a server");
    }
}

struct Script {
    events: mpsc::UnboundedSender<Event>,
    snapshots: watch::Receiver<Snapshot>,
    held: Arc<Mutex<BTreeSet<ServerName>>>,
}

impl exchange::Servers for Script {
    fn forward(&self, server: &ServerName, call: Call) {
        let _ = self.events.send(Event::Call(server.clone(), call));
    }

    fn refresh(&self, server: &ServerName) {
        let _ = self.events.send(Event::Refresh(server.clone()));
    }

    fn is_idle(&self, _: &ServerName) -> bool {
        false
    }

    /// Reports that a server is up, or down again, once the catalog says so.
    fn warm(&self, server: &ServerName, warmed: Warmed) {
        let (mut snapshots, server) = (self.snapshots.clone(), server.clone());
        let before = snapshots.borrow().catalog.failure(&server).cloned();
        tokio::spawn(async move {
            let fresh = |snapshot: &Snapshot| match (snapshot.catalog.failure(&server), &before) {
                (None, _) => snapshot.catalog.get(&server).is_some(),
                (Some(now), before) => before.as_ref().is_none_or(|before| !Arc::ptr_eq(now, before)),
            };
            if let Ok(now) = snapshots.wait_for(fresh).await {
                warmed.tell(now.catalog.failure(&server).map_or(Ok(()), |failure| Err(failure.clone())));
            }
        });
    }

    fn hold(&self, server: &ServerName) {
        self.held.lock().unwrap().insert(server.clone());
    }

    fn release(&self, server: &ServerName) {
        self.held.lock().unwrap().remove(server);
    }

    fn cancel(&self, _: &ServerName, ticket: Ticket, notification: Draft) {
        let text = String::from_utf8(notification.render(ticket.0).to_vec()).expect("UTF-8");
        let _ = self.events.send(Event::Cancel(ticket, text));
    }

    fn reply(&self, server: &ServerName, server_request: Ticket, reply: Reply) {
        assert_eq!(server.as_str(), "s");
        let text = match reply {
            Reply::Response { message, .. } => String::from_utf8(message.to_vec()).expect("UTF-8"),
            Reply::Result(result) => String::from_utf8(result.to_vec()).expect("UTF-8"),
            Reply::Refused(why) => why.to_string(),
            Reply::LeftOpen => "left open".to_owned(),
        };
        let _ = self.events.send(Event::Reply(server_request, text));
    }

    fn notify(&self, server: &ServerName, notification: Bytes) {
        let text = String::from_utf8(notification.to_vec()).expect("UTF-8");
        let _ = self.events.send(Event::Notify(server.clone(), text));
    }

    fn roots_changed(&self, notification: Bytes) {
        let text = String::from_utf8(notification.to_vec()).expect("UTF-8");
        let _ = self.events.send(Event::RootsChanged(text));
    }

    fn watch(&self, _: &ServerName, what: SubscriptionTarget) {
        let (SubscriptionTarget::Resource(own) | SubscriptionTarget::Task(own)) = what;
        let _ = self.events.send(Event::Subscribe(String::from_utf8_lossy(&own).into_owned()));
    }

    fn unwatch(&self, _: &ServerName, _: SubscriptionTarget) {}

    fn log_level_changed(&self) {
        let _ = self.events.send(Event::LogLevelChanged);
    }

    fn client_capabilities_grew(&self) {}
}

/// A call as its server gets it.
pub(crate) struct Forwarded(Call, ServerName);

impl Forwarded {
    /// Whether the user of its host can log in at its server.
    pub(crate) fn can_log_in(&self) -> bool {
        self.0.caller.can_log_in(self.0.ticket)
    }

    pub(crate) fn ticket(&self) -> Ticket {
        self.0.ticket
    }

    pub(crate) fn server(&self) -> &str {
        self.1.as_str()
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.0.timeout
    }

    /// Its role with respect to tasks.
    pub(crate) fn task_role(&self) -> &TaskRole {
        &self.0.task_role
    }

    /// The caller that takes its answer.
    pub(crate) fn caller(&self) -> &dyn Caller {
        &*self.0.caller
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.request.render(self.0.ticket.0).to_vec()).expect("UTF-8")
    }

    /// Answers the call; `result` is raw JSON.
    pub(crate) fn answer(&self, result: impl Display) {
        self.answer_with(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, self.0.ticket.0));
    }

    pub(crate) fn answer_with(&self, message: String) {
        let message = Bytes::from(message);
        let head = Head::read(&message).expect("an answer");
        self.0.caller.answered(self.0.ticket, Answer::Response { message, head, era: Era::Legacy });
    }

    /// Answers the call as a modern server.
    pub(crate) fn answer_modern(&self, result: impl Display) {
        self.answer_modern_with("result", result);
    }

    /// The same under another key, such as `error`.
    pub(crate) fn answer_modern_with(&self, key: &str, value: impl Display) {
        let message = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{},"{key}":{value}}}"#, self.0.ticket.0));
        let head = Head::read(&message).expect("an answer");
        self.0.caller.answered(self.0.ticket, Answer::Response { message, head, era: Era::Modern });
    }

    /// Sends a server request during the call.
    pub(crate) fn ask(&self, number: u64, method: &str, params: &str) -> Result<(), ServerRequestError> {
        self.ask_about(&[self.0.ticket], number, method, params)
    }

    /// The same, where the request may belong to any of these calls.
    pub(crate) fn ask_about(
        &self,
        calls: &[Ticket],
        number: u64,
        method: &str,
        params: &str,
    ) -> Result<(), ServerRequestError> {
        let server_request =
            ServerRequest { calls: calls.to_vec(), ..server_request(number, method, params) };
        self.0.caller.server_request(Some(self.0.ticket), server_request)
    }

    /// Withdraws a server request.
    pub(crate) fn withdraw(&self, number: u64) {
        let text = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":?}}"#;
        let place = text.find('?').expect("a place");
        let draft = Draft::new(Bytes::from_static(text.as_bytes())).with(place..place + 1, Hole::Ticket);
        self.0.caller.withdrawn(Some(self.0.ticket), Ticket(number), draft);
    }

    /// The capabilities of this host that a modern server would get.
    pub(crate) fn client_capabilities(&self) -> String {
        self.0.caller.client_capabilities().declaration()
    }

    pub(crate) fn fail(&self, error: CallError) {
        self.0.caller.answered(self.0.ticket, Answer::Failed(error));
    }

    /// Sends a notification of the server during the call.
    pub(crate) fn log(&self, server_notification: &ServerNotification) {
        self.0.caller.notified(Some(self.0.ticket), server_notification);
    }

    pub(crate) fn progress(&self) {
        let params = json!({ "progressToken": self.0.ticket.0, "progress": 1 });
        let message =
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string();
        let message = Bytes::from(message);
        let head = Head::read(&message).expect("a notification");
        let token = Members::find(&message, &head.payload.unwrap(), "progressToken").unwrap();
        self.0.caller.progressed(self.0.ticket, message, token);
    }
}

/// A server request from the server `s`.
pub(crate) fn server_request(number: u64, method: &str, params: &str) -> ServerRequest {
    let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","id":"its own", "params":{params} }}"#);
    let message = Bytes::from(text);
    let head = Head::read(&message).expect("a request");
    let Kind::Request { method, .. } = head.kind.clone() else { panic!("no request") };
    ServerRequest { number: Ticket(number), server: server(), calls: Vec::new(), message, head, method }
}

/// The server `s` with these tools.
pub(crate) fn snapshot(tools: &[&str], settled: bool) -> Snapshot {
    let tools: Vec<_> = tools.iter().map(|name| json!({ "name": name })).collect();
    snapshot_of(&tools, settled)
}

/// The server `s` with these tool definitions.
pub(crate) fn snapshot_of(tools: &[Value], settled: bool) -> Snapshot {
    snapshot_with(Era::Legacy, tools, settled)
}

/// The server `s` in this era.
pub(crate) fn snapshot_in(era: Era, tools: &[&str]) -> Snapshot {
    let tools: Vec<_> = tools.iter().map(|name| json!({ "name": name })).collect();
    snapshot_with(era, &tools, true)
}

fn snapshot_with(era: Era, tools: &[Value], settled: bool) -> Snapshot {
    let tools =
        tools.iter().map(|tool| Tool::parse(Bytes::from(tool.to_string())).expect("a tool")).collect();
    let offer = Arc::new(Offer::new(era, None, None, tools));
    let catalog = Catalog::default().apply(Change::Listed(server(), offer));
    let exposures = [(server(), Exposure::default())].into();
    let layout = Layout { mode: Some(Mode::All), exposures, ..layout() };
    Snapshot::new(Arc::new(catalog), Arc::new(layout), settled)
}

/// These servers in this era. All have tasks and the tools `echo` and `slow`; `slow` requires a task.
pub(crate) fn snapshot_with_tasks(era: Era, servers: &[&str], mode: Mode) -> Snapshot {
    let tools = [
        json!({ "name": "echo", "inputSchema": { "type": "object" } }),
        json!({ "name": "slow", "inputSchema": { "type": "object" }, "execution": { "taskSupport": "required" } }),
    ];
    let mut catalog = Catalog::default();
    let mut layout = Layout { mode: Some(mode), ..layout() };
    for server in servers {
        let tools = tools.iter().map(|tool| Tool::parse(Bytes::from(tool.to_string())).expect("a tool"));
        let features = ServerCapabilities {
            tools: true,
            tasks: true,
            tasks_list: true,
            tasks_cancel: true,
            ..ServerCapabilities::default()
        };
        let offer = Offer::new(era, None, None, tools.collect()).with_items(features, Items::default());
        let server = ServerName::parse(server).expect("a name");
        catalog = catalog.apply(Change::Listed(server.clone(), Arc::new(offer)));
        layout.exposures.insert(server, Exposure { mode: Some(mode), ..Exposure::default() });
    }
    Snapshot::new(Arc::new(catalog), Arc::new(layout), true)
}

/// A snapshot in which no server is known yet.
pub(crate) fn unsettled() -> Snapshot {
    Snapshot::new(Arc::default(), Arc::new(layout()), false)
}

pub(crate) fn server() -> ServerName {
    ServerName::parse("s").unwrap()
}

// --- messages of a host; ids and params are raw JSON

pub(crate) const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub(crate) fn request(id: impl Display, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

pub(crate) fn list(id: impl Display) -> String {
    request(id, "tools/list", "{}")
}

pub(crate) fn call(id: impl Display) -> String {
    request(id, "tools/call", r#"{"name":"s__echo"}"#)
}

pub(crate) fn cancel(id: impl Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

/// A request of a modern host; `members` go beside its `_meta`.
pub(crate) fn modern(id: impl Display, method: &str, members: &str) -> String {
    let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: {} });
    request(id, method, &format!(r#"{{"_meta":{meta}{members}}}"#))
}

pub(crate) fn listen(id: impl Display) -> String {
    modern(id, "subscriptions/listen", r#","notifications":{"toolsListChanged":true}"#)
}

fn layout() -> Layout {
    let settings = LiveSettings { message_limit: MESSAGE_LIMIT, ..LiveSettings::default() };
    Layout { name_limit: 64, settings, ..Layout::default() }
}
