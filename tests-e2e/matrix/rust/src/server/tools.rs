//! What each tool of the vocabulary does.

use rmcp::{
    Peer, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CreateTaskResult, JsonObject,
        LoggingLevel, LoggingMessageNotificationParam, MetaObject, ProgressNotificationParam,
        PromptListChangedNotification, ResourceListChangedNotification, ResourceUpdatedNotification,
        ResourceUpdatedNotificationParam, ToolListChangedNotification,
    },
    task_manager::TaskOptions,
};
use serde_json::{Value, json};

use super::{Context, Server};
use crate::{Era, Trouble};

impl Server {
    pub(super) async fn call(
        &self,
        asked: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, Trouble> {
        let given = |key: &str| text(asked.arguments.as_ref(), key);
        let result = match asked.name.as_ref() {
            "echo" => self.echo(given("message")),
            "fail" => CallToolResult::error(vec![ContentBlock::text("as it always does")]),
            "seen" => self.seen(&context),
            "ask" => return self.ask(given("what"), &asked, &context).await,
            "count" => {
                for progress in 1..=3 {
                    step(&context, progress, 3).await?;
                }
                self.proceeding.opened().await;
                said("counted")
            }
            "proceed" => {
                self.proceeding.open();
                said("go on")
            }
            "wait" => {
                step(&context, 1, 2).await?;
                context.ct.cancelled().await;
                self.cancelling.open();
                said("never read")
            }
            "cancelled" => {
                self.cancelling.opened().await;
                said("a wait was cancelled")
            }
            "log" => {
                self.log(&context, LoggingLevel::Debug, json!(format!("a detail of {}", self.name))).await?;
                self.log(&context, LoggingLevel::Warning, json!({ "from": self.name, "n": 1.5 })).await?;
                said("logged")
            }
            "grow" => {
                self.grow(&context.peer).await?;
                said("grown")
            }
            "work" => return Ok(self.work().into()),
            "touch" => {
                self.touch(&context.peer).await?;
                said("touched")
            }
            name => return Err(format!("no tool {name}").into()),
        };
        Ok(result.into())
    }

    fn echo(&self, message: &str) -> CallToolResult {
        let image = ContentBlock::image(&self.vocabulary().pixel, "image/png");
        let mut result = CallToolResult::success(vec![ContentBlock::text(message), image]);
        result.structured_content = Some(json!({ "said": message }));
        result.meta =
            Some(MetaObject([("example.com/from".to_owned(), json!(self.name))].into_iter().collect()));
        result
    }

    /// In which era it was asked, and for which pages.
    fn seen(&self, context: &Context) -> CallToolResult {
        let legacy = context.protocol_version().is_some_and(|version| version.has_initialize());
        let era = if legacy { "legacy" } else { "modern" };
        said(json!({ "era": era, "cursors": self.vocabulary().cursors() }).to_string())
    }

    /// A modern request names its log level; a legacy server sends everything, and the gateway chooses.
    async fn log(&self, context: &Context, level: LoggingLevel, data: Value) -> Result<(), Trouble> {
        let wanted = match self.era {
            Era::Legacy => Some(LoggingLevel::Debug),
            Era::Modern => context.meta.log_level(),
        };
        if wanted.is_some_and(|wanted| wanted as u8 <= level as u8) {
            let message = LoggingMessageNotificationParam::new(level, data).with_logger(&self.name);
            context.peer.notify_logging_message(message).await?;
        }
        Ok(())
    }

    async fn grow(&self, peer: &Peer<RoleServer>) -> Result<(), Trouble> {
        self.vocabulary().grow();
        self.notifications.send(peer, ToolListChangedNotification::default()).await?;
        self.notifications.send(peer, ResourceListChangedNotification::default()).await?;
        self.notifications.send(peer, PromptListChangedNotification::default()).await
    }

    async fn touch(&self, peer: &Peer<RoleServer>) -> Result<(), Trouble> {
        self.vocabulary().touched += 1;
        let update = ResourceUpdatedNotificationParam::new(self.watched());
        self.notifications.send(peer, ResourceUpdatedNotification::new(update)).await
    }

    /// To a client that takes no tasks the SDK does not give this, but says what is missing.
    fn work(&self) -> CreateTaskResult {
        let done = said(format!("worked for {}", self.name));
        let options = TaskOptions::new().with_ttl_ms(60_000).with_poll_interval_ms(50);
        CreateTaskResult::new(self.tasks.spawn(options, |_| Box::pin(async { Ok(done) })))
    }
}

pub(super) fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

async fn step(context: &Context, progress: u8, total: u8) -> Result<(), Trouble> {
    let token = context.meta.get_progress_token().ok_or("the call has no progress token")?;
    let step = ProgressNotificationParam::new(token, progress.into())
        .with_total(total.into())
        .with_message(format!("{progress} of {total}"));
    Ok(context.peer.notify_progress(step).await?)
}

fn text<'a>(given: Option<&'a JsonObject>, key: &str) -> &'a str {
    given.and_then(|given| given.get(key)?.as_str()).unwrap_or_default()
}
