//! Asks the host's user about a call that may change things.

use std::{sync::Arc, time::Duration};

use plugbay_core::{era::Era, surface::Effect, wire::Kind};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::calling::Calling;
use crate::{outbox::Outbox, session::Session};

/// How long a user may think.
const PATIENCE: Duration = Duration::from_secs(600);
/// So much of the arguments is shown, in characters.
const SHOWN: usize = 2000;

/// `Err` tells the model why the call is not made.
pub(super) async fn to(
    calling: &Calling,
    session: &Session,
    sink: &Arc<Outbox>,
    era: Era,
) -> Result<(), String> {
    let key = match calling.effect {
        Effect::Destroys => "allowDestructive",
        Effect::Reads | Effect::Writes => "allowWrites",
    };
    let unaskable = |why: &str| {
        format!("not allowed: it may change things, and {why}; naturalLanguage.{key} would allow it")
    };
    if era == Era::Modern {
        return Err(unaskable("a host that speaks this protocol cannot be asked in the middle of a call"));
    }
    let params = question(calling).to_string();
    let answer = timeout(PATIENCE, session.hear_for_ourselves(sink, "elicitation/create", &params)).await;
    let answer = answer.map_err(|_| "not allowed: the user did not answer in time".to_owned())?;
    let (message, head) = answer.map_err(|why| unaskable(&format!("the user cannot be asked: {why}")))?;
    let result = head.payload.filter(|_| matches!(head.kind, Kind::Result { .. }));
    let result = result.and_then(|result| serde_json::from_slice::<Value>(&message[result]).ok());
    match result.as_ref().and_then(|result| result["action"].as_str()) {
        Some("accept") => Ok(()),
        Some(_) => Err("not allowed: the user declined it".to_owned()),
        None => Err("not allowed: the user was asked, and the host failed to answer".to_owned()),
    }
}

/// There is nothing to fill in: to accept is to allow.
fn question(calling: &Calling) -> Value {
    let may = if calling.effect == Effect::Destroys { "change or delete things" } else { "add something" };
    let Calling { tool, arguments, .. } = calling;
    let shown = match arguments.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… and {} bytes more", &arguments[..end], arguments.len() - end),
        None => arguments.clone(),
    };
    let message =
        format!("natural_language wants to call {tool}, which may {may}.\n\n{shown}\n\nAllow this call?");
    json!({ "message": message, "requestedSchema": { "type": "object", "properties": {} } })
}
