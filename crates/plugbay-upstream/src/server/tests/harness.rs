//! The gateway's side: the actor of one server, its callers, and its reports.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Dialect, Offer},
    era::Era,
    exchange::{Answer, Call, Caller, Ticket, Tickets},
    failure::Failure,
    name::ServerName,
    task::TaskRole,
    wire::{Draft, Hole, Span},
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{
    super::{Command, Condition, Report, ServerContext, ServerHandle},
    peer::Peer,
    soon,
};
use crate::{
    Starts, Vitals,
    link::{Launched, Launcher},
    observers::Observers,
    spec::{DEFAULT_MESSAGE_LIMIT, Framing, ServerSpec, StdioSpec, Timeouts, Transport},
};

/// The parts of the setup that a test may change.
pub(super) struct Setup {
    pub(super) timeouts: Timeouts,
    pub(super) framing: Framing,
    pub(super) known: Option<Dialect>,
    /// How many bytes the pipe holds while nobody reads.
    pub(super) pipe: usize,
    pub(super) message_limit: usize,
    /// The launches that fail at once, counted from 0.
    pub(super) broken: fn(usize) -> bool,
    /// The queue of starts, with scripted data about processes.
    pub(super) starts: Arc<Starts>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            framing: Framing::Auto,
            known: Some(silent()),
            pipe: 64 * 1024,
            message_limit: DEFAULT_MESSAGE_LIMIT,
            broken: |_| false,
            starts: Starts::with(4, Arc::new(Scripted::default())),
        }
    }
}

/// Scripted data of the system: by default an idle server on an idle machine.
#[derive(Default)]
pub(crate) struct Scripted {
    /// The processor time that the server uses between two looks, in seconds.
    pub(crate) uses: AtomicU64,
    used: AtomicU64,
    /// If not 0, no processor is free.
    pub(crate) saturated: AtomicU64,
}

impl Vitals for Scripted {
    fn cpu(&self, _: i32) -> Option<Duration> {
        self.cpu_without_process()
    }

    fn cpu_without_process(&self) -> Option<Duration> {
        let uses = self.uses.load(Relaxed);
        Some(Duration::from_secs(self.used.fetch_add(uses, Relaxed) + uses))
    }

    fn is_saturated(&self) -> bool {
        self.saturated.load(Relaxed) > 0
    }
}

/// The dialect of a legacy server that is not asked whether it is modern.
pub(super) fn silent() -> Dialect {
    Dialect { asked_in_vain: Some(u64::MAX), ..Era::Legacy.into() }
}

pub(super) struct Harness {
    pub(super) handle: ServerHandle,
    pub(super) calls: Arc<Calls>,
    pub(super) context: ServerContext,
    peers: mpsc::UnboundedReceiver<Peer>,
    launches: Arc<Mutex<Vec<Instant>>>,
    reports: mpsc::UnboundedReceiver<Report>,
}

impl Harness {
    pub(super) fn new(setup: Setup) -> Self {
        let Setup { timeouts, framing, known, pipe, message_limit, broken, starts } = setup;
        let (arrivals, peers) = mpsc::unbounded_channel();
        let (report_sender, reports) = mpsc::unbounded_channel();
        let launches = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&launches);
        let launcher: Launcher = Arc::new(move |_, _| {
            let mut log = log.lock().unwrap();
            log.push(Instant::now());
            if broken(log.len() - 1) {
                return Err(Failure::new("there is no such program", Vec::new()));
            }
            let (ours, theirs) = tokio::io::duplex(pipe);
            let _ = arrivals.send(Peer::new(theirs));
            let (reader, writer) = tokio::io::split(ours);
            Ok(Launched { reader: Box::new(reader), writer: Box::new(writer), process: None })
        });
        let tickets = Arc::new(Tickets::default());
        let spec = ServerSpec { timeouts, message_limit, ..spec(framing) };
        let observers = Observers::reporting_to(report_sender, spec.clone());
        let context = ServerContext::new(launcher, tickets, starts, Arc::default(), observers);
        let handle = ServerHandle::spawn(spec, known, context.clone());
        Self { handle, calls: Arc::default(), context, peers, launches, reports }
    }

    /// A harness with a server that was started, opened and listed, and offers one tool.
    pub(super) async fn ready(setup: Setup, era: Era) -> (Self, Peer) {
        let known = if era == Era::Modern { era.into() } else { silent() };
        let mut harness = Self::new(Setup { known: Some(known), ..setup });
        harness.handle.refresh();
        let mut peer = harness.launched().await;
        peer.open(era).await;
        peer.list(&["echo"]).await;
        if era == Era::Modern {
            peer.expect("subscriptions/listen").await;
        }
        assert_eq!(harness.report().await, "echo");
        (harness, peer)
    }

    // --- what hosts do

    /// Calls a tool. Its name also marks the answer.
    pub(super) fn call(&self, tool: &str) -> Ticket {
        self.call_within(tool, None)
    }

    pub(super) fn call_within(&self, tool: &str, timeout: Option<Duration>) -> Ticket {
        let ticket = self.context.tickets.next();
        let call = self.calls.call(ticket, tool, timeout);
        self.handle.send(Command::Forward(call));
        ticket
    }

    pub(super) fn cancel(&self, ticket: Ticket) {
        self.handle.send(Command::Cancel { ticket, notification: cancellation() });
    }

    // --- what happens

    /// The server's end of the next launch.
    pub(super) async fn launched(&mut self) -> Peer {
        soon("a launch", self.peers.recv()).await.expect("the launcher is there")
    }

    /// When the server was launched, in seconds since `start`.
    pub(super) fn launches(&self, start: Instant) -> Vec<f64> {
        self.launches.lock().unwrap().iter().map(|at| (*at - start).as_secs_f64()).collect()
    }

    /// The next report as text: the names of the tools, or what failed.
    pub(super) async fn report(&mut self) -> String {
        let report = soon("a report", self.reports.recv()).await.expect("the task reports");
        match report.outcome {
            Ok(offer) => offer.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" "),
            Err(failure) => failure.to_string(),
        }
    }

    /// The next report, unchanged.
    pub(super) async fn whole_report(&mut self) -> Report {
        soon("a report", self.reports.recv()).await.expect("the task reports")
    }

    /// The next report, which must be an offer.
    pub(super) async fn offer(&mut self) -> Arc<Offer> {
        let report = soon("a report", self.reports.recv()).await.expect("the task reports");
        report.outcome.expect("an offer")
    }

    /// The next report, which must be a failure, and the dialect of the next start.
    pub(super) async fn failure(&mut self) -> (Arc<Failure>, Dialect) {
        let report = soon("a report", self.reports.recv()).await.expect("the task reports");
        (report.outcome.expect_err("a failure"), report.dialect)
    }

    /// Waits until the status matches.
    pub(super) async fn condition(&self, wanted: impl Fn(&Condition) -> bool) {
        let mut status = self.handle.status();
        let waiting = status.wait_for(|status| wanted(&status.condition));
        soon("the condition", waiting).await.expect("the task lives");
    }
}

pub(crate) fn spec(framing: Framing) -> ServerSpec {
    let stdio = StdioSpec {
        command: "scripted".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        pass_env: Vec::new(),
        cwd: None,
        framing,
        origin: crate::spec::Origin::default(),
        references: plugbay_core::secret::KnownSecrets::default(),
    };
    ServerSpec {
        name: ServerName::parse("s").unwrap(),
        transport: Transport::Stdio(stdio),
        timeouts: Timeouts::default(),
        message_limit: DEFAULT_MESSAGE_LIMIT,
        sanitize: true,
    }
}

pub(super) fn cancellation() -> Draft {
    let text = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"host"}}"#;
    holes(text.to_owned(), &["\"host\""])
}

/// The host's message with holes at these places, which the gateway fills with its ticket.
pub(crate) fn holes(text: String, places: &[&str]) -> Draft {
    let spans: Vec<Span> = places
        .iter()
        .map(|place| {
            let at = text.find(place).expect("a place to fill");
            at..at + place.len()
        })
        .collect();
    let draft = Draft::new(Bytes::from(text));
    spans.into_iter().fold(draft, |draft, span| draft.with(span, Hole::Ticket))
}

/// The JSON of the result or error, or the text of the failure.
pub(crate) fn text_of(answer: &Answer) -> String {
    match answer {
        Answer::Response { message, head, .. } => {
            String::from_utf8_lossy(&message[head.payload.clone().expect("a payload")]).into_owned()
        }
        Answer::Failed(error) => error.to_string(),
    }
}

/// The callers of a server; they record everything that comes back.
#[derive(Debug, Default)]
pub(super) struct Calls {
    ends: watch::Sender<HashMap<Ticket, Vec<String>>>,
    progress: Mutex<Vec<Ticket>>,
    /// Whether callers cannot take more at the moment.
    pressed: watch::Sender<bool>,
    wakers: Mutex<Vec<Waker>>,
}

impl Calls {
    pub(super) fn call(self: &Arc<Self>, ticket: Ticket, tool: &str, timeout: Option<Duration>) -> Call {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":"host","method":"tools/call","params":{{"_meta":{{"progressToken":"token"}},"name":"{tool}"}}}}"#
        );
        let params = message.find("{\"_meta").expect("params")..message.len() - 1;
        let request = holes(message, &["\"host\"", "\"token\""]);
        let caller = Arc::clone(self) as Arc<dyn Caller>;
        Call {
            ticket,
            caller,
            request,
            era: Era::Legacy,
            params: Some(params),
            timeout,
            task_role: TaskRole::None,
        }
    }

    /// The end of the call: the result's JSON, or the error message. Waits for it.
    pub(super) async fn end(&self, ticket: Ticket) -> String {
        let mut ends = self.ends.subscribe();
        soon("an answer", ends.wait_for(|ends| ends.contains_key(&ticket)))
            .await
            .expect("the sender is ours");
        let ends = self.ends_of(ticket);
        assert_eq!(ends.len(), 1, "{ends:?}");
        ends.into_iter().next().unwrap()
    }

    /// All ends of this call so far, which must never be more than one.
    pub(super) fn ends_of(&self, ticket: Ticket) -> Vec<String> {
        self.ends.borrow().get(&ticket).cloned().unwrap_or_default()
    }

    /// Sets whether the callers can take no more.
    pub(super) fn press(&self, pressed: bool) {
        self.pressed.send_replace(pressed);
        self.wakers.lock().unwrap().drain(..).for_each(Waker::wake);
    }

    pub(super) fn progress_of(&self, ticket: Ticket) -> usize {
        self.progress.lock().unwrap().iter().filter(|told| **told == ticket).count()
    }
}

impl Caller for Calls {
    fn answered(&self, ticket: Ticket, answer: Answer) {
        let text = text_of(&answer);
        self.ends.send_modify(|ends| ends.entry(ticket).or_default().push(text));
    }

    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        if !*self.pressed.borrow() {
            return Poll::Ready(());
        }
        self.wakers.lock().unwrap().push(context.waker().clone());
        Poll::Pending
    }

    fn progressed(&self, ticket: Ticket, notification: Bytes, token: Span) {
        assert_eq!(notification[token], *ticket.0.to_string().as_bytes());
        assert!(self.ends_of(ticket).is_empty(), "progress of a call that has ended");
        self.progress.lock().unwrap().push(ticket);
    }
}
