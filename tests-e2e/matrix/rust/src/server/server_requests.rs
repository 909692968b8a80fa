//! Requests of the server to its host, in the form of its era.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, InputRequest, InputRequiredResult, ServerRequest,
};
use serde_json::{Value, json};

use super::{Context, Server, tools::said};
use crate::{Era, Trouble};

impl Server {
    /// Sends the request, or in a later round of a modern call returns its answer.
    pub(super) async fn ask(
        &self,
        what: &str,
        asked: &CallToolRequestParams,
        context: &Context,
    ) -> Result<CallToolResponse, Trouble> {
        let request = self.request(what);
        if matches!(self.era, Era::Legacy) {
            let request: ServerRequest = serde_json::from_value(request)?;
            let answer = context.peer.send_request(request).await?;
            return Ok(common(&serde_json::to_value(answer)?));
        }
        if let Some(answer) = asked.input_responses.as_ref().and_then(|answers| answers.get(what)) {
            return Ok(common(answer));
        }
        let request: InputRequest = serde_json::from_value(request)?;
        Ok(InputRequiredResult::from_input_requests([(what.to_owned(), request)].into()).into())
    }

    /// The host repeats words of the request in its answer, so that no answer can be another's.
    fn request(&self, what: &str) -> Value {
        let name = &self.name;
        let message = format!("{what} of {name}");
        let (method, params) = match what {
            "sampling" => {
                let content = json!({ "type": "text", "text": message });
                let messages = json!([{ "role": "user", "content": content }]);
                ("sampling/createMessage", json!({ "messages": messages, "maxTokens": 7 }))
            }
            "form" => {
                let properties = json!({ "word": { "type": "string" } });
                let schema = json!({ "type": "object", "properties": properties, "required": ["word"] });
                (
                    "elicitation/create",
                    json!({ "mode": "form", "message": message, "requestedSchema": schema }),
                )
            }
            "url" => {
                let (url, id) = (format!("https://example.com/{name}"), format!("of {name}"));
                (
                    "elicitation/create",
                    json!({ "mode": "url", "message": message, "url": url, "elicitationId": id }),
                )
            }
            _ => ("roots/list", json!({})),
        };
        json!({ "method": method, "params": params })
    }
}

/// The members of an answer that both eras have.
fn common(answer: &Value) -> CallToolResponse {
    let wanted = ["role", "model", "content", "action", "roots"];
    let common = wanted.into_iter().filter_map(|key| Some((key.to_owned(), answer.get(key)?.clone())));
    said(Value::Object(common.collect()).to_string()).into()
}
