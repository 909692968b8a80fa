//! What a host says of itself, how it answers server requests, and where its notifications go.

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleClient, Service,
    model::{
        ClientCapabilities, ClientConfig, ClientResult, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
        FormElicitationCapability, Implementation, ListRootsResult, Root, SamplingMessage,
        ServerNotification, ServerRequest, UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::json;

use super::notifications::Notifications;
use crate::Era;

pub(super) struct Answers {
    pub(super) era: Era,
    pub(super) notifications: Arc<Notifications>,
}

impl Service<RoleClient> for Answers {
    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new());
        let capabilities = ClientCapabilities::builder()
            .enable_roots()
            .enable_sampling()
            .enable_elicitation_with(elicitation);
        let capabilities = match self.era {
            Era::Legacy => capabilities.build(),
            Era::Modern => capabilities.enable_tasks().build(),
        };
        ClientConfig::new(capabilities, Implementation::new("matrix", "1.0.0"))
    }

    async fn handle_request(
        &self,
        request: ServerRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        match request {
            ServerRequest::PingRequest(_) => Ok(ClientResult::empty(())),
            ServerRequest::CreateMessageRequest(asked) => Ok(sample(&asked.params).into()),
            ServerRequest::ElicitRequest(asked) => Ok(elicit(&asked.params).into()),
            ServerRequest::ListRootsRequest(_) => {
                let root = Root::new("file:///matrix").with_name("matrix");
                Ok(ListRootsResult::new(vec![root]).into())
            }
            _ => Err(ErrorData::invalid_request("nobody asks this", None)),
        }
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        self.notifications.receive(notification);
        Ok(())
    }
}

fn sample(asked: &CreateMessageRequestParams) -> CreateMessageResult {
    let prompt = asked.messages.first().and_then(|message| message.content.first()?.as_text());
    let prompt = prompt.map_or("nothing", |prompt| prompt.text.as_str());
    CreateMessageResult::new(SamplingMessage::assistant_text(format!("answer to {prompt}")), "matrix".into())
}

fn elicit(asked: &ElicitRequestParams) -> ElicitResult {
    match asked {
        ElicitRequestParams::FormElicitationParams { message, .. } => {
            let word = format!("answer to {message}");
            ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "word": word }))
        }
        ElicitRequestParams::UrlElicitationParams { url, .. } if url.starts_with("https://example.com/") => {
            ElicitResult::new(ElicitationAction::Accept)
        }
        _ => ElicitResult::new(ElicitationAction::Decline),
    }
}
