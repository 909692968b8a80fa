//! `plugbay migrate`: moves Claude Code's servers to plugbay, like mcpzip's command of this name.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use plugbay_hosts::known::{self, Host, Places, Scope};

use super::{
    CommandError, Context,
    import::{Consent, no_home, run},
    setup::{SetupArgs, setup},
};
use crate::{
    import::{Reading, Sources},
    settings,
};

/// Move the servers of Claude Code to plugbay, as in mcpzip.
///
/// The same as `plugbay setup --hosts claude-code`. `plugbay setup --undo` takes it back.
#[derive(Debug, clap::Args)]
pub struct MigrateArgs {
    /// Copy the servers of this file, and leave Claude Code as it is. Default: move those of ~/.claude.json.
    #[arg(long, value_name = "FILE")]
    claude_config: Option<PathBuf>,
    #[command(flatten)]
    consent: Consent,
}

const CLAUDE_CODE: &str = "claude-code";

pub async fn migrate(context: &Context, args: &MigrateArgs) -> Result<ExitCode, CommandError> {
    let places = settings::host_places(&context.environment.project).ok_or_else(no_home)?;
    let Some(host) = known::by_id(CLAUDE_CODE) else { return Err(absent(&[])) };
    let own = host.files(&places).into_iter().find(|file| file.scope == Scope::User).map(|file| file.path);
    let given = args.claude_config.as_ref().map(|file| context.source.paths.start.join(file));
    if given.is_none() && own.as_ref().is_some_and(|file| file.is_file()) {
        return setup(context, &args.consent.for_claude_code()).await;
    }
    let candidates: Vec<PathBuf> = match given {
        Some(file) => vec![file],
        None => own.into_iter().chain([places.home.join(".claude/config.json")]).collect(),
    };
    let Some(file) = candidates.iter().find(|file| file.is_file()) else { return Err(absent(&candidates)) };
    copy(context, host, file, &places, args.consent)
}

impl Consent {
    fn for_claude_code(self) -> SetupArgs {
        let Self { dry_run, yes } = self;
        SetupArgs { dry_run, yes, hosts: vec![CLAUDE_CODE.to_owned()], undo: false, show: false }
    }
}

/// Imports from a file that Claude Code does not use, or no longer uses.
fn copy(
    context: &Context,
    host: &'static Host,
    file: &Path,
    places: &Places,
    consent: Consent,
) -> Result<ExitCode, CommandError> {
    let mut reading = Reading::default();
    Sources { places, paths: &context.source.paths }.host_file(host, file, &mut reading);
    if reading.found.is_empty() {
        let error = CommandError::failed(format!("{} has no servers to migrate", file.display()));
        let problems = reading.problems.into_iter().map(|problem| problem.reason);
        return Err(problems.fold(error, CommandError::hint));
    }
    let code = run(context, reading, "plugbay migrate", consent)?;
    if !context.output.is_json() && !consent.dry_run {
        let next = "`plugbay wire claude-code` adds plugbay to Claude Code";
        context.output.note(format!("{} stays as it is; {next}", file.display()));
    }
    Ok(code)
}

fn absent(looked: &[PathBuf]) -> CommandError {
    let error = CommandError::failed("there is no file of Claude Code");
    let error =
        looked.iter().fold(error, |error, file| error.hint(format!("plugbay looked for {}", file.display())));
    error.hint("name it: plugbay migrate --claude-config FILE; for other hosts: plugbay setup")
}
