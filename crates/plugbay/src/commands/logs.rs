//! `plugbay logs`: the stderr of servers, and the log of gateways.

use std::{collections::BTreeSet, path::Path, process::ExitCode};

use serde::Serialize;
use tokio::signal;

use super::{CommandError, Context, place::no_such_server};
use crate::{
    files::own,
    log_files::{self, Follower, Line},
    watch::Watch,
};

/// Show what servers wrote to stderr, and what gateways logged.
///
/// A gateway (`plugbay serve`) appends the stderr of each server to a file, together with what it logs about the
/// server itself.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct LogsArgs {
    /// Show only the log of this server.
    #[arg(value_name = "SERVER")]
    server: Option<String>,
    /// Go on with new lines as they come, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    /// Show this many of the last lines.
    #[arg(long, value_name = "N", default_value_t = 50)]
    lines: usize,
}

const EXAMPLES: &str = "\
Examples:
  plugbay logs                  the last lines of all servers and gateways
  plugbay logs github -f        one server, with new lines as they come
  plugbay logs --lines 1000 --json";

/// Some lines of logs.
#[derive(Debug, Serialize)]
pub struct LogLines {
    pub lines: Vec<Line>,
    /// Whether all lines belong to one server, so that its name is not repeated.
    #[serde(skip)]
    pub of_one: bool,
}

pub async fn logs(context: &Context, args: &LogsArgs) -> Result<ExitCode, CommandError> {
    let folder = context.source.paths.log_folder().ok_or_else(|| {
        CommandError::failed("there is no folder for log files").hint("set HOME or XDG_STATE_HOME")
    })?;
    let unreadable =
        |error| CommandError::failed(format!("cannot read the logs in {}: {error}", folder.display()));
    let server = args.server.as_deref().map(|wanted| known(context, &folder, wanted)).transpose()?;
    let (lines, mut follower) = Follower::open(&folder, server.as_deref(), args.lines).map_err(unreadable)?;
    let of_one = server.is_some();
    if lines.is_empty() && !args.follow {
        return Err(nothing(server.as_deref()));
    }
    if !args.follow {
        context.output.show(&LogLines { lines, of_one });
        return Ok(ExitCode::SUCCESS);
    }
    context.output.show_lines(&lines, of_one);
    let follow = follow(context, &mut follower, of_one);
    tokio::select! {
        outcome = follow => outcome.map_err(unreadable)?,
        _ = signal::ctrl_c() => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn follow(context: &Context, follower: &mut Follower, of_one: bool) -> std::io::Result<()> {
    let folders = [follower.folder()];
    // A folder that does not exist cannot be watched.
    own::create_folder(&folders[0])?;
    let mut watch = Watch::new(&follower.files()?, &folders);
    loop {
        context.output.show_lines(&follower.news()?, of_one);
        watch.touched().await;
        watch.follow(&follower.files()?, &folders);
    }
}

/// The server whose log is wanted: one that has a log, or one that is configured.
fn known(context: &Context, folder: &Path, wanted: &str) -> Result<String, CommandError> {
    let logged = log_files::names(folder)?;
    let configured = context.source.load().servers.into_iter().map(|server| server.name.to_string());
    let all: BTreeSet<String> = logged.into_iter().chain(configured).collect();
    if let Some(name) = all.iter().find(|name| name.eq_ignore_ascii_case(wanted)) {
        return Ok(name.clone());
    }
    Err(no_such_server(wanted, all.iter().map(String::as_str)))
}

fn nothing(server: Option<&str>) -> CommandError {
    let whose = server.map(|server| format!(" of {server}")).unwrap_or_default();
    CommandError::failed(format!("there are no log lines{whose} yet"))
        .hint("gateways write them: a host starts `plugbay serve` when it opens")
        .hint("`plugbay list` shows whether every server works")
}
