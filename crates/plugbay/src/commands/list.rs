//! `plugbay list`: every server, how it is, what it has and what that costs.

use std::process::ExitCode;

use plugbay_core::{
    era::Era,
    exposure::Mode,
    failure::Failure,
    server_state::ServerState,
    tokens::{Cost, Ledger},
};
use plugbay_upstream::Condition;
use serde::Serialize;

use super::{CommandError, Context, StartFailure, start::start};
use crate::{
    app::App,
    config::{ServerSettings, Settings, Severity},
    tokenizer,
};

/// Start every server and show its state, tools and tokens.
#[derive(Debug, clap::Args)]
pub struct ListArgs {}

/// All servers at a glance.
#[derive(Debug, Serialize)]
pub struct Overview {
    pub servers: Vec<Row>,
    pub tools: usize,
    pub tokens: usize,
    pub disabled: Vec<String>,
    /// Exposed names that two tools wanted; neither is shown to the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collisions: Vec<String>,
    /// Names wanted without a prefix that are shown with one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ambiguous: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub state: ServerState,
    /// What the host sees, from the cache too.
    pub tools: usize,
    pub tokens: usize,
    pub era: Option<Era>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<StartFailure>,
}

pub async fn list(context: &Context, _args: &ListArgs) -> Result<ExitCode, CommandError> {
    let settings = context.settings()?;
    tokenizer::prepare();
    let app = App::assemble(&settings, context.environment.clone());
    let overview = look(context, &settings, &app).await;
    context.output.progress_done();
    context.output.show(&overview);
    app.shut_down().await;
    let broken_file = settings.diagnostics.iter().any(|problem| problem.severity == Severity::Error);
    let failed = broken_file || overview.servers.iter().any(|row| row.state == ServerState::Error);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn look(context: &Context, settings: &Settings, app: &App) -> Overview {
    let mut waiting: Vec<String> = app.servers().keys().map(ToString::to_string).collect();
    let failures = start(
        app,
        |_| true,
        |name, condition| {
            if matches!(condition, Condition::Ready | Condition::Error(_)) {
                waiting.retain(|other| other != name.as_str());
            }
            match waiting.as_slice() {
                [] => context.output.progress("counting tokens"),
                names => context.output.progress(&format!("waiting for {}", names.join(", "))),
            }
        },
    );
    let failures = failures.await;
    let snapshot = app.snapshots().borrow().clone();
    let ledger = Ledger::of(&snapshot.names, tokenizer::count);
    let costs = ledger.by_server();
    let row = |server: &ServerSettings| {
        let name = &server.name;
        let Cost { tools, tokens } = costs.get(name).copied().unwrap_or_default();
        let trouble = match &server.spec {
            Err(reason) => Some(StartFailure::from(&Failure::new(reason, Vec::new()))),
            Ok(_) => failures.get(name).map(|failure| StartFailure::from(&**failure)),
        };
        let era = snapshot.catalog.get(name).map(|entry| entry.offer.dialect.era);
        let state = match (&trouble, era) {
            (Some(_), _) => ServerState::Error,
            (None, Some(_)) => working(server.exposure.mode.or(settings.mode)),
            (None, None) => ServerState::Warming,
        };
        Row { name: name.to_string(), state, tools, tokens, era, trouble }
    };
    let Cost { tools, tokens } = ledger.total();
    Overview {
        servers: settings.servers.iter().map(row).collect(),
        tools,
        tokens,
        disabled: settings.disabled.iter().map(ToString::to_string).collect(),
        collisions: snapshot.names.collisions.clone(),
        ambiguous: snapshot.names.ambiguous.clone(),
    }
}

/// What a server that works is for the host.
fn working(mode: Option<Mode>) -> ServerState {
    match mode {
        None | Some(Mode::All) => ServerState::Active,
        Some(Mode::Search | Mode::Activate | Mode::Suite) => ServerState::Ready,
    }
}
