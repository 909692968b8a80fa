//! `plugbay forget`: forgets which tools searches in this project led to.

use std::process::ExitCode;

use plugbay_core::name::ServerName;
use serde::Serialize;

use super::{CommandError, Context, place::no_such_server};
use crate::search_memory::MemoryFile;

/// Forget which tools were called after which searches in this project.
///
/// `plugbay search --learned` shows what is remembered. `"search": {"remember": false}` remembers nothing.
#[derive(Debug, clap::Args)]
pub struct ForgetArgs {
    /// Forget only the tools of this server.
    #[arg(long, value_name = "NAME")]
    server: Option<String>,
}

/// How many tools were forgotten.
#[derive(Debug, Serialize)]
pub struct Forgotten {
    pub tools: usize,
}

pub fn forget(context: &Context, args: &ForgetArgs) -> Result<ExitCode, CommandError> {
    let environment = &context.environment;
    let file = MemoryFile::of(&environment.project, environment.cache_folder.as_deref());
    let mut memory = file.read();
    let tools = memory.forget(|tool| args.server.as_ref().is_none_or(|server| tool.server == *server));
    if let Some(server) = args.server.as_deref().filter(|_| tools == 0) {
        check_name(context, server)?;
    }
    if tools > 0 {
        file.write(&memory).map_err(|error| {
            CommandError::failed(format!("remembered searches cannot be written: {error}"))
        })?;
    }
    context.output.show(&Forgotten { tools });
    Ok(ExitCode::SUCCESS)
}

/// Fails if no server has this name.
fn check_name(context: &Context, name: &str) -> Result<(), CommandError> {
    let settings = context.source.load();
    let configured = settings.servers.iter().map(|server| &server.name).chain(&settings.disabled);
    let names: Vec<&str> = configured.map(ServerName::as_str).collect();
    if names.contains(&name) { Ok(()) } else { Err(no_such_server(name, names.into_iter())) }
}
