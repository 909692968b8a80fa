//! `plugbay call`: one tool, once, the way a host would call it.

mod arguments;
mod request;
mod typing;

use std::{process::ExitCode, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    name::{JOINT, ServerName},
    surface::{Listing, Names, Plan, Snapshot, Target},
};

use super::{CommandError, Context, alternatives, start::start, tools::unknown_server};
use crate::{
    app::App,
    config::{Settings, parse_duration},
};
use arguments::CliArguments;

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
}

const EXAMPLES: &str = "\
Examples:
  plugbay call calc.evaluate expression='(17 + 4) * 2'
  plugbay call notes.add title=Milk tags:='[\"shop\"]' text=@note.txt
  plugbay call notes__search '{\"query\": \"milk\"}' --json
  echo '{\"numbers\": [1, 2, 3]}' | plugbay call calc.statistics -

Values get the types of the tool's schema; := takes JSON. With --json, the
result is printed exactly as the server wrote it. The exit code is 1 if the
tool reports an error.";

/// The result of one `tools/call`, byte for byte.
#[derive(Debug)]
pub struct CallResult {
    pub tool: String,
    pub result: Bytes,
}

pub async fn call(context: &Context, args: CallArgs) -> Result<ExitCode, CommandError> {
    let settings = context.settings_in_passing()?;
    let name = Name::parse(&args.tool);
    let server = name.server.map(|server| configured(&settings, server)).transpose()?;
    let arguments = arguments::read(&args.arguments)?;
    let app = App::assemble(&settings, context.environment.clone());
    let result = attempt(context, &app, &args, &name, server, arguments).await;
    context.output.progress_done();
    app.shut_down().await;
    let succeeded = context.output.call_result(&result?);
    Ok(if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn attempt(
    context: &Context,
    app: &App,
    args: &CallArgs,
    name: &Name<'_>,
    server: Option<ServerName>,
    arguments: CliArguments,
) -> Result<CallResult, CommandError> {
    let target = find(context, app, name, server).await?;
    let snapshot = app.snapshots().borrow().clone();
    let arguments = arguments.into_json(schema(&snapshot, &target))?;
    context.output.progress(&format!("calling {} of {}", target.tool, target.server));
    let result = request::send(&app.gateway(), &target, &arguments, args.timeout, context.output).await?;
    Ok(CallResult { tool: args.tool.clone(), result })
}

/// Finds the tool. Its server starts only if the cache does not know the tool.
async fn find(
    context: &Context,
    app: &App,
    name: &Name<'_>,
    server: Option<ServerName>,
) -> Result<Target, CommandError> {
    let listing = || app.snapshots().borrow().listing.clone();
    let names = || app.snapshots().borrow().names.clone();
    let Some(server) = server else {
        if let Plan::Forward(bare) = listing().plan(name.whole) {
            return Ok(bare.into_owned());
        }
        let error = CommandError::usage(format!("{:?} does not name a server", name.whole));
        let near = nearest(&listing(), name.whole);
        let hint =
            if near.is_empty() { "write SERVER.TOOL".to_owned() } else { format!("did you mean {near}?") };
        return Err(error.hint(hint));
    };
    if let Some(target) = resolve(&names(), &server, name) {
        return Ok(target);
    }
    context.output.progress(&format!("starting {server}"));
    let failures = start(app, |other| *other == server, |_, _| {}).await;
    if let Some(failure) = failures.get(&server) {
        return Err(CommandError::down(&server, failure));
    }
    let snapshot = app.snapshots().borrow().clone();
    resolve(&snapshot.names, &server, name).ok_or_else(|| unknown_tool(&snapshot, &server, name))
}

fn unknown_tool(snapshot: &Snapshot, server: &ServerName, name: &Name<'_>) -> CommandError {
    let tool = name.tool;
    if snapshot.catalog.get(server).is_some_and(|entry| entry.offer.tool(tool).is_some()) {
        return CommandError::failed(format!("the configuration hides the tool {tool:?} of {server}"))
            .hint("its \"plugbay\" settings deny it, or another tool wants the same name");
    }
    let error = CommandError::failed(format!("{server} has no tool {tool:?}"));
    let near = nearest(&snapshot.listing, &format!("{server}{JOINT}{tool}"));
    let all = format!("`plugbay tools --server {server}` lists them all");
    if near.is_empty() { error.hint(all) } else { error.hint(format!("did you mean {near}?")).hint(all) }
}

/// By the name that the host sees, else by the server's own name for a tool that the host may see.
fn resolve(names: &Names, server: &ServerName, name: &Name<'_>) -> Option<Target> {
    let exposed = format!("{server}{JOINT}{}", name.tool);
    let own = || names.of(server).find(|found| found.target.tool == name.tool);
    names.get(&exposed).or_else(own).map(|found| found.target.clone())
}

/// Near names in the form that `call` takes.
fn nearest(listing: &Listing, wanted: &str) -> String {
    let Plan::Unknown { nearest } = listing.plan(wanted) else { return wanted.replacen(JOINT, ".", 1) };
    let names: Vec<String> = nearest.iter().map(|name| name.replacen(JOINT, ".", 1)).collect();
    alternatives(&names)
}

fn schema<'a>(snapshot: &'a Snapshot, target: &Target) -> Option<&'a [u8]> {
    snapshot.catalog.get(&target.server)?.offer.tool(&target.tool)?.raw("inputSchema")
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

/// `SERVER.TOOL` or `SERVER__TOOL`. No server's name holds either mark, so the first one parts them.
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
