//! `plugbay migrate`: copies the servers of Claude Code, as mcpzip's command of this name does.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use plugbay_hosts::known::{self, Host};

use super::{
    CommandError, Context,
    import::{Consent, no_home, run},
};
use crate::{
    import::{Reading, Sources},
    settings,
};

#[derive(Debug, clap::Args)]
pub struct MigrateArgs {
    /// Claude Code's file. Default: ~/.claude.json, else ~/.claude/config.json.
    #[arg(long, value_name = "FILE")]
    claude_config: Option<PathBuf>,
    #[command(flatten)]
    consent: Consent,
}

const CLAUDE_CODE: &str = "claude-code";

pub fn migrate(context: &Context, args: &MigrateArgs) -> Result<ExitCode, CommandError> {
    let paths = &context.source.paths;
    let places = settings::places(paths).ok_or_else(no_home)?;
    let sources = Sources { places: &places, paths };
    let Some(host) = known::by_id(CLAUDE_CODE) else { return Err(absent(&[])) };
    let candidates = match &args.claude_config {
        Some(file) => vec![paths.start.join(file)],
        None => usual(host, &sources),
    };
    let Some(file) = candidates.iter().find(|file| file.is_file()) else { return Err(absent(&candidates)) };
    let mut reading = Reading::default();
    sources.host_file(host, file, &mut reading);
    if reading.found.is_empty() {
        return Err(empty(file, &reading));
    }
    let code = run(context, reading, "plugbay migrate", args.consent)?;
    if !args.consent.json {
        let next = "plugbay wire claude-code";
        context
            .output
            .note(format!("Claude Code still has its own entries; `{next}` puts plugbay in their place"));
    }
    Ok(code)
}

/// The user's files, and the place of older versions.
fn usual(host: &'static Host, sources: &Sources<'_>) -> Vec<PathBuf> {
    let files = host.files(sources.places).into_iter();
    let user = files.filter(|file| file.scope == known::Scope::User).map(|file| file.path);
    user.chain([sources.places.home.join(".claude/config.json")]).collect()
}

fn absent(looked: &[PathBuf]) -> CommandError {
    let error = CommandError::failed("there is no file of Claude Code");
    let error =
        looked.iter().fold(error, |error, file| error.hint(format!("plugbay looked for {}", file.display())));
    error.hint("name it: plugbay migrate --claude-config FILE; for other hosts: plugbay import")
}

fn empty(file: &Path, reading: &Reading) -> CommandError {
    let error = CommandError::failed(format!("{} has no servers to migrate", file.display()));
    let problems = reading.problems.iter().map(|problem| problem.reason.clone());
    problems.fold(error, CommandError::hint)
}
