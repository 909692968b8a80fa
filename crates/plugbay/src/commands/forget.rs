//! `plugbay forget`: forgets what searches of this project led to.

use std::process::ExitCode;

use serde::Serialize;

use super::{CommandError, Context};
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
    if tools > 0 {
        file.write(&memory).map_err(|error| {
            CommandError::failed(format!("remembered searches cannot be written: {error}"))
        })?;
    }
    context.output.show(&Forgotten { tools });
    Ok(ExitCode::SUCCESS)
}
