//! A host with an agent run, and a model whose answers the test writes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Catalog, Change, Offer, Tool},
    era::Era,
    exposure::{Exposure, Mode},
    model::{Model, ModelError, Prompt, Reply, ReplyFuture, Stop, TextListener, ToolCall, Turn, Usage},
    surface::{AgentAccess, Effect, Layout, Snapshot},
};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::{mpsc, oneshot};

use crate::{
    agent::{Limits, Terms},
    ranking::Chosen,
    scripted::{INITIALIZED, request, server, soon},
    stdio::tests::harness::Harness,
};

pub(super) const LIMITS: Limits = Limits { calls: 3, turns: 6, tokens: 1000, time: Duration::from_secs(120) };

/// The cost of every answer, in tokens.
pub(super) const COST: u64 = 100;

#[derive(Debug)]
struct Scripted(mpsc::UnboundedSender<Asked>);

pub(super) struct Asked {
    pub(super) prompt: Prompt,
    heard: Option<TextListener>,
    answer: oneshot::Sender<Result<Reply, ModelError>>,
}

impl Model for Scripted {
    fn ask(&self, prompt: Prompt, heard: Option<TextListener>) -> ReplyFuture<'_> {
        let (answer, answered) = oneshot::channel();
        let _ = self.0.send(Asked { prompt, heard, answer });
        Box::pin(async { answered.await.expect("the test answers") })
    }
}

impl Asked {
    /// The conversation so far, one line per turn; failed results are marked with `!`.
    pub(super) fn turns(&self) -> Vec<String> {
        let line = |turn: &Turn| match turn {
            Turn::User(text) => format!("user: {text}"),
            Turn::Model { text, calls } => {
                let calls: Vec<_> =
                    calls.iter().map(|call| format!("{} {}", call.name, call.arguments.get())).collect();
                format!("model: {text}{}", calls.join(", "))
            }
            Turn::Results(results) => {
                let results: Vec<_> = results
                    .iter()
                    .map(|result| format!("{}{}", result.text, if result.failed { "!" } else { "" }))
                    .collect();
                format!("result: {}", results.join(", "))
            }
        };
        self.prompt.turns.iter().map(line).collect()
    }

    pub(super) fn answer(self, reply: Reply) {
        let _ = self.answer.send(Ok(reply));
    }

    /// Sends this text before the answer.
    pub(super) fn mutter(&mut self, text: &str) {
        self.heard.as_mut().expect("somebody listens")(text);
    }

    pub(super) fn fail(self, trouble: ModelError) {
        let _ = self.answer.send(Err(trouble));
    }

    pub(super) async fn gone(&mut self) {
        self.answer.closed().await;
    }
}

pub(super) fn says(text: &str) -> Reply {
    Reply { text: text.to_owned(), usage: Usage { input: COST - 10, output: 10 }, ..Reply::default() }
}

/// A reply that calls these tools with these raw arguments.
pub(super) fn calls(calls: &[(&str, &str)]) -> Reply {
    let calls = calls.iter().enumerate().map(|(number, (name, arguments))| ToolCall {
        id: number.to_string(),
        name: (*name).to_owned(),
        arguments: RawValue::from_string((*arguments).to_owned()).unwrap(),
        signature: None,
    });
    Reply { calls: calls.collect(), stop: Stop::Tools, ..says("") }
}

/// A server `s` whose tools read, add and drop numbers.
pub(super) fn snapshot(agents: AgentAccess) -> Snapshot {
    snapshot_where_adding(agents, json!({ "destructiveHint": false }))
}

/// The same, with these annotations of `add`.
pub(super) fn snapshot_where_adding(agents: AgentAccess, annotations: Value) -> Snapshot {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let tool = |name: &str, annotations: Value| {
        let definition = json!({ "name": name, "inputSchema": schema, "annotations": annotations });
        Tool::parse(Bytes::from(definition.to_string())).unwrap()
    };
    let tools = vec![
        tool("read", json!({ "readOnlyHint": true })),
        tool("add", annotations),
        tool("drop", json!({})),
    ];
    let offer = Arc::new(Offer::new(Era::Legacy, None, Some("Something else.".to_owned()), tools));
    let catalog = Catalog::default().apply(Change::Listed(server(), offer));
    let exposure = Exposure { instructions: Some("Holds numbers.".to_owned()), ..Exposure::default() };
    let exposures = BTreeMap::from([(server(), exposure)]);
    let layout = Layout { mode: Some(Mode::All), exposures, name_limit: 64, agents, ..Layout::default() };
    Snapshot::new(Arc::new(catalog), Arc::new(layout), true)
}

pub(super) struct AgentHarness {
    pub(super) harness: Harness,
    server_requests: mpsc::UnboundedReceiver<Asked>,
    model: Arc<dyn Model>,
}

impl AgentHarness {
    pub(super) async fn new() -> Self {
        Self::with("{}").await
    }

    /// A harness with a legacy host that has these capabilities.
    pub(super) async fn with(capabilities: &str) -> Self {
        let mut agent = Self::unopened();
        let params = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}"#);
        agent.harness.ask(request("\"init\"", "initialize", &params)).await;
        agent.harness.say(INITIALIZED).await;
        agent
    }

    pub(super) fn unopened() -> Self {
        let harness = Harness::with(snapshot(AgentAccess::Everybody));
        let (asked, server_requests) = mpsc::unbounded_channel();
        let agent = Self { harness, server_requests, model: Arc::new(Scripted(asked)) };
        agent.agree(LIMITS, Effect::Reads);
        agent
    }

    pub(super) fn agree(&self, limits: Limits, unasked: Effect) {
        let model = Chosen::Model(Arc::clone(&self.model));
        let terms = Terms { model, limits, unasked, instructions: Some("Be kind.".to_owned()) };
        self.harness.agents.choose(Some(terms));
    }

    pub(super) async fn want(&mut self, query: &str) {
        self.call(json!({ "query": query })).await;
    }

    pub(super) async fn call(&mut self, arguments: Value) {
        let params = json!({ "name": "natural_language", "arguments": arguments });
        self.harness.say(request(7, "tools/call", &params.to_string())).await;
    }

    /// The next request to the model.
    pub(super) async fn asked(&mut self) -> Asked {
        soon("a server request to the model", self.server_requests.recv()).await.expect("the model is there")
    }

    /// The text and the record of the answer, and whether it failed.
    pub(super) async fn told(&mut self) -> (String, String, bool) {
        let answer = self.harness.hear().await;
        assert_eq!(answer["id"], 7, "{answer}");
        let text =
            |at: usize| answer["result"]["content"][at]["text"].as_str().unwrap_or_default().to_owned();
        (text(0), text(1), answer["result"]["isError"] == true)
    }
}
