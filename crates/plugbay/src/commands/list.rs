//! `plugbay list`: every server with its state, its tools and their cost.

use std::{process::ExitCode, sync::Arc};

use plugbay_core::{
    era::Era,
    failure::Failure,
    name::ServerName,
    server_state::ServerState,
    signature::first_sentence,
    surface::Snapshot,
    tokens::{Cost, Ledger},
};
use serde::Serialize;
use serde_json::Value;

use super::{
    CommandError, Context, StartFailure,
    approve::Launch,
    start::{Failures, start_visibly},
    tools::find,
};
use crate::{
    app::App,
    config::{ServerSettings, Settings, Severity},
    tokenizer,
};

/// Start every server and show its state, tools and tokens.
///
/// A line about each server appears on stderr when it has started or failed. With one name, the details of that
/// server are shown. The tools go to the cache, so that hosts see them in their first list.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ListArgs {
    /// Start and show only these servers.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  plugbay list              every server in a table
  plugbay list github       one server with its tools, or why it fails
  plugbay list --json

The exit code is 1 if a server fails or a configuration file has an error.";

/// All servers at a glance.
#[derive(Debug, Serialize)]
pub struct Overview {
    pub servers: Vec<Row>,
    pub tools: usize,
    pub tokens: usize,
    pub disabled: Vec<String>,
    /// Exposed names that two tools would have; hosts see neither of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collisions: Vec<String>,
    /// Names without a prefix that are ambiguous, and are shown with one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ambiguous: Vec<String>,
    /// Names of remote tools that are hidden by local tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shadowed: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub state: ServerState,
    /// The tools that the host sees, including those from the cache.
    pub tools: usize,
    pub tokens: usize,
    pub era: Option<Era>,
    #[serde(skip_serializing_if = "ServerKind::is_server")]
    pub kind: ServerKind,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<StartFailure>,
    /// Whether the trouble was already shown as a problem of the configuration.
    #[serde(skip)]
    pub was_shown: bool,
}

/// The kind of a configured server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ServerKind {
    Server,
    /// A remote gateway with MCP.
    Remote,
    /// A remote gateway that has only the plain API.
    PlainApi,
}

impl ServerKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_server(&self) -> bool {
        *self == Self::Server
    }
}

/// One server in detail.
#[derive(Debug, Serialize)]
pub struct Detail {
    #[serde(flatten)]
    pub row: Row,
    pub launch: Option<Launch>,
    /// The name and version that the server gives itself.
    pub info: Option<String>,
    pub definitions: Vec<ToolCost>,
    pub resources: usize,
    pub prompts: usize,
}

/// A tool by the name that hosts see.
#[derive(Debug, Serialize)]
pub struct ToolCost {
    pub name: String,
    pub tokens: usize,
    pub purpose: String,
}

pub async fn list(context: &Context, args: &ListArgs) -> Result<ExitCode, CommandError> {
    // Problems of other servers hardly matter to a user who names one.
    let names_all = args.names.is_empty();
    let settings = if names_all { context.settings()? } else { context.settings_in_passing()? };
    let wanted: Vec<ServerName> =
        args.names.iter().map(|name| find(&settings, name)).collect::<Result<_, _>>()?;
    tokenizer::prepare();
    let app = App::assemble(&settings, context.environment.clone());
    let is_wanted = |name: &ServerName| wanted.is_empty() || wanted.contains(name);
    let failures = start_visibly(&app, context.output, is_wanted).await;
    let snapshot = app.snapshots().borrow().clone();
    let look = Look { snapshot, settings: &settings, failures, names_all };
    let failed = match wanted.as_slice() {
        [only] => look.show_detail(context, only),
        _ => look.show_all(context, is_wanted),
    };
    app.shut_down().await;
    let broken_file = settings.diagnostics.iter().any(|problem| problem.severity == Severity::Error);
    Ok(if failed || broken_file && names_all { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The servers after their start.
struct Look<'a> {
    settings: &'a Settings,
    snapshot: Snapshot,
    failures: Failures,
    names_all: bool,
}

impl Look<'_> {
    /// Shows all servers. Returns whether one failed.
    fn show_all(&self, context: &Context, is_wanted: impl Fn(&ServerName) -> bool) -> bool {
        let ledger = Ledger::of(&self.snapshot.names, tokenizer::count);
        let servers = self.settings.servers.iter().filter(|server| is_wanted(&server.name));
        let servers: Vec<Row> = servers.map(|server| self.row(server, &ledger)).collect();
        let names = &self.snapshot.names;
        let overview = Overview {
            tools: servers.iter().map(|row| row.tools).sum(),
            tokens: servers.iter().map(|row| row.tokens).sum(),
            servers,
            disabled: self.settings.disabled.iter().map(ToString::to_string).collect(),
            collisions: names.collisions.clone(),
            ambiguous: names.ambiguous.clone(),
            shadowed: names.shadowed.clone(),
        };
        context.output.show(&overview);
        overview.servers.iter().any(|row| row.state.is_trouble())
    }

    fn show_detail(&self, context: &Context, name: &ServerName) -> bool {
        let Some(server) = self.settings.servers.iter().find(|server| server.name == *name) else {
            return true;
        };
        let ledger = Ledger::of(&self.snapshot.names, tokenizer::count);
        let unexpanded = context.source.load_unexpanded().servers;
        let launch = unexpanded.iter().find(|server| server.name == *name).map(Launch::of);
        let offer = self.snapshot.catalog.get(name).map(|entry| &entry.offer);
        let tools = ledger.entries.iter().filter(|entry| entry.server == *name);
        let detail = Detail {
            row: self.row(server, &ledger),
            launch: launch.map(Launch::masked),
            info: offer.and_then(|offer| info(offer.info.as_deref()?)),
            definitions: tools
                .map(|entry| ToolCost {
                    name: entry.tool.name.clone(),
                    tokens: entry.tokens,
                    purpose: first_sentence(&entry.tool.description().unwrap_or_default()),
                })
                .collect(),
            resources: offer.map_or(0, |offer| offer.resources.len() + offer.templates.len()),
            prompts: offer.map_or(0, |offer| offer.prompts.len()),
        };
        context.output.show(&detail);
        detail.row.state.is_trouble()
    }

    fn row(&self, server: &ServerSettings, ledger: &Ledger) -> Row {
        let name = &server.name;
        let Cost { tools, tokens } = ledger.by_server().get(name).copied().unwrap_or_default();
        let failure = match &server.spec {
            Err(reason) => Some(Arc::new(Failure::new(reason, Vec::new()))),
            Ok(_) => self.failures.get(name).cloned(),
        };
        let dialect = self.snapshot.catalog.get(name).map(|entry| entry.offer.dialect);
        let era = dialect.map(|dialect| dialect.era);
        let kind = match (server.is_remote(), dialect.is_some_and(|dialect| dialect.plain_api)) {
            (false, _) => ServerKind::Server,
            (true, false) => ServerKind::Remote,
            (true, true) => ServerKind::PlainApi,
        };
        let state = match (&failure, era) {
            (Some(failure), _) => ServerState::of_failure(failure),
            (None, Some(_)) => ServerState::Ready,
            (None, None) => ServerState::Warming,
        };
        Row {
            name: name.to_string(),
            state,
            tools,
            tokens,
            era,
            kind,
            trouble: failure.map(|failure| StartFailure::from(&*failure)),
            was_shown: self.names_all && server.spec.is_err(),
        }
    }
}

/// `name version`, of a `serverInfo`.
fn info(info: &[u8]) -> Option<String> {
    let info: Value = serde_json::from_slice(info).ok()?;
    let parts = [info["name"].as_str()?, info["version"].as_str().unwrap_or_default()];
    Some(parts.join(" ").trim_end().to_owned())
}
