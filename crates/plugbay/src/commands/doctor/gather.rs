//! Gathers the facts: the only part of `doctor` that reads files and starts servers.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use plugbay_core::{failure::Failure, name::ServerName, surface::Snapshot};
use plugbay_hosts::Entry;
use plugbay_upstream::{Condition, process::find_program, spec::StdioSpec};

use super::{
    checks,
    examination::{Examination, HostFacts, Offered, ServerFacts, Start},
    hosts, left, places, words,
};
use crate::{
    app::{App, Environment},
    cache,
    commands::{
        Context,
        approve::Proposed,
        start::{start, started},
    },
    config::{self, Kind, ServerSettings, Settings},
    output::StartLines,
    settings, status_file,
};

/// Examines the configuration and these servers; all servers if none is named.
pub async fn gather(
    context: &Context,
    settings: Settings,
    hosts: Vec<HostFacts>,
    wanted: &[String],
) -> Examination {
    let paths = &context.source.paths;
    let cache = context.environment.cache_folder.as_deref().map(cache::inspect).unwrap_or_default();
    let left_behind =
        paths.status_folder().map(|folder| status_file::left_behind(&folder)).unwrap_or_default();
    let ignored = settings.diagnostics.iter().any(|problem| problem.kind == Kind::Unapproved);
    let project = config::project_file(&paths.start).filter(|_| ignored);
    let candidates = left::find(context, &settings, &hosts, wanted);
    let left = candidates.settings();
    let starts = starts(context, &settings, wanted, &left).await;
    let server = |server: &ServerSettings| facts(server, &starts, context);
    Examination {
        written: written(context, &settings),
        entries: places::entries(&settings),
        servers: settings.servers.iter().map(server).collect(),
        variables: settings::variables(),
        program: settings::own_program(&context.environment.program),
        unapproved: project.and_then(|file| Proposed::of(&file, paths)),
        cache,
        left_behind,
        left: candidates.examined(|name| left.iter().find(|left| left.name == *name).map(server)),
        hosts,
        gateways: hosts::gateways(context),
        settings,
    }
}

/// The entries in the user's own file. Like a host's own file, it applies in every folder.
fn written(context: &Context, settings: &Settings) -> Vec<Entry> {
    let paths = &context.source.paths;
    let explicit = context.source.explicit();
    let project = config::project_file(&paths.start).filter(|_| explicit.is_none());
    let replaced: Vec<String> = places::entries(settings)
        .into_iter()
        .filter(|place| Some(&place.file) == project.as_ref())
        .map(|place| place.server.to_lowercase())
        .collect();
    let Some(file) = explicit.or_else(|| paths.user_file.clone()) else { return Vec::new() };
    let mut servers = config::servers_in(&file, paths).servers;
    servers.retain(|entry| !replaced.contains(&entry.name.to_lowercase()));
    servers
}

fn facts(server: &ServerSettings, starts: &BTreeMap<ServerName, Start>, context: &Context) -> ServerFacts {
    let mut facts = ServerFacts {
        name: server.name.to_string(),
        spec: server.spec.clone(),
        program: None,
        elsewhere: Vec::new(),
        substitute: None,
        dead_paths: Vec::new(),
        start: starts.get(&server.name).cloned(),
    };
    let Some(stdio) = facts.stdio().cloned() else { return facts };
    let paths = &context.source.paths;
    let folder = stdio.cwd.clone().unwrap_or_else(|| paths.start.clone());
    let program = find_program(&stdio);
    if program.is_err() {
        facts.elsewhere = words::elsewhere(&stdio.command, paths.home.as_deref());
        facts.substitute = words::substitute(&stdio.command).filter(|other| exists(&stdio, other));
    }
    // The arguments of a working server may name files that do not exist yet.
    if program.is_err() || facts.failure().is_some() {
        let all = std::iter::once(&stdio.command).chain(&stdio.args);
        facts.dead_paths = words::dead_paths(all, &folder, paths.home.as_deref());
    }
    facts.program = Some(program);
    facts
}

fn exists(stdio: &StdioSpec, program: &str) -> bool {
    find_program(&StdioSpec { command: program.to_owned(), ..stdio.clone() }).is_ok()
}

/// Starts servers, a few at a time and without the cache, so that nothing on disk changes.
async fn starts(
    context: &Context,
    settings: &Settings,
    wanted: &[String],
    left: &[ServerSettings],
) -> BTreeMap<ServerName, Start> {
    let chosen: Vec<ServerName> =
        startable(settings, wanted).chain(left.iter().map(|server| server.name.clone())).collect();
    let mut settings = settings.clone();
    settings.servers.extend_from_slice(left);
    settings.servers.sort_by(|one, other| one.name.cmp(&other.name));
    let environment = Environment { cache_folder: None, ..context.environment.clone() };
    let app = App::assemble(&settings, environment);
    let begun = Instant::now();
    let mut took = BTreeMap::new();
    let mut lines = StartLines::new(context.output, chosen.iter().map(ToString::to_string).collect());
    let snapshots = app.snapshots();
    let report = |name: &ServerName, condition: &Condition| {
        let Some(outcome) = started(name, condition, &snapshots) else { return };
        took.insert(name.clone(), begun.elapsed());
        lines.settled(name.as_str(), outcome, begun.elapsed());
    };
    let failures = start(&app, |name| chosen.contains(name), report).await;
    let snapshot = app.snapshots().borrow().clone();
    app.shut_down().await;
    context.output.progress_done();
    let outcome = |name: &ServerName| outcome(name, &failures, &snapshot);
    took.into_iter().map(|(name, took)| (name.clone(), Start { took, outcome: outcome(&name) })).collect()
}

/// The servers to start: the wanted ones that do not start plugbay itself.
fn startable<'a>(settings: &'a Settings, wanted: &'a [String]) -> impl Iterator<Item = ServerName> + 'a {
    let sources: Vec<PathBuf> = settings.contents.iter().map(|content| content.file.clone()).collect();
    let is_ours = move |file: &Path| sources.iter().any(|source| source.ends_with(file));
    let chosen = settings.servers.iter().filter(move |server| {
        let named =
            wanted.is_empty() || wanted.iter().any(|name| name.eq_ignore_ascii_case(server.name.as_str()));
        let itself = match server.spec.as_ref().map(|spec| &spec.transport) {
            Ok(plugbay_upstream::spec::Transport::Stdio(stdio)) => checks::runs_itself(stdio, &is_ours),
            _ => false,
        };
        named && !itself
    });
    chosen.map(|server| server.name.clone())
}

fn outcome(
    name: &ServerName,
    failures: &BTreeMap<ServerName, Arc<Failure>>,
    snapshot: &Snapshot,
) -> Result<Offered, Arc<Failure>> {
    if let Some(failure) = failures.get(name) {
        return Err(Arc::clone(failure));
    }
    let entry = snapshot.catalog.get(name);
    let shown = snapshot.names.of(name).count();
    let count =
        |count: fn(&plugbay_core::catalog::Offer) -> usize| entry.map_or(0, |entry| count(&entry.offer));
    Ok(Offered {
        tools: count(|offer| offer.tools.len()),
        shown,
        others: count(|offer| {
            offer.resources.len() + offer.templates.len() + offer.prompts.len() + offer.skills.len()
        }),
        hidden: entry
            .and_then(|entry| entry.offer.hidden.as_ref())
            .map(|hidden| hidden.lines())
            .unwrap_or_default(),
        left_out: entry.and_then(|entry| entry.offer.left_out),
    })
}
