//! `plugbay tools`: all tools, as hosts see them.

use std::{collections::BTreeMap, process::ExitCode};

use plugbay_core::{
    catalog::Tool,
    exposure::Mode,
    name::ServerName,
    signature::Signature,
    surface::{Snapshot, View},
    tokens::{Ledger, counted},
    wire::elements,
};
use plugbay_upstream::Condition;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{
    CommandError, Context,
    hosts::{chosen, rows, view},
    place::no_such_server,
    start::start,
};
use crate::{app::App, config::Settings, tokenizer};

/// Show all tools, or those that match some words.
///
/// Without `--mode` and `--host`, these are the tools of all servers, whether a host lists them or finds them by a
/// search.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ToolsArgs {
    /// Words that must all occur in a tool's name or description.
    words: Vec<String>,
    /// Show only the tools of this server.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["mode", "host"])]
    server: Option<String>,
    /// Show what this mode lists: all, suite, search, activate or code.
    #[arg(long, value_parser = parse_mode)]
    mode: Option<Mode>,
    /// Show what this host lists; `plugbay hosts` has the names.
    #[arg(long, value_name = "NAME", conflicts_with = "mode")]
    host: Option<String>,
    /// Print each tool as one line: its name, parameters and purpose.
    #[arg(long, conflicts_with = "json")]
    signature: bool,
}

const EXAMPLES: &str = "\
Examples:
  plugbay tools                       every tool that hosts may call
  plugbay tools create issue          those with both words
  plugbay tools --server github --signature
  plugbay tools --mode search         what hosts list in mode search
  plugbay tools --host cursor --json  definitions as this host gets them";

/// The tools to show. As JSON they are the definitions that the host gets.
#[derive(Debug)]
pub struct Tools {
    pub entries: Vec<Shown>,
}

/// A tool with its cost.
#[derive(Debug)]
pub struct Shown {
    /// Absent for plugbay's own tools.
    pub server: Option<ServerName>,
    pub tool: Tool,
    pub tokens: usize,
}

impl Serialize for Tools {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = |entry: &Shown| serde_json::from_slice::<Box<RawValue>>(&entry.tool.definition).ok();
        serializer.collect_seq(self.entries.iter().filter_map(raw))
    }
}

/// The tools as lines.
#[derive(Debug, Serialize)]
pub struct Signatures(pub Vec<String>);

impl Signatures {
    fn of(entries: &[Shown]) -> Self {
        let line = |entry: &Shown| Signature::of(&entry.tool.name, &entry.tool).to_string();
        Self(entries.iter().map(line).collect())
    }
}

pub async fn tools(context: &Context, args: &ToolsArgs) -> Result<ExitCode, CommandError> {
    let settings = context.settings_in_passing()?;
    let server = args.server.as_deref().map(|name| find(&settings, name)).transpose()?;
    // Only the table shows tokens, and counting them takes a moment.
    let as_json = context.output.is_json();
    let is_table = !args.signature && !as_json;
    if is_table {
        tokenizer::prepare();
    }
    let app = App::assemble(&settings, context.environment.clone());
    let unknown = learn(context, &settings, &app, server.as_ref()).await;
    let snapshot = app.snapshots().borrow().clone();
    app.shut_down().await;

    let count = if is_table { tokenizer::count } else { |_: &str| 0 };
    let view = args.view(&snapshot)?;
    let mut entries = match &view {
        Some(view) => listed(&snapshot, view, count),
        None => offered(&snapshot, count),
    };
    entries.retain(|entry| (server.is_none() || entry.server == server) && args.matches(entry));
    let found = !entries.is_empty();
    if args.signature {
        context.output.show(&Signatures::of(&entries));
    } else if found || as_json {
        context.output.show(&Tools { entries });
    }
    context.note_unknown(&unknown);
    if is_table && view.is_none() && found {
        note_modes(context, &snapshot);
    }
    if !found && !as_json {
        return Err(args.nothing_found());
    }
    Ok(if found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The tools of all servers.
fn offered(snapshot: &Snapshot, count: fn(&str) -> usize) -> Vec<Shown> {
    let entries = Ledger::of(&snapshot.names, count).entries.into_iter();
    entries
        .map(|entry| Shown { server: Some(entry.server), tool: entry.tool, tokens: entry.tokens })
        .collect()
}

/// The tools that a host lists.
fn listed(snapshot: &Snapshot, view: &View, count: fn(&str) -> usize) -> Vec<Shown> {
    let tools = &snapshot.seen_by(view).listing.tools;
    let shown = |span: std::ops::Range<usize>| {
        let tool = Tool::parse(tools.slice(span))?;
        let tokens = count(&counted(&tool.definition));
        Some(Shown { server: None, tool, tokens })
    };
    elements(tools, &(0..tools.len())).into_iter().filter_map(shown).collect()
}

/// Notes which hosts list other tools.
fn note_modes(context: &Context, snapshot: &Snapshot) {
    if let Some(mode) = snapshot.layout.mode {
        if mode != Mode::All {
            let what = format!("mode {mode} is configured, so hosts list other tools");
            context.output.note(format!("{what}; see `plugbay tools --mode {mode}`"));
        }
        return;
    }
    let mut modes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows(snapshot).into_iter().filter(|row| row.mode != Mode::All.to_string()) {
        modes.entry(row.mode).or_default().push(row.profile.name);
    }
    if !modes.is_empty() {
        let groups: Vec<String> =
            modes.iter().map(|(mode, hosts)| format!("mode {mode} for {}", hosts.join(", "))).collect();
        let others = groups.join("; ");
        context
            .output
            .note(format!("some hosts list other tools ({others}); see `plugbay tools --host NAME`"));
    }
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    let found = super::tokens::MODES.into_iter().find(|mode| mode.to_string() == text);
    found.ok_or_else(|| "the modes are all, suite, search, activate and code".to_owned())
}

/// Starts the servers that are not in the cache; returns those that are still unknown.
pub(super) async fn learn(
    context: &Context,
    settings: &Settings,
    app: &App,
    only: Option<&ServerName>,
) -> Vec<String> {
    let known = |name: &ServerName| app.snapshots().borrow().catalog.get(name).is_some();
    let wanted = |name: &ServerName| only.is_none_or(|only| only == name) && !known(name);
    let settled = match only {
        Some(only) => known(only),
        None => app.snapshots().borrow().settled,
    };
    if !settled {
        let names = app.servers().into_keys().filter(wanted).map(|name| name.to_string());
        let mut waiting: Vec<String> = names.collect();
        let show = |waiting: &[String]| {
            context.output.progress(&format!("asking for tools, waiting for {}", waiting.join(", ")));
        };
        show(&waiting);
        let report = |name: &ServerName, condition: &Condition| {
            if matches!(condition, Condition::Ready | Condition::Error(_)) {
                waiting.retain(|other| other != name.as_str());
                show(&waiting);
            }
        };
        start(app, wanted, report).await;
        context.output.progress_done();
    }
    settings
        .servers
        .iter()
        .map(|server| &server.name)
        .filter(|name| wanted(name))
        .map(ToString::to_string)
        .collect()
}

/// The configured server of this name, in any case.
pub(super) fn find(settings: &Settings, wanted: &str) -> Result<ServerName, CommandError> {
    let names = || settings.servers.iter().map(|server| &server.name);
    if let Some(name) = names().find(|name| name.as_str().eq_ignore_ascii_case(wanted)) {
        return Ok(name.clone());
    }
    Err(unknown_server(settings, wanted))
}

pub(super) fn unknown_server(settings: &Settings, wanted: &str) -> CommandError {
    if settings.disabled.iter().any(|name| name.as_str().eq_ignore_ascii_case(wanted)) {
        return CommandError::failed(format!("server {wanted} is disabled in the configuration"))
            .hint(format!("`plugbay enable {wanted}` uses it again"));
    }
    no_such_server(wanted, settings.servers.iter().map(|server| server.name.as_str()))
}

impl ToolsArgs {
    /// The view of the mode or host that the user names.
    fn view(&self, snapshot: &Snapshot) -> Result<Option<View>, CommandError> {
        if let Some(mode) = self.mode {
            return Ok(Some(View::in_mode(mode)));
        }
        let Some(name) = &self.host else { return Ok(None) };
        let hosts = &snapshot.layout.hosts;
        let profile = hosts.iter().chain([hosts.unknown()]).find(|host| host.name.eq_ignore_ascii_case(name));
        let profile = profile.ok_or_else(|| {
            let names: Vec<&str> = hosts.iter().map(|profile| profile.name.as_str()).collect();
            CommandError::usage(format!("there is no profile of a host {name:?}"))
                .hint(format!("there are profiles of {}", names.join(", ")))
        })?;
        Ok(Some(view(profile, snapshot, chosen(profile, snapshot).0)))
    }

    fn matches(&self, entry: &Shown) -> bool {
        let description = entry.tool.description().unwrap_or_default();
        let whole = format!("{} {description}", entry.tool.name).to_lowercase();
        let mut words = self.words.iter().flat_map(|words| words.split_whitespace());
        words.all(|word| whole.contains(&word.to_lowercase()))
    }

    fn nothing_found(&self) -> CommandError {
        let of = self.server.as_ref().map(|server| format!(" of {server}")).unwrap_or_default();
        if self.words.is_empty() {
            return CommandError::failed(format!("no tools{of}"));
        }
        CommandError::failed(format!("no tool{of} matches {:?}", self.words.join(" ")))
    }
}
