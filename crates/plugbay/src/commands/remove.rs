//! `plugbay remove`: removes servers' entries from their configuration files.

use std::process::ExitCode;

use super::{
    CommandError, Context,
    add::ScopeFlag,
    place::{self, FileChange, Verb},
};

/// Remove servers' entries.
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// The names of the servers.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    scope: ScopeFlag,
}

/// Removes all of these servers, or none if one of them does not exist. Their logins are forgotten.
pub async fn remove(context: &Context, args: &RemoveArgs) -> Result<ExitCode, CommandError> {
    let mut changes = Vec::new();
    let files = place::holding_all(context, &args.names, args.scope.scope)?;
    super::auth::forget(context, &args.names).await;
    for (mut file, servers) in files {
        for server in &servers {
            file.remove(&[server]).map_err(|error| place::failed(context, error))?;
        }
        place::write(context, &file)?;
        let gateways = place::gateways(context, &file);
        changes.push(FileChange { verb: Verb::Removed, servers, file: file.file, gateways });
    }
    context.output.show(&changes);
    Ok(ExitCode::SUCCESS)
}
