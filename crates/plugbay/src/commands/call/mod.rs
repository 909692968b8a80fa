//! `plugbay call`: one tool, once, the way a host would call it.

mod arguments;
mod filter;
mod request;
mod save;
mod typing;

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    arguments::{Refusal, check},
    name::{self, JOINT, ServerName},
    surface::{Listing, Names, Plan, Snapshot, Target},
    wire::Members,
};

use super::{CommandError, Context, alternatives, start::start, tools::unknown_server};
use crate::{
    app::App,
    config::{Settings, parse_duration},
};
use arguments::{CliArguments, Typed};
use filter::Filter;

/// Call one tool and print its result.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CallArgs {
    /// The tool as server.tool, or by the name that hosts see: `server__tool`.
    #[arg(value_name = "SERVER.TOOL")]
    tool: String,
    /// key=value, key:=json, key=@file, one JSON object, or - to read the object from stdin.
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,
    /// Give up after this much silence, such as 90s or 5m. Default: as configured.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Write images, audio and other binary content to this folder. Default: a new temporary folder.
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,
    /// Apply this jq filter to the result, and print each of its values on a line.
    #[arg(long, value_name = "FILTER", conflicts_with = "save")]
    jq: Option<String>,
    /// With --jq: print strings without quotes.
    #[arg(short, long, requires = "jq")]
    raw: bool,
}

const EXAMPLES: &str = "\
Examples:
  plugbay call calc.evaluate expression='(17 + 4) * 2'
  plugbay call notes.add title=Milk tags:='[\"shop\"]' text=@note.txt
  plugbay call notes__search '{\"query\": \"milk\"}' --json
  echo '{\"numbers\": [1, 2, 3]}' | plugbay call calc.statistics -
  plugbay call notes.list --jq '.[] | select(.done | not) | .title' --raw

Values get the types of the tool's schema; := takes JSON. plugbay checks and
repairs the arguments as it does for models, and names each repair on stderr.
With --json, the result is printed exactly as the server wrote it, and binary
content goes to files only with --save. --jq filters structured content, else
the text as JSON, else the text as a string. The exit code is 1 if the tool
reports an error.";

/// The result of one `tools/call`, byte for byte.
#[derive(Debug)]
pub struct CallResult {
    pub tool: String,
    pub result: Bytes,
    /// The files with the binary content, by the index of the item in `content`.
    pub saved: BTreeMap<usize, PathBuf>,
}

impl CallResult {
    fn is_error(&self) -> bool {
        let is_error = Members::find(&self.result, &(0..self.result.len()), "isError");
        is_error.is_some_and(|span| self.result[span] == *b"true")
    }
}

pub async fn call(context: &Context, args: CallArgs) -> Result<ExitCode, CommandError> {
    let settings = context.settings_in_passing()?;
    let arguments = arguments::read(&args.arguments)?;
    let filter = match &args.jq {
        Some(filter) => Some(Filter::check(context, filter).await?),
        None => None,
    };
    let app = App::assemble(&settings, context.environment.clone());
    let result = attempt(context, &settings, &app, &args, arguments).await;
    context.output.progress_done();
    app.shut_down().await;
    let mut result = result?;
    if let Some(filter) = filter.filter(|_| !result.is_error()) {
        let values = filter.apply(&result.result).await?;
        return context.output.filtered(&values, args.raw).map(|()| ExitCode::SUCCESS);
    }
    if args.save.is_some() || !context.output.is_json() {
        result.saved = save::save(&result.result, args.save.as_deref(), &args.tool)?;
    }
    for file in result.saved.values().filter(|_| context.output.is_json()) {
        context.output.note(format!("wrote {}", file.display()));
    }
    let succeeded = context.output.call_result(&result);
    Ok(if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn attempt(
    context: &Context,
    settings: &Settings,
    app: &App,
    args: &CallArgs,
    arguments: CliArguments,
) -> Result<CallResult, CommandError> {
    let target = find(context, settings, app, &Name::parse(&args.tool)).await?;
    let snapshot = app.snapshots().borrow().clone();
    let arguments = checked(context, &snapshot, &target, arguments)?;
    context.output.progress(&format!("calling {} of {}", target.tool, target.server));
    let result = request::send(&app.gateway(), &target, &arguments, args.timeout, context.output).await?;
    Ok(CallResult { tool: args.tool.clone(), result, saved: BTreeMap::new() })
}

/// Finds the tool: by the name that hosts see, else at the server named at its beginning, else among the
/// tools without a prefix. Servers start only if the cache does not know the tool.
async fn find(
    context: &Context,
    settings: &Settings,
    app: &App,
    name: &Name<'_>,
) -> Result<Target, CommandError> {
    if let Some(target) = shown(app, name) {
        return Ok(target);
    }
    match name.server.map(|server| configured(settings, server)) {
        Some(Ok(server)) => of_server(context, app, name, server).await,
        Some(Err(unknown)) => without_prefix(context, app, name).await.ok_or(unknown),
        None => {
            if let Some(server) = server_named(app, name.whole) {
                return Err(no_tool_named(&server, &app.snapshots().borrow().names));
            }
            let found = without_prefix(context, app, name).await;
            found.ok_or_else(|| no_such_tool(&app.snapshots().borrow().listing, name.whole))
        }
    }
}

/// The tool that hosts see under this name; `.` may also separate server and tool.
fn shown(app: &App, name: &Name<'_>) -> Option<Target> {
    let names = app.snapshots().borrow().names.clone();
    let joined = name.server.map(|server| format!("{server}{JOINT}{}", name.tool));
    let found = names.get(name.whole).or_else(|| names.get(&joined?))?;
    Some(found.target.clone())
}

async fn of_server(
    context: &Context,
    app: &App,
    name: &Name<'_>,
    server: ServerName,
) -> Result<Target, CommandError> {
    let names = app.snapshots().borrow().names.clone();
    if let Some(target) = resolve(context, &names, &server, name) {
        return Ok(target);
    }
    context.output.progress(&format!("starting {server}"));
    let failures = start(app, |other| *other == server, |_, _| {}).await;
    if let Some(failure) = failures.get(&server) {
        return Err(CommandError::down(&server, failure));
    }
    let snapshot = app.snapshots().borrow().clone();
    resolve(context, &snapshot.names, &server, name).ok_or_else(|| unknown_tool(&snapshot, &server, name))
}

/// The tool of a remote or of `localServers`, whose names do not begin with a server's name. Those that the
/// cache does not know are started first.
async fn without_prefix(context: &Context, app: &App, name: &Name<'_>) -> Option<Target> {
    let before = app.snapshots().borrow().clone();
    let bare = |server: &ServerName| {
        let exposure = before.layout.exposures.get(server);
        exposure.is_some_and(|exposure| exposure.bare || exposure.remote)
    };
    let unlisted = |server: &ServerName| bare(server) && before.catalog.get(server).is_none();
    if app.servers().keys().any(unlisted) {
        context.output.progress("asking for tools");
        start(app, unlisted, |_, _| {}).await;
    }
    let snapshot = app.snapshots().borrow().clone();
    let planned = || match snapshot.plan(name.whole) {
        Plan::Forward(target) => Some(target.into_owned()),
        _ => None,
    };
    shown(app, name).or_else(planned)
}

fn no_such_tool(listing: &Listing, name: &str) -> CommandError {
    let error = CommandError::usage(format!("{name:?} names neither a server nor a tool"));
    let near = nearest(listing, name);
    error.hint(if near.is_empty() { "write SERVER.TOOL".to_owned() } else { format!("did you mean {near}?") })
}

/// The arguments as JSON that fits the tool's schema. Repairs are reported on stderr.
fn checked(
    context: &Context,
    snapshot: &Snapshot,
    target: &Target,
    arguments: CliArguments,
) -> Result<String, CommandError> {
    let tool = snapshot.catalog.get(&target.server).and_then(|entry| entry.offer.tool(&target.tool));
    let Typed { json, mistake } = arguments.into_json(tool.and_then(|tool| tool.raw("inputSchema")));
    let Some(schema) = tool.and_then(|tool| tool.input_schema()) else { return Ok(json) };
    match check(&schema, json.as_bytes(), snapshot.layout.settings.repair) {
        Ok(fitting) => {
            for repair in &fitting.repairs {
                context.output.note(format!("repaired {repair}"));
            }
            Ok(String::from_utf8_lossy(&fitting.arguments).into_owned())
        }
        // A value without the wanted type is explained best in the words of the command line.
        Err(refusal) => Err(mistake.map_or_else(|| rejected(target, &refusal), CommandError::usage)),
    }
}

fn rejected(target: &Target, refusal: &Refusal) -> CommandError {
    let Target { server, tool, .. } = target;
    let error = CommandError::usage(format!("the arguments do not fit the schema of {server}.{tool}"));
    let error = refusal.problems.iter().fold(error, |error, problem| {
        let example = problem.example.as_ref().map(|example| format!(" (for example {example})"));
        error.hint(format!("{}{}", problem.message, example.unwrap_or_default()))
    });
    error.hint(format!("`plugbay tools --server {server} --signature` shows the parameters"))
}

fn unknown_tool(snapshot: &Snapshot, server: &ServerName, name: &Name<'_>) -> CommandError {
    let tool = name.tool;
    if snapshot.catalog.get(server).is_some_and(|entry| entry.offer.tool(tool).is_some()) {
        return CommandError::failed(format!("the configuration hides the tool {tool:?} of {server}"))
            .hint("its \"plugbay\" settings deny it, or another tool wants the same name");
    }
    let error = CommandError::failed(format!("{server} has no tool {tool:?}"));
    let own: Vec<&str> = snapshot.names.of(server).map(|found| found.target.tool.as_str()).collect();
    let near: Vec<String> =
        name::nearest(tool, own.iter().copied()).iter().map(|own| format!("{server}.{own}")).collect();
    let near = match near.as_slice() {
        [] => nearest(&snapshot.listing, &format!("{server}{JOINT}{tool}")),
        near => alternatives(near),
    };
    let all = format!("`plugbay tools --server {server}` lists them all");
    if near.is_empty() { error.hint(all) } else { error.hint(format!("did you mean {near}?")).hint(all) }
}

fn server_named(app: &App, name: &str) -> Option<ServerName> {
    let servers = app.snapshots().borrow().servers();
    servers.into_iter().find(|server| server.as_str().eq_ignore_ascii_case(name))
}

/// The error for the name of a server in place of a tool.
fn no_tool_named(server: &ServerName, names: &Names) -> CommandError {
    let error = CommandError::usage(format!("{server} is a server; name one of its tools: {server}.TOOL"));
    let tools: Vec<&str> = names.of(server).map(|found| found.target.tool.as_str()).collect();
    match tools.as_slice() {
        [] => error.hint(format!("`plugbay tools --server {server}` lists its tools")),
        tools => error.hint(format!("its tools are {}", tools.join(", "))),
    }
}

/// Finds a tool: by the name that the host sees, else by the server's own name if the host may see the tool,
/// else by a name that differs only in spelling, such as `git.log` for `git_log` of the server git.
fn resolve(context: &Context, names: &Names, server: &ServerName, name: &Name<'_>) -> Option<Target> {
    let exposed = format!("{server}{JOINT}{}", name.tool);
    let own = || names.of(server).find(|found| found.target.tool == name.tool);
    if let Some(found) = names.get(&exposed).or_else(own) {
        return Some(found.target.clone());
    }
    let alike = names.alike(&exposed).filter(|found| found.target.server == *server)?;
    let (wanted, found) = (name.tool, &alike.target.tool);
    context.output.note(format!("{server} has no tool {wanted:?}; plugbay calls {found}"));
    Some(alike.target.clone())
}

/// Similar names in the form that `call` accepts.
fn nearest(listing: &Listing, wanted: &str) -> String {
    let Plan::Unknown { nearest } = listing.plan(wanted) else { return wanted.replacen(JOINT, ".", 1) };
    let names: Vec<String> = nearest.iter().map(|name| name.replacen(JOINT, ".", 1)).collect();
    alternatives(&names)
}

fn configured(settings: &Settings, wanted: &str) -> Result<ServerName, CommandError> {
    let server = settings.servers.iter().find(|server| server.name.as_str() == wanted);
    match server.map(|server| (&server.name, &server.spec)) {
        Some((name, Ok(_))) => Ok(name.clone()),
        Some((name, Err(reason))) => {
            Err(CommandError::failed(format!("server {name} cannot be used: {reason}")))
        }
        None => Err(unknown_server(settings, wanted)),
    }
}

/// `SERVER.TOOL` or `SERVER__TOOL`. Server names contain neither mark, so the first one separates the two.
struct Name<'a> {
    whole: &'a str,
    server: Option<&'a str>,
    tool: &'a str,
}

impl<'a> Name<'a> {
    fn parse(whole: &'a str) -> Self {
        let marks = [whole.find('.').map(|at| (at, 1)), whole.find(JOINT).map(|at| (at, JOINT.len()))];
        match marks.into_iter().flatten().min() {
            Some((at, length)) => Self { whole, server: Some(&whole[..at]), tool: &whole[at + length..] },
            None => Self { whole, server: None, tool: whole },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mark_parts_server_and_tool() {
        let parts = |whole| {
            let name = Name::parse(whole);
            (name.server, name.tool)
        };
        assert_eq!(parts("calc.evaluate"), (Some("calc"), "evaluate"));
        assert_eq!(parts("calc__evaluate"), (Some("calc"), "evaluate"));
        assert_eq!(parts("git__log.short"), (Some("git"), "log.short"));
        assert_eq!(parts("git.log__short"), (Some("git"), "log__short"));
        assert_eq!(parts("evaluate"), (None, "evaluate"));
    }
}
