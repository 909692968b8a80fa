//! `plugbay wire` and `plugbay unwire`: plugbay's entry in a host's file, without moving any server.

use std::process::ExitCode;

use plugbay_hosts::{
    edit::{self, allowed},
    known::Host,
};
use serde::Serialize;

use super::{
    CommandError, Context, Diff, HostState, OWN_NAME,
    apply::Writer,
    check::Checker,
    edit_diff, entries_of, open_journal, own_entry, places,
    plan::{Edit, HostPlan},
    program::HostProgram,
    survey::{self, FileProblem, SurveyedHost, read_text},
    undo::{restarts, undo_changes},
    wire_one,
};
use crate::journal::{Change, Outcome, Undone, file};

/// Add plugbay's entry to a host's file.
///
/// The host's servers stay where they are; `plugbay setup` moves them.
#[derive(Debug, clap::Args)]
pub struct WireArgs {
    /// The hosts, such as `claude-code` or `codex`.
    #[arg(required = true, value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Show what would change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// Remove plugbay's entry from a host's file.
///
/// The host gets back the servers that `plugbay setup` moved, and everything else that it changed.
#[derive(Debug, clap::Args)]
pub struct UnwireArgs {
    /// The hosts, such as `claude-code` or `codex`.
    #[arg(required = true, value_name = "HOST")]
    pub hosts: Vec<String>,
}

/// The result of `wire`.
#[derive(Debug, Serialize)]
pub struct WireReport {
    pub hosts: Vec<WiredHost>,
    pub problems: Vec<FileProblem>,
}

#[derive(Debug, Serialize)]
pub struct WiredHost {
    pub id: String,
    pub name: String,
    #[serde(flatten)]
    pub state: HostState,
    /// Whether the file already had plugbay's entry.
    pub already: bool,
    pub diff: Diff,
    pub restart: String,
}

/// The result of `unwire`.
#[derive(Debug, Serialize)]
pub struct UnwireReport {
    pub files: Vec<Undone>,
    /// How the user makes the hosts notice the changes.
    pub restart: Vec<&'static str>,
}

const COMMAND: &str = "plugbay wire";

pub async fn wire(context: &Context, args: &WireArgs) -> Result<ExitCode, CommandError> {
    let hosts = survey::named(&args.hosts)?;
    let mut survey = survey::survey(&places(context)?, &context.source.paths.start, &hosts);
    let mut report = WireReport { hosts: Vec::new(), problems: std::mem::take(&mut survey.problems) };
    let mut journal = if args.dry_run { None } else { Some(open_journal(context)?) };
    let mut checker = Checker::default();
    for surveyed in &survey.hosts {
        let plan = match entry_plan(context, surveyed) {
            Ok(plan) => plan,
            Err(problem) => {
                report.problems.push(problem);
                continue;
            }
        };
        let state = match journal.as_mut() {
            None => HostState::Planned,
            Some(journal) => {
                let first = journal.changes().last().map_or(0, |change| change.number) + 1;
                let mut writer = Writer { journal, command: COMMAND, folder: &context.source.paths.start };
                wire_one(context, &mut writer, &mut checker, &plan, first).await?
            }
        };
        report.hosts.push(WiredHost {
            id: plan.host.id.clone(),
            name: plan.host.name.clone(),
            state,
            already: plan.own.is_none(),
            diff: edit_diff(&plan.servers, &entries_of(&plan)),
            restart: plan.host.restart.clone(),
        });
    }
    context.output.show(&report);
    let failed = report.hosts.iter().any(|host| matches!(host.state, HostState::Failed { .. }));
    Ok(if failed || !report.problems.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

pub fn unwire(context: &Context, args: &UnwireArgs) -> Result<ExitCode, CommandError> {
    let mut journal = open_journal(context)?;
    let mut files = Vec::new();
    for host in survey::named(&args.hosts)? {
        let own = |change: &Change| change.host.as_ref() == Some(&host.id);
        files.extend(undo_changes(&mut journal, own)?);
        files.extend(remove_entry(context, host)?);
    }
    let failed = files.iter().any(|file| matches!(file.outcome, Outcome::Failed { .. }));
    let restart = restarts(&files);
    context.output.show(&UnwireReport { files, restart });
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A plan that adds only plugbay's entry.
fn entry_plan(context: &Context, surveyed: &SurveyedHost) -> Result<HostPlan, FileProblem> {
    let SurveyedHost { host, file, text, own: present, .. } = surveyed;
    let own = own_entry(context);
    let old = text.clone().unwrap_or_default();
    let new = match present {
        Some(_) => Ok(old),
        None => edit::wire(host, &old, &own, &[]),
    };
    let problem = |reason: String| FileProblem { host: host.id.clone(), file: file.clone(), reason };
    let new = new.map_err(|error| problem(error.to_string()))?;
    let allowed = allowed::with(host, &new, OWN_NAME).map_err(|error| problem(error.to_string()))?;
    let servers = Edit { path: file.clone(), old: text.clone(), new: allowed.unwrap_or(new) };
    let own = present.is_none().then_some(own);
    Ok(HostPlan { host, servers, own, moved: Vec::new(), earlier: Vec::new(), permissions: Vec::new() })
}

/// Removes an entry that is not in the journal, because the user wrote it.
fn remove_entry(context: &Context, host: &'static Host) -> Result<Option<Undone>, CommandError> {
    let survey = survey::survey(&places(context)?, &context.source.paths.start, &[host]);
    let Some(SurveyedHost { file: path, own: Some(own), .. }) = survey.hosts.into_iter().next() else {
        return Ok(None);
    };
    let name = &own.entry.name;
    let outcome = match taken_out(context, host, &path, name) {
        Ok(()) => Outcome::Merged,
        Err(reason) => Outcome::Failed { reason },
    };
    Ok(Some(Undone { path, host: Some(host.id.clone()), outcome }))
}

fn taken_out(
    context: &Context,
    host: &'static Host,
    path: &std::path::Path,
    name: &str,
) -> Result<(), String> {
    if let Some(program) = HostProgram::of(host, &context.source.paths.start) {
        return program.remove(name).map_err(|failure| failure.to_string());
    }
    let text = read_text(path).map_err(|error| error.to_string())?.unwrap_or_default();
    let edited = edit::unwire(host, &text, name, None).map_err(|error| error.to_string())?;
    file::replace(path, edited.as_bytes()).map_err(|error| error.to_string())
}
