//! A server as one tool: introspection of its tools, and calls of them.

use std::{collections::BTreeSet, fmt::Write};

use plugbay_core::{
    arguments::{self, Envelope, NoCall, ResolvedTool},
    name::ServerName,
    policy::Patterns,
    size_limit::{self, TooLong},
    surface::{
        AgentAccess, BuiltinTool, Callable, Snapshot,
        suite::{self, Wanted},
    },
    wire::string_value,
};

use super::{
    FEW_NAMES,
    activate::{Down, warmed_up},
    call_arguments::{Arguments, by_commas},
    checked, inner_route, read_result,
};
use crate::{
    agent::{self, AgentRequest},
    context::RequestContext,
    destination::{Route, Way},
    dispatch,
    message::Request,
    session::Session,
};

/// How many tools a narrowed introspection shows.
const FOUND: usize = 10;
/// An unknown action is quoted up to this length, in characters.
const MOST_ACTION: usize = 40;

/// Answers from the catalog. plugbay waits only for a server that has never connected.
pub(crate) fn serve(context: RequestContext<'_>, server: &ServerName) {
    let snapshot = context.snapshot();
    if snapshot.catalog.get(server).is_some() || snapshot.catalog.failure(server).is_some() {
        return serve_now(context, server, &Down::new());
    }
    let (owned, server) = (context.to_owned(), server.clone());
    let servers = BTreeSet::from([server.clone()]);
    let warming = async move { warmed_up(owned.borrow(), &servers).await };
    context.later(warming, move |context, down| serve_now(context, &server, &down));
}

/// `down`: the servers that failed while plugbay waited for them.
fn serve_now(context: RequestContext<'_>, server: &ServerName, down: &Down) {
    let request = context.request;
    let snapshot = context.snapshot();
    if let Some(reason) = unlisted(&snapshot, server, down) {
        return context.text(&Err(reason));
    }
    let reply = match action(request) {
        Action::Introspect => match Introspection::requested(request) {
            Ok(wanted) => return introspect(context, snapshot, server.clone(), wanted),
            Err(too_long) => Err(too_long.to_string()),
        },
        Action::Call => {
            let (quickly, server) = (call_quickly(context, &snapshot, server), server.clone());
            let find = move |context: RequestContext<'_>| call(context, &snapshot, &server);
            return context.checked(quickly, find, |context, found| match found {
                Ok(SuiteCall::Call(route)) => dispatch::forward(context, &route),
                Ok(SuiteCall::Agent(wanted)) => agent::begin(context, wanted),
                Ok(SuiteCall::ReadResult(arguments)) => read_result::serve(context, &arguments),
                Err(reply) => context.text(&Err(reply)),
            });
        }
        Action::Unknown(word) => Err(format!("\"action\" must be \"introspect\" or \"call\", not {word:?}")),
    };
    context.text(&reply);
}

/// The reason why the server's tools are unknown, if they are.
fn unlisted(snapshot: &Snapshot, server: &ServerName, down: &Down) -> Option<String> {
    if snapshot.catalog.get(server).is_some() {
        return None;
    }
    // A server that is slow to start is not reported as failed.
    Some(match snapshot.catalog.failure(server).or(down.get(server)) {
        Some(failure) => format!("{server} {}", failure.of_server()),
        None => format!("{server} has not listed its tools yet; try again soon"),
    })
}

enum Action {
    Introspect,
    Call,
    /// The action is unknown; this is its beginning.
    Unknown(String),
}

/// Other keys that models use for a subtool. They count only beside arguments.
const ALIASES: [&str; 6] = ["sub_tool", "subTool", "tool", "name", "tool_name", "toolName"];

/// The action of a call. Without `action`, the name of a subtool means `call`.
fn action(request: &Request) -> Action {
    let arguments = Arguments::of(request);
    match arguments.text("action").map(|word| word.trim().to_lowercase()) {
        Some(word) if word == "introspect" => Action::Introspect,
        Some(word) if word == "call" => Action::Call,
        Some(word) => Action::Unknown(word.chars().take(MOST_ACTION).collect()),
        None if [&arguments, &arguments.object("args")].iter().any(|one| one.text("subtool").is_some()) => {
            Action::Call
        }
        None if ["args", "arguments"].iter().any(|key| arguments.has(key))
            && ALIASES.iter().any(|key| arguments.text(key).is_some()) =>
        {
            Action::Call
        }
        None => Action::Introspect,
    }
}

/// An introspection: which tools of a server, and how much of each.
struct Introspection {
    query: Option<String>,
    names: Vec<String>,
    detail: bool,
}

impl Introspection {
    /// Reads the introspection request. Its keys may also stand below `args`, where models put everything
    /// else.
    fn requested(request: &Request) -> Result<Self, TooLong> {
        let outer = Arguments::of(request);
        let either = [&outer, &outer.object("args")];
        let (mut query, mut names) = (None, Vec::new());
        for arguments in either {
            query = query.or(arguments.text_within("query", size_limit::QUERY)?);
            names.extend(arguments.names(&["names", "subtool"], by_commas)?);
        }
        size_limit::check_names("names", names.len())?;
        Ok(Self { query, names, detail: either.iter().any(|arguments| arguments.is_true("detail")) })
    }
}

fn introspect(context: RequestContext<'_>, snapshot: Snapshot, server: ServerName, wanted: Introspection) {
    let takes_long = snapshot.tool_index.is_large() || wanted.names.len() > FEW_NAMES;
    // A query needs the search index.
    if wanted.query.is_some() {
        let searched = snapshot.clone();
        return context.when_searchable(&searched, move |context| {
            context.text_made(takes_long, move |session| introspected(session, &snapshot, &server, &wanted));
        });
    }
    context.text_made(takes_long, move |session| introspected(session, &snapshot, &server, &wanted));
}

fn introspected(
    session: &Session,
    snapshot: &Snapshot,
    server: &ServerName,
    wanted: &Introspection,
) -> Result<String, String> {
    let Introspection { query, names, detail } = wanted;
    let tools = match query {
        Some(query) => {
            let all = snapshot.names.of(server).count();
            let found = snapshot.tool_index.search(query, all, Some(server), session.gateway().table);
            Some(found.into_iter().map(|(found, _)| found.target.tool.clone()).collect())
        }
        None if names.is_empty() => None,
        None => Some(named(snapshot, server, names)?),
    };
    // A tool asked for by name is described in full.
    let full = *detail || !names.is_empty();
    let agents = snapshot.listing.agents && snapshot.layout.runs_agents_with(server) && tools.is_none();
    let most = if names.is_empty() && tools.is_some() { FOUND } else { usize::MAX };
    let on_results = |tool: &str| session.gateway().usage.shapes.line(server, &snapshot.catalog, tool);
    let wanted = Wanted { full, tools, most };
    let mut text = suite::introspect_with(server, snapshot, &wanted, &on_results);
    if agents {
        let _ = write!(text, "\n{}(query) - say in words what you want", BuiltinTool::NaturalLanguage.name());
    }
    Ok(text)
}

/// Tools by name, in any spelling, or by pattern.
fn named(snapshot: &Snapshot, server: &ServerName, names: &[String]) -> Result<Vec<String>, String> {
    let mut tools = Vec::new();
    for name in names {
        let patterns = Patterns::compile([name]).ok().filter(|_| name.contains(['*', '?', '{', '[']));
        match patterns {
            Some(patterns) => {
                let fitting =
                    snapshot.names.for_model_of(server).filter(|found| patterns.matches(&found.target.tool));
                tools.extend(fitting.map(|found| found.target.tool.clone()));
            }
            None => tools.push(suite::subtool(server, name, snapshot)?.target.tool.clone()),
        }
    }
    Ok(tools)
}

/// The call that a suite's arguments hold.
enum SuiteCall {
    Call(Route),
    /// A request in natural language.
    Agent(AgentRequest),
    /// Reads parts of a stored result, with these arguments.
    ReadResult(Vec<u8>),
}

fn call(context: RequestContext<'_>, snapshot: &Snapshot, server: &ServerName) -> Result<SuiteCall, String> {
    if let (None, Some(failure)) = (snapshot.catalog.get(server), snapshot.catalog.failure(server)) {
        return Err(format!("{server} {}", failure.of_server()));
    }
    let (outer, mode) = (context.request.arguments().unwrap_or(b"{}"), snapshot.layout.settings.repair);
    let agent = |name: &str| {
        name.eq_ignore_ascii_case(BuiltinTool::NaturalLanguage.name())
            && accepts_agent_requests(snapshot, server)
    };
    let tools = |name: &str, _: Option<&str>| {
        let agent_tool =
            || ResolvedTool { name: name.to_owned(), exact: true, schema: None, tool: Subtool::Agent };
        let callable = || suite::callable(server, name, snapshot).map(|tool| tool.map(Subtool::Server));
        let own = || read_result::resolved(name).map(|tool| tool.map(|()| Subtool::ReadResult));
        let ours = if name == suite::READ_RESULT { own() } else { None };
        ours.or_else(callable).or_else(own).or_else(|| agent(name).then(agent_tool))
    };
    let call = arguments::unwrap_call(outer, Envelope::SUITE, mode, &tools).map_err(|none| match none {
        NoCall::Unknown(name) => suite::subtool(server, &name, snapshot).err().unwrap_or_default(),
        NoCall::Refused(refusal) => refusal.to_string(),
    })?;
    match call.tool.tool.clone() {
        Subtool::Server(tool) => {
            let call = checked(call, mode)?;
            return inner_route(context, snapshot, tool.target(), call, Way::Suite).map(SuiteCall::Call);
        }
        Subtool::ReadResult => {
            return Ok(SuiteCall::ReadResult(checked(call, mode)?.arguments.into_owned()));
        }
        Subtool::Agent => {}
    }
    let query = Arguments::within(&call.arguments).text_within("query", size_limit::REQUEST);
    let query = query.map_err(|too_long| too_long.to_string())?;
    let query = query.or_else(|| sentence(&call.arguments).filter(|_| mode == arguments::Mode::Repair));
    let query = query.ok_or("\"args\" must hold \"query\": what you want done, in words")?;
    size_limit::check_length("query", &query, size_limit::REQUEST)
        .map_err(|too_long| too_long.to_string())?;
    Ok(SuiteCall::Agent(AgentRequest { query, server: Some(server.to_string()) }))
}

/// The same for a call of a tool that needs no closer look.
fn call_quickly(
    context: RequestContext<'_>,
    snapshot: &Snapshot,
    server: &ServerName,
) -> Option<Result<SuiteCall, String>> {
    snapshot.catalog.get(server)?;
    let tools = |name: &str, _: Option<&str>| {
        suite::callable(server, name, snapshot).filter(|_| name != suite::READ_RESULT)
    };
    let call = arguments::quick_call(context.short_arguments()?, Envelope::SUITE, &tools)?;
    let target = call.tool.tool.target().clone();
    Some(inner_route(context, snapshot, &target, call, Way::Suite).map(SuiteCall::Call))
}

/// What a name within a suite leads to.
#[derive(Clone)]
enum Subtool<'s> {
    Server(Callable<'s>),
    /// plugbay's own `read_result`: by its full name, or if the server has no tool of that name.
    ReadResult,
    Agent,
}

fn accepts_agent_requests(snapshot: &Snapshot, server: &ServerName) -> bool {
    snapshot.layout.agents != AgentAccess::Nobody && snapshot.layout.runs_agents_with(server)
}

/// The query, if a model sends its arguments as a string.
fn sentence(arguments: &[u8]) -> Option<String> {
    let text = string_value(arguments)?;
    let bare = || Some(text.clone().into_owned()).filter(|text| !text.trim().is_empty());
    if text.trim_start().starts_with('{') { Arguments::within(text.as_bytes()).text("query") } else { bare() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plugbay_core::{catalog::Catalog, failure::Failure, surface::Layout};

    use super::*;

    #[test]
    fn a_suite_of_a_server_without_a_tool_list_says_why() {
        let snapshot = Snapshot::new(Arc::new(Catalog::default()), Arc::new(Layout::default()), true);
        let server = ServerName::parse("slow").unwrap();
        let slow =
            Arc::new(Failure::new("is not ready after 30 s and goes on", Vec::new()).with_remedy("wait"));
        let told = |down: &Down| unlisted(&snapshot, &server, down).unwrap();
        assert_eq!(told(&Down::new()), "slow has not listed its tools yet; try again soon");
        let down = Down::from([(server.clone(), slow)]);
        assert_eq!(told(&down), "slow does not work: is not ready after 30 s and goes on; try: wait");
    }
}
