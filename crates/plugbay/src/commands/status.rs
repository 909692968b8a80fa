//! `plugbay status`: the running gateways, their hosts, and the states of their servers.

use std::{path::Path, process::ExitCode, time::Duration};

use serde::Serialize;
use tokio::{signal, time::timeout};

use super::{CommandError, Context};
use crate::{
    clock,
    files::own,
    status_file::{self, GatewayStatus},
    watch::Watch,
};

/// How often the status is read anyway: a gateway that is killed changes no file.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Show the running gateways, their hosts and servers.
///
/// It reads the status files that gateways keep, and starts nothing.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct StatusArgs {
    /// Show every change until Ctrl-C.
    #[arg(short, long)]
    watch: bool,
}

const EXAMPLES: &str = "\
Examples:
  plugbay status
  plugbay status -w

The exit code is 1 if a server has failed.";

#[derive(Debug, Serialize)]
pub struct Status {
    /// The oldest first.
    pub gateways: Vec<GatewayStatus>,
    /// In seconds since 1970.
    #[serde(skip)]
    pub now: u64,
}

pub async fn status(context: &Context, args: &StatusArgs) -> Result<ExitCode, CommandError> {
    let folder = context.source.paths.status_folder().ok_or_else(|| {
        CommandError::failed("there is no folder for the status files of gateways")
            .hint("set HOME or XDG_STATE_HOME")
    })?;
    if args.watch {
        tokio::select! {
            outcome = watch(context, &folder) => outcome?,
            _ = signal::ctrl_c() => {}
        }
        return Ok(ExitCode::SUCCESS);
    }
    let gateways = read(context, &folder)?;
    let failed = gateways.iter().any(GatewayStatus::has_failed);
    context.output.show(&Status { gateways, now: clock::now() });
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Shows the status again whenever a status file changes.
async fn watch(context: &Context, folder: &Path) -> Result<(), CommandError> {
    // A folder that does not exist cannot be watched.
    own::create_folder(folder)?;
    let mut watch = Watch::new(&[], &[folder.to_owned()]);
    let mut shown = None;
    loop {
        let gateways = read(context, folder)?;
        if shown.as_ref() != Some(&gateways) {
            context.output.show_again(&Status { gateways: gateways.clone(), now: clock::now() });
            shown = Some(gateways);
        }
        let _ = timeout(LOOK_AGAIN, watch.changed()).await;
    }
}

fn read(context: &Context, folder: &Path) -> Result<Vec<GatewayStatus>, CommandError> {
    let unreadable = |error| {
        CommandError::failed(format!("cannot read the status files in {}: {error}", folder.display()))
    };
    let mut gateways = Vec::new();
    for found in status_file::read(folder).map_err(unreadable)? {
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
    Ok(gateways)
}
