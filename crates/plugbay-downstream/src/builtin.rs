//! The gateway's own tools: what a call of one of them does.

mod activate;
mod finding;
mod given;
pub(crate) mod prompts;
pub(crate) mod suite;

use std::time::Duration;

use bytes::{BufMut, BytesMut};
use plugbay_core::{
    arguments::{self, Envelope, NoCall, Repair},
    search::reply,
    surface::{BuiltinTool, Found, Snapshot},
    wire::Members,
};

use self::given::Arguments;
use crate::{
    agent::{self, AgentRequest},
    context::RequestContext,
    dispatch,
    message::{Message, Request},
    session::Session,
};

/// A model may be patient, but not for ever.
const LONGEST_CALL: Duration = Duration::from_secs(3600);
/// As many as are shown for a name that is none.
const NEAREST: usize = 3;

pub(crate) fn serve(context: RequestContext<'_>, tool: BuiltinTool) {
    // Activation and status also concern servers that are still warming up.
    let for_servers = matches!(
        tool,
        BuiltinTool::Activate
            | BuiltinTool::Deactivate
            | BuiltinTool::Overview
            | BuiltinTool::Status
            | BuiltinTool::Refresh
    );
    if context.snapshot().settled || for_servers {
        return serve_now(context, tool);
    }
    // The next server may bring the tool that is wanted.
    context.when_settled(move |context| serve_now(context, tool));
}

fn serve_now(context: RequestContext<'_>, tool: BuiltinTool) {
    let RequestContext { session, request, .. } = context;
    let snapshot = context.snapshot();
    let reply = match tool {
        BuiltinTool::Search => return finding::serve(context),
        BuiltinTool::Describe => describe(session, &snapshot, request),
        BuiltinTool::Execute | BuiltinTool::Read => match execute(session, &snapshot, request, tool) {
            Ok(call) => return dispatch::call_tool(context.with_request(&call)),
            Err(reply) => Err(reply),
        },
        BuiltinTool::Activate | BuiltinTool::Deactivate => return activate::switch(context, tool),
        BuiltinTool::NaturalLanguage => match agent_request(request) {
            Ok(wanted) => return agent::begin(context, wanted),
            Err(reply) => Err(reply),
        },
        BuiltinTool::Status | BuiltinTool::Overview => Ok(activate::overview(session)),
        BuiltinTool::Refresh => {
            context.gateway().servers.refresh();
            Ok("All servers are being asked again.".to_owned())
        }
    };
    context.text(&reply);
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
    let (outer, mode) = (request.arguments().unwrap_or(b"{}"), snapshot.layout.settings.repair);
    let tools = |name: &str, server: Option<&str>| snapshot.executable(name, server);
    let meant =
        arguments::unwrap_call(outer, Envelope::EXECUTE, mode, &tools).map_err(|none| match none {
            NoCall::Unknown(name) => unknown(session, snapshot, &name),
            NoCall::Refused(refusal) => refusal.to_string(),
        })?;
    let found = snapshot.names.get(&meant.name);
    // A host may let this one pass unasked, so it must not be able to change anything.
    if own == BuiltinTool::Read && !found.is_some_and(Found::is_read_only) {
        return Err(format!(
            "{} may change things: call it with {}",
            meant.name,
            BuiltinTool::Execute.name()
        ));
    }
    inner_call(request, found, &meant, mode)
}

/// The request with another tool and its arguments, checked and put right, in place of what stood there.
fn inner_call(
    request: &Request,
    found: Option<&Found>,
    meant: &arguments::Call<'_>,
    mode: arguments::Mode,
) -> Result<Request, String> {
    let schema = found.and_then(|found| found.tool.raw("inputSchema")).unwrap_or(b"{}");
    let fitting = arguments::fit(schema, &meant.arguments, mode).map_err(|refusal| refusal.to_string())?;
    let repairs: Vec<Repair> = meant.repairs.iter().chain(&fitting.repairs).cloned().collect();

    let mut message = BytesMut::with_capacity(fitting.arguments.len() + 200);
    message.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    message.put_slice(request.id());
    message.put_slice(br#","method":"tools/call","params":{"name":"#);
    message.put_slice(serde_json::Value::from(meant.name.as_str()).to_string().as_bytes());
    message.put_slice(br#","arguments":"#);
    message.put_slice(&fitting.arguments);
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
            Ok(call.meant(meant.timeout.map(|timeout| timeout.min(LONGEST_CALL)), &repairs))
        }
        _ => Err("\"arguments\" cannot be sent as they are".to_owned()),
    }
}

fn agent_request(request: &Request) -> Result<AgentRequest, String> {
    let arguments = Arguments::of(request);
    let missing = || "\"query\" is missing: say what you want done".to_owned();
    Ok(AgentRequest { query: arguments.text("query").ok_or_else(missing)?, server: arguments.text("server") })
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
