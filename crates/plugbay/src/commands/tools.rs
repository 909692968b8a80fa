//! `plugbay tools`: all tools as a host sees them.

use std::process::ExitCode;

use plugbay_core::{
    name::{self, ServerName},
    signature::Signature,
    tokens::{Entry, Ledger},
};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{CommandError, Context, alternatives, start::start};
use crate::{app::App, config::Settings, tokenizer};

/// The tools that were asked for. As JSON they are the definitions that the host gets.
#[derive(Debug)]
pub struct Tools {
    pub entries: Vec<Entry>,
}

impl Serialize for Tools {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = |entry: &Entry| serde_json::from_slice::<Box<RawValue>>(&entry.tool.definition).ok();
        serializer.collect_seq(self.entries.iter().filter_map(raw))
    }
}

/// The tools as lines.
#[derive(Debug, Serialize)]
pub struct Signatures(pub Vec<String>);

impl Signatures {
    fn of(entries: &[Entry]) -> Self {
        let line = |entry: &Entry| Signature::of(&entry.tool.name, &entry.tool).to_string();
        Self(entries.iter().map(line).collect())
    }
}

/// Show all tools, or those that match some words.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ToolsArgs {
    /// Words that must all occur in a tool's name or description.
    words: Vec<String>,
    /// Show only the tools of this server.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
    /// Print each tool as one line: its name, parameters and purpose.
    #[arg(long, conflicts_with = "json")]
    signature: bool,
}

const EXAMPLES: &str = "\
Examples:
  plugbay tools                       every tool that hosts may call
  plugbay tools create issue          those with both words
  plugbay tools --server github --signature
  plugbay tools --json                definitions as mode all lists them";

/// How the tools are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// With what each costs.
    Table,
    Signatures,
    /// As JSON.
    Definitions,
}

pub async fn tools(context: &Context, query: &ToolsArgs) -> Result<ExitCode, CommandError> {
    let format = match (query.signature, context.output.is_json()) {
        (true, _) => Format::Signatures,
        (false, true) => Format::Definitions,
        (false, false) => Format::Table,
    };
    let settings = context.settings_in_passing()?;
    let server = query.server.as_deref().map(|name| find(&settings, name)).transpose()?;
    // Only the table shows tokens, which take a moment to count.
    let count = if format == Format::Table { tokenizer::count } else { |_: &str| 0 };
    if format == Format::Table {
        tokenizer::prepare();
    }
    let app = App::assemble(&settings, context.environment.clone());
    let unknown = learn(context, &settings, &app, server.as_ref()).await;
    let snapshot = app.snapshots().borrow().clone();
    app.shut_down().await;

    let mut entries = Ledger::of(&snapshot.names, count).entries;
    entries
        .retain(|entry| server.as_ref().is_none_or(|server| entry.server == *server) && query.matches(entry));
    let found = !entries.is_empty();
    let as_json = format == Format::Definitions;
    match format {
        Format::Signatures => context.output.show(&Signatures::of(&entries)),
        _ if found || as_json => context.output.show(&Tools { entries }),
        _ => {}
    }
    if !unknown.is_empty() {
        let these = unknown.join(", ");
        context.output.note(format!("plugbay knows no tools of {these}; `plugbay list` shows why"));
    }
    if !found && !as_json {
        return Err(query.nothing_found());
    }
    Ok(if found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
        context.output.progress("asking the servers for their tools");
        start(app, wanted, |_, _| {}).await;
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
        return CommandError::failed(format!("server {wanted} is disabled in the configuration"));
    }
    let names: Vec<&str> = settings.servers.iter().map(|server| server.name.as_str()).collect();
    let error = CommandError::failed(format!("there is no server {wanted:?}"));
    match name::nearest(wanted, names.iter().copied()) {
        near if !near.is_empty() => error.hint(format!("did you mean {}?", alternatives(&near))),
        _ => error.hint(format!("configured: {}", names.join(", "))),
    }
}

impl ToolsArgs {
    fn matches(&self, entry: &Entry) -> bool {
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
