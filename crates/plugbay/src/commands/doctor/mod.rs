//! `plugbay doctor`: finds out why a server has no tools, or why a host does not see them, and fixes what it
//! can.
//!
//! `gather` collects facts into an [`Examination`], `checks` turn facts into [`Finding`]s, and a finding may
//! have a [`Fix`]. Only `gather` reads files, and only a fix writes them.

mod checks;
mod examination;
mod finding;
mod fix;
mod gather;
mod hosts;
mod left;
mod places;
mod sandbox;
mod words;

use std::{collections::BTreeSet, process::ExitCode};

use plugbay_core::name;
use serde::Serialize;

use self::{
    examination::{Examination, HostFacts, ServerFacts},
    gather::gather,
};
pub use self::{
    finding::{Finding, Severity, Subject},
    fix::Fix,
    sandbox::SandboxState,
};
use super::{CommandError, Context, alternatives, setup::open_journal};
use crate::config::{self, Settings};

/// Find out why a server or a host does not work, and mend it.
///
/// Starts every server and examines the configuration, the files of hosts, and the gateways that run. Each finding has
/// a code that docs/doctor.md explains. The exit code is 1 if something does not work; warnings leave it at 0.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Examine only these servers.
    #[arg(value_name = "SERVER")]
    servers: Vec<String>,
    /// Mend what can be mended, after showing how.
    #[arg(long)]
    fix: bool,
    /// Mend without asking.
    #[arg(long, requires = "fix")]
    yes: bool,
}

/// What `doctor` found.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    pub findings: Vec<Finding>,
    pub servers: Vec<Checked>,
    /// How jq filters are confined; absent if servers were named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxState>,
    pub summary: Summary,
    /// The changes that `--fix` made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<Fix>,
}

/// A server that was examined.
#[derive(Debug, Serialize)]
pub struct Checked {
    pub name: String,
    pub works: bool,
    /// Tools that hosts may use.
    pub tools: usize,
    /// How long its start took; absent if it was not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<u128>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub errors: usize,
    pub warnings: usize,
    pub notes: usize,
    /// Findings that `--fix` can fix.
    pub fixable: usize,
}

/// Changes that are about to be made.
#[derive(Debug, Serialize)]
pub struct Plan<'a> {
    pub fixes: Vec<&'a Fix>,
}

pub async fn doctor(context: &Context, args: &DoctorArgs) -> Result<ExitCode, CommandError> {
    let first = diagnose(context, args).await?;
    let diagnosis = if args.fix && first.summary.fixable > 0 {
        if !context.output.is_json() && !args.yes {
            context.output.show(&first);
        }
        let fixed = mend(context, args, &first)?;
        Diagnosis { fixed, ..diagnose(context, args).await? }
    } else {
        first
    };
    context.output.show(&diagnosis);
    Ok(if diagnosis.summary.errors > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn diagnose(context: &Context, args: &DoctorArgs) -> Result<Diagnosis, CommandError> {
    let settings = context.source.load();
    let hosts = hosts::gather(context);
    check_names(context, &settings, &hosts, &args.servers)?;
    let mut servers = args.servers.clone();
    servers.extend(left::counterparts(context, &settings, &hosts, &args.servers));
    let examination = gather(context, settings, hosts, &servers).await;
    let mut diagnosis = Diagnosis::of(&examination, &servers);
    if args.servers.is_empty() {
        diagnosis.sandbox = Some(sandbox::examine(context).await);
    }
    Ok(diagnosis)
}

/// Fails if a name belongs to no server, unless the server may be in a file that cannot be read.
fn check_names(
    context: &Context,
    settings: &Settings,
    hosts: &[HostFacts],
    names: &[String],
) -> Result<(), CommandError> {
    let mut known = known_names(context, settings);
    known.extend(left::names(context, hosts));
    let is_known = |name: &&String| known.iter().any(|other| other.eq_ignore_ascii_case(name));
    match names.iter().find(|name| !is_known(name)) {
        Some(name) if !settings.unreadable => Err(unknown(name, &known)),
        _ => Ok(()),
    }
}

/// The servers in the configuration, and in a project's file that is not approved.
fn known_names(context: &Context, settings: &Settings) -> BTreeSet<String> {
    let paths = &context.source.paths;
    let configured = settings.servers.iter().map(|server| &server.name).chain(&settings.disabled);
    let mut known: BTreeSet<String> = configured.map(ToString::to_string).collect();
    if settings.diagnostics.iter().any(|problem| problem.kind == config::Kind::Unapproved) {
        let file = config::project_file(&paths.start);
        known.extend(file.into_iter().flat_map(|file| config::servers_in(&file, paths).names));
    }
    known
}

fn unknown(name: &str, known: &BTreeSet<String>) -> CommandError {
    let error = CommandError::usage(format!("there is no server {name:?}"));
    let near = name::nearest(name, known.iter().map(String::as_str));
    let error =
        if near.is_empty() { error } else { error.hint(format!("did you mean {}?", alternatives(&near))) };
    if known.is_empty() {
        return error.hint("run `plugbay setup`, which imports the servers of your hosts");
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    error.hint(format!("configured: {}", known.join(", ")))
}

/// Shows the changes, asks, and makes them. Returns those that were made.
fn mend(context: &Context, args: &DoctorArgs, diagnosis: &Diagnosis) -> Result<Vec<Fix>, CommandError> {
    let agreed_to = |finding: &&Finding| !args.yes || finding.is_covered_by_yes(&args.servers);
    let fixable = diagnosis.findings.iter().filter(|finding| finding.fix.is_some());
    for finding in fixable.clone().filter(|finding| !agreed_to(finding)) {
        context.output.note(format!("--yes does not cover {}: {}", finding.code.as_str(), alone(finding)));
    }
    let mut fixes: Vec<&Fix> = fixable.filter(agreed_to).filter_map(|finding| finding.fix.as_ref()).collect();
    fixes.sort_by_key(|fix| fix.rank());
    fixes.dedup_by_key(|fix| fix.to_string());
    let is_json = context.output.is_json();
    if !is_json && !args.yes {
        context.output.show(&Plan { fixes: fixes.clone() });
    }
    let agreed = args.yes || !is_json && context.output.ask("Do that?").unwrap_or_default();
    if !agreed {
        let error = CommandError::failed("nothing was changed");
        return Err(error.hint("to change it without being asked: plugbay doctor --fix --yes"));
    }
    let mut journal = open_journal(context)?;
    let mut done = Vec::new();
    for fix in fixes {
        match fix.apply(&context.source.paths, &mut journal) {
            Ok(()) => done.push(fix.clone()),
            Err(problem) => context.output.note(format!("not done: {problem}")),
        }
    }
    Ok(done)
}

/// How to agree to a fix that `--yes` does not cover.
fn alone(finding: &Finding) -> String {
    match &finding.about {
        Subject::Server(server) => format!("run `plugbay doctor {server} --fix --yes`"),
        _ => "run `plugbay approve`, which shows what it would start".to_owned(),
    }
}

impl Diagnosis {
    fn of(examination: &Examination, servers: &[String]) -> Self {
        let findings = relevant(checks::all(examination), servers);
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        let summary = Summary {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            notes: count(Severity::Note),
            fixable: findings.iter().filter(|finding| finding.fix.is_some()).count(),
        };
        let named = |facts: &&ServerFacts| {
            servers.is_empty() || servers.iter().any(|name| name.eq_ignore_ascii_case(&facts.name))
        };
        let left = examination.left.iter().filter(|left| left.named).filter_map(|left| left.facts.as_ref());
        let servers = examination.servers.iter().filter(named).chain(left).map(Checked::of).collect();
        Self { findings, servers, sandbox: None, summary, fixed: Vec::new() }
    }
}

/// The findings about these servers, and errors in files: such a file may contain one of the servers.
fn relevant(findings: Vec<Finding>, servers: &[String]) -> Vec<Finding> {
    if servers.is_empty() {
        return findings;
    }
    let about = |finding: &Finding| match &finding.about {
        Subject::Server(name) => servers.iter().any(|server| server.eq_ignore_ascii_case(name)),
        Subject::File(_) => finding.severity == Severity::Error,
        Subject::Host(_) => false,
    };
    findings.into_iter().filter(about).collect()
}

impl Checked {
    fn of(facts: &ServerFacts) -> Self {
        let offered = facts.offered();
        Self {
            name: facts.name.clone(),
            works: offered.is_some(),
            tools: offered.map_or(0, |offered| offered.shown),
            milliseconds: facts.start.as_ref().map(|start| start.took.as_millis()),
        }
    }
}
