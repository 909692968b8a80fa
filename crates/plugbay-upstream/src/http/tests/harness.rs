//! The gateway's side: the real actor of one server, its callers, and its reports.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Dialect, Offer},
    credentials::{CredentialSource, Credentials},
    era::Era,
    exchange::{
        Answer, Call, Caller, ServerNotification, ServerRequest, ServerRequestError, Ticket, Tickets,
    },
    failure::Failure,
    name::ServerName,
    wire::{Draft, Span},
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::{
    peer::{Request, Server},
    soon,
};
use crate::{
    Starts,
    link::Launcher,
    observers::Observers,
    server::{
        Command, Condition, Report, ServerContext, ServerHandle,
        tests::{
            harness::{Scripted, holes, text_of},
            host::Host,
        },
    },
    spec::{DEFAULT_MESSAGE_LIMIT, HttpFlavour, HttpSpec, ServerSpec, Timeouts, Transport},
};

/// The parts of the setup that a test may change.
pub(super) struct Setup {
    pub(super) timeouts: Timeouts,
    pub(super) flavour: HttpFlavour,
    pub(super) known: Option<Dialect>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) message_limit: usize,
    pub(super) remote: bool,
    pub(super) credentials: Option<Arc<dyn Credentials>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            flavour: HttpFlavour::Auto,
            known: Some(Dialect { asked_in_vain: Some(u64::MAX), ..Era::Legacy.into() }),
            headers: BTreeMap::new(),
            message_limit: DEFAULT_MESSAGE_LIMIT,
            remote: false,
            credentials: None,
        }
    }
}

impl Setup {
    pub(super) fn unknown() -> Self {
        Self { known: None, ..Self::default() }
    }

    pub(super) fn modern() -> Self {
        Self { known: Some(Era::Modern.into()), ..Self::default() }
    }

    /// A remote gateway about which nothing is known.
    pub(super) fn remote() -> Self {
        Self { remote: true, ..Self::unknown() }
    }

    pub(super) fn sse() -> Self {
        Self { flavour: HttpFlavour::Sse, ..Self::unknown() }
    }
}

pub(super) struct Harness {
    pub(super) handle: ServerHandle,
    pub(super) calls: Arc<Calls>,
    tickets: Arc<Tickets>,
    reports: mpsc::UnboundedReceiver<Report>,
}

impl Harness {
    pub(super) fn new(setup: Setup, url: &str) -> Self {
        let Setup { timeouts, flavour, known, headers, message_limit, remote, credentials } = setup;
        let (report_sender, reports) = mpsc::unbounded_channel();
        let tickets = Arc::new(Tickets::default());
        let source = CredentialSource::Headers;
        let http = HttpSpec {
            url: url.to_owned(),
            headers,
            credentials: source,
            flavour,
            ca_file: None,
            remote,
            references: plugbay_core::secret::KnownSecrets::default(),
        };
        let name = ServerName::parse("s").unwrap();
        let transport = Transport::Http(http);
        let spec = ServerSpec { name, transport, timeouts, message_limit, sanitize: true };
        let launcher: Launcher = Arc::new(|_, _| Err(Failure::new("no processes here", Vec::new())));
        let observers = Observers::reporting_to(report_sender, spec.clone());
        let starts = Starts::with(1, Arc::new(Scripted::default()));
        let context = ServerContext::new(launcher, Arc::clone(&tickets), starts, Arc::default(), observers);
        let context = ServerContext { credentials_for: Arc::new(move |_, _| credentials.clone()), ..context };
        let handle = ServerHandle::spawn(spec, known, context);
        Self { handle, calls: Arc::default(), tickets, reports }
    }

    /// A harness with a legacy server that has a session "one", no GET stream, and one tool.
    pub(super) async fn legacy(setup: Setup) -> (Self, Server) {
        let mut server = Server::start().await;
        let mut harness = Self::new(setup, &server.url());
        harness.handle.refresh();
        server.open_legacy("one").await;
        server.take("GET").await.status(405);
        server.list(&["echo"]).await;
        assert_eq!(harness.report().await, "echo");
        (harness, server)
    }

    /// A harness with a modern server that offers one tool, and the server's subscription.
    pub(super) async fn modern(setup: Setup) -> (Self, Server, Request) {
        let mut server = Server::start().await;
        let mut harness = Self::new(Setup { known: Some(Era::Modern.into()), ..setup }, &server.url());
        harness.handle.refresh();
        server.take("server/discover").await.answer(capabilities());
        server.list(&["echo"]).await;
        let subscription = server.take("subscriptions/listen").await;
        assert_eq!(harness.report().await, "echo");
        (harness, server, subscription)
    }

    // --- what hosts do

    /// Calls a tool. Its name also marks the answer.
    pub(super) fn call(&self, tool: &str) -> Ticket {
        self.call_with(tool, "{}")
    }

    pub(super) fn call_with(&self, tool: &str, arguments: &str) -> Ticket {
        let (request, params) = call(tool, arguments);
        self.forward(request, Era::Legacy, Some(params))
    }

    pub(super) fn forward(&self, request: Draft, era: Era, params: Option<Span>) -> Ticket {
        self.forward_by(Arc::clone(&self.calls) as Arc<dyn Caller>, request, era, params)
    }

    /// A call by another host.
    pub(super) fn call_by(&self, host: &Arc<Host>, tool: &str) -> Ticket {
        let (request, params) = call(tool, "{}");
        self.forward_by(host.clone(), request, Era::Legacy, Some(params))
    }

    fn forward_by(&self, caller: Arc<dyn Caller>, request: Draft, era: Era, params: Option<Span>) -> Ticket {
        let ticket = self.tickets.next();
        let task_role = plugbay_core::task::TaskRole::None;
        let call = Call { ticket, caller, request, era, params, timeout: None, task_role };
        self.handle.send(Command::Forward(call));
        ticket
    }

    pub(super) fn cancel(&self, ticket: Ticket) {
        let text = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"host"}}"#;
        let notification = holes(text.to_owned(), &["\"host\""]);
        self.handle.send(Command::Cancel { ticket, notification });
    }

    // --- what happens

    pub(super) async fn offer(&mut self) -> Result<Arc<Offer>, Arc<Failure>> {
        soon("a report", self.reports.recv()).await.expect("the task reports").outcome
    }

    /// The next report as text: the names of the tools, or what failed.
    pub(super) async fn report(&mut self) -> String {
        match self.offer().await {
            Ok(offer) => offer.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" "),
            Err(failure) => failure.to_string(),
        }
    }

    /// Makes one call that succeeds, so that everything before it has been handled.
    pub(super) async fn works(&self, server: &mut Server) {
        let call = self.call("still works");
        server.take_call("still works").await.answer(json!({ "ok": 1 }));
        assert_eq!(self.calls.end(call).await, r#"{"ok":1}"#);
    }

    pub(super) async fn condition(&self, wanted: impl Fn(&Condition) -> bool) {
        let mut status = self.handle.status();
        let waiting = status.wait_for(|status| wanted(&status.condition));
        soon("the condition", waiting).await.expect("the task lives");
    }
}

impl Server {
    /// Performs a legacy opening, and checks everything that a client must do in it.
    pub(super) async fn open_legacy(&mut self, session: &str) {
        let initialize = self.take("initialize").await;
        assert_eq!(initialize.header("mcp-session-id"), None);
        assert_eq!(initialize.header("mcp-protocol-version"), None);
        let body = initialize.response(described());
        let kind = ("content-type", "application/json");
        initialize.reply(200, &[kind, ("Mcp-Session-Id", session)], body);
        let initialized = self.take("notifications/initialized").await;
        assert_eq!(initialized.header("mcp-session-id"), Some(session));
        initialized.status(202);
    }

    pub(super) async fn list(&mut self, tools: &[&str]) {
        let request = self.take("tools/list").await;
        request.answer(page(tools));
    }
}

fn call(tool: &str, arguments: &str) -> (Draft, Span) {
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":"host","method":"tools/call","params":{{"_meta":{{"progressToken":"token"}},"name":"{tool}","arguments":{arguments}}}}}"#
    );
    let params = message.find("{\"_meta").expect("params")..message.len() - 1;
    (holes(message, &["\"host\"", "\"token\""]), params)
}

pub(super) fn capabilities() -> Value {
    json!({ "capabilities": { "tools": {} } })
}

pub(super) fn described() -> Value {
    json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} } })
}

pub(super) fn page(tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
    json!({ "tools": tools })
}

/// The callers of a server; they record everything that comes back.
#[derive(Debug, Default)]
pub(super) struct Calls {
    heard: watch::Sender<HashMap<Ticket, CallRecord>>,
    /// Set once callers accept server requests: the call and number of each that came.
    asked: watch::Sender<Option<Vec<AskedFor>>>,
    /// Notifications, and the call of each.
    told: watch::Sender<Vec<(Option<Ticket>, String)>>,
}

pub(super) type AskedFor = (Option<Ticket>, Ticket);

#[derive(Debug, Default, Clone)]
struct CallRecord {
    progress: usize,
    ends: Vec<String>,
}

impl Calls {
    /// The answer to the call: the JSON of the result, or the text of the error. Waits for it.
    pub(super) async fn end(&self, ticket: Ticket) -> String {
        let mut heard = self.heard.subscribe();
        let ended =
            |heard: &HashMap<Ticket, CallRecord>| heard.get(&ticket).is_some_and(|one| !one.ends.is_empty());
        let waited = soon("an answer", heard.wait_for(ended)).await.expect("the sender is ours").clone();
        let ends = &waited[&ticket].ends;
        assert_eq!(ends.len(), 1, "{ends:?}");
        ends[0].clone()
    }

    /// Makes callers accept server requests from now on.
    pub(super) fn listen(&self) {
        self.asked.send_replace(Some(Vec::new()));
    }

    /// The call and the number of the `n`th server request.
    pub(super) async fn server_request(&self, n: usize) -> AskedFor {
        let mut asked = self.asked.subscribe();
        let enough = |asked: &Option<Vec<_>>| asked.as_ref().is_some_and(|asked| asked.len() > n);
        let asked = soon("a server request", asked.wait_for(enough)).await.expect("the sender is ours");
        asked.as_ref().expect("callers can be asked")[n]
    }

    /// The `n`th notification, and its call.
    pub(super) async fn notification(&self, n: usize) -> (Option<Ticket>, String) {
        let mut told = self.told.subscribe();
        soon("a notification", told.wait_for(|told| told.len() > n)).await.expect("the sender is ours")[n]
            .clone()
    }

    /// Waits for this many progress notifications; the call must not have ended.
    pub(super) async fn progressed(&self, ticket: Ticket, count: usize) {
        let mut heard = self.heard.subscribe();
        let enough =
            |heard: &HashMap<Ticket, CallRecord>| heard.get(&ticket).is_some_and(|one| one.progress == count);
        drop(soon("progress", heard.wait_for(enough)).await.expect("the sender is ours"));
        assert!(self.ends_of(ticket).is_empty());
    }

    /// All answers to this call so far, which must never be more than one.
    pub(super) fn ends_of(&self, ticket: Ticket) -> Vec<String> {
        self.heard.borrow().get(&ticket).map(|heard| heard.ends.clone()).unwrap_or_default()
    }
}

impl Caller for Calls {
    fn answered(&self, ticket: Ticket, answer: Answer) {
        let text = text_of(&answer);
        self.heard.send_modify(|heard| heard.entry(ticket).or_default().ends.push(text));
    }

    fn progressed(&self, ticket: Ticket, _: Bytes, _: Span) {
        assert!(self.ends_of(ticket).is_empty(), "progress of a call that has ended");
        self.heard.send_modify(|heard| heard.entry(ticket).or_default().progress += 1);
    }

    fn notified(&self, during: Option<Ticket>, server_notification: &ServerNotification) {
        let text = String::from_utf8_lossy(&server_notification.message).into_owned();
        self.told.send_modify(|told| told.push((during, text)));
    }

    fn server_request(
        &self,
        during: Option<Ticket>,
        server_request: ServerRequest,
    ) -> Result<(), ServerRequestError> {
        let mut listens = false;
        self.asked.send_modify(|asked| {
            if let Some(asked) = asked {
                asked.push((during, server_request.number));
                listens = true;
            }
        });
        if listens { Ok(()) } else { Err(ServerRequestError::NoHost) }
    }
}
