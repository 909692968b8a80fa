//! `plugbay get`: one server's effective entry, and the facts known about the server. Starts nothing.

use std::process::ExitCode;

use plugbay_core::{name::ServerName, server_state::ServerState};
use serde::Serialize;

use super::{CommandError, Context, StartFailure, place::no_such_server};
use crate::{app::App, config::WrittenEntry, status_file};

/// Show one server's entry, its tools and its state. Starts nothing.
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    /// The name of the server.
    name: String,
}

/// One server.
#[derive(Debug, Serialize)]
pub struct Details {
    #[serde(flatten)]
    pub entry: WrittenEntry,
    /// From the cache; absent if the server has never listed its tools, or is disabled.
    pub tools: Option<CachedTools>,
    /// Its state in every running gateway.
    pub gateways: Vec<InGateway>,
}

#[derive(Debug, Serialize)]
pub struct CachedTools {
    /// Tools that hosts may call, by the names that hosts see.
    pub allowed: Vec<String>,
    /// How many the server has.
    pub all: usize,
}

#[derive(Debug, Serialize)]
pub struct InGateway {
    pub pid: u32,
    pub state: ServerState,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<StartFailure>,
}

pub async fn get(context: &Context, args: &GetArgs) -> Result<ExitCode, CommandError> {
    let mut entries = context.source.entries();
    if entries.is_empty() {
        context.settings()?;
    }
    let Some(index) = entries.iter().position(|entry| entry.name.eq_ignore_ascii_case(&args.name)) else {
        // The reason may be a file that plugbay ignores.
        context.output.diagnostics(&context.source.load().diagnostics);
        return Err(no_such_server(&args.name, entries.iter().map(|entry| entry.name.as_str())));
    };
    let mut entry = entries.swap_remove(index);
    entry.problem = entry.problem.or_else(|| problem(context, &entry.name));
    let tools = if entry.disabled { None } else { cached_tools(context, &entry.name).await };
    let gateways = in_gateways(context, &entry.name);
    context.output.show(&Details { entry, tools, gateways });
    Ok(ExitCode::SUCCESS)
}

/// The reason why plugbay cannot use the entry, such as a variable that is not set.
fn problem(context: &Context, name: &str) -> Option<String> {
    let servers = context.source.load().servers;
    let server = servers.into_iter().find(|server| server.name.as_str().eq_ignore_ascii_case(name))?;
    server.spec.err()
}

async fn cached_tools(context: &Context, name: &str) -> Option<CachedTools> {
    let name = ServerName::parse(name).ok()?;
    let mut settings = context.source.load();
    settings.servers.retain(|server| server.name == name);
    let app = App::assemble(&settings, context.environment.clone());
    let snapshot = app.snapshots().borrow().clone();
    app.shut_down().await;
    let all = snapshot.catalog.get(&name)?.offer.tools.len();
    Some(CachedTools { allowed: snapshot.names.iter().map(|found| found.exposed.clone()).collect(), all })
}

fn in_gateways(context: &Context, name: &str) -> Vec<InGateway> {
    let folder = context.source.paths.status_folder();
    let running = folder.and_then(|folder| status_file::read(&folder).ok()).unwrap_or_default();
    let states = running.into_iter().flatten().filter_map(|gateway| {
        let server = gateway.servers.into_iter().find(|server| server.name.eq_ignore_ascii_case(name))?;
        Some(InGateway { pid: gateway.pid, state: server.state, trouble: server.trouble })
    });
    let mut states: Vec<InGateway> = states.collect();
    states.sort_by_key(|gateway| gateway.pid);
    states
}
