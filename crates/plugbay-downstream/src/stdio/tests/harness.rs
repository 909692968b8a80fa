//! A host, a session, and servers, all of them scripted by the test.

use std::{fmt::Display, io, sync::Arc};

use plugbay_core::{
    exchange::{Caller, ServerNotification, Ticket},
    host_registry::HostRegistry,
    level::Level,
    surface::Snapshot,
    wire::{Framer, Framing, Incoming},
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::{oneshot, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    agent::Agents,
    ranking::Ranker,
    scripted::{self, SECOND, Servers, soon},
    stdio::serve,
};

pub(super) use crate::scripted::{
    Forwarded, INITIALIZE, INITIALIZED, MESSAGE_LIMIT, call, cancel, list, listen, modern, request, server,
    snapshot, snapshot_in, unsettled,
};

pub(super) struct Harness {
    pub(super) snapshots: watch::Sender<Snapshot>,
    pub(super) serving: JoinHandle<io::Result<()>>,
    /// `None` when the host has closed its end.
    input: Option<DuplexStream>,
    stop: Option<oneshot::Sender<()>>,
    output: DuplexStream,
    framer: Framer,
    servers: Servers,
    host_registry: Arc<HostRegistry>,
    pub(super) ranker: Arc<Ranker>,
    pub(super) agents: Arc<Agents>,
    pub(super) suspended: Arc<crate::SuspendedCalls>,
    pub(super) workers: Arc<crate::Workers>,
    pub(super) results: Arc<crate::Results>,
}

impl Harness {
    /// A session with a server `s` that has the tool `echo`.
    pub(super) fn new() -> Self {
        Self::with(snapshot(&["echo"], true))
    }

    pub(super) fn with(first: Snapshot) -> Self {
        let (gateway, snapshots, servers) = scripted::gateway(first);
        let (host_registry, ranker) = (Arc::clone(&gateway.host_registry), Arc::clone(&gateway.ranker));
        let agents = Arc::clone(&gateway.agents);
        let suspended = Arc::clone(&gateway.suspended);
        let (workers, results) = (Arc::clone(&gateway.workers), Arc::clone(&gateway.results));
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
        Self {
            snapshots,
            serving,
            input: Some(input),
            stop: Some(stop),
            output,
            framer,
            servers,
            host_registry,
            ranker,
            agents,
            suspended,
            workers,
            results,
        }
    }

    /// The same, with a legacy host that has completed its opening.
    pub(super) async fn legacy() -> Self {
        let mut harness = Self::new();
        harness.open().await;
        harness
    }

    pub(super) async fn open(&mut self) {
        self.say(INITIALIZE).await;
        assert_eq!(self.hear().await["id"], "init");
        self.say(INITIALIZED).await;
        // Messages are answered in order, so after this answer the opening is over.
        self.ask(request("\"over\"", "ping", "{}")).await;
    }

    /// Waits until no worker thread is busy: only then does a paused clock move on.
    pub(super) async fn workers_idle(&self) {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }

    // --- what servers do

    /// A server notification that belongs to no call.
    pub(super) fn tell(&self, server_notification: &ServerNotification) {
        self.host_registry.each(|host| host.notified(None, server_notification));
    }

    /// The log level that servers are notified of.
    pub(super) async fn log_level(&mut self) -> Option<Level> {
        self.servers.log_level_changed().await;
        self.host_registry.log_level()
    }

    pub(super) async fn item_subscribed(&mut self) -> String {
        self.servers.item_subscribed().await
    }

    // --- what the host does

    pub(super) async fn say(&mut self, line: impl Display) {
        self.write(format!("{line}\n").as_bytes()).await;
    }

    /// Writes bytes; the gateway may already have ended.
    pub(super) async fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the host has not closed its end");
        let _ = soon("room to write", input.write_all(bytes)).await;
    }

    pub(super) fn close(&mut self) {
        self.input = None;
    }

    /// The host disconnects. Waits until everything it sent has been handled.
    pub(super) async fn leave(&mut self) {
        self.close();
        soon("the end", &mut self.serving).await.expect("no panic").expect("no trouble");
    }

    /// Tells the gateway itself to end.
    pub(super) fn stop(&mut self) {
        self.stop.take().expect("once").send(()).expect("the session goes on");
    }

    /// The next message, unparsed; `None` when the gateway has closed its end.
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

    /// Expects that the host gets nothing more unless something else happens.
    pub(super) async fn hear_nothing(&mut self) {
        if let Ok(Some(message)) = timeout(SECOND, self.heard()).await {
            panic!("unexpected: {message}");
        }
    }

    /// Sends a request and returns the answer.
    pub(super) async fn ask(&mut self, line: impl Display) -> Value {
        self.say(line).await;
        self.hear().await
    }

    /// Reads a few bytes a second; `None` at the end.
    pub(super) async fn read_slowly(&mut self) -> Option<Vec<u8>> {
        sleep(SECOND).await;
        let mut bytes = vec![0; 1000];
        let count = soon("bytes", self.output.read(&mut bytes)).await.ok().filter(|count| *count > 0)?;
        bytes.truncate(count);
        Some(bytes)
    }

    /// The host closes the end that it reads from, and keeps the other one open.
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

    /// Waits until the gateway's side has ended; returns how.
    pub(super) async fn ended(self) -> io::Result<()> {
        soon("the end", self.serving).await.expect("no panic")
    }

    // --- what reaches the servers

    pub(super) fn held(&self) -> String {
        self.servers.held()
    }

    pub(super) async fn forwarded(&mut self) -> Forwarded {
        self.servers.forwarded().await
    }

    pub(super) async fn cancelled(&mut self) -> (Ticket, String) {
        self.servers.cancelled().await
    }

    /// The number of a server request, and the answer that its server gets.
    pub(super) async fn replied(&mut self) -> (u64, String) {
        let (number, text) = self.servers.replied().await;
        (number.0, text)
    }

    /// A host's notification, and the server that it reaches.
    pub(super) async fn notified(&mut self) -> (String, String) {
        self.servers.notified().await
    }

    pub(super) async fn roots_changed(&mut self) -> String {
        self.servers.roots_changed().await
    }

    /// The host that a server can send requests to outside of any call.
    pub(super) fn only_host(&self) -> Option<Arc<dyn Caller>> {
        self.host_registry.only()
    }

    /// The server that is asked to list again.
    pub(super) async fn refreshed(&mut self) -> String {
        self.servers.refreshed().await
    }

    pub(super) async fn nothing_forwarded(&mut self) {
        self.servers.nothing_forwarded().await;
    }
}
