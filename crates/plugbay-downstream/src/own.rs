//! The gateway's own tools: what a call of one of them does.

use std::{sync::Arc, time::Duration};

use bytes::{BufMut, BytesMut};
use plugbay_core::{
    era::Era,
    surface::{Found, Own, Snapshot},
    wire::{Members, Span, elements, string_value},
};

use crate::{
    dispatch::{self, Request},
    outbox::Outbox,
    respond,
    session::Session,
};

/// How many tools a search shows, unless it asks for another number.
const HITS: usize = 5;
const MOST_HITS: usize = 50;

pub(crate) fn serve(session: &Arc<Session>, sink: &Arc<Outbox>, request: &Request, era: Era, own: Own) {
    let snapshot = session.gateway().snapshot();
    let reply = match own {
        Own::Search => search(session, &snapshot, request),
        Own::Describe => describe(&snapshot, request),
        Own::Execute => match execute(&snapshot, request) {
            Ok(call) => return dispatch::call_tool(session, sink, &call, era),
            Err(reply) => Err(reply),
        },
        Own::Status => Ok(status(&snapshot)),
        Own::Refresh => {
            session.gateway().servers.refresh();
            Ok("All servers are being asked again.".to_owned())
        }
    };
    let (text, failed) = match reply {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    sink.answer(respond::tool_text(request.id(), era, &text, failed));
}

/// What a model sees of a call that could not be made.
type Reply = Result<String, String>;

fn search(session: &Session, snapshot: &Snapshot, request: &Request) -> Reply {
    let arguments = Arguments::of(request);
    let query = arguments.text("query").ok_or("\"query\" is missing: say what the tool should do")?;
    let limit =
        arguments.number("limit").map_or(HITS, |limit| limit.clamp(1.0, 50.0) as usize).min(MOST_HITS);
    let server = arguments.text("server");
    let hits = snapshot.finder.search(&query, limit, server.as_deref(), session.gateway().table);
    if hits.is_empty() {
        let servers: Vec<&str> = snapshot.catalog.iter().map(|(server, _)| server.as_str()).collect();
        return Ok(format!(
            "No tool found. Servers: {}. Try other words, or one of these as \"server\".",
            servers.join(", ")
        ));
    }
    let lines: Vec<String> = hits.iter().map(|(found, _)| line(found)).collect();
    Ok(lines.join("\n"))
}

fn describe(snapshot: &Snapshot, request: &Request) -> Reply {
    let names = Arguments::of(request).texts("name");
    if names.is_empty() {
        return Err("\"name\" is missing: give the name of a tool, or a list of names".to_owned());
    }
    let mut described = Vec::new();
    for name in names {
        let found = snapshot.finder.get(&name).ok_or_else(|| unknown(snapshot, &name))?;
        let definition = &found.tool.definition;
        let (before, after) =
            (&definition[..found.tool.name_span.start], &definition[found.tool.name_span.end..]);
        let quoted = serde_json::Value::from(found.exposed).to_string();
        described.push(String::from_utf8_lossy(&[before, quoted.as_bytes(), after].concat()).into_owned());
    }
    Ok(described.join("\n"))
}

/// The call that is meant: the request with the inner tool's name and arguments in place of ours. All else
/// that its host said goes with it.
fn execute(snapshot: &Snapshot, request: &Request) -> Result<Request, String> {
    let arguments = Arguments::of(request);
    let name = arguments.text("name").ok_or("\"name\" is missing: say which tool to call")?;
    snapshot.finder.get(&name).ok_or_else(|| unknown(snapshot, &name))?;
    let inner = arguments.raw("arguments").unwrap_or(b"{}");
    let mut message = BytesMut::with_capacity(inner.len() + 200);
    message.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    message.put_slice(request.id());
    message.put_slice(br#","method":"tools/call","params":{"name":"#);
    message.put_slice(serde_json::Value::from(name.as_str()).to_string().as_bytes());
    message.put_slice(br#","arguments":"#);
    message.put_slice(inner);
    if let Some((bytes, params)) = request.params() {
        for member in Members::of(bytes, params).flatten() {
            if member.key != "name" && member.key != "arguments" {
                message.put_slice(format!(",{}:", serde_json::Value::from(&*member.key)).as_bytes());
                message.put_slice(&bytes[member.value]);
            }
        }
    }
    message.put_slice(b"}}");
    let seconds = arguments.number("timeout").filter(|seconds| *seconds > 0.0);
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match dispatch::Message::read(message.freeze()) {
        Ok(dispatch::Message::Request(call)) => Ok(call.with_timeout(timeout)),
        _ => Err("\"arguments\" is not an object".to_owned()),
    }
}

fn unknown(snapshot: &Snapshot, name: &str) -> String {
    let nearest = snapshot.listing.nearest(name);
    match nearest.is_empty() {
        true => format!("There is no tool {name}. Use search_tools to find one."),
        false => format!("There is no tool {name}. Did you mean {}?", nearest.join(", ")),
    }
}

fn status(snapshot: &Snapshot) -> String {
    let lines = snapshot.catalog.iter().map(|(server, entry)| {
        let state = format!("{:?}", entry.freshness).to_lowercase();
        format!("{server}: {} tools, {state}", entry.offer.tools.len())
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn line(found: &Found) -> String {
    let description = found.tool.description().unwrap_or_default();
    let first = description.split(['\n']).next().unwrap_or_default();
    let end = first.find(". ").map_or(first.len(), |end| end + 1);
    format!("{} - {}", found.exposed, &first[..end])
}

/// The arguments of a call, looked up by name.
struct Arguments<'a>(Option<&'a [u8]>);

impl<'a> Arguments<'a> {
    fn of(request: &'a Request) -> Self {
        Self(request.arguments())
    }

    fn find(&self, key: &str) -> Option<(&'a [u8], Span)> {
        let bytes = self.0?;
        Some((bytes, Members::find(bytes, &(0..bytes.len()), key)?))
    }

    fn raw(&self, key: &str) -> Option<&'a [u8]> {
        self.find(key).map(|(bytes, span)| &bytes[span])
    }

    fn text(&self, key: &str) -> Option<String> {
        string_value(self.raw(key)?).map(|text| text.into_owned()).filter(|text| !text.trim().is_empty())
    }

    fn number(&self, key: &str) -> Option<f64> {
        std::str::from_utf8(self.raw(key)?).ok()?.trim_matches('"').parse().ok()
    }

    /// One text, or a list of them.
    fn texts(&self, key: &str) -> Vec<String> {
        let one = self.text(key);
        let many = self.find(key).map(|(bytes, span)| {
            elements(bytes, &span)
                .into_iter()
                .filter_map(|span| Some(string_value(&bytes[span])?.into_owned()))
        });
        one.into_iter().chain(many.into_iter().flatten()).collect()
    }
}
