//! `plugbay remove`: takes a server's entry out of its configuration file.

use std::process::ExitCode;

use super::{
    CommandError, Context,
    add::ScopeFlag,
    place::{self, FileChange, Verb},
};

/// Remove a server's entry.
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// The name of the server.
    name: String,
    #[command(flatten)]
    scope: ScopeFlag,
}

pub fn remove(context: &Context, args: &RemoveArgs) -> Result<ExitCode, CommandError> {
    let (mut file, written_name) = place::holding(context, &args.name, args.scope.scope)?;
    file.remove(&[&written_name]).map_err(|error| place::failed(context, error))?;
    place::write(context, &file)?;
    let gateways = place::gateways(context, &file);
    let change = FileChange { verb: Verb::Removed, servers: vec![written_name], file: file.file, gateways };
    context.output.show(&change);
    Ok(ExitCode::SUCCESS)
}
