//! `plugbay setup`: moves the servers of all hosts on this machine to plugbay, or undoes this.

mod apply;
mod check;
mod context_cost;
mod diff;
mod mask;
mod plan;
mod program;
mod rules;
mod skill;
mod survey;
mod trial;
mod undo;
pub mod wire;
mod withdraw;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use plugbay_hosts::{Entry, edit::OwnEntry, known::Places, read};
use serde::Serialize;

use super::{CommandError, Context};
use crate::{
    config,
    journal::{self, Change, Journal, OpenError, Part},
    settings, tokenizer,
};
use apply::Writer;
use check::Checker;
pub use context_cost::HostCost;
pub use diff::Diff;
use plan::{Draft, HostPlan, Plan};
pub use plan::{Fate, Need, Server};
use program::HostProgram;
use skill::Skill;
pub use survey::FileProblem;
pub use undo::{History, Past, UndoPreview, UndoReport};

/// The name of plugbay's entry in every host.
const OWN_NAME: &str = "plugbay";
const COMMAND: &str = "plugbay setup";

/// Move the servers of your hosts to plugbay, and back.
///
/// Tries every server, shows what will change in which file, wires the hosts to plugbay, and checks that plugbay answers
/// there. A server that does not work stays in its host.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub struct SetupArgs {
    /// Show what would change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Change the files without asking.
    #[arg(long)]
    pub yes: bool,
    /// Only these hosts, such as `claude-code,codex`. Default: every host of this machine.
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Take every change back; with --hosts only those of these hosts.
    #[arg(long)]
    pub undo: bool,
    /// Show what plugbay has changed so far.
    #[arg(long, conflicts_with_all = ["undo", "yes", "hosts"])]
    pub show: bool,
}

/// The result of setup, planned or done.
#[derive(Debug, Serialize)]
pub struct Report {
    pub stage: Stage,
    pub servers: Vec<Server>,
    pub hosts: Vec<HostReport>,
    pub diffs: Vec<Diff>,
    /// Files that plugbay left unchanged, with the reasons.
    pub problems: Vec<FileProblem>,
    /// After a dry run, the command that makes the changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Shows only the changes to files.
#[derive(Debug, Serialize)]
pub struct Changes<'a>(pub &'a Report);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// Nothing has been written yet.
    Planned,
    Done,
    /// Everything was already as it should be.
    NothingToDo,
}

/// One host.
#[derive(Debug, Serialize)]
pub struct HostReport {
    pub id: String,
    pub name: String,
    pub file: PathBuf,
    /// The host's own command, if it changes the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(flatten)]
    pub state: HostState,
    /// `None` until the servers have been tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<HostCost>,
    /// How the user makes the host notice the change.
    pub restart: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum HostState {
    Planned,
    /// plugbay answers when started as by the host, with this many tools.
    Wired {
        tools: usize,
    },
    /// Its files are unchanged.
    Failed {
        reason: String,
    },
}

pub async fn setup(context: &Context, args: &SetupArgs) -> Result<ExitCode, CommandError> {
    if args.show {
        return undo::show(context);
    }
    if args.undo {
        return undo::undo(context, args);
    }
    if args.dry_run {
        let Prepared { report, .. } = prepare(context, args).await?;
        let next = (report.stage == Stage::Planned).then(|| without_question(args));
        context.output.show(&Report { next, ..report });
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes && !context.output.can_ask() {
        return Err(cannot_ask());
    }
    // Opened before anything is read, so that no other setup changes it meanwhile.
    let mut journal = open_journal(context)?;
    let prepared = prepare(context, args).await?;
    if is_lost(context, &prepared.plan, &journal)? {
        return Err(no_server(&prepared.plan.configuration.path));
    }
    if prepared.report.stage == Stage::NothingToDo {
        context.output.show(&prepared.report);
        return Ok(prepared.report.exit_code());
    }
    confirm(context, args, &prepared.report)?;
    let report = carry_out(context, prepared, &mut journal).await?;
    context.output.show(&report);
    Ok(report.exit_code())
}

impl Report {
    /// The exit code: a failure if a host could not be wired.
    fn exit_code(&self) -> ExitCode {
        let is_wired = self.problems.is_empty() && !self.hosts.iter().any(HostReport::failed);
        if is_wired { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl HostReport {
    fn failed(&self) -> bool {
        matches!(self.state, HostState::Failed { .. })
    }
}

/// The command that makes the changes shown in a dry run.
fn without_question(args: &SetupArgs) -> String {
    let hosts =
        if args.hosts.is_empty() { String::new() } else { format!(" --hosts {}", args.hosts.join(",")) };
    format!("{COMMAND} --yes{hosts}")
}

/// Everything that is determined before the first change.
struct Prepared {
    plan: Plan,
    skill: Option<Skill>,
    report: Report,
}

/// Finds the hosts, tries their servers, and plans the changes. Writes nothing.
async fn prepare(context: &Context, args: &SetupArgs) -> Result<Prepared, CommandError> {
    let places = places(context)?;
    let chosen = survey::named(&args.hosts)?;
    let survey = survey::survey(&places, &context.source.paths.start, &chosen);
    if survey.hosts.is_empty() && survey.problems.is_empty() {
        return Err(no_host());
    }
    tokenizer::prepare();
    let draft = Draft::new(survey, configuration_file(context)?, &context.source.paths)?;
    let trial = trial::try_servers(context, &draft.candidate()?).await?;
    let past = rules::Past::read(journal_folder(context)?);
    let past = past.map_err(|error| CommandError::failed(error.to_string()))?;
    let plan = draft.plan(&trial, &own_entry(context), &places, &past)?;
    let has_skills = plan.hosts.iter().any(|host| host.host.id == skill::HOST);
    let skill = if has_skills { Skill::missing(context) } else { None };
    let mut report = planned(context, &plan, skill.as_ref());
    // Without the servers that stay, because hosts do not see them through plugbay.
    let snapshot = trial::known_servers(context, &plan.configuration.new).await?;
    let costs = context_cost::costs(&plan.hosts, &plan.servers, &snapshot);
    for (host, cost) in report.hosts.iter_mut().zip(costs) {
        host.cost = Some(cost);
    }
    Ok(Prepared { plan, skill, report })
}

/// Shows the changes and asks, unless the user has already agreed.
fn confirm(context: &Context, args: &SetupArgs, report: &Report) -> Result<(), CommandError> {
    if args.yes {
        if !context.output.is_json() {
            context.output.show(&Changes(report));
        }
        return Ok(());
    }
    context.output.show(report);
    match context.output.ask("Change these files?") {
        Some(true) => Ok(()),
        _ => Err(CommandError::failed("nothing was changed")),
    }
}

/// Writes everything and checks every host.
async fn carry_out(
    context: &Context,
    prepared: Prepared,
    journal: &mut Journal,
) -> Result<Report, CommandError> {
    let Prepared { plan, skill, mut report } = prepared;
    let first = journal.changes().last().map_or(0, |change| change.number) + 1;
    let mut writer = Writer { journal, command: COMMAND, folder: &context.source.paths.start };
    writer.configuration(&plan.configuration).map_err(|error| CommandError::failed(error.to_string()))?;
    let mut checker = Checker::default();
    for (host, shown) in plan.hosts.iter().zip(&mut report.hosts) {
        shown.state = wire_one(context, &mut writer, &mut checker, host, first).await?;
    }
    withdraw::withdraw(&mut writer, &plan.configuration, &mut report, first)?;
    let has_skills = |host: &HostReport| host.id == skill::HOST && !host.failed();
    if let Some(skill) = skill.filter(|_| report.hosts.iter().any(has_skills)) {
        let installed = writer.skill(skill::HOST, &skill);
        report.problems.extend(installed.err().map(|error| FileProblem {
            host: skill::HOST.to_owned(),
            file: skill.link,
            reason: error.to_string(),
        }));
    }
    report.stage = Stage::Done;
    Ok(report)
}

/// Changes one host and checks it. If the host then does not work, its files are restored.
async fn wire_one(
    context: &Context,
    writer: &mut Writer<'_>,
    checker: &mut Checker,
    plan: &HostPlan,
    first: u64,
) -> Result<HostState, CommandError> {
    let result = match writer.host(plan) {
        Ok(()) => checker.check(context, plan).await,
        Err(error) => Err(error.to_string()),
    };
    Ok(match result {
        Ok(tools) => HostState::Wired { tools },
        Err(reason) => {
            let own = |change: &Change| change.number >= first && change.host.as_ref() == Some(&plan.host.id);
            undo::undo_changes(writer.journal, own)?;
            HostState::Failed { reason }
        }
    })
}

/// The report before anything is written.
fn planned(context: &Context, plan: &Plan, skill: Option<&Skill>) -> Report {
    let mut diffs = vec![edit_diff(&plan.configuration, &configured(&plan.configuration))];
    for host in &plan.hosts {
        diffs.push(edit_diff(&host.servers, &entries_of(host)));
        diffs.extend(host.permissions.iter().map(|edit| edit_diff(edit, &[])));
    }
    diffs.extend(skill.map(|skill| Diff {
        file: skill.link.display().to_string(),
        text: format!("+link to {}\n", skill.copy.path.display()),
    }));
    diffs.retain(|diff| !diff.text.is_empty());
    let stage = if diffs.is_empty() { Stage::NothingToDo } else { Stage::Planned };
    let hosts = plan.hosts.iter().map(|host| host_report(context, host)).collect();
    Report { stage, servers: plan.servers.clone(), hosts, diffs, problems: plan.problems.clone(), next: None }
}

fn host_report(context: &Context, plan: &HostPlan) -> HostReport {
    let program =
        plan.servers.old.as_ref().and_then(|_| HostProgram::of(plan.host, &context.source.paths.start));
    HostReport {
        id: plan.host.id.clone(),
        name: plan.host.name.clone(),
        file: plan.servers.path.clone(),
        by: program.filter(|_| plan.servers.changes()).map(|program| program.name()),
        state: HostState::Planned,
        cost: None,
        restart: plan.host.restart.clone(),
    }
}

fn edit_diff(edit: &plan::Edit, entries: &[Entry]) -> Diff {
    let old = edit.old.as_deref().unwrap_or_default();
    Diff::new(edit.path.display().to_string(), old, &edit.new, entries)
}

fn configured(edit: &plan::Edit) -> Vec<Entry> {
    let found = [edit.old.as_deref().unwrap_or_default(), &edit.new];
    found
        .iter()
        .flat_map(|text| read::read_any(&edit.path, text).unwrap_or_default().found)
        .map(|found| found.entry)
        .collect()
}

fn entries_of(plan: &HostPlan) -> Vec<Entry> {
    let texts = [plan.servers.old.as_deref().unwrap_or_default(), &plan.servers.new];
    texts
        .iter()
        .flat_map(|text| read::read(plan.host, text).unwrap_or_default().found)
        .map(|found| found.entry)
        .collect()
}

fn places(context: &Context) -> Result<Places, CommandError> {
    settings::host_places(config::project_folder(&context.source.paths.start)).ok_or_else(|| {
        CommandError::failed("there is no home folder, so plugbay finds no host").hint("set HOME")
    })
}

/// plugbay's entry. The path is absolute, because graphical hosts often have a short search path.
fn own_entry(context: &Context) -> OwnEntry {
    let mut args = vec!["serve".to_owned()];
    if let Some(file) = context.source.explicit() {
        args.extend(["--config".to_owned(), file.display().to_string()]);
    }
    let command = settings::own_program(&context.environment.program).display().to_string();
    OwnEntry { name: OWN_NAME.to_owned(), command, args, env: settings::moved_folders() }
}

fn configuration_file(context: &Context) -> Result<PathBuf, CommandError> {
    let file = context.source.explicit().or_else(|| context.source.paths.user_file.clone());
    file.ok_or_else(|| {
        CommandError::failed("there is no folder for plugbay's configuration").hint("set HOME")
    })
}

fn journal_folder(context: &Context) -> Result<PathBuf, CommandError> {
    let state = context.source.paths.state_folder.as_deref().map(|state: &Path| state.join("setup"));
    state
        .ok_or_else(|| CommandError::failed("there is no folder for the journal of changes").hint("set HOME"))
}

/// The journal of all changes that plugbay makes to files of the user, for `setup --undo`.
pub(super) fn open_journal(context: &Context) -> Result<Journal, CommandError> {
    Journal::open(&journal_folder(context)?).map_err(|error| {
        let busy = matches!(error, OpenError::Busy);
        let error = CommandError::failed(error.to_string());
        if busy { error.hint("wait until it has ended, then try again") } else { error }
    })
}

/// Whether the hosts are wired, but the moved servers are no longer in plugbay's configuration.
fn is_lost(context: &Context, plan: &Plan, journal: &Journal) -> Result<bool, CommandError> {
    let file = &plan.configuration.path;
    let folder = journal_folder(context)?;
    let has_servers = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        !read::read_any(file, &text).unwrap_or_default().found.is_empty()
    };
    let recorded = |change: &Change| {
        let (_, after) = journal::copies(&folder, change);
        change.part == Part::Configuration
            && change.path == *file
            && after.as_deref().is_some_and(has_servers)
    };
    let is_wired = plan.hosts.iter().any(|host| host.own.is_none());
    Ok(is_wired && !has_servers(plan.configuration.new.as_bytes()) && journal.changes().iter().any(recorded))
}

fn no_server(file: &Path) -> CommandError {
    let file = file.display();
    CommandError::failed(format!("your hosts are wired to plugbay, but {file} has no server any more"))
        .hint("to give your hosts back their servers: plugbay setup --undo")
}

fn cannot_ask() -> CommandError {
    CommandError::usage("plugbay setup changes files of your hosts, and can ask only in a terminal")
        .hint("to see what would change: plugbay setup --dry-run")
        .hint("to change it without a question: plugbay setup --yes")
}

fn no_host() -> CommandError {
    CommandError::failed("plugbay found no MCP host on this machine")
        .hint("name one: plugbay setup --hosts claude-code")
        .hint("`plugbay wire --help` lists the hosts that plugbay knows")
}
