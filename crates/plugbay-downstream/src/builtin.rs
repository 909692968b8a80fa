//! The built-in tools.

mod activate;
mod call_arguments;
mod code;
pub(crate) mod prompts;
pub(crate) mod read_result;
mod search;
mod skill;
pub(crate) mod suite;

use std::{borrow::Cow, collections::BTreeSet, ops::Range, sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    arguments::{self, CheckedArguments, CompiledSchema, Envelope, NoCall},
    name::{self, ServerName},
    search::reply,
    size_limit,
    surface::{BuiltinTool, Callable, Found, Snapshot, Spelled, Target, failed_unlisted, words_of},
    text::word,
    wire::{Head, Members, Span, write},
};

use self::call_arguments::{Arguments, by_commas};
use crate::{
    agent::{self, AgentRequest},
    context::RequestContext,
    destination::{InnerCall, Route, Way},
    dispatch,
    message::Request,
    refusal::Refusal,
    results::parts::on_one_line,
    session::Session,
    tasks,
};

/// Longest timeout that a call may ask for.
const LONGEST_CALL: Duration = Duration::from_secs(3600);
/// The `_meta` key under which a result lists the repairs of its call.
const REPAIRS_KEY: &str = "plugbay/repairs";
/// How many tools are suggested for an unknown name.
const NEAREST: usize = 3;
/// Up to this many names are looked up on the event loop.
const FEW_NAMES: usize = 8;
/// Limit of definitions that one call describes, in bytes.
const DESCRIPTIONS: usize = 4 << 20;

pub(crate) fn serve(context: RequestContext<'_>, tool: BuiltinTool) {
    // Activation and status also concern servers that are still warming up, and results are stored here.
    let needs_no_list = matches!(
        tool,
        BuiltinTool::Activate
            | BuiltinTool::Deactivate
            | BuiltinTool::Overview
            | BuiltinTool::Status
            | BuiltinTool::Refresh
            | BuiltinTool::ReadResult
    );
    if context.snapshot().settled || needs_no_list || names_known_tools(context, tool) {
        return serve_now(context, tool);
    }
    // The next server to list its tools may bring the wanted one.
    context.when_settled(move |context| serve_now(context, tool));
}

/// Whether the call names known tools, exactly as exposed. Servers that have yet to list cannot change their
/// meaning.
fn names_known_tools(context: RequestContext<'_>, tool: BuiltinTool) -> bool {
    if !matches!(tool, BuiltinTool::Execute | BuiltinTool::Read | BuiltinTool::Describe) {
        return false;
    }
    let (arguments, snapshot) = (Arguments::of(context.request), context.snapshot());
    let names = arguments.names(&["name", "names"], by_commas).unwrap_or_default();
    let is_known = |name: &String| snapshot.names.get(name).is_some();
    !names.is_empty() && names.iter().all(is_known) && !arguments.has("server")
}

fn serve_now(context: RequestContext<'_>, tool: BuiltinTool) {
    let request = context.request;
    let snapshot = context.snapshot();
    let reply = match tool {
        BuiltinTool::Search => return search::serve(context),
        BuiltinTool::Describe => match skill::wanted(&snapshot, request) {
            Some(uri) => return skill::describe(context, &snapshot, uri),
            None => return describe(context, snapshot),
        },
        BuiltinTool::Execute | BuiltinTool::Read => {
            let quickly = execute_quickly(context, &snapshot, tool);
            let find = move |context: RequestContext<'_>| execute(context, &snapshot, tool);
            return context.checked(quickly, find, |context, call| match call {
                Ok(ExecutedCall::Server(route)) => dispatch::forward(context, &route),
                Ok(ExecutedCall::ReadResult(arguments)) => read_result::serve(context, &arguments),
                Err(NotCalled::Told(reply)) => context.text(&Err(reply)),
                Err(NotCalled::Refused(refusal)) => context.refuse(&refusal),
            });
        }
        BuiltinTool::Activate | BuiltinTool::Deactivate => return activate::switch(context, tool),
        BuiltinTool::NaturalLanguage => match agent_request(request) {
            Ok(wanted) => return agent::begin(context, wanted),
            Err(reply) => Err(reply),
        },
        BuiltinTool::RunCode => return code::begin(context),
        BuiltinTool::Status | BuiltinTool::Overview => {
            let is_large = snapshot.tool_index.is_large();
            return context.text_made(is_large, |session| Ok(activate::overview(session)));
        }
        BuiltinTool::ReadResult => match read_result::checked(request, snapshot.layout.settings.repair) {
            Ok(arguments) => return read_result::serve(context, &arguments),
            Err(refusal) => Err(refusal),
        },
        BuiltinTool::Refresh => match refresh(context, &snapshot) {
            Ok(told) => Ok(told),
            Err(refusal) => return context.refuse(&refusal),
        },
    };
    context.text(&reply);
}

/// Asks the servers that the caller may use to list their tools again. This counts as one call.
fn refresh(context: RequestContext<'_>, snapshot: &Snapshot) -> Result<String, Refusal> {
    let principal = &context.gateway().principal;
    if !principal.may_refresh() {
        return Ok("All servers were asked a few seconds ago, and are listing their tools.".to_owned());
    }
    principal.admit(snapshot.layout.settings.call_limits).map_err(Refusal::Limited)?;
    for server in snapshot.servers() {
        context.gateway().servers.refresh(&server);
    }
    Ok("All servers are listing their tools again.".to_owned())
}

/// The schema of the arguments of a built-in tool.
fn schema_of(tool: BuiltinTool) -> CompiledSchema {
    let definition = tool.definition().as_bytes();
    let schema = Members::find(definition, &(0..definition.len()), "inputSchema");
    CompiledSchema::new(schema.map_or(b"{}", |schema| &definition[schema]))
}

/// The text of a built-in tool's result; `Err` is an error that the model reads.
type Reply = Result<String, String>;

/// `describe_tool`: known tools are described even if others of the names are unknown.
fn describe(context: RequestContext<'_>, snapshot: Snapshot) {
    let (arguments, keys) = (Arguments::of(context.request), ["name", "names"]);
    let names = match arguments.names(&keys, by_commas) {
        Ok(names) if !names.is_empty() => names,
        Ok(_) => {
            let missing = "\"name\" is missing: give the name of a tool, or a list of names";
            return context.text(&Err(arguments.with_unknown(missing, BuiltinTool::Describe, &keys)));
        }
        Err(too_long) => return context.text(&Err(too_long.to_string())),
    };
    let takes_long = names.len() > FEW_NAMES || snapshot.tool_index.is_large();
    context.text_made(takes_long, move |session| described(session, &snapshot, &names));
}

fn described(session: &Session, snapshot: &Snapshot, names: &[String]) -> Reply {
    let (mut told, mut servers, mut room) = (Vec::new(), BTreeSet::new(), DESCRIPTIONS);
    let mut described = BTreeSet::new();
    for (at, name) in names.iter().enumerate() {
        let found = snapshot.names.alike(name);
        // Two spellings may mean the same tool.
        if !described.insert(found.map_or(name, |found| &found.exposed)) {
            continue;
        }
        if room == 0 {
            let left = names.len() - at;
            told.push(format!("{left} more are not described, because this is long: name fewer tools"));
            break;
        }
        servers.extend(found.map(|found| &found.target.server));
        let text = found.map_or_else(
            || unknown(session, snapshot, name),
            |found| with_shape(reply::definition(&found.definition()), session, snapshot, &found.target),
        );
        room = room.saturating_sub(text.len());
        told.push(text);
    }
    told.extend(servers.iter().filter_map(|server| words_of(server, snapshot)));
    let told = told.join("\n");
    if servers.is_empty() { Err(told) } else { Ok(told) }
}

/// The definition of a tool, followed by the shape of its results, if that is known.
fn with_shape(mut definition: String, session: &Session, snapshot: &Snapshot, target: &Target) -> String {
    let shape = session.gateway().usage.shapes.line(&target.server, &snapshot.catalog, &target.tool);
    definition.extend(shape.map(|shape| format!("\n{shape}")));
    definition
}

/// The reason why `execute_tool` makes no call.
enum NotCalled {
    /// An error that the model reads.
    Told(String),
    /// An error that the host reads.
    Refused(Refusal),
}

impl From<String> for NotCalled {
    fn from(told: String) -> Self {
        Self::Told(told)
    }
}

/// The call in the arguments of `execute_tool`.
enum ExecutedCall {
    Server(Route),
    /// A call of the unlisted tool that reads stored results, with these arguments.
    ReadResult(Vec<u8>),
}

fn execute(
    context: RequestContext<'_>,
    snapshot: &Snapshot,
    tool: BuiltinTool,
) -> Result<ExecutedCall, NotCalled> {
    let (outer, mode) = (context.request.arguments().unwrap_or(b"{}"), snapshot.layout.settings.repair);
    let tools = |name: &str, server: Option<&str>| {
        let own = || read_result::resolved(name).filter(|_| server.is_none()).map(|own| own.map(|()| None));
        own().or_else(|| snapshot.executable(name, server).map(|tool| tool.map(Some)))
    };
    let call = arguments::unwrap_call(outer, Envelope::EXECUTE, mode, &tools).map_err(|none| match none {
        NoCall::Unknown(name) => match context.missing_scope(&name) {
            Some(refusal) => NotCalled::Refused(refusal),
            None => unknown(context.session, snapshot, &name).into(),
        },
        NoCall::Refused(refusal) => refusal.to_string().into(),
    })?;
    let Some(callable) = call.tool.tool.clone() else {
        let call = checked(call, mode)?;
        return Ok(ExecutedCall::ReadResult(call.arguments.into_owned()));
    };
    check_read_only(tool, &call.tool.name, &callable)?;
    let route = inner_route(context, snapshot, callable.target(), checked(call, mode)?, Way::Execute)?;
    Ok(ExecutedCall::Server(route))
}

/// The same for a call of a server's tool that needs no closer look.
fn execute_quickly(
    context: RequestContext<'_>,
    snapshot: &Snapshot,
    tool: BuiltinTool,
) -> Option<Result<ExecutedCall, NotCalled>> {
    let tools = |name: &str, server: Option<&str>| snapshot.executable(name, server);
    let call = arguments::quick_call(context.short_arguments()?, Envelope::EXECUTE, &tools)?;
    if let Err(not_called) = check_read_only(tool, &call.tool.name, &call.tool.tool) {
        return Some(Err(not_called));
    }
    let target = call.tool.tool.target().clone();
    let route = inner_route(context, snapshot, &target, call, Way::Execute);
    Some(route.map(ExecutedCall::Server).map_err(NotCalled::from))
}

/// Rejects tools that may change something: a host may allow `execute_read_tool` without asking.
fn check_read_only(tool: BuiltinTool, name: &str, callable: &Callable<'_>) -> Result<(), NotCalled> {
    if tool == BuiltinTool::Read && !callable.found().is_some_and(Found::is_read_only) {
        let execute = BuiltinTool::Execute.name();
        return Err(format!("{} may change things: call it with {execute}", word(name)).into());
    }
    Ok(())
}

fn checked<T>(call: arguments::Call<'_, T>, mode: arguments::Mode) -> Result<arguments::Call<'_, T>, String> {
    call.checked(mode).map_err(|refusal| refusal.to_string())
}

/// The route of a checked call that stands in the arguments of another one.
fn inner_route<T>(
    context: RequestContext<'_>,
    snapshot: &Snapshot,
    target: &Target,
    call: arguments::Call<'_, T>,
    way: Way,
) -> Result<Route, String> {
    let RequestContext { request, era, .. } = context;
    let (Some(name), Some(outer)) = (request.name.clone(), request.arguments.clone()) else {
        return Err("\"arguments\" are missing".to_owned());
    };
    let checked = CheckedArguments { arguments: call.arguments, repairs: call.repairs };
    let timeout = call.timeout.map(|timeout| timeout.min(LONGEST_CALL));
    let filter = call.filter.map(Arc::from);
    let inner = InnerCall { way, filter, timeout, ..inner_call(request, outer, checked)? };
    Ok(Route {
        server: target.server.clone(),
        subject: Some((name, target.quoted.clone())),
        role: tasks::role_of_call(request, era, snapshot, target),
        inner: Some(inner),
    })
}

/// A call with these arguments in place of those at `outer`.
pub(crate) fn inner_call(
    request: &Request,
    outer: Span,
    checked: CheckedArguments<'_>,
) -> Result<InnerCall, String> {
    let CheckedArguments { arguments, repairs } = checked;
    let arguments = match arguments {
        Cow::Borrowed(arguments) => shared(&request.message, arguments),
        Cow::Owned(arguments) => sendable(on_one_line(arguments).into())?,
    };
    let repaired = serde_json::to_string(&repairs).ok().filter(|_| !repairs.is_empty());
    let repairs = repaired.map(|repairs| Bytes::from(format!(r#""{REPAIRS_KEY}":{repairs}"#)));
    Ok(InnerCall { arguments: (outer, arguments), way: Way::Plain, filter: None, timeout: None, repairs })
}

/// `part` as a slice of the message, or a copy if it is no part of the message, such as empty arguments.
fn shared(message: &Bytes, part: &[u8]) -> Bytes {
    let within = message.as_ptr_range();
    let Range { start, end } = part.as_ptr_range();
    if within.start <= start && end <= within.end {
        message.slice_ref(part)
    } else {
        Bytes::copy_from_slice(part)
    }
}

/// Checks that the arguments fit into a message: if they came as a string, they may be nested too deep.
fn sendable(arguments: Bytes) -> Result<Bytes, String> {
    let params = [br#"{"arguments":"#, &*arguments, b"}"].concat();
    let is_message = Head::read(&write::request(b"0", "tools/call", &params)).is_ok();
    is_message.then_some(arguments).ok_or_else(|| "\"arguments\" cannot be sent as they are".to_owned())
}

fn agent_request(request: &Request) -> Result<AgentRequest, String> {
    let arguments = Arguments::of(request);
    let text = |key, limit| arguments.text_within(key, limit).map_err(|too_long| too_long.to_string());
    let missing = || {
        let missing = arguments.missing("query", "say what you want done");
        arguments.with_unknown(&missing, BuiltinTool::NaturalLanguage, &[])
    };
    let query = text("query", size_limit::REQUEST)?.ok_or_else(missing)?;
    Ok(AgentRequest { query, server: text("server", size_limit::NAME)? })
}

/// The reply to an unknown name: why its server has no tools, else similar names, else tools that do what the
/// name says.
fn unknown(session: &Session, snapshot: &Snapshot, name: &str) -> String {
    let server = name::split(name).and_then(|(server, _)| ServerName::parse(server).ok());
    if let Some(server) = server
        && let Some(failure) = failed_unlisted(snapshot, &server)
    {
        return format!("{server} {}", failure.of_server());
    }
    if let Spelled::Several(candidates) = snapshot.names.spelled(name) {
        let candidates = candidates.iter().map(|found| found.exposed.clone()).collect();
        return Refusal::Ambiguous { name: name.to_owned(), candidates }.message();
    }
    if BuiltinTool::named(name).is_some() {
        return format!("{name} is a tool of plugbay itself: call it directly");
    }
    let alike = snapshot.names.nearest(name).into_iter().filter_map(|name| snapshot.names.get(name));
    let mut nearest: Vec<&Found> = alike.collect();
    if nearest.is_empty() && snapshot.tool_index.is_quick() {
        let hits = snapshot.tool_index.candidates(name, NEAREST, None, session.gateway().table);
        nearest = hits.into_iter().map(|(found, _)| found).collect();
    }
    let switched = snapshot.listing.is_switchable() && !snapshot.listing.is_searchable();
    let finder = if switched { BuiltinTool::Activate } else { BuiltinTool::Search };
    let nearest: Vec<_> = nearest.into_iter().map(|found| shown(snapshot, found)).collect();
    reply::unknown(name, &nearest, finder.name())
}

fn shown<'a>(snapshot: &Snapshot, found: &'a Found) -> reply::Found<'a> {
    let reads = snapshot.layout.split && found.is_read_only();
    reply::Found { name: &found.exposed, tool: &found.tool, reads }
}
