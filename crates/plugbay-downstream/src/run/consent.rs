//! Asks the host's user about a call that may change things.

use std::time::Duration;

use plugbay_core::{
    surface::{BuiltinTool, Effect},
    text,
    wire::{Member, Members},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{calls::PlannedCall, host::Host};

/// How long the user has to answer.
const PATIENCE: Duration = Duration::from_secs(600);
/// Arguments longer than this many characters are shown one by one.
const SHOWN: usize = 2000;
/// Then, how much of each argument is shown, and how many arguments.
const SHOWN_OF_EACH: usize = 400;
const MOST_SHOWN: usize = 40;

/// Asks the user by elicitation whether a call by the tool `by` may be made. `remedy` is the setting that
/// would allow it. `Err` is the reason for the model.
pub(crate) async fn obtain(
    planned_call: &PlannedCall,
    host: &mut Host,
    by: BuiltinTool,
    remedy: &str,
) -> Result<(), String> {
    let no_consent =
        |why: &str| format!("not allowed: it may change things, and {why}; {remedy} would allow it");
    let asked = elicitation(planned_call, by).to_string();
    let answer = timeout(PATIENCE, host.ask("elicitation/create", asked)).await;
    let answer = answer.map_err(|_| "not allowed: the user did not answer in time".to_owned())?;
    let answer = answer.map_err(|why| no_consent(&format!("the user cannot be asked: {why}")))?;
    let result: Value =
        answer.ok().and_then(|answer| serde_json::from_slice(&answer).ok()).unwrap_or_default();
    match result["action"].as_str() {
        Some("accept") => Ok(()),
        Some(_) => Err("not allowed: the user declined it".to_owned()),
        None => Err("not allowed: the user was asked, and the host failed to answer".to_owned()),
    }
}

/// The elicitation. Its form has no fields: accepting it allows the call.
fn elicitation(planned_call: &PlannedCall, by: BuiltinTool) -> Value {
    let may =
        if planned_call.effect == Effect::Destroys { "change or delete things" } else { "add something" };
    let PlannedCall { tool, arguments, .. } = planned_call;
    let shown = visible(&shown(arguments));
    let (by, tool) = (by.name(), text::word(tool));
    let message = format!("{by} wants to call {tool}, which may {may}.\n\n{shown}\n\nAllow this call?");
    json!({ "message": message, "requestedSchema": { "type": "object", "properties": {} } })
}

/// Shows invisible characters, so that none can make a text read differently from what it says.
fn visible(text: &str) -> String {
    text.split('\n').map(text::visible).collect::<Vec<_>>().join("\n")
}

/// The arguments to show. Long values are cut, so that nothing is hidden behind them.
fn shown(arguments: &str) -> String {
    if arguments.chars().nth(SHOWN).is_none() {
        return arguments.to_owned();
    }
    let members: Vec<_> = Members::of(arguments.as_bytes(), &(0..arguments.len())).flatten().collect();
    if members.is_empty() {
        return beginning(arguments);
    }
    let line = |member: &Member<'_>| {
        format!("{}: {}", Value::from(&*member.key), beginning(&arguments[member.value.clone()]))
    };
    let mut lines: Vec<String> = members.iter().take(MOST_SHOWN).map(line).collect();
    if members.len() > MOST_SHOWN {
        lines.push(format!("… and {} arguments more", members.len() - MOST_SHOWN));
    }
    lines.join("\n")
}

fn beginning(value: &str) -> String {
    match value.char_indices().nth(SHOWN_OF_EACH) {
        Some((end, _)) => format!("{}… and {} bytes more", &value[..end], value.len() - end),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped_in_an_elicitation() {
        assert_eq!(visible("{\"a\":\"x\u{202e}y\"}\né"), "{\"a\":\"x\\u{202e}y\"}\né");
    }

    #[test]
    fn every_argument_is_visible_in_an_elicitation() {
        let short = r#"{"n": 1.0}"#;
        assert_eq!(shown(short), short);
        let long = format!(r#"{{"text":"{}","path\n":"/etc"}}"#, "ü".repeat(SHOWN));
        let start = "ü".repeat(SHOWN_OF_EACH - 1);
        let rest = 2 * (SHOWN - SHOWN_OF_EACH + 1) + 1;
        assert_eq!(
            shown(&long),
            format!("\"text\": \"{start}… and {rest} bytes more\n\"path\\n\": \"/etc\"")
        );
        assert!(shown(&"7".repeat(SHOWN + 1)).ends_with("… and 1601 bytes more"));
        let many: Vec<String> = (0..SHOWN).map(|number| format!(r#""{number}":0"#)).collect();
        let many = shown(&format!("{{{}}}", many.join(",")));
        assert!(many.ends_with(&format!("\n… and {} arguments more", SHOWN - MOST_SHOWN)), "{many}");
    }
}
