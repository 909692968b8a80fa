//! A scripted MCP server: the test plays its end of a connection line by line.

use std::fmt::Display;

use plugbay_core::{
    era::Era,
    wire::{Framer, Framing, Incoming},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    time::timeout,
};

use super::{SECOND, soon};

pub(super) struct Peer {
    stream: DuplexStream,
    framer: Framer,
}

impl Peer {
    pub(super) fn new(stream: DuplexStream) -> Self {
        Self { stream, framer: Framer::new(1_000_000) }
    }

    // --- receiving

    /// The next message, unparsed; `None` when the gateway has closed its end.
    pub(super) async fn receive(&mut self) -> Option<String> {
        loop {
            if let Some(item) = self.framer.take() {
                let Incoming::Message(message) = item else { panic!("no message: {item:?}") };
                return Some(String::from_utf8(message.to_vec()).expect("UTF-8"));
            }
            match self.stream.read_buf(self.framer.buffer()).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.framer.filled(count),
            }
        }
    }

    pub(super) async fn next(&mut self) -> Option<Value> {
        let message = soon("a message", self.receive()).await?;
        Some(serde_json::from_str(&message).expect("JSON"))
    }

    /// The next message, which must have this method.
    pub(super) async fn expect(&mut self, method: &str) -> Value {
        let message = self.next().await.unwrap_or_else(|| panic!("closed instead of {method}"));
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// The next message, which must be a call of this tool.
    pub(super) async fn expect_call(&mut self, tool: &str) -> Value {
        let call = self.expect("tools/call").await;
        assert_eq!(call["params"]["name"], tool);
        call
    }

    pub(super) async fn expect_nothing(&mut self) {
        if let Ok(Some(message)) = timeout(SECOND, self.receive()).await {
            panic!("unexpected: {message}");
        }
    }

    pub(super) async fn expect_end(&mut self) {
        assert_eq!(self.next().await, None);
    }

    /// How the gateway delimits its messages.
    pub(super) fn framing(&self) -> Option<Framing> {
        self.framer.seen()
    }

    // --- sending

    /// Writes a line; the gateway may be gone.
    pub(super) async fn say(&mut self, line: impl Display) {
        self.say_bytes(format!("{line}\n").as_bytes()).await;
    }

    /// Writes bytes unchanged.
    pub(super) async fn say_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    pub(super) async fn answer(&mut self, request: &Value, result: Value) {
        self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    pub(super) async fn refuse(&mut self, request: &Value, message: &str) {
        let error = json!({ "code": -32601, "message": message });
        self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
    }

    pub(super) async fn notify(&mut self, method: &str, params: Value) {
        self.say(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    pub(super) async fn progress(&mut self, call: &Value) {
        self.notify("notifications/progress", json!({ "progressToken": call["id"], "progress": 1 })).await;
    }

    pub(super) async fn list_changed(&mut self) {
        self.notify("notifications/tools/list_changed", json!({})).await;
    }

    // --- whole passages

    /// Performs an opening in this era; the first list is still to come.
    pub(super) async fn open(&mut self, era: Era) {
        let request = self.next().await.expect("an opening request");
        let capabilities = json!({ "capabilities": { "tools": {} } });
        match (era, request["method"].as_str()) {
            (Era::Modern, _) => return self.answer(&request, capabilities).await,
            (Era::Legacy, Some("initialize")) => self.answer(&request, capabilities).await,
            (Era::Legacy, _) => {
                self.refuse(&request, "what?").await;
                let request = self.expect("initialize").await;
                self.answer(&request, capabilities).await;
            }
        }
        self.expect("notifications/initialized").await;
    }

    pub(super) async fn list(&mut self, tools: &[&str]) {
        let request = self.expect("tools/list").await;
        self.answer(&request, page(tools)).await;
    }
}

pub(super) fn page(tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
    json!({ "tools": tools })
}
