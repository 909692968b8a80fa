//! Suite mode: one tool per server, which lists the server's tools and calls them.

use bytes::{BufMut, BytesMut};
use serde_json::json;

use super::{
    BuiltinTool, Layout, Snapshot,
    found::{Callable, Found},
    instructions::{one_line, own_words, words_of},
};
use crate::{
    arguments::ResolvedTool,
    exposure::Suite,
    name::{self, ServerName},
    search::reply::schema_line,
    signature::{self, Signature, Steps, sentence_ends, without_marks},
    text,
    tokens::estimate,
};

/// The name of plugbay's `read_result` in the suite of a server that has a tool `read_result` of its own. It
/// means plugbay's tool everywhere.
pub const READ_RESULT: &str = "plugbay__read_result";
/// The ending after the server's name, unless the user wants another name.
const ENDING: &str = "_suite";
/// The longest that a server's own words may be, in bytes: a description stands in every conversation.
const DESCRIPTION: usize = 90;
/// A text of up to this many bytes is only a name.
const TITLE: usize = 30;
/// The longest summary, in characters; it ends with a sentence.
const SUMMARY: usize = 160;
/// How many bytes of a description are read for each character of its summary: it may have many blanks.
const BYTES_OF_A_CHARACTER: usize = 16;
/// Roughly what an introspection may cost, in tokens: with schemas, and without.
const FULL_BUDGET: usize = 8000;
const BRIEF_BUDGET: usize = 2500;

/// The name of a server's one tool.
pub(super) fn exposed(server: &ServerName, layout: &Layout, limit: usize) -> String {
    let wanted = layout.exposures.get(server).and_then(|exposure| exposure.suite.name.as_deref());
    name::expose_bare(&wanted.map_or_else(|| format!("{server}{ENDING}"), str::to_owned), limit)
}

pub(super) fn write_definition(out: &mut BytesMut, exposed: &str, server: &ServerName, snapshot: &Snapshot) {
    let name = serde_json::Value::from(exposed);
    let description = serde_json::Value::from(describe(server, snapshot));
    out.put_slice(format!(
        r#"{{"name":{name},"description":{description},"inputSchema":{{"type":"object","properties":{{"action":{{"type":"string","enum":["introspect","call"]}},"subtool":{{"type":"string"}},"args":{{"type":"object"}}}}}},"_meta":{{"anthropic/alwaysLoad":true}}}}"#
    ).as_bytes());
}

/// The description, from which a model knows when to look inside: the user's words, the server's own if they
/// are few, or those of its tools.
fn describe(server: &ServerName, snapshot: &Snapshot) -> String {
    if let Some(text) = &snapshot.suite(server).description {
        return one_line(text);
    }
    let offer = snapshot.catalog.get(server).map(|entry| &*entry.offer);
    let own = offer.and_then(|offer| own_words(offer).find(|text| text.len() <= DESCRIPTION));
    let own = own.unwrap_or_default();
    if own.len() > TITLE {
        return own;
    }
    let summary = snapshot.names.summary(server);
    match (own.is_empty(), summary.is_empty()) {
        (false, false) => format!("{own}: {summary}"),
        // The same text whether it is still starting or has failed: a failure must not change the list.
        (true, true) if offer.is_none() => {
            format!("The tools of {server}, which has not listed them yet; introspect says why")
        }
        (true, true) => format!("The tools of {server}"),
        _ => own + &*summary,
    }
}

/// Which tools a model wants to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Tools are shown with their schemas.
    pub full: bool,
    /// Tools that a search found, best first; `None` for all.
    pub tools: Option<Vec<String>>,
    /// The most tools to show.
    pub most: usize,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { full: false, tools: None, most: usize::MAX }
    }
}

/// The tools of a server: a line for each, and its schema if that is wanted. The names are the server's own,
/// as `subtool` takes them.
pub fn introspect(server: &ServerName, snapshot: &Snapshot, wanted: &Wanted) -> String {
    introspect_with(server, snapshot, wanted, &|_| None)
}

/// The same; after each schema comes a line on the tool's results, if `on_results` has one for its own name.
pub fn introspect_with(
    server: &ServerName,
    snapshot: &Snapshot,
    wanted: &Wanted,
    on_results: &dyn Fn(&str) -> Option<String>,
) -> String {
    let suite = snapshot.suite(server);
    let of_server: Vec<&Found> = snapshot.names.for_model_of(server).collect();
    let shown: Vec<&Found> = match &wanted.tools {
        None => of_server.clone(),
        Some(tools) => {
            let named = |tool: &String| of_server.iter().find(|found| found.target.tool == *tool).copied();
            tools.iter().filter_map(named).collect()
        }
    };
    let full = wanted.full || suite.full;
    let mut room = if full { FULL_BUDGET } else { BRIEF_BUDGET };
    let mut lines = Vec::new();
    let mut steps = Steps::default();
    for found in shown.iter().take(wanted.most) {
        let mut line = line(found, &suite, full, &mut steps);
        if full {
            line.extend(on_results(&found.target.tool).map(|shape| format!("\n{shape}")));
        }
        let cost = estimate(&line);
        if cost > room {
            break;
        }
        room -= cost;
        lines.push(line);
    }
    let left = shown.len() - lines.len();
    if left > 0 {
        lines.push(format!("and {left} more: narrow it with \"query\", or name them in \"names\""));
    }
    if lines.is_empty() {
        return format!(
            "{server} has {}",
            if of_server.is_empty() { "no tools" } else { "no tool like that" }
        );
    }
    // The list of all tools also has the server's own words.
    lines.extend(
        words_of(server, snapshot).filter(|_| wanted.tools.is_none()).map(|words| format!("\n{words}")),
    );
    lines.join("\n")
}

fn line(found: &Found, suite: &Suite, full: bool, steps: &mut Steps) -> String {
    let mut signature = Signature::for_line(found.own_name(), &found.tool, steps);
    let longest = suite.summary.unwrap_or(SUMMARY);
    if let Some((text, _)) = found.tool.description_start(BYTES_OF_A_CHARACTER * longest) {
        signature.purpose = shortened(without_marks(&text), longest);
    }
    match found.tool.raw("inputSchema").filter(|_| full).map(schema_line) {
        Some(schema) => format!("{} - {}\n{schema}", signature.name, signature.purpose),
        None => signature.line(signature::LINE + estimate(&signature.purpose)),
    }
}

/// A text within a limit of characters: the fewest sentences that say something, else a part of the first.
fn shortened(text: &str, limit: usize) -> String {
    let text = one_line(text);
    let end = text.char_indices().nth(limit).map_or(text.len(), |(end, _)| end);
    let cut = &text[..end];
    if let Some(at) = sentence_ends(cut).find(|at| cut[..*at].chars().count() >= limit / 4) {
        return cut[..at].to_owned();
    }
    if end == text.len() {
        return text;
    }
    let word = cut.rfind(' ').unwrap_or(cut.len());
    format!("{}…", cut[..word].trim_end_matches([',', ';', ':', ' ']))
}

/// The name by which a suite's call reads parts of results: another one if the server has a tool of that name.
pub fn read_result_name(server: &ServerName, snapshot: &Snapshot) -> &'static str {
    let own = BuiltinTool::ReadResult.name();
    if subtool(server, own, snapshot).is_ok() { READ_RESULT } else { own }
}

/// The tool that a suite calls by a name.
pub fn callable<'a>(
    server: &ServerName,
    name: &str,
    snapshot: &'a Snapshot,
) -> Option<ResolvedTool<Callable<'a>>> {
    let found = subtool(server, name, snapshot).ok()?;
    let exact = found.target.tool == name || found.exposed == name;
    Some(found.resolved(exact))
}

/// The tool that a model means, however it is written.
pub fn subtool<'a>(server: &ServerName, wanted: &str, snapshot: &'a Snapshot) -> Result<&'a Found, String> {
    let all = snapshot.names.for_model().filter(|found| found.target.server == *server);
    let all: Vec<&'a Found> = all.collect();
    let by = |fits: &dyn Fn(&Found) -> bool| all.iter().copied().find(|found| fits(found));
    let folded = name::folded(snapshot.names.prefixes.without_host(wanted));
    let is_alike = |found: &Found| {
        [&found.target.tool, &found.exposed]
            .iter()
            .any(|name| name::folded(name) == folded && !folded.is_empty())
    };
    let meant = by(&|found| found.target.tool == wanted)
        .or_else(|| by(&|found| found.exposed == wanted))
        .or_else(|| by(&is_alike).filter(|_| all.iter().filter(|found| is_alike(found)).count() == 1));
    meant.ok_or_else(|| {
        let near = name::nearest(wanted, all.iter().map(|found| found.target.tool.as_str()));
        let near = if near.is_empty() {
            all.iter().take(8).map(|found| found.target.tool.as_str()).collect()
        } else {
            near
        };
        let lines = near.iter().filter_map(|name| by(&|found| found.target.tool == *name));
        let mut steps = Steps::default();
        let line = |found: &Found| Signature::for_line(found.own_name(), &found.tool, &mut steps);
        let lines: Vec<String> = lines.map(line).map(|line| line.line(signature::LINE)).collect();
        let wanted = json!(wanted).to_string();
        format!("{server} has no tool {}. It has:\n{}", text::escaped_json(&wanted), lines.join("\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_ends_with_a_sentence_if_it_can() {
        let text = "Echoes the message. It is useful for testing.  And so on and so forth.";
        assert_eq!(shortened(text, 60), "Echoes the message.");
        assert_eq!(shortened(text, 100), "Echoes the message. It is useful for testing.");
        assert_eq!(
            shortened(text, 500),
            "Echoes the message. It is useful for testing. And so on and so forth."
        );
        assert_eq!(shortened("Reads a .mcp.json file. Quickly.", 60), "Reads a .mcp.json file.");
        assert_eq!(shortened("No. Then a long sentence without any end in sight", 20), "No. Then a long…");
        assert_eq!(shortened("天気を調べます。とても長い説明がここに続きます。", 12), "天気を調べます。");
    }
}
