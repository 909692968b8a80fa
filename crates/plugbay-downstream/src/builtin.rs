//! The gateway's own tools: what a call of one of them does.

mod activate;
mod finding;
mod given;
pub(crate) mod prompts;
pub(crate) mod suite;

use std::{sync::Arc, time::Duration};

use bytes::{BufMut, BytesMut};
use plugbay_core::{
    arguments::{self, Envelope, NoCall},
    era::Era,
    search::reply,
    surface::{BuiltinTool, Found, Snapshot},
    wire::Members,
};

use self::given::Arguments;
use crate::{
    agent::{self, Wish},
    dispatch,
    message::{Message, Request},
    outbox::Outbox,
    respond,
    session::Session,
};

/// A model may be patient, but not for ever.
const LONGEST_CALL: Duration = Duration::from_secs(3600);
/// As many as are shown for a name that is none.
const NEAREST: usize = 3;

pub(crate) fn serve(
    session: &Arc<Session>,
    sink: &Arc<Outbox>,
    request: &Request,
    era: Era,
    own: BuiltinTool,
) {
    // Whoever switches, or asks how servers are, wants to know of those that are still coming.
    let for_servers = matches!(
        own,
        BuiltinTool::Activate
            | BuiltinTool::Deactivate
            | BuiltinTool::Overview
            | BuiltinTool::Status
            | BuiltinTool::Refresh
    );
    if session.snapshot().settled || for_servers {
        return serve_now(session, sink, request, era, own);
    }
    // What is to be found may come with the next server.
    dispatch::when_settled(session, sink, request, move |session, sink, request| {
        serve_now(session, sink, request, era, own);
    });
}

fn serve_now(session: &Arc<Session>, sink: &Arc<Outbox>, request: &Request, era: Era, own: BuiltinTool) {
    let snapshot = session.snapshot();
    let reply = match own {
        BuiltinTool::Search => return finding::serve(session, sink, request, era),
        BuiltinTool::Describe => describe(session, &snapshot, request),
        BuiltinTool::Execute | BuiltinTool::Read => match execute(session, &snapshot, request, own) {
            Ok(call) => return dispatch::call_tool(session, sink, &call, era),
            Err(reply) => Err(reply),
        },
        BuiltinTool::Activate | BuiltinTool::Deactivate => {
            return activate::switch(session, sink, request, era, own);
        }
        BuiltinTool::NaturalLanguage => match wish(request) {
            Ok(wish) => return agent::begin(session, sink, request, era, wish),
            Err(reply) => Err(reply),
        },
        BuiltinTool::Status | BuiltinTool::Overview => Ok(activate::overview(session)),
        BuiltinTool::Refresh => {
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

/// What there is of the wanted is told, whatever else was wanted with it.
fn describe(session: &Session, snapshot: &Snapshot, request: &Request) -> Reply {
    let arguments = Arguments::of(request);
    let names = [arguments.texts("name"), arguments.texts("names")].concat();
    let names: Vec<&str> = names.iter().flat_map(|name| name.split(',')).map(str::trim).collect();
    if names.is_empty() {
        return Err("\"name\" is missing: give the name of a tool, or a list of names".to_owned());
    }
    let (mut told, mut any) = (Vec::new(), false);
    for name in names {
        let found = snapshot.names.alike(name);
        any |= found.is_some();
        told.push(found.map_or_else(
            || unknown(session, snapshot, name),
            |found| reply::definition(&found.definition()),
        ));
    }
    let told = told.join("\n");
    if any { Ok(told) } else { Err(told) }
}

/// The call that is meant: the request with the inner tool's name and arguments in place of ours. All else
/// that its host said goes with it.
fn execute(
    session: &Session,
    snapshot: &Snapshot,
    request: &Request,
    own: BuiltinTool,
) -> Result<Request, String> {
    let (outer, mode) = (request.arguments().unwrap_or(b"{}"), session.gateway().repair);
    let tools = |name: &str, server: Option<&str>| snapshot.executable(name, server);
    let meant =
        arguments::unwrap_call(outer, Envelope::EXECUTE, mode, &tools).map_err(|none| match none {
            NoCall::Unknown(name) => unknown(session, snapshot, &name),
            NoCall::Refused(refusal) => refusal.to_string(),
        })?;
    let found = meant.tool.tool.found();
    // A host may let this one pass unasked, so it must not be able to change anything.
    if own == BuiltinTool::Read && !found.is_some_and(Found::is_read_only) {
        return Err(format!(
            "{} may change things: call it with {}",
            meant.tool.name,
            BuiltinTool::Execute.name()
        ));
    }
    inner_call(request, meant, mode)
}

/// The request with another tool and its arguments, checked and put right, in place of what stood there.
fn inner_call<T>(
    request: &Request,
    meant: arguments::Call<'_, T>,
    mode: arguments::Mode,
) -> Result<Request, String> {
    let meant = meant.checked(mode).map_err(|refusal| refusal.to_string())?;

    let mut message = BytesMut::with_capacity(meant.arguments.len() + 200);
    message.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    message.put_slice(request.id());
    message.put_slice(br#","method":"tools/call","params":{"name":"#);
    message.put_slice(serde_json::Value::from(meant.tool.name.as_str()).to_string().as_bytes());
    message.put_slice(br#","arguments":"#);
    message.put_slice(&meant.arguments);
    if let Some((bytes, params)) = request.params() {
        for member in Members::of(bytes, params).flatten() {
            if member.key != "name" && member.key != "arguments" {
                message.put_slice(format!(",{}:", serde_json::Value::from(&*member.key)).as_bytes());
                message.put_slice(&bytes[member.value]);
            }
        }
    }
    message.put_slice(b"}}");
    match Message::read(message.freeze()) {
        Ok(Message::Request(call)) => {
            Ok(call.meant(meant.timeout.map(|timeout| timeout.min(LONGEST_CALL)), &meant.repairs))
        }
        _ => Err("\"arguments\" cannot be sent as they are".to_owned()),
    }
}

fn wish(request: &Request) -> Result<Wish, String> {
    let arguments = Arguments::of(request);
    let missing = || "\"query\" is missing: say what you want done".to_owned();
    Ok(Wish { query: arguments.text("query").ok_or_else(missing)?, server: arguments.text("server") })
}

/// The names that are like it, or else the tools that do what it says.
fn unknown(session: &Session, snapshot: &Snapshot, name: &str) -> String {
    let alike = snapshot.names.nearest(name).into_iter().filter_map(|name| snapshot.names.get(name));
    let mut nearest: Vec<&Found> = alike.collect();
    if nearest.is_empty() && snapshot.tool_index.is_quick() {
        let hits = snapshot.tool_index.search(name, NEAREST, None, session.gateway().table);
        nearest = hits.into_iter().map(|(found, _)| found).collect();
    }
    let switched = snapshot.listing.is_switchable() && !snapshot.listing.is_searchable();
    let tool_index = if switched { BuiltinTool::Activate } else { BuiltinTool::Search };
    let nearest: Vec<_> = nearest.into_iter().map(|found| shown(snapshot, found)).collect();
    reply::unknown(name, &nearest, tool_index.name())
}

fn shown<'a>(snapshot: &Snapshot, found: &'a Found) -> reply::Found<'a> {
    let reads = snapshot.layout.split && found.is_read_only();
    reply::Found { name: &found.exposed, tool: &found.tool, reads }
}
