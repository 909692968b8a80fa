//! `plugbay status`: the running gateways, their hosts, and the states of their servers.

use std::process::ExitCode;

use serde::Serialize;

use super::{CommandError, Context};
use crate::status_file::{self, GatewayStatus};

/// Show the running gateways, their hosts and servers.
///
/// It reads the status files that gateways keep, and starts nothing.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {}

#[derive(Debug, Serialize)]
pub struct Status {
    /// The oldest first.
    pub gateways: Vec<GatewayStatus>,
    /// In seconds since 1970.
    #[serde(skip)]
    pub now: u64,
}

pub fn status(context: &Context, _args: &StatusArgs) -> Result<ExitCode, CommandError> {
    let folder = context.source.paths.status_folder().ok_or_else(|| {
        CommandError::failed("there is no folder for the status files of gateways")
            .hint("set HOME or XDG_STATE_HOME")
    })?;
    let unreadable = |error| {
        CommandError::failed(format!("cannot read the status files in {}: {error}", folder.display()))
    };
    let mut gateways = Vec::new();
    for found in status_file::read(&folder).map_err(unreadable)? {
        match found {
            Ok(gateway) => gateways.push(gateway),
            Err(file) => {
                let file = file.display();
                context
                    .output
                    .note(format!("a gateway of another version is running; its status file is {file}"));
            }
        }
    }
    gateways.sort_by_key(|gateway| (gateway.since, gateway.pid));
    let failed = gateways.iter().any(GatewayStatus::has_failed);
    context.output.show(&Status { gateways, now: status_file::now() });
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
