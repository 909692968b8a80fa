//! `plugbay import`: copies servers from hosts, other gateways, plugins and files into plugbay's configuration.

use std::{path::PathBuf, process::ExitCode};

use plugbay_hosts::known;
use serde::Serialize;

use super::{CommandError, Context, approve, setup::open_journal};
use crate::{
    config,
    import::{
        self, Added, Change, Elsewhere, Found, Needs, Origin, Plan, Problem, Reading, Renamed, Skip,
        SourceError, Sources, TargetError,
    },
    settings,
};

/// Copy servers of hosts, other gateways, plugins or files.
///
/// The same server in two hosts becomes one. The table shows where each comes from, under which name it is
/// written, and what it still needs. The files of the hosts stay as they are; `plugbay setup` changes them, too.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ImportArgs {
    /// A host such as cursor, a gateway such as mcpzip, `plugins`, a file, or the folder of a plugin. Default: every
    /// host and gateway.
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

/// How far a command that writes may go.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Consent {
    /// Show what would be written, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Write without asking.
    #[arg(long, short)]
    pub yes: bool,
}

const EXAMPLES: &str = "\
Examples:
  plugbay import                    # all that hosts have, after a question
  plugbay import --dry-run          # only show it
  plugbay import cursor zed
  plugbay import ./mcp.json
  plugbay import plugins            # the servers of installed plugins, too";

/// The result of an import, planned or done.
#[derive(Debug, Serialize)]
pub struct Report {
    pub files: Vec<FileReport>,
    /// Entries and files that cannot be imported.
    pub problems: Vec<Problem>,
    /// Servers of other projects.
    pub elsewhere: Vec<Elsewhere>,
    /// Plugins whose servers stay with their host.
    pub plugins: Vec<String>,
    pub written: bool,
}

/// The servers for one configuration file.
#[derive(Debug, Serialize)]
pub struct FileReport {
    pub file: PathBuf,
    pub new: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    pub servers: Vec<Row>,
    /// Keys that the new file gets from another gateway.
    pub settings: Vec<String>,
}

/// One server of a report.
#[derive(Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub origins: Vec<Origin>,
    pub result: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed: Option<Renamed>,
    pub disabled: bool,
    pub needs: Needs,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    Added,
    /// The configuration already has it.
    AlreadyThere,
    /// The configuration has it, but with other variables or headers, or in another folder.
    AlreadyThereChanged,
    Skipped(Skip),
}

pub fn import(context: &Context, args: &ImportArgs) -> Result<ExitCode, CommandError> {
    let paths = &context.source.paths;
    let places = settings::host_places(&context.environment.project).ok_or_else(no_home)?;
    let sources = Sources { places: &places, paths };
    let mut reading = Reading::default();
    if args.sources.is_empty() {
        reading = sources.all();
    }
    for source in &args.sources {
        sources.named(source, &mut reading).map_err(|error| unreadable(&error))?;
    }
    if reading.found.is_empty() {
        return Err(nothing_found(&reading, &args.sources));
    }
    run(context, reading, "plugbay import", args.consent)
}

/// Shows the changes, asks and writes. The user's servers go to the user's file, the project's to the
/// project's.
pub fn run(
    context: &Context,
    mut reading: Reading,
    command: &'static str,
    consent: Consent,
) -> Result<ExitCode, CommandError> {
    let changes = changes(context, &mut reading)?;
    let mut report = report(&changes, reading, context);
    let adds = changes.iter().any(|change| !change.plan.is_empty());
    if !context.output.is_json() {
        context.output.show(&report);
    }
    if adds && !consent.dry_run {
        agree(context, consent)?;
        report.written = write(context, &changes, command)?;
    }
    if context.output.is_json() {
        context.output.json(&report);
    } else if !adds {
        context.output.note("there is nothing to import: the configuration has all of these servers");
    } else if consent.dry_run {
        context.output.note("nothing was written");
    }
    if report.written {
        settle(context, &changes, consent)?;
    }
    Ok(ExitCode::SUCCESS)
}

pub fn no_home() -> CommandError {
    CommandError::failed("there is no home folder to look for hosts in").hint("set HOME")
}

fn unreadable(error: &SourceError) -> CommandError {
    let known: Vec<&str> = known::all().iter().map(|host| host.id.as_str()).collect();
    let failed = CommandError::failed(error.to_string());
    match error {
        SourceError::Unknown(_) => CommandError { kind: crate::error::Kind::Usage, ..failed }.hint(format!(
            "a source is a file, plugins, mcpflip, mcpzip, or one of the hosts {}",
            known.join(", ")
        )),
        SourceError::Unreadable { .. } => failed,
    }
}

fn nothing_found(reading: &Reading, sources: &[String]) -> CommandError {
    let what = if sources.is_empty() {
        "no host on this machine has servers".to_owned()
    } else {
        format!("no servers in {}", sources.join(", "))
    };
    let mut error = CommandError::failed(what);
    for Problem { file, server, reason } in &reading.problems {
        let server = server.as_ref().map(|name| format!("`{name}` ")).unwrap_or_default();
        error = error.hint(format!("{}: {server}{reason}", file.display()));
    }
    for Elsewhere { host, project, .. } in &reading.elsewhere {
        error = error.hint(format!("{host} has servers for {}; import them there", project.display()));
    }
    if !reading.plugins.is_empty() {
        error = error.hint("installed plugins have servers: plugbay import plugins");
    }
    error.hint("add one yourself: plugbay add NAME -- COMMAND")
}

/// The changes of the user's file and, if it has servers, of the project's.
fn changes(context: &Context, reading: &mut Reading) -> Result<Vec<Change>, CommandError> {
    let paths = &context.source.paths;
    let explicit = context.source.explicit();
    let found = std::mem::take(&mut reading.found);
    let (project, user): (Vec<Found>, Vec<Found>) =
        found.into_iter().partition(|found| found.origin.project.is_some());
    let alone = explicit.is_some();
    let user =
        import::user_change(user, &reading.settings, explicit, paths).map_err(|error| broken(&error))?;
    if alone {
        for Found { entry, origin } in project {
            reading.elsewhere(&origin.host, &origin.project.unwrap_or_default(), entry.name);
        }
        return Ok(vec![user]);
    }
    if project.is_empty() {
        return Ok(vec![user]);
    }
    match import::project_change(project, &user, paths) {
        Ok(change) => Ok(vec![user, change]),
        Err(error @ TargetError::Switchboard(_)) => {
            let file = config::project_file(&paths.start).unwrap_or_default();
            reading.problems.push(Problem { file, server: None, reason: error.to_string() });
            Ok(vec![user])
        }
        Err(error) => Err(broken(&error)),
    }
}

fn broken(error: &TargetError) -> CommandError {
    let failed = CommandError::failed(error.to_string());
    match error {
        TargetError::Broken { .. } => failed.hint("repair the file first; `plugbay list` shows the place"),
        _ => failed,
    }
}

fn report(changes: &[Change], reading: Reading, context: &Context) -> Report {
    let env = config::with_folders(&context.source.paths, &settings::variable);
    let file = |change: &Change| FileReport {
        file: change.file.clone(),
        new: change.before.is_none(),
        project: change.project.clone(),
        servers: rows(&change.plan, &env),
        settings: change.settings.iter().map(|setting| setting.key.join(".")).collect(),
    };
    let files = changes.iter().map(file).filter(|file| !file.servers.is_empty()).collect();
    let Reading { problems, elsewhere, plugins, .. } = reading;
    Report { files, problems, elsewhere, plugins, written: false }
}

fn rows(plan: &Plan, env: config::Env<'_>) -> Vec<Row> {
    let added = plan.added.iter().map(|Added { entry, renamed, origins, notes }| Row {
        name: entry.name.clone(),
        origins: origins.clone(),
        result: Outcome::Added,
        renamed: renamed.clone(),
        disabled: entry.disabled,
        needs: import::needs(entry, env),
        notes: notes.iter().chain(&entry.notes).cloned().collect(),
    });
    let other = |name: &str, origins: &[Origin], result: Outcome| Row {
        name: name.to_owned(),
        origins: origins.to_vec(),
        result,
        renamed: None,
        disabled: false,
        needs: Needs::default(),
        notes: Vec::new(),
    };
    let same = plan.same.iter().map(|same| {
        let result = if same.differs { Outcome::AlreadyThereChanged } else { Outcome::AlreadyThere };
        other(&same.name, &same.origins, result)
    });
    let skipped = plan.skipped.iter().map(|skipped| {
        other(&skipped.name, std::slice::from_ref(&skipped.origin), Outcome::Skipped(skipped.why))
    });
    added.chain(same).chain(skipped).collect()
}

fn agree(context: &Context, consent: Consent) -> Result<(), CommandError> {
    if consent.yes {
        return Ok(());
    }
    match context.output.ask("Write it?") {
        Some(true) => Ok(()),
        Some(false) => Err(CommandError::failed("nothing was written")),
        None => Err(CommandError::failed("nothing was written: plugbay can ask only in a terminal")
            .hint("to write it without a question: --yes; to only look: --dry-run")),
    }
}

/// Writes every changed file. The journal records each change, so that it can be undone.
fn write(context: &Context, changes: &[Change], command: &'static str) -> Result<bool, CommandError> {
    let mut journal = open_journal(context)?;
    for change in changes {
        change.write(command, &mut journal).map_err(|error| CommandError::failed(error.to_string()))?;
    }
    Ok(true)
}

/// Approves the project's file if the user has agreed to its content, and shows the next steps.
fn settle(context: &Context, changes: &[Change], consent: Consent) -> Result<(), CommandError> {
    let output = &context.output;
    let written = |change: &&Change| !change.plan.is_empty();
    for change in changes.iter().filter(written) {
        output.note(format!("wrote {}", change.file.display()));
        if change.project.is_some() {
            project_settled(context, change, consent)?;
        }
    }
    output.note("`plugbay list` tries every server");
    Ok(())
}

/// `--yes` does not approve a file from a repository: it could start anything.
fn project_settled(context: &Context, change: &Change, consent: Consent) -> Result<(), CommandError> {
    let paths = &context.source.paths;
    if change.is_the_users() && change.was_approved(paths) {
        change.approve(paths).map_err(|error| CommandError::failed(error.to_string()))?;
        context
            .output
            .note("it has values from your own files: keep it out of the repository if they are secrets");
    } else if consent.yes || !context.output.can_ask() {
        context.output.note("its servers start after you have read and approved them: plugbay approve");
    } else {
        approve::approve(context, &approve::ApproveArgs::of(&change.file))?;
    }
    Ok(())
}
