//! The reply of a run, for the host's model.

use std::{borrow::Cow, fmt::Write, sync::Arc};

use bytes::Bytes;
use plugbay_core::{
    fit::ResultRules,
    surface::{BuiltinTool, Effect},
    text::{is_line_break, on_one_line, word},
    tool_result::ToolResult,
    wire::{Members, elements, string_value},
};
use serde::de::IgnoredAny;
use serde_json::json;

use super::ledger::{CallState, CalledTool, Entry, Ledger};
use crate::{
    context::RequestContext,
    respond,
    results::{Results, Store, parts},
    run::Ending,
    session::Session,
    suspended::RunId,
};

/// Arguments and reasons are reported up to this length, in characters.
const LONGEST: usize = 300;
/// Limit of calls that are reported.
const MOST_CALLS: usize = 50;

/// How a run ended.
pub(super) enum End {
    /// The script returned this JSON text, or nothing.
    Value(Bytes),
    Failed(String),
}

/// Values and texts above this many bytes are turned into an answer in another thread.
const LONG: usize = 64 << 10;

/// The answer of a run that has ended: what it printed and what it returned, or an outline if that is large.
pub(super) async fn ended(
    session: &Arc<Session>,
    printed: String,
    end: End,
    ledger: &Ledger,
    dry_run: bool,
) -> Ending {
    let end = match end {
        End::Failed(why) => End::Failed(failure(&why, ledger, dry_run)),
        value @ End::Value(_) => value,
    };
    let calls = dry_run.then(|| calls(ledger, "Calls that it would make:", |_, _| true));
    let is_long = printed.len() > LONG || matches!(&end, End::Value(value) if value.len() > LONG);
    let takes = session.host_view().takes();
    let threshold = ResultRules::default().threshold(BuiltinTool::RunCode.name(), false, takes);
    let store = session.result_store();
    let answer = move || {
        let (content, failed) = content(&printed, end, calls);
        let outline = outlined(&content, failed, threshold, &store);
        let labelled = || if takes.refuses_bare_json { labelled(content) } else { content };
        (outline.unwrap_or_else(labelled), failed)
    };
    let made =
        if is_long { session.gateway().workers.run(session.caller(), answer).await } else { Ok(answer()) };
    let (content, failed) =
        made.unwrap_or_else(|_| (format!("[{}]", text_block("the answer could not be made")), true));
    Box::new(move |context: RequestContext<'_>| {
        context.answer(respond::tool_content(context.request.id(), context.era, &content, failed));
    })
}

/// A list of blocks as raw JSON, and whether they report an error.
fn content(printed: &str, end: End, calls: Option<String>) -> (String, bool) {
    let printed = printed.trim_end_matches('\n');
    let mut blocks = Vec::new();
    blocks.extend((!printed.trim().is_empty()).then(|| text_block(printed)));
    let failed = match end {
        // Nothing that a script's process sends is trusted.
        End::Value(value) if !is_json(&value) => {
            blocks.push(text_block("the script's process has returned no JSON"));
            true
        }
        End::Value(value) => {
            blocks.extend(blocks_of(&value));
            own_blocks(&value).is_some() && ToolResult::read(&value).is_some_and(|result| result.is_error())
        }
        End::Failed(why) => {
            blocks.push(text_block(&why));
            true
        }
    };
    blocks.extend(calls.map(|calls| text_block(&calls)));
    if blocks.is_empty() {
        blocks.push(text_block("The script has returned nothing, and has printed nothing."));
    }
    (format!("[{}]", blocks.join(",")), failed)
}

/// The content for a host that rejects a first text that is JSON but no object.
fn labelled(content: String) -> String {
    let is_bare = |block: &[u8]| {
        let text = Members::find(block, &(0..block.len()), "text");
        let text = text.and_then(|text| string_value(&block[text]).map(Cow::into_owned));
        text.is_some_and(|text| is_json(text.as_bytes()) && !text.trim_start().starts_with('{'))
    };
    let first = elements(content.as_bytes(), &(0..content.len())).into_iter().next();
    match first {
        Some(first) if is_bare(&content.as_bytes()[first.clone()]) => {
            format!("[{},{}", text_block("The script has returned:"), &content[1..])
        }
        _ => content,
    }
}

/// An outline of large content; the whole is stored.
fn outlined(content: &str, failed: bool, threshold: Option<usize>, store: &Store) -> Option<String> {
    let threshold = threshold.filter(|threshold| content.len() > *threshold)?;
    let is_error = if failed { r#","isError":true"# } else { "" };
    let result = format!(r#"{{"content":{content}{is_error}}}"#).into_bytes();
    let (handle, tool) = (Results::new_handle()?, BuiltinTool::RunCode.name());
    let closing = format!(
        "result: \"{handle}\". Parts of it: {tool} with `(await results[\"{handle}\"])…`, or {} {{\"result\":\"{handle}\",\
         \"lines\":\"1-80\"}}",
        BuiltinTool::ReadResult.name()
    );
    let outline = parts::outlined(&result, threshold, &closing, None)?;
    store.put(handle, &tool.into(), &result)?;
    let content = Members::find(&outline, &(0..outline.len()), "content")?;
    String::from_utf8(outline[content].to_vec()).ok()
}

/// The answer of a run that was stopped because it takes long.
pub(super) fn stopped(run: RunId, printed: &str, ledger: &Ledger) -> Ending {
    let mut text = String::new();
    if !printed.trim().is_empty() {
        let _ = writeln!(text, "{}", printed.trim_end());
    }
    let under_way = ledger.under_way().join(", ");
    let waits = if under_way.is_empty() { String::new() } else { format!(" It waits for: {under_way}.") };
    let _ = write!(text, "The script is not done.{waits} ");
    let _ = write!(
        text,
        "Go on with {} {{\"resume\":\"{run}\"}}: no call is made twice.",
        BuiltinTool::RunCode.name()
    );
    Box::new(move |context| context.text(&Ok(text)))
}

pub(super) fn cannot_resume(run: RunId) -> String {
    format!(
        "{run} cannot be resumed: it has ended, was given up, or belongs to another session. Calls that it has made were made: \
         look at what they did before you run the script again."
    )
}

/// Says why a script has failed, and which of its calls may have changed something.
fn failure(why: &str, ledger: &Ledger, dry_run: bool) -> String {
    // It may quote a server: a line of its own would look like one of the calls.
    let why = why.split(is_line_break).collect::<Vec<_>>().join("\n  ");
    let was_made =
        |entry: &Entry| matches!(entry.state, CallState::UnderWay | CallState::Done | CallState::Failed(_));
    let may_have_changed = |tool: &CalledTool, entry: &Entry| tool.effect > Effect::Reads && was_made(entry);
    if dry_run || !ledger.tool_calls().any(|(_, tool, entry)| may_have_changed(tool, entry)) {
        return why;
    }
    let calls = calls(ledger, "Calls that were made and may have changed something:", may_have_changed);
    format!("{why}\n{calls}")
}

/// The calls of tools, one on each line.
fn calls(ledger: &Ledger, title: &str, is_told: impl Fn(&CalledTool, &Entry) -> bool) -> String {
    let told: Vec<_> = ledger.tool_calls().filter(|(_, tool, entry)| is_told(tool, entry)).collect();
    if told.is_empty() {
        return "It makes no call of a tool.".to_owned();
    }
    let mut text = title.to_owned();
    for (number, tool, entry) in told.iter().take(MOST_CALLS) {
        let arguments = String::from_utf8_lossy(entry.arguments());
        let state = match &entry.state {
            CallState::Unsent => "not made".to_owned(),
            CallState::UnderWay => "sent, and not answered".to_owned(),
            CallState::Done => "done".to_owned(),
            CallState::Checked => "fits its schema".to_owned(),
            CallState::Unchecked => "not checked, because it needs results of other calls".to_owned(),
            CallState::Failed(why) => format!("failed: {}", beginning(why)),
            CallState::Refused(why) => format!("refused: {}", beginning(why)),
        };
        let name = word(&tool.name);
        let _ = write!(text, "\n{number}. {name} {}: {state}", beginning(&arguments));
    }
    if let more @ 1.. = told.len().saturating_sub(MOST_CALLS) {
        let _ = write!(text, "\nand {more} more");
    }
    text
}

/// The beginning of a text, on one line.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", on_one_line(&text[..end])),
        None => on_one_line(text).into_owned(),
    }
}

fn text_block(text: &str) -> String {
    json!({ "type": "text", "text": text }).to_string()
}

fn is_json(value: &[u8]) -> bool {
    value.is_empty() || serde_json::from_slice::<IgnoredAny>(value).is_ok()
}

/// The value as content: MCP blocks unchanged, a string as text, anything else as JSON.
fn blocks_of(value: &[u8]) -> Vec<String> {
    if value.is_empty() {
        return Vec::new();
    }
    if let Some(blocks) = own_blocks(value) {
        return blocks;
    }
    let text = string_value(value).filter(|_| value.starts_with(b"\""));
    vec![text_block(&text.unwrap_or_else(|| String::from_utf8_lossy(value)))]
}

/// The blocks of a value that is a content block, a list of them, or a whole result.
fn own_blocks(value: &[u8]) -> Option<Vec<String>> {
    let whole = 0..value.len();
    let list = match value.first()? {
        b'[' => whole.clone(),
        b'{' => match Members::find(value, &whole, "content") {
            // A whole result with more than content is a value like any other.
            Some(content) if ToolResult::read(value).is_some_and(|result| result.structured().is_none()) => {
                content
            }
            _ => return is_block(value).then(|| vec![String::from_utf8_lossy(value).into_owned()]),
        },
        _ => return None,
    };
    let blocks: Vec<&[u8]> = elements(value, &list).into_iter().map(|span| &value[span]).collect();
    let all = !blocks.is_empty() && blocks.iter().all(|block| is_block(block));
    all.then(|| blocks.iter().map(|block| String::from_utf8_lossy(block).into_owned()).collect())
}

/// Whether a value is a block of content that hosts show.
fn is_block(value: &[u8]) -> bool {
    let text_of = |key: &str| {
        let span = Members::find(value, &(0..value.len()), key)?;
        Some((string_value(&value[span.clone()])?.into_owned(), span))
    };
    let has = |key: &str| Members::find(value, &(0..value.len()), key).is_some();
    match text_of("type").map(|(kind, _)| kind).as_deref() {
        Some("text") => text_of("text").is_some(),
        Some("image" | "audio") => text_of("data").is_some() && text_of("mimeType").is_some(),
        Some("resource") => has("resource"),
        Some("resource_link") => text_of("uri").is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(value: &str) -> Vec<String> {
        blocks_of(value.as_bytes())
    }

    #[test]
    fn a_bare_value_has_a_label_for_hosts_that_refuse_it() {
        let of = |text: &str| labelled(format!("[{}]", text_block(text)));
        for bare in ["42", "[1]", "null", "\"x\""] {
            let label = text_block("The script has returned:");
            assert_eq!(of(bare), format!("[{label},{}]", text_block(bare)));
        }
        for other in ["{}", "word", "42 words"] {
            assert_eq!(of(other), format!("[{}]", text_block(other)));
        }
    }

    #[test]
    fn values_are_text_and_blocks_of_content_stay_what_they_are() {
        let text = |text: &str| vec![text_block(text)];
        assert_eq!(blocks(""), Vec::<String>::new());
        assert_eq!(blocks(r#""a\nb""#), text("a\nb"));
        assert_eq!(blocks(r#"{"n":1.10}"#), text(r#"{"n":1.10}"#));
        assert_eq!(blocks("[1,2]"), text("[1,2]"));
        assert_eq!(blocks("[]"), text("[]"));
        let image = r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#;
        assert_eq!(blocks(image), [image]);
        assert_eq!(blocks(&format!("[{image},{image}]")), [image, image]);
        assert_eq!(blocks(&format!(r#"{{"content":[{image}]}}"#)), [image]);
        let other = r#"{"type":"image","size":7}"#;
        assert_eq!(blocks(other), text(other), "a row that has a type is no block");
        let document = r#"{"content":"words"}"#;
        assert_eq!(blocks(document), text(document));
    }
}
