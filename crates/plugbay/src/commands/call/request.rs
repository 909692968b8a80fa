//! Sends one call to a server, like a host session, and waits for its answer.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use plugbay_core::{
    era::Era,
    exchange::{Answer, Call, Caller, Ticket},
    surface::Target,
    task::TaskRole,
    wire::{Draft, Head, Hole, Kind, Span, write::request_draft},
};
use plugbay_downstream::Gateway;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::CommandError;
use crate::output::Output;

/// Sends the call, and returns the result exactly as the server wrote it.
pub(super) async fn send(
    gateway: &Gateway,
    target: &Target,
    arguments: &str,
    timeout: Option<Duration>,
    output: Output,
) -> Result<Bytes, CommandError> {
    let (sender, answer) = oneshot::channel();
    let caller = Arc::new(Waiter { answer: Mutex::new(Some(sender)), output });
    let (request, params) = draft(&target.tool, arguments);
    let ticket = gateway.tickets.next();
    let (params, task_role) = (Some(params), TaskRole::None);
    let call = Call { ticket, caller, request, era: Era::Legacy, params, timeout, task_role };
    gateway.servers.forward(&target.server, call);
    match answer.await {
        Ok(Answer::Response { message, .. }) => result(&message),
        Ok(Answer::Failed(error)) => Err(error.into()),
        Err(_) => Err(CommandError::failed(format!("server {} gave no answer", target.server))),
    }
}

/// The request, with holes for its id and progress token, and the place of its `params`. Until it is sent the
/// token is 0: a modern server gets more in `_meta`, which is found only if `params` are JSON.
fn draft(tool: &str, arguments: &str) -> (Draft, Span) {
    let before = format!(r#"{{"name":{},"arguments":{arguments},"_meta":{{"progressToken":"#, json!(tool));
    let (draft, params) = request_draft("tools/call", format!("{before}0}}}}").as_bytes());
    let token = params.start + before.len();
    (draft.with(token..token + 1, Hole::Ticket), params)
}

fn result(message: &Bytes) -> Result<Bytes, CommandError> {
    let malformed = || CommandError::failed("plugbay cannot parse the server's answer");
    let head = Head::read(message).map_err(|_| malformed())?;
    let payload = message.slice(head.payload.ok_or_else(malformed)?);
    match head.kind {
        Kind::Result { .. } => Ok(payload),
        _ => Err(refusal(&payload)),
    }
}

/// A JSON-RPC error as a message for the user.
fn refusal(error: &[u8]) -> CommandError {
    let error: Value = serde_json::from_slice(error).unwrap_or_default();
    let text = error["message"].as_str().unwrap_or("no reason given");
    CommandError::failed(format!("the server refused the call: {text} (code {})", error["code"]))
}

/// The caller of one call.
#[derive(Debug)]
struct Waiter {
    // A std mutex: held while the sender is taken out, never across an await.
    answer: Mutex<Option<oneshot::Sender<Answer>>>,
    output: Output,
}

impl Caller for Waiter {
    fn answered(&self, _: Ticket, answer: Answer) {
        let sender = self.answer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let _ = sender.send(answer);
        }
    }

    fn progressed(&self, _: Ticket, notification: Bytes, _: Span) {
        let notification: Value = serde_json::from_slice(&notification).unwrap_or_default();
        let params = &notification["params"];
        let of = if params["total"].is_null() { String::new() } else { format!(" of {}", params["total"]) };
        let text = params["message"].as_str().unwrap_or_default();
        self.output.progress(&format!("{}{of} {text}", params["progress"]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tools_call_request_has_an_id_and_a_progress_token() {
        let (draft, params) = draft("say \"x\"", r#"{"id":1,"_meta":{"progressToken":7}}"#);
        let expected = r#"{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"name":"say \"x\"","arguments":{"id":1,"_meta":{"progressToken":7}},"_meta":{"progressToken":42}}}"#;
        assert_eq!(draft.render(42), expected);
        assert_eq!(params.start, expected.find("{\"name\"").unwrap() - 2, "the id is not in the message yet");
        assert!(serde_json::from_slice::<Value>(&draft.message()[params]).is_ok(), "`_meta` can be found");
    }

    #[test]
    fn a_call_result_keeps_its_bytes_and_an_error_becomes_text() {
        let message = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{ "z":1.0, "a":[] },"x":1}"#);
        assert_eq!(result(&message).unwrap(), r#"{ "z":1.0, "a":[] }"#);
        let message =
            Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#);
        assert_eq!(result(&message).unwrap_err().message, "the server refused the call: no (code -32602)");
    }
}
