//! A server that speaks the vocabulary: what it answers to each request.

mod gate;
mod notifications;
mod server_requests;
mod tools;
mod vocabulary;

use std::{
    borrow::Cow,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult,
        Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, PromptMessage, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, Reference, ResourceContents, Role, ServerCapabilities,
        ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
    task_manager::TaskManager,
    transport::stdio,
};

use self::{gate::Gate, notifications::Notifications, vocabulary::Vocabulary};
use crate::{Era, Trouble};

pub(crate) async fn run(name: &str, era: Era) -> Result<(), Trouble> {
    let server = Server {
        name: name.to_owned(),
        era,
        vocabulary: Mutex::new(Vocabulary::of(name, era)?),
        notifications: Notifications::new(era),
        tasks: TaskManager::new(),
        proceeding: Gate::default(),
        cancelling: Gate::default(),
    };
    server.serve(stdio()).await?.waiting().await?;
    Ok(())
}

struct Server {
    name: String,
    era: Era,
    /// Never locked across an await.
    vocabulary: Mutex<Vocabulary>,
    notifications: Notifications,
    tasks: TaskManager,
    proceeding: Gate,
    cancelling: Gate,
}

type Context = RequestContext<RoleServer>;
type Answer<T> = Result<T, ErrorData>;

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_completions()
            .enable_logging();
        let capabilities = match self.era {
            Era::Legacy => capabilities.build(),
            Era::Modern => capabilities.enable_tasks().build(),
        };
        ServerConfig::new(capabilities).with_server_info(Implementation::new(&self.name, "1.0.0"))
    }

    /// One that accepted both eras would be met in the one that the gateway prefers.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.era {
            Era::Legacy => ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE).into(),
            Era::Modern => vec![ProtocolVersion::V_2026_07_28].into(),
        }
    }

    async fn list_tools(&self, asked: Option<PaginatedRequestParams>, _: Context) -> Answer<ListToolsResult> {
        let (entries, next_cursor) = self.vocabulary().tools.page(asked);
        Ok(ListToolsResult { next_cursor, ..ListToolsResult::with_all_items(entries) })
    }

    async fn list_resources(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Answer<ListResourcesResult> {
        let (entries, next_cursor) = self.vocabulary().resources.page(asked);
        Ok(ListResourcesResult { next_cursor, ..ListResourcesResult::with_all_items(entries) })
    }

    async fn list_resource_templates(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Answer<ListResourceTemplatesResult> {
        let (entries, next_cursor) = self.vocabulary().templates.page(asked);
        Ok(ListResourceTemplatesResult {
            next_cursor,
            ..ListResourceTemplatesResult::with_all_items(entries)
        })
    }

    async fn list_prompts(
        &self,
        asked: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Answer<ListPromptsResult> {
        let (entries, next_cursor) = self.vocabulary().prompts.page(asked);
        Ok(ListPromptsResult { next_cursor, ..ListPromptsResult::with_all_items(entries) })
    }

    async fn call_tool(&self, asked: CallToolRequestParams, context: Context) -> Answer<CallToolResponse> {
        let outcome = self.call(asked, context).await;
        outcome.map_err(|trouble| ErrorData::internal_error(trouble.to_string(), None))
    }

    async fn get_task(&self, asked: GetTaskParams, _: Context) -> Answer<GetTaskResult> {
        self.tasks.get_task(&asked.task_id).map(GetTaskResult::new)
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        _: Context,
    ) -> Answer<ReadResourceResponse> {
        Ok(ReadResourceResult::new(vec![self.read(asked.uri)]).into())
    }

    async fn get_prompt(&self, asked: GetPromptRequestParams, _: Context) -> Answer<GetPromptResponse> {
        let given = asked.arguments.unwrap_or_default();
        let who = given.get("who").and_then(|who| who.as_str()).unwrap_or("nobody");
        let text = format!("{} {who} from {}", asked.name, self.name);
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }

    async fn complete(&self, asked: CompleteRequestParams, _: Context) -> Answer<CompleteResult> {
        let mut values = self.vocabulary().words_from(&asked.argument.value);
        values.extend(match asked.r#ref {
            Reference::Prompt(prompt) => Some(prompt.name),
            Reference::Resource(template) => Some(template.uri),
            _ => None,
        });
        let completion = CompletionInfo::with_pagination(values, Some(9), true);
        completion.map(CompleteResult::new).map_err(|reason| ErrorData::internal_error(reason, None))
    }

    fn accepted_subscription_filter(&self, wanted: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.notifications.accepted();
        Some(wanted.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Answer<()> {
        self.notifications.deliver_to(subscription).await;
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Answer<()> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Answer<()> {
        Ok(())
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Answer<()> {
        Ok(())
    }
}

impl Server {
    fn vocabulary(&self) -> MutexGuard<'_, Vocabulary> {
        self.vocabulary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, uri: String) -> ResourceContents {
        let vocabulary = self.vocabulary();
        if uri.ends_with("/pixel") {
            return ResourceContents::blob(&vocabulary.pixel, uri).with_mime_type("image/png");
        }
        ResourceContents::text(format!("{uri} touched {} times", vocabulary.touched), uri)
    }

    /// The resource that `touch` changes.
    fn watched(&self) -> String {
        format!("{}://notes/watched", self.name)
    }
}
