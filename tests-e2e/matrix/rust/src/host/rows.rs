//! The rows of the matrix, one function each: what is asked of a server, and what was seen of it.

use std::pin::Pin;

use rmcp::{
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams,
        GetTaskParams, LoggingLevel, RequestMetaObject, RequestParamsMeta, ServerResult,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, TaskPayload,
        UnsubscribeRequestParams,
    },
    service::PeerRequestOptions,
};
use serde_json::{Map, Value, json};
use tokio::time::{Duration, sleep, timeout};

use super::{
    PATIENCE,
    connection::Host,
    notifications::{Kind, List},
    visit::{Seen, Visit, object, text_of},
};
use crate::Era;

type Look<'a> = Pin<Box<dyn Future<Output = Seen> + 'a>>;

pub(super) async fn go_through(host: &Host, server: &str) -> Map<String, Value> {
    let visit = Visit { host, server };
    let rows: [(&str, Look<'_>); 15] = [
        ("tools", Box::pin(visit.tools())),
        ("resources", Box::pin(visit.resources())),
        ("prompts", Box::pin(visit.prompts())),
        ("completion", Box::pin(visit.completion())),
        ("sampling", Box::pin(visit.ask("sampling"))),
        ("elicitation form", Box::pin(visit.ask("form"))),
        ("elicitation url", Box::pin(visit.ask("url"))),
        ("roots", Box::pin(visit.ask("roots"))),
        ("progress", Box::pin(visit.progress())),
        ("cancellation", Box::pin(visit.cancellation())),
        ("logging", Box::pin(visit.logging())),
        ("pagination", Box::pin(visit.pagination())),
        ("list change", Box::pin(visit.list_change())),
        ("resource update", Box::pin(visit.resource_update())),
        ("tasks", Box::pin(visit.tasks())),
    ];
    let mut seen = Map::new();
    for (row, look) in rows {
        let outcome = timeout(PATIENCE, look).await.unwrap_or_else(|late| Err(late.into()));
        let outcome = outcome.unwrap_or_else(|trouble| json!({ "failed": trouble.to_string() }));
        seen.insert(row.to_owned(), outcome);
    }
    seen
}

impl Visit<'_> {
    async fn tools(&self) -> Seen {
        let tools = self.host.client.list_all_tools().await?;
        let result = self.call("echo", json!({ "message": "héllo \"world\" 😀" })).await?;
        let failure = self.call("fail", json!({})).await?;
        Ok(json!({
            "definition": tools.iter().find(|tool| tool.name == self.exposed("echo")),
            "result": {
                "content": result.content,
                "structuredContent": result.structured_content,
                "from": result.meta.as_ref().and_then(|meta| meta.0.get("example.com/from")),
            },
            "failure": { "isError": failure.is_error, "text": text_of(&failure)? },
        }))
    }

    async fn resources(&self) -> Seen {
        let all = self.host.client.list_all_resources().await?;
        Ok(json!({
            "listed": all.iter().find(|resource| resource.uri == self.uri("notes/third")),
            "text": self.read("notes/watched").await?,
            "blob": self.read("notes/pixel").await?,
            "byTemplate": self.read("note/7").await?,
        }))
    }

    async fn prompts(&self) -> Seen {
        let name = self.exposed("greet");
        let all = self.host.client.list_all_prompts().await?;
        let listed = all.iter().find(|prompt| prompt.name == name);
        let asked = GetPromptRequestParams::new(&name).with_arguments(object(json!({ "who": "Ada" })));
        Ok(json!({ "listed": listed, "messages": self.host.client.get_prompt(asked).await?.messages }))
    }

    async fn completion(&self) -> Seen {
        let client = &self.host.client;
        Ok(json!({
            "prompt": client.complete_prompt_argument(self.exposed("greet"), "who", "par", None).await?,
            "template": client.complete_resource_argument(self.uri("note/{id}"), "id", "par", None).await?,
        }))
    }

    async fn ask(&self, what: &str) -> Seen {
        let answer = self.call("ask", json!({ "what": what })).await?;
        Ok(serde_json::from_str(text_of(&answer)?)?)
    }

    /// The call ends when its last step is known to have come.
    async fn progress(&self) -> Seen {
        let count = CallToolRequest::new(CallToolRequestParams::new(self.exposed("count")));
        let options = PeerRequestOptions::no_options();
        let call = self.host.client.send_cancellable_request(count.into(), options).await?;
        let token = json!(call.progress_token);
        let steps = || {
            let mut steps = self.host.notifications.of(Kind::Progress);
            steps.retain(|step| step["progressToken"] == token);
            steps
        };
        self.host.notifications.until(async || Ok(steps().len() == 3)).await?;
        let proceeded = self.call("proceed", json!({})).await?;
        let ServerResult::CallToolResult(counted) = call.await_response().await? else {
            return Err("this is no result of a tool".into());
        };
        let step = |step: &Value| json!([step["progress"], step["total"], step["message"]]);
        Ok(json!({
            "steps": steps().iter().map(step).collect::<Vec<_>>(),
            "text": text_of(&counted)?,
            "proceeded": text_of(&proceeded)?,
        }))
    }

    /// Who stops waiting for a call cancels it.
    async fn cancellation(&self) -> Seen {
        self.host.notifications.forget(Kind::Progress);
        let ended = tokio::select! {
            answer = self.call("wait", json!({})) => { answer?; "answered" }
            begun = self.host.notifications.until(async || Ok(self.host.notifications.has(Kind::Progress))) => { begun?; "given up" }
        };
        let cancelled = self.call("cancelled", json!({})).await?;
        Ok(json!({ "ended": ended, "text": text_of(&cancelled)? }))
    }

    /// Of two messages the less serious one must not come.
    async fn logging(&self) -> Seen {
        self.host.notifications.forget(Kind::Log);
        let mut log = CallToolRequestParams::new(self.exposed("log"));
        match self.host.era {
            Era::Legacy => self.host.client.set_level(SetLevelRequestParams::new(LoggingLevel::Info)).await?,
            Era::Modern => {
                let mut meta = RequestMetaObject::new();
                meta.set_log_level(LoggingLevel::Info);
                log.set_meta(meta);
            }
        }
        self.host.client.call_tool(log).await?;
        self.host.notifications.until(async || Ok(self.host.notifications.has(Kind::Log))).await?;
        Ok(self.host.notifications.of(Kind::Log).into())
    }

    async fn pagination(&self) -> Seen {
        let answer = self.call("seen", json!({})).await?;
        let seen: Value = serde_json::from_str(text_of(&answer)?)?;
        Ok(json!({
            "tools": self.own(List::Tools).await?.len(),
            "resources": self.own(List::Resources).await?.len(),
            "templates": self.own(List::Templates).await?.len(),
            "prompts": self.own(List::Prompts).await?.len(),
            "era": seen["era"],
            "cursors": seen["cursors"],
        }))
    }

    async fn list_change(&self) -> Seen {
        let notifications = &self.host.notifications;
        let grown = [
            (List::Tools, self.exposed("grown")),
            (List::Resources, self.uri("notes/grown")),
            (List::Prompts, self.exposed("grown")),
        ];
        for (list, _) in &grown {
            notifications.forget(Kind::Change(*list));
        }
        self.call("grow", json!({})).await?;
        for (list, entry) in grown {
            let known =
                async || Ok(notifications.has(Kind::Change(list)) && self.own(list).await?.contains(&entry));
            notifications.until(known).await?;
        }
        Ok(json!(["tools", "resources", "prompts"]))
    }

    async fn resource_update(&self) -> Seen {
        let Host { client, notifications, era } = self.host;
        let uri = self.uri("notes/watched");
        let listening = match era {
            Era::Legacy => {
                client.subscribe(SubscribeRequestParams::new(&uri)).await?;
                None
            }
            Era::Modern => {
                let wanted = SubscriptionFilter::builder().resource_subscription(&uri).build();
                Some(self.host.listen(wanted).await?)
            }
        };
        notifications.forget(Kind::Update);
        self.call("touch", json!({})).await?;
        notifications.until(async || Ok(notifications.has(Kind::Update))).await?;
        let text = self.read("notes/watched").await?["text"].take();
        match listening {
            None => client.unsubscribe(UnsubscribeRequestParams::new(uri)).await?,
            Some(listening) => listening.abort(),
        }
        Ok(json!({ "updated": notifications.of(Kind::Update), "text": text }))
    }

    /// As a task where the host is given one, else as a call that takes as long as it takes.
    async fn tasks(&self) -> Seen {
        let client = &self.host.client;
        let name = self.exposed("work");
        if !client.list_all_tools().await?.iter().any(|tool| tool.name == name) {
            return Ok(json!("no such tool"));
        }
        let task = match client.call_tool_once(CallToolRequestParams::new(name)).await? {
            CallToolResponse::Complete(result) => return Ok(json!({ "text": text_of(&result)? })),
            CallToolResponse::Task(created) => created.task,
            other => return Err(format!("neither a result nor a task: {other:?}").into()),
        };
        loop {
            match client.get_task(GetTaskParams::new(&task.task_id)).await?.task.payload {
                TaskPayload::Working => {
                    sleep(Duration::from_millis(task.poll_interval_ms.unwrap_or(50))).await;
                }
                TaskPayload::Completed { result } => {
                    let result: CallToolResult = serde_json::from_value(result.into())?;
                    return Ok(json!({ "task": task.status, "text": text_of(&result)? }));
                }
                other => return Err(format!("the task has ended without a result: {other:?}").into()),
            }
        }
    }
}
