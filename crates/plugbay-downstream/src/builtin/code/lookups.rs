//! What a script can look up: tools by description, their definitions, help, and stored results.

use std::{fmt::Write, sync::Arc};

use bytes::Bytes;
use plugbay_core::{
    name::ServerName,
    script::{Function, ScriptAnswer, ScriptCall},
    signature::{self, Signature, Steps},
    size_limit,
    surface::{Found, Snapshot, activate::server_meant, words_of},
    text::escaped_json,
};
use serde_json::{Value, json, value::RawValue};

use super::super::{
    call_arguments::{Arguments, by_commas},
    unknown,
};
use crate::{
    results::{no_result, parts},
    session::Session,
};

/// Limit of tools that one search finds.
const MOST_HITS: usize = 50;

const HELP: &str = "\
tools.server.tool({…}) calls a tool and gives its value; tools[\"a-b\"][\"c\"]({…}) if a name is no identifier.
  The value is the structured content of the result, else its text, parsed if it is a JSON object or list.
  await tools.server.tool({…}).raw is the whole result. An error throws ToolError: .message, .code, .result.
search(query, {server, limit}) finds tools: [{name, call, signature}].
describe(name, …) gives definitions with their schemas.
help(server) tells what a server is for, and its tools.
results[\"r_…\"] is a promise of a stored result. input is the argument \"input\".
console.log(…) and text(…) print. The value that is returned, or that of the last expression, is the answer.
Promise.all makes calls at the same time. There is no network, no file, no clock and no timer.";

/// Why a lookup fails, as a script sees it: a code word and a text.
type Failure = (&'static str, String);

/// Answers a call that calls no tool. Works in another thread.
pub(super) async fn answer(session: &Arc<Session>, call: &ScriptCall) -> ScriptAnswer {
    let gateway = session.gateway();
    let (session, call) = (Arc::clone(session), call.clone());
    let caller = session.caller();
    let work = move || {
        let arguments = Arguments::within(&call.arguments);
        match &call.function {
            Function::Search => search(&session, &arguments),
            Function::Describe => describe(&session, &arguments),
            Function::Help => help(&session, &arguments),
            Function::Result => stored(&session, &arguments),
            Function::Tool { tool, .. } => Err(("unknown_tool", tool.clone())),
        }
    };
    let answer = gateway.workers.run(caller, work).await;
    match answer.unwrap_or_else(|_| Err(("failed", "the answer could not be made".to_owned()))) {
        Ok(value) => ScriptAnswer::Value(value),
        Err((code, message)) => ScriptAnswer::Error { code, message, result: None },
    }
}

fn search(session: &Session, arguments: &Arguments<'_>) -> Result<Bytes, Failure> {
    let snapshot = session.snapshot();
    let query = text(arguments, "query", size_limit::QUERY)?;
    let query = query.ok_or_else(|| wrong("search(query): say what the tool should do"))?;
    let server = server_of(arguments, "server", &snapshot)?;
    let limit = arguments.whole("limit").unwrap_or(snapshot.layout.settings.search_limit);
    let limit = limit.clamp(1, MOST_HITS);
    let table = session.gateway().table;
    let hits = snapshot.tool_index.search(&query, limit, server.as_ref(), table);
    let mut steps = Steps::default();
    let hits: Vec<Value> = hits
        .iter()
        .map(|(found, _)| {
            let signature = Signature::for_line(&found.exposed, &found.tool, &mut steps);
            let signature = signature.line(signature::LINE);
            json!({ "name": found.exposed, "call": call_of(found), "signature": signature })
        })
        .collect();
    Ok(Value::from(hits).to_string().into())
}

fn describe(session: &Session, arguments: &Arguments<'_>) -> Result<Bytes, Failure> {
    let snapshot = session.snapshot();
    let names = arguments.names(&["names"], by_commas);
    let names = names.map_err(|too_long| wrong(&too_long.to_string()))?;
    let mut described = Vec::new();
    for name in &names {
        let found = snapshot.names.alike(&name.replacen('.', "__", 1)).or_else(|| snapshot.names.alike(name));
        let found = found.ok_or_else(|| ("unknown_tool", unknown(session, &snapshot, name)))?;
        let definition = String::from_utf8_lossy(&found.definition()).into_owned();
        described.extend(RawValue::from_string(definition).ok());
    }
    let json = match &described[..] {
        [] => return Err(wrong("describe(name): give the name of a tool")),
        [one] => one.get().to_owned(),
        all => serde_json::to_string(all).unwrap_or_default(),
    };
    Ok(json.into())
}

fn help(session: &Session, arguments: &Arguments<'_>) -> Result<Bytes, Failure> {
    let snapshot = session.snapshot();
    let Some(server) = server_of(arguments, "about", &snapshot)? else {
        let mut help = HELP.to_owned();
        let servers: Vec<_> = snapshot.servers().iter().map(ToString::to_string).collect();
        let _ = write!(help, "\nServers: {}", servers.join(", "));
        return Ok(Value::from(help).to_string().into());
    };
    let mut lines: Vec<String> = words_of(&server, &snapshot).into_iter().collect();
    let tools: Vec<&Found> = snapshot.names.for_model_of(&server).collect();
    let mut steps = Steps::default();
    lines.extend(tools.into_iter().map(|found| {
        // What is quoted in the expression of a call stays as it is.
        let read = Signature::for_line(&found.exposed, &found.tool, &mut steps);
        let signature = Signature { name: call_of(found), ..read };
        signature.line(signature::LINE)
    }));
    if let Some(failure) = snapshot.catalog.failure(&server) {
        lines.push(format!("{server} {}", failure.of_server()));
    }
    Ok(Value::from(lines.join("\n")).to_string().into())
}

fn stored(session: &Session, arguments: &Arguments<'_>) -> Result<Bytes, Failure> {
    let handle = text(arguments, "result", size_limit::NAME)?.unwrap_or_default();
    let handle = handle.parse().map_err(|error| wrong(&format!("results[{handle:?}]: {error}")))?;
    let stored = session.stored_result(handle).ok_or_else(|| ("no_result", no_result(handle)))?;
    let result = stored.read();
    let result = result.map_err(|error| ("failed", format!("the stored result cannot be read: {error}")))?;
    Ok(parts::json_of(&result))
}

fn text(arguments: &Arguments<'_>, key: &'static str, limit: usize) -> Result<Option<String>, Failure> {
    arguments.text_within(key, limit).map_err(|too_long| wrong(&too_long.to_string()))
}

fn server_of(
    arguments: &Arguments<'_>,
    key: &'static str,
    snapshot: &Snapshot,
) -> Result<Option<ServerName>, Failure> {
    let server = text(arguments, key, size_limit::NAME)?;
    let meant = server.map(|server| server_meant(&server, snapshot)).transpose();
    meant.map_err(|unclear| ("unknown_server", unclear.to_string()))
}

fn wrong(message: &str) -> Failure {
    ("wrong_arguments", message.to_owned())
}

/// The expression with which a script calls the tool.
fn call_of(found: &Found) -> String {
    let (server, tool) = (found.target.server.as_str(), found.own_name());
    // The exposed name has no server in front, or the tool is called `then`: a script would take the server
    // for a promise.
    if tool == found.exposed || tool == "then" {
        return format!("tools{}", member(&found.exposed));
    }
    format!("tools{}{}", member(server), member(tool))
}

fn member(name: &str) -> String {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$');
    let is_identifier =
        starts && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'));
    if is_identifier {
        format!(".{name}")
    } else {
        format!("[{}]", escaped_json(&Value::from(name).to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::member;

    #[test]
    fn names_that_are_no_identifiers_are_quoted() {
        assert_eq!(
            [member("git"), member("a-b"), member("7z"), member("c.d\""), member("e\n\u{2028}")],
            [".git", r#"["a-b"]"#, r#"["7z"]"#, r#"["c.d\""]"#, r#"["e\n\u2028"]"#]
        );
    }
}
