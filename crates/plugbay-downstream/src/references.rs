//! References to stored results in the arguments of a call: each is replaced by its value before anything
//! else is done.

use plugbay_core::{
    filter::FilterOutput,
    reference::{self, Reference},
    text::word,
    wire::{Frame, Span},
};

use crate::{
    context::RequestContext,
    message::{Message, Request},
    results::{
        StoredResult, no_result,
        parts::{self, filter_failed, on_one_line},
    },
};

/// Whether the arguments may refer to stored results, by a quick check.
pub(crate) fn may_be_in(request: &Request) -> bool {
    request.arguments().is_some_and(reference::may_be_in)
}

/// Continues with the request once its references are replaced.
pub(crate) fn resolve(context: RequestContext<'_>, then: impl FnOnce(RequestContext<'_>) + Send + 'static) {
    let owned = context.to_owned();
    let resolving = async move { replaced(owned.borrow()).await };
    context.later(resolving, move |context, outcome| match outcome {
        Ok(Some(request)) => then(context.with_request(&request)),
        Ok(None) => then(context),
        Err(why) => context.text(&Err(why)),
    });
}

/// The request with values in place of references; `None` if there are none. `Err` is for the model.
pub(crate) async fn replaced(context: RequestContext<'_>) -> Result<Option<Request>, String> {
    if !may_be_in(context.request) {
        return Ok(None);
    }
    let opened = opened(context)?;
    let request = opened.as_ref().unwrap_or(context.request);
    let Some(arguments) = request.arguments.clone() else { return Ok(None) };
    let references = reference::find(&request.message, &arguments);
    if references.is_empty() {
        return Ok(None); // the arguments are left as they were written
    }
    if references.len() > reference::MOST {
        let (count, most) = (references.len(), reference::MOST);
        return Err(format!("the arguments refer to {count} results; the limit of one call is {most}"));
    }
    let mut values: Vec<(Span, Vec<u8>)> = Vec::new();
    let mut length = 0;
    for reference in references {
        let at = |why: String| format!("{}: {why}", word(place(&reference)));
        let value = value(context, &reference).await.map_err(at)?;
        // A small call can refer to large results: no more of them is held than a message may have.
        length += value.len();
        within_limit(context, length)?;
        values.push((reference.span, value));
    }
    edited(context, request, values).map(Some)
}

/// The request with those arguments parsed that a model has sent as strings; `None` if there are none.
fn opened(context: RequestContext<'_>) -> Result<Option<Request>, String> {
    let request = context.request;
    let Some(arguments) = &request.arguments else { return Ok(None) };
    let quoted = reference::unquoted(&request.message, arguments);
    if quoted.is_empty() {
        return Ok(None);
    }
    let texts: Vec<(Span, Vec<u8>)> =
        quoted.into_iter().map(|(span, text)| (span, text.into_bytes())).collect();
    edited(context, request, texts).map(Some)
}

fn place(reference: &Reference) -> &str {
    if reference.place.is_empty() { "arguments" } else { &reference.place }
}

/// The value that a reference stands for, as raw JSON.
async fn value(context: RequestContext<'_>, reference: &Reference) -> Result<Vec<u8>, String> {
    let stored =
        context.session.stored_result(reference.handle).ok_or_else(|| no_result(reference.handle))?;
    match &reference.filter {
        None => worked(context, stored, |result| Ok(parts::argument_of(&result))).await,
        Some(filter) => {
            let input = worked(context, stored, |result| Ok(parts::json_of(&result))).await?;
            let filtered = context.gateway().results.filter(filter.clone(), input.clone()).await;
            match filtered.map_err(|error| filter_failed(&error, &input))? {
                FilterOutput { values, count: 1, cut: false } => Ok(values.trim_ascii().to_vec()),
                FilterOutput { cut: true, .. } => Err("jq: the value is too large".to_owned()),
                FilterOutput { count, .. } => Err(format!(
                    "jq must give exactly one value here; it gives {count}. `[…]` makes a list of them"
                )),
            }
        }
    }
}

/// Reads a stored result, and works on it in another thread.
async fn worked<T: Send + 'static>(
    context: RequestContext<'_>,
    stored: StoredResult,
    work: impl FnOnce(bytes::Bytes) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let read =
        move || work(stored.read().map_err(|error| format!("the stored result cannot be read: {error}"))?);
    let outcome = context.gateway().workers.run(context.session.caller(), read).await;
    outcome.unwrap_or_else(|_| Err("the stored result cannot be read".to_owned()))
}

/// The request with these spans replaced.
fn edited(
    context: RequestContext<'_>,
    request: &Request,
    edits: Vec<(Span, Vec<u8>)>,
) -> Result<Request, String> {
    let edits: Vec<(Span, Vec<u8>)> =
        edits.into_iter().map(|(span, json)| (span, on_one_line(json))).collect();
    let edits: Vec<(Span, &[u8])> = edits.iter().map(|(span, json)| (span.clone(), &json[..])).collect();
    let frame = Frame::edited(&request.message, &edits);
    within_limit(context, frame.len())?;
    match Message::read(frame.into_bytes()) {
        Ok(Message::Request(request)) => Ok(request),
        _ => Err("with its results the call is no message any more: they are nested too deep".to_owned()),
    }
}

fn within_limit(context: RequestContext<'_>, length: usize) -> Result<(), String> {
    let limit = context.gateway().settings().message_limit;
    if length <= limit {
        return Ok(());
    }
    Err(format!("with its results the call has at least {length} bytes; the limit of a message is {limit}"))
}
