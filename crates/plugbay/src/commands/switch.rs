//! `plugbay enable` and `plugbay disable`: whether plugbay uses a server.

use std::process::ExitCode;

use plugbay_hosts::jsonc::Input;
use serde_json::Value;

use super::{
    CommandError, Context,
    add::ScopeFlag,
    place::{self, FileChange, Verb},
};
use crate::config::{EditError, Editable};

/// The options of `enable` and `disable`.
#[derive(Debug, clap::Args)]
pub struct SwitchArgs {
    /// The names of the servers.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    scope: ScopeFlag,
}

pub fn enable(context: &Context, args: &SwitchArgs) -> Result<ExitCode, CommandError> {
    switch(context, args, Verb::Enabled)
}

pub fn disable(context: &Context, args: &SwitchArgs) -> Result<ExitCode, CommandError> {
    switch(context, args, Verb::Disabled)
}

/// Changes all of these servers, or none if one of them does not exist.
fn switch(context: &Context, args: &SwitchArgs, verb: Verb) -> Result<ExitCode, CommandError> {
    let mut changes = Vec::new();
    for (mut file, servers) in place::holding_all(context, &args.names, args.scope.scope)? {
        let before = file.text.clone();
        for server in &servers {
            set(&mut file, server, verb).map_err(|error| place::failed(context, error))?;
        }
        if file.text == before {
            let file = file.file;
            changes.push(FileChange { verb: verb.already(), servers, file, gateways: 0 });
            continue;
        }
        place::write(context, &file)?;
        let gateways = place::gateways(context, &file);
        changes.push(FileChange { verb, servers, file: file.file, gateways });
    }
    context.output.show(&changes);
    Ok(ExitCode::SUCCESS)
}

fn set(file: &mut Editable, server: &str, verb: Verb) -> Result<(), EditError> {
    let entry = file.entry(server).unwrap_or_default();
    let is = |key: &str, value: bool| entry.get(key) == Some(&Value::Bool(value));
    let is_disabled = is("disabled", true) || is("enabled", false);
    if is_disabled == (verb == Verb::Disabled) {
        return Ok(());
    }
    file.remove(&[server, "enabled"])?;
    if verb == Verb::Disabled {
        file.set(&[server, "disabled"], Input::Bool(true))
    } else {
        file.remove(&[server, "disabled"])
    }
}
