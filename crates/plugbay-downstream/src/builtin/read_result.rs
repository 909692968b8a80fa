//! `read_result`: parts of a stored result.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use plugbay_core::{
    arguments::{self, CompiledSchema, ResolvedTool},
    filter::FilterOutput,
    name::folded,
    outline::{self, Excerpt, OUTLINE_TOKENS, Outline},
    reference::Handle,
    size_limit,
    surface::{BuiltinTool, suite},
    text::on_one_line,
};
use serde_json::json;

use super::call_arguments::Arguments;
use crate::{
    context::RequestContext,
    message::Request,
    refusal::Refusal,
    results::{
        Results, StoredResult, no_result,
        parts::{self, filter_failed, text_result},
    },
};

/// The default limit of tokens in a reply, and the highest limit that a call may set.
const BUDGET: usize = 4_000;
const MOST_BUDGET: usize = 20_000;
/// Bytes assumed for each token. The budget is lowered by it, so that the host's limit does not cut a reply.
const BYTES: usize = 5;

/// The schema of the arguments.
static SCHEMA: LazyLock<Arc<CompiledSchema>> =
    LazyLock::new(|| Arc::new(super::schema_of(BuiltinTool::ReadResult)));

/// `read_result` as a tool that another tool calls.
pub(super) fn resolved(name: &str) -> Option<ResolvedTool<()>> {
    let own = BuiltinTool::ReadResult.name();
    let is_alike = || name.len() <= 2 * own.len() && folded(name) == folded(own);
    let exact = name == own || name == suite::READ_RESULT;
    (exact || is_alike()).then(|| ResolvedTool {
        name: own.to_owned(),
        exact,
        schema: Some(Arc::clone(&SCHEMA)),
        tool: (),
    })
}

/// The arguments of a direct call of `read_result`, repaired like those of other tools.
pub(super) fn checked(request: &Request, mode: arguments::Mode) -> Result<Vec<u8>, String> {
    let checked = arguments::check(&SCHEMA, request.arguments().unwrap_or(b"{}"), mode);
    checked.map(|checked| checked.arguments.into_owned()).map_err(|refusal| refusal.to_string())
}

pub(super) fn serve(context: RequestContext<'_>, arguments: &[u8]) {
    let reading = match Reading::requested(arguments, context) {
        Ok(reading) => reading,
        Err(why) => return context.text(&Err(why)),
    };
    let Some(stored) = context.session.stored_result(reading.handle) else {
        return context.text(&Err(no_result(reading.handle)));
    };
    let owned = context.to_owned();
    let read = async move { reading.read(owned.borrow(), stored).await };
    context.later(read, |context, reply| context.text(&reply));
}

/// Answers `resources/read` with the whole result.
pub(crate) fn whole(context: RequestContext<'_>, handle: Handle) {
    let Some(stored) = context.session.stored_result(handle) else {
        return context.refuse(&Refusal::UnknownResource { uri: uri_of(handle), era: context.era });
    };
    let (workers, caller) = (Arc::clone(&context.gateway().workers), context.session.caller());
    let reading = async move { workers.run(caller, move || stored.read()).await };
    context.later(reading, move |context, result| match result {
        Ok(Ok(result)) => {
            let (text, kind) = match parts::text_of(&result) {
                Some(text) => (text, "text/plain"),
                None => (String::from_utf8_lossy(&parts::json_of(&result)).into_owned(), "application/json"),
            };
            let contents = json!([{ "uri": uri_of(handle), "mimeType": kind, "text": text }]);
            context.answer(crate::respond::cacheable(
                context.request.id(),
                context.era,
                &format!(r#""contents":{contents}"#),
            ));
        }
        _ => context.refuse(&Refusal::UnknownResource { uri: uri_of(handle), era: context.era }),
    });
}

fn uri_of(handle: Handle) -> String {
    format!("plugbay://result/{handle}")
}

/// What a call wants to read.
struct Reading {
    handle: Handle,
    part: Part,
    /// The most tokens of the reply.
    budget: usize,
}

enum Part {
    Jq(String),
    Lines(usize, Option<usize>),
    Grep(String),
    Page(usize),
}

impl Reading {
    /// Reads the arguments. `Err` is for the model.
    fn requested(arguments: &[u8], context: RequestContext<'_>) -> Result<Self, String> {
        let arguments = Arguments::within(arguments);
        let text =
            |key| arguments.text_within(key, size_limit::REQUEST).map_err(|too_long| too_long.to_string());
        let handle = text("result")?.ok_or("\"result\" is missing: the handle that an outline shows, r_…")?;
        let handle = handle.trim().parse().map_err(|error| format!("\"result\": {error}"))?;
        let parts = [
            text("jq")?.map(Part::Jq),
            text("lines")?.map(|lines| line_range(&lines)).transpose()?,
            text("grep")?.map(Part::Grep),
            arguments.whole("page").map(|page| Part::Page(page.max(1))),
        ];
        let mut parts = parts.into_iter().flatten();
        let part = parts.next().unwrap_or(Part::Page(1));
        if parts.next().is_some() {
            return Err("give one of \"jq\", \"lines\", \"grep\" and \"page\"".to_owned());
        }
        let budget = arguments.whole("budget").unwrap_or(BUDGET).clamp(100, MOST_BUDGET);
        let taken = context.session.host_view().takes().result.unwrap_or(usize::MAX);
        Ok(Self { handle, part, budget: budget.min(taken / BYTES) })
    }

    async fn read(self, context: RequestContext<'_>, stored: StoredResult) -> Result<String, String> {
        if let Part::Jq(filter) = &self.part {
            return self.filtered(context, stored, filter).await;
        }
        let work = move || {
            let result = stored.read().map_err(|error| unreadable(&error))?;
            self.part_of(&result)
        };
        let read = context.gateway().workers.run(context.session.caller(), work).await;
        read.unwrap_or_else(|error| Err(unreadable(&error)))
    }

    fn part_of(&self, result: &Bytes) -> Result<String, String> {
        let text = parts::readable_text(result);
        let Excerpt { text, note, .. } = match &self.part {
            Part::Lines(from, to) => outline::lines(&text, *from, *to, self.budget),
            Part::Grep(pattern) => outline::grep(&text, pattern, 0, self.budget)
                .map_err(|error| format!("\"grep\" is no regular expression: {}", on_one_line(&error)))?,
            Part::Page(page) => outline::page(&text, *page, self.budget),
            Part::Jq(_) => return Ok(text),
        };
        let text = text.trim_end_matches('\n');
        Ok(if text.is_empty() { note } else { format!("{text}\n[{note}]") })
    }

    /// The values of a filter. If there are too many, they become a stored result of their own.
    async fn filtered(
        &self,
        context: RequestContext<'_>,
        stored: StoredResult,
        filter: &str,
    ) -> Result<String, String> {
        let (gateway, caller, tool) = (context.gateway(), context.session.caller(), Arc::clone(&stored.tool));
        let input =
            gateway.workers.run(caller, move || stored.read().map(|result| parts::json_of(&result))).await;
        let input = input.map_err(|error| unreadable(&error))?.map_err(|error| unreadable(&error))?;
        let filtered = gateway.results.filter(filter.to_owned(), input.clone()).await;
        let FilterOutput { values, cut, .. } = filtered.map_err(|error| filter_failed(&error, &input))?;
        let text = String::from_utf8_lossy(&values).into_owned();
        let (store, budget) = (context.session.result_store(), self.budget);
        let work = move || {
            if !cut && outline::about_tokens(&text) <= budget {
                return Some(text);
            }
            let handle = Results::new_handle()?;
            let Outline { text: outline, .. } = outline::outline(&text, OUTLINE_TOKENS);
            store.put(handle, &tool, &text_result(&text))?;
            let cut = if cut { " The filter gives even more: these are its first values." } else { "" };
            Some(format!(
                "{outline}\nThese values are more than fits, and a result of their own: \"{handle}\".{cut}"
            ))
        };
        let made = gateway.workers.run(caller, work).await.ok().flatten();
        made.ok_or_else(|| "the values are too large, and could not be stored".to_owned())
    }
}

/// Parses a line range: `10-50`, `10-`, `-50` or `10`.
fn line_range(text: &str) -> Result<Part, String> {
    let wrong = || format!("\"lines\" must be like \"10-50\", not {text:?}");
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
    Ok(match text.split_once(['-', ':', ',']) {
        Some((from, to)) if to.trim().is_empty() => Part::Lines(number(from)?, None),
        Some((from, to)) if from.trim().is_empty() => Part::Lines(1, Some(number(to)?)),
        Some((from, to)) => Part::Lines(number(from)?, Some(number(to)?)),
        None => Part::Lines(number(text)?, Some(number(text)?)),
    })
}

fn unreadable(error: &dyn std::fmt::Display) -> String {
    format!("the stored result cannot be read: {error}")
}
