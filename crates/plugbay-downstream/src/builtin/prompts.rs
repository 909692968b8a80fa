//! The built-in prompts, and the completion of their argument.

use plugbay_core::{
    name::ServerName,
    size_limit,
    surface::BuiltinPrompt,
    wire::{Members, string_value},
};
use serde_json::json;

use super::{activate, call_arguments::Arguments, search};
use crate::{context::RequestContext, message::Request, refusal::Refusal, session::Session};

/// Limit of values in a completion.
const COMPLETIONS: usize = 100;

pub(crate) fn serve(context: RequestContext<'_>, prompt: BuiltinPrompt) {
    if context.snapshot().settled || prompt != BuiltinPrompt::Search {
        return serve_now(context, prompt);
    }
    // The next server to list its tools may bring the one that is searched for.
    context.when_settled(move |context| serve_now(context, prompt));
}

fn serve_now(context: RequestContext<'_>, prompt: BuiltinPrompt) {
    let RequestContext { session, request, .. } = context;
    let answer = match request.method() {
        b"completion/complete" => Ok(completed(session, request, prompt)),
        _ => prompt_result(session, request, prompt),
    };
    match answer {
        Ok(result) => context.result(result),
        Err(refusal) => context.refuse(&refusal),
    }
}

fn prompt_result(
    session: &Session,
    request: &Request,
    prompt: BuiltinPrompt,
) -> Result<serde_json::Value, Refusal> {
    let argument = prompt.argument().map(|argument| {
        let missing = || Refusal::InvalidParams(format!("the argument {argument:?} is missing"));
        let text = Arguments::of(request).text_within(argument, size_limit::QUERY);
        text.map_err(|too_long| Refusal::InvalidParams(too_long.to_string()))?.ok_or_else(missing)
    });
    let wanted = match (prompt, argument.transpose()?) {
        (BuiltinPrompt::Search, Some(query)) => search::found_locally(session, query),
        (_, Some(argument)) => argument,
        (_, None) => activate::overview(session),
    };
    let content = json!({ "type": "text", "text": prompt.text(&wanted) });
    Ok(json!({ "messages": [{ "role": "user", "content": content }] }))
}

/// The names of servers that begin like the argument.
fn completed(session: &Session, request: &Request, prompt: BuiltinPrompt) -> serde_json::Value {
    let typed = typed(request).unwrap_or_default().to_lowercase();
    let named = matches!(prompt, BuiltinPrompt::Activate | BuiltinPrompt::Deactivate);
    let fits = |server: &ServerName| named && server.as_str().to_lowercase().starts_with(&typed);
    let all: Vec<String> =
        session.snapshot().servers().iter().filter(|server| fits(server)).map(ToString::to_string).collect();
    let shown = &all[..all.len().min(COMPLETIONS)];
    json!({ "completion": { "values": shown, "total": all.len(), "hasMore": all.len() > shown.len() } })
}

fn typed(request: &Request) -> Option<String> {
    let (message, params) = request.params()?;
    let argument = Members::find(message, params, "argument")?;
    let value = Members::find(message, &argument, "value")?;
    string_value(&message[value]).map(std::borrow::Cow::into_owned)
}
