//! What a server asks its host, in the way of its era.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, InputRequest, InputRequiredResult, ServerRequest,
};
use serde_json::{Value, json};

use super::{Context, Server, tools::said};
use crate::{Era, Trouble};

impl Server {
    /// Asks, or in a later round of a modern call tells what was answered.
    pub(super) async fn ask(
        &self,
        what: &str,
        asked: &CallToolRequestParams,
        context: &Context,
    ) -> Result<CallToolResponse, Trouble> {
        let question = self.question(what);
        if matches!(self.era, Era::Legacy) {
            let question: ServerRequest = serde_json::from_value(question)?;
            let answer = context.peer.send_request(question).await?;
            return Ok(told(&serde_json::to_value(answer)?));
        }
        if let Some(answer) = asked.input_responses.as_ref().and_then(|answers| answers.get(what)) {
            return Ok(told(answer));
        }
        let question: InputRequest = serde_json::from_value(question)?;
        Ok(InputRequiredResult::from_input_requests([(what.to_owned(), question)].into()).into())
    }

    /// The host answers with words of the question, so that no answer can be another's.
    fn question(&self, what: &str) -> Value {
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

/// Of an answer what both eras have.
fn told(answer: &Value) -> CallToolResponse {
    let wanted = ["role", "model", "content", "action", "roots"];
    let told = wanted.into_iter().filter_map(|key| Some((key.to_owned(), answer.get(key)?.clone())));
    said(Value::Object(told.collect()).to_string()).into()
}
